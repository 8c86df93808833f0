package inspect

import (
	"fmt"
	"slices"
	"strings"

	"github.com/stilehost/stile/extension"
	"github.com/stilehost/stile/internal/jslex"
)

const (
	// maxSubschemas keeps a schema well within what the host compiles, and bounds types that double at each step.
	maxSubschemas = 1000
	// maxExpansion is how deep types refer to types.
	maxExpansion = 128
)

// converter makes one schema from types.
type converter struct {
	files *files
	// input is set for values that are passed to a function. Such an object may not have properties beyond its type, as in
	// TypeScript's rule for literals. A result may have more.
	input bool

	count     int
	depth     int
	stack     []*declaration // being expanded
	direct    int            // index from which the elements of stack are for the same value
	recursive map[*declaration]string
	names     map[string]int // of definitions, and by how many declarations each was wanted
	defs      []property
	problem   *extension.Problem
}

func (c *converter) fail(t *typ, text, fix string) *schema {
	if c.problem == nil {
		c.problem = t.module.problemAt(t.at, text, fix)
	}
	return &schema{}
}

// convert makes the schema of a type.
func (c *converter) convert(t *typ) *schema {
	c.count++
	c.depth++
	defer func() { c.depth-- }()
	switch {
	case c.problem != nil:
		return &schema{}
	case !c.files.work(1):
		return c.fail(t, tooMuchWork, fixWork)
	case c.count > maxSubschemas:
		return c.fail(t, "with this type the schema of the tool has more than 1,000 parts", "a simpler type")
	case c.depth > maxExpansion:
		return c.fail(t, "types that refer to one another deeper than 128 levels", "a simpler type")
	}
	switch t.kind {
	case named:
		return c.named(t)
	case literal:
		return c.literal(t, t.value)
	case union:
		return c.union(t)
	case array:
		return &schema{types: []string{"array"}, items: c.element(t.parts[0])}
	case tuple:
		return c.tuple(t)
	case object, intersection:
		return c.object(t)
	default:
		return c.fail(t, "JSON has no values of this type: it is "+t.name, fixType)
	}
}

const (
	tooMuchWork = "the schemas of all tools together are made from too much: types with many values, or long texts, that are used in many places"
	fixWork     = "smaller types, or used in fewer places"
)

func (c *converter) literal(t *typ, values ...any) *schema {
	for _, v := range values {
		text, ok := v.(string)
		if !c.files.work(1 + len(text)) {
			return c.fail(t, tooMuchWork, fixWork)
		}
		if ok {
			if _, r, found := unseen(text); found {
				return c.fail(t, fmt.Sprintf("the string has the invisible character %+q", r), "only visible characters")
			}
		}
	}
	return &schema{types: typesOf(values), values: values}
}

func (c *converter) union(t *typ) *schema {
	var list []*schema
	undefined := false
	for _, part := range t.parts {
		if part.kind == named && part.name == "undefined" {
			undefined = true
			continue
		}
		list = append(list, c.convert(part))
	}
	if len(list) == 0 {
		return c.fail(t, "JSON has no undefined", "null")
	}
	s := either(list)
	s.undefined = s.undefined || undefined
	return s
}

// within converts a part of the current value.
func (c *converter) within(t *typ) *schema {
	direct := c.direct
	c.direct = len(c.stack)
	defer func() { c.direct = direct }()
	return c.convert(t)
}

// element converts a type whose values cannot be absent.
func (c *converter) element(t *typ) *schema {
	s := c.within(t)
	if s.undefined {
		return c.fail(t, "JSON has no undefined here", "null")
	}
	return s
}

func (c *converter) tuple(t *typ) *schema {
	s := &schema{types: []string{"array"}}
	for i, m := range t.members {
		switch {
		case !m.rest:
			s.prefix = append(s.prefix, c.element(m.typ))
			if !m.optional {
				s.min = i + 1
			}
		case i < len(t.members)-1:
			return c.fail(t, "a list in the middle of a tuple", "the list at its end")
		default:
			s.items = c.listElement(m.typ)
		}
	}
	return s
}

// listElement is the schema of the elements of a list.
func (c *converter) listElement(t *typ) *schema {
	list := c.convert(t)
	if list.prefix != nil || list.items == nil || list.undefined {
		return c.fail(t, "this is not a list of any length", "Type[]")
	}
	return list.items
}

// named converts the name of a declared type, or of a type of the language.
func (c *converter) named(t *typ) *schema {
	name, memberName, isMember := strings.Cut(t.name, ".")
	d := c.declaration(t, name)
	switch {
	case c.problem != nil:
		return &schema{}
	case d == nil:
		return c.builtin(t)
	case isMember:
		return c.enumMember(t, d, memberName)
	case slices.Contains(c.stack[c.direct:], d):
		return c.fail(t, quote(t.name)+" refers directly to itself", "an object or a list between the two")
	}
	if c.recursive[d] == "" && slices.Contains(c.stack, d) {
		c.recursive[d] = c.defName(d)
	}
	if known := c.recursive[d]; known != "" {
		return &schema{ref: "#/$defs/" + known}
	}
	c.stack = append(c.stack, d)
	s := c.expand(t, d)
	c.stack = c.stack[:len(c.stack)-1]
	known := c.recursive[d]
	if known == "" || c.problem != nil {
		return s
	}
	if s.undefined {
		return c.fail(t, "a type that holds itself and may be undefined", "null in place of undefined")
	}
	c.defs = append(c.defs, property{name: known, schema: s})
	return &schema{ref: "#/$defs/" + known}
}

// expand converts the type behind a declaration.
func (c *converter) expand(t *typ, d *declaration) *schema {
	if d.kind == "enum" {
		e, problem := c.files.enum(d)
		if problem != nil {
			return c.failed(problem)
		}
		return c.literal(t, e.values...)
	}
	declared, problem := c.files.declared(d)
	if problem != nil {
		return c.failed(problem)
	}
	return c.convert(declared)
}

func (c *converter) failed(problem *extension.Problem) *schema {
	if c.problem == nil {
		c.problem = problem
	}
	return &schema{}
}

// defName is the declaration's name, with a number if the name is taken. Names have only letters and digits, because references
// would escape others.
func (c *converter) defName(d *declaration) string {
	plain := strings.Map(func(r rune) rune {
		if r < 0x80 && jslex.IsWord(byte(r)) && r != '$' {
			return r
		}
		return '_'
	}, d.name)
	name := plain
	for c.names[name] > 0 {
		c.names[plain]++
		name = fmt.Sprintf("%s%d", plain, c.names[plain])
	}
	c.names[name]++
	return name
}

func (c *converter) enumMember(t *typ, d *declaration, name string) *schema {
	if d.kind != "enum" {
		return c.fail(t, quote(t.name)+" is not a member of an enum", "the name of a type of this file, or one imported by name")
	}
	e, problem := c.files.enum(d)
	if problem != nil {
		return c.failed(problem)
	}
	if v, ok := e.byName[name]; ok {
		return c.literal(t, v)
	}
	return c.fail(t, fmt.Sprintf("the enum %s has no %s", quote(d.name), quote(name)), "one of its members")
}

// declaration finds the declaration of a name. It is nil for a name of the language and for an unknown name.
func (c *converter) declaration(t *typ, name string) *declaration {
	d, problem := c.files.lookup(t, name)
	if problem != nil {
		c.failed(problem)
		return nil
	}
	if d != nil && t.parts != nil {
		c.fail(t, quote(name)+" has type parameters", "a type without them")
	}
	return d
}

// instead says what to write instead of types that have no JSON values or are too vague.
var instead = map[string]string{
	"any": "the type of the values", "unknown": "the type of the values", "object": "Record<string, Type>", "Object": "Record<string, Type>",
	"Date":   "string, and new Date(value) in the function",
	"bigint": "string, and BigInt(value) in the function", "BigInt": "string, and BigInt(value) in the function",
	"Map": "Record<string, Type>", "WeakMap": "Record<string, Type>", "Set": "Type[]", "Iterable": "Type[]",
	"Uint8Array": "string, in base64", "ArrayBuffer": "string, in base64", "Blob": "string, in base64", "Buffer": "string, in base64",
	"URL": "string, and new URL(value) in the function", "RegExp": "string, and new RegExp(value) in the function",
	"String": "string", "Number": "number", "Boolean": "boolean", "undefined": "null", "void": "null", "never": "no parameter",
	"Function": "the values that it is called with", "symbol": "string", "Required": "an interface without ?",
	"Promise": "the type of its value",
}

// builtin converts a type of the language.
func (c *converter) builtin(t *typ) *schema {
	arguments := 0
	switch t.name {
	case "Array", "ReadonlyArray", "Partial", "Readonly":
		arguments = 1
	case "Record", "Pick", "Omit":
		arguments = 2
	}
	fix, known := instead[t.name]
	switch {
	case known:
		return c.fail(t, quote(t.name)+" does not say which JSON is accepted", fix)
	case len(t.parts) != arguments:
		return c.fail(t, fmt.Sprintf("%s takes %d type arguments", quote(t.name), arguments), fixType)
	}
	switch t.name {
	case "string", "number", "boolean", "null":
		return &schema{types: []string{t.name}}
	case "true", "false":
		return c.literal(t, t.name == "true")
	case "Array", "ReadonlyArray":
		return &schema{types: []string{"array"}, items: c.element(t.parts[0])}
	case "Partial", "Readonly", "Record", "Pick", "Omit":
		return c.object(t)
	default:
		return c.fail(t, quote(t.name)+" is not declared in this file, nor imported from another file of the extension", fixType)
	}
}
