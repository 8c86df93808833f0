package inspect

import (
	"strings"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/extension"
	"github.com/stilehost/stile/internal/jslex"
)

// module has the declarations and exports of a file, read from its tokens outside all brackets. There, `export` and `import` are
// always keywords, and what follows on the line distinguishes words before a declaration from names.
type module struct {
	*source
	// defaults are the tokens of the default exports.
	defaults []int
	exports  []export
	// refused are exports that cannot be classified.
	refused []extension.Problem

	types     map[string]*declaration
	imports   map[string]imported
	functions map[string][]int  // by name, the token `function` of each declaration
	constants map[string]int    // by name, the token of the name
	exported  map[string]string // exported names of types, with their names in the file
}

// export is a value that is exported under a name.
type export struct {
	name string
	at   int // the token where it is exported, which has its doc comment
	// Either function is the index of the token `function`, or constant is the index of a constant's name. The other is -1.
	function, constant int
}

// named returns the token of the declared name.
func (e export) named() int {
	if e.constant >= 0 {
		return e.constant
	}
	return e.function + 1
}

// declaration is a type that is declared in a file.
type declaration struct {
	module  *module
	name    string
	at      int // the token of its name
	kind    string
	generic bool
	again   bool // it is declared more than once
}

// imported is a name that stands for an export of another file.
type imported struct {
	name string // may be "default" or "*"
	from string
	at   int
}

// readModule reads tokens as a module.
func readModule(s *source) *module {
	m := &module{
		source: s, types: map[string]*declaration{}, imports: map[string]imported{}, functions: map[string][]int{},
		constants: map[string]int{}, exported: map[string]string{},
	}
	var lists []int
	isModule := false // and not CommonJS
	for i := 0; i < len(s.tokens); i = s.next(i) {
		if !s.isName(i) || s.member(i) {
			continue
		}
		switch s.at(i) {
		case "export":
			isModule = true
			if s.is(i+1, "{") {
				lists = append(lists, i)
			} else {
				m.export(i)
			}
		case "import":
			isModule = isModule || !s.is(i+1, "(")
			m.importClause(i)
		case "type", "interface", "enum", "class":
			m.declare(i)
		case "declare":
			// If a file adds types to those of other files, a declaration alone does not determine what a name means.
			name, isFile := s.value(i + 2)
			if s.is(i+1, "global") || s.is(i+1, "module") && isFile && name != "stile" {
				s.doubt("types that are added to others", s.offset(i))
			}
		case "function":
			if m.begins(i) {
				name := i + 1
				if s.is(name, "*") {
					name++
				}
				m.functions[s.at(name)] = append(m.functions[s.at(name)], i)
			}
		case "const":
			if s.isName(i + 1) {
				m.constants[s.at(i+1)] = i + 1
			}
		}
	}
	for _, i := range lists {
		m.exportList(i)
	}
	if !isModule {
		m.commonJS()
	}
	return m
}

// commonJS treats the first use of `exports` as a default export, as the bundler does.
func (m *module) commonJS() {
	for i := range m.tokens {
		if m.is(i, "exports") {
			m.defaults = append(m.defaults, i)
			return
		}
	}
}

// begins reports whether a declaration can begin at token i. A `function` in an expression does not begin one.
func (m *module) begins(i int) bool {
	if m.is(i-1, "async") {
		i--
	}
	switch before := m.at(i - 1); before {
	case "", ";", "}", "export", "default", "declare":
		return true
	default:
		return m.newline(i) && (!m.kindOf(i-1, jslex.Mark) || before == ")" || before == "]" || before == ">")
	}
}

// declare notes the type declared at token i, if there is one.
func (m *module) declare(i int) {
	name, after := i+1, m.at(i+2)
	if !m.isName(name) || m.newline(name) && m.at(i) != "class" && m.at(i) != "enum" {
		return
	}
	switch m.at(i) {
	case "type":
		if after != "=" && after != "<" {
			return
		}
	case "interface":
		if after != "{" && after != "<" && after != "extends" {
			return
		}
	case "class":
		if m.at(name) == "extends" || m.at(name) == "implements" {
			return
		}
	}
	d := &declaration{m, m.at(name), name, m.at(i), after == "<", m.types[m.at(name)] != nil}
	m.types[d.name] = d
	if m.is(i-1, "export") || (m.is(i-1, "declare") || m.is(i-1, "const")) && m.is(i-2, "export") {
		m.exported[d.name] = d.name
	}
}

func (m *module) refuse(i int, text, fix string) {
	if len(m.refused) < abi.MaxProblems {
		m.refused = append(m.refused, *m.problemAt(i, text, fix))
	}
}

const fixFunction = "export function name(parameter: Type): Result { ... }"

// export reads an export other than a list.
func (m *module) export(i int) {
	next := i + 1
	switch m.at(next) {
	case "default":
		m.defaults = append(m.defaults, i)
	case "type", "interface", "enum", "class", "abstract", "namespace", "module", "@":
		// None of these is a function.
	case "as":
		if !m.is(next+1, "namespace") {
			m.refuse(i, "it is unclear what this exports", fixFunction)
		}
	case "*":
		if m.is(next+1, "as") && m.is(next+2, "default") {
			m.defaults = append(m.defaults, i)
			return
		}
		m.refuse(i, "it is unclear from this file what this exports", "a function here that calls the one of the other file")
	case "=":
		m.refuse(i, "export = is not part of ES modules", fixFunction)
	case "declare":
		if n := m.at(next + 1); n == "function" || n == "const" || n == "let" || n == "var" {
			m.refuse(i, "this is declared but not defined", fixFunction)
		}
	case "async", "function":
		if m.is(next, "async") {
			next++
		}
		name := next + 1
		if m.is(name, "*") {
			name++
		}
		if !m.is(next, "function") || !m.isName(name) {
			m.refuse(i, "it is unclear what this exports", fixFunction)
			return
		}
		m.exports = append(m.exports, export{m.at(name), i, next, -1})
	case "const":
		if m.is(next+1, "enum") {
			return
		}
		if !m.isName(next + 1) {
			m.refuse(next+1, "it is unclear what this exports", fixFunction)
			return
		}
		m.exports = append(m.exports, export{m.at(next + 1), i, -1, next + 1})
		if other := m.another(next + 2); other > 0 {
			m.refuse(other, "a second constant in one export", "an export for each")
		}
	case "let", "var":
		m.refuse(next, "a variable that can change cannot be a tool", "export function, or export const")
	default:
		m.refuse(i, "it is unclear what this exports", fixFunction)
	}
}

// another finds a further constant in the declaration at token i. It returns 0 if there is none. It may wrongly find one among type
// arguments.
func (m *module) another(i int) int {
	for first := i; i < len(m.tokens) && !m.is(i, ";") && !m.is(i, "export"); i = m.next(i) {
		if i > first && m.newline(i) && !m.kindOf(i, jslex.Mark) && (!m.kindOf(i-1, jslex.Mark) || strings.Contains(")]}", m.at(i-1))) {
			return 0
		}
		if m.is(i, ",") && m.isName(i+1) && (m.is(i+2, "=") || m.is(i+2, ":")) {
			return i + 1
		}
	}
	return 0
}

// exportList reads export { a, b as c }, also with from, once all declarations are known.
func (m *module) exportList(i int) {
	end := m.match(i + 1)
	from := m.is(end+1, "from")
	for at := i + 2; at < end; at++ {
		isType := m.is(at, "type") && m.isName(at+1) && !m.is(at+1, "as")
		if isType {
			at++
		}
		local := at
		if m.is(at+1, "as") {
			at += 2
		}
		name, ok := m.value(at)
		if m.isName(at) {
			name, ok = m.at(at), true
		}
		at++
		if at < end && !m.is(at, ",") || at > end || !ok {
			m.refuse(local, "this list of exports cannot be read", fixFunction)
			return
		}
		m.exportName(local, name, isType, from)
	}
}

func (m *module) exportName(i int, name string, isType, from bool) {
	local := m.at(i)
	functions, constant := m.functions[local], m.constants[local]
	switch {
	case name == "default":
		m.defaults = append(m.defaults, i)
	case from && isType:
	case from:
		m.refuse(i, "it is unclear from this file what this exports", "a function here that calls the one of the other file")
	case isType:
		m.exported[name] = local
	case len(functions) > 0:
		at := functions[0]
		if m.is(at-1, "async") {
			at--
		}
		m.exports = append(m.exports, export{name, at, functions[0], -1})
	case constant > 0:
		m.exports = append(m.exports, export{name, constant - 1, -1, constant})
	case m.types[local] != nil:
		m.exported[name] = local
	default:
		m.refuse(i, "it is unclear from this file what "+quote(local)+" is", fixFunction)
	}
}

// importClause reads import a, { b, type c as d } from "file".
func (m *module) importClause(i int) {
	at := i + 1
	if m.is(at, "type") && !m.is(at+1, "from") && !m.is(at+1, ",") {
		at++
	}
	names := map[string]imported{}
	if m.isName(at) {
		names[m.at(at)] = imported{"default", "", at}
		at++
		if m.is(at, ",") {
			at++
		}
	}
	switch {
	case m.is(at, "*") && m.is(at+1, "as"):
		names[m.at(at+2)] = imported{"*", "", at + 2}
		at += 3
	case m.is(at, "{"):
		end := m.match(at)
		for at++; at < end; at++ {
			if m.is(at, "type") && m.isName(at+1) && !m.is(at+1, "as") {
				at++
			}
			name := m.at(at)
			if m.is(at+1, "as") {
				at += 2
			}
			names[m.at(at)] = imported{name, "", at}
			if at++; at < end && !m.is(at, ",") {
				return
			}
		}
		at = end + 1
	}
	from, ok := m.value(at + 1)
	if !m.is(at, "from") || !ok {
		return
	}
	for name, n := range names {
		n.from = from
		m.imports[name] = n
	}
}
