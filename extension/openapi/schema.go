package openapi

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/stilehost/stile/internal/printable"
)

// detail is how much a schema says of a document's.
type detail struct {
	depth    int // of objects and lists in each other
	text     int // bytes of a description
	nodes    int // subschemas
	enum     int // values of an enumeration
	optional int // properties that are not required, of one object
}

// details are from the most to the least. A tool takes the first whose schema fits.
var details = []detail{
	{6, 240, 400, 60, 200}, {5, 160, 250, 40, 100}, {4, 100, 150, 30, 60}, {3, 60, 100, 20, 40}, {2, 40, 60, 12, 30}, {1, 24, 40, 8, 20}, {1, 0, 24, 0, 8}, {0, 0, 12, 0, 0},
}

// converter makes JSON Schemas 2020-12 of the schemas of documents.
type converter struct {
	*document
	detail
	left   int             // subschemas
	active map[string]bool // references that are being followed
	less   bool            // whether it says less than the document
}

func (d *document) converter(at detail) *converter {
	return &converter{document: d, detail: at, left: at.nodes, active: map[string]bool{}}
}

// anything is the schema of what is not described.
func (c *converter) anything() map[string]any {
	c.less = true
	return map[string]any{}
}

// schema converts a schema. Constraints that only a server can judge are left out, such as formats and patterns: an input that the server
// would accept must not fail here.
func (c *converter) schema(v any, depth int) map[string]any {
	if c.left--; c.left < 0 || !c.spend(1) {
		return c.anything()
	}
	given := object(v)
	for hops := 0; ; hops++ {
		ref, is := given["$ref"].(string)
		if !is {
			break
		}
		target, ok := c.pointer(ref)
		if !ok || c.active[ref] || hops == maxHops { // elsewhere, missing, or a part of itself
			return c.anything()
		}
		c.active[ref] = true
		defer delete(c.active, ref)
		given = object(target)
	}
	out := map[string]any{}
	if text := c.prose(str(given["description"]), c.text); text != "" {
		out["description"] = text
	}
	types := c.types(given, out)
	c.values(given, out)
	deeper := depth < c.depth
	if props := object(given["properties"]); props != nil || slices.Contains(types, "object") {
		if deeper {
			c.properties(given, props, out, depth)
		} else if len(props) > 0 {
			c.less = true
		}
	}
	if slices.Contains(types, "array") {
		switch items := given["items"]; {
		case items != nil && deeper:
			if s := c.schema(items, depth+1); len(s) > 0 {
				out["items"] = s
			}
		case items != nil:
			if t := c.shallow(items); t != nil {
				out["items"] = t
			}
			c.less = true
		}
	}
	c.combined(given, out, depth)
	if variants := list(out["anyOf"]); truth(given["nullable"]) && len(variants) > 0 { // OpenAPI 3.0 allows null beside them
		out["anyOf"] = append(variants, map[string]any{"type": "null"})
	}
	return out
}

// types sets the type, and adds null for what OpenAPI 3.0 calls nullable.
func (c *converter) types(given, out map[string]any) (types []string) {
	switch t := given["type"].(type) {
	case string:
		types = []string{t}
	case []any:
		if !c.spend(len(t)) {
			return nil
		}
		for _, item := range t {
			types = append(types, str(item))
		}
	}
	types = slices.DeleteFunc(types, func(t string) bool {
		return !slices.Contains([]string{"string", "number", "integer", "boolean", "object", "array", "null"}, t)
	})
	if len(types) == 0 && given["type"] == nil {
		switch {
		case given["properties"] != nil:
			types = []string{"object"}
		case given["items"] != nil:
			types = []string{"array"}
		}
	}
	if (truth(given["nullable"]) || truth(given["x-nullable"])) && len(types) > 0 && !slices.Contains(types, "null") {
		types = append(types, "null")
	}
	switch {
	case len(types) == 1:
		out["type"] = types[0]
	case len(types) > 1:
		out["type"] = types
	}
	return types
}

// mayBe reports whether a value is of a type, or of one of several. Documents give the numbers of texts, and texts for numbers; then only the
// server knows which it takes.
func mayBe(v, types any) bool {
	var is []string
	switch v.(type) {
	case string:
		is = []string{"string"}
	case json.Number:
		is = []string{"number", "integer"}
	case bool:
		is = []string{"boolean"}
	default:
		return true
	}
	switch types := types.(type) {
	case string:
		return slices.Contains(is, types)
	case []string:
		return slices.ContainsFunc(types, func(t string) bool { return slices.Contains(is, t) })
	}
	return true
}

// enumWork is for a value of an enumeration, which is looked at several times.
const enumWork = 4

// values adds what a value may be: an enumeration, bounds, a default.
func (c *converter) values(given, out map[string]any) {
	if enum := list(given["enum"]); len(enum) > 0 && c.spend(enumWork*len(enum)) {
		var kept []any
		for _, v := range enum {
			if small(v) {
				kept = append(kept, v)
			}
		}
		if null := slices.Contains(kept, nil); truth(given["nullable"]) && !null {
			kept = append(kept, nil)
		}
		kept = distinct(kept)
		if len(kept) <= c.enum && len(kept) >= len(distinct(enum)) && slices.ContainsFunc(kept, func(v any) bool { return mayBe(v, out["type"]) }) {
			out["enum"] = kept
		} else {
			c.less = true
			if c.text > 0 && len(kept) > 0 {
				text, _ := out["description"].(string)
				out["description"] = prose(strings.TrimSpace(text+" One of "+valuesText(kept)), c.text+60)
			}
		}
	}
	if v, is := given["const"]; is && small(v) {
		out["const"] = v
	}
	if v, is := given["default"]; is && v != nil && small(v) && c.text > 0 {
		out["default"] = v
	}
	for _, bound := range []string{"minimum", "maximum"} {
		n, is := given[bound].(json.Number)
		if !is || len(n) > 30 {
			continue
		}
		exclusive := "exclusiveM" + bound[1:]
		if truth(given[exclusive]) {
			out[exclusive] = n
		} else {
			out[bound] = n
		}
	}
}

func valuesText(values []any) string {
	var texts []string
	for _, v := range values[:min(len(values), 12)] {
		texts = append(texts, str(v))
	}
	return strings.Join(texts, ", ")
}

// small reports whether a value can be in a schema: short, visible, and no list or object.
func small(v any) bool {
	switch v := v.(type) {
	case nil, bool:
		return true
	case string:
		return len(v) <= 100 && printable.NextUnseen(v) < 0
	case json.Number:
		return len(v) <= 30
	default:
		return false
	}
}

func distinct(values []any) (all []any) {
	seen := map[any]bool{}
	for _, v := range values {
		if small(v) && !seen[v] {
			seen[v] = true
			all = append(all, v)
		}
		if len(all) == 200 {
			break
		}
	}
	return all
}

// properties adds the properties of an object, required ones first while there is room.
func (c *converter) properties(given, props, out map[string]any, depth int) {
	if !c.spend(len(props) + len(list(given["required"]))) {
		c.less = true
		return
	}
	var required []any
	needed := map[string]bool{}
	for _, name := range list(given["required"]) {
		if s, is := name.(string); is && props[s] != nil && !needed[s] {
			needed[s] = true
		}
	}
	made := map[string]any{}
	rest := 0
	names := c.keys(props, 2000)
	for _, first := range []bool{true, false} {
		for _, name := range names {
			if needed[name] != first {
				continue
			}
			if p, ok := c.resolve(props[name]); ok && truth(p["readOnly"]) {
				continue // a request has none
			}
			if !visible(name) || !first && rest == c.optional || c.left <= 0 {
				c.less = true
				continue
			}
			if first {
				required = append(required, name)
			} else {
				rest++
			}
			made[name] = c.schema(props[name], depth+1)
		}
	}
	if len(made) > 0 {
		out["properties"] = made
	}
	if len(required) > 0 {
		out["required"] = required
	}
	if more := object(given["additionalProperties"]); len(more) > 0 {
		if s := c.schema(more, depth+1); len(s) > 0 {
			out["additionalProperties"] = s
		}
	}
}

// shallow is the schema of a list's items where there is no room for more than their type.
func (c *converter) shallow(v any) map[string]any {
	given, ok := c.resolve(v)
	if !ok {
		return nil
	}
	out := map[string]any{}
	if c.types(given, out); len(out) == 0 {
		return nil
	}
	return out
}

// combined adds the schemas that allOf, oneOf and anyOf combine. oneOf becomes anyOf: that two variants fit is no reason to refuse an input.
func (c *converter) combined(given, out map[string]any, depth int) {
	for i, part := range list(given["allOf"]) {
		if i == 20 {
			c.less = true
			break
		}
		c.merge(out, c.schema(part, depth))
	}
	variants := slices.Concat(list(given["oneOf"]), list(given["anyOf"]))
	if len(variants) == 0 || !c.spend(len(variants)) {
		return
	}
	const most = 8
	var alternatives []any
	for _, v := range variants {
		s := c.schema(v, depth+1)
		if len(s) == 0 || len(alternatives) == most {
			c.less = true
			return // something is allowed that is not described
		}
		alternatives = append(alternatives, s)
	}
	if len(alternatives) == 1 {
		c.merge(out, object(alternatives[0]))
		return
	}
	out["anyOf"] = alternatives
}

// merge adds a part of allOf.
func (c *converter) merge(out, part map[string]any) {
	for _, key := range slices.Sorted(maps.Keys(part)) {
		switch key {
		case "properties":
			props := object(out["properties"])
			if props == nil {
				props = map[string]any{}
				out["properties"] = props
			}
			for name, s := range object(part["properties"]) {
				if _, own := props[name]; !own {
					props[name] = s
				}
			}
		case "required":
			all := list(out["required"])
			for _, name := range list(part["required"]) {
				if !slices.Contains(all, name) {
					all = append(all, name)
				}
			}
			out["required"] = all
		default:
			if _, own := out[key]; !own {
				out[key] = part[key]
			}
		}
	}
}

// visible reports whether a name can be a property: short, and all of it seen.
func visible(name string) bool {
	return name != "" && len(name) <= 100 && printable.NextUnseen(name) < 0 && name != "__proto__"
}
