package inspect

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"

	"github.com/stilehost/stile/extension"
	"github.com/stilehost/stile/host"
	"github.com/stilehost/stile/internal/bounded"
	"github.com/stilehost/stile/internal/jslex"
)

// files are the modules in which types are looked up. Each is read once.
type files struct {
	fsys    fs.FS
	modules map[string]*module
	types   map[*declaration]declaredType
	enums   map[*declaration]*enumeration
	imports map[reference]*declaration
	left    int // see work
}

// maxWork bounds what the schemas of an extension are made from: a few times as much as the host takes. A name of a few bytes can stand for a
// type of a megabyte.
const maxWork = 4 * host.MaxSchemas

// work counts values, properties and bytes of text that a schema is made from. It returns false when there were too many.
func (f *files) work(n int) bool {
	f.left = max(f.left-n, -1)
	return f.left >= 0
}

// reference is an import of a module.
type reference struct {
	module *module
	imported
}

// declaredType is what a declaration was read as, once.
type declaredType struct {
	typ     *typ
	problem *extension.Problem
}

// enumeration has the values of an enum in order, and by the names of its members.
type enumeration struct {
	values  []any
	byName  map[string]any
	problem *extension.Problem
}

func newFiles(fsys fs.FS) *files {
	return &files{fsys, map[string]*module{}, map[*declaration]declaredType{}, map[*declaration]*enumeration{}, map[reference]*declaration{}, maxWork}
}

// readFile reads a file of at most limit bytes.
func readFile(fsys fs.FS, name string, limit int64) (string, error) {
	f, err := fsys.Open(name)
	if err != nil {
		return "", err
	}
	defer func() { _ = f.Close() }() // it was only read
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return "", errors.Join(err, fs.ErrInvalid)
	}
	text, err := bounded.Read(f, limit)
	return string(text), err
}

// read reads a file of at most limit bytes as a module.
func (f *files) read(name string, limit int64) (*module, error) {
	if m := f.modules[name]; m != nil {
		return m, nil
	}
	text, err := readFile(f.fsys, name, limit)
	if err != nil {
		return nil, err
	}
	m := readModule(lex(name, text, jslex.IsJSX(name)))
	f.modules[name] = m
	return m, nil
}

// doubtful returns the problem of a file that can be read in two ways, or nil.
func (m *module) doubtful() *extension.Problem {
	if m.unclear == "" {
		return nil
	}
	if m.mend != "" {
		p := m.problem(m.unclearAt, "the brackets do not match: "+m.unclear, m.mend)
		return &p
	}
	p := m.problem(m.unclearAt, "from here on this file can be read in more than one way, because of "+m.unclear, "it in another way, or a default export with the schemas of the tools")
	return &p
}

// lookup finds the declaration of the first part of a type's name. It returns nil if this file neither declares nor imports it.
func (f *files) lookup(t *typ, name string) (*declaration, *extension.Problem) {
	d := t.module.types[name]
	if i, ok := t.module.imports[name]; ok && d == nil {
		var problem *extension.Problem
		if d, problem = f.imported(t, i); problem != nil {
			return nil, problem
		}
	}
	if d == nil {
		return nil, nil
	}
	switch {
	case d.again:
		return nil, t.module.problemAt(t.at, quote(name)+" is declared more than once", "one declaration")
	case d.kind == "class":
		return nil, t.module.problemAt(t.at, quote(name)+" is a class, and JSON has none", "an interface")
	case d.generic:
		return nil, t.module.problemAt(t.at, quote(name)+" has type parameters", "a type without them")
	}
	return d, nil
}

// extensionsOfTypes are the extensions that an import may leave out.
var extensionsOfTypes = []string{"", ".ts", ".tsx", ".mts", ".cts", ".d.ts", ".js", ".mjs", ".cjs", ".jsx", ".json", "/index.ts", "/index.tsx", "/index.d.ts", "/index.js"}

// imported finds the declaration behind an import. It succeeds only if the import can mean exactly one file.
func (f *files) imported(t *typ, i imported) (*declaration, *extension.Problem) {
	m := t.module
	if d := f.imports[reference{m, i}]; d != nil {
		return d, nil
	}
	refuse := func(text, fix string) (*declaration, *extension.Problem) { return nil, m.problemAt(i.at, text, fix) }
	if !strings.HasPrefix(i.from, "./") && !strings.HasPrefix(i.from, "../") {
		return refuse("the types of the package "+quote(i.from)+" are not read", "an interface of your own")
	}
	if i.name == "*" || i.name == "default" {
		return refuse("a type that is not imported by its name", `import type { Name } from `+quote(i.from))
	}
	target := path.Join(path.Dir(m.name), i.from)
	bases := []string{target}
	for _, twin := range [][2]string{{".js", ".ts"}, {".js", ".tsx"}, {".mjs", ".mts"}, {".cjs", ".cts"}, {".jsx", ".tsx"}} {
		if base, ok := strings.CutSuffix(target, twin[0]); ok {
			bases = append(bases, base+twin[1])
		}
	}
	var found []string
	for n, base := range bases {
		for _, ending := range extensionsOfTypes {
			if n > 0 && ending != "" || !fs.ValidPath(base+ending) {
				continue
			}
			if info, err := fs.Stat(f.fsys, base+ending); err == nil && info.Mode().IsRegular() {
				found = append(found, base+ending)
			}
		}
	}
	if len(found) == 0 {
		return refuse(quote(i.from)+" is not a file of the extension", "the name of a file that is there, with its ending, or the type in this file")
	}
	if len(found) > 1 {
		return refuse(fmt.Sprintf("%s could be any of %d files", quote(i.from), len(found)), "the name of one file of the extension, with its ending")
	}
	other, err := f.read(found[0], extension.MaxSource)
	switch {
	case err != nil:
		return refuse(fmt.Sprintf("%s cannot be read: %v", quote(found[0]), err), "the type in this file")
	case !jslex.IsTypeScript(found[0]):
		return refuse(quote(found[0])+" is not TypeScript", "the type in this file")
	case other.unclear != "":
		return nil, other.doubtful()
	}
	d := other.types[other.exported[i.name]]
	if d == nil {
		return refuse(fmt.Sprintf("%s declares and exports no type %s", quote(found[0]), quote(i.name)), "the file that declares it")
	}
	f.imports[reference{m, i}] = d
	return d, nil
}

// declared parses the type that a declaration names.
func (f *files) declared(d *declaration) (*typ, *extension.Problem) {
	if known, ok := f.types[d]; ok {
		return known.typ, known.problem
	}
	t, problem := declaredAs(d)
	f.types[d] = declaredType{t, problem}
	return t, problem
}

func declaredAs(d *declaration) (*typ, *extension.Problem) {
	p := parser{module: d.module, i: d.at + 1}
	var t *typ
	if d.kind == "type" {
		p.expect("=")
		t = p.parseType()
		if !p.newline(p.i) && !p.is(p.i, ";") {
			p.fail(p.i, "this cannot be read as a part of the type", fixType)
		}
	} else {
		var parents []*typ
		if p.accept("extends") {
			parents = append(parents, p.parseType())
			for p.accept(",") {
				parents = append(parents, p.parseType())
			}
		}
		if !p.is(p.i, "{") {
			p.expect("{")
			return nil, p.problem
		}
		t = p.objectType()
		t.parts = parents
	}
	return t, p.problem
}

// enum reads the members of an enum, whose values must be written out or counted.
func (f *files) enum(d *declaration) (*enumeration, *extension.Problem) {
	if e := f.enums[d]; e != nil {
		return e, e.problem
	}
	e := enumOf(d)
	f.enums[d] = e
	return e, e.problem
}

func enumOf(d *declaration) *enumeration {
	e := &enumeration{byName: map[string]any{}}
	p := parser{module: d.module, i: d.at + 1}
	if d.module.is(d.at-2, "declare") || d.module.is(d.at-3, "declare") {
		p.fail(d.at, "an enum that is declared but not defined", "enum without declare")
	}
	p.expect("{")
	if e.problem = p.problem; e.problem != nil {
		return e
	}
	end := p.match(p.i - 1)
	next, counts := 0.0, true
	for p.problem == nil && p.i < end {
		at := p.i
		name, ok := p.value(at)
		if p.isName(at) {
			name, ok = p.at(at), true
		}
		p.i++
		var value any
		switch {
		case !ok:
			p.fail(at, "this cannot be read as a member of an enum", `NAME = "value"`)
		case p.accept("="):
			if t := p.primary(); t.kind == literal {
				value = t.value
			} else {
				p.fail(at, "the value of "+quote(name)+" is computed", "a string or number")
			}
		case counts:
			value = next
		default:
			p.fail(at, quote(name)+" has no value", quote(name)+` = "value"`)
		}
		n, isNumber := value.(float64)
		next, counts = n+1, isNumber
		e.values = append(e.values, value)
		if _, again := e.byName[name]; !again {
			e.byName[name] = value
		}
		if p.i < end {
			p.expect(",")
		}
	}
	if p.problem == nil && len(e.values) == 0 {
		p.fail(d.at, "an enum without members", fixType)
	}
	e.problem = p.problem
	return e
}
