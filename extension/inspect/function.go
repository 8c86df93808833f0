package inspect

import (
	"strings"

	"github.com/stilehost/stile/internal/jslex"
)

// function is an exported function as written.
type function struct {
	export
	module     *module
	parameters []parameter
	result     *typ // nil if none is written, or if it cannot be read
}

type parameter struct {
	name     string // empty for a pattern such as {a, b}
	at       int
	typ      *typ // nil if none is written and none follows from the default
	optional bool
	rest     bool
	value    any // the default, if it is a literal
}

// function reads an exported function. It returns nil without a problem if the export is not a function.
func (p *parser) function(e export) *function {
	f := &function{export: e, module: p.module}
	p.problem, p.depth = nil, 0
	isArrow := false
	if e.constant >= 0 {
		p.i = e.constant + 1
		if p.is(p.i, ":") {
			p.fail(p.i, "the type of "+quote(e.name)+" is separate from its parameters", "the types at the parameters: "+fixFunction)
			return nil
		}
		p.expect("=")
		p.accept("async")
		if isArrow = !p.is(p.i, "function"); isArrow && !p.arrow(e.name) {
			return nil
		}
	} else {
		p.i = e.function
		if again := p.functions[p.at(e.function+1)]; len(again) > 1 {
			p.fail(again[1], quote(e.name)+" is declared more than once, and a tool has one input", "one declaration, with unions where its types differ")
		}
	}
	if !isArrow {
		p.expect("function")
		if p.is(p.i, "*") {
			p.fail(p.i, quote(e.name)+" is a generator, and a tool returns one value", "a function that returns a list")
		}
		if p.isName(p.i) {
			p.i++
		}
	}
	if p.is(p.i, "<") {
		p.fail(p.i, "a tool has no type parameters, since its callers are no TypeScript", "the types that "+quote(e.name)+" is called with")
	}
	f.parameters = p.parameters()
	if p.accept(":") {
		// The Promise around a result can be dropped.
		r := *p
		result := r.parseType()
		if p.nodes = r.nodes; r.problem != nil {
			return f
		}
		f.result, p.i = result, r.i
	}
	if isArrow {
		p.expect("=>")
	} else {
		p.expect("{")
	}
	return f
}

// arrow reports whether the parameters of an arrow function come next. Otherwise there is a problem, or no function.
func (p *parser) arrow(name string) bool {
	next := p.next(p.i)
	switch {
	case p.is(p.i, "(") && (p.is(next, "=>") || p.is(next, ":")), p.is(p.i, "<"):
		return true
	case p.isName(p.i) && p.is(p.i+1, "=>"):
		p.fail(p.i, quote(p.at(p.i))+noType, p.at(p.i)+": Type, in parentheses")
		return false
	case p.is(p.i, "new"):
		return false
	case p.is(p.i, "-"):
		next++
	case !p.isValue(p.i):
		next = -1
	}
	if next < 0 || !p.newline(next) && !strings.Contains("; as satisfies + - * / %", p.at(next)) {
		p.fail(p.i, "it is unclear whether "+quote(name)+" is a function", fixFunction+", or no export")
	}
	return false
}

// isValue reports whether a value other than a function begins at token i.
func (p *parser) isValue(i int) bool {
	switch {
	case p.isName(i):
		return p.is(i, "true") || p.is(i, "false") || p.is(i, "null") || p.is(i, "undefined")
	case p.kindOf(i, jslex.Mark):
		return p.is(i, "{") || p.is(i, "[")
	default:
		return i < len(p.tokens)
	}
}

// parameters reads a list of parameters in parentheses.
func (p *parser) parameters() []parameter {
	var list []parameter
	if p.problem != nil || !p.is(p.i, "(") {
		p.expect("(")
		return nil
	}
	end := p.match(p.i)
	for p.i++; p.problem == nil && p.i < end; {
		list = append(list, p.parameter(end))
		if p.problem == nil && p.i < end {
			p.expect(",")
		}
	}
	p.expect(")")
	return list
}

func (p *parser) parameter(end int) parameter {
	v := parameter{at: p.i, rest: p.accept("...")}
	switch {
	case p.is(p.i, "{") || p.is(p.i, "["):
		p.i = p.match(p.i) + 1
	case p.isName(p.i) && !p.is(p.i, "this") && p.at(p.i)[0] != '#':
		v.name = p.at(p.i)
		p.i++
	default:
		p.fail(p.i, "this cannot be read as a parameter", "name: Type")
		return v
	}
	v.optional = p.accept("?")
	if p.accept(":") {
		if v.name == envName && p.is(p.i, "{") {
			v.typ = p.other(p.i, envName) // it describes what the host provides, not the input
			p.i = p.match(p.i) + 1
		} else {
			v.typ = p.parseType()
		}
	}
	if p.accept("=") {
		v.optional = true
		p.defaultValue(&v, end)
	}
	return v
}

// envName is the name of the parameter that gets the bindings of a call.
const envName = "env"

// defaultValue passes over the default of a parameter, and keeps it if it is a literal.
func (p *parser) defaultValue(v *parameter, end int) {
	at := p.i
	for ; p.i < end && !p.is(p.i, ","); p.i = p.next(p.i) {
		if p.is(p.i, "<") {
			p.fail(p.i, "a default with a < in it, which may be a comparison or the start of a type", "a simple value")
			return
		}
	}
	if p.i == at {
		p.fail(at, "the default is missing", "a value")
		return
	}
	name := ""
	value, isText := p.value(at)
	switch one := p.i == at+1; {
	case one && isText:
		v.value, name = value, "string"
	case one && (p.is(at, "true") || p.is(at, "false")):
		v.value, name = p.is(at, "true"), "boolean"
	case one && p.kindOf(at, jslex.Number), p.i == at+2 && p.is(at, "-") && p.kindOf(at+1, jslex.Number):
		if n, ok := numberValue(p.at(p.i - 1)); ok {
			if p.is(at, "-") {
				n = -n
			}
			v.value, name = n, "number"
		}
	}
	if v.typ == nil && name != "" {
		v.typ = p.node(named, at)
		v.typ.name = name
	}
}
