package abi_test

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	reference "go.bytecodealliance.org/wit"
	"pgregory.net/rapid"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/wit"
)

// Everything the parser and the layout say is compared with wasm-tools, as the module go.bytecodealliance.org runs it.
func TestAgainstWasmTools(t *testing.T) {
	cases := map[string][]string{"contract": contract(t)}
	files, err := filepath.Glob("testdata/wit/*.wit")
	if err != nil || len(files) == 0 {
		t.Fatalf("no WIT files: %v", err)
	}
	for _, file := range files {
		cases[filepath.Base(file)] = []string{read(t, file)}
	}
	for seed := range 5 {
		cases[fmt.Sprint("random", seed)] = []string{randomWIT().Example(seed)}
	}
	for name, texts := range cases {
		t.Run(name, func(t *testing.T) {
			want, err := reference.DecodeWIT(strings.NewReader(oneText(texts)))
			if err != nil {
				t.Fatal(err)
			}
			got, err := abi.ParseFolder(asFolder(texts), unstable(texts)...)
			if err != nil {
				t.Fatal(err)
			}
			compareInterfaces(t, got, want)
			compareWorlds(t, got, want)
		})
	}
}

// TestFolder: the folder wit is one that wasm-tools reads, and holds what the package says.
func TestFolder(t *testing.T) {
	want, err := reference.LoadWIT("../wit")
	if err != nil {
		t.Fatal(err)
	}
	folder, err := abi.ParseFolder(os.DirFS("../wit"))
	if err != nil {
		t.Fatal(err)
	}
	texts, err := abi.Parse(contract(t)...)
	if err != nil {
		t.Fatal(err)
	}
	for _, got := range []*abi.Resolve{folder, texts} {
		compareInterfaces(t, got, want)
		compareWorlds(t, got, want)
	}
}

// The parser agrees with wasm-tools about what worlds mean, and which to refuse.
func TestRandomWorldsAgainstWasmTools(t *testing.T) {
	refused := 0
	for seed := range 40 {
		text := randomWorlds().Example(seed)
		want, wantErr := reference.DecodeWIT(strings.NewReader(text))
		got, err := abi.Parse(text)
		switch {
		case (err == nil) != (wantErr == nil):
			t.Errorf("seed %d: %v, and wasm-tools says %v of\n%s", seed, err, wantErr, text)
		case err != nil:
			refused++
		default:
			compareInterfaces(t, got, want)
			compareWorlds(t, got, want)
		}
		if t.Failed() {
			t.Fatalf("seed %d:\n%s", seed, text)
		}
	}
	if refused < 5 || refused > 35 {
		t.Errorf("%d of 40 worlds are refused, so little is compared", refused)
	}
}

func compareInterfaces(t *testing.T, got *abi.Resolve, want *reference.Resolve) {
	inPackages := slices.DeleteFunc(slices.Clone(want.Interfaces), func(i *reference.Interface) bool { return i.Name == nil })
	if len(got.Interfaces()) != len(inPackages) {
		t.Errorf("%d interfaces, want %d", len(got.Interfaces()), len(inPackages))
	}
	for _, w := range inPackages {
		name := wholeName(w.Package, *w.Name)
		g := got.Interface(name)
		if g == nil {
			t.Errorf("%s is missing", name)
			continue
		}
		if g.Doc != w.Docs.Contents {
			t.Errorf("%s: doc %q, want %q", name, g.Doc, w.Docs.Contents)
		}
		gotTypes := map[string]*abi.Type{}
		for _, typ := range g.Types {
			gotTypes[typ.Name] = typ
		}
		resources := 0
		w.TypeDefs.All()(func(typeName string, def *reference.TypeDef) bool {
			switch def.Kind.(type) {
			case *reference.Resource:
				r := g.Resources[resources]
				resources++
				if r.Name != typeName || r.Doc != def.Docs.Contents {
					t.Errorf("%s: resource %s %q, want %s %q", name, r.Name, r.Doc, typeName, def.Docs.Contents)
				}
			case *reference.Record, *reference.Variant, *reference.Enum, *reference.Flags:
				if gotTypes[typeName] == nil {
					t.Errorf("%s: type %s is missing", name, typeName)
					return true
				}
				compareType(t, name+" "+typeName, gotTypes[typeName], def)
				compareMemberDocs(t, name+" "+typeName, gotTypes[typeName], def)
				delete(gotTypes, typeName)
			}
			return true
		})
		if len(gotTypes) > 0 || resources != len(g.Resources) {
			t.Errorf("%s: types %v and %d of %d resources are not there", name, gotTypes, len(g.Resources)-resources, len(g.Resources))
		}
		var funcs []*reference.Function
		w.Functions.All()(func(_ string, f *reference.Function) bool {
			funcs = append(funcs, f)
			return true
		})
		compareFuncs(t, name, g.Funcs, funcs)
	}
}

func compareWorlds(t *testing.T, got *abi.Resolve, want *reference.Resolve) {
	if len(got.Worlds()) != len(want.Worlds) {
		t.Errorf("%d worlds, want %d", len(got.Worlds()), len(want.Worlds))
	}
	for _, w := range want.Worlds {
		name := wholeName(w.Package, w.Name)
		g := got.World(name)
		if g == nil {
			t.Errorf("%s is missing", name)
			continue
		}
		var imports, exports []string
		var importFuncs, exportFuncs []*reference.Function
		var types []string
		collect := func(names *[]string, funcs *[]*reference.Function) func(string, reference.WorldItem) bool {
			return func(key string, item reference.WorldItem) bool {
				switch item := item.(type) {
				case *reference.InterfaceRef:
					if item.Interface.Name == nil {
						*names = append(*names, key) // an interface of the world's own
					} else {
						*names = append(*names, wholeName(item.Interface.Package, *item.Interface.Name))
					}
				case *reference.TypeDef:
					if kind := fmt.Sprintf("%T", item.Kind); kind == "*wit.Resource" || kind == "*wit.Enum" || kind == "*wit.Record" {
						types = append(types, key)
					}
				case *reference.Function:
					renamed := *item // `include ... with` renames the key only
					renamed.Name = key
					*funcs = append(*funcs, &renamed)
				}
				return true
			}
		}
		w.Imports.All()(collect(&imports, &importFuncs))
		w.Exports.All()(collect(&exports, &exportFuncs))
		if got := interfaceNames(g.Imports); !slices.Equal(got, imports) {
			t.Errorf("%s imports\n%q, want\n%q", name, got, imports)
		}
		if got := interfaceNames(g.Exports); !slices.Equal(got, exports) {
			t.Errorf("%s exports\n%q, want\n%q", name, got, exports)
		}
		var gotTypes []string
		for _, r := range g.Resources {
			gotTypes = append(gotTypes, r.Name)
		}
		for _, typ := range g.Types {
			gotTypes = append(gotTypes, typ.Name)
		}
		slices.Sort(types)
		slices.Sort(gotTypes)
		if !slices.Equal(gotTypes, types) {
			t.Errorf("%s declares %q, want %q", name, gotTypes, types)
		}
		compareFuncs(t, name, g.ImportFuncs, importFuncs)
		compareFuncs(t, name, g.ExportFuncs, exportFuncs)
	}
}

func compareFuncs(t *testing.T, where string, got []*abi.Func, want []*reference.Function) {
	if len(got) != len(want) {
		t.Errorf("%s: %d functions, want %d", where, len(got), len(want))
		return
	}
	for i, w := range want {
		g, where := got[i], where+" "+w.Name
		if g.Name != w.Name || g.Doc != w.Docs.Contents || len(g.Params) != len(w.Params) {
			t.Errorf("%s: got %s %q with %d parameters, want %q with %d", where, g.Name, g.Doc, len(g.Params), w.Docs.Contents, len(w.Params))
			continue
		}
		for i, p := range w.Params {
			if g.Params[i].Name != p.Name {
				t.Errorf("%s: parameter %s, want %s", where, g.Params[i].Name, p.Name)
			}
			compareType(t, where+" "+p.Name, g.Params[i].Type, p.Type)
		}
		if (g.Result != nil) != (len(w.Results) > 0) {
			t.Errorf("%s: result %v, want %v", where, g.Result, w.Results)
		} else if g.Result != nil {
			compareType(t, where+" result", g.Result, w.Results[0].Type)
		}
		for direction, lower := range map[reference.Direction]bool{reference.Imported: true, reference.Exported: false} {
			core := w.CoreFunction(direction)
			var params, results []reference.Type
			for _, p := range core.Params {
				params = append(params, p.Type.Flat()...)
			}
			for _, p := range core.Results {
				results = append(results, p.Type.Flat()...)
			}
			gotParams, gotResults := g.Core(lower)
			if !slices.Equal(gotParams, flat(params)) || !slices.Equal(gotResults, flat(results)) {
				t.Errorf("%s %v: core %v -> %v, want %v -> %v", where, direction, gotParams, gotResults, flat(params), flat(results))
			}
		}
	}
}

func compareType(t *testing.T, where string, got *abi.Type, want reference.Type) {
	if g, w := describe(got), describeReference(want); g != w {
		t.Errorf("%s: type\n%s, want\n%s", where, g, w)
		return
	}
	if uintptr(got.Size()) != want.Size() || uintptr(got.Align()) != want.Align() {
		t.Errorf("%s: size %d, alignment %d, want %d and %d", where, got.Size(), got.Align(), want.Size(), want.Align())
	}
	if !slices.Equal(got.Flat(), flat(want.Flat())) {
		t.Errorf("%s: flat %v, want %v", where, got.Flat(), flat(want.Flat()))
	}
}

func compareMemberDocs(t *testing.T, where string, got *abi.Type, want *reference.TypeDef) {
	if got.Doc != want.Docs.Contents {
		t.Errorf("%s: doc %q, want %q", where, got.Doc, want.Docs.Contents)
	}
	switch kind := want.Kind.(type) {
	case *reference.Record:
		for i, f := range kind.Fields {
			if got.Fields[i].Doc != f.Docs.Contents {
				t.Errorf("%s.%s: doc %q, want %q", where, f.Name, got.Fields[i].Doc, f.Docs.Contents)
			}
		}
	case *reference.Variant:
		for i, c := range kind.Cases {
			if got.Cases[i].Doc != c.Docs.Contents {
				t.Errorf("%s.%s: doc %q, want %q", where, c.Name, got.Cases[i].Doc, c.Docs.Contents)
			}
		}
	}
}

func wholeName(pkg *reference.Package, name string) string {
	whole := pkg.Name.Namespace + ":" + pkg.Name.Package + "/" + name
	if pkg.Name.Version != nil {
		whole += "@" + pkg.Name.Version.String()
	}
	return whole
}

func interfaceNames(interfaces []*abi.Interface) []string {
	var names []string
	for _, i := range interfaces {
		names = append(names, i.Name)
	}
	return names
}

func flat(types []reference.Type) []abi.CoreType {
	var core []abi.CoreType
	for _, typ := range types {
		switch typ.(type) {
		case reference.F32:
			core = append(core, abi.CoreF32)
		case reference.F64:
			core = append(core, abi.CoreF64)
		case reference.S64, reference.U64:
			core = append(core, abi.CoreI64)
		default:
			core = append(core, abi.CoreI32)
		}
	}
	return core
}

// describe writes a type out, down to the primitive types.
func describe(t *abi.Type) string {
	if t == nil {
		return "_"
	}
	text := t.Kind.String()
	if t.Name != "" {
		text += " " + owner(t.Interface) + "." + t.Name
	}
	var parts []string
	for _, f := range t.Fields {
		parts = append(parts, f.Name+": "+describe(f.Type))
	}
	for _, c := range t.Cases {
		parts = append(parts, c.Name+": "+describe(c.Type))
	}
	parts = append(parts, t.Labels...)
	switch t.Kind {
	case abi.KindList, abi.KindOption:
		parts = append(parts, describe(t.Elem))
	case abi.KindResult:
		parts = append(parts, describe(t.Ok), describe(t.Err))
	case abi.KindOwn, abi.KindBorrow:
		parts = append(parts, owner(t.Resource.Interface)+"."+t.Resource.Name)
	default:
	}
	if len(parts) == 0 {
		return text
	}
	return text + "(" + strings.Join(parts, ", ") + ")"
}

// owner names the declarer of a type. It is "a world" for a world and for an interface inside it, which wasm-tools does not name.
func owner(i *abi.Interface) string {
	if i == nil || !strings.Contains(i.Name, ":") {
		return "a world"
	}
	return i.Name
}

func describeReference(t reference.Type) string {
	if t == nil {
		return "_"
	}
	def, ok := t.(*reference.TypeDef)
	if !ok {
		return strings.ToLower(strings.TrimPrefix(fmt.Sprintf("%T", t), "wit."))
	}
	switch kind := def.Kind.(type) {
	case *reference.TypeDef:
		return describeReference(kind)
	case reference.Type: // an alias of a primitive type
		return describeReference(kind)
	}
	def = def.Root()
	kind, name := "", ""
	var parts []string
	switch k := def.Kind.(type) {
	case *reference.Record:
		kind, name = "record", def.TypeName()
		for _, f := range k.Fields {
			parts = append(parts, f.Name+": "+describeReference(f.Type))
		}
	case *reference.Variant:
		kind, name = "variant", def.TypeName()
		for _, c := range k.Cases {
			parts = append(parts, c.Name+": "+describeReference(c.Type))
		}
	case *reference.Enum:
		kind, name = "enum", def.TypeName()
		for _, c := range k.Cases {
			parts = append(parts, c.Name+": _")
		}
	case *reference.Flags:
		kind, name = "flags", def.TypeName()
		for _, f := range k.Flags {
			parts = append(parts, f.Name)
		}
	case *reference.Tuple:
		kind = "tuple"
		for i, typ := range k.Types {
			parts = append(parts, fmt.Sprint(i, ": ")+describeReference(typ))
		}
	case *reference.List:
		kind, parts = "list", []string{describeReference(k.Type)}
	case *reference.Option:
		kind, parts = "option", []string{describeReference(k.Type)}
	case *reference.Result:
		kind, parts = "result", []string{describeReference(k.OK), describeReference(k.Err)}
	case *reference.Resource:
		kind, parts = "own", []string{ownerName(def) + "." + def.TypeName()}
	case *reference.Own:
		kind, parts = "own", []string{ownerName(k.Type.Root()) + "." + k.Type.Root().TypeName()}
	case *reference.Borrow:
		root := k.Type.Root()
		kind, parts = "borrow", []string{ownerName(root) + "." + root.TypeName()}
	default:
		kind = fmt.Sprintf("%T", k)
	}
	if name != "" {
		kind += " " + ownerName(def) + "." + name
	}
	return kind + "(" + strings.Join(parts, ", ") + ")"
}

func ownerName(def *reference.TypeDef) string {
	if i, ok := def.Owner.(*reference.Interface); ok && i.Name != nil {
		return wholeName(i.Package, *i.Name)
	}
	return "a world"
}

// oneText makes one text of several: wasm-tools reads one from its standard input.
func oneText(texts []string) string {
	var b strings.Builder
	for i, text := range texts {
		if i > 0 {
			start := strings.Index(text, "package ")
			end := start + strings.IndexByte(text[start:], ';')
			text = text[start:end] + "{" + text[end+1:] + "}"
		}
		b.WriteString(text + "\n")
	}
	return b.String()
}

// asFolder lays texts out as a folder: the first is its package, the others what that needs.
func asFolder(texts []string) fs.FS {
	folder := fstest.MapFS{"main.wit": &fstest.MapFile{Data: []byte(texts[0])}}
	for i, text := range texts[1:] {
		folder[fmt.Sprintf("deps/%d.wit", i)] = &fstest.MapFile{Data: []byte(text)}
	}
	return folder
}

// unstable lists the features that texts mention, which wasm-tools is told to take all of.
func unstable(texts []string) []string {
	var features []string
	for _, text := range texts {
		for _, found := range regexp.MustCompile(`@unstable\(feature = ([a-z0-9-]+)\)`).FindAllStringSubmatch(text, -1) {
			features = append(features, found[1])
		}
	}
	return features
}

// contract is the WIT that Stile itself consists of.
func contract(t testing.TB) []string {
	return []string{wit.Extension(), wit.Capability()}
}

func read(t testing.TB, file string) string {
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// randomWIT makes a text with one interface of random types and functions.
func randomWIT() *rapid.Generator[string] {
	return rapid.Custom(func(t *rapid.T) string {
		var b strings.Builder
		b.WriteString("package test:random;\n\ninterface random {\n  resource res;\n")
		named := []string{"res", "borrow<res>"}
		for i := range rapid.IntRange(1, 12).Draw(t, "types") {
			name := "t-" + letters(i)
			kind := rapid.SampledFrom([]string{"record", "variant", "enum", "flags", "type"}).Draw(t, "kind")
			if kind == "type" {
				fmt.Fprintf(&b, "  type %s = %s;\n", name, randomType(t, named, 3))
				named = append(named, name)
				continue
			}
			fmt.Fprintf(&b, "  %s %s {", kind, name)
			most := 32
			if kind == "record" || kind == "variant" {
				most = 6
			}
			for j := range rapid.IntRange(1, most).Draw(t, "members") {
				b.WriteString(" m-" + letters(j))
				switch {
				case kind == "record":
					b.WriteString(": " + randomType(t, named, 2))
				case kind == "variant" && rapid.Bool().Draw(t, "payload"):
					b.WriteString("(" + randomType(t, named, 2) + ")")
				}
				b.WriteString(",")
			}
			b.WriteString(" }\n")
			named = append(named, name)
		}
		for i := range rapid.IntRange(1, 12).Draw(t, "funcs") {
			fmt.Fprintf(&b, "  f-%s: func(", letters(i))
			for j := range rapid.IntRange(0, 6).Draw(t, "params") {
				fmt.Fprintf(&b, "p-%s: %s, ", letters(j), randomType(t, named, 3))
			}
			b.WriteString(");\n")
			// A result must not contain a borrow, so it is made of none.
			fmt.Fprintf(&b, "  g-%s: func() -> %s;\n", letters(i), randomType(t, []string{"res"}, 4))
		}
		b.WriteString("}\n")
		return b.String()
	})
}

func randomType(t *rapid.T, named []string, depth int) string {
	simple := slices.Concat(named, []string{"bool", "u8", "s16", "u32", "s64", "f32", "f64", "char", "string", "result"})
	form := rapid.IntRange(0, 9).Draw(t, "form")
	if depth == 0 || form < 5 {
		return rapid.SampledFrom(simple).Draw(t, "simple")
	}
	inner := func() string { return randomType(t, named, depth-1) }
	switch form {
	case 5:
		return "list<" + inner() + ">"
	case 6:
		return "option<" + inner() + ">"
	case 7:
		return "result<_, " + inner() + ">"
	case 8:
		return "result<" + inner() + ", " + inner() + ">"
	default:
		return "tuple<" + inner() + ", " + inner() + ", " + inner() + ">"
	}
}

func letters(n int) string { return string([]rune{'a' + rune(n/26), 'a' + rune(n%26)}) }

// randomWorlds makes a text with interfaces and worlds that use, include, import and export each other, from so few names that many
// clash.
func randomWorlds() *rapid.Generator[string] {
	return rapid.Custom(func(t *rapid.T) string {
		var b strings.Builder
		b.WriteString("package test:worlds@1.0.0;\n")
		pick := func(label string, from ...string) string { return rapid.SampledFrom(from).Draw(t, label) }
		interfaces := rapid.IntRange(1, 5).Draw(t, "interfaces")
		use := func(before int) string {
			return fmt.Sprintf("use i%s.{%s as %s};", letters(rapid.IntRange(0, before-1).Draw(t, "from")), pick("type", "t", "r"), pick("as", "x", "y", "z"))
		}
		for n := range interfaces {
			fmt.Fprintf(&b, "interface i%s { record t { a: u8 } resource r;", letters(n))
			if n > 0 && rapid.Bool().Draw(t, "uses") {
				b.WriteString(use(n))
			}
			b.WriteString("}\n")
		}
		worlds := rapid.IntRange(1, 5).Draw(t, "worlds")
		for n := range worlds {
			fmt.Fprintf(&b, "world w%s {", letters(n))
			for range rapid.IntRange(0, 6).Draw(t, "items") {
				side := pick("side", "import", "export")
				name := pick("name", "a", "b", "c", "d")
				switch rapid.IntRange(0, 7).Draw(t, "item") {
				case 0:
					b.WriteString(use(interfaces))
				case 1, 2:
					fmt.Fprintf(&b, "%s i%s;", side, letters(rapid.IntRange(0, interfaces-1).Draw(t, "interface")))
				case 3:
					fmt.Fprintf(&b, "%s %s: func(p: u8) -> string;", side, name)
				case 4:
					fmt.Fprintf(&b, "%s %s: interface { %s f: func(); }", side, name, use(interfaces))
				case 5:
					// It is never renamed: this wasm-tools left its functions as they were.
					fmt.Fprintf(&b, "resource r%s { constructor(); m: func() -> r%[1]s; } import of-%[1]s: func(a: borrow<r%[1]s>);", name)
				case 6:
					fmt.Fprintf(&b, "enum %s { one }", name)
				default:
					if n == 0 {
						continue
					}
					fmt.Fprintf(&b, "include w%s", letters(rapid.IntRange(0, n-1).Draw(t, "world")))
					if rapid.Bool().Draw(t, "with") {
						fmt.Fprintf(&b, " with { %s as %s }", name, pick("as", "a", "e", "f"))
					} else {
						b.WriteString(";")
					}
				}
			}
			b.WriteString("}\n")
		}
		return b.String()
	})
}
