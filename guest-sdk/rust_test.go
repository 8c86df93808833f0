package guests

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stilehost/stile/host"
)

const unknownUnknown = "wasm32-unknown-unknown"

// rust builds a guest from the folder of a crate, for a target.
func (l *languages) rust(t *testing.T, target, folder, name string) *host.Component {
	t.Helper()
	root, err := exec.CommandContext(t.Context(), "rustc", "--print", "sysroot").Output()
	if err != nil {
		t.Fatalf("rustc is needed: %v", err)
	}
	if _, err := os.Stat(filepath.Join(strings.TrimSpace(string(root)), "lib", "rustlib", target)); err != nil {
		t.Fatalf("rustc cannot build for %s; to install it: rustup target add %[1]s", target)
	}
	// All guests share what was built of the crates that they depend on.
	built := filepath.Join("rust", "target")
	cargo := exec.CommandContext(t.Context(), "cargo", "build", "--quiet", "--locked", "--release", "--target", target,
		"--manifest-path", filepath.Join(folder, "Cargo.toml"), "--target-dir", built)
	if output, err := cargo.CombinedOutput(); err != nil {
		t.Fatalf("cargo build: %v\n%s", err, output)
	}
	file := filepath.Join(built, target, "release", name+".wasm")
	if target != "wasm32-wasip2" {
		return l.core(t, file)
	}
	component, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return l.load(t, component)
}

func (l *languages) rustNotes(target string) func(*testing.T) *host.Component {
	return func(t *testing.T) *host.Component {
		c := l.rust(t, target, filepath.Join("..", "examples", "notes", "rust"), "notes")
		// It imports what it calls, of all that the SDK could.
		var imports []string
		for _, i := range c.Imports() {
			if i.Kind == "capability" && len(i.Funcs) > 0 {
				imports = append(imports, strings.TrimSuffix(strings.TrimPrefix(i.Name, "stile:capability/"), "@0.1.0"))
			}
		}
		slices.Sort(imports)
		if want := []string{"http", "poll", "workspace"}; !slices.Equal(imports, want) {
			t.Errorf("the component imports %q, want %q", imports, want)
		}
		return c
	}
}

func TestRust(t *testing.T) {
	l := newLanguages(t)
	testRust(t, l, unknownUnknown)
	testNotes(t, map[string]func(*testing.T) *host.Component{"rust": l.rustNotes(unknownUnknown)})
}

// testRust tests a guest that does what goes wrong easily.
func testRust(t *testing.T, l *languages, target string) {
	t.Helper()
	c := l.rust(t, target, filepath.Join("testdata", "rust"), "guest")
	env, logged := environment(t)
	definitions, err := c.Tools(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	schemas := map[string]string{}
	for _, d := range definitions {
		schemas[d.Name] = d.InputSchema
	}
	for name, want := range map[string]string{
		"panics": `{"type": "object", "additionalProperties": false}`,
		"plain.parameters": `{"type": "object", "additionalProperties": false, "required": ["word", "count", "type", "in"], "properties": {
			"word": {"type": "string", "description": "A word\n\nin small letters", "pattern": "^[a-z]+$", "maxLength": 5},
			"count": {"type": "integer", "format": "uint8", "minimum": 1, "maximum": 10},
			"type": {"type": "string", "enum": ["metre", "square-metre"]},
			"factor": {"type": ["number", "null"], "format": "double"},
			"tags": {"type": "array", "items": {"type": "string"}, "default": []},
			"in": {"type": "boolean"}}}`,
		"any": `{"type": "object", "additionalProperties": {"type": "integer", "format": "uint32", "minimum": 0}}`,
	} {
		if !same(t, []byte(schemas[name]), []byte(want)) {
			t.Errorf("schema of %s: %s, want %s", name, schemas[name], want)
		}
	}
	std := target != unknownUnknown // whose standard library has no clock, no output and no exit
	type test struct {
		tool, input, output, kind, message string
		only                               bool // with a standard library that has them
	}
	for _, test := range []test{
		{"panics", `{}`, ``, "trap", "panicked at src/lib.rs:21:5:\n", false},
		{"panics_printing", `{}`, ``, "trap", "in the middle of a line", true},
		{"index", `{"at": 1}`, `2`, "", "", false},
		{"index", `{"at": 5}`, ``, "trap", "the len is 3 but the index is 5", false},
		{"index", `{"at": -1}`, ``, "input", "/at", false},
		{"index", `{"at": 1.0}`, ``, "input", "floating point", false}, // an integer to JSON Schema, and not to serde
		{"exits", `{}`, ``, "guest", "last words", true},
		{"prints", `{}`, `null`, "", "", false},
		{"files", `{}`, `[true, true, true, true]`, "", "", true},
		{"sleeps", `{"milliseconds": 20}`, `true`, "", "", false},
		{"sleeps_std", `{"milliseconds": 20}`, `true`, "", "", true},
		{"hashes", `{}`, `100`, "", "", false},
		{"polls", `{}`, `[1]`, "", "", false},
		{"passes", `{}`, `null`, "", "", false},
		{"drops", `{}`, `0`, "", "", false},
		{"keeps", `{}`, ``, "limit", "handles", false},
		{"fails", `{"how": "context"}`, ``, "denied", "none", false},
		{"fails", `{"how": "wrapped"}`, ``, "denied", "none", false},
		{"fails", `{"how": "caught"}`, ``, "guest", "caught: ", false},
		{"fails", `{"how": "increment"}`, ``, "guest", "count: invalid: ", false},
		{"fails", `{"how": "number"}`, ``, "guest", "read the number: invalid digit found in string", false},
		{"fails", `{"how": "x"}`, ``, "guest", "no such way", false},
		{"fails_typed", `{}`, ``, "guest", "invalid digit", false},
		{"fails_denied", `{}`, ``, "denied", "none", false},
		{"plain.parameters", `{"word": "ab", "count": 2, "type": "square-metre", "in": true}`, `"ab 3 m2 None [] true"`, "", "", false},
		{"plain.parameters", `{"word": "ab", "count": 2, "type": "metre", "in": true, "factor": 2, "tags": ["x"]}`, `"ab 3 m Some(2.0) [\"x\"] true"`, "", "", false},
		{"plain.parameters", `{"word": "ab", "count": 11, "type": "metre", "in": true}`, ``, "input", "/count", false},
		{"plain.parameters", `{"word": "abcdef", "count": 1, "type": "metre", "in": true}`, ``, "input", "/word", false},
		{"plain.parameters", `{"word": "ab", "count": 1, "type": "litre", "in": true}`, ``, "input", "/type", false},
		{"plain.parameters", `{"word": "ab", "count": 1, "type": "metre", "in": true, "inside": true}`, ``, "input", "inside", false},
		{
			"whole", `{"points": [{"x": 1, "y": -2}], "unit": "metre", "next": {"points": []}}`,
			`{"points": [{"x": 1, "y": -2}], "unit": "metre", "next": {"points": [], "unit": null, "next": null}}`, "", "", false,
		},
		{"whole", `{"points": [], "next": {"points": [{"x": 1}]}}`, ``, "input", "/next/points/0", false},
		{"any", `{"a": 1, "b": 2}`, `3`, "", "", false},
		{"values", `{"text": "Žofie"}`, `{"bytes": [197, 189], "names": 5, "size": 8, "text": "Žofie!\n", "type": "text/plain"}`, "", "", false},
	} {
		if test.only && !std {
			continue
		}
		out, err := c.Call(t.Context(), test.tool, []byte(test.input), env)
		if kind := kindOf(err); kind != test.kind || err != nil && !strings.Contains(err.Error(), test.message) {
			t.Errorf("%s %s: %v, want %q %s", test.tool, test.input, err, test.kind, test.message)
		} else if err == nil && !same(t, out, []byte(test.output)) {
			t.Errorf("%s %s: %s, want %s", test.tool, test.input, out, test.output)
		}
	}
	all := logged()
	if printed := strings.Contains(all, "to stdout") && strings.Contains(all, "to stderr") && strings.Contains(all, "unfinished") && strings.Contains(all, "before"); printed != std {
		t.Errorf("the console has %q", all)
	}
	if !strings.Contains(all, "the panic's text") || strings.Contains(all, "RUST_BACKTRACE") {
		t.Errorf("the console has %q, want the panic's text alone", all)
	}
	draw := func() string {
		out, err := c.Call(t.Context(), "random", []byte("{}"), env)
		if err != nil {
			t.Error(err)
		}
		return string(out)
	}
	if one, other := draw(), draw(); one == other {
		t.Errorf("two calls got the same random bytes: %s", one)
	}
	// Of the standard libraries, that of preview 1 takes the seeds of maps from the binding. That of preview 2 takes them from
	// wasi:random/insecure-seed, which never changes, and the other one has none.
	if target == "wasm32-wasip1" {
		testDraws(t, c)
	} else {
		testDraws(t, c, "RandomState")
	}
	started := time.Now()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if out, err := c.Call(ctx, "sleeps", []byte(`{"milliseconds": 600000}`), env); kindOf(err) != "host" || time.Since(started) > time.Minute {
		t.Errorf("a sleep that was cancelled: %s, %v", out, err)
	}
}
