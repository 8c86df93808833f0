package inspect

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/extension"
	"github.com/stilehost/stile/internal/jslex"
	"github.com/stilehost/stile/internal/printable"
)

// Check finds certain mistakes in the structure of an extension, without running or bundling it: at most 20 problems,
// none of them a guess. manifestTools are the names of the tools in the manifest; with nil, Check does not compare them.
// If entry has no default export, Check calls [Derive], adds its problems, and returns its result as derived.
func Check(fsys fs.FS, entry string, manifestTools []string) (derived *Derived, problems []extension.Problem) {
	c := checker{manifest: manifestTools}
	c.tree(fsys)
	f := newFiles(fsys)
	m, err := f.read(entry, extension.MaxSource)
	switch {
	case !jslex.IsCode(entry):
		c.add(extension.Problem{File: printable.OneLine(entry), Text: "the entry is neither TypeScript nor JavaScript", Fix: `a file like "tool.ts", or a component (.wasm) of another language`})
	case err != nil:
		c.add(unreadable(entry, err))
	default:
		c.entry(f, m)
	}
	return c.made, c.problems[:min(len(c.problems), abi.MaxProblems)]
}

type checker struct {
	manifest []string
	made     *Derived
	problems []extension.Problem
}

func (c *checker) add(p extension.Problem) { c.problems = append(c.problems, p) }

// tree checks how many files there are, and their size.
func (c *checker) tree(fsys fs.FS) {
	files, size := 0, int64(0)
	_ = fs.WalkDir(fsys, ".", func(name string, e fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return nil // a file that cannot be read cannot be in a bundle either
		case e.IsDir() && e.Name() == "node_modules":
			return fs.SkipDir
		case !e.Type().IsRegular():
			return nil
		}
		files++
		if info, err := e.Info(); err == nil {
			size += info.Size()
		}
		if large := extension.TooLarge(files, size); large != nil {
			c.add(*large)
			return fs.SkipAll
		}
		return nil
	})
}

// entry checks the exports of the entry, as far as its tokens are certain.
func (c *checker) entry(f *files, m *module) {
	if m.brackets > maxBrackets {
		c.add(extension.Problem{File: printable.OneLine(m.name), Text: fmt.Sprintf("brackets nest deeper than %d levels", maxBrackets), Fix: "flatter code"})
		return
	}
	certain := m.defaults
	if m.unclear != "" {
		certain = slices.DeleteFunc(slices.Clone(certain), func(i int) bool { return m.offset(i) >= m.unclearAt })
	}
	switch {
	case len(m.defaults) == 0:
		c.derived(f, m)
	case len(certain) > 1:
		c.add(*m.problemAt(certain[1], "a second default export", "one default export"))
	case len(certain) == 1:
		c.shape(m, certain[0])
	}
}

// derived checks an entry that exports functions.
func (c *checker) derived(f *files, m *module) {
	d, err := derive(f, m.name)
	if failed, ok := errors.AsType[*extension.ProblemsError](err); ok {
		c.problems = append(c.problems, failed.Problems...)
		return
	}
	if d == nil {
		return
	}
	c.made = d
	names := map[string]int{}
	for i, t := range d.Tools {
		names[t.Name] = i
	}
	c.names(m, names, func(name string) *extension.Problem {
		at := slices.IndexFunc(m.exports, func(e export) bool { return toolName(e.name) == name })
		return m.problemAt(m.exports[at].named(), "the function is the tool "+quote(name)+", which the manifest does not name", quote(name)+" among the tools of the manifest")
	}, 0)
}

// shape checks a default export that is written out.
func (c *checker) shape(m *module, i int) {
	const fix = `export default extension({ tools: { ... } }), with extension from "stile"`
	value := i + 2
	wrong := ""
	switch {
	case !m.is(i, "export"):
		return // in a list
	case m.is(value, "function"), m.is(value, "async") && m.is(value+1, "function"):
		wrong = "a function"
	case m.is(value, "class"):
		wrong = "a class"
	case m.is(value, "{") && (m.newline(m.next(value)) || m.is(m.next(value), ";")):
		wrong = "an object that extension() did not make"
	case m.kindOf(value, jslex.String), m.kindOf(value, jslex.Number):
		wrong = "a plain value"
	}
	if wrong != "" {
		c.add(*m.problemAt(value, "the default export is "+wrong, fix))
		return
	}
	if sdk := m.imports[m.at(value)]; sdk.name != "extension" || sdk.from != "stile" || !m.is(value+1, "(") || !m.is(value+2, "{") {
		return
	}
	if m.unclear != "" && m.offset(m.next(value+1)-1) >= m.unclearAt {
		return
	}
	fields, ok := m.properties(value + 2)
	at := slices.IndexFunc(fields, func(p propertyAt) bool { return p.name == "tools" })
	if !ok || at < 0 || !m.is(fields[at].value, "{") || m.next(fields[at].value) != fields[at].end {
		return
	}
	tools, ok := m.properties(fields[at].value)
	if !ok {
		return
	}
	if len(tools) == 0 {
		c.add(*m.problemAt(fields[at].at, "an extension has at least one tool", "tools: { name: { description, run } }"))
		return
	}
	names := map[string]int{}
	for _, t := range tools {
		if !extension.IsToolName(t.name) {
			c.add(*m.problemAt(t.at, badToolName(t.name), badName))
		} else if _, again := names[t.name]; again {
			c.add(*m.problemAt(t.at, "the tool "+quote(t.name)+" is here twice", "each tool once"))
		}
		names[t.name] = t.at
	}
	c.names(m, names, func(name string) *extension.Problem {
		return m.problemAt(names[name], "the manifest does not name the tool "+quote(name), quote(name)+" among the tools of the manifest")
	}, fields[at].at)
}

// names compares the tools in the code with those in the manifest.
func (c *checker) names(m *module, code map[string]int, extra func(name string) *extension.Problem, at int) {
	if c.manifest == nil {
		return
	}
	var names []string
	for name := range code {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		if !slices.Contains(c.manifest, name) && extension.IsToolName(name) {
			c.add(*extra(name))
		}
	}
	for _, name := range c.manifest {
		if !slices.Contains(names, name) {
			c.add(*m.problemAt(at, "the manifest names the tool "+quote(name)+", which is not in the code", "it here, or a manifest without it"))
		}
	}
}

// propertyAt is a property of an object that is written out: its name, and the tokens of its value.
type propertyAt struct {
	name           string
	at, value, end int
}

// properties reads the object that begins at token open. ok is false if its names are not known without running the code.
func (m *module) properties(open int) (list []propertyAt, ok bool) {
	end := m.match(open)
	if end >= len(m.tokens) {
		return nil, false
	}
	for i := open + 1; i < end; i++ {
		if m.is(i, "async") && (m.isName(i+1) || m.kindOf(i+1, jslex.String)) {
			i++
		}
		p := propertyAt{at: i, value: i + 1}
		name, isText := m.value(i)
		switch {
		case m.kindOf(i, jslex.String) && isText:
			p.name = name
		case m.isName(i):
			p.name = m.at(i)
		default:
			return nil, false
		}
		switch m.at(i + 1) {
		case ":":
			p.value = i + 2
		case "(", ",", "}":
		default:
			return nil, false
		}
		for i++; i < end && !m.is(i, ","); i = m.next(i) {
			if m.is(i, "<") {
				return nil, false // a comma may be between type arguments
			}
		}
		p.end = i
		list = append(list, p)
	}
	return list, true
}
