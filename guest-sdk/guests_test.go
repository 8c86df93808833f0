// Package guests tests the SDKs: guests in every language do the same.
package guests

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/capabilities/blob"
	"github.com/stilehost/stile/capabilities/clock"
	"github.com/stilehost/stile/capabilities/console"
	httpcap "github.com/stilehost/stile/capabilities/http"
	"github.com/stilehost/stile/capabilities/kv"
	"github.com/stilehost/stile/capabilities/random"
	"github.com/stilehost/stile/capabilities/workspace"
	"github.com/stilehost/stile/extension"
	"github.com/stilehost/stile/extension/trial"
	"github.com/stilehost/stile/host"
	"github.com/stilehost/stile/internal/cache/cachetest"
	"github.com/stilehost/stile/toolchain"
)

type languages struct {
	host  *host.Host
	tools *toolchain.Toolchain
}

func newLanguages(t *testing.T) *languages {
	t.Helper()
	cacheDir, keyDir := cachetest.Dirs(t)
	h, err := host.New(t.Context(), host.Options{CacheDir: cacheDir, KeyDir: keyDir})
	if err != nil {
		t.Fatal(err)
	}
	tools, err := toolchain.New(t.Context(), h, toolchain.Options{CacheDir: cacheDir, KeyDir: keyDir})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(tools.Close(), h.Close()); err != nil {
			t.Error(err)
		}
	})
	return &languages{h, tools}
}

// typescript builds a guest from a file.
func (l *languages) typescript(t *testing.T, file string) *host.Component {
	t.Helper()
	source, tree, err := toolchain.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	c, err := l.tools.Build(t.Context(), source)
	if err := errors.Join(err, tree.Close()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closed(t, c) })
	return c
}

// golang builds a guest from the folder of a module.
func (l *languages) golang(t *testing.T, folder string) *host.Component {
	t.Helper()
	return l.core(t, buildGo(t, folder))
}

// buildGo makes a core module of a folder.
func buildGo(t *testing.T, folder string) string {
	t.Helper()
	core := filepath.Join(t.TempDir(), "core.wasm")
	build := exec.CommandContext(t.Context(), "go", "build", "-C", folder, "-buildmode=c-shared", "-ldflags=-s -w", "-o", core, ".")
	build.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm", "CGO_ENABLED=0", "GOFLAGS=-mod=mod", "GOWORK=off")
	if output, err := build.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, output)
	}
	return core
}

// c builds a guest from a file of C.
func (l *languages) c(t *testing.T, file string) *host.Component {
	t.Helper()
	return l.core(t, clang(t, file))
}

// clang builds a core module from a file of C, as the documents say.
func clang(t *testing.T, file string, more ...string) string {
	t.Helper()
	core := filepath.Join(t.TempDir(), "core.wasm")
	args := []string{
		"--target=wasm32", "-O2", "-mbulk-memory", "-nostdlib", "-Wl,--no-entry", "-Wl,--stack-first", "-std=c11", "-Wall", "-Wextra", "-Werror",
		"-I", "c", "-o", core, file, filepath.Join("c", "stile.c"),
	}
	if output, err := exec.CommandContext(t.Context(), "clang", append(args, more...)...).CombinedOutput(); err != nil {
		t.Fatalf("clang: %v\n%s", err, output)
	}
	return core
}

// core loads a guest from a core module.
func (l *languages) core(t *testing.T, file string) *host.Component {
	t.Helper()
	wasm, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	made, err := toolchain.Preinitialize(t.Context(), toolchain.ExtensionWorld(l.host.WIT()), wasm)
	if err != nil {
		t.Fatal(err)
	}
	if made.Begins != "" && !made.Initialized {
		t.Errorf("%s: %s", file, made.Begins)
	}
	return l.load(t, made.Component)
}

func (l *languages) load(t *testing.T, component []byte) *host.Component {
	t.Helper()
	c, err := l.host.Load(t.Context(), component)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closed(t, c) })
	return c
}

func closed(t *testing.T, c io.Closer) {
	t.Helper()
	if err := c.Close(); err != nil {
		t.Error(err)
	}
}

// kindOf names the kind of a call's error in a case.
func kindOf(err error) string {
	var (
		input   *host.InputError
		unknown *host.UnknownToolError
		denied  *host.DeniedError
		guest   *host.GuestError
		trap    *host.TrapError
		limit   *host.LimitError
	)
	switch {
	case err == nil:
		return ""
	case errors.As(err, &input):
		return "input"
	case errors.As(err, &unknown):
		return "unknown"
	case errors.As(err, &denied):
		return "denied"
	case errors.As(err, &guest):
		return "guest"
	case errors.As(err, &trap):
		return "trap"
	case errors.As(err, &limit):
		return "limit"
	default:
		return "host"
	}
}

// The example gives the same results in every language, one case after the other in one workspace.
func TestNotes(t *testing.T) {
	l := newLanguages(t)
	testNotes(t, map[string]func(*testing.T) *host.Component{
		"typescript": func(t *testing.T) *host.Component {
			return l.typescript(t, filepath.Join("..", "examples", "notes", "notes.ts"))
		},
		"go": func(t *testing.T) *host.Component { return l.golang(t, filepath.Join("..", "examples", "notes", "go")) },
		"c": func(t *testing.T) *host.Component {
			return l.c(t, filepath.Join("..", "examples", "notes", "c", "notes.c"))
		},
	})
}

func testNotes(t *testing.T, languages map[string]func(*testing.T) *host.Component) {
	t.Helper()
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/redirect" {
			http.Redirect(w, r, "/elsewhere", http.StatusTemporaryRedirect)
			return
		}
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		w.WriteHeader(http.StatusCreated)
		fmt.Fprintf(w, "%s %s %s", r.Method, r.URL.Path, body) //nolint:errcheck // the test sees what is missing
	}))
	defer site.Close()
	text, err := os.ReadFile(filepath.Join("..", "examples", "notes", "cases.json"))
	if err != nil {
		t.Fatal(err)
	}
	var cases []struct {
		Tool           string
		Input, Output  json.RawMessage
		Error, Message string
	}
	if err := json.Unmarshal(bytes.ReplaceAll(text, []byte("SITE"), []byte(site.URL)), &cases); err != nil {
		t.Fatal(err)
	}
	port := site.Listener.Addr().(*net.TCPAddr).AddrPort().Port()
	grant := func(path string) httpcap.Rule {
		return httpcap.Rule{Scheme: "http", Host: "127.0.0.1", Port: port, Methods: []string{"POST"}, Path: path}
	}
	for name, build := range languages {
		t.Run(name, func(t *testing.T) {
			c := build(t)
			store, err := workspace.Open(t.Context(), filepath.Join(t.TempDir(), "notes.db"), workspace.Options{})
			if err != nil {
				t.Fatal(err)
			}
			defer closed(t, store)
			env := host.Env{
				"notes": store.Workspace("notes"), "site": httpcap.Allow(grant("/notes"), grant("/redirect")),
				"random": random.System(), // every extension has it, and the runtime of Python draws from it
			}
			verdicts := map[string]string{}
			for i, test := range cases {
				row := fmt.Sprintf("| %d | `%s` | %s |", i+1, test.Tool, cmp.Or(test.Error, "result"))
				verdicts[row] = "fail"
				out, err := c.Call(t.Context(), test.Tool, test.Input, env)
				if kind := kindOf(err); kind != test.Error || err != nil && !strings.Contains(err.Error(), test.Message) {
					t.Errorf("%s %s: %v, want %q %s", test.Tool, test.Input, err, test.Error, test.Message)
					continue
				}
				if err == nil && !same(t, out, test.Output) {
					t.Errorf("%s %s: %s, want %s", test.Tool, test.Input, out, test.Output)
					continue
				}
				verdicts[row] = "pass"
			}
			checkMatrix(t, name, verdicts)
		})
	}
}

func same(t *testing.T, a, b []byte) bool {
	t.Helper()
	normal := func(text []byte) string {
		var v any
		if err := json.Unmarshal(text, &v); err != nil {
			t.Errorf("%s: %v", text, err)
		}
		out, err := json.Marshal(v)
		if err != nil {
			t.Error(err)
		}
		return string(out)
	}
	return normal(a) == normal(b)
}

// testDraws checks that the tool "draws" returns other random numbers in each call: in each of its fields but the fixed ones, which are
// known to repeat.
func testDraws(t *testing.T, c *host.Component, fixed ...string) {
	t.Helper()
	env := host.Env{"random": random.System()}
	draw := func() (fields map[string]any) {
		out, err := c.Call(t.Context(), "draws", []byte("{}"), env)
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
	// They come from the binding: one that repeats gives the same ones.
	env["random"] = random.Seeded([32]byte{1})
	if first, other = draw(), draw(); !maps.Equal(first, other) {
		t.Errorf("of a seed: %v, and then %v", first, other)
	}
}

type keeps struct{ recording *host.Recording }

func (k *keeps) Record(_ context.Context, r *host.Recording) { k.recording = r }

// testRecordedDraws makes a test of a recorded call of the tool "draws", whose result is random. It passes.
func testRecordedDraws(t *testing.T, c *host.Component) {
	t.Helper()
	kept := &keeps{}
	if _, err := c.Do(t.Context(), host.Request{Tool: "draws", Input: []byte("{}"), Env: host.Env{"random": random.System()}, Recorder: kept}); err != nil {
		t.Fatal(err)
	}
	test, err := trial.FromRecording(kept.recording)
	if err != nil {
		t.Fatal(err)
	}
	bindings := []extension.Binding{{Name: "random", Grant: random.Kind.On()}}
	results, err := trial.Run(t.Context(), trial.Request{Component: c, Bindings: bindings, Tests: []extension.Test{test}})
	if err != nil || !results[0].Passed {
		t.Errorf("the test of a recorded call fails: %v, %v", results, err)
	}
}

func TestDrawsTypeScript(t *testing.T) {
	c := newLanguages(t).typescript(t, filepath.Join("testdata", "typescript", "draws.ts"))
	testDraws(t, c)
	testRecordedDraws(t, c)
}

// environment is what a guest of testdata gets. logged tells what it wrote to the console so far.
func environment(t *testing.T) (env host.Env, logged func() string) {
	t.Helper()
	store, err := kv.Open(t.Context(), filepath.Join(t.TempDir(), "kv.db"), kv.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closed(t, store) })
	var mu sync.Mutex
	var lines []string
	env = host.Env{
		"data": store.Bucket("data"), "blobs": blob.NewStore(blob.StoreOptions{}), "random": random.System(), "clock": clock.System(),
		"console": console.To(func(level console.Level, message string) {
			mu.Lock()
			defer mu.Unlock()
			lines = append(lines, fmt.Sprint(level, ": ", message))
		}),
	}
	return env, func() string {
		mu.Lock()
		defer mu.Unlock()
		return strings.Join(lines, "\n")
	}
}

// What the Go runtime needs works, and what a guest must not have is not there.
func TestGo(t *testing.T) {
	c := newLanguages(t).golang(t, filepath.Join("testdata", "go"))
	env, logged := environment(t)
	for _, test := range []struct{ tool, input, output, kind, message string }{
		{"prints", "{}", "null", "", ""},
		{"panics", "{}", "", "guest", "the panic's text"},
		{"exits", "{}", "", "guest", "last words"},
		{"surroundings", "{}", `"[]; []"`, "", ""},
		{"sleeps", `{"milliseconds": 20}`, "true", "", ""},
		{"goroutines", `{"count": 30}`, "435", "", ""},
		{"values", `{"text": "Žofie"}`, `{"bytes": "xb0=", "names": 5, "size": 8, "text": "Žofie!\n", "type": "text/plain"}`, "", ""},
		{"passes", "{}", "null", "", ""},
		{"invalid", "{}", `"true"`, "", ""},
		{"sleeps", `{"milliseconds": "20"}`, "", "input", "/milliseconds"},
		{"sleeps", `{"milliseconds": 600000}`, "", "host", "deadline"},
	} {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		if test.message == "deadline" { // the call ends with its context while the guest sleeps
			cancel()
			ctx, cancel = context.WithTimeout(t.Context(), 50*time.Millisecond)
		}
		out, err := c.Call(ctx, test.tool, []byte(test.input), env)
		cancel()
		if kind := kindOf(err); kind != test.kind || err != nil && !strings.Contains(err.Error(), test.message) {
			t.Errorf("%s: %v, want %q %s", test.tool, err, test.kind, test.message)
		} else if err == nil && !same(t, out, []byte(test.output)) {
			t.Errorf("%s: %s, want %s", test.tool, out, test.output)
		}
	}
	if all := logged(); !strings.Contains(all, "to stdout") || !strings.Contains(all, "to stderr") {
		t.Errorf("the console has %q", all)
	}
	testDraws(t, c)
	testRecordedDraws(t, c)
	if out, err := c.Call(t.Context(), "random", []byte("{}"), nil); err == nil || !strings.Contains(err.Error(), "random") {
		t.Errorf("random bytes without a binding: %s, %v", out, err)
	}
	if out, err := c.Call(t.Context(), "goroutines", []byte(`{"count": 1}`), nil); kindOf(err) != "denied" {
		t.Errorf("kv without a binding: %s, %v", out, err)
	}
}

// The bindings and the memory of C work, and a mistake of a guest is an error that says so.
func TestC(t *testing.T) {
	l := newLanguages(t)
	c := l.c(t, filepath.Join("testdata", "c", "guest.c"))
	store, err := kv.Open(t.Context(), filepath.Join(t.TempDir(), "kv.db"), kv.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer closed(t, store)
	env := host.Env{
		"data": store.Bucket("data"), "blobs": blob.NewStore(blob.StoreOptions{}),
		"site": httpcap.Allow(httpcap.Rule{Scheme: "http", Host: "example.com", Port: 8080, Methods: []string{"GET", "PUT"}}, httpcap.Rule{Scheme: "https", Host: "example.com"}),
	}
	nested := func(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) }
	for _, test := range []struct{ tool, input, output, kind, message string }{
		{"values", `{"text": "\u017dofie"}`, `{"bytes": [197, 189], "names": {"blobs": true, "data": true, "site": true}, "size": 8, "text": "Žofie!\n", "type": "text/plain"}`, "", ""},
		{"stores", `{}`, `[false, true, false, true, "one", -3]`, "", ""},
		{"narrows", `{}`, `["http /a/** GET PUT 8080", "https /** GET 443"]`, "", ""},
		{"passes", `{}`, `false`, "", ""},
		{"memory", `{"bytes": 4194304}`, `0`, "", ""},
		{"memory", `{"bytes": 67108864}`, ``, "limit", "memory"},
		{"deep", `{"calls": 10}`, `54`, "", ""},
		{"deep", `{"calls": 10000000}`, ``, "trap", "out of bounds"},
		{"not_utf8", `{}`, ``, "trap", "utf-8"},
		{"echo", `{"v": {"b": [1.50, "x\u0000"]}}`, `{"b": [1.5, "x\u0000"]}`, "", ""},
		{"echo", `{"v": 1, "v": 2}`, `2`, "", ""},
		{"echo", `{"v": ` + nested(250) + `}`, nested(250), "", ""},
		{"echo", `{"v": ` + nested(300) + `}`, ``, "guest", "nested"},
		{"numbers", `{"of": [0.1, 1e300, 3], "by": 3}`, `[0.30000000000000004, 3e300, 9, null, null]`, "", ""},
	} {
		out, err := c.Call(t.Context(), test.tool, []byte(test.input), env)
		if kind := kindOf(err); kind != test.kind || err != nil && !strings.Contains(err.Error(), test.message) {
			t.Errorf("%s %.60s: %v, want %q %s", test.tool, test.input, err, test.kind, test.message)
		} else if err == nil && !same(t, out, []byte(test.output)) {
			t.Errorf("%s %.60s: %.200s, want %.200s", test.tool, test.input, out, test.output)
		}
	}
	testDraws(t, c)
	// With every function kept, the component has all imports of the world that the SDKs offer, with the types of the WIT, and is valid.
	all := clang(t, filepath.Join("testdata", "c", "guest.c"), "-Wl,--no-gc-sections")
	core, err := os.ReadFile(all)
	if err != nil {
		t.Fatal(err)
	}
	for _, i := range l.host.WIT().Interfaces() {
		if i.Name == abi.CompressionInterface {
			continue
		}
		for _, f := range i.Funcs {
			if !strings.HasPrefix(i.Name, abi.ExtensionPackage) && !bytes.Contains(core, []byte(f.Name)) {
				t.Errorf("the module does not import %s of %s", f.Name, i.Name)
			}
		}
	}
	l.core(t, all)
}
