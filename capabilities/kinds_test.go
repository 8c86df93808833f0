package capabilities_test

import (
	"flag"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stilehost/stile"
	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/capabilities"
	"github.com/stilehost/stile/capabilities/kv"
	"github.com/stilehost/stile/capabilities/tools"
	"github.com/stilehost/stile/capabilities/workspace"
	"github.com/stilehost/stile/capability"
	"github.com/stilehost/stile/wit"
)

// own are the folders that may distinguish kinds: their own.
var own = []string{"capabilities", "capability", "examples", "bench", "host", "guest-sdk"}

// translating are the files that turn imports of another contract into functions of capabilities. They see no grant.
var translating = []string{"toolchain/extism.go"}

// TestNoSwitch checks that outside the folders of the kinds, no code checks the kind of a grant. It calls the grant.
func TestNoSwitch(t *testing.T) {
	seen := 0
	err := fs.WalkDir(os.DirFS(".."), ".", func(path string, e fs.DirEntry, err error) error {
		top, _, _ := strings.Cut(path, "/")
		if slices.Contains(own, top) {
			return fs.SkipDir
		}
		if err != nil || e.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") || slices.Contains(translating, path) {
			return err
		}
		seen++
		files := token.NewFileSet()
		f, err := parser.ParseFile(files, filepath.Join("..", path), nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		for _, at := range kindsTold(f) {
			t.Errorf("%s tells kinds of grants apart; the kind's folder has to say what differs", files.Position(at))
		}
		return nil
	})
	if err != nil || seen < 100 {
		t.Fatalf("%d files, %v", seen, err)
	}
}

var kindName = regexp.MustCompile(`^([A-Za-z]*Rights|[A-Za-z]*Kind|Interface)$`)

// kindsTold are the places where a file checks a kind, by the type of a grant, by the kind or interface in a
// kind's package, or by the name of that interface.
func kindsTold(f *ast.File) []token.Pos {
	kinds := map[string]bool{}
	for _, i := range f.Imports {
		folder, name := filepath.Split(strings.Trim(i.Path.Value, `"`))
		if strings.HasSuffix(folder, "/stile/capabilities/") {
			if i.Name != nil {
				name = i.Name.Name
			}
			kinds[name] = true
		}
	}
	var places []token.Pos
	told := func(e ast.Expr) {
		s, ok := e.(*ast.SelectorExpr)
		if !ok {
			return
		}
		if inner, ok := s.X.(*ast.SelectorExpr); ok { // kv.Kind.On
			s = inner
		}
		if name, ok := s.X.(*ast.Ident); ok && kinds[name.Name] && kindName.MatchString(s.Sel.Name) {
			places = append(places, e.Pos())
		}
	}
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.BasicLit:
			for _, k := range capabilities.Builtin.All() {
				if name, _, _ := strings.Cut(k.Interface, "@"); n.Kind == token.STRING && regexp.MustCompile(regexp.QuoteMeta(name)+`\b`).MatchString(n.Value) {
					places = append(places, n.Pos())
					break
				}
			}
		case *ast.TypeAssertExpr:
			told(n.Type)
		case *ast.CaseClause:
			for _, e := range n.List {
				told(e)
			}
		case *ast.KeyValueExpr:
			told(n.Key)
		case *ast.BinaryExpr:
			if n.Op != token.EQL && n.Op != token.NEQ {
				break
			}
			for _, e := range []ast.Expr{n.X, n.Y} {
				if c, ok := e.(*ast.CallExpr); ok {
					e = c.Fun
				}
				told(e)
			}
		}
		return true
	})
	return places
}

func TestKindsTold(t *testing.T) {
	for code, want := range map[string]int{
		`func f(g any) { _, _ = g.(kv.Rights) }`:                                                                      1,
		`func f(g any) { switch g.(type) { case kv.Rights, *kv.Rights, web.Rights: } }`:                               2,
		`func f(g any) { _, _ = g.(kv.Store); _ = kv.Rights{}; _, _ = g.(other.Rights) }`:                             0,
		`func f(k, g any) bool { return k == kv.Kind || web.Interface != k || kv.Kind.On() == g || k == other.Kind }`: 3,
		`func f(s string) { switch s { case kv.Interface, other.Interface: } }`:                                       1,
		`var m = map[string]int{kv.Interface: 1, web.Interface: 2}`:                                                   2,
		`func f(s site) { s.Configure(web.Kind, web.Options{}) }`:                                                     0,
		`const a, b = "stile:capability/poll@0.1.0", "stile:capability/"`:                                             0,
		`const a, b = "stile:capability/kv@0.1.0", "a stile:capability/http"`:                                         2,
	} {
		text := `package x; import ("github.com/stilehost/stile/capabilities/kv"; web "github.com/stilehost/stile/capabilities/http"; "x/other"); ` + code
		f, err := parser.ParseFile(token.NewFileSet(), "x.go", text, 0)
		if err != nil {
			t.Fatal(err)
		}
		if got := len(kindsTold(f)); got != want {
			t.Errorf("%s: %d places, want %d", code, got, want)
		}
	}
}

// TestSugar checks that the folder of each built-in kind declares the object of a binding, and that the folder has the name of the WIT interface.
func TestSugar(t *testing.T) {
	have, err := fs.Glob(stile.TypeScript(), "capabilities/*/sugar.json")
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	for _, k := range capabilities.Builtin.All() {
		name, _, _ := strings.Cut(strings.TrimPrefix(k.Interface, "stile:capability/"), "@")
		if file := "capabilities/" + name + "/sugar.json"; !slices.Contains(want, file) {
			want = append(want, file)
		}
	}
	for _, file := range want {
		if !slices.Contains(have, file) {
			t.Errorf("%s is missing: write it as {\"type\": \"NAME\"}, with the type that types.d.ts beside it exports for the object in env", file)
		}
	}
	for _, file := range have {
		if !slices.Contains(want, file) {
			t.Errorf("%s is in a folder that has the name of no kind's WIT interface: rename the folder", file)
		}
	}
}

var update = flag.Bool("update", false, "regenerate the imports of the world with everything")

// TestWIT checks that the interface of each kind is in a file named after it, and that the world with everything imports it.
func TestWIT(t *testing.T) {
	var imports strings.Builder
	add := func(iface string) {
		if line := "  import " + iface + ";\n"; !strings.Contains(imports.String(), line) {
			imports.WriteString(line)
		}
	}
	add(abi.PollInterface)
	for _, k := range capabilities.Builtin.All() {
		add(k.Interface)
		name, _, _ := strings.Cut(strings.TrimPrefix(k.Interface, "stile:capability/"), "@")
		if text, err := wit.Files().ReadFile("deps/capability/" + name + ".wit"); err != nil || !strings.Contains(string(text), "\ninterface "+name+" {") {
			t.Errorf("%s: %v", k.Interface, err)
		}
	}
	before, rest, _ := strings.Cut(wit.Extension(), "world with-everything {\n")
	_, after, _ := strings.Cut(rest, "  export tools;\n}")
	want := before + "world with-everything {\n" + imports.String() + "  export tools;\n}" + after
	if *update {
		if err := os.WriteFile("../wit/extension.wit", []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if wit.Extension() != want {
		t.Error("with-everything does not import what the kinds have; run go generate ./capabilities")
	}
}

// TestWants checks that a call without a binding of an interface is told how a manifest requests one.
func TestWants(t *testing.T) {
	for iface, want := range map[string]string{
		"stile:capability/http@0.1.0":      `"bindings": { "x": { "http": [ { "host": "..." } ] } }`,
		"stile:capability/workspace@0.1.0": `"bindings": { "x": { "workspace": { "path": "/", "access": "read" } } }`,
		"stile:capability/kv@0.1.0":        `"bindings": { "x": { "kv": true } }`,
		"stile:capability/clock@0.1.0":     `"bindings": { "x": { "clock": true } }`,
		"stile:capability/random@0.1.0":    `"bindings": { "x": { "random": true } }`,
		"stile:capability/console@0.1.0":   `"bindings": { "x": { "console": true } }`,
		"stile:capability/blob@0.1.0":      `"bindings": { "x": { "blob": true } }`,
		"stile:capability/code@0.1.0":      `"bindings": { "x": { "code": {} } }`,
		"stile:capability/tools@0.1.0":     `"bindings": { "x": { "tools": ["github_*"] } }`,
		"acme:crm/contacts@1.0.0":          `"bindings": { "x": { "acme:crm/contacts@1.0.0": {} } }`,
	} {
		if got := capabilities.Builtin.Wants(iface).Remedy("x"); got != want {
			t.Errorf("%s: got %s, want %s", iface, got, want)
		}
	}
}

// TestWanted checks that a denial names the manifest line that allows the operation, if a manifest can request it.
func TestWanted(t *testing.T) {
	for _, c := range []struct {
		grant capability.Grant
		want  string
	}{
		{kv.Rights{}, `"bindings": { "x\"": {"kv":true} }`},
		{workspace.Rights{Path: "/<a>", Access: workspace.ReadWrite}, `"bindings": { "x\"": {"workspace":{"path":"/<a>","access":"read-write"}} }`},
		{workspace.DiskRights{Path: "/a", Access: workspace.ReadWrite}, ""},
		{tools.Calls{Patterns: []string{"github_*"}}, `"bindings": { "x\"": {"tools":["github_*"]} }`},
	} {
		if got := (capability.Wanted{Grant: c.grant}).Remedy(`x"`); got != c.want {
			t.Errorf("%v: got %s, want %s", c.grant, got, c.want)
		}
	}
}
