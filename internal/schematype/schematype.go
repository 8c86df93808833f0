// Package schematype writes JSON Schemas as TypeScript types, for models and people who call a tool. The schema is an author's text: reading
// it is bounded, references are followed within it only, and nothing in it can end a comment or a type.
package schematype

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/stilehost/stile/internal/lazyregexp"
	"github.com/stilehost/stile/internal/printable"
)

// Detail is how much of a schema a type shows.
type Detail struct {
	// Depth is how deep objects are shown. At depth 0, their fields are only named.
	Depth int
	// Comment is how many bytes of a description are shown. 0 leaves comments out.
	Comment int
	// Optional is how many optional fields of an object are shown.
	Optional int
	// Line writes everything on one line, without comments.
	Line bool
}

// Limits of a schema. Decoded JSON takes up to 70 times the memory of its text.
const (
	maxSchema  = 256 << 10 // bytes
	maxNodes   = 5_000     // subschemas that one type shows, and each perNode steps and fields that are looked at
	perNode    = 16
	maxNested  = 100       // types in each other; references can lead deeper than a schema nests
	maxText    = 256 << 10 // bytes of a type
	maxUnion   = 24        // values or variants
	maxLiteral = 60        // bytes
	maxNames   = 200       // bytes of the names of fields that are not shown
)

// Schema is a schema that was read.
type Schema struct {
	root any // of the whole, where references lead
	at   any
}

// Parse reads a schema. One that is too large, or that is not JSON, admits anything.
func Parse(text string) *Schema {
	s := &Schema{map[string]any{}, map[string]any{}}
	if len(text) > maxSchema {
		return s
	}
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	var root any
	if d.Decode(&root) == nil {
		s.root, s.at = root, root
	}
	return s
}

// Field returns the schema of a field, or of the items of a list if the name is "[]".
func (s *Schema) Field(name string) (*Schema, bool) {
	w := &writer{root: s.root, left: maxNodes}
	at := w.follow(s.at)
	if name == "[]" {
		items, ok := at["items"]
		return &Schema{s.root, items}, ok
	}
	for _, part := range append([]any{at}, w.parts(at)...) {
		if field, ok := object(object(part)["properties"])[name]; ok {
			return &Schema{s.root, field}, true
		}
	}
	return nil, false
}

// Requires reports whether an object of the schema must have a field.
func (s *Schema) Requires() bool { return len(list(object(s.at)["required"])) > 0 }

// Type returns the TypeScript type of the values that the schema admits. less reports whether it shows less than the schema says. A type of
// more than 256 KiB is "any".
func (s *Schema) Type(d Detail) (text string, less bool) {
	text, less, ok := s.TypeWithin(d, maxText)
	if !ok {
		return "any", true
	}
	return text, less
}

// TypeWithin is [Schema.Type] for a type of at most so many bytes. ok reports whether it is no longer. One that is much longer is given up early.
func (s *Schema) TypeWithin(d Detail, most int) (text string, less, ok bool) {
	w := &writer{root: s.root, detail: d, left: maxNodes, room: 16*most + 4096, active: map[string]bool{}} // parts can be left out again
	text = w.typeOf(s.at, d.Depth, "")
	return text, w.less, w.room >= 0 && len(text) <= most
}

type writer struct {
	root   any
	detail Detail
	left   int // subschemas
	room   int // bytes of names, values and comments
	nested int
	active map[string]bool // references that are being followed
	less   bool
}

func object(v any) map[string]any { m, _ := v.(map[string]any); return m }

func list(v any) []any { l, _ := v.([]any); return l }

// follow returns a schema without the references that lead to it.
func (w *writer) follow(v any) map[string]any {
	given := object(v)
	for range 32 {
		ref, ok := given["$ref"].(string)
		if !ok {
			return given
		}
		given = object(w.pointer(ref))
	}
	return nil
}

func (w *writer) pointer(ref string) any {
	rest, ok := strings.CutPrefix(ref, "#")
	if !ok || w.look(strings.Count(rest, "/")) {
		return nil
	}
	at := w.root
	for step := range strings.SplitSeq(strings.TrimPrefix(rest, "/"), "/") {
		if rest == "" {
			break
		}
		at = object(at)[unescaped.Replace(step)]
	}
	return at
}

var unescaped = strings.NewReplacer("~1", "/", "~0", "~")

// look counts steps and fields that are looked at, and reports whether there were too many.
func (w *writer) look(n int) (tooMany bool) {
	w.left -= 1 + n/perNode
	return w.left < 0
}

// write counts text that becomes a part of the type.
func (w *writer) write(text string) string {
	w.room -= len(text)
	return text
}

// parts are the schemas that all apply.
func (w *writer) parts(given map[string]any) (all []any) {
	for _, part := range list(given["allOf"]) {
		if w.look(0) {
			break
		}
		all = append(all, w.follow(part))
	}
	return all
}

func (w *writer) typeOf(v any, depth int, indent string) string {
	w.nested++
	defer func() { w.nested-- }()
	if w.look(0) || w.room < 0 || w.nested > maxNested {
		w.less = true
		return "any"
	}
	switch v := v.(type) {
	case bool:
		if v {
			return "any"
		}
		return "never"
	case map[string]any:
		if ref, ok := v["$ref"].(string); ok {
			if w.active[ref] { // a part of itself
				w.less = true
				return "any"
			}
			w.active[ref] = true
			defer delete(w.active, ref)
			return w.typeOf(w.pointer(ref), depth, indent)
		}
		return w.given(v, depth, indent)
	default:
		return "any"
	}
}

func (w *writer) given(given map[string]any, depth int, indent string) string {
	if v, ok := given["const"]; ok {
		return w.literals([]any{v})
	}
	if enum := list(given["enum"]); len(enum) > 0 && len(enum) <= maxUnion {
		return w.literals(enum)
	}
	var all []string
	for _, key := range []string{"anyOf", "oneOf"} {
		if variants := list(given[key]); len(variants) > 0 {
			all = append(all, w.union(variants, depth, indent))
		}
	}
	for _, part := range list(given["allOf"]) {
		all = append(all, w.typeOf(part, depth, indent))
	}
	if own := w.own(given, depth, indent); own != "any" || len(all) == 0 {
		all = append([]string{own}, all...)
	}
	all = slices.DeleteFunc(all, func(t string) bool { return t == "any" && len(all) > 1 })
	for i := range all {
		if len(all) > 1 && strings.Contains(all[i], " | ") {
			all[i] = "(" + all[i] + ")"
		}
	}
	if len(all) == 0 {
		return "any"
	}
	return strings.Join(slices.Compact(all), " & ")
}

func (w *writer) union(variants []any, depth int, indent string) string {
	var all []string
	for _, v := range variants {
		if len(all) == maxUnion {
			w.less = true
			return "any"
		}
		if t := w.typeOf(v, depth, indent); !slices.Contains(all, t) {
			all = append(all, t)
		}
	}
	if slices.Contains(all, "any") {
		return "any"
	}
	return strings.Join(all, " | ")
}

// own is the type that the keyword type says, with what belongs to it.
func (w *writer) own(given map[string]any, depth int, indent string) string {
	var types []any
	switch t := given["type"].(type) {
	case string:
		types = []any{t}
	case []any:
		types = t[:min(len(t), maxUnion)]
	default:
		switch {
		case given["properties"] != nil || given["additionalProperties"] != nil:
			types = []any{"object"}
		case given["items"] != nil:
			types = []any{"array"}
		default:
			return "any"
		}
	}
	var all []string
	for _, t := range types {
		one := "any"
		switch t {
		case "string", "boolean", "null":
			one = fmt.Sprint(t)
		case "number", "integer":
			one = "number"
		case "array":
			one = w.array(given, depth, indent)
		case "object":
			one = w.object(given, depth, indent)
		}
		if !slices.Contains(all, one) {
			all = append(all, one)
		}
	}
	return strings.Join(all, " | ")
}

func (w *writer) array(given map[string]any, depth int, indent string) string {
	items, ok := given["items"]
	if !ok || given["prefixItems"] != nil {
		return "any[]"
	}
	t := w.typeOf(items, depth, indent)
	if strings.ContainsAny(t, "|&") && !strings.HasPrefix(t, "{") {
		t = "(" + t + ")"
	} else if strings.HasPrefix(t, "{") && strings.Contains(t[strings.LastIndexByte(t, '}'):], " ") {
		t = "(" + t + ")"
	}
	return t + "[]"
}

func (w *writer) object(given map[string]any, depth int, indent string) string {
	props := object(given["properties"])
	if w.look(len(props) + len(list(given["required"]))) {
		w.less = true
		return "any"
	}
	var names []string
	needed := map[string]bool{}
	for _, name := range list(given["required"]) {
		if s, ok := name.(string); ok && !needed[s] && len(names) < 200 {
			needed[s] = true
			names = append(names, s)
		}
	}
	required := len(names)
	for _, name := range slices.Sorted(maps.Keys(props)) {
		if !needed[name] {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		if more, ok := given["additionalProperties"].(map[string]any); ok && len(more) > 0 {
			return "Record<string, " + w.typeOf(more, depth, indent) + ">"
		}
		if given["additionalProperties"] == false {
			return "{}"
		}
		if w.detail.Line {
			return "{...}"
		}
		return "Record<string, any>"
	}
	if depth <= 0 {
		w.less = true
		if w.detail.Line {
			return "{...}"
		}
		return "Record<string, any> /* " + w.write(nameList(names)) + " */"
	}
	if w.detail.Line {
		return w.line(props, names, required, depth)
	}
	deeper := indent + "  "
	var b strings.Builder
	b.WriteString("{\n")
	for i, name := range names {
		if i >= required+w.detail.Optional {
			w.less = true
			fmt.Fprintf(&b, "%s// optional, not shown: %s\n", deeper, w.write(nameList(names[i:])))
			break
		}
		field := props[name]
		if text := w.comment(field); text != "" {
			fmt.Fprintf(&b, "%s/** %s */\n", deeper, w.write(text))
		}
		fmt.Fprintf(&b, "%s%s%s: %s;\n", deeper, w.write(Name(name)), mark(i >= required), w.typeOf(orAny(field), depth-1, deeper))
	}
	b.WriteString(indent + "}")
	return b.String()
}

// line writes the required fields, and says that there are others.
func (w *writer) line(props map[string]any, names []string, required, depth int) string {
	var all []string
	for i, name := range names {
		if i >= required+w.detail.Optional {
			all = append(all, "...")
			break
		}
		all = append(all, w.write(Name(name))+mark(i >= required)+": "+w.typeOf(orAny(props[name]), depth-1, ""))
	}
	return "{" + strings.Join(all, ", ") + "}"
}

func orAny(v any) any {
	if v == nil {
		return true
	}
	return v
}

func mark(optional bool) string {
	if optional {
		return "?"
	}
	return ""
}

// comment is what a field's schema says in words, and its bounds.
func (w *writer) comment(v any) string {
	most := w.detail.Comment
	if most == 0 {
		return ""
	}
	given := object(v)
	if ref := w.follow(v); given["description"] == nil && ref != nil {
		given = ref
	}
	text := ""
	if s, ok := given["description"].(string); ok {
		text = Comment(s, most)
	}
	var bounds []string
	for _, b := range []struct{ key, word string }{{"default", "default"}, {"minimum", "at least"}, {"maximum", "at most"}} {
		switch v := given[b.key].(type) {
		case json.Number, bool:
			bounds = append(bounds, fmt.Sprintf("%s %v", b.word, v))
		case string:
			if b.key == "default" && v != "" && len(v) <= 40 {
				bounds = append(bounds, "default "+Comment(v, 40))
			}
		}
	}
	if enum := list(given["enum"]); len(enum) > maxUnion {
		bounds = append(bounds, "one of "+nameList(texts(enum)))
	}
	if len(bounds) > 0 && !strings.Contains(text, bounds[0]) {
		text = strings.TrimSpace(text + " (" + strings.Join(bounds, ", ") + ")")
	}
	return text
}

func texts(values []any) (all []string) {
	for _, v := range values[:min(len(values), 40)] {
		all = append(all, fmt.Sprint(v))
	}
	return all
}

// Comment makes text safe within a comment: on one line, with nothing that hides, and without the end of a comment.
func Comment(s string, most int) string {
	s = printable.Short(strings.Join(strings.Fields(printable.Cut(s, 4*most)), " "), most)
	return strings.ReplaceAll(s, "*/", "* /")
}

func nameList(names []string) string {
	text := ""
	for i, name := range names {
		next := Comment(name, 100)
		if i > 0 {
			next = ", " + next
		}
		if len(text)+len(next) > maxNames {
			return fmt.Sprintf("%s and %d more", text, len(names)-i)
		}
		text += next
	}
	return text
}

func (w *writer) literals(values []any) string {
	var all []string
	for _, v := range values {
		text := "any"
		switch v := v.(type) {
		case nil:
			text = "null"
		case bool:
			text = fmt.Sprint(v)
		case json.Number:
			text = v.String()
		case string:
			text = quote(v)
		}
		if len(text) > maxLiteral {
			w.less = true
			text = "string"
		}
		if !slices.Contains(all, text) {
			all = append(all, w.write(text))
		}
	}
	return strings.Join(all, " | ")
}

func quote(s string) string {
	text, err := json.Marshal(printable.OneLine(s))
	if err != nil {
		return `""` // every string has a JSON form
	}
	return strings.ReplaceAll(string(text), "*/", `*\/`)
}

var identifier = lazyregexp.New(`^[A-Za-z_$][A-Za-z0-9_$]*$`)

// Name writes the name of a field, in quotes if it is no identifier.
func Name(name string) string {
	if identifier.MatchString(name) && len(name) <= 100 {
		return name
	}
	return quote(printable.Cut(name, 100))
}
