package mcp

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"unicode/utf8"

	"github.com/stilehost/stile/internal/printable"
)

const (
	// maxDepth is how deep the JSON of a result nests. Clients give up on more, some with the whole connection.
	maxDepth = 100
	// scrap is the least worth showing, in bytes.
	scrap = 48
)

// deep reports whether JSON nests deeper than maxDepth.
func deep(text []byte) bool {
	depth, quoted := 0, false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{' || c == '[':
			if depth++; depth > maxDepth {
				return true
			}
		case c == '}' || c == ']':
			depth--
		}
	}
	return false
}

// cutJSON returns JSON of at most room bytes that shows of text what there is room for: the beginning of long texts and lists, and
// of an object something of each field. With marks, lists and objects say what they lack; without, each value keeps its type.
func cutJSON(text []byte, room int, marks bool) []byte {
	room = max(room, 2*scrap)
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	var value any
	if err := d.Decode(&value); err != nil {
		value = string(text) // nested deeper than the decoder goes
	}
	c := cutter{marks: marks}
	for share := room; ; share = share * 3 / 4 {
		kept := encoded(c.value(value, share, 0))
		if len(kept) <= room {
			return kept
		}
	}
}

type cutter struct{ marks bool }

// encoded is a value as JSON, as it is sent.
func encoded(value any) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(value) // what was decoded can be encoded
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

// size is how many bytes a value has as JSON; of one that has more than most it is some number above most, found without looking
// at all of it.
func size(value any, most int) int {
	switch v := value.(type) {
	case string:
		if len(v) > most {
			return len(v)
		}
		return len(encoded(v))
	case json.Number:
		return len(v)
	case []any:
		n := 2
		for _, element := range v {
			if n > most {
				break
			}
			n += size(element, most-n) + 1
		}
		return n
	case map[string]any:
		n := 2
		for key, field := range v {
			if n > most {
				break
			}
			n += size(key, most-n) + size(field, most-n) + 2
		}
		return n
	default:
		return len("false")
	}
}

// value returns what of a value has about room bytes.
func (c cutter) value(value any, room, depth int) any {
	switch v := value.(type) {
	case string:
		return c.text(v, room)
	case json.Number:
		if len(v) > max(room, scrap) {
			return c.text(string(v), room)
		}
		return v
	case []any:
		if depth == maxDepth {
			return []any{}
		}
		return c.list(v, room, depth)
	case map[string]any:
		if depth == maxDepth {
			return map[string]any{}
		}
		return c.object(v, room, depth)
	default:
		return v
	}
}

func (c cutter) text(s string, room int) string {
	if size(s, room) <= room {
		return s
	}
	keep := min(len(s), max(0, room-scrap/2))
	for keep > 0 && size(printable.Cut(s, keep), room) > room {
		keep = keep * 3 / 4
	}
	kept := printable.Cut(s, keep)
	return fmt.Sprintf("%s... (%d more characters)", kept, utf8.RuneCountInString(s[len(kept):]))
}

func (c cutter) list(list []any, room, depth int) []any {
	kept := []any{}
	room -= scrap / 2
	for i, element := range list {
		if room < scrap && size(element, room) > room {
			if c.marks {
				kept = append(kept, fmt.Sprintf("... (%d more)", len(list)-i))
			}
			break
		}
		part := c.value(element, room, depth+1)
		room -= size(part, room) + 1
		kept = append(kept, part)
	}
	return kept
}

// object gives each field the same room; what small ones leave is for the others.
func (c cutter) object(object map[string]any, room, depth int) map[string]any {
	sizes := map[string]int{}
	for key, value := range object {
		sizes[key] = size(value, room)
	}
	keys := slices.SortedFunc(maps.Keys(object), func(a, b string) int {
		return cmp.Or(cmp.Compare(sizes[a], sizes[b]), cmp.Compare(a, b))
	})
	kept := map[string]any{}
	room -= 2
	left := 0
	for i, key := range keys {
		share := room/(len(keys)-i) - size(key, room) - 2
		if share < sizes[key] && share < scrap {
			left++
			continue
		}
		part := c.value(object[key], share, depth+1)
		room -= size(key, room) + size(part, room) + 2
		kept[key] = part
	}
	if left > 0 && c.marks {
		kept["..."] = fmt.Sprintf("%d more fields", left)
	}
	return kept
}
