package lifecycle

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/extension"
	"github.com/stilehost/stile/extension/inspect"
	"github.com/stilehost/stile/host"
	"github.com/stilehost/stile/internal/printable"
	"github.com/stilehost/stile/internal/sha256hex"
	"github.com/stilehost/stile/internal/sqlite"
	"github.com/stilehost/stile/internal/wasmbin"
	"github.com/stilehost/stile/toolchain"
)

// ComponentFault says why bytes cannot be an extension.
type ComponentFault string

// The faults of components.
const (
	FaultText       ComponentFault = "text"        // a text, such as a source with another name
	FaultNoWasm     ComponentFault = "no-wasm"     // neither WebAssembly nor text
	FaultCoreModule ComponentFault = "core-module" // a core module, which stile componentize can make a component of
	FaultNewer      ComponentFault = "newer"       // another version of the binary format, or features of the component model that the host lacks
	FaultTooLarge   ComponentFault = "too-large"   // more than extension.MaxComponent
	FaultCompile    ComponentFault = "compile"     // compiling it would take, or took, too much
	FaultEngine     ComponentFault = "engine"      // it imports the shared JavaScript engine, so it was built here from a source
	FaultCommand    ComponentFault = "command"     // a program or a server that WASI hosts run: it has no tools
	FaultImport     ComponentFault = "import"      // it imports what this host does not give
	FaultExport     ComponentFault = "export"      // it lacks an export of the contract, or has it with another type
	FaultInvalid    ComponentFault = "invalid"     // the engine does not take it
)

// ComponentError reports bytes that cannot be an extension.
type ComponentError struct {
	Fault ComponentFault
	// Text says what is wrong, and Fix what to give instead. Both are printable.
	Text, Fix string
	// Err is the host's error, or nil.
	Err error
}

// Error implements error.
func (e *ComponentError) Error() string { return "the component cannot be an extension: " + e.Text }

// Unwrap returns the host's error.
func (e *ComponentError) Unwrap() error { return e.Err }

func (e *ComponentError) problem() extension.Problem {
	return extension.Problem{Text: e.Text, Fix: e.Fix}
}

// contract is what a component has to export.
const contract = "a component that exports " + abi.ExtensionTools + "; docs/languages.md shows how to make one"

// CheckComponent looks at the first bytes and the size of what is to be a component. It compiles nothing. The error is a *[ComponentError].
func CheckComponent(wasm []byte) error {
	switch start := string(wasm[:min(len(wasm), len(wasmbin.ComponentHeader))]); {
	case len(wasm) > extension.MaxComponent:
		return &ComponentError{FaultTooLarge, fmt.Sprintf("it has more than %s", printable.Size(extension.MaxComponent)), "a component without debugging information", nil}
	case start == wasmbin.ComponentHeader:
		return nil
	case start == wasmbin.CoreHeader:
		return &ComponentError{FaultCoreModule, "it is a core module, and an extension is a component", "the component that this command makes: stile componentize CORE.wasm -o COMPONENT.wasm", nil}
	case strings.HasPrefix(start, wasmbin.Magic):
		return &ComponentError{FaultNewer, "it is of a version of the binary format that this host does not know", contract, nil}
	case isText(wasm):
		return &ComponentError{FaultText, "it is a text, and not WebAssembly", "a source in a file whose name ends in .ts or .js, or " + contract, nil}
	default:
		return &ComponentError{FaultNoWasm, "it is not WebAssembly", contract, nil}
	}
}

// wrapPlugin makes a component of an Extism plug-in. Other bytes stay.
func (b *build) wrapPlugin() error {
	plugin := b.draft.Component
	if len(plugin) > extension.MaxComponent || !toolchain.IsExtism(plugin) {
		return nil
	}
	component, err := toolchain.Componentize(toolchain.ExtensionWorld(b.options.Host.WIT()), plugin)
	if refused, ok := errors.AsType[*toolchain.CoreError](err); ok {
		return &ComponentError{FaultCoreModule, refused.Reason, "a plug-in as docs/extism.md describes", err}
	} else if err != nil {
		return err
	}
	b.draft.Component = component
	b.draft.reason = cut(b.draft.reason + ", an Extism plug-in of which Stile made a component")
	return nil
}

// isText reports whether bytes begin like a text.
func isText(data []byte) bool {
	start := data[:min(len(data), 4<<10)]
	for len(start) > 0 && len(start) < len(data) && !utf8.RuneStart(data[len(start)]) {
		start = start[:len(start)-1] // not in the middle of a character
	}
	return len(start) > 0 && utf8.Valid(start) && !bytes.ContainsRune(start, 0)
}

// refusedComponent sorts an error of the host that loads or asks a component without source. Errors that are not the component's stay.
func refusedComponent(err error, wasm []byte) error {
	refused, ok := errors.AsType[*host.LoadError](err)
	if !ok {
		return err
	}
	e := &ComponentError{Err: err, Text: printable.OneLine(printable.Short(err.Error(), 1000)), Fix: contract}
	exports := exportsOf(wasm)
	exporting := func(prefix string) bool {
		return slices.ContainsFunc(exports, func(name string) bool { return strings.HasPrefix(name, prefix) })
	}
	switch {
	case refused.LacksModule():
		return sharesEngine(err)
	case refused.Cause != nil:
		e.Fault, e.Fix = FaultCompile, "smaller functions, or an optimized build"
	case refused.Name == abi.ExtensionTools && exporting("wasi:cli/run@"):
		e.Fault, e.Text = FaultCommand, "it is a command, which exports wasi:cli/run and has no tools"
	case refused.Name == abi.ExtensionTools && exporting("wasi:http/incoming-handler@"):
		e.Fault, e.Text = FaultCommand, "it is a server, which exports wasi:http/incoming-handler and has no tools"
	case strings.HasPrefix(refused.Name, "stile:extension/"):
		e.Fault = FaultExport
	case refused.Name != "":
		e.Fault, e.Fix = FaultImport, "a component that imports only interfaces of stile:capability and wasi 0.2; stile inspect lists the imports"
	case strings.Contains(refused.Reason, "not supported"), strings.Contains(refused.Reason, "feature"): // as the host and the engine say it
		e.Fault, e.Fix = FaultNewer, "a component without that"
	default:
		e.Fault, e.Fix = FaultInvalid, "another build of it"
	}
	return e
}

func sharesEngine(err error) *ComponentError {
	return &ComponentError{
		FaultEngine, "it imports the JavaScript engine of this host, which every version of Stile has its own of", "its source, or a component from stile build --standalone", err,
	}
}

// exportsOf lists the exports of a component, as far as they can be read.
func exportsOf(wasm []byte) (names []string) {
	_ = wasmbin.EachSection(wasm, func(id byte, r *wasmbin.Reader) error {
		if id != wasmbin.SectionComponentExport || len(names) >= 1000 {
			return nil
		}
		for range r.Count() {
			r.Byte()
			name := r.Name()
			if sort := r.Byte(); sort == wasmbin.SortCore {
				r.Byte()
			}
			r.Numbers(1)
			if typed := r.Byte(); r.Err != nil || typed != 0 {
				names = append(names, name)
				break // a type follows, which nothing here needs
			}
			names = append(names, name)
		}
		return nil
	})
	return names
}

// loadGiven loads a component that came without source.
func (b *build) loadGiven(ctx context.Context) (err error) {
	if b.component, err = b.options.Host.Load(ctx, b.wasm); err != nil {
		return refusedComponent(err, b.wasm)
	}
	if len(b.component.Modules()) > 0 {
		return sharesEngine(nil)
	}
	return nil
}

// reportGiven makes the report on a component without source.
func (b *build) reportGiven() (err error) {
	b.version.Report, err = inspect.InspectComponent(inspect.ComponentInput{
		Kinds: b.options.Kinds, Wasm: b.wasm, Component: b.component, Bindings: b.version.Manifest.Bindings, WASI: b.version.Manifest.WASI,
	})
	return err
}

// HasSource reports whether the version has a source. If it has none, its component is the version: the digest covers its bytes.
func (v *Version) HasSource() bool { return v.given == "" }

// checkGiven returns an error if what the store says of a version's component is not what the version was made of.
func (v *Version) checkGiven() error {
	if v.HasSource() || v.Component == v.given {
		return nil
	}
	return &DamagedError{v.Digest, "its component is another one, or missing"}
}

// ComponentBytes returns the stored component of a version that has no source.
func (m *Manager) ComponentBytes(ctx context.Context, digest string) (wasm []byte, err error) {
	v, err := m.Version(ctx, digest)
	if err != nil {
		return nil, err
	}
	if v.HasSource() {
		return nil, &NotFoundError{What: "component that came without source in version " + ShortDigest(v.Digest)}
	}
	err = m.db.View(ctx, func(c *sqlite.Conn) (err error) { wasm, err = v.component(ctx, c); return err })
	return wasm, err
}

// give makes the component of a draft the one of its version.
func (b *build) give() {
	b.wasm = bytes.Clone(b.draft.Component) // the caller cannot change these bytes between check, digest and storage
	b.version.given = sha256hex.Of(b.wasm)
	b.version.Component = b.version.given
}
