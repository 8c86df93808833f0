package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stilehost/stile/capabilities/console"
	"github.com/stilehost/stile/extension"
)

// holding is an extension whose tool waits until something ends it.
func holding(value int) Draft {
	return tool("slow", "get", fmt.Sprintf(`import { extension } from "stile";
export default extension({ tools: { get: { description: "Waits", input: { type: "object" }, run: async (_, env) => { env.console.log("here"); await env.clock.sleep(50_000); return %d; } } } });`, value),
		`{"clock": true, "console": true}`)
}

// begins calls a tool, and returns a channel for its result once the call is running.
func begins(t *testing.T, m *Manager, ctx context.Context, name string) <-chan error {
	t.Helper()
	began, ended := make(chan struct{}), make(chan error, 1)
	go func() {
		_, err := m.Call(ctx, Call{Viewer: agent, Tool: name, Log: func(console.Level, string) { close(began) }})
		ended <- err
	}()
	select {
	case <-began:
	case err := <-ended:
		t.Fatalf("it ended at once: %v", err)
	}
	return ended
}

// A revocation ends the calls of versions superseded before it, also if a process learns of both at once.
func TestRevokeEndsCallsOfEarlierVersions(t *testing.T) {
	h := newHome(t)
	m, other := h.open(), h.open()
	write(t, m, holding(1))
	eventually(t, other, "the other process has the tool", func() bool { return len(offered(t, other, agent)) == 1 })
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 2*time.Minute)
	defer cancel()
	here, there := begins(t, m, ctx, "slow_get"), begins(t, other, ctx, "slow_get")
	write(t, m, holding(2))
	if _, err := m.Revoke(t.Context(), own, "slow", person); err != nil {
		t.Fatal(err)
	}
	for _, ended := range []<-chan error{here, there} {
		if err := <-ended; !errors.As(err, new(*RevokedError)) {
			t.Errorf("got %v, want a RevokedError", err)
		}
	}
}

// A revocation ends the calls of a superseded version, also if its successor had been requested earlier.
func TestRevokeEndsCallsInAnotherOrder(t *testing.T) {
	m := newHome(t).open()
	first, second := holding(1), holding(2)
	for _, d := range []*Draft{&first, &second} {
		d.Scope = extension.Scope{Kind: extension.Shared}
	}
	second.Author = "agent:b"
	asked := write(t, m, first).Release
	approve(t, m, write(t, m, second).Release)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	ended := begins(t, m, ctx, "slow_get")
	approve(t, m, asked)
	if _, err := m.Revoke(t.Context(), asked.Scope, "slow", person); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; !errors.As(err, new(*RevokedError)) {
		t.Errorf("got %v, want a RevokedError", err)
	}
}

// Close waits for calls of a superseded version. Later calls are refused.
func TestCloseWaitsForCallsOfEarlierVersions(t *testing.T) {
	m := newHome(t).open()
	write(t, m, holding(1))
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	defer cancel()
	ended := begins(t, m, ctx, "slow_get")
	write(t, m, holding(2))
	closed := make(chan error)
	go func() { closed <- m.Close() }()
	for m.enter() == nil { // until Close has begun
		m.calls.Done()
	}
	late, stop := context.WithTimeout(t.Context(), 2*time.Minute)
	defer stop()
	if _, err := m.Call(late, Call{Viewer: agent, Tool: "slow_get"}); !errors.Is(err, ErrClosed) {
		t.Errorf("got %v, want ErrClosed", err)
	}
	select {
	case err := <-closed:
		t.Errorf("Close did not wait: %v", err)
	case err := <-ended:
		t.Errorf("the call ended: %v", err)
	default:
	}
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if err := <-closed; err != nil {
		t.Error(err)
	}
}

// A release that is revoked while its capabilities are being created gets none.
func TestRevokeBeforeCapabilitiesAreMade(t *testing.T) {
	m := newHome(t).open()
	w := write(t, m, draft("notes", "1", ""))
	a := m.releases[w.Release.ID]
	a.revoke(&RevokedError{Extension: "notes"})
	if env, _, err := m.environment(t.Context(), a); !errors.As(err, new(*RevokedError)) {
		t.Errorf("got %v, %v", env, err)
	}
}

// Resources that only one release used are released when another version replaces it.
func TestSupersededLetsGo(t *testing.T) {
	m := newHome(t).open()
	w := write(t, m, draft("notes", "1", ""))
	says(t, m, "notes_get", "1")
	a := m.releases[w.Release.ID]
	if a.made == nil {
		t.Fatal("there is nothing to let go of")
	}
	write(t, m, draft("notes", "2", ""))
	says(t, m, "notes_get", "2")
	if a.made != nil {
		t.Error("it is held")
	}
}

// A missing row does not hide other changes from a process.
func TestMissingRow(t *testing.T) {
	m := newHome(t).open()
	w := write(t, m, draft("gone", "1", ""))
	write(t, m, draft("answer", "1", ""))
	alter(t, m, "DELETE FROM release WHERE id = ?", w.Release.ID)
	write(t, m, draft("answer", "2", ""))
	says(t, m, "answer_get", "2")
	isGone(t, m, "gone_get")
}

// A slow store does not delay calls.
func TestCallsDuringReload(t *testing.T) {
	m := newHome(t).open()
	write(t, m, draft("answer", "1", ""))
	a := m.offers[own]["answer_get"].release
	a.making.Lock() // as while a capability is opened
	m.reloading.Lock()
	if tools := offered(t, m, agent); len(tools) != 1 {
		t.Errorf("got %v", tools)
	}
	a.making.Unlock()
	says(t, m, "answer_get", "1")
	m.reloading.Unlock()
}

// Stored extensions run under a ceiling that allows them.
func TestCeilingAllowsStores(t *testing.T) {
	h := newHome(t)
	const permissions = `{"kv": true, "workspace": "read-write"}`
	h.policyOf(`{"ceiling": {"permissions": ` + permissions + `}, "approve": [{"permissions": ` + permissions + `}]}`)
	m := h.open()
	const value = `(await env.kv.set("k", "v"), await env.workspace.write("f", "w"), [await env.kv.get("k"), await env.workspace.read("f")])`
	write(t, m, draft("store", value, permissions))
	says(t, m, "store_get", `["v","w"]`)

	h.policyOf(`{"ceiling": {"permissions": {"kv": true}}}`)
	m = h.open()
	if _, err := m.Call(t.Context(), Call{Viewer: agent, Tool: "store_get"}); err == nil {
		t.Error("it goes beyond a ceiling that came later")
	}
}

// A quarantined tool hides the tool that it shadows: a call would reach the quarantined one and no other.
func TestQuarantineShadows(t *testing.T) {
	m := newHome(t).open()
	d := draft("answer", "1", "")
	d.Scope = extension.Scope{Kind: extension.Shared}
	approve(t, m, write(t, m, d).Release)
	write(t, m, draft("answer", "2", ""))
	alter(t, m, "UPDATE release SET quarantine = 'broken' WHERE scope = 'agent:a'")
	if err := m.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	if tools := offered(t, m, agent); len(tools) != 0 {
		t.Errorf("got %v", tools)
	}
	if _, err := m.Call(t.Context(), Call{Viewer: agent, Tool: "answer_get"}); !errors.As(err, new(*QuarantinedError)) {
		t.Errorf("got %v", err)
	}
	if tools := offered(t, m, Viewer{Agent: "b"}); len(tools) != 1 {
		t.Errorf("got %v", tools)
	}
}
