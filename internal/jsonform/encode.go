package jsonform

import (
	"bytes"
	"encoding/json"
	"strings"
)

// maxLevels is how many levels [Indent] breaks into lines. Each value below them would otherwise take as many spaces as it is deep:
// a list of 600 KB that nests 900 deep would have 540 MB.
const maxLevels = 16

// Encode returns the JSON of a value without escapes for HTML and without a newline at its end. indent is for one level, as for
// [Indent]; without it the JSON is one line.
func Encode(v any, indent string) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	text := bytes.TrimSuffix(b.Bytes(), []byte{'\n'})
	if indent == "" {
		return text, nil
	}
	return Indent(text, indent), nil
}

// Indent breaks valid JSON into lines as json.Indent does, but only its outermost 16 levels: whatever it is, the result has at most
// 16 times indent, and a few bytes, for each byte.
func Indent(valid []byte, indent string) []byte {
	b := make([]byte, 0, len(valid))
	breaks := strings.Repeat(indent, maxLevels)
	level, empty := 0, false // empty: nothing has come since the last opening bracket
	line := func(level int) {
		if level <= maxLevels {
			b = append(append(b, '\n'), breaks[:level*len(indent)]...)
		}
	}
	for i := 0; i < len(valid); i++ {
		c := valid[i]
		if c == ' ' || c == '\t' || c == '\n' || c == '\r' {
			continue
		}
		if empty && c != '}' && c != ']' {
			line(level)
		}
		closed := !empty
		empty = false
		switch c {
		case '{', '[':
			level++
			empty = true
			b = append(b, c)
		case '}', ']':
			if closed && level <= maxLevels {
				line(level - 1)
			}
			level--
			b = append(b, c)
		case ',':
			b = append(b, c)
			line(level)
		case ':':
			b = append(b, c)
			if level <= maxLevels {
				b = append(b, ' ')
			}
		case '"':
			from := i
			for i++; i < len(valid) && valid[i] != '"'; i++ {
				if valid[i] == '\\' {
					i++
				}
			}
			b = append(b, valid[from:min(i+1, len(valid))]...)
		default:
			b = append(b, c)
		}
	}
	return b
}
