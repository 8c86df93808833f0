package jsonform

// Values returns the number of values in JSON, or slightly more, without decoding it. A list and each of its items count.
func Values(text []byte) int {
	quoted, n := false, 1
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '"':
			quoted = !quoted
		case quoted && c == '\\':
			i++
		case !quoted && (c == ',' || c == '['):
			n++
		}
	}
	return n
}

// DecodedSize returns the most bytes that JSON takes when it is decoded into values of any type, including garbage. A map of one entry,
// which is seven bytes of JSON, takes 400.
func DecodedSize(text []byte) int64 {
	const perByte, perObject, perValue = 14, 280, 100
	quoted, n := false, int64(perByte*len(text))
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '"':
			quoted = !quoted
		case quoted && c == '\\':
			i++
		case quoted:
		case c == '{':
			n += perObject
		case c == '[', c == ',', c == ':': // a value follows
			n += perValue
		}
	}
	return n
}
