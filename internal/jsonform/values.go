package jsonform

// Values returns how many values JSON has, or some more, without decoding it: a list counts, and so does each of its items.
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
