package extism

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	sdk "github.com/extism/go-sdk"
	"github.com/tetratelabs/wazero"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/capabilities/clock"
	"github.com/stilehost/stile/capabilities/console"
	stilehttp "github.com/stilehost/stile/capabilities/http"
	"github.com/stilehost/stile/capabilities/kv"
	"github.com/stilehost/stile/capabilities/random"
	"github.com/stilehost/stile/host"
	"github.com/stilehost/stile/toolchain"
	"github.com/stilehost/stile/wit"
)

// call is what a plug-in is asked.
type call struct {
	tool  string
	input string
}

// setting is what a plug-in has around it.
type setting struct {
	config map[string]string
	hosts  []string          // that it may ask
	server http.HandlerFunc  // answers for all hosts
	vars   map[string]string // before the first call
}

// outcome is what became of a call.
type outcome struct {
	output []byte
	failed bool
	text   string // of the failure
	err    error
}

// result is what became of all calls.
type result struct {
	outcomes []outcome
	logs     []string
	vars     map[string][]byte
	asked    []string // hosts that got a request
}

// recorder answers requests by a handler, and notes whom they asked.
type recorder struct {
	handler http.HandlerFunc
	mu      sync.Mutex
	asked   []string
}

func (r *recorder) RoundTrip(req *http.Request) (*http.Response, error) {
	r.mu.Lock()
	r.asked = append(r.asked, req.URL.Hostname())
	r.mu.Unlock()
	if r.handler == nil {
		return nil, errors.New("connection refused")
	}
	w := &response{header: http.Header{}, status: http.StatusOK}
	if req.Body == nil {
		req.Body = http.NoBody
	}
	r.handler(w, req)
	_ = req.Body.Close()
	return &http.Response{
		StatusCode: w.status, Status: fmt.Sprintf("%d %s", w.status, http.StatusText(w.status)), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: w.header, Body: io.NopCloser(&w.body), ContentLength: int64(w.body.Len()), Request: req,
	}, nil
}

type response struct {
	header http.Header
	body   bytes.Buffer
	status int
}

func (r *response) Header() http.Header         { return r.header }
func (r *response) Write(b []byte) (int, error) { return r.body.Write(b) }
func (r *response) WriteHeader(status int)      { r.status = status }

// ofSDK matches what the SDK itself logs.
var ofSDK = regexp.MustCompile(`^(Calling|Initializing|Initialized) `)

// compiled is what wazero has compiled in this process.
var compiled = wazero.NewCompilationCache()

// onSDK runs calls on extism/go-sdk. Its client is Go's default one.
func onSDK(t *testing.T, wasm []byte, s setting, calls []call) result {
	t.Helper()
	r := &recorder{handler: s.server}
	http.DefaultClient.Transport = r
	defer func() { http.DefaultClient.Transport = nil }()
	var out result
	sdk.SetLogLevel(sdk.LogLevelTrace)
	plugin, err := sdk.NewPlugin(t.Context(), sdk.Manifest{
		Wasm: []sdk.Wasm{sdk.WasmData{Data: wasm}}, Config: maps.Clone(s.config), AllowedHosts: s.hosts,
	}, sdk.PluginConfig{EnableWasi: true, EnableHttpResponseHeaders: true, RuntimeConfig: wazero.NewRuntimeConfig().WithCompilationCache(compiled)}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = plugin.Close(context.Background()) }()
	plugin.SetLogger(func(level sdk.LogLevel, message string) {
		if !ofSDK.MatchString(message) {
			out.logs = append(out.logs, strings.ToLower(level.String())+" "+message)
		}
	})
	for name, value := range s.vars {
		plugin.Var[name] = []byte(value)
	}
	for _, c := range calls {
		var o outcome
		code, output, err := plugin.Call(c.tool, []byte(c.input))
		if o.failed = err != nil || code != 0; o.failed {
			o.err = err
			if err != nil {
				o.text = err.Error()
			}
		} else {
			o.output = output
		}
		out.outcomes = append(out.outcomes, o)
	}
	out.vars, out.asked = plugin.Var, r.asked
	return out
}

var known = sync.OnceValue(func() *abi.Resolve {
	known, err := abi.ParseCapability(wit.Capability(), wit.Extension())
	if err != nil {
		panic(err)
	}
	return known
})

func component(t *testing.T, wasm []byte) []byte {
	t.Helper()
	c, err := toolchain.Componentize(toolchain.ExtensionWorld(known()), wasm)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// stile is the host for all tests.
var stile = sync.OnceValue(func() *host.Host {
	h, err := host.New(context.Background(), host.Options{})
	if err != nil {
		panic(err)
	}
	return h
})

// loaded are components by the plug-in that they were made of.
var loaded = map[string]*host.Component{}

// load makes a component of a plug-in, once.
func load(t *testing.T, wasm []byte) *host.Component {
	t.Helper()
	c := loaded[string(wasm)]
	if c == nil {
		var err error
		if c, err = stile().Load(context.WithoutCancel(t.Context()), component(t, wasm)); err != nil {
			t.Fatal(err)
		}
		loaded[string(wasm)] = c
	}
	return c
}

// TestMain closes what all tests share.
func TestMain(m *testing.M) {
	code := m.Run()
	for _, c := range loaded {
		_ = c.Close()
	}
	_ = stile().Close()
	os.Exit(code)
}

// onStile runs calls on this host.
func onStile(t *testing.T, wasm []byte, s setting, calls []call) result {
	t.Helper()
	ctx := t.Context()
	c := load(t, wasm)
	store, err := kv.Open(ctx, filepath.Join(t.TempDir(), "kv.db"), kv.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = store.Close() }()
	bucket := store.Bucket("plugin")
	for name, value := range s.config {
		if err := bucket.Set(ctx, "config/"+name, value); err != nil {
			t.Fatal(err)
		}
	}
	for name, value := range s.vars {
		if err := bucket.Set(ctx, "var/"+name, value); err != nil {
			t.Fatal(err)
		}
	}
	var out result
	r := &recorder{handler: s.server}
	env := host.Env{
		toolchain.ExtismKV: bucket, "clock": clock.System(), "random": random.System(),
		toolchain.ExtismConsole: console.To(func(level console.Level, message string) {
			out.logs = append(out.logs, level.String()+" "+message)
		}),
	}
	if s.hosts != nil {
		var rules []stilehttp.Rule
		for _, name := range s.hosts {
			for _, scheme := range []string{"http", "https"} {
				rules = append(rules, stilehttp.Rule{Scheme: scheme, Host: name, Methods: []string{"*"}, Headers: []string{"*"}})
			}
		}
		env[toolchain.ExtismHTTP], err = stilehttp.New(stilehttp.Options{Rules: rules, Transport: r})
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, c2 := range calls {
		input, _ := json.Marshal(map[string]string{"input": c2.input})
		var o outcome
		output, err := c.Call(ctx, c2.tool, input, env)
		if o.err, o.failed = err, err != nil; o.failed {
			o.text = err.Error()
			if told, ok := errors.AsType[*host.GuestError](err); ok {
				o.text = told.Failure.Message
			}
		} else {
			o.output = bytesOf(t, output)
		}
		out.outcomes = append(out.outcomes, o)
	}
	out.vars, out.asked = map[string][]byte{}, r.asked
	page, err := bucket.List(ctx, "var/", 1000, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range page.Entries {
		value := []byte(e.Value)
		if encoded, ok := strings.CutPrefix(e.Value, "base64:"); ok {
			if value, err = base64.StdEncoding.DecodeString(encoded); err != nil {
				t.Fatal(err)
			}
		}
		out.vars[strings.TrimPrefix(e.Key, "var/")] = value
	}
	return out
}

// bytesOf are the bytes that a result stands for: a text, or base64.
func bytesOf(t *testing.T, output []byte) []byte {
	t.Helper()
	var text string
	if json.Unmarshal(output, &text) == nil {
		return []byte(text)
	}
	var encoded struct{ Base64 []byte }
	if err := json.Unmarshal(output, &encoded); err != nil {
		t.Fatalf("%s: %v", output, err)
	}
	return encoded.Base64
}

// sdkWasm is a plug-in that comes with the sources of the SDK.
func sdkWasm(t *testing.T, name string) []byte {
	t.Helper()
	wasm, err := os.ReadFile(filepath.Join(sdkFolder(t), "wasm", name+".wasm"))
	if err != nil {
		t.Fatal(err)
	}
	return wasm
}

func sdkFolder(t *testing.T) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", "github.com/extism/go-sdk").Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(out))
}

// built is the plug-in of testdata/go, with the PDK for Go.
var built = sync.OnceValues(func() ([]byte, error) {
	dir, err := os.MkdirTemp("", "")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	file := filepath.Join(dir, "plugin.wasm")
	cmd := exec.CommandContext(context.Background(), "go", "build", "-buildmode=c-shared", "-ldflags=-s -w", "-o", file, ".")
	cmd.Dir = filepath.Join("testdata", "go")
	cmd.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm", "GOFLAGS=-mod=mod")
	if out, err := cmd.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("%w: %s", err, out)
	}
	return os.ReadFile(file)
})

func goPlugin(t *testing.T) []byte {
	t.Helper()
	wasm, err := built()
	if err != nil {
		t.Fatal(err)
	}
	return wasm
}

// same compares what became of calls.
func same(t *testing.T, here, there result) {
	t.Helper()
	for i, o := range here.outcomes {
		other := there.outcomes[i]
		switch {
		case o.failed != other.failed:
			t.Errorf("call %d: here %q, %v; there %q, %v", i, o.output, o.err, other.output, other.err)
		case !bytes.Equal(o.output, other.output):
			t.Errorf("call %d: here %q, there %q", i, o.output, other.output)
		case o.failed && other.text != "" && o.text != other.text:
			t.Errorf("call %d fails: here %q, there %q", i, o.text, other.text)
		}
	}
	if wrote := func(line string) bool { return strings.Contains(line, "printed from the plugin") }; !slices.Equal(slices.DeleteFunc(here.logs, wrote), there.logs) {
		t.Errorf("logs: here %q, there %q", here.logs, there.logs)
	}
	if !maps.EqualFunc(here.vars, there.vars, bytes.Equal) {
		t.Errorf("vars: here %q, there %q", here.vars, there.vars)
	}
	if !slices.Equal(here.asked, there.asked) {
		t.Errorf("asked: here %q, there %q", here.asked, there.asked)
	}
}
