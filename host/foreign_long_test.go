//go:build long

package host

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/capabilities/random"
	"github.com/stilehost/stile/internal/suite"
)

// TestLongLongFunction compiles a Rust program with a function of 181 KB in 129 locals.
func TestLongLongFunction(t *testing.T) {
	const file = "vendor/js-component-bindgen-component.core.wasm"
	e := strict()
	e.check(t, file, componentOf(suite.Package(t, "@bytecodealliance/jco-transpile", file)[file]))
	e.report(t, 1)
}

const pythonApp = `
import json, random, secrets
from wit_world import exports
from wit_world.exports import tools

early = random.random()

class Tools(exports.Tools):
    def describe(self):
        return [tools.Definition("t", "", '{"type": "object"}', None, tools.Annotations(False, False, False, False))]

    def call(self, tool, input, env):
        print("hello")
        if "fail" in input:
            raise RuntimeError("boom")
        return json.dumps({
            "early": early, "hash": hash("x"), "random": random.random(), "SystemRandom": random.SystemRandom().random(), "secrets": secrets.token_hex(17),
        })
`

// contract is the folder of the WIT.
func contract(t *testing.T) string {
	t.Helper()
	folder, err := filepath.Abs("../wit")
	if err != nil {
		t.Fatal(err)
	}
	return folder
}

// made is the component that a program makes of a source file.
func made(t *testing.T, name, source, program string, args ...string) []byte {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, name), []byte(source), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), program, append(args, "-o", "app.wasm")...)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	wasm, err := os.ReadFile(filepath.Join(dir, "app.wasm"))
	if err != nil {
		t.Fatal(err)
	}
	return wasm
}

// TestLongPython makes a component of a Python program, and calls it. Its longest function has 420,000 bytes: it adjusts addresses.
func TestLongPython(t *testing.T) {
	program, err := exec.LookPath("componentize-py")
	if err != nil {
		t.Skip("componentize-py is not installed; to install it: pip install componentize-py==0.25.1")
	}
	wasm := made(t, "app.py", pythonApp, program, "-d", contract(t), "-w", "extension", "componentize", "app")
	e := strict()
	e.check(t, "a component of componentize-py", wasm)
	e.report(t, 1)
	h := newHostWith(t, Options{Limits: Limits{Wall: 5 * time.Minute}})
	c, err := h.Load(t.Context(), wasm)
	if err != nil {
		t.Fatal(err)
	}
	env := Env{"random": random.System()}
	compareDraws(t, c, "early", "hash") // of the build
	_, err = c.Call(t.Context(), "t", []byte(`{"fail": 1}`), env)
	trap, ok := errors.AsType[*TrapError](err)
	if !ok || !strings.HasPrefix(trap.Output, "hello\n") || !strings.Contains(trap.Output, "RuntimeError: boom") {
		t.Errorf("an exception ends the call with %v", err)
	}
	if _, err := c.Call(t.Context(), "t", nil, nil); !errors.Is(err, abi.ErrDenied) {
		t.Errorf("without a binding of random: %v", err)
	}
}

// compareDraws checks that the tool "t" returns other random numbers in each call: in each of its fields but the fixed ones, which are
// known to repeat.
func compareDraws(t *testing.T, c *Component, fixed ...string) {
	t.Helper()
	draw := func() (fields map[string]any) {
		out, err := c.Call(t.Context(), "t", nil, Env{"random": random.System()})
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(out, &fields); err != nil || len(fields) == 0 {
			t.Fatalf("%s: %v", out, err)
		}
		return fields
	}
	first, other := draw(), draw()
	for name, numbers := range first {
		if repeats := numbers == other[name]; repeats != slices.Contains(fixed, name) {
			t.Errorf("%s: the random numbers of two calls are %v and %v", name, numbers, other[name])
		}
	}
}

const javascriptApp = `
export const tools = {
  describe: () => [{ name: "t", description: "", inputSchema: '{"type": "object"}', annotations: { readOnly: false, destructive: false, idempotent: false, openWorld: false } }],
  call: () => JSON.stringify({
    "Math.random": Math.random(), "crypto.randomUUID": crypto.randomUUID(), "crypto.getRandomValues": crypto.getRandomValues(new Uint8Array(17)).join(),
  }),
};
`

// TestLongJavaScript makes a component of a JavaScript program, and calls it.
func TestLongJavaScript(t *testing.T) {
	program, err := exec.LookPath("componentize-js")
	if err != nil {
		t.Skip("componentize-js is not installed; to install it: npm install -g @bytecodealliance/componentize-js@0.23.0")
	}
	wasm := made(t, "app.js", javascriptApp, program, "app.js", "-w", contract(t), "-n", "extension")
	h := newHostWith(t, Options{Limits: Limits{Wall: 5 * time.Minute}})
	c, err := h.Load(t.Context(), wasm)
	if err != nil {
		t.Fatal(err)
	}
	compareDraws(t, c)
}
