package lifecycle

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/stilehost/stile/extension"
	"github.com/stilehost/stile/extension/pack"
	"github.com/stilehost/stile/host"
	"github.com/stilehost/stile/internal/cache/cachetest"
	"github.com/stilehost/stile/internal/printable"
	"github.com/stilehost/stile/toolchain/guesttest"
)

const kvGet = `(import "stile:capability/kv@0.1.0" "get" (func $get (param i32 i32 i32 i32)))`

// given is a draft of a component without source.
func given(t *testing.T, name string, g guesttest.Guest, permissions string) Draft {
	t.Helper()
	d := draft(name, "", permissions)
	d.Files, d.Component = nil, g.Component(t)
	return d
}

// A component without source is kept, approved, tested, called, exported, rolled back and forgotten like any extension.
func TestComponent(t *testing.T) {
	h := newHome(t)
	m := h.open()
	d := given(t, "notes", guesttest.Guest{Imports: kvGet}, `{"kv": true}`)
	d.Component = guesttest.WithProducers(d.Component, map[string]map[string]string{"language": {"Rust": "1.90"}})
	d.Origin = "the file notes.wasm"
	d.Manifest = bytes.Replace(d.Manifest, []byte(`"tools"`), []byte(`"tests": [{"tool": "get", "input": {}, "expect": "ok"}], "tools"`), 1)
	w := write(t, m, d)
	if w.Release.State != Pending || !strings.Contains(w.Why, "without source") || w.Release.Reason != "a component without source, from the file notes.wasm" {
		t.Errorf("got %+v, because %s", w.Release, w.Why)
	}
	if len(w.Tests) != 1 || !w.Tests[0].Passed {
		t.Errorf("got %+v", w.Tests)
	}
	review, err := m.Review(t.Context(), w.Release.ID)
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{review.Code, review.Version.Report.Text()} {
		for _, want := range []string{"no source to read", "imports stile:capability/kv@0.1.0 (with kv): get", "unchecked: language Rust 1.90", "exports: stile:extension/tools@0.1.0"} {
			if !strings.Contains(text, want) {
				t.Errorf("%s is not in %s", want, text)
			}
		}
	}
	approve(t, m, w.Release)
	says(t, m, "notes_get", `"ok"`)
	if again := write(t, m, d); !again.Unchanged {
		t.Errorf("got %+v", again.Release)
	}
	if err := m.Close(); err != nil {
		t.Fatal(err)
	}

	m = h.open() // another process
	says(t, m, "notes_get", `"ok"`)
	if results, err := m.Test(t.Context(), w.Version.Digest); err != nil || len(results) != 1 || !results[0].Passed {
		t.Errorf("got %+v, %v", results, err)
	}
	if stored, err := m.ComponentBytes(t.Context(), w.Version.Digest); err != nil || !bytes.Equal(stored, d.Component) {
		t.Errorf("got %d bytes, %v", len(stored), err)
	}

	// Another component, without the import, is a new version, which waits too.
	second := given(t, "notes", guesttest.Guest{Result: "2"}, `{"kv": true}`)
	next := write(t, m, second)
	if next.Release.State != Pending || next.Version.Digest == w.Version.Digest {
		t.Errorf("got %+v", next.Release)
	}
	says(t, m, "notes_get", `"ok"`)
	review, err = m.Review(t.Context(), next.Release.ID)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"--- a/component", "-imports stile:capability/kv@0.1.0 (with kv): get\n", "+says nothing of the tools"} {
		if !strings.Contains(review.Code, want) {
			t.Errorf("%s is not in %s", want, review.Code)
		}
	}
	if unused := next.Version.Report.BindingsUnused; !reflect.DeepEqual(unused, []string{"kv"}) {
		t.Errorf("got %q", unused)
	}
	approve(t, m, next.Release)
	says(t, m, "notes_get", "2")
	if _, err := m.Rollback(t.Context(), own, "notes", w.Version.Digest, person); err != nil {
		t.Fatal(err)
	}
	says(t, m, "notes_get", `"ok"`)
	if freed, err := m.Forget(t.Context(), next.Version.Digest, person); err != nil || freed < int64(len(second.Component)) {
		t.Errorf("freed %d, %v", freed, err)
	}
	if _, err := m.ComponentBytes(t.Context(), next.Version.Digest); !errors.As(err, new(*DroppedError)) {
		t.Error(err)
	}
	all, err := m.History(t.Context(), own, "notes")
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range all {
		if want := map[string]Dropped{next.Version.Digest: DroppedSource}[r.Digest]; r.Dropped != want {
			t.Errorf("%d has dropped %q, want %q", r.ID, r.Dropped, want)
		}
	}
}

// A component can become a source, and a source a component: the first like any update, the second only by a person.
func TestComponentAndSource(t *testing.T) {
	h := newHome(t)
	h.policyOf(`{"approve": [{"permissions": {"kv": true}}], "updates": "same"}`)
	m := h.open()
	component, source := given(t, "notes", guesttest.Guest{}, `{"kv": true}`), draft("notes", "1", `{"kv": true}`)
	first := write(t, m, source)
	if first.Release.State != Active {
		t.Fatalf("got %+v", first.Release)
	}
	second := write(t, m, component) // it asks for no more, and a rule approves what it asks for
	if second.Release.State != Pending || len(second.Changes) > 0 {
		t.Errorf("got %+v", second)
	}
	says(t, m, "notes_get", "1")
	approve(t, m, second.Release)
	says(t, m, "notes_get", `"ok"`)
	if third := write(t, m, source); third.Release.State != Active {
		t.Errorf("got %+v", third.Release)
	}
	says(t, m, "notes_get", "1")
	if fourth := write(t, m, component); fourth.Release.State != Pending { // that a person approved it once does not count
		t.Errorf("got %+v", fourth.Release)
	}
	// Computing only is no exception, nor is a promotion.
	d := given(t, "pure", guesttest.Guest{}, "")
	w := write(t, m, d)
	if w.Release.State != Pending {
		t.Errorf("got %+v", w.Release)
	}
	approve(t, m, w.Release)
	if r, err := m.Promote(t.Context(), own, extension.Scope{Kind: extension.User, Owner: "tom"}, "pure", "agent:a", "test"); err != nil || r.State != Pending {
		t.Errorf("got %+v, %v", r, err)
	}
}

// A pack without source keeps the component. One with source builds it.
func TestComponentInPack(t *testing.T) {
	from, to := newHome(t).open(), newHome(t).open()
	d := given(t, "notes", guesttest.Guest{}, "")
	d.Component = guesttest.WithSection(d.Component, "stile:meta", []byte(`{"engine": "x"}`))
	w := write(t, from, d)
	p, err := from.Export(t.Context(), w.Version.Digest)
	if err != nil {
		t.Fatal(err)
	}
	if p.Engine != "" || p.SBOM != nil || p.HasSource() {
		t.Errorf("got %+v", p)
	}
	var file bytes.Buffer
	if err := pack.Write(&file, p); err != nil {
		t.Fatal(err)
	}
	read, _, err := pack.Read(&file, pack.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	got, err := to.Import(t.Context(), read, Draft{Scope: own, Author: "agent:a", Signer: "tom", Origin: "the pack notes.stile"})
	if err != nil {
		t.Fatal(err)
	}
	if r := got.Release; r.State != Pending || r.Digest != w.Version.Digest || r.Signer != "tom" || !strings.HasSuffix(r.Reason, "from the pack notes.stile") {
		t.Errorf("got %+v", r)
	}
	approve(t, to, got.Release)
	says(t, to, "notes_get", `"ok"`)
}

// What is no extension is refused before it is kept, with what to give instead.
func TestComponentFaults(t *testing.T) {
	h := newHome(t)
	m := h.open()
	from := newHome(t).open()
	shared, err := from.Export(t.Context(), write(t, from, draft("x", "1", "")).Version.Digest)
	if err != nil {
		t.Fatal(err)
	}
	good := guesttest.Guest{}.Component(t)
	wat := func(text string) []byte { return guesttest.WAT(t, text) }
	calls := 0
	for _, c := range []struct {
		name  string
		wasm  []byte
		fault ComponentFault
		text  string
	}{
		{"empty", []byte{}, FaultNoWasm, "not WebAssembly"},
		{"a source", []byte(`export default 1; // ü`), FaultText, "it is a text"},
		{"a long text in the middle of a character", append(bytes.Repeat([]byte("a"), 4095), "ü and more"...), FaultText, "it is a text"},
		{"a picture", []byte("\x89PNG\r\n\x1a\n\x00\x00"), FaultNoWasm, "not WebAssembly"},
		{"a core module", guesttest.WAT(t, guesttest.Guest{}.Core()), FaultCoreModule, "core module"},
		{"another version", []byte("\x00asm\x0e\x00\x01\x00"), FaultNewer, "version of the binary format"},
		{"too large", append(slices.Clone(good), make([]byte, extension.MaxComponent)...), FaultTooLarge, "more than 64 MiB"},
		{"cut", good[:len(good)-7], FaultInvalid, ""},
		{"of the shared engine", shared.Component, FaultEngine, "JavaScript engine"},
		{"nothing", wat(`(component)`), FaultExport, "is not exported"},
		{"a command", wat(`(component (core module $m (func (export "f") (result i32) (i32.const 0))) (core instance $i (instantiate $m))
			(func $run (result (result)) (canon lift (core func $i "f"))) (component $c (import "run" (func $run (result (result)))) (export "run" (func $run)))
			(instance $c (instantiate $c (with "run" (func $run)))) (export "wasi:cli/run@0.2.3" (instance $c)))`), FaultCommand, "wasi:cli/run"},
		{"an unknown interface", guesttest.WAT(t, `(component (import "acme:crm/contacts@1.0.0" (instance (export "f" (func)))))`), FaultImport, "acme:crm/contacts@1.0.0"},
		{"a name with control characters", bytes.ReplaceAll(wat(`(component (import "acme:crm/contacts@1.0.0" (instance (export "f" (func)))))`), []byte("crm/con"), []byte("\x1b[2J/\xe2\x80\xae")[:7]), FaultInvalid, ""},
		{"a name of a module with control characters", wat(`(component (import "x" (core module $m (import "a\1b[2J" "b\0a" (func)))))`), FaultImport, "x"},
		{"a free function", wat(`(component (import "f" (func)))`), FaultImport, "without a handle"},
		{"an unknown function", wat(`(component (import "stile:capability/kv@0.1.0" (instance (export "root" (func)))))`), FaultImport, "there is no such function"},
		{"WASI of another version", wat(`(component (import "wasi:cli/stdout@0.3.0" (instance (export "f" (func)))))`), FaultImport, "0.2"},
		{"asynchronous functions", wat(`(component (import "wasi:cli/stdout@0.2.0" (instance (export "f" (func async)))))`), FaultNewer, "async"},
		{"an export of another type", wat(`(component (core module $m (func (export "f"))) (core instance $i (instantiate $m))
			(func $f (canon lift (core func $i "f"))) (component $c (import "f" (func $f)) (export "describe" (func $f)))
			(instance $c (instantiate $c (with "f" (func $f)))) (export "stile:extension/tools@0.1.0" (instance $c)))`), FaultExport, "its type is not the contract's"},
		{"code that takes long to compile", bomb(t), FaultCompile, "takes too long to compile"},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := draft("refused", "", "")
			d.Files, d.Component = nil, c.wasm
			_, err := m.Write(t.Context(), d)
			var problems *extension.ProblemsError
			var fault *ComponentError
			if !errors.As(err, &problems) || !errors.As(err, &fault) || fault.Fault != c.fault {
				t.Fatalf("got %v (%+v)", err, fault)
			}
			if p := problems.Problems[0]; !strings.Contains(p.Text, c.text) || p.Fix == "" || len(p.Text) > 1100 || p.Text != printable.Line(p.Text) {
				t.Errorf("got %q; fix %q", p.Text, p.Fix)
			}
			calls++
		})
	}
	if n, err := m.Stored(t.Context()); err != nil || n > 0 {
		t.Errorf("%d bytes are stored, %v", n, err)
	}
	if log, err := m.Audit(t.Context(), 100); err != nil || len(log) != calls || log[0].Kind != "refuse" {
		t.Errorf("got %d entries, %v", len(log), err)
	}
	d := draft("both", "1", "")
	d.Component = good
	if _, err := m.Write(t.Context(), d); err == nil || !strings.Contains(err.Error(), "not both") {
		t.Error(err)
	}
}

// bomb is a component that the estimate refuses.
func bomb(t *testing.T) []byte {
	function := `(func ` + strings.Repeat("loop i32.const 0 i32.load br_if 0 end ", 1000) + `)`
	return guesttest.WAT(t, `(component (core module (memory 1) `+strings.Repeat(function, 200)+`))`)
}

// Components whose describe is hostile are refused within limits, and keep to the tools that were approved.
func TestHostileDescribe(t *testing.T) {
	m := newHome(t).open()
	for _, c := range []struct {
		name, describe, more string
		is                   func(error) bool
	}{
		{"traps", `unreachable`, "", func(err error) bool {
			return errors.As(err, new(*extension.ProblemsError)) && strings.Contains(err.Error(), "trap")
		}},
		{"spins", `(loop $l (br $l)) unreachable`, "", func(err error) bool {
			return strings.Contains(err.Error(), "cpu") && strings.Contains(err.Error(), "a describe that needs less")
		}},
		{"allocates", `(loop $l (drop (memory.grow (i32.const 100))) (br_if $l (i32.lt_u (memory.size) (i32.const 40000))) (br $l)) unreachable`, "", func(err error) bool { return err != nil }},
		{"an endless list", `(i32.store (i32.const 1044) (i32.const -1)) (global.get $tools)`, "", func(err error) bool { return err != nil }},
		{"a million tools", `(i32.store (i32.const 1044) (i32.const 1000000)) (drop (memory.grow (i32.const 600))) (global.get $tools)`, "", func(err error) bool { return err != nil }},
		{"a list outside", `(i32.const 2000000)`, "", func(err error) bool { return err != nil }},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := given(t, "hostile", guesttest.Guest{Describe: c.describe, More: c.more}, "")
			if _, err := m.Write(t.Context(), d); !c.is(err) || !errors.As(err, new(*extension.ProblemsError)) {
				t.Errorf("got %v", err)
			}
		})
	}
	// Texts that hide are shown, and never printed as they are.
	w := write(t, m, given(t, "shown", guesttest.Guest{Description: "Gets\x1b[2J \u202e a value"}, ""))
	if d := w.Version.Tools[0].Description; strings.ContainsAny(d, "\x1b\u202e") || !strings.Contains(d, `\x1b`) {
		t.Errorf("got %q", d)
	}
	d := given(t, "tools", guesttest.Guest{}, "")
	d.Manifest = bytes.Replace(d.Manifest, []byte(`["get"]`), []byte(`["other"]`), 1)
	if _, err := m.Write(t.Context(), d); !errors.As(err, new(*extension.ProblemsError)) {
		t.Errorf("got %v", err)
	}
}

// A component that describes other tools when it is loaded again, here because it gets less memory, is not called: its tools were fixed
// when it was approved.
func TestDescribeChanges(t *testing.T) {
	h := newHome(t)
	m := h.open()
	w := write(t, m, given(t, "notes", guesttest.Guest{
		Describe: `(if (i32.eq (memory.grow (i32.const 200)) (i32.const -1)) (then (i32.store8 (i32.const 2048) (i32.const 71)))) (global.get $tools)`, Description: "gets",
	}, ""))
	approve(t, m, w.Release)
	says(t, m, "notes_get", `"ok"`)
	if err := m.Close(); err != nil {
		t.Fatal(err)
	}
	cacheDir, keyDir := cachetest.Dirs(t)
	small, err := host.New(t.Context(), host.Options{CacheDir: cacheDir, KeyDir: keyDir, Limits: host.Limits{Memory: 4 << 20}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = small.Close() })
	h.options.Host = small
	m = h.open()
	var quarantined *QuarantinedError
	if _, err := m.Call(t.Context(), Call{Viewer: agent, Tool: "notes_get"}); !errors.As(err, &quarantined) || !strings.Contains(quarantined.Reason, "differs from its approved description") {
		t.Errorf("got %v", err)
	}
	if err := m.Close(); err != nil {
		t.Fatal(err)
	}
	h.options.Host = sharedHost
}

// Exports that only our toolchain makes give a component nothing. The reviewer sees them.
func TestForgedExports(t *testing.T) {
	m := newHome(t).open()
	w := write(t, m, given(t, "forged", guesttest.Guest{
		Exports: []string{"stile:extension/evaluator@0.1.0"},
		More:    `(func (export "stile:extension/evaluator@0.1.0#evaluate") (param i32 i32) (result i32) unreachable)`,
	}, ""))
	if !strings.Contains(w.Version.Report.Text(), "stile:extension/evaluator@0.1.0") {
		t.Error(w.Version.Report.Text())
	}
	approve(t, m, w.Release)
	says(t, m, "forged_get", `"ok"`)
}

// A store in which something else replaced the component runs nothing.
func TestReplacedComponent(t *testing.T) {
	for name, alteration := range map[string]string{
		"by another one":   "UPDATE version SET component = (SELECT component FROM version WHERE name = 'other') WHERE name = 'notes'",
		"by nothing":       "UPDATE version SET component = '' WHERE name = 'notes'",
		"its bytes":        "UPDATE object SET data = (SELECT data FROM object WHERE digest = (SELECT component FROM version WHERE name = 'other')) WHERE digest = (SELECT component FROM version WHERE name = 'notes')",
		"and its record":   "UPDATE version SET component = (SELECT component FROM version WHERE name = 'other'), record = json_set(record, '$.component', (SELECT component FROM version WHERE name = 'other')) WHERE name = 'notes'",
		"by a source":      "UPDATE version SET record = json_set(json_remove(record, '$.component'), '$.entry', 'tool.ts') WHERE name = 'notes'",
		"with files":       "UPDATE version SET record = json_set(record, '$.files', json_object('tool.ts', component)) WHERE name = 'notes'",
		"without a record": "UPDATE version SET record = '{}' WHERE name = 'notes'",
	} {
		t.Run(name, func(t *testing.T) {
			h := newHome(t)
			m := h.open()
			d := given(t, "notes", guesttest.Guest{}, "")
			w, other := write(t, m, d), write(t, m, given(t, "other", guesttest.Guest{Result: `"stolen"`}, ""))
			approve(t, m, w.Release)
			approve(t, m, other.Release)
			alter(t, m, alteration)
			if err := m.Close(); err != nil {
				t.Fatal(err)
			}
			m = h.open()
			if r, err := m.Call(t.Context(), Call{Viewer: agent, Tool: "notes_get"}); err == nil {
				t.Fatalf("got %s", r.Output)
			}
			if _, err := m.ComponentBytes(t.Context(), w.Version.Digest); !errors.As(err, new(*DamagedError)) {
				t.Errorf("got %v", err)
			}
			says(t, m, "other_get", `"stolen"`)
			repaired := write(t, m, d) // the same bytes again, which still need a person
			if repaired.Release.State != Pending {
				t.Errorf("got %+v", repaired.Release)
			}
			approve(t, m, repaired.Release)
			says(t, m, "notes_get", `"ok"`)
		})
	}
}

// The bytes of a draft are those that were checked, whatever their owner does to them.
func TestComponentIsCopied(t *testing.T) {
	m := newHome(t).open()
	d := given(t, "notes", guesttest.Guest{}, "")
	d.Progress = func(stage extension.Stage) {
		if stage == extension.StageImage {
			clear(d.Component)
		}
	}
	w := write(t, m, d)
	approve(t, m, w.Release)
	says(t, m, "notes_get", `"ok"`)
}

// Many versions of components make room like sources: the oldest that never ran go, and none loses only its component.
func TestComponentsMakeRoom(t *testing.T) {
	h := newHome(t)
	h.policyOf(`{"limits": {"storedPerAuthor": "1MiB"}}`)
	m := h.open()
	w := write(t, m, given(t, "notes", guesttest.Guest{}, ""))
	approve(t, m, w.Release)
	for i := range 12 {
		d := given(t, "notes", guesttest.Guest{Result: fmt.Sprint(i)}, "")
		d.Component = guesttest.WithSection(d.Component, "padding", bytes.Repeat([]byte{byte(i)}, 200<<10))
		write(t, m, d)
	}
	all, err := m.History(t.Context(), own, "notes")
	if err != nil {
		t.Fatal(err)
	}
	gone := 0
	for _, r := range all {
		switch r.Dropped {
		case DroppedComponent:
			t.Errorf("%d lost its component", r.ID)
		case DroppedSource:
			gone++
		}
	}
	if gone < 6 {
		t.Errorf("%d of %d are gone", gone, len(all))
	}
	says(t, m, "notes_get", `"ok"`)
}

// A component of another toolchain's compiler, here Rust's, is an extension with tests, traps and recordings like any other.
func TestRustComponent(t *testing.T) {
	rustc, err := exec.LookPath("rustc")
	if err != nil {
		t.Skip("there is no rustc")
	}
	file := filepath.Join(t.TempDir(), "words.wasm")
	out, err := exec.CommandContext(t.Context(), rustc, "--target", "wasm32-unknown-unknown", "--crate-type", "cdylib", "-O", "-o", file, filepath.Join("testdata", "words.rs")).CombinedOutput()
	if err != nil {
		if strings.Contains(string(out), "E0463") { // can't find crate for `std`
			t.Skip("rustc has no target wasm32-unknown-unknown")
		}
		t.Fatalf("%v: %s", err, out)
	}
	core, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	m := newHome(t).open()
	d := draft("words", "", "")
	d.Files, d.Component = nil, guesttest.Componentize(t, core)
	d.Manifest = bytes.Replace(d.Manifest, []byte(`"tools"`), []byte(`"tests": [{"tool": "get", "input": {"text": "one two"}, "expect": {"words": 2}}], "tools"`), 1)
	w := write(t, m, d)
	if text := w.Version.Report.Text(); !strings.Contains(text, "unchecked: language Rust") || !strings.Contains(text, "unchecked: processed-by rustc") {
		t.Error(text)
	}
	approve(t, m, w.Release)
	if r, err := m.Call(t.Context(), Call{Viewer: agent, Tool: "words_get", Input: []byte(`{"text": "three more words"}`)}); err != nil || string(r.Output) != `{"words":3}` {
		t.Errorf("got %s, %v", r.Output, err)
	}
	if _, err := m.Call(t.Context(), Call{Viewer: agent, Tool: "words_get", Input: []byte(`{"text": "panic"}`)}); !errors.As(err, new(*host.TrapError)) {
		t.Errorf("got %v", err)
	}
	if _, err := m.Call(t.Context(), Call{Viewer: agent, Tool: "words_get", Input: []byte(`{}`)}); !errors.As(err, new(*host.InputError)) {
		t.Errorf("got %v", err)
	}
}
