package inspect

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/dustin/go-humanize"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/capabilities"
	"github.com/stilehost/stile/capability"
	"github.com/stilehost/stile/extension"
	"github.com/stilehost/stile/host"
	"github.com/stilehost/stile/internal/printable"
	"github.com/stilehost/stile/internal/wasmbin"
)

// Component is what is known of a component that came without source. The host has checked all of it except Producers, which the file
// says of itself. All text in it is printable.
type Component struct {
	Digest  string            `json:"digest"` // SHA-256 of its bytes, in hex
	Imports []ComponentImport `json:"imports"`
	Exports []string          `json:"exports"`
	// Producers are the tools that made it, as the file says. Anybody can write anything there.
	Producers []Producer `json:"producers,omitempty"`
	// CompileSeconds of processor time and CompileBytes of memory are the most that compiling it takes, by estimate.
	CompileSeconds float64 `json:"compileSeconds"`
	CompileBytes   int64   `json:"compileBytes"`
	// Omitted is how many imports, functions, exports and producers are not listed, since there are too many.
	Omitted int `json:"omitted,omitempty"`
}

// ComponentImport is an interface that a component imports.
type ComponentImport struct {
	Name string `json:"name"`
	// Kind is "capability", or "wasi" for an import that the empty world answers.
	Kind      string              `json:"kind"`
	Functions []ComponentFunction `json:"functions"`
	// Bindings are the bindings of the manifest, and those of every call, that the functions use or can be used with. Unbound is set if they need one and there is none.
	Bindings []string `json:"bindings,omitempty"`
	Unbound  bool     `json:"unbound,omitempty"`
}

// ComponentFunction is a function that a component imports.
type ComponentFunction struct {
	Name string `json:"name"`
	// Answer says what the empty world does when it is called.
	Answer string `json:"answer,omitempty"`
}

// Producer is a tool that made a component.
type Producer struct {
	// Field is "language", "sdk" or "processed-by".
	Field   string `json:"field"`
	Name    string `json:"name"`
	Version string `json:"version,omitempty"`
}

// ComponentInput is what the report on a component without source is made from.
type ComponentInput struct {
	// Kinds say which interfaces need a binding. Default: [capabilities.Builtin].
	Kinds capability.Set
	// Wasm are the bytes of Component, which was loaded from them.
	Wasm      []byte
	Component *host.Component
	// Bindings are those that the manifest asks for, and WASI says which of them serve files and http of WASI.
	Bindings []extension.Binding
	WASI     abi.WASI
}

// Limits of the report on a component.
const (
	maxImports   = 200
	maxImported  = 1000 // of all imports
	maxExports   = 100
	maxProducers = 32
	maxName      = 100 // bytes of a name that a component chose
	// maxInside is how deep components are looked into for what they say of their origin.
	maxInside = 3
)

// InspectComponent makes the report on a component without source. The same input gives the same report. An error is a fault of the host.
func InspectComponent(in ComponentInput) (Report, error) {
	if len(in.Kinds.All()) == 0 {
		in.Kinds = capabilities.Builtin
	}
	c := &Component{Digest: in.Component.Digest(), Imports: []ComponentImport{}, Exports: []string{}}
	r := Report{ComponentSize: int64(len(in.Wasm)), Component: c}
	cost, err := host.EstimateCompile(in.Wasm)
	if err != nil {
		return r, fmt.Errorf("estimate what compiling takes: %w", err)
	}
	c.CompileSeconds, c.CompileBytes = cost.Time.Seconds(), cost.Memory
	asked := map[string][]string{} // names of bindings by interface
	for _, b := range extension.Merge(in.Bindings, extension.Defaults(in.Kinds)) {
		asked[b.Grant.Interface()] = append(asked[b.Grant.Interface()], b.Name)
	}
	needs := map[string]bool{} // interfaces that nothing can be done with without a binding
	for _, k := range in.Kinds.All() {
		needs[k.Interface] = true
	}
	served := serves(in.WASI)
	c.imports(in.Component.Imports(), asked, needs, served)
	r.compareBindings(in.Kinds, in.Component.Imports(), in.Bindings, asked, served)
	exports, err := in.Component.Exports()
	if err != nil {
		return r, err
	}
	for _, name := range exports {
		if listed(&c.Exports, maxExports, &c.Omitted) {
			c.Exports = append(c.Exports, shortName(name))
		}
	}
	c.producers(in.Wasm)
	return r, nil
}

// listed reports whether a list has room, and counts what has none.
func listed[T any](list *[]T, most int, omitted *int) bool {
	if len(*list) < most {
		return true
	}
	*omitted++
	return false
}

func shortName(name string) string { return printable.OneLine(printable.Short(name, maxName)) }

// imports lists capabilities first, because there can be no more of them than the host has: no number of others crowds them out.
func (c *Component) imports(all []host.Import, asked map[string][]string, needs map[string]bool, served map[string][]string) {
	all = slices.Clone(all)
	slices.SortStableFunc(all, func(a, b host.Import) int { return cmp.Compare(rank(a.Kind), rank(b.Kind)) })
	functions := 0
	for _, i := range all {
		if !listed(&c.Imports, maxImports, &c.Omitted) {
			continue
		}
		shown := ComponentImport{Name: shortName(i.Name), Kind: i.Kind, Functions: []ComponentFunction{}}
		for _, of := range interfacesOf(i) {
			if named, apart := served[of]; apart && i.Kind == "wasi" {
				shown.Bindings = append(shown.Bindings, named...)
			} else {
				shown.Bindings = append(shown.Bindings, asked[of]...)
			}
		}
		shown.Unbound = needs[i.Name] && len(asked[i.Name]) == 0 && obtains(i)
		for _, f := range i.Funcs {
			if functions++; functions > maxImported {
				c.Omitted++
				continue
			}
			shown.Functions = append(shown.Functions, ComponentFunction{shortName(f.Name), f.Answer})
		}
		c.Imports = append(c.Imports, shown)
	}
}

// serves are the names of the bindings that serve WASI, by the interfaces of which only named ones do.
func serves(w abi.WASI) map[string][]string {
	files := slices.Sorted(maps.Values(w.Filesystem))
	served := map[string][]string{abi.WorkspaceInterface: slices.Compact(files), abi.HTTPInterface: nil}
	if w.HTTP != "" {
		served[abi.HTTPInterface] = []string{w.HTTP}
	}
	return served
}

// interfacesOf are the interfaces of capabilities whose bindings an import uses: its own, or those that WASI uses.
func interfacesOf(i host.Import) []string {
	if i.Kind != "wasi" {
		return []string{i.Name}
	}
	var all []string
	for _, f := range i.Funcs {
		if f.Uses != "" && !slices.Contains(all, f.Uses) {
			all = append(all, f.Uses)
		}
	}
	return all
}

// obtains reports whether a component can ask its env for a binding of an interface. Otherwise it uses handles that others give it, such as
// the blob with the body of a response.
func obtains(i host.Import) bool {
	return slices.ContainsFunc(i.Funcs, func(f host.ImportedFunc) bool { return f.Name == "get" })
}

func rank(kind string) int { return slices.Index([]string{"capability", "module", "wasi"}, kind) }

// compareBindings compares the interfaces that a component imports with the bindings of its manifest.
func (r *Report) compareBindings(kinds capability.Set, imports []host.Import, bindings []extension.Binding, asked, served map[string][]string) {
	has := func(name string) bool {
		return slices.ContainsFunc(imports, func(i host.Import) bool { return i.Name == name && obtains(i) })
	}
	for _, b := range bindings {
		use := Use{Name: printable.OneLine(b.Name)}
		for _, i := range imports {
			if len(i.Funcs) > 0 && len(use.Places) < maxPlaces && slices.Contains(interfacesOf(i), b.Grant.Interface()) {
				if named, apart := served[b.Grant.Interface()]; i.Kind == "wasi" && apart && !slices.Contains(named, b.Name) {
					continue
				}
				use.Places = append(use.Places, Place{File: "import " + shortName(i.Name)})
			}
		}
		if use.Places == nil {
			r.BindingsUnused = append(r.BindingsUnused, use.Name)
		} else {
			r.BindingsUsed = append(r.BindingsUsed, use)
		}
	}
	slices.Sort(r.BindingsUnused)
	slices.SortFunc(r.BindingsUsed, func(a, b Use) int { return strings.Compare(a.Name, b.Name) })
	missing := map[string][]string{} // kinds by their interface
	for _, k := range kinds.All() {
		if has(k.Interface) && asked[k.Interface] == nil {
			missing[k.Interface] = append(missing[k.Interface], k.Name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(missing)) {
		r.UndeclaredBindings = append(r.UndeclaredBindings, Use{Name: strings.Join(missing[name], " or "), Places: []Place{{File: "import " + name}}})
	}
}

// producers reads the sections in which toolchains say what made a component, and its modules and components.
func (c *Component) producers(wasm []byte) {
	c.readProducers(wasm, maxInside)
	slices.SortFunc(c.Producers, func(a, b Producer) int {
		return cmp.Or(strings.Compare(a.Field, b.Field), strings.Compare(a.Name, b.Name), strings.Compare(a.Version, b.Version))
	})
	c.Producers = slices.Compact(c.Producers)
}

func (c *Component) readProducers(wasm []byte, inside int) {
	component := strings.HasPrefix(string(wasm[:min(len(wasm), len(wasmbin.ComponentHeader))]), wasmbin.ComponentHeader)
	if len(wasm) < len(wasmbin.ComponentHeader) {
		return
	}
	// What cannot be read says nothing: nobody relies on it.
	_ = wasmbin.EachSection(wasm, func(id byte, r *wasmbin.Reader) error {
		switch {
		case id == wasmbin.SectionCustom:
			if r.Name() == "producers" && r.Err == nil {
				c.readProducersSection(r)
			}
		case component && inside > 0 && (id == wasmbin.SectionCoreModule || id == wasmbin.SectionComponent):
			c.readProducers(r.Rest(), inside-1)
		}
		return nil
	})
}

func (c *Component) readProducersSection(r *wasmbin.Reader) {
	for range r.Count() {
		field := shortName(r.Name())
		for range r.Count() {
			p := Producer{field, shortName(r.Name()), shortName(r.Name())}
			if r.Err != nil {
				return
			}
			if !slices.Contains(c.Producers, p) && listed(&c.Producers, maxProducers, &c.Omitted) {
				c.Producers = append(c.Producers, p)
			}
		}
	}
}

// about says what the functions need, or who answers them.
func (i ComponentImport) about() string {
	switch {
	case i.Kind == "wasi" && len(i.Bindings) > 0:
		return "empty world, with " + strings.Join(i.Bindings, ", ")
	case i.Kind == "wasi":
		return "empty world"
	case i.Unbound:
		return "no binding of the manifest"
	case len(i.Bindings) > 0:
		return "with " + strings.Join(i.Bindings, ", ")
	default:
		return "needs a handle"
	}
}

// functions lists the functions, those with the same answer together.
func (i ComponentImport) functions() string {
	var answers []string
	names := map[string][]string{}
	for _, f := range i.Functions {
		if names[f.Answer] == nil {
			answers = append(answers, f.Answer)
		}
		names[f.Answer] = append(names[f.Answer], f.Name)
	}
	groups := make([]string, len(answers))
	for n, answer := range answers {
		groups[n] = strings.TrimSuffix(strings.Join(names[answer], ", ")+": "+answer, ": ")
	}
	return strings.Join(groups, "; ")
}

// Lines describe the component for a terminal, one printable line each.
func (c *Component) Lines() (lines []string) {
	line := func(format string, args ...any) { lines = append(lines, printable.Line(fmt.Sprintf(format, args...))) }
	for _, i := range c.Imports {
		if len(i.Functions) == 0 {
			line("imports %s (types only)", i.Name)
		} else {
			line("imports %s (%s): %s", i.Name, i.about(), i.functions())
		}
	}
	if len(c.Imports) == 0 {
		line("imports: none")
	}
	line("exports: %s", strings.Join(c.Exports, ", "))
	for _, p := range c.Producers {
		line("says of itself, unchecked: %s %s", p.Field, strings.TrimSpace(p.Name+" "+p.Version))
	}
	if len(c.Producers) == 0 {
		line("says nothing of the tools that made it")
	}
	line("compilation: at most %.3f s of processor time and %s of memory, by estimate", c.CompileSeconds, humanize.IBytes(uint64(max(0, c.CompileBytes))))
	if c.Omitted > 0 {
		line("%d more names are not listed", c.Omitted)
	}
	return lines
}
