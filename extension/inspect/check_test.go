package inspect

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stilehost/stile/extension"
)

const start = `import { extension } from "stile"; export default extension({ tools: { `

func TestCheck(t *testing.T) {
	for _, tt := range []struct {
		name, text string
		tools      []string
		want       []string // the start of each problem
	}{
		{"right", start + `a: { description: "a", run: (x) => x }, async b() {}, "c": d, e, } })`, []string{"a", "b", "c", "e"}, nil},
		{"no names to compare", start + `a: {} } })`, nil, nil},
		{"other names", start + `a: {}, b: {} } })`, []string{"b", "c"}, []string{
			`a.ts:1:72: the manifest does not name the tool "a"; write "a" among the tools of the manifest`, `a.ts:1:63: the manifest names the tool "c", which is not in the code`,
		}},
		{"bad names", start + `createPr: {}, "\u0061-b": {}, ` + "h\u0430versine: {} } })", nil, []string{
			`a.ts:1:72: "createPr" cannot be the name`, `a.ts:1:86: "a-b" cannot be the name`, `a.ts:1:102: "hаversine" cannot be the name of a tool, because of the character '\u0430'`,
		}},
		{"a name twice", start + `a: {}, a: {} } })`, nil, []string{`a.ts:1:79: the tool "a" is here twice`}},
		{"none", `import { extension } from "stile"; export default extension({ tools: {} })`, nil, []string{`a.ts:1:63: an extension has at least one tool`}},
		{"names of a run", start + `...more, b: {} } })`, []string{"x"}, nil},
		{"computed names", start + `[a]: {} } })`, []string{"x"}, nil},
		{"type arguments", start + `a: f<b, c>() } })`, []string{"x"}, nil},
		{"a getter", start + `get a() {} } })`, []string{"x"}, nil},
		{"tools from elsewhere", `import { extension } from "stile"; export default extension({ tools: make({ a: {} }) })`, []string{"x"}, nil},
		{"tools and more", `import { extension } from "stile"; export default extension({ tools: {} || x })`, []string{"x"}, nil},
		{"another extension", `import { extension } from "other"; export default extension({ tools: {} })`, []string{"x"}, nil},
		{"under another name", `import { extension as e } from "stile"; export default e({ tools: {} })`, nil, []string{`a.ts:1:60: an extension has at`}},
		{"a doubt before its end", start + `a: {} } }, x = {} / 1 / 2)`, []string{"x"}, nil},
		{"by a name", `const e = 1; export default e`, []string{"x"}, nil},
		{"twice", "export default 1\nexport default 2", nil, []string{`a.ts:2:1: a second default export`}},
		{"twice in a list", "const a = 1; export { a as default }; export default 2", nil, []string{`a.ts:1:23: a second default export`}},
		{"twice and a doubt", "export default 1\nx = {} / 1; export default 2", nil, []string{`a.ts:1:16: the default export is a plain value`}},
		{"in strings", "export default 'export default'; // export default", nil, []string{`a.ts:1:16: the default export is a plain value`}},
		{"a plain object", "export default {\n tools: { a: {} } }", nil, []string{`a.ts:1:16: the default export is an object that extension() did not make; write export default extension(`}},
		{"a function", "export default async function (env) {}", nil, []string{`a.ts:1:16: the default export is a function`}},
		{"a class", "export default class {}", nil, []string{`a.ts:1:16: the default export is a class`}},
		{"an object with a method", "export default { a() {} }.a()", nil, nil},
		{"nothing", "const a = 1", nil, []string{`a.ts:1:12: the file has no default export, and exports no function`}},
		{"CommonJS", `const { extension } = require("stile"); module.exports = extension({ tools: {} })`, []string{"a"}, nil},
		{"functions", "export function a(x: string) {}\nexport const addNote = () => 1", []string{"a", "b"}, []string{
			`a.ts:2:14: the function is the tool "add_note", which the manifest does not name`, `a.ts:1:1: the manifest names the tool "b"`,
		}},
		{"a function of no type", "export function a(x) {}", []string{"a"}, []string{`a.ts:1:19: "x" has no type`}},
		{"nesting", "export default " + strings.Repeat("(", 20_000), nil, []string{`a.ts: brackets nest deeper than 15000 levels`}},
	} {
		t.Run(tt.name, func(t *testing.T) { hasProblems(t, check(tree("a.ts", tt.text), "a.ts", tt.tools), tt.want) })
	}
}

func check(fsys fs.FS, entry string, tools []string) []extension.Problem {
	_, problems := Check(fsys, entry, tools)
	return problems
}

// Check derives the same as Derive, and reads the file once.
func TestCheckDerivesOnce(t *testing.T) {
	files := &opens{tree("a.ts", "export function add(a: number, b: number) { return a + b }"), map[string]int{}}
	derived, problems := Check(files, "a.ts", []string{"add"})
	if len(problems) > 0 || files.count["a.ts"] != 1 {
		t.Errorf("opened %d times, %v", files.count["a.ts"], problems)
	}
	if want, err := Derive(files, "a.ts"); err != nil || !reflect.DeepEqual(derived, want) {
		t.Errorf("%+v, %+v, %v", derived, want, err)
	}
	if derived, problems := Check(tree("a.ts", start+"get: { run() {} } } });"), "a.ts", nil); derived != nil || len(problems) > 0 {
		t.Errorf("%+v, %v", derived, problems)
	}
}

// opens counts how often each file is opened.
type opens struct {
	fs.FS
	count map[string]int
}

func (o *opens) Open(name string) (fs.File, error) {
	o.count[name]++
	return o.FS.Open(name)
}

func (o *opens) Stat(name string) (fs.FileInfo, error) { return fs.Stat(o.FS, name) }

func hasProblems(t *testing.T, got []extension.Problem, want []string) {
	t.Helper()
	if len(got) != len(want) {
		t.Errorf("got %v", got)
		return
	}
	for i, p := range got {
		if !strings.HasPrefix(p.String(), want[i]) {
			t.Errorf("got %s\nwant %s", p, want[i])
		}
	}
}

func TestCheckTree(t *testing.T) {
	const good = start + "a: {} } })"
	many := tree("a.ts", good)
	for i := range 5000 {
		many[fmt.Sprintf("f%d", i)] = &fstest.MapFile{}
		many[fmt.Sprintf("node_modules/f%d", i)] = &fstest.MapFile{}
	}
	hasProblems(t, check(many, "a.ts", nil), []string{"the extension has more than 500 files"})
	large := strings.Repeat(" ", 9<<20)
	hasProblems(t, check(tree("a.ts", good, "b.bin", large, "c.bin", large), "a.ts", nil), []string{"the files of the extension have more than 16 MiB"})
	hasProblems(t, check(tree("a.ts", good, "b.bin", large, "node_modules/x/c.bin", large), "a.ts", nil), nil)
	hasProblems(t, check(tree("a.ts", large+large), "a.ts", nil), []string{"the files of the extension", "a.ts: the file has more than 16 MiB"})
	hasProblems(t, check(tree(), "a.ts", nil), []string{"a.ts: there is no such file"})
	hasProblems(t, check(tree("a.py", ""), "a.py", nil), []string{"a.py: the entry is neither TypeScript nor JavaScript"})
}

// examples are the sources of the repository's own extensions, with their manifests.
func examples(t *testing.T) (fsys fs.FS, manifests map[string]*extension.Manifest) {
	t.Helper()
	const dir = "../../examples"
	files, err := filepath.Glob(dir + "/*.json")
	if err != nil {
		t.Fatal(err)
	}
	manifests = map[string]*extension.Manifest{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if m, err := extension.Parse(text); err == nil {
			manifests[strings.TrimSuffix(filepath.Base(file), ".json")+".ts"] = m
		}
	}
	if len(manifests) < 4 {
		t.Fatalf("only %d manifests", len(manifests))
	}
	return os.DirFS(dir), manifests
}

// The examples have no problems, and a wrong manifest is detected in each.
func TestCheckExamples(t *testing.T) {
	fsys, manifests := examples(t)
	for entry, m := range manifests {
		hasProblems(t, check(fsys, entry, m.Tools), nil)
		if got := check(fsys, entry, []string{"other"}); len(got) != len(m.Tools)+1 {
			t.Errorf("%s: %v", entry, got)
		}
	}
}

func FuzzCheck(f *testing.F) {
	for _, text := range hostile {
		f.Add(text)
		f.Add(start + text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, p := range check(tree("a.ts", text), "a.ts", []string{"a"}) {
			if p.Line > 0 {
				inside(t, text, Place{p.File, p.Line, p.Column})
			}
		}
	})
}
