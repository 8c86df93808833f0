package lifecycle

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stilehost/stile/extension/policy"
	"github.com/stilehost/stile/host"
)

// log is the log of a durable call, in memory.
type log struct{ entries [][]byte }

func (l *log) Append(entry []byte) error {
	l.entries = append(l.entries, bytes.Clone(entry))
	return nil
}

func (*log) Commit(context.Context) error { return nil }

// sleeper is a durable call: what a store of runs keeps of it.
type sleeper struct {
	t      *testing.T
	target RunTarget
	pin    []byte
	own    string
	code   *host.Component
	state  []byte
	log    log
	ended  int
}

func newSleeper(t *testing.T, m *Manager, c Call) *sleeper {
	t.Helper()
	run, err := m.PrepareRun(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	wasm, err := run.Component(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	code, err := sharedHost.Load(t.Context(), wasm)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = code.Close() })
	pin, err := json.Marshal(run.RunPin)
	if err != nil {
		t.Fatal(err)
	}
	return &sleeper{t: t, target: run.RunTarget, pin: pin, own: run.Own, code: code}
}

// on has the call go on until it sleeps or ends.
func (s *sleeper) on(m *Manager) (output string, asleep bool, err error) {
	s.t.Helper()
	var pin RunPin
	if err := json.Unmarshal(s.pin, &pin); err != nil {
		s.t.Fatal(err)
	}
	awake, err := m.Wake(s.t.Context(), s.target, pin)
	if err != nil {
		return "", false, err
	}
	r := awake.Request
	r.Tool, r.Durable = s.own, &host.Durable{Run: "run", Journal: &s.log, State: s.state, Idle: time.Millisecond}
	result, err := s.code.Do(awake.Context, r)
	awake.Release()
	if a, ok := errors.AsType[*host.AsleepError](err); ok {
		s.state, s.log.entries = a.State, nil
		return "", true, nil
	}
	awake.Ended(result, err)
	s.ended++
	return string(result.Output), false, err
}

// sleeps has the call go on until it sleeps.
func (s *sleeper) sleeps(m *Manager) {
	s.t.Helper()
	if output, asleep, err := s.on(m); err != nil || !asleep {
		s.t.Fatalf("it does not sleep: %s, %v", output, err)
	}
}

// ends has the call go on until it ends.
func (s *sleeper) ends(m *Manager) (string, error) {
	s.t.Helper()
	for {
		if output, asleep, err := s.on(m); !asleep {
			return output, err
		}
	}
}

// order is an extension whose tool sleeps, and then tries what it holds.
func order(version string) Draft {
	return answers("orders", `await (async () => {
		const { store } = env;
		await store.set("begun", "1");
		await env.clock.sleep(150);
		try {
			return "`+version+` " + await store.increment("n", 1);
		} catch (e) {
			return "`+version+` " + e.code;
		}
	})()`, kvBinding)
}

// TestWake has a durable call sleep while its authority changes. It wakes with what its own version was approved for and the policy allows then.
func TestWake(t *testing.T) {
	revoke := func(t *testing.T, m *Manager) {
		d := person
		d.Reason = "a bug"
		if _, err := m.Revoke(t.Context(), own, "orders", d); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		name   string
		change func(t *testing.T, m *Manager)
		want   string // output
		err    string
	}{
		{"nothing", func(*testing.T, *Manager) {}, `"v1 1"`, ""},
		{"another version", func(t *testing.T, m *Manager) { add(t, m, order("v2")) }, `"v1 1"`, ""},
		{"another version without the binding", func(t *testing.T, m *Manager) { add(t, m, draft("orders", "2", "")) }, `"v1 1"`, ""},
		{"revoked", revoke, "", "orders was revoked: a bug"},
		{"removed", func(t *testing.T, m *Manager) {
			if _, err := m.Remove(t.Context(), own, "orders", Decision{By: "agent:a"}); err != nil {
				t.Fatal(err)
			}
		}, "", "orders was removed"},
		{"another version, revoked", func(t *testing.T, m *Manager) { add(t, m, order("v2")); revoke(t, m) }, "", "orders was revoked: a bug"},
		{"revoked, and written again", func(t *testing.T, m *Manager) { revoke(t, m); add(t, m, order("v1")) }, "", "orders was revoked: a bug"},
		{"a narrower policy", func(t *testing.T, m *Manager) {
			p, err := policy.Parse([]byte(`{"ceiling": {"permissions": {}}}`))
			if err != nil {
				t.Fatal(err)
			}
			m.SetPolicy(p)
		}, `"v1 revoked"`, ""},
		{"forgotten", func(t *testing.T, m *Manager) {
			w := add(t, m, order("v2"))
			history, err := m.History(t.Context(), own, "orders")
			if err != nil || history[0].ID != w.Release.ID {
				t.Fatal(err)
			}
			if _, err := m.Forget(t.Context(), history[1].Digest, person); err != nil {
				t.Fatal(err)
			}
		}, "", "was dropped to make room"},
	} {
		for _, process := range []string{"the same process", "another process"} {
			t.Run(c.name+", "+process, func(t *testing.T) {
				h := newHome(t)
				m := h.open()
				add(t, m, order("v1"))
				s := newSleeper(t, m, Call{Viewer: agent, Tool: "orders_get"})
				s.sleeps(m)
				c.change(t, m)
				if process == "another process" {
					h.options.Policy = m.Policy()
					m = h.open()
				}
				output, err := s.ends(m)
				if output != c.want || (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
					t.Errorf("got %s, %v", output, err)
				}
				if n := len(m.superseded); n != 0 {
					t.Errorf("%d releases that others replaced stay in memory", n)
				}
			})
		}
	}
}

// TestWakeTaken takes away what a call has while it is awake.
func TestWakeTaken(t *testing.T) {
	h := newHome(t)
	m, other := h.open(), h.open()
	add(t, m, answers("orders", `await (async () => { for (;;) { await env.store.increment("n", 1); await env.clock.sleep(1); } })()`, kvBinding))
	s := newSleeper(t, m, Call{Viewer: agent, Tool: "orders_get"})
	add(t, m, order("v2")) // it is superseded already
	var pin RunPin
	if err := json.Unmarshal(s.pin, &pin); err != nil {
		t.Fatal(err)
	}
	awake, err := m.Wake(t.Context(), s.target, pin)
	if err != nil {
		t.Fatal(err)
	}
	r := awake.Request
	r.Tool, r.Durable = s.own, &host.Durable{Run: "run", Journal: &s.log}
	done := make(chan error, 1)
	go func() {
		_, err := s.code.Do(awake.Context, r)
		done <- err
	}()
	if _, err := other.Revoke(t.Context(), own, "orders", person); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err == nil || !errors.As(context.Cause(awake.Context), new(*RevokedError)) {
		t.Errorf("got %v because of %v", err, context.Cause(awake.Context))
	}
	awake.Release()
	if n := len(m.superseded); n != 0 {
		t.Errorf("%d releases that others replaced stay in memory", n)
	}
}

// TestTakenAtOnce ends the context of a call that is awake before anything that the call holds is revoked: an error of a revoked handle must not look like one
// of the tool.
func TestTakenAtOnce(t *testing.T) {
	m := newHome(t).open()
	w := add(t, m, order("v1"))
	awake, err := m.Wake(t.Context(), RunTarget{agent, own, "orders", "orders_get"}, RunPin{Release: w.Release.ID, Digest: w.Release.Digest})
	if err != nil {
		t.Fatal(err)
	}
	defer awake.Release()
	m.releases[w.Release.ID].end(&RevokedError{Extension: "orders"})
	if cause := context.Cause(awake.Context); !errors.As(cause, new(*RevokedError)) {
		t.Errorf("the context of the call ended because of %v", cause)
	}
}

// TestWakeOther has the store say something else about a release than when the call began, as an older copy does.
func TestWakeOther(t *testing.T) {
	m := newHome(t).open()
	w := add(t, m, order("v1"))
	other := add(t, m, draft("other", "1", ""))
	s := newSleeper(t, m, Call{Viewer: agent, Tool: "orders_get"})
	good := RunPin{Release: w.Release.ID, Digest: w.Release.Digest}
	for _, p := range []RunPin{{Release: good.Release, Digest: strings.Repeat("0", 64)}, {Release: other.Release.ID, Digest: good.Digest}, {Release: 1000, Digest: good.Digest}, {Release: other.Release.ID, Digest: other.Release.Digest}} {
		if _, err := m.Wake(t.Context(), s.target, p); !errors.As(err, new(*NotFoundError)) {
			t.Errorf("%+v: got %v", p, err)
		}
	}
	waits := write(t, m, draft("waits", "1", `{"network": ["example.com"]}`))
	target := RunTarget{agent, own, "waits", "waits_get"}
	if _, err := m.Wake(t.Context(), target, RunPin{Release: waits.Release.ID, Digest: waits.Release.Digest}); !errors.As(err, new(*NotFoundError)) {
		t.Errorf("what nobody approved: got %v", err)
	}
}

// TestWakeCalls has a durable call sleep, and then call the tool of another extension.
func TestWakeCalls(t *testing.T) {
	m := newHome(t).open()
	add(t, m, answers("base", `await env.store.increment("n", 1)`, kvBinding))
	add(t, m, calls("top", `(await env.clock.sleep(50), 10 + await env.helpers.base_get({}))`, "base_*"))
	s := newSleeper(t, m, Call{Viewer: agent, Tool: "top_get"})
	s.sleeps(m)
	if output, err := s.ends(m); output != "11" || err != nil {
		t.Errorf("got %s, %v", output, err)
	}
}

// TestRunIsWrittenDown checks what the audit log and the statistics say of a durable call: it is one, however often it slept.
func TestRunIsWrittenDown(t *testing.T) {
	h := newHome(t)
	m := h.open()
	add(t, m, order("v1"))
	s := newSleeper(t, m, Call{Viewer: agent, Tool: "orders_get", Via: ViaMCP})
	s.sleeps(m)
	if _, err := s.ends(m); err != nil {
		t.Fatal(err)
	}
	if err := m.Close(); err != nil { // it writes what is left
		t.Fatal(err)
	}
	m = h.open()
	if e, err := m.State(t.Context(), own, "orders"); err != nil || e.Tools[0].Stats.Calls != 1 {
		t.Errorf("got %+v, %v", e.Tools, err)
	}
	entries, err := m.Audit(t.Context(), 100)
	var found []string
	for _, e := range entries {
		if e.Kind == callKind {
			found = append(found, fmt.Sprint(e.By, " ", e.Via, " ", e.Tool, " ", e.Outcome))
		}
	}
	if err != nil || !slices.Equal(found, []string{"agent:a mcp get ok"}) {
		t.Errorf("got %q, %v", found, err)
	}
}

// TestPrepareRun refuses what could not begin before anything is written down.
func TestPrepareRun(t *testing.T) {
	h := newHome(t)
	m := h.open()
	add(t, m, order("v1"))
	for name, c := range map[string]Call{
		"no such tool":      {Tool: "orders_none"},
		"another's":         {Tool: "orders_get", Viewer: stranger},
		"too large":         {Tool: "orders_get", Input: []byte(`{"x": "` + strings.Repeat("x", 2<<20) + `"}`)},
		"of the wrong type": {Tool: "orders_get", Input: []byte(`[]`)},
		"not allowed":       {Tool: "orders_get", Allowed: func() error { return errors.New("no") }},
		"another version":   {Tool: "orders_get", Digest: strings.Repeat("0", 64)},
	} {
		if c.Viewer == (Viewer{}) {
			c.Viewer = agent
		}
		if run, err := m.PrepareRun(t.Context(), c); err == nil {
			t.Errorf("%s: got %+v", name, run.RunPin)
		}
	}
}
