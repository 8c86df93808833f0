package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/stilehost/stile/extension"
	"github.com/stilehost/stile/extension/lifecycle"
	"github.com/stilehost/stile/host"
	"github.com/stilehost/stile/internal/turns"
)

const (
	instructions = `Stile runs tools that you write yourself, in a sandbox that can reach nothing but what an extension's manifest asks for and a person approved.
Before you write a tool, look for one with extension_list. Write one with extension_write; as soon as it is active, its tools are in your list. ` +
		`If it is pending, a person must approve it, which you cannot do: tell your user, and go on with something else.`
	ladderInstructions = " For a one-off computation, use code_run. workspace_read, workspace_edit and their like work on your own files, which last."
)

// endpoint is the SDK's server for one viewer. It keeps the server's tools in step with the manager's.
type endpoint struct {
	options Options
	viewer  lifecycle.Viewer
	sdk     *sdk.Server
	wait    sync.WaitGroup // for the goroutines that watch sessions
	kept    *shelf[output]
	traffic *traffic
	calls   *running
	places  places
	builtin map[string]bool // by the name of a tool

	mu       sync.Mutex
	sessions map[*sdk.ServerSession]*session
	uses     map[string]*use   // of sessions over HTTP, by their number
	peers    map[string]*peer  // by the hash of a token
	seen     <-chan struct{}   // what Manager.Changed returned when the tools were last read
	offered  map[string]*offer // by the name of a tool
	reach    string            // of the agent's ladder, for which its tools are offered
	climbed  map[string]bool   // the tools of the ladder that are offered
	runs     bool              // the tools about runs are offered
}

func newEndpoint(o Options, p places, v lifecycle.Viewer) *endpoint {
	e := &endpoint{options: o, viewer: v, sessions: map[*sdk.ServerSession]*session{}, uses: map[string]*use{}, peers: map[string]*peer{}, offered: map[string]*offer{}, kept: p.kept.shelf(maxKept), traffic: newTraffic(), calls: &running{whose: "an agent", most: maxAgentCalls}, places: p, builtin: map[string]bool{}, climbed: map[string]bool{}}
	guide := instructions
	if o.Ladder != nil {
		guide += ladderInstructions
	}
	e.sdk = sdk.NewServer(&sdk.Implementation{Name: "stile", Title: "Stile", Version: o.Version}, &sdk.ServerOptions{
		Instructions: guide,
		Logger:       slog.New(warnings{o.Logger.Handler()}),
		PageSize:     o.PageSize,
		Capabilities: &sdk.ServerCapabilities{
			Logging:   &sdk.LoggingCapabilities{}, //nolint:staticcheck // clients of the versions before 2026-07-28 have it
			Tools:     &sdk.ToolCapabilities{ListChanged: true},
			Resources: &sdk.ResourceCapabilities{},
		},
		// The result depends on the viewer, and another process may change it at any time, so it must not be cached.
		SetCacheable: func(_ context.Context, _ sdk.Request, c *sdk.Cacheable) { c.TTLMs, c.CacheScope = 0, "private" },
	})
	e.sdk.AddReceivingMiddleware(e.receive)
	e.sdk.AddSendingMiddleware(e.send)
	e.addResources()
	e.addWriting()
	e.addKeeping()
	if o.Runs != nil {
		for _, name := range runTools {
			e.builtin[name] = true
		}
	}
	if o.Ladder != nil {
		for _, name := range ladderTools() {
			e.builtin[name] = true
		}
	}
	return e
}

// warnings leaves out what the SDK logs about every session.
type warnings struct{ slog.Handler }

// Enabled implements slog.Handler.
func (w warnings) Enabled(ctx context.Context, l slog.Level) bool {
	return l >= slog.LevelWarn && w.Handler.Enabled(ctx, l)
}

// own is the scope in which the viewer writes and removes extensions.
func (e *endpoint) own() extension.Scope {
	return extension.Scope{Kind: extension.Agent, Owner: e.viewer.Agent}
}

// scope is the scope that a model means by a word.
func (e *endpoint) scope(word string) (extension.Scope, error) {
	switch word {
	case "", "agent":
		return e.own(), nil
	case "user":
		if e.viewer.User == "" {
			return extension.Scope{}, mistake("there is no user here; leave scope out")
		}
		return extension.Scope{Kind: extension.User, Owner: e.viewer.User}, nil
	case "shared":
		return extension.Scope{Kind: extension.Shared}, nil
	default:
		return extension.Scope{}, mistake(fmt.Sprintf("%q is not a scope; write agent, user or shared", word))
	}
}

// receive makes every answer use the current tools, and ends what can wait when its client leaves.
func (e *endpoint) receive(next sdk.MethodHandler) sdk.MethodHandler {
	return func(ctx context.Context, method string, r sdk.Request) (sdk.Result, error) {
		connection, ok := r.GetSession().(*sdk.ServerSession)
		if !ok {
			return next(ctx, method, r)
		}
		under := takenBy(r.GetExtra())
		if under != nil {
			under.parsed()
		}
		if !beforehand[method] {
			s := e.session(connection, r.GetExtra())
			s.ready.Store(true)
			var cancel context.CancelFunc // or what nobody reads any more would wait, and take memory, in any number
			ctx, cancel = s.within(ctx, r.GetExtra())
			defer cancel()
		}
		if under != nil && largeAnswers[method] {
			if err := under.answer(ctx); err != nil {
				return nil, err
			}
		}
		switch method {
		case "tools/list":
			if err := e.sync(ctx); ctx.Err() != nil {
				return nil, context.Cause(ctx)
			} else if err != nil {
				e.options.Logger.Error("list the tools", "error", err)
				return nil, &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: "the tools cannot be listed; Stile's log has the reason"}
			}
		case "tools/call":
			if allowed := allowed(r.GetExtra()); allowed != nil { // the message may have come long after its header
				if err := allowed(); err != nil {
					return nil, err
				}
			}
			e.follow(ctx)
			if call, ok := r.(*sdk.CallToolRequest); ok {
				switch token := call.Params.GetProgressToken().(type) { // it comes back each second
				case string:
					if len(token) > maxEcho {
						return nil, invalid("the progressToken has more than %d bytes", maxEcho)
					}
				case map[string]any, []any:
					return nil, invalid("the progressToken is no text or number")
				}
				if stowed := stowedBy(r.GetExtra()); stowed != nil {
					if err := stowed.restore(call); err != nil {
						return nil, err
					}
				}
				if missing := e.missing(ctx, call.Params.Name); missing != nil {
					f, _ := e.explain(missing, host.Usage{})
					return f.result(false), nil
				}
			}
		}
		result, err := next(ctx, method, r)
		if err == nil && largeAnswers[method] {
			err = e.answer(ctx, result, under)
		}
		return result, encodable(err)
	}
}

// encodable leaves data that is not JSON out of an error: the SDK would end the session instead of sending the error. It quotes the URI of
// an unknown resource as Go does.
func encodable(err error) error {
	if said, ok := errors.AsType[*jsonrpc.Error](err); ok && said.Data != nil && !json.Valid(said.Data) {
		return &jsonrpc.Error{Code: said.Code, Message: said.Message}
	}
	return err
}

// beforehand are the methods that a client may use before it is initialized.
var beforehand = map[string]bool{"initialize": true, "ping": true, "server/discover": true}

// send leaves out changes of the list of tools before a client is initialized. It has not read any list yet.
func (e *endpoint) send(next sdk.MethodHandler) sdk.MethodHandler {
	return func(ctx context.Context, method string, r sdk.Request) (sdk.Result, error) {
		if connection, ok := r.GetSession().(*sdk.ServerSession); ok && method == "notifications/tools/list_changed" && !e.isReady(connection) {
			return nil, nil
		}
		return next(ctx, method, r)
	}
}

// offers reports whether a registered tool is offered.
func (e *endpoint) offers(tool string) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	_, ok := e.offered[tool]
	return ok
}

// offer is a tool of an extension in the list.
type offer struct {
	version string // of its extension

	mu   sync.Mutex
	of   lifecycle.Tool
	tool *sdk.Tool // as a client sees it, once somebody asked
	err  error
}

// shown returns the tool as a client sees it. Decoding its schemas takes up to a tenth of a second and 100 MiB, so agents take turns
// the first time.
func (o *offer) shown(ctx context.Context, e *endpoint) (*sdk.Tool, error) {
	made := func(now bool) bool {
		o.mu.Lock()
		defer o.mu.Unlock()
		if now && o.tool == nil && o.err == nil {
			if o.tool, o.err = toolOf(o.of); o.err != nil {
				e.options.Logger.Warn("a tool cannot be offered", "tool", o.of.Name, "error", o.err)
			}
			o.of = lifecycle.Tool{}
		}
		return o.tool != nil || o.err != nil
	}
	if !made(false) {
		if err := e.places.reading.Take(turns.For(ctx, e.viewer.String())); err != nil {
			return nil, err
		}
		defer e.places.reading.Give()
		made(true)
	}
	return o.tool, o.err
}

// anyObject is the schema of a tool until a client asks for it.
var anyObject = json.RawMessage(`{"type":"object"}`)

// answer completes a large answer, and waits until there is room to write it.
func (e *endpoint) answer(ctx context.Context, result sdk.Result, under *taken) (err error) {
	var size int64
	switch r := result.(type) {
	case *sdk.ListToolsResult:
		size, err = e.show(ctx, r)
	case *sdk.ReadResourceResult:
		for _, c := range r.Contents {
			size += int64(len(c.Text))
		}
	}
	if err != nil || under == nil {
		return err
	}
	return under.write(ctx, size)
}

// show puts the tools of extensions into a page of the list, with their schemas, and ends the page when it is full. It returns the bytes of
// their definitions.
func (e *endpoint) show(ctx context.Context, list *sdk.ListToolsResult) (size int64, err error) {
	tools := make([]*sdk.Tool, 0, len(list.Tools)) // the SDK keeps its own
	for _, t := range list.Tools {
		if e.builtin[t.Name] {
			tools = append(tools, t)
			continue
		}
		e.mu.Lock()
		o := e.offered[t.Name]
		e.mu.Unlock()
		if o == nil {
			continue // it is gone
		}
		shown, err := o.shown(ctx, e)
		if ctx.Err() != nil {
			return 0, ctx.Err()
		}
		if err != nil {
			continue
		}
		n := definitionSize(shown)
		if len(tools) > 0 && size+n > maxPage {
			list.NextCursor = cursorAfter(tools[len(tools)-1].Name)
			break
		}
		tools = append(tools, shown)
		size += n
	}
	list.Tools = tools
	return size, nil
}

// follow is sync for a caller that can go on: a call of an extension fails for the same reason.
func (e *endpoint) follow(ctx context.Context) {
	if err := e.sync(ctx); err != nil && ctx.Err() == nil {
		e.options.Logger.Warn("look for changes of extensions", "error", err)
	}
}

// sync adds and removes tools if the manager's have changed since the last time. The SDK tells the clients once for many changes.
func (e *endpoint) sync(ctx context.Context) error {
	if err := e.options.Manager.Refresh(ctx); err != nil {
		return err
	}
	if err := e.climb(ctx); err != nil {
		return err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	changed := e.options.Manager.Changed() // asked before the tools, so that it misses no change
	if changed == e.seen {
		return nil
	}
	tools, err := e.options.Manager.Tools(ctx, e.viewer)
	if err != nil {
		return err
	}
	e.seen = changed
	offered := map[string]*offer{}
	durable := false
	for _, t := range tools {
		if e.options.Runs == nil {
			t.Durable = nil
		}
		durable = durable || t.Durable != nil
		if e.builtin[t.Name] {
			continue // it was written for another version, and would replace a tool of ours
		}
		version := t.Scope.String() + " " + t.Digest
		o := e.offered[t.Name]
		if o == nil || o.version != version {
			o = &offer{version: version, of: t}
			e.sdk.AddTool(&sdk.Tool{Name: t.Name, InputSchema: anyObject}, e.caller(t.Name, o))
		}
		offered[t.Name] = o
	}
	var gone []string
	for name := range e.offered {
		if _, ok := offered[name]; !ok {
			gone = append(gone, name)
		}
	}
	if len(gone) > 0 {
		e.sdk.RemoveTools(gone...)
	}
	e.offered = offered
	e.offerRuns(durable)
	return nil
}
