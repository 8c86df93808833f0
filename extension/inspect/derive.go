// Package inspect examines an extension's TypeScript before anything runs. It derives tools from plain functions, finds certain
// mistakes in the structure, and reports what the code appears to do. It reads tokens and a small part of the grammar. If that
// leaves a doubt, it says so and derives nothing. The report protects nothing; the sandbox does.
package inspect

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/extension"
	"github.com/stilehost/stile/host"
	"github.com/stilehost/stile/internal/bounded"
	"github.com/stilehost/stile/internal/jslex"
	"github.com/stilehost/stile/internal/jsonform"
	"github.com/stilehost/stile/internal/printable"
)

// Derived is an entry module generated for a module that exports plain functions.
type Derived struct {
	// Entry is the path of the generated module, beside its original: "tool.tools.ts" for "tool.ts". A toolchain builds it if the
	// source tree has Text there.
	Entry string
	// Text is TypeScript. The same files give the same text.
	Text []byte
	// Tools are the tools that the module declares, in the order of the functions.
	Tools []abi.Definition
}

const (
	maxFunctions  = 256
	maxParameters = 64
)

// Derive makes a module that offers the functions which entry exports as tools, one tool per function, in the order of their
// declarations. It returns nil if entry is not code, or has a default export. A default export declares its tools itself, and
// nothing is added to them, because that would change the file that a person reads.
//
// A tool has the function's name in snake case, its doc comment as description, and its parameters by name as input. A function
// whose only parameter is a pattern such as {a, b} takes the whole input. A last parameter named env, or of the type Env, gets the
// bindings. If something cannot be derived with certainty, the error is an *[extension.ProblemsError] of [extension.StageValidate].
// Result types that JSON Schema cannot express are left out.
func Derive(fsys fs.FS, entry string) (*Derived, error) {
	if !jslex.IsCode(entry) {
		return nil, nil // the toolchain reports which files it accepts
	}
	return derive(newFiles(fsys), entry)
}

func derive(f *files, entry string) (*Derived, error) {
	m, err := f.read(entry, extension.MaxSource)
	if err != nil {
		return nil, refuse(unreadable(entry, err))
	}
	if len(m.defaults) > 0 {
		return nil, nil
	}
	if p := m.doubtful(); p != nil {
		return nil, refuse(*p)
	}
	if len(m.refused) > 0 {
		return nil, refuse(m.refused...)
	}
	d := &deriver{files: f, parser: &parser{module: m}, names: map[string]string{}}
	d.derive()
	name := strings.TrimSuffix(entry, path.Ext(entry)) + ".tools.ts"
	if _, err := fs.Stat(f.fsys, name); err == nil {
		d.problems = append(d.problems, extension.Problem{File: printable.OneLine(name), Text: "this is the name of the module that is made for " + quote(entry), Fix: "another name"})
	}
	if len(d.problems) > 0 {
		for i := range d.problems {
			if p := &d.problems[i]; strings.HasSuffix(p.Text, noType) && !jslex.IsTypeScript(p.File) {
				p.Fix += ", in a file whose name ends in .ts"
			}
		}
		return nil, refuse(d.problems...)
	}
	return &Derived{name, d.module(entry), d.definitions()}, nil
}

func refuse(problems ...extension.Problem) error {
	return &extension.ProblemsError{Stage: extension.StageValidate, Problems: problems[:min(len(problems), abi.MaxProblems)]}
}

func unreadable(name string, err error) extension.Problem {
	p := extension.Problem{File: printable.OneLine(name), Text: "the file cannot be read", Fix: "the path of a TypeScript file of the extension"}
	switch {
	case errors.Is(err, bounded.ErrTooLarge):
		p.Text, p.Fix = fmt.Sprintf("the file has more than %d MiB", extension.MaxSource>>20), "less, and read what is larger from a workspace"
	case errors.Is(err, fs.ErrNotExist):
		p.Text = "there is no such file"
	}
	return p
}

// noType is the end of the message about a name without a type.
const noType = " has no type"

// deriver makes tools from the functions of one module.
type deriver struct {
	*parser
	files    *files
	tools    []tool
	names    map[string]string // functions by the names of their tools
	schemas  int               // bytes
	problems []extension.Problem
}

// tool is a function with its documentation.
type tool struct {
	name, function string
	description    string
	input, output  string // JSON; output is empty if there is none
	arguments      []string
}

func (d *deriver) derive() {
	functions := 0
	for _, e := range d.exports {
		f := d.function(e)
		switch {
		case d.problem != nil && slices.Contains(d.problems, *d.problem): // the problem of the first of its declarations
			continue
		case d.problem != nil:
			d.problems = append(d.problems, *d.problem)
		case f == nil:
			continue
		default:
			d.add(f)
		}
		if functions++; functions > maxFunctions || len(d.problems) >= abi.MaxProblems {
			break
		}
	}
	switch {
	case functions == 0:
		d.refuse(len(d.tokens), "the file has no default export, and exports no function", "export default extension({ tools: { ... } }), or "+fixFunction)
	case functions > maxFunctions:
		d.refuse(0, fmt.Sprintf("more than %d functions are exported", maxFunctions), "fewer, in several extensions")
	}
}

func (d *deriver) refuse(i int, text, fix string) {
	d.problems = append(d.problems, *d.problemAt(i, text, fix))
}

// add makes a tool from a function.
func (d *deriver) add(f *function) {
	t := tool{name: toolName(f.name), function: f.name}
	switch other := d.names[t.name]; {
	case !extension.IsToolName(t.name):
		d.refuse(f.named(), badToolName(f.name), badName)
		return
	case other != "":
		d.refuse(f.named(), fmt.Sprintf("%s and %s are both the tool %s", quote(other), quote(f.name), quote(t.name)), "names that differ in more than case")
		return
	case len(f.parameters) > maxParameters:
		d.refuse(f.named(), fmt.Sprintf("%s has more than %d parameters", quote(f.name), maxParameters), "one parameter with properties")
		return
	}
	d.names[t.name] = f.name
	about := f.module.doc(d.docs[f.at])
	if about.problem != nil {
		d.problems = append(d.problems, *about.problem)
		return
	}
	if t.description = about.text; t.description == "" {
		t.description = signature(f)
	}
	c := &converter{files: d.files, input: true, recursive: map[*declaration]string{}, names: map[string]int{}}
	input := d.input(c, f, about, &t)
	if c.problem != nil {
		d.problems = append(d.problems, *c.problem)
		return
	}
	input.defs = c.defs
	t.input = input.document().String()
	t.output = d.output(f, about)
	d.schemas += len(t.input) + len(t.output)
	if jsonform.Depth([]byte(t.input)) > host.MaxSchemaDepth || d.schemas > host.MaxSchemas {
		d.refuse(f.named(), "the schema of "+quote(f.name)+" is too large, or too deep for the host", "simpler types")
		return
	}
	d.tools = append(d.tools, t)
}

// signature describes a function that has no comment.
func signature(f *function) string {
	var names []string
	for _, p := range f.parameters {
		if !isEnv(p) {
			names = append(names, p.name)
		}
	}
	return f.name + "(" + strings.Join(names, ", ") + ")"
}

// isEnv reports whether a parameter gets the bindings.
func isEnv(p parameter) bool {
	return p.name == envName || p.typ != nil && p.typ.kind == named && p.typ.name == "Env" && p.typ.parts == nil
}

// input returns the schema of a function's parameters, and the arguments to call the function with.
func (d *deriver) input(c *converter, f *function, about doc, t *tool) *schema {
	s := &schema{types: []string{"object"}, isObject: true, closed: true}
	parameters := f.parameters
	if n := len(parameters); n > 0 && isEnv(parameters[n-1]) {
		last := parameters[n-1]
		if last.typ != nil && !envTypes(last.typ) || last.rest {
			return c.fail(d.typeAt(last), quote(envName)+" is the bindings of a call, and this has another type", "another name for the parameter, or no type")
		}
		parameters = parameters[:n-1]
		defer func() { t.arguments = append(t.arguments, envName) }()
	}
	if len(parameters) == 1 && parameters[0].name == "" && !parameters[0].rest && parameters[0].typ != nil {
		t.arguments = []string{"input"}
		return d.wholeInput(c, parameters[0])
	}
	for _, p := range parameters {
		at := d.typeAt(p)
		switch {
		case p.name == "":
			return c.fail(at, "a pattern has no name that the input could have", "a name for each parameter, or the pattern as the only parameter with a type")
		case isEnv(p):
			return c.fail(at, quote(p.name)+" is not the last parameter", "it at the end")
		case p.typ == nil:
			return c.fail(at, quote(p.name)+noType, p.name+": Type")
		case strings.Contains(p.name, `\`) || nameProblem(p.name) != "":
			return c.fail(at, "the parameter "+quote(p.name)+" "+nameProblem(p.name), "another name")
		case slices.ContainsFunc(s.properties, func(other property) bool { return other.name == p.name }):
			return c.fail(at, "two parameters are named "+quote(p.name), "different names")
		case p.optional && ofObject[p.name]:
			return c.fail(at, quote(p.name)+" exists on every object, so it would never be absent", "another name")
		}
		part := c.within(p.typ)
		if p.rest {
			c.listElement(p.typ)
			t.arguments = append(t.arguments, "...(input."+p.name+" ?? [])")
		} else {
			t.arguments = append(t.arguments, "input."+p.name)
		}
		optional := p.optional || p.rest || part.undefined
		part.undefined = false
		if text := about.parameters[p.name]; text != "" {
			part.description = text
		}
		part.value = p.value
		s.properties = append(s.properties, property{p.name, part, !optional})
	}
	return s
}

// ofObject are the property names that every JavaScript object has.
var ofObject = set("constructor hasOwnProperty isPrototypeOf propertyIsEnumerable toLocaleString toString valueOf " +
	"__defineGetter__ __defineSetter__ __lookupGetter__ __lookupSetter__")

// typeAt describes a type in messages about a parameter.
func (d *deriver) typeAt(p parameter) *typ { return &typ{module: d.parser.module, at: p.at} }

// envTypes reports whether a parameter named env may be the bindings. A type that is clearly for a JSON value would be a mistake.
func envTypes(t *typ) bool {
	switch t.kind {
	case other:
		return true
	case named:
		return t.name == "any" || t.name == "Env" || t.name == "Pick" || !strings.Contains(" string number boolean null true false Array ReadonlyArray undefined unknown ", " "+t.name+" ") && instead[t.name] == ""
	case intersection:
		return true
	default:
		return false
	}
}

// wholeInput is the schema of a parameter that takes the whole input.
func (d *deriver) wholeInput(c *converter, p parameter) *schema {
	s := c.convert(p.typ)
	if s.ref != "" {
		return c.fail(p.typ, "an input that holds itself", "a property of its own for what repeats")
	}
	if !s.isObject || len(s.types) != 1 || s.undefined {
		return c.fail(p.typ, "the input of a tool is an object", "{ name: Type }")
	}
	return s
}

// output is the schema of a function's result, or nothing if there is none.
func (d *deriver) output(f *function, about doc) string {
	t := f.result
	if t == nil {
		return ""
	}
	c := &converter{files: d.files, recursive: map[*declaration]string{}, names: map[string]int{}}
	if t.kind == named && t.name == "Promise" && len(t.parts) == 1 && c.declaration(&typ{module: t.module, at: t.at}, t.name) == nil {
		t = t.parts[0]
	}
	s := c.convert(t)
	if c.problem != nil || s.undefined {
		return ""
	}
	if s.defs = c.defs; about.returns != "" {
		s.description = about.returns
	}
	text := s.document().String()
	if jsonform.Depth([]byte(text)) > host.MaxSchemaDepth {
		return ""
	}
	return text
}

// badToolName says why a tool cannot have a name. It names a character that is not what it looks like.
func badToolName(name string) string {
	why := quote(name) + " cannot be the name of a tool"
	if i := strings.IndexFunc(name, func(r rune) bool { return r >= unicode.MaxASCII }); i >= 0 {
		r, _ := utf8.DecodeRuneInString(name[i:])
		why += fmt.Sprintf(", because of the character %+q", r)
	}
	return why
}

const badName = "a name of a-z, 0-9 and _, a letter first, at most 64"

// toolName converts a name to snake case: createPR and parseURLPath become create_pr and parse_url_path.
func toolName(name string) string {
	var b strings.Builder
	runes := []rune(name)
	for i, r := range runes {
		if unicode.IsUpper(r) && r < unicode.MaxASCII {
			startsWord := i+1 < len(runes) && unicode.IsLower(runes[i+1])
			if i > 0 && (unicode.IsLower(runes[i-1]) || unicode.IsDigit(runes[i-1]) || unicode.IsUpper(runes[i-1]) && startsWord) {
				b.WriteByte('_')
			}
			r = unicode.ToLower(r)
		}
		b.WriteRune(r)
	}
	return b.String()
}

// module returns the text of the generated module.
func (d *deriver) module(entry string) []byte {
	var b strings.Builder
	fmt.Fprintf(&b, "// Made for %s: the functions that it exports, as tools.\n", jsonText(printable.OneLine(entry)))
	b.WriteString("import { extension } from \"stile\";\nimport {")
	for _, t := range d.tools {
		fmt.Fprintf(&b, " %s as call_%s,", t.function, t.name)
	}
	fmt.Fprintf(&b, " } from %s;\n\nexport default extension({\n  tools: {\n", jsonText("./"+path.Base(entry)))
	for _, t := range d.tools {
		fmt.Fprintf(&b, "    %s: {\n      description: %s,\n      input: %s,\n", t.name, jsonText(t.description), t.input)
		if t.output != "" {
			fmt.Fprintf(&b, "      output: %s,\n", t.output)
		}
		fmt.Fprintf(&b, "      run: (input: any, env: any) => call_%s(%s),\n    },\n", t.name, strings.Join(t.arguments, ", "))
	}
	b.WriteString("  },\n});\n")
	return []byte(b.String())
}

func (d *deriver) definitions() []abi.Definition {
	list := make([]abi.Definition, len(d.tools))
	for i, t := range d.tools {
		list[i] = abi.Definition{Name: t.name, Description: t.description, InputSchema: t.input}
		if t.output != "" {
			list[i].OutputSchema = &t.output
		}
	}
	return list
}
