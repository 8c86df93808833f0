package schema

import (
	"encoding/json"
	"reflect"
	"slices"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// quick is a schema of common keywords. It accepts most values of most tools while it reads their text once, without allocating. What it
// accepts is valid. About everything else it says nothing.
type quick struct {
	types    kinds
	texts    map[string]bool // of an enum; nil if any text is allowed
	fields   map[string]field
	required uint64 // the bits of these fields
	others   *quick // fields that are not listed; nil if there may be none
	items    *quick
}

type field struct {
	*quick
	bit uint64 // 0 if it is not required
}

// kinds is a set of JSON types.
type kinds uint8

const (
	kindNull kinds = 1 << iota
	kindBoolean
	kindInteger
	kindFraction
	kindString
	kindArray
	kindObject
)

var kindOf = map[string]kinds{
	"null": kindNull, "boolean": kindBoolean, "integer": kindInteger, "number": kindInteger | kindFraction, "string": kindString,
	"array": kindArray, "object": kindObject,
}

var anything = func() *quick {
	q := &quick{types: 1<<7 - 1}
	q.others, q.items = q, q
	return q
}()

// IsJSON reports whether text is JSON.
func IsJSON(text []byte) bool { return anything.accepts(text) || json.Valid(text) }

// otherKeywords are the fields of a compiled schema that quick does not know and that assert something.
var otherKeywords = slices.DeleteFunc(reflect.VisibleFields(reflect.TypeFor[jsonschema.Schema]()), func(f reflect.StructField) bool {
	switch f.Name {
	case "Bool", "Types", "Enum", "Required", "Properties", "AdditionalProperties", "Items2020",
		"DraftVersion", "Location", "Title", "Description", "Default", "Comment", "ReadOnly", "WriteOnly", "Examples", "Deprecated":
		return true
	default:
		return !f.IsExported()
	}
})

// newQuick returns nil for a schema with other keywords.
func newQuick(s *jsonschema.Schema) *quick {
	v := reflect.ValueOf(s).Elem()
	if slices.ContainsFunc(otherKeywords, func(f reflect.StructField) bool { return !v.FieldByIndex(f.Index).IsZero() }) {
		return nil
	}
	if s.Bool != nil {
		if *s.Bool {
			return anything
		}
		return nil
	}
	q := &quick{types: anything.types, fields: map[string]field{}, others: anything, items: anything}
	if s.Types != nil {
		q.types = 0
		for _, name := range s.Types.ToStrings() {
			q.types |= kindOf[name]
		}
	}
	if s.Enum != nil {
		q.texts = map[string]bool{}
		q.types &= kindString
		for _, v := range s.Enum.Values {
			if text, ok := v.(string); ok {
				q.texts[text] = true
			}
		}
	}
	for name, sub := range s.Properties {
		f := field{quick: newQuick(sub)}
		if f.quick == nil {
			return nil
		}
		q.fields[name] = f
	}
	switch more := s.AdditionalProperties.(type) {
	case bool:
		if !more {
			q.others = nil
		}
	case *jsonschema.Schema:
		if q.others = newQuick(more); q.others == nil {
			return nil
		}
	}
	for i, name := range s.Required {
		f, ok := q.fields[name]
		if !ok || i == 64 {
			return nil
		}
		f.bit = 1 << i
		q.fields[name] = f
		q.required |= f.bit
	}
	if s.Items2020 != nil {
		if q.items = newQuick(s.Items2020); q.items == nil {
			return nil
		}
	}
	return q
}

// accepts reports whether text is JSON that fits, and simple enough to be certain.
func (q *quick) accepts(text []byte) bool {
	if q == nil {
		return false
	}
	r := quickReader{text: text}
	return r.value(q, 0) && r.next() == 0 && r.at == len(text)
}

// quickReader reads JSON. Its methods return false for what is malformed, does not fit or is unusual.
type quickReader struct {
	text []byte
	at   int
}

// next skips space and returns the byte that follows, or 0 at the end.
func (r *quickReader) next() byte {
	for ; r.at < len(r.text); r.at++ {
		if c := r.text[r.at]; c != ' ' && c != '\t' && c != '\n' && c != '\r' {
			return c
		}
	}
	return 0
}

// skip skips one byte, if it comes next.
func (r *quickReader) skip(c byte) bool {
	found := r.next() == c
	if found {
		r.at++
	}
	return found
}

func (r *quickReader) value(q *quick, depth int) bool {
	if depth > MaxDepth {
		return false
	}
	switch c := r.next(); c {
	case '{':
		return q.types&kindObject != 0 && r.object(q, depth)
	case '[':
		return q.types&kindArray != 0 && r.array(q, depth)
	case '"':
		text, plain, ok := r.string()
		return ok && q.types&kindString != 0 && (q.texts == nil || plain && q.texts[string(text)])
	case 'n':
		return q.types&kindNull != 0 && r.word("null")
	case 't':
		return q.types&kindBoolean != 0 && r.word("true")
	case 'f':
		return q.types&kindBoolean != 0 && r.word("false")
	default:
		return r.number(q.types)
	}
}

func (r *quickReader) word(w string) bool {
	end := min(r.at+len(w), len(r.text))
	found := string(r.text[r.at:end]) == w
	r.at = end
	return found
}

func (r *quickReader) object(q *quick, depth int) bool {
	r.at++
	var seen uint64
	for first := true; !r.skip('}'); first = false {
		if !first && !r.skip(',') || r.next() != '"' {
			return false
		}
		name, plain, ok := r.string()
		if !ok || !plain || !r.skip(':') {
			return false
		}
		f, known := q.fields[string(name)]
		if !known {
			f.quick = q.others
		}
		if f.quick == nil || !r.value(f.quick, depth+1) {
			return false
		}
		seen |= f.bit
	}
	return seen == q.required
}

func (r *quickReader) array(q *quick, depth int) bool {
	r.at++
	for first := true; !r.skip(']'); first = false {
		if !first && !r.skip(',') || !r.value(q.items, depth+1) {
			return false
		}
	}
	return true
}

// string returns the bytes between quotes. They are plain if they mean themselves: escapes and what is not ASCII may not.
func (r *quickReader) string() (text []byte, plain, ok bool) {
	r.at++
	plain = true
	for from := r.at; r.at < len(r.text); r.at++ {
		switch c := r.text[r.at]; {
		case c == '"':
			r.at++
			return r.text[from : r.at-1], plain, true
		case c == '\\':
			r.at++
			if r.at == len(r.text) || !slices.Contains([]byte(`"\/bfnrt`), r.text[r.at]) {
				return nil, false, false
			}
			plain = false
		case c < ' ':
			return nil, false, false
		case c > '~':
			plain = false
		}
	}
	return nil, false, false
}

// number reads a number without an exponent.
func (r *quickReader) number(types kinds) bool {
	from := r.at
	if r.at < len(r.text) && r.text[r.at] == '-' {
		r.at++
	}
	start := r.at
	if r.digits() == 0 || r.text[start] == '0' && r.at > start+1 {
		return false
	}
	kind := kindInteger
	if r.at < len(r.text) && r.text[r.at] == '.' {
		r.at++
		if kind = kindFraction; r.digits() == 0 {
			return false
		}
	}
	return types&kind != 0 && r.at-from <= maxNumber
}

func (r *quickReader) digits() (n int) {
	for ; r.at < len(r.text) && r.text[r.at]-'0' < 10; r.at++ {
		n++
	}
	return n
}
