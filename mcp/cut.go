package mcp

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"unicode/utf8"

	"github.com/stilehost/stile/capability"
	"github.com/stilehost/stile/internal/jsonform"
	"github.com/stilehost/stile/internal/printable"
)

const (
	// maxDepth is how deep the JSON of a result may nest. Clients fail on deeper JSON, some with the whole connection.
	maxDepth = 100
	// scrap is the smallest piece worth showing, in bytes.
	scrap = 48
	// large is the size in bytes from which the end of a list or object is looked up. Smaller ones can be read again at each depth.
	large = 1024
)

// deep reports whether JSON nests deeper than maxDepth.
func deep(text []byte) bool { return jsonform.Depth(text) > maxDepth }

// cutJSON returns JSON of at most room bytes that shows as much of text as fits: the beginning of long texts and lists, and
// something of each field of an object. With marks, lists and objects say what they lack; without, each value keeps its type. It
// does not decode the text, which could take 70 times its size.
func cutJSON(text []byte, room int, marks bool) []byte {
	room = max(room, 2*scrap)
	part := func(room int) []byte { return cutText(string(text), room) } // too deep for a decoder
	if json.Valid(text) {
		c := cutter{text: compact(text), marks: marks}
		c.index()
		part = func(room int) []byte { return c.value(nil, 0, room, 0) }
	}
	for share := room; ; share = share * 3 / 4 {
		if kept := part(share); len(kept) <= room {
			return kept
		}
	}
}

// encoded is a text as JSON, as it is sent.
func encoded(text string) []byte { return capability.JSON(text) }

// unquoted decodes a text from JSON.
func unquoted(quoted []byte) (text string) {
	_ = json.Unmarshal(quoted, &text) // it is valid
	return text
}

// compact returns valid JSON without white space, and with every text in the form that encoded gives it.
func compact(text []byte) []byte {
	made := make([]byte, 0, len(text))
	for i := 0; i < len(text); {
		switch c := text[i]; c {
		case ' ', '\t', '\r', '\n':
			i++
		case '"':
			end, plain := quotedEnd(text, i)
			if plain {
				made = append(made, text[i:end]...)
			} else {
				made = append(made, '"')
				for rest := unquoted(text[i:end]); rest != ""; { // encoded needs a multiple of the text's size
					part := printable.Cut(rest, large)
					quoted := encoded(part)
					made = append(made, quoted[1:len(quoted)-1]...)
					rest = rest[len(part):]
				}
				made = append(made, '"')
			}
			i = end
		default:
			made = append(made, c)
			i++
		}
	}
	return made
}

// quotedEnd returns the end of the text that begins at i. A plain text consists of ASCII without escapes.
func quotedEnd(text []byte, i int) (end int, plain bool) {
	plain = true
	for i++; text[i] != '"'; i++ {
		if text[i] == '\\' {
			i++
			plain = false
		}
		plain = plain && text[i] < utf8.RuneSelf
	}
	return i + 1, plain
}

// cutter cuts compact JSON.
type cutter struct {
	text  []byte
	marks bool
	ends  map[int]int // where large lists and objects end, by where they begin
}

func (c *cutter) index() {
	c.ends = map[int]int{}
	var open []int
	for i := 0; i < len(c.text); i++ {
		switch c.text[i] {
		case '"':
			i, _ = quotedEnd(c.text, i)
			i--
		case '[', '{':
			open = append(open, i)
		case ']', '}':
			start := open[len(open)-1]
			open = open[:len(open)-1]
			if i-start >= large && len(open) <= maxDepth+1 {
				c.ends[start] = i + 1
			}
		}
	}
}

// end returns the end of the value that begins at i.
func (c *cutter) end(i int) int {
	if end, ok := c.ends[i]; ok {
		return end
	}
	depth := 0
	for ; i < len(c.text); i++ {
		switch c.text[i] {
		case '"':
			i, _ = quotedEnd(c.text, i)
			i--
		case '[', '{':
			depth++
			continue
		case ']', '}':
			depth--
		case ',', ':':
			if depth == 0 {
				return i
			}
			continue
		default:
			continue
		}
		if depth < 0 {
			return i // a number or a word, at the end of a list or object
		}
		if depth == 0 {
			return i + 1
		}
	}
	return i
}

// value appends to made as much of the value that begins at i as fits into about room bytes.
func (c *cutter) value(made []byte, i, room, depth int) []byte {
	switch c.text[i] {
	case '"':
		end, _ := quotedEnd(c.text, i)
		if end-i <= room {
			return append(made, c.text[i:end]...)
		}
		return append(made, cutText(unquoted(c.text[i:end]), room)...)
	case '[':
		if depth == maxDepth {
			return append(made, "[]"...)
		}
		return c.list(made, i, room, depth)
	case '{':
		if depth == maxDepth {
			return append(made, "{}"...)
		}
		return c.object(made, i, room, depth)
	default:
		end := c.end(i)
		if end-i > max(room, scrap) {
			return append(made, cutText(string(c.text[i:end]), room)...)
		}
		return append(made, c.text[i:end]...)
	}
}

func cutText(s string, room int) []byte {
	if len(s) <= room {
		if whole := encoded(s); len(whole) <= room {
			return whole
		}
	}
	keep := min(len(s), max(0, room-scrap/2))
	for keep > 0 && len(encoded(printable.Cut(s, keep))) > room {
		keep = keep * 3 / 4
	}
	kept := printable.Cut(s, keep)
	return encoded(fmt.Sprintf("%s... (%d more characters)", kept, utf8.RuneCountInString(s[len(kept):])))
}

func (c *cutter) list(made []byte, i, room, depth int) []byte {
	made = append(made, '[')
	room -= scrap / 2
	first, left := true, 0
	for i++; c.text[i] != ']'; {
		end := c.end(i)
		if left > 0 || room < scrap && end-i > room {
			left++
		} else {
			if !first {
				made = append(made, ',')
			}
			first = false
			before := len(made)
			made = c.value(made, i, room, depth+1)
			room -= len(made) - before + 1
		}
		if i = end; c.text[i] == ',' {
			i++
		}
	}
	if left > 0 && c.marks {
		if !first {
			made = append(made, ',')
		}
		made = fmt.Appendf(made, `"... (%d more)"`, left)
	}
	return append(made, ']')
}

// field is one field of an object: where its key begins, and the size of its value in bytes. There can be one for every five bytes.
type field struct{ at, size int32 }

func (c *cutter) key(f field) []byte {
	end, _ := quotedEnd(c.text, int(f.at))
	return c.text[f.at:end]
}

// fields returns the fields of the object that begins at i, by size. Of several fields with one name, it takes the last.
func (c *cutter) fields(i int) []field {
	var all []field
	for i++; c.text[i] != '}'; {
		key, _ := quotedEnd(c.text, i)
		end := c.end(key + 1)
		all = append(all, field{int32(i), int32(end - key - 1)})
		if i = end; c.text[i] == ',' {
			i++
		}
	}
	slices.SortFunc(all, func(a, b field) int {
		return cmp.Or(bytes.Compare(c.key(a), c.key(b)), cmp.Compare(b.at, a.at))
	})
	all = slices.CompactFunc(all, func(a, b field) bool { return bytes.Equal(c.key(a), c.key(b)) })
	slices.SortFunc(all, func(a, b field) int { return cmp.Or(cmp.Compare(a.size, b.size), cmp.Compare(a.at, b.at)) })
	return all
}

// object gives each field the same room. What small fields leave goes to the others.
func (c *cutter) object(made []byte, i, room, depth int) []byte {
	type part struct {
		at   int32
		text []byte
	}
	var parts []part
	fields := c.fields(i)
	room -= 2
	left := 0
	for i, f := range fields {
		key := c.key(f)
		share := room/(len(fields)-i) - len(key) - 2
		if share < int(f.size) && share < scrap {
			left++
			continue
		}
		text := c.value(append(bytes.Clone(key), ':'), int(f.at)+len(key)+1, share, depth+1)
		room -= len(text) + 1
		parts = append(parts, part{f.at, text})
	}
	if left > 0 && c.marks {
		parts = slices.DeleteFunc(parts, func(p part) bool { return bytes.HasPrefix(p.text, []byte(`"...":`)) })
		parts = append(parts, part{math.MaxInt32, fmt.Appendf(nil, `"...":"%d more fields"`, left)})
	}
	slices.SortFunc(parts, func(a, b part) int { return cmp.Compare(a.at, b.at) })
	made = append(made, '{')
	for i, p := range parts {
		if i > 0 {
			made = append(made, ',')
		}
		made = append(made, p.text...)
	}
	return append(made, '}')
}
