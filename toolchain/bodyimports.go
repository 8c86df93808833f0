package toolchain

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/stilehost/stile/internal/jslex"
	"github.com/stilehost/stile/internal/printable"
)

// packagesOf is where an image of [Toolchain.EvaluatorWith] keeps its packages.
const packagesOf = `globalThis[Symbol.for("stile.packages")]`

// packagesName is the name of the module with the packages, in stacks.
const packagesName = "packages.js"

// PackagesModule is the text of a module that imports modules of packages, for [Toolchain.EvaluatorWith].
func PackagesModule(imports []string) string {
	var b, all strings.Builder
	for i, name := range imports {
		fmt.Fprintf(&b, "import * as m%d from %s;\n", i, strconv.Quote(name))
		fmt.Fprintf(&all, "%s: m%d, ", strconv.Quote(name), i)
	}
	return b.String() + "Object.defineProperty(globalThis, Symbol.for(\"stile.packages\"), { value: Object.freeze({ " + all.String() + "}) });\n"
}

// maxModules is how many modules a body imports at most.
const maxModules = 100

// BodyImports reads the import statements with which a body may begin. It returns the body with constants in their place, whose lines
// keep their numbers, and the names of the modules, each once. An error is a *[BuildError].
func BodyImports(text string) (body string, modules []string, err error) {
	if len(text) > maxTransform {
		return text, nil, nil // nobody runs it
	}
	var b strings.Builder
	at := 0
	l := bodyLexer{jslex.New(text, false), text}
	word, t := l.next()
	for word == "import" {
		begin := int(t.Start)
		var clause []string
		var opened, closed bool
		for {
			if word, t = l.next(); word == "" || len(clause) == 0 && (word == "(" || word == ".") {
				return b.String() + text[at:], modules, nil // an expression, or not a whole statement
			}
			if t.Kind == jslex.String && (!opened || closed) {
				break
			}
			opened, closed = opened || word == "{", closed || word == "}"
			clause = append(clause, word)
		}
		name, ok := unquoted(word)
		if !ok {
			return "", nil, badImport(text, begin, "the name of the module cannot be read")
		}
		end := int(t.End)
		if word, t = l.next(); word == "with" && !t.Newline {
			return "", nil, badImport(text, begin, "code that is run once cannot import with attributes")
		}
		if word == ";" {
			end = int(t.End)
			word, t = l.next()
		}
		constants, used, ok := constantsOf(clause, name)
		if !ok {
			return "", nil, badImport(text, begin, "this import statement cannot be read")
		}
		b.WriteString(text[at:begin] + constants + strings.Repeat("\n", strings.Count(text[begin:end], "\n")))
		at = end
		if used && !slices.Contains(modules, name) {
			if len(modules) == maxModules {
				return "", nil, badImport(text, begin, fmt.Sprintf("code that is run once imports at most %d modules", maxModules))
			}
			modules = append(modules, name)
		}
	}
	return b.String() + text[at:], modules, nil
}

func badImport(text string, at int, problem string) error {
	line := strings.Count(text[:at], "\n") + 1
	return &BuildError{[]Problem{{File: "code.ts", Line: line, Column: at - strings.LastIndex(text[:at], "\n"), Text: problem}}}
}

type bodyLexer struct {
	*jslex.Lexer
	text string
}

// next returns the next token that is no comment. At the end, the word is empty.
func (l bodyLexer) next() (word string, t jslex.Token) {
	for {
		t, ok := l.Next()
		if !ok {
			return "", t
		}
		if t.Kind != jslex.Comment {
			return l.text[t.Start:t.End], t
		}
	}
}

// unquoted reads the name of a module, which has no escapes.
func unquoted(text string) (name string, ok bool) {
	name = text[1:max(1, len(text)-1)]
	return name, name != "" && !strings.ContainsAny(name, "\\\"'`\n") && printable.Line(name) == name
}

// constantsOf turns the clause of an import statement into declarations of constants. used is false for an import of types only. A name
// that the module lacks is undefined, because it may be that of a type.
func constantsOf(clause []string, name string) (constants string, used, ok bool) {
	module := packagesOf + "[" + strconv.Quote(name) + "]"
	if len(clause) == 0 {
		return ";", true, true
	}
	if clause[len(clause)-1] != "from" {
		return "", false, false
	}
	clause = clause[:len(clause)-1]
	if len(clause) > 1 && clause[0] == "type" && clause[1] != "," {
		return ";", false, true
	}
	var names []string
	var b strings.Builder
	for i := 0; i < len(clause); {
		switch {
		case clause[i] == "*" && i+3 == len(clause) && clause[i+1] == "as" && isName(clause[i+2]):
			fmt.Fprintf(&b, "const %s = %s; ", clause[i+2], module)
			i += 3
		case clause[i] == "{":
			end := slices.Index(clause[i:], "}") + i
			if end < i || end+1 != len(clause) {
				return "", false, false
			}
			for _, part := range splitClause(clause[i+1 : end]) {
				one, ok := nameOf(part)
				if !ok {
					return "", false, false
				}
				if one != "" {
					names = append(names, one)
				}
			}
			i = end + 1
		case i == 0 && isName(clause[0]) && (len(clause) == 1 || clause[1] == ","):
			names = append(names, "default: "+clause[0])
			i = min(2, len(clause))
		default:
			return "", false, false
		}
	}
	if len(names) > 0 {
		fmt.Fprintf(&b, "const { %s } = %s;", strings.Join(names, ", "), module)
	}
	return b.String(), true, true
}

func splitClause(words []string) (parts [][]string) {
	for len(words) > 0 {
		n := slices.Index(words, ",")
		if n < 0 {
			return append(parts, words)
		}
		parts, words = append(parts, words[:n]), words[n+1:]
	}
	return parts
}

// nameOf turns a, a as b or "a" as b into a part of a pattern. A type gives nothing.
func nameOf(part []string) (pattern string, ok bool) {
	switch {
	case len(part) >= 2 && part[0] == "type" && part[1] != "as", len(part) == 4 && part[0] == "type":
		return "", true
	case len(part) == 1 && isName(part[0]) && part[0] != "default":
		return part[0], true
	case len(part) == 3 && part[1] == "as" && isName(part[2]) && (isName(part[0]) || strings.HasPrefix(part[0], `"`) || strings.HasPrefix(part[0], "'")):
		return part[0] + ": " + part[2], true
	default:
		return "", false
	}
}

func isName(word string) bool { return word != "" && wholeWord.MatchString(word) }
