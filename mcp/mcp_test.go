package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	nethttp "net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"go.uber.org/goleak"

	"github.com/stilehost/stile/capabilities/console"
	"github.com/stilehost/stile/capabilities/http"
	"github.com/stilehost/stile/durable"
	"github.com/stilehost/stile/extension"
	"github.com/stilehost/stile/extension/lifecycle"
	"github.com/stilehost/stile/extension/policy"
	"github.com/stilehost/stile/host"
	"github.com/stilehost/stile/internal/cache/cachetest"
	"github.com/stilehost/stile/ladder"
	"github.com/stilehost/stile/toolchain"
)

var (
	sharedOnce   sync.Once
	sharedHost   *host.Host
	sharedTools  *toolchain.Toolchain
	sharedLadder *ladder.Kit
)

func TestMain(m *testing.M) {
	code := m.Run()
	if sharedHost != nil {
		_ = sharedLadder.Close()
		_ = sharedTools.Close()
		_ = sharedHost.Close()
	}
	if code == 0 {
		if err := goleak.Find(goleak.IgnoreTopFunction("github.com/golang/glog.(*fileSink).flushDaemon")); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	os.Exit(code)
}

// home is a folder of durable state, with a server that uses it.
type home struct {
	t       *testing.T
	options lifecycle.Options
	serve   Options
	manager *lifecycle.Manager
	server  *Server
	durable bool // it has runs
	runs    *durable.Runs
}

var alice = lifecycle.Viewer{User: "tom", Agent: "alice"}

func newHome(t *testing.T, policyText string) *home {
	t.Helper()
	sharedOnce.Do(func() {
		cacheDir, keyDir := cachetest.Dirs(t)
		var err error
		if sharedHost, err = host.New(context.Background(), host.Options{CacheDir: cacheDir, KeyDir: keyDir}); err != nil {
			t.Fatal(err)
		}
		if sharedTools, err = toolchain.New(context.Background(), sharedHost, toolchain.Options{CacheDir: cacheDir, KeyDir: keyDir}); err != nil {
			t.Fatal(err)
		}
		sharedLadder = ladder.NewKit(ladder.KitOptions{Host: sharedHost, Toolchain: func(context.Context) (*toolchain.Toolchain, error) { return sharedTools, nil }})
	})
	p, err := policy.Parse([]byte(policyText))
	if err != nil {
		t.Fatal(err)
	}
	h := &home{
		t: t,
		options: lifecycle.Options{
			Dir: t.TempDir(), Host: sharedHost, Policy: p, Toolchain: func(context.Context) (*toolchain.Toolchain, error) { return sharedTools, nil },
		},
		serve: Options{Ladder: sharedLadder},
	}
	t.Cleanup(h.close)
	h.open()
	return h
}

// with starts again with other options.
func (h *home) with(change func(*Options)) *home {
	h.t.Helper()
	h.close()
	change(&h.serve)
	h.open()
	return h
}

// open starts the parts of one process; close stops them.
func (h *home) open() {
	h.t.Helper()
	h.options.State = extension.NewState(h.options.Dir, func(console.Level, string) {})
	h.options.State.Configure(http.Kind, http.Options{Transport: answers{}})
	var err error
	if h.manager, err = lifecycle.Open(h.t.Context(), h.options); err != nil {
		h.t.Fatal(err)
	}
	h.serve.Manager = h.manager
	if h.durable {
		h.openRuns()
	}
	if h.server, err = New(h.serve); err != nil {
		h.t.Fatal(err)
	}
}

func (h *home) close() {
	if h.server == nil {
		return
	}
	closers := []io.Closer{h.server, h.manager, h.options.State}
	if h.runs != nil {
		closers = slices.Insert(closers, 1, io.Closer(h.runs))
	}
	for _, c := range closers {
		if err := c.Close(); err != nil {
			h.t.Error(err)
		}
	}
	h.server = nil
}

// answers are the servers that rules allow. Each returns its name.
type answers struct{}

func (answers) RoundTrip(r *nethttp.Request) (*nethttp.Response, error) {
	body := fmt.Sprintf("%q", r.URL.Host)
	return &nethttp.Response{
		StatusCode: 200, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: r, ContentLength: int64(len(body)),
		Header: nethttp.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(body)),
	}, nil
}

// client is a client of the SDK, as an agent has one.
type client struct {
	*sdk.ClientSession
	t       *testing.T
	changes chan struct{} // list_changed
	logs    chan string
	passed  chan sdk.ProgressNotificationParams
}

// person is a client that can ask; ask may be nil.
func (h *home) person(v lifecycle.Viewer, name string, ask func(*sdk.ElicitParams) *sdk.ElicitResult) *client {
	h.t.Helper()
	return h.personAt("", v, name, ask)
}

// personAt is person with a version of the protocol.
func (h *home) personAt(version string, v lifecycle.Viewer, name string, ask func(*sdk.ElicitParams) *sdk.ElicitResult) *client {
	h.t.Helper()
	here, there := sdk.NewInMemoryTransports()
	served := make(chan error, 1)
	server := h.server
	go func() { served <- server.Serve(context.WithoutCancel(h.t.Context()), v, here) }()
	c := connect(h.t, there, version, name, ask)
	h.t.Cleanup(func() {
		_ = c.Close()
		if err := <-served; err != nil && !errors.Is(err, ErrClosed) {
			h.t.Errorf("serve: %v", err)
		}
	})
	return c
}

func (h *home) client() *client {
	h.t.Helper()
	return h.person(alice, "test", nil)
}

// connect makes a client of a protocol version; without one, of the newest.
func connect(t *testing.T, transport sdk.Transport, version, name string, ask func(*sdk.ElicitParams) *sdk.ElicitResult) *client {
	t.Helper()
	c := &client{t: t, changes: make(chan struct{}, 1000), logs: make(chan string, 1000), passed: make(chan sdk.ProgressNotificationParams, 1000)}
	o := &sdk.ClientOptions{
		ProgressNotificationHandler: func(_ context.Context, r *sdk.ProgressNotificationClientRequest) { c.passed <- *r.Params },
		ToolListChangedHandler:      func(context.Context, *sdk.ToolListChangedRequest) { c.changes <- struct{}{} },
		LoggingMessageHandler: func(_ context.Context, r *sdk.LoggingMessageRequest) { //nolint:staticcheck // it is what clients have
			c.logs <- fmt.Sprint(r.Params.Logger, " ", r.Params.Level, " ", r.Params.Data)
		},
	}
	if ask != nil {
		o.ElicitationHandler = func(_ context.Context, r *sdk.ElicitRequest) (*sdk.ElicitResult, error) { return ask(r.Params), nil }
	}
	var err error
	if c.ClientSession, err = sdk.NewClient(&sdk.Implementation{Name: name, Version: "1"}, o).Connect(t.Context(), transport, &sdk.ClientSessionOptions{ProtocolVersion: version}); err != nil {
		t.Fatal(err)
	}
	return c
}

// tools are the names of all tools that the client is offered.
func (c *client) tools() (names []string) {
	c.t.Helper()
	for tool, err := range c.Tools(c.t.Context(), nil) {
		if err != nil {
			c.t.Fatal(err)
		}
		names = append(names, tool.Name)
	}
	return names
}

// offers reports whether a tool is in the list.
func (c *client) offers(name string) bool {
	c.t.Helper()
	return slices.Contains(c.tools(), name)
}

// tool calls a tool, which may fail.
func (c *client) tool(name string, arguments any) *sdk.CallToolResult {
	c.t.Helper()
	r, err := c.CallTool(c.t.Context(), &sdk.CallToolParams{Name: name, Arguments: arguments})
	if err != nil {
		c.t.Fatalf("%s: %v", name, err)
	}
	return r
}

// says calls a tool and checks what it returns.
func (c *client) says(name, want string) {
	c.t.Helper()
	if r := c.tool(name, nil); r.IsError || text(r) != want {
		c.t.Fatalf("%s: got %s, want %s", name, text(r), want)
	}
}

// does calls one of Stile's own tools, which must succeed.
func does[Out any](c *client, name string, arguments any) (out Out) {
	c.t.Helper()
	r := c.tool(name, arguments)
	if r.IsError {
		c.t.Fatalf("%s: %s", name, text(r))
	}
	data, err := json.Marshal(r.StructuredContent)
	if err != nil {
		c.t.Fatal(err)
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(&out); err != nil {
		c.t.Fatalf("%s: %v in %s", name, err, data)
	}
	return out
}

// text is all text of a result.
func text(r *sdk.CallToolResult) string {
	var parts []string
	for _, c := range r.Content {
		if t, ok := c.(*sdk.TextContent); ok {
			parts = append(parts, t.Text)
		}
	}
	return strings.Join(parts, "\n")
}

// object is JSON as a model sends it.
type object = map[string]any

// draft is an extension of one tool "get" that returns value.
func draft(name, value string, permissions object) object {
	return tools(name, permissions, object{"get": value})
}

// tools is an extension whose tools return values.
func tools(name string, permissions, values object) object {
	names := []string{}
	source := "import { extension } from \"stile\";\nconst input = { type: \"object\" };\nexport default extension({ tools: {\n"
	for tool, value := range values {
		names = append(names, tool)
		source += fmt.Sprintf("  %s: { description: \"Gets a value\", input, run: async (input: any, env: any) => (%s) },\n", tool, value)
	}
	slices.Sort(names)
	manifest := object{"name": name, "version": "1.0.0", "description": "A test", "tools": names}
	if permissions != nil {
		manifest["permissions"] = permissions
	}
	return object{"manifest": manifest, "source": source + "} });\n"}
}

const preApproved = `{"approve": [{"permissions": {"kv": true}}]}`

func (h *home) approve(release int64, digest string) {
	h.t.Helper()
	if _, err := h.manager.Approve(h.t.Context(), lifecycle.Decision{Release: release, Digest: digest, By: "user:tom", Via: "terminal"}); err != nil {
		h.t.Fatal(err)
	}
}

// soon waits for an effect of other goroutines.
func soon[T any](t *testing.T, c <-chan T, what string) (value T) {
	t.Helper()
	select {
	case value = <-c:
	case <-time.After(2 * time.Minute):
		t.Fatalf("it never came: %s", what)
	}
	return value
}

// An agent's extension becomes a tool once a person approves it. It survives a restart of the server, and an update that requests more waits
// while the old version serves. A revocation removes it and ends a running call.
func TestLife(t *testing.T) {
	h := newHome(t, `{}`)
	c := h.client()
	network := func(hosts ...string) object { return object{"network": hosts} }
	const ask = `fetch("https://api.example.test/").then((r) => r.json())`
	w := does[writeOutput](c, "extension_write", draft("weather", ask, network("api.example.test")))
	if w.State != "pending" || len(w.Changes) == 0 || !strings.Contains(w.Message, fmt.Sprintf("stile ext approve %d", w.Release)) {
		t.Fatalf("got %+v", w)
	}
	if c.offers("weather_get") {
		t.Fatal("it is there before anybody approved it")
	}
	h.approve(w.Release, w.Digest)
	soon(t, c.changes, "a word of the new tool")
	if !c.offers("weather_get") {
		t.Fatal("it is not there though it is approved")
	}
	c.says("weather_get", `"api.example.test"`)

	_ = c.Close()
	h.close()
	h.open()
	c = h.client()
	if !c.offers("weather_get") {
		t.Fatal("it did not outlive the server")
	}
	c.says("weather_get", `"api.example.test"`)

	const more = `fetch("https://more.example.test/").then((r) => r.json())`
	w = does[writeOutput](c, "extension_write", tools("weather", network("api.example.test", "more.example.test"), object{
		"get": more, "hold": `(env.console.log("here"), new Promise((done) => setTimeout(done, 60_000)))`,
	}))
	if w.State != "pending" || !strings.Contains(strings.Join(w.Changes, "\n"), "more.example.test") {
		t.Fatalf("got %+v", w)
	}
	c.says("weather_get", `"api.example.test"`)
	if c.offers("weather_hold") {
		t.Error("a tool of the update is there before anybody approved it")
	}
	h.approve(w.Release, w.Digest)
	c.says("weather_get", `"more.example.test"`)

	ended := make(chan *sdk.CallToolResult, 1)
	go func() { ended <- c.logged("weather_hold") }()
	if line := soon(t, c.logs, "what the tool logs"); line != "weather_hold info here" {
		t.Errorf("logged %q", line)
	}
	if _, err := h.manager.Revoke(t.Context(), extension.Scope{Kind: extension.Agent, Owner: "alice"}, "weather", lifecycle.Decision{By: "user:tom", Via: "terminal", Reason: "enough"}); err != nil {
		t.Fatal(err)
	}
	if r := soon(t, ended, "the end of the call"); !r.IsError || !strings.Contains(text(r), "revoked: enough") {
		t.Errorf("got %s", text(r))
	}
	if c.offers("weather_get") {
		t.Error("it is there though it was revoked")
	}
	if r := c.tool("weather_get", nil); !r.IsError || !strings.Contains(text(r), "was revoked by user:tom (enough)") {
		t.Errorf("it can be called though it was revoked: %s", text(r))
	}
}

// wantsLog goes with a call of which the log is wanted.
func wantsLog() sdk.Meta { return sdk.Meta{"io.modelcontextprotocol/logLevel": "debug"} }

// logged calls a tool as a client that wants its log.
func (c *client) logged(name string) *sdk.CallToolResult {
	p := &sdk.CallToolParams{Name: name}
	p.Meta = wantsLog()
	r, err := c.CallTool(c.t.Context(), p)
	if err != nil {
		c.t.Error(err)
	}
	return r
}
