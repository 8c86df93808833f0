package abi_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/internal/suite"
)

// What wit-parser's own tests accept and we do not, with the reason.
const (
	async   = "async: streams, futures, error contexts and async functions came after WIT 0.2"
	gated   = "feature gate: a proposal that the component model has behind a feature of its own, and WIT 0.2 does not have"
	encoded = "a package that is encoded as WebAssembly; nothing here reads those"
	cycle   = "another step of the cycle"
	gate    = "the gate, not the item behind it"
	feature = "active" // what wit-parser's tests enable
)

// plainComments are comments that are not doc comments, and that wit-parser takes for some.
var plainComments = map[string]string{
	"multi-package-gated-include.wit": "in test this results in world with nothing",
}

// otherPlace lists errors that we find in another line than wit-parser, with what our line has.
var otherPlace = map[string]string{
	"bad-include2.wit":                  cycle,
	"bad-include3.wit":                  cycle,
	"bad-since-on-include.wit":          gate,
	"bad-since-on-interface.wit":        gate,
	"bad-since-on-type.wit":             gate,
	"bad-since-on-world-import.wit":     gate,
	"bad-since-on-world.wit":            gate,
	"cycle2.wit":                        cycle,
	"cycle3.wit":                        cycle,
	"cycle4.wit":                        cycle,
	"cycle5.wit":                        cycle,
	"include-cycle.wit":                 cycle,
	"multiple-package-docs":             "the package, not its comment",
	"multiple-package-inline-cycle.wit": cycle,
	"package-nesting-too-deep.wit":      "the first package that nests",
	"pkg-cycle2":                        cycle,
	"too-many-flags.wit":                "the flags, not the 33rd label",
	"use-and-include-world":             "the `use` of a world",
	"use-cycle1.wit":                    cycle,
	"use-cycle4.wit":                    cycle,
}

// notAccepted lists the valid tests that we refuse, with the reason.
var notAccepted = map[string]string{
	"accessors.wit":             gated, // get, set
	"async.wit":                 async,
	"comments.wit":              async,
	"error-context.wit":         async,
	"include-accessor-pair.wit": gated,
	"kinds-of-deps":             encoded,
	"maps.wit":                  gated, // map
	"simple-wasm-text.wat":      encoded,
	"streams-and-futures.wit":   async,
	"types.wit":                 async, // besides lists of fixed length
}

// TestWITParserSuite runs the tests that wit-parser, the parser of wasm-tools, has for itself.
func TestWITParserSuite(t *testing.T) {
	ui, err := fs.Sub(suite.Crate(t, "wit-parser"), "tests/ui")
	if err != nil {
		t.Fatal(err)
	}
	valid, invalid := suiteCases(t, ui, "."), suiteCases(t, ui, "parse-fail")
	if len(valid) != 78 || len(invalid) != 187 {
		t.Errorf("%d valid and %d invalid tests, want 78 and 187", len(valid), len(invalid))
	}
	for _, name := range valid {
		t.Run("valid/"+name, func(t *testing.T) {
			t.Parallel()
			r, err := abi.ParseFolder(suiteFolder(t, ui, name), feature)
			switch reason, expected := notAccepted[name]; {
			case expected && err == nil:
				t.Errorf("is accepted, and listed as one that is not: %s", reason)
			case expected:
				_ = checkSyntaxError(t, err)
			case err != nil:
				t.Error(err)
			default:
				compareJSON(t, r, ui, strings.TrimSuffix(name, ".wit")+".wit.json")
			}
		})
	}
	for _, name := range invalid {
		t.Run("invalid/"+name, func(t *testing.T) {
			t.Parallel()
			_, err := abi.ParseFolder(suiteFolder(t, ui, path.Join("parse-fail", name)), feature)
			wrong := checkSyntaxError(t, err)
			if wrong == nil || strings.Contains(wrong.Message, "not supported") {
				return // wit-parser reads on after what is not supported
			}
			result, err := fs.ReadFile(ui, path.Join("parse-fail", strings.TrimSuffix(name, ".wit")+".wit.result"))
			if err != nil {
				t.Fatal(err)
			}
			place := reportedPlace.FindSubmatch(result)
			same := place == nil || strings.HasSuffix(string(place[1]), fmt.Sprintf("/%s:%d", wrong.File, wrong.Line))
			if reason, expected := otherPlace[name]; same == expected {
				t.Errorf("%v (listed: %q); wit-parser says\n%s", wrong, reason, result)
			}
		})
	}
}

// reportedPlace is where wit-parser says that an error is.
var reportedPlace = regexp.MustCompile(`(?m)(tests/ui/[^ :]+:\d+):\d+`)

// suiteCases lists the tests in a folder: WIT texts, and folders of them.
func suiteCases(t *testing.T, ui fs.FS, folder string) []string {
	entries, err := fs.ReadDir(ui, folder)
	if err != nil {
		t.Fatal(err)
	}
	var cases []string
	for _, entry := range entries {
		name := entry.Name()
		if entry.IsDir() && name != "parse-fail" || slices.Contains([]string{".wit", ".wat", ".md", ".wasm"}, path.Ext(name)) {
			cases = append(cases, name)
		}
	}
	return cases
}

// suiteFolder is the folder of one test. A text stands alone in one.
func suiteFolder(t *testing.T, ui fs.FS, name string) fs.FS {
	if path.Ext(name) == "" {
		folder, err := fs.Sub(ui, name)
		if err != nil {
			t.Fatal(err)
		}
		return folder
	}
	text, err := fs.ReadFile(ui, name)
	if err != nil {
		t.Fatal(err)
	}
	return fstest.MapFS{path.Base(name): &fstest.MapFile{Data: text}}
}

// checkSyntaxError wants an error that says what is wrong where. It returns the error, or nil for another one.
func checkSyntaxError(t *testing.T, err error) *abi.SyntaxError {
	t.Helper()
	wrong, ok := errors.AsType[*abi.SyntaxError](err)
	if !ok {
		t.Errorf("error %v, want a *SyntaxError", err)
		return nil
	}
	if wrong.File == "" || wrong.Message == "" || (wrong.Line == 0 || wrong.Column == 0) && path.Ext(wrong.File) == ".wit" {
		t.Errorf("%#v does not say what is wrong where", wrong)
	}
	return wrong
}

// resolved is what wit-parser writes as JSON of what it has read, as far as we have it too.
type resolved struct {
	Worlds []struct {
		Name             string
		Imports, Exports json.RawMessage
		Package          int
		Docs             struct{ Contents string }
	}
	Interfaces []struct {
		Name      *string
		Types     json.RawMessage
		Functions json.RawMessage
		Package   int
		Docs      struct{ Contents string }
	}
	Types []struct {
		Kind json.RawMessage
		Docs struct{ Contents string }
	}
	Packages []struct{ Name string }
}

type worldItem struct {
	Interface *struct{ ID int }
	Function  *resolvedFunc
	Type      *int
}

type resolvedFunc struct {
	Name   string
	Docs   struct{ Contents string }
	Params []struct{ Name string }
	Result any
}

// compareJSON compares what was read with what wit-parser has read: all names, docs and kinds of types, in the same order.
func compareJSON(t *testing.T, r *abi.Resolve, ui fs.FS, name string) {
	text, err := fs.ReadFile(ui, name)
	if err != nil {
		t.Fatal(err)
	}
	var want resolved
	if comment := plainComments[strings.TrimSuffix(name, ".json")]; comment != "" {
		if !bytes.Contains(text, []byte(comment)) {
			t.Errorf("wit-parser no longer takes %q for a doc comment", comment)
		}
		text = bytes.ReplaceAll(text, []byte(comment), nil)
	}
	if err := json.Unmarshal(text, &want); err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, i := range r.Interfaces() {
		got[i.Name] = summarize(i).String()
	}
	for _, w := range r.Worlds() {
		imports := summary{types: names(w.Types, w.Resources), funcs: signatures(w.ImportFuncs)}
		exports := summary{funcs: signatures(w.ExportFuncs)}
		for _, i := range w.Imports {
			imports.add(i)
		}
		for _, i := range w.Exports {
			exports.add(i)
		}
		got[w.Name] = fmt.Sprintf("%q\nimports%v\nexports%v", w.Doc, imports, exports)
	}
	for name, w := range want.summarize(t) {
		if got[name] != w {
			t.Errorf("%s is\n%s, want\n%s", name, got[name], w)
		}
		delete(got, name)
	}
	for name := range got {
		t.Errorf("%s should not be there", name)
	}
}

// summary is what is compared of an interface, or of what a world imports or exports.
type summary struct {
	doc                      string
	interfaces, types, funcs []string
}

func (s summary) String() string {
	text := fmt.Sprintf(" %q", s.doc)
	for _, part := range [][]string{s.interfaces, s.types, s.funcs} {
		text += "\n  " + strings.Join(part, "\n  ")
	}
	return text
}

func summarize(i *abi.Interface) summary {
	return summary{doc: i.Doc, types: names(i.Types, i.Resources), funcs: signatures(i.Funcs)}
}

// add adds an interface to those of a world: all of it when the world declares it.
func (s *summary) add(i *abi.Interface) {
	name := i.Name
	if !strings.Contains(name, ":") {
		name += summarize(i).String()
	}
	s.interfaces = append(s.interfaces, name)
}

// names are those of resources, and then of types.
func names(types []*abi.Type, resources []*abi.Resource) []string {
	var names []string
	for _, r := range resources {
		names = append(names, fmt.Sprintf("resource %s %q", r.Name, r.Doc))
	}
	for _, typ := range types {
		names = append(names, fmt.Sprintf("%v %s %q", typ.Kind, typ.Name, typ.Doc))
	}
	return names
}

func signatures(funcs []*abi.Func) []string {
	var texts []string
	for _, f := range funcs {
		text := f.Name
		for _, p := range f.Params {
			text += " " + p.Name
		}
		texts = append(texts, fmt.Sprintf("%s -> %v %q", text, f.Result != nil, f.Doc))
	}
	return texts
}

// summarize writes every interface and world as compareJSON writes ours.
func (r *resolved) summarize(t *testing.T) map[string]string {
	all := map[string]string{}
	interfaces := make([]summary, len(r.Interfaces))
	for id, i := range r.Interfaces {
		interfaces[id].doc = i.Docs.Contents
		inOrder(t, i.Types, func(name string, typ int) {
			interfaces[id].types = append(interfaces[id].types, r.declaration(name, typ)...)
		})
		resourcesFirst(interfaces[id].types)
		inOrder(t, i.Functions, func(_ string, f resolvedFunc) { interfaces[id].funcs = append(interfaces[id].funcs, f.String()) })
		if i.Name != nil {
			all[r.wholeName(i.Package, *i.Name)] = interfaces[id].String()
		}
	}
	for _, w := range r.Worlds {
		side := func(items json.RawMessage) summary {
			var s summary
			inOrder(t, items, func(key string, item worldItem) {
				switch {
				case item.Function != nil:
					s.funcs = append(s.funcs, item.Function.String())
				case item.Type != nil:
					s.types = append(s.types, r.declaration(key, *item.Type)...)
				case r.Interfaces[item.Interface.ID].Name != nil:
					i := r.Interfaces[item.Interface.ID]
					s.interfaces = append(s.interfaces, r.wholeName(i.Package, *i.Name))
				default:
					s.interfaces = append(s.interfaces, key+interfaces[item.Interface.ID].String())
				}
			})
			resourcesFirst(s.types)
			return s
		}
		all[r.wholeName(w.Package, w.Name)] = fmt.Sprintf("%q\nimports%v\nexports%v", w.Docs.Contents, side(w.Imports), side(w.Exports))
	}
	return all
}

func (r *resolved) wholeName(pkg int, name string) string {
	whole, version, found := strings.Cut(r.Packages[pkg].Name, "@")
	if found {
		name += "@" + version
	}
	return whole + "/" + name
}

var declared = regexp.MustCompile(`^("resource"|\{"(record|variant|enum|flags)":)`)

// declaration is the line of a type or resource that has a declaration of its own, and nothing for an alias.
func (r *resolved) declaration(name string, id int) []string {
	kind := strings.Trim(declared.FindString(string(compact(r.Types[id].Kind))), `{":`)
	if kind == "" {
		return nil
	}
	return []string{fmt.Sprintf("%s %s %q", kind, name, r.Types[id].Docs.Contents)}
}

func compact(text json.RawMessage) []byte {
	var b bytes.Buffer
	if json.Compact(&b, text) != nil {
		return nil
	}
	return b.Bytes()
}

// resourcesFirst orders lines as names does.
func resourcesFirst(lines []string) {
	rank := func(line string) int {
		if strings.HasPrefix(line, "resource ") {
			return 0
		}
		return 1
	}
	slices.SortStableFunc(lines, func(a, b string) int { return rank(a) - rank(b) })
}

func (f resolvedFunc) String() string {
	text := f.Name
	for _, p := range f.Params {
		text += " " + p.Name
	}
	return fmt.Sprintf("%s -> %v %q", text, f.Result != nil, f.Docs.Contents)
}

// inOrder visits the members of a JSON object in the order in which they stand.
func inOrder[T any](t *testing.T, object json.RawMessage, visit func(key string, value T)) {
	d := json.NewDecoder(bytes.NewReader(object))
	if _, err := d.Token(); err != nil {
		t.Fatal(err)
	}
	for d.More() {
		key, err := d.Token()
		if err != nil {
			t.Fatal(err)
		}
		var value T
		if err := d.Decode(&value); err != nil {
			t.Fatal(err)
		}
		visit(key.(string), value)
	}
}
