package inspect

import (
	"slices"
	"strings"

	"github.com/stilehost/stile/capability"
)

// schema is the part of JSON Schema that types can express.
type schema struct {
	ref         string
	types       []string
	values      []any // enum
	anyOf       []*schema
	properties  []property // of an object
	isObject    bool
	additional  *schema // nil: see closed
	closed      bool    // no other properties
	items       *schema // of an array; false when prefix is all there is
	prefix      []*schema
	min         int // of items
	description string
	value       any // default
	defs        []property

	// undefined is set if a property of this schema may be absent.
	undefined bool
}

type property struct {
	name     string
	schema   *schema
	required bool
}

// ordered is a JSON object whose members keep their order.
type ordered []pair

type pair struct {
	key   string
	value any
}

func (o *ordered) add(key string, value any) { *o = append(*o, pair{key, value}) }

// String is the JSON of an object. json.Marshal would read what each level of it returns.
func (o ordered) String() string {
	var b strings.Builder
	write(&b, o)
	return b.String()
}

func write(b *strings.Builder, v any) {
	switch v := v.(type) {
	case ordered:
		b.WriteByte('{')
		for i, p := range v {
			if i > 0 {
				b.WriteByte(',')
			}
			b.WriteString(jsonText(p.key) + ":")
			write(b, p.value)
		}
		b.WriteByte('}')
	case []ordered:
		b.WriteByte('[')
		for i, one := range v {
			if i > 0 {
				b.WriteByte(',')
			}
			write(b, one)
		}
		b.WriteByte(']')
	default:
		b.Write(capability.JSON(v))
	}
}

// jsonText returns the JSON of a value that has a JSON form.
func jsonText(v any) string { return string(capability.JSON(v)) }

// document returns the schema as JSON Schema.
func (s *schema) document() ordered {
	o := ordered{}
	if s.description != "" {
		o.add("description", s.description)
	}
	if s.ref != "" {
		o.add("$ref", s.ref)
	}
	switch len(s.types) {
	case 0:
	case 1:
		o.add("type", s.types[0])
	default:
		o.add("type", s.types)
	}
	if s.values != nil {
		o.add("enum", s.values)
	}
	if s.anyOf != nil {
		o.add("anyOf", documents(s.anyOf))
	}
	if s.isObject {
		s.objectDocument(&o)
	}
	if s.prefix != nil {
		o.add("prefixItems", documents(s.prefix))
	}
	if s.items != nil {
		o.add("items", s.items.document())
	} else if slices.Contains(s.types, "array") {
		o.add("items", false)
	}
	if s.min > 0 {
		o.add("minItems", s.min)
	}
	if s.value != nil {
		o.add("default", s.value)
	}
	if s.defs != nil {
		o.add("$defs", propertyDocuments(s.defs))
	}
	return o
}

func (s *schema) objectDocument(o *ordered) {
	var required []string
	for _, p := range s.properties {
		if p.required {
			required = append(required, p.name)
		}
	}
	if s.properties != nil || s.additional == nil {
		o.add("properties", propertyDocuments(s.properties))
	}
	if required != nil {
		o.add("required", required)
	}
	switch {
	case s.additional != nil:
		o.add("additionalProperties", s.additional.document())
	case s.closed:
		o.add("additionalProperties", false)
	}
}

func documents(list []*schema) []ordered {
	out := make([]ordered, len(list))
	for i, s := range list {
		out[i] = s.document()
	}
	return out
}

func propertyDocuments(list []property) ordered {
	o := ordered{}
	for _, p := range list {
		o.add(p.name, p.schema.document())
	}
	return o
}

// simple reports whether a schema only states the types of values.
func (s *schema) simple() bool {
	return s.types != nil && s.values == nil && !s.isObject && s.items == nil && s.prefix == nil && s.description == "" && !slices.Contains(s.types, "array")
}

// either returns the schema of values that match at least one of the given schemas.
func either(list []*schema) *schema {
	var types, values, rest []*schema
	all := &schema{}
	for _, s := range list {
		all.undefined = all.undefined || s.undefined
		switch {
		case s.simple():
			types = append(types, s)
		case s.values != nil:
			values = append(values, s)
		case s.anyOf != nil && s.description == "":
			rest = append(rest, s.anyOf...)
		default:
			rest = append(rest, s)
		}
	}
	if len(types) > 0 {
		one := &schema{}
		for _, s := range types {
			for _, t := range s.types {
				if !slices.Contains(one.types, t) {
					one.types = append(one.types, t)
				}
			}
		}
		rest = append([]*schema{one}, rest...)
	}
	if len(values) > 0 {
		one, seen := &schema{}, map[any]bool{}
		for _, s := range values {
			for _, v := range s.values {
				if !seen[v] {
					seen[v] = true
					one.values = append(one.values, v)
				}
			}
		}
		one.types = typesOf(one.values)
		rest = append([]*schema{one}, rest...)
	}
	if len(rest) == 1 {
		one := *rest[0]
		one.undefined = all.undefined
		return &one
	}
	all.anyOf = rest
	return all
}

// typesOf are the types of literals.
func typesOf(values []any) []string {
	var types []string
	for _, v := range values {
		t := "number"
		switch v.(type) {
		case string:
			t = "string"
		case bool:
			t = "boolean"
		}
		if !slices.Contains(types, t) {
			types = append(types, t)
		}
	}
	return types
}
