package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/capabilities"
	"github.com/stilehost/stile/extension"
	"github.com/stilehost/stile/host"
	"github.com/stilehost/stile/internal/printable"
	"github.com/stilehost/stile/toolchain"
)

type inspectCommand struct {
	File     string `arg:"" help:"Component or Extism plug-in (.wasm), or a source, which is built first, or a folder with one of them."`
	Manifest string `placeholder:"FILE" help:"Manifest that says which imports serve a binding, or a folder with one. Default: the one beside the file, if there is one."`
	witFlag
	asJSON
}

// Help implements kong.HelpProvider.
func (*inspectCommand) Help() string {
	helper, most := host.CompileLimits()
	return fmt.Sprintf(`For each imported function, the command shows which handle a call must pass. Without a handle, the component can do nothing. A component with any other import is refused, and the error names the import.

Code in TypeScript and JavaScript imports each interface with a method that it names, and several kinds share names such as list and get. So the imports can include kinds that it never uses. With a manifest, each import says for which binding it is, or that it is unused. stile build --manifest leaves out what is unused.

The estimate is an upper bound on the cost of compiling the component. It also says where compilation happens: in this process, in a helper process under limits of the operating system (from %.1f s on), or not at all (stile refuses a component above %.0f s or %s).

Examples:

    stile inspect notes.wasm
    stile inspect notes.ts --manifest notes.json
    stile inspect notes.ts --json`, helper.Seconds(), most.Time.Seconds(), printable.Size(most.Memory))
}

// inspection is everything that stile inspect reports about a component.
type inspection struct {
	File   string `json:"file"`
	Size   int    `json:"size"`
	Digest string `json:"digest"`
	Extism bool   `json:"extism,omitempty"` // whether it says that it was an Extism plug-in
	// Manifest is the one that says which imports serve a binding.
	Manifest string          `json:"manifest,omitempty"`
	Imports  []importedThing `json:"imports"`
	Exports  []string        `json:"exports"`
	Steps    bool            `json:"steps"` // whether calls are made in steps
	// Start is how its instances begin, if the component says so. Anybody can write anything there.
	Start    string         `json:"start,omitempty"`
	Tools    []tool         `json:"tools"`
	Sections map[string]int `json:"sections"` // sizes of our custom sections, in bytes
	Compile  compilation    `json:"compile"`
	defined  []abi.Definition
	sections []string
}

// compilation is the estimated cost of compiling a component.
type compilation struct {
	Seconds float64   `json:"seconds"` // of processor time
	Bytes   int64     `json:"bytes"`   // of memory
	Lane    host.Lane `json:"lane"`
	cost    host.CompileCost
}

func newCompilation(c host.CompileCost) compilation {
	return compilation{c.Time.Seconds(), c.Memory, c.Lane(), c}
}

func (c compilation) String() string {
	where := map[host.Lane]string{host.LaneInProcess: "in this process", host.LaneHelper: "in a helper process", host.LaneRefused: "refused"}
	return fmt.Sprintf("at most %v by estimate; %s", c.cost, where[c.Lane])
}

type importedThing struct {
	Name string `json:"name"`
	// Kind is "capability", "wasi" for an import that the empty world serves, or "module" for a shared core module.
	Kind string `json:"kind"`
	// Bindings are those of the manifest, and those that every tool has, that the import serves. Unused is set if there is a manifest, and none is
	// served.
	Bindings  []string           `json:"bindings,omitempty"`
	Unused    bool               `json:"unused,omitempty"`
	Functions []importedFunction `json:"functions"`
}

type importedFunction struct {
	Name string `json:"name"`
	// Handle is the parameter that the function cannot be called without. Functions of the empty world need none.
	Handle string `json:"handle,omitempty"`
	// Answer says what a function of the empty world does.
	Answer string `json:"answer,omitempty"`
}

// Run implements the command.
func (c *inspectCommand) Run(ctx context.Context, s *streams) (err error) {
	c.File = entryOf(c.File)
	m, err := c.readManifest()
	if err != nil {
		return err
	}
	n, err := c.openSession(ctx, s)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, n.Close()) }()
	wasm, err := n.read(ctx, c.File, wants{})
	if err != nil {
		return err
	}
	cost, err := host.EstimateCompile(wasm)
	if refused, ok := errors.AsType[*host.CompileCostError](err); ok {
		if err := c.refused(s, wasm, refused.Cost); err != nil {
			return err
		}
	}
	component, err := n.loadComponent(ctx, c.File, wasm) // loading reports why the component is refused
	if err != nil {
		return err
	}
	tools, err := component.Tools(ctx)
	if err != nil {
		return err
	}
	exports, err := component.Exports()
	if err != nil {
		return err
	}
	i := inspection{
		File: c.File, Size: len(wasm), Digest: "sha256:" + component.Digest(), Extism: toolchain.MadeOfExtism(wasm), Imports: imports(component.Imports()), Exports: exports, Steps: component.Stepwise(),
		Tools: toolsOf(tools), Sections: map[string]int{}, defined: tools, sections: component.Sections(),
		Compile: newCompilation(cost),
	}
	i.marks(c.Manifest, m)
	i.Start = line(string(component.Section(toolchain.StartSection)), maxShownStart)
	for _, name := range i.sections {
		i.Sections[name] = len(component.Section(name))
	}
	if c.JSON {
		return printJSON(s.out, i)
	}
	_, err = io.WriteString(s.out, i.text())
	return err
}

// readManifest reads the manifest that is named, or the one beside the file if that is valid.
func (c *inspectCommand) readManifest() (*extension.Manifest, error) {
	if c.Manifest != "" {
		c.Manifest = manifestFile(c.Manifest)
		return readManifest(c.Manifest)
	}
	beside := manifestBeside(c.File)
	if beside == "" {
		return nil, nil
	}
	m, err := readManifest(beside)
	if err != nil {
		return nil, nil //nolint:nilerr // nobody named it
	}
	c.Manifest = beside
	return m, nil
}

// marks says for which bindings of a manifest, which may be nil, and of the defaults each import is. Interfaces without get serve values that others
// return.
func (i *inspection) marks(file string, m *extension.Manifest) {
	bindings := extension.Defaults(capabilities.Builtin)
	if m != nil {
		i.Manifest = file
		bindings = extension.Merge(m.Bindings, bindings)
	}
	for k := range i.Imports {
		thing := &i.Imports[k]
		for _, b := range bindings {
			if b.Grant.Interface() == thing.Name {
				thing.Bindings = append(thing.Bindings, b.Name)
			}
		}
		bound := slices.ContainsFunc(thing.Functions, func(f importedFunction) bool { return f.Name == "get" })
		thing.Unused = m != nil && thing.Kind == "capability" && bound && thing.Bindings == nil
	}
}

// refused prints what is known about a component that is too expensive to compile.
func (c *inspectCommand) refused(s *streams, wasm []byte, cost host.CompileCost) error {
	takes := newCompilation(cost)
	if c.JSON {
		return printJSON(s.out, struct {
			File    string      `json:"file"`
			Size    int         `json:"size"`
			Compile compilation `json:"compile"`
		}{c.File, len(wasm), takes})
	}
	_, err := fmt.Fprintf(s.out, "%s: %d bytes\ncompilation: %v\n", printable.Line(c.File), len(wasm), takes)
	return err
}

func imports(from []host.Import) []importedThing {
	things := make([]importedThing, len(from))
	for i, item := range from {
		things[i] = importedThing{Name: printable.Text(item.Name), Kind: item.Kind, Functions: []importedFunction{}}
		for _, f := range item.Funcs {
			things[i].Functions = append(things[i].Functions, importedFunction{printable.Text(f.Name), printable.Text(f.Handle), f.Answer})
		}
	}
	return things
}

// maxShownName is how many bytes of a name chosen by a component are shown. It fits into a row of a table.
const maxShownName = 100

// maxShownStart is how many bytes are shown of what a component says about its start.
const maxShownStart = 400

// text returns an inspection for a person.
func (i *inspection) text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %d bytes, %s\ncompilation: %v\n", printable.Line(i.File), i.Size, i.Digest, i.Compile)
	if i.Extism {
		b.WriteString("made of: an Extism plug-in, as it says\n")
	}
	b.WriteString("\nimports\n")
	held, unused, unknown := 0, 0, 0
	for _, thing := range i.Imports {
		switch thing.Kind {
		case "module":
			fmt.Fprintf(&b, "  %s  core module: shared code, without authority; for other hosts, build with --standalone\n", line(thing.Name, maxShownName))
			continue
		case "wasi":
			fmt.Fprintf(&b, "  %s  empty world: no environment, arguments or sockets; files and http only of bindings\n", thing.Name)
		default:
			about := ""
			switch {
			case thing.Unused:
				about = "  unused: " + printable.Line(i.Manifest) + " asks for no binding of this kind"
				unused++
			case thing.Bindings != nil:
				about = "  for env." + strings.Join(thing.Bindings, ", env.")
			case slices.ContainsFunc(thing.Functions, func(f importedFunction) bool { return f.Name == "get" }):
				unknown++
			}
			fmt.Fprintf(&b, "  %s%s\n", thing.Name, about)
		}
		var rows [][]string
		for _, f := range thing.Functions {
			row := []string{f.Name}
			if f.Handle != "" {
				row = append(row, "needs "+f.Handle)
				held++
			}
			if f.Answer != "" {
				row = append(row, f.Answer)
			}
			rows = append(rows, row)
		}
		b.WriteString(table("    ", rows))
	}
	fmt.Fprintf(&b, "  so: no authority of its own; %s, each needs a handle that a caller passes in\n", counted(held, "function"))
	if unused > 0 {
		fmt.Fprintf(&b, "  unused imports come from names of methods that several kinds have; stile build --manifest leaves them out\n")
	}
	if unknown > 0 && i.Manifest == "" {
		fmt.Fprintf(&b, "  to see which of them the code uses, name a manifest with --manifest\n")
	}
	b.WriteString("\nexports\n")
	for _, name := range i.Exports {
		about := ""
		if name == abi.ExtensionMemory {
			about = "  for the host alone: takes the memory of a call that waits, and gives it back"
		}
		fmt.Fprintf(&b, "  %s%s\n", line(name, maxShownName), about)
	}
	if i.Steps {
		b.WriteString("  calls are made in steps, and take no thread while they wait\n")
	} else {
		b.WriteString("  calls are made in one piece, and keep a thread while they wait\n")
	}
	if i.Start != "" {
		fmt.Fprintf(&b, "  says of itself, unchecked: %s\n", i.Start)
	}
	b.WriteString("\ntools\n" + toolTable("  ", i.defined))
	if len(i.sections) > 0 {
		rows := make([][]string, len(i.sections))
		for k, name := range i.sections {
			rows[k] = []string{line(name, maxShownName), fmt.Sprintf("%d bytes", i.Sections[name])}
		}
		b.WriteString("\ncustom sections\n" + table("  ", rows))
	}
	return b.String()
}
