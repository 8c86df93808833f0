package jsonform

import "iter"

// Values returns the number of values in JSON, or slightly more, without decoding it. A list and each of its items count.
func Values(text []byte) int {
	n := 1
	for c := range outsideStrings(text) {
		if c == ',' || c == '[' {
			n++
		}
	}
	return n
}

// DecodedSize returns the most bytes that JSON takes when it is decoded into values of any type, including garbage. A map of one entry,
// which is seven bytes of JSON, takes 400.
func DecodedSize(text []byte) int64 {
	const perByte, perObject, perValue = 14, 280, 100
	n := int64(perByte * len(text))
	for c := range outsideStrings(text) {
		switch c {
		case '{':
			n += perObject
		case '[', ',', ':': // a value follows
			n += perValue
		}
	}
	return n
}

// Depth returns how deep the lists and objects of JSON nest, without decoding it.
func Depth(text []byte) int {
	depth, most := 0, 0
	for c := range outsideStrings(text) {
		switch c {
		case '{', '[':
			depth++
			most = max(most, depth)
		case '}', ']':
			depth--
		}
	}
	return most
}

// outsideStrings yields the bytes of JSON that are not in strings.
func outsideStrings(text []byte) iter.Seq[byte] {
	return func(yield func(byte) bool) {
		quoted := false
		for i := 0; i < len(text); i++ {
			switch c := text[i]; {
			case c == '"':
				quoted = !quoted
			case quoted && c == '\\':
				i++
			case !quoted && !yield(c):
				return
			}
		}
	}
}
