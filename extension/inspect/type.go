package inspect

import (
	"strings"

	"github.com/stilehost/stile/extension"
	"github.com/stilehost/stile/internal/jslex"
)

// typeKind is the form of a type.
type typeKind uint8

const (
	named        typeKind = iota // a name, perhaps with type arguments
	literal                      // one value
	union                        // of parts
	intersection                 // of parts
	array                        // of its only part
	tuple                        // of parts
	object                       // with members
	other                        // a type without JSON values, or one that this package does not understand
)

// typ is a type as it is written.
type typ struct {
	module *module
	kind   typeKind
	at     int    // its first token
	name   string // of named, e.g. "Color.Red"; for other, a description
	value  any    // of literal: string or float64
	parts  []*typ // also type arguments
	// members are the members of an object or tuple, in order. Those of a tuple have no names.
	members []member
	index   *typ // the type of properties of any name
}

// member is a property of an object or an element of a tuple.
type member struct {
	name     string
	at       int
	typ      *typ
	optional bool
	rest     bool
	doc      span
}

const (
	maxTypeDepth = 64
	// maxTypeNodes bounds the types read from one file.
	maxTypeNodes = 50_000
)

// parser reads types and parameter lists. It stops at the first token that does not fit, which is its problem.
type parser struct {
	*module
	i       int
	depth   int
	nodes   int
	problem *extension.Problem
}

func (p *parser) fail(i int, text, fix string) {
	if p.problem == nil {
		p.problem = p.problemAt(i, text, fix)
	}
}

// accept skips this word or punctuation if it comes next.
func (p *parser) accept(text string) bool {
	if p.problem != nil || !p.is(p.i, text) {
		return false
	}
	p.i++
	return true
}

func (p *parser) expect(text string) {
	if p.problem == nil && !p.accept(text) {
		p.fail(p.i, "this cannot be read as TypeScript that schemas are made of", quote(text)+" here")
	}
}

func (p *parser) node(k typeKind, at int) *typ { return &typ{module: p.module, kind: k, at: at} }

func (p *parser) other(at int, what string) *typ {
	t := p.node(other, at)
	t.name = what
	return t
}

const fixType = "a type of string, number, boolean, null, literals, lists, objects and unions of those"

// parseType reads a type with all its operators.
func (p *parser) parseType() *typ {
	at := p.i
	p.depth++
	p.nodes++
	defer func() { p.depth-- }()
	if p.depth > maxTypeDepth {
		p.fail(at, "a type nested deeper than 64 levels", "a simpler type")
	} else if p.nodes > maxTypeNodes {
		p.fail(at, "a file with more than 50,000 types", "simpler types")
	}
	if p.problem != nil {
		return p.other(at, "")
	}
	if t := p.functionType(); t != nil {
		return t
	}
	t := p.parts(union, "|", func() *typ { return p.parts(intersection, "&", p.postfix) })
	if p.is(p.i, "extends") && !p.newline(p.i) {
		p.i++
		p.parseType()
		p.expect("?")
		p.parseType()
		p.expect(":")
		p.parseType()
		return p.other(at, "a conditional type")
	}
	return t
}

// parts reads types with an operator between them, and perhaps before the first.
func (p *parser) parts(k typeKind, separator string, one func() *typ) *typ {
	t := p.node(k, p.i)
	leading := p.accept(separator)
	t.parts = append(t.parts, one())
	for p.accept(separator) {
		t.parts = append(t.parts, one())
	}
	if len(t.parts) == 1 && !leading {
		return t.parts[0]
	}
	return t
}

// functionType reads the type of a function, if one begins here.
func (p *parser) functionType() *typ {
	at := p.i
	open := at
	if p.is(open, "abstract") && p.is(open+1, "new") {
		open++
	}
	isNew := p.is(open, "new")
	if isNew {
		open++
	}
	switch {
	case p.is(open, "<"):
		p.fail(open, "a function with type parameters", fixType)
		return p.other(at, "a function")
	case !p.is(open, "(") || !p.is(p.match(open)+1, "=>"):
		return nil
	}
	p.i = p.match(open) + 2
	p.parseType()
	return p.other(at, "a function")
}

// prefixes are words before a type that make a different type.
var prefixes = set("keyof unique infer asserts")

// postfix reads a type and the brackets after it.
func (p *parser) postfix() *typ {
	at := p.i
	for p.accept("readonly") {
	}
	made := ""
	for p.isName(p.i) && prefixes[p.at(p.i)] && (p.isName(p.i+1) || p.is(p.i+1, "(") || p.is(p.i+1, "{") || p.is(p.i+1, "[")) {
		made = p.at(p.i)
		p.i++
	}
	t := p.primary()
	for p.problem == nil && p.is(p.i, "[") && !p.newline(p.i) {
		p.nodes++
		if p.is(p.i+1, "]") {
			element := t
			t = p.node(array, at)
			t.parts = []*typ{element}
		} else {
			t = p.other(at, "a type taken from another by index")
		}
		p.i = p.match(p.i) + 1
	}
	if made != "" {
		return p.other(at, "a type made with "+made)
	}
	return t
}

func (p *parser) primary() *typ {
	at := p.i
	switch {
	case p.accept("("):
		t := p.parseType()
		p.expect(")")
		return t
	case p.is(at, "{"):
		return p.objectType()
	case p.is(at, "["):
		return p.tupleType()
	case p.accept("typeof"):
		if p.is(p.i, "import") || !p.isName(p.i) {
			p.fail(at, "a type that is taken from a value", fixType)
		}
		p.qualified()
		return p.other(at, "a type that is taken from a value")
	case p.is(at, "import"), p.is(at, "new"):
		p.fail(at, "a type that cannot be read here", fixType)
		return p.other(at, "")
	case p.isName(at):
		t := p.node(named, at)
		t.name = p.qualified()
		if p.is(p.i, "<") && !p.newline(p.i) {
			t.parts = p.typeArguments()
		}
		if p.is(p.i, "is") && !p.newline(p.i) {
			p.fail(p.i, "a type that is a statement about a parameter", "boolean")
		}
		return t
	case p.kindOf(at, jslex.String), p.kindOf(at, jslex.Template) && !p.opens(at):
		t := p.node(literal, at)
		value, ok := p.value(at)
		if !ok {
			p.fail(at, "a string that is not Unicode text", "a string without such escapes")
		}
		t.value = value
		p.i++
		return t
	case p.kindOf(at, jslex.Template):
		p.i = p.next(at)
		return p.other(at, "a template literal type")
	case p.kindOf(at, jslex.Number), p.is(at, "-") && p.kindOf(at+1, jslex.Number):
		t := p.node(literal, at)
		p.accept("-")
		n, ok := numberValue(p.at(p.i))
		if !ok {
			p.fail(p.i, "a number that JSON does not have", "a decimal number")
		}
		if p.i > at {
			n = -n
		}
		t.value = n
		p.i++
		return t
	}
	p.fail(at, "this cannot be read as a type", fixType)
	return p.other(at, "")
}

// qualified reads a name with dots.
func (p *parser) qualified() string {
	var name strings.Builder
	name.WriteString(p.at(p.i))
	for p.i++; p.is(p.i, ".") && p.isName(p.i+1); p.i += 2 {
		name.WriteString("." + p.at(p.i+1))
	}
	return name.String()
}

// typeArguments reads <A, B>. Each > is a token, so that >> ends two lists.
func (p *parser) typeArguments() []*typ {
	p.expect("<")
	list := []*typ{p.parseType()}
	for p.accept(",") {
		list = append(list, p.parseType())
	}
	p.expect(">")
	return list
}

func (p *parser) tupleType() *typ {
	t := p.node(tuple, p.i)
	end := p.match(p.i)
	for p.i++; p.problem == nil && p.i < end; {
		m := member{at: p.i, rest: p.accept("...")}
		if p.isName(p.i) && (p.is(p.i+1, ":") || p.is(p.i+1, "?") && p.is(p.i+2, ":")) {
			p.i++
			m.optional = p.accept("?")
			p.expect(":")
		}
		m.typ = p.parseType()
		m.optional = p.accept("?") || m.optional
		t.members = append(t.members, m)
		if p.i < end {
			p.expect(",")
		}
	}
	p.expect("]")
	return t
}

// objectType reads { a: A; b?: B; [name: string]: C }, also as the body of an interface.
func (p *parser) objectType() *typ {
	t := p.node(object, p.i)
	end := p.match(p.i)
	for p.i++; p.problem == nil && p.i < end; {
		p.member(t)
		if p.problem == nil && !p.accept(";") && !p.accept(",") && p.i < end && !p.newline(p.i) {
			p.fail(p.i, "this cannot be read as a part of an object's type", `";" between properties`)
		}
	}
	if p.problem == nil {
		p.i = end
	}
	p.expect("}")
	return t
}

// member reads one property, index or method.
func (p *parser) member(t *typ) {
	m := member{at: p.i, doc: p.docs[p.i]}
	key := func(i int) bool {
		return p.isName(i) || p.kindOf(i, jslex.String) || p.kindOf(i, jslex.Number) || p.is(i, "[")
	}
	if p.is(p.i, "readonly") && key(p.i+1) && !p.newline(p.i+1) {
		p.i++
	}
	if (p.is(p.i, "get") || p.is(p.i, "set")) && key(p.i+1) {
		p.fail(p.i, "an accessor in a type", "a property")
		return
	}
	if p.is(p.i, "[") {
		p.indexMember(t)
		return
	}
	name, ok := p.value(p.i)
	switch {
	case p.isName(p.i):
		name, ok = p.at(p.i), true
	case p.kindOf(p.i, jslex.Number):
		var n float64
		if n, ok = numberValue(p.at(p.i)); ok {
			name = jsonText(n)
		}
	case p.kindOf(p.i, jslex.Template):
		ok = false
	}
	if !ok {
		p.fail(p.i, "this cannot be read as a part of an object's type", "name: Type")
		return
	}
	m.name = name
	p.i++
	m.optional = p.accept("?")
	switch {
	case p.accept(":"):
		m.typ = p.parseType()
	case p.is(p.i, "("), p.is(p.i, "<"):
		p.fail(m.at, quote(name)+" is a method, and JSON has none", "a property with a value")
	default:
		p.fail(p.i, quote(name)+noType, quote(name)+": Type")
	}
	t.members = append(t.members, m)
}

// indexMember reads [name: string]: Type.
func (p *parser) indexMember(t *typ) {
	at := p.i
	p.i++
	if !p.isName(p.i) || !p.is(p.i+1, ":") || !p.is(p.i+2, "string") || !p.is(p.i+3, "]") || !p.is(p.i+4, ":") || t.index != nil {
		p.fail(at, "properties whose names are computed", "[name: string]: Type, or Record<string, Type>")
		return
	}
	p.i += 5
	t.index = p.parseType()
}
