package inspect

import (
	"fmt"
	"slices"

	"github.com/stilehost/stile/internal/printable"
)

// shape has the properties of an object, collected from all the types that name them.
type shape struct {
	members []member
	index   *typ
}

// object converts a type that has properties.
func (c *converter) object(t *typ) *schema {
	o := c.shape(t)
	s := &schema{types: []string{"object"}, isObject: true, closed: c.input}
	if c.problem == nil && len(o.members) == 0 && o.index == nil {
		return c.fail(t, "a type without properties accepts everything", "the properties, or Record<string, Type>")
	}
	seen := map[string]bool{}
	for _, m := range o.members {
		if c.problem != nil {
			return s
		}
		at := &typ{module: m.typ.module, at: m.at}
		if seen[m.name] {
			return c.fail(at, "the property "+quote(m.name)+" is here twice", "it once")
		}
		seen[m.name] = true
		if why := nameProblem(m.name); why != "" {
			return c.fail(at, "the property "+quote(m.name)+" "+why, "another name")
		}
		part := c.within(m.typ)
		optional := m.optional || part.undefined
		part.undefined = false
		doc := m.typ.module.doc(m.doc)
		if doc.problem != nil {
			return c.failed(doc.problem)
		}
		if !c.files.work(len(m.name) + int(m.doc.end-m.doc.start)) {
			return c.fail(at, tooMuchWork, fixWork)
		}
		if doc.text != "" {
			part.description = doc.text
		}
		s.properties = append(s.properties, property{m.name, part, !optional})
	}
	if o.index != nil {
		s.additional = c.within(o.index)
		s.additional.undefined = false
	}
	return s
}

// nameProblem says why no property can have a name. It is empty if one can.
func nameProblem(name string) string {
	r, found := printable.Unclear(name)
	switch {
	case found:
		return fmt.Sprintf("has the invisible character %+q", r)
	case mixed(name):
		return "has letters of several scripts that look alike"
	case name == "__proto__":
		return "means something else in JavaScript"
	case len(name) > 256:
		return "is longer than 256 bytes"
	default:
		return ""
	}
}

// shape finds the properties of a type.
func (c *converter) shape(t *typ) shape {
	c.depth++
	defer func() { c.depth-- }()
	if c.count++; c.count > maxSubschemas || c.depth > maxExpansion {
		c.fail(t, "types made of too many others, or of themselves", "a simpler type")
	}
	if c.problem != nil {
		return shape{}
	}
	switch t.kind {
	case object:
		own := shape{t.members, t.index}
		if len(own.members) > maxSubschemas {
			c.fail(t, "an object of more than 1,000 properties", "a simpler type")
			return shape{}
		}
		if len(t.parts) == 0 {
			return own
		}
		return c.extended(t, own)
	case intersection:
		all := shape{}
		for _, part := range t.parts {
			c.join(&all, c.shape(part), part)
		}
		return all
	case named:
		return c.namedShape(t)
	default:
		c.fail(t, "this is not the type of an object", "an interface or { name: Type }")
		return shape{}
	}
}

// extended adds the properties of extended types to those of an interface. If both have a name, the interface's property wins.
func (c *converter) extended(t *typ, own shape) shape {
	all, names := shape{index: own.index}, namesOf(own.members)
	for _, parent := range t.parts {
		inherited := c.shape(parent)
		inherited.members = slices.DeleteFunc(slices.Clone(inherited.members), func(m member) bool { return names[m.name] })
		if own.index != nil {
			inherited.index = nil
		}
		c.join(&all, inherited, parent)
	}
	all.members = append(all.members, own.members...)
	return all
}

func namesOf(members []member) map[string]bool {
	names := make(map[string]bool, len(members))
	for _, m := range members {
		names[m.name] = true
	}
	return names
}

// join adds the properties of part to all.
func (c *converter) join(all *shape, part shape, t *typ) {
	if len(all.members)+len(part.members) > maxSubschemas {
		c.fail(t, "an object of more than 1,000 properties", "a simpler type")
		return
	}
	if !c.files.work(len(all.members) + len(part.members)) {
		c.fail(t, tooMuchWork, fixWork)
		return
	}
	names := namesOf(all.members)
	for _, m := range part.members {
		if names[m.name] {
			c.fail(t, "the property "+quote(m.name)+" comes from two types", "it in one of them")
			return
		}
	}
	if part.index != nil && all.index != nil {
		c.fail(t, "properties of any name come from two types", "them in one of them")
		return
	}
	all.members = append(all.members, part.members...)
	if part.index != nil {
		all.index = part.index
	}
}

func (c *converter) namedShape(t *typ) shape {
	if d := c.declaration(t, t.name); d != nil {
		if d.kind == "enum" {
			c.fail(t, "this is not the type of an object", "an interface or { name: Type }")
			return shape{}
		}
		declared, problem := c.files.declared(d)
		if problem != nil {
			c.failed(problem)
			return shape{}
		}
		return c.shape(declared)
	}
	two := len(t.parts) == 2
	switch {
	case t.name == "Record" && two:
		if k := t.parts[0]; k.kind == named && k.name == "string" {
			return shape{index: t.parts[1]}
		}
		o := shape{}
		for _, name := range c.keys(t.parts[0]) {
			o.members = append(o.members, member{name: name, at: t.at, typ: t.parts[1]})
		}
		return o
	case (t.name == "Pick" || t.name == "Omit") && two:
		return c.picked(t)
	case (t.name == "Partial" || t.name == "Readonly") && len(t.parts) == 1:
		o := c.shape(t.parts[0])
		if !c.files.work(len(o.members)) {
			c.fail(t, tooMuchWork, fixWork)
		}
		o.members = slices.Clone(o.members)
		for i := range o.members {
			o.members[i].optional = o.members[i].optional || t.name == "Partial"
		}
		return o
	}
	if c.problem == nil {
		c.fail(t, quote(t.name)+" is not the type of an object that can be read here", "an interface or { name: Type }")
	}
	return shape{}
}

// picked returns some properties of another type, or all but some.
func (c *converter) picked(t *typ) shape {
	o, picked := c.shape(t.parts[0]), map[string]bool{}
	names := namesOf(o.members)
	for _, key := range c.keys(t.parts[1]) {
		picked[key] = true
		if !names[key] && c.problem == nil {
			c.fail(t, "there is no property "+quote(key), "one that the type has")
		}
	}
	if o.index != nil {
		c.fail(t, t.name+" of a type whose properties have any name", "a type without an index")
	}
	return shape{members: slices.DeleteFunc(slices.Clone(o.members), func(m member) bool {
		return picked[m.name] == (t.name == "Omit")
	})}
}

// keys are the strings of a type of literals.
func (c *converter) keys(t *typ) []string {
	s := c.convert(t)
	var keys []string
	for _, v := range s.values {
		if key, ok := v.(string); ok {
			keys = append(keys, key)
		}
	}
	if c.problem == nil && (len(keys) == 0 || len(keys) < len(s.values) || s.undefined) {
		c.fail(t, "these are not names of properties", `strings, like "a" | "b"`)
	}
	return keys
}
