package mcp

import (
	"context"
	"database/sql"
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/stilehost/stile/durable"
	"github.com/stilehost/stile/extension"
	"github.com/stilehost/stile/extension/lifecycle"
)

// pinned is what the tests write down of a run.
type pinned struct {
	Target lifecycle.RunTarget
	Pin    lifecycle.RunPin
}

func (h *home) openRuns() {
	h.t.Helper()
	var err error
	h.runs, err = durable.Open(h.t.Context(), durable.Options{
		Dir: h.options.Dir, Key: make([]byte, durable.KeySize), Host: sharedHost, Idle: 20 * time.Millisecond,
		Request: func(ctx context.Context, run durable.Info) (a durable.Authority, err error) {
			var p pinned
			if err := json.Unmarshal([]byte(run.Pinned), &p); err != nil {
				return a, err
			}
			awake, err := h.manager.Wake(ctx, p.Target, p.Pin)
			return durable.Authority(awake), err
		},
	})
	if err != nil {
		h.t.Fatal(err)
	}
	h.runs.Work()
	h.serve.Runs = &Runs{
		Store: h.runs,
		Spec: func(ctx context.Context, run lifecycle.Run, input []byte) (spec durable.Spec, err error) {
			text, err := json.Marshal(pinned{run.RunTarget, run.RunPin})
			if err != nil {
				return spec, err
			}
			name, engine := sharedTools.Engine()
			return durable.Spec{Component: durable.Code{Digest: run.Code, Read: run.Component}, Modules: durable.Modules{name: engine}, Tool: run.Own, Input: input, Pinned: string(text)}, err
		},
		Target: func(run durable.Info) (lifecycle.RunTarget, bool) {
			var p pinned
			err := json.Unmarshal([]byte(run.Pinned), &p)
			return p.Target, err == nil
		},
	}
}

// withRuns is a home whose calls of durable tools answer at once if they wait.
func withRuns(t *testing.T) *home {
	h := newHome(t, preApproved)
	h.durable = true
	return h.with(func(o *Options) { o.patience = 300 * time.Millisecond })
}

const orders = `import { extension } from "stile";
const input = { type: "object", properties: { ms: { type: "number" } } };
const output = { type: "object", properties: { n: { type: "number" } }, required: ["n"] };
export default extension({ tools: {
  order: { description: "Orders", input, output, run: async ({ ms }: any, env: any) => { await env.clock.sleep(ms); return { n: await env.kv.increment("n", 1) }; } },
  fail: { description: "Fails", input, run: async ({ ms }: any, env: any) => { await env.clock.sleep(ms); throw new Error("sold out"); } },
} });`

func addOrders(h *home, c *client) {
	h.t.Helper()
	w := does[writeOutput](c, "extension_write", object{"source": orders, "manifest": object{
		"name": "orders", "version": "1.0.0", "description": "d", "tools": []string{"order", "fail"}, "permissions": object{"kv": true},
		"durable": object{"order": true, "fail": object{"deadline": "1h"}},
	}})
	if w.State != "pending" || !strings.Contains(w.Message+strings.Join(w.Changes, " "), "") {
		h.t.Fatalf("got %+v: nobody approved that calls go on", w)
	}
	h.approve(w.Release, w.Digest)
}

// goes calls a durable tool that does not end soon, and returns its run.
func (c *client) goes(tool string, arguments any) runState {
	c.t.Helper()
	s := does[runState](c, tool, arguments)
	if s.Run == "" || slices.Contains([]string{"done", "failed"}, s.State) || !strings.Contains(s.Next, "run_result") {
		c.t.Fatalf("got %+v", s)
	}
	return s
}

// result waits for the result of a run.
func (c *client) result(run string) *sdk.CallToolResult {
	c.t.Helper()
	for {
		r := c.tool("run_result", object{"run": run, "wait": 60})
		if structured, _ := r.StructuredContent.(map[string]any); r.IsError || structured["run"] == nil {
			return r
		}
	}
}

// TestDurableTool has an agent call a durable tool: soon over, long, by another connection, failing, and cancelled.
func TestDurableTool(t *testing.T) {
	h := withRuns(t)
	c := h.client()
	if c.offers("run_status") {
		t.Error("run_status is there without durable tools")
	}
	addOrders(h, c)
	if !c.offers("run_status") || !c.offers("run_result") || !c.offers("run_cancel") {
		t.Fatalf("got %v", c.tools())
	}
	for tool, err := range c.Tools(t.Context(), nil) {
		if err != nil {
			t.Fatal(err)
		}
		if tool.Name == "orders_order" && (tool.OutputSchema != nil || !strings.Contains(tool.Description, "It is durable")) {
			t.Errorf("got %+v", tool)
		}
	}
	if r := c.tool("orders_order", object{"ms": 0}); r.IsError || text(r) != `{"n":1}` {
		t.Errorf("got %s", text(r))
	}
	if got := failed(t, c.tool("orders_order", object{"ms": "soon"})); got.Kind != "input" {
		t.Errorf("got %+v", got)
	}
	s := c.goes("orders_order", object{"ms": 1500})
	if got := does[statusOutput](c, "run_status", object{"run": s.Run}); len(got.Runs) != 1 || got.Runs[0].Tool != "orders_order" || got.Runs[0].Input != `{"ms":1500}` {
		t.Errorf("got %+v", got)
	}
	if r := h.client().result(s.Run); r.IsError || text(r) != `{"n":2}` {
		t.Errorf("got %s", text(r))
	}
	// A model reads where a run is as people do: without the address of a mailbox that is in its input.
	const token = "AbCdEfGhIjKlMnOpQrStUvWxYz0123456789-_abcde"
	s = c.goes("orders_fail", object{"ms": 1500, "to": "https://h.example/signals/" + token})
	if got := does[statusOutput](c, "run_status", nil); !strings.Contains(got.Runs[0].Input, "https://h.example/signals/[address]") || strings.Contains(got.Runs[0].Input, token[:20]) {
		t.Errorf("got %+v", got)
	}
	if r := c.result(s.Run); failed(t, r).Kind != "failed" || !strings.Contains(text(r), "sold out") {
		t.Errorf("got %s", text(r))
	}
	s = c.goes("orders_order", object{"ms": 3_600_000})
	if got := does[runState](c, "run_cancel", object{"run": s.Run}); got.State != "cancelled" {
		t.Errorf("got %+v", got)
	}
	if r := c.tool("run_result", object{"run": s.Run}); !r.IsError || !strings.Contains(text(r), "was cancelled") {
		t.Errorf("got %s", text(r))
	}
	if got := does[statusOutput](c, "run_status", nil); len(got.Runs) != 4 || got.Runs[0].State != "cancelled" || got.Runs[3].State != "done" {
		t.Errorf("got %+v", got)
	}
	if r := c.tool("run_result", object{"run": s.Run, "wait": 61}); !r.IsError {
		t.Errorf("got %s", text(r))
	}

	// A run that waits for one that is parked says so. The reason is for people.
	s = c.goes("orders_order", object{"ms": 3_600_000})
	child := c.goes("orders_order", object{"ms": 3_600_000})
	db, err := sql.Open("sqlite", "file:"+filepath.Join(h.options.Dir, durable.File)+"?_pragma=busy_timeout(60000)")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := db.ExecContext(t.Context(), `UPDATE run SET state = 'parked', reason = 'secret', parent = (SELECT id FROM run WHERE name = ?) WHERE name = ?`, s.Run, child.Run); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	if got := does[statusOutput](c, "run_status", object{"run": s.Run}).Runs[0]; !strings.Contains(got.Waits, child.Run+", which is parked") || !strings.Contains(got.Next, "stile runs retry "+child.Run) || strings.Contains(got.Waits+got.Next, "secret") {
		t.Errorf("got %+v", got)
	}

	// Without the extension, its run is parked and the tools about runs are gone.
	s = c.goes("orders_order", object{"ms": 1000})
	if _, err := h.manager.Revoke(t.Context(), extension.Scope{Kind: extension.Agent, Owner: "alice"}, "orders", lifecycle.Decision{By: "user:tom"}); err != nil {
		t.Fatal(err)
	}
	if r, err := h.runs.Wait(t.Context(), s.Run); err != nil || r.State != durable.Parked || !strings.Contains(r.Reason, "was revoked") {
		t.Errorf("got %+v, %v", r.Info, err)
	}
	if c.offers("run_status") {
		t.Error("run_status is still there")
	}
}

// TestRunsOfOthers has an agent look for runs of another, of the same user and of the same shared tool.
func TestRunsOfOthers(t *testing.T) {
	h := withRuns(t)
	c := h.client()
	addOrders(h, c)
	other := h.person(lifecycle.Viewer{User: "tom", Agent: "bob"}, "test", nil)
	addOrders(h, other)
	s := c.goes("orders_order", object{"ms": 3_600_000})
	for _, tool := range []string{"run_status", "run_result", "run_cancel"} {
		if r := other.tool(tool, object{"run": s.Run}); !r.IsError || !strings.Contains(text(r), "you have no run") {
			t.Errorf("%s: got %s", tool, text(r))
		}
	}
	if got := does[statusOutput](other, "run_status", nil); len(got.Runs) != 0 {
		t.Errorf("got %+v", got)
	}
	if got := does[statusOutput](c, "run_status", nil); len(got.Runs) != 1 {
		t.Errorf("got %+v", got)
	}
}

// TestCancelledRequest cancels the request of a durable call. The run goes on.
func TestCancelledRequest(t *testing.T) {
	h := withRuns(t).with(func(o *Options) { o.patience = time.Hour })
	c := h.client()
	addOrders(h, c)
	ctx, cancel := context.WithCancel(t.Context())
	over := make(chan error, 1)
	go func() {
		_, err := c.CallTool(ctx, &sdk.CallToolParams{Name: "orders_order", Arguments: object{"ms": 1500}})
		over <- err
	}()
	var runs []durable.Info
	for len(runs) == 0 {
		var err error
		if runs, err = h.runs.List(t.Context(), "", 1); err != nil {
			t.Fatal(err)
		}
	}
	cancel()
	if err := <-over; err == nil {
		t.Error("the request was not cancelled")
	}
	if r, err := h.runs.Wait(t.Context(), runs[0].Name); err != nil || r.State != durable.Done {
		t.Errorf("got %+v, %v", r.Info, err)
	}
}

// TestRunOutlivesServer closes the server while a run waits. The next one carries it on.
func TestRunOutlivesServer(t *testing.T) {
	h := withRuns(t)
	c := h.client()
	addOrders(h, c)
	s := c.goes("orders_order", object{"ms": 1000})
	h.close()
	h.open()
	if r := h.client().result(s.Run); r.IsError || text(r) != `{"n":1}` {
		t.Errorf("got %s", text(r))
	}
}

// TestManyRuns bounds the runs of an agent.
func TestManyRuns(t *testing.T) {
	h := withRuns(t)
	spec := durable.Spec{Function: "none", Whose: "agent:a", Most: 2}
	for range 2 {
		if _, _, err := h.runs.Start(t.Context(), spec); err != nil {
			t.Fatal(err)
		}
	}
	if _, _, err := h.runs.Start(t.Context(), spec); err == nil || !strings.Contains(err.Error(), "limit reached: 2 runs") {
		t.Errorf("got %v", err)
	}
	spec.Whose = "agent:b"
	if _, _, err := h.runs.Start(t.Context(), spec); err != nil {
		t.Error(err)
	}
	if list, err := h.runs.ListOf(t.Context(), "agent:a", "", 10); err != nil || len(list) != 2 {
		t.Errorf("got %+v, %v", list, err)
	}
}

// TestDurableProgress has a client ask for progress of a durable call that waits for a person. It is told where the run is, and so is who asks later.
func TestDurableProgress(t *testing.T) {
	ticks := make(chan time.Time)
	h := withRuns(t).with(func(o *Options) {
		o.patience = time.Hour
		o.ticks = func(time.Duration) (<-chan time.Time, func()) { return ticks, func() {} }
	})
	c := h.client()
	w := does[writeOutput](c, "extension_write", object{
		"source": `import { extension } from "stile";
export default extension({ tools: { ask: { description: "Asks", input: { type: "object" }, run: async (_: any, env: any) => (await env.signals.receive("approved")).data } } });`,
		"manifest": object{"name": "boss", "version": "1.0.0", "description": "d", "tools": []string{"ask"}, "permissions": object{"signals": true}, "durable": object{"ask": true}},
	})
	h.approve(w.Release, w.Digest)
	p := &sdk.CallToolParams{Name: "boss_ask"}
	p.SetProgressToken("mine")
	ended := make(chan *sdk.CallToolResult, 1)
	go func() {
		r, err := c.CallTool(t.Context(), p)
		if err != nil {
			t.Error(err)
		}
		ended <- r
	}()
	var run string
	for run == "" {
		list, err := h.runs.List(t.Context(), "", 1)
		if err != nil {
			t.Fatal(err)
		}
		if len(list) > 0 && list[0].State == durable.Asleep {
			run = list[0].Name
		}
	}
	ticks <- time.Now().Add(time.Second)
	if got := soon(t, c.passed, "where the run is"); got.ProgressToken != "mine" || got.Progress != 1 || got.Message != "run "+run+": asleep, waits for signals in approved" {
		t.Errorf("got %+v", got)
	}
	if got := does[statusOutput](h.client(), "run_status", nil); len(got.Runs) != 1 || got.Runs[0].Waits != "signals in approved" {
		t.Errorf("got %+v", got)
	}
	if _, err := h.runs.Signal(t.Context(), run, "approved", durable.Message{Data: []byte(`"yes"`)}); err != nil {
		t.Fatal(err)
	}
	if r := <-ended; r == nil || text(r) != "yes" && text(r) != `"yes"` {
		t.Errorf("got %+v", r)
	}
}
