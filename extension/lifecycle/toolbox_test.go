package lifecycle

import (
	"errors"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/capabilities/clock"
	"github.com/stilehost/stile/capabilities/tools"
)

// TestToolbox offers a viewer's tools to code, and tells the code what it may know when a call fails.
func TestToolbox(t *testing.T) {
	m := newHome(t).open()
	write(t, m, draft("answer", "42", ""))
	write(t, m, draft("broken", `(() => { throw new Error("broken") })()`, ""))
	mine, others := toolbox(t, m, agent), toolbox(t, m, Viewer{Agent: "b"})
	if found := mine.Search(t.Context(), "answer", 10); len(found) != 1 || found[0].Name != "answer_get" {
		t.Errorf("found %v", found)
	}
	if found := others.Search(t.Context(), "", 10); len(found) > 0 {
		t.Errorf("another agent found %v", found)
	}
	if _, err := others.Start(t.Context(), "answer_get", "{}", passed{}); !errors.Is(err, abi.ErrNotFound) {
		t.Errorf("another agent: %v", err)
	}
	for _, c := range []struct {
		tool, input string
		env         passed
		want        string
	}{
		{"answer_get", "{}", nil, "42"},
		{"answer_get", "1", nil, "answer_get: invalid input"},
		{"answer_get", "{}", passed{"clock": clock.System()}, "accepts no others"},
		{"broken_get", "{}", nil, "broken_get: "},
	} {
		call, err := mine.Start(t.Context(), c.tool, c.input, c.env)
		if err != nil {
			t.Fatal(err)
		}
		got, err := call.Take(t.Context())
		if told := (*abi.Error)(nil); errors.As(err, &told) {
			got = told.Error()
		} else if err != nil {
			t.Errorf("%s: code is not told %v", c.tool, err)
		}
		if !strings.Contains(got, c.want) {
			t.Errorf("%s with %s: got %s, want %s", c.tool, c.input, got, c.want)
		}
		if err := call.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestToolboxWaits has tools of a toolbox wait, without a goroutine each, until their extension is revoked.
func TestToolboxWaits(t *testing.T) {
	h := newHome(t)
	began := make(chan struct{}, 200)
	h.options.step = func(name string) {
		if name == "call" {
			began <- struct{}{}
		}
	}
	m := h.open()
	write(t, m, tool("slow", "hold,spin,wait", waiting, `{"clock": true, "console": true}`))
	box := toolbox(t, m, agent)
	ctx := abi.WithWork(t.Context(), func(time.Duration) error { return nil })
	before := runtime.NumGoroutine()
	var calls []*tools.Call
	for range cap(began) {
		call, err := box.Start(ctx, "slow_wait", "{}", passed(nil))
		if err != nil {
			t.Fatal(err)
		}
		calls = append(calls, call)
	}
	for range calls {
		<-began
	}
	for runtime.NumGoroutine() > before+len(calls)/10 { // workers pack the last ones
		runtime.Gosched()
	}
	if _, err := m.Revoke(t.Context(), own, "slow", person); err != nil {
		t.Fatal(err)
	}
	for _, call := range calls {
		if _, err := call.Take(ctx); !errors.Is(err, abi.ErrUnavailable) || !strings.Contains(err.Error(), "slow_wait: ") {
			t.Errorf("got %v", err)
		}
		if err := call.Close(); err != nil {
			t.Error(err)
		}
	}
	if err := m.Close(); err != nil { // once it has written down the calls
		t.Fatal(err)
	}
	entries, err := h.open().Audit(t.Context(), len(calls))
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if e.Kind != "call" || e.Outcome != "revoked" {
			t.Errorf("got %+v", e)
		}
	}
}

// passed is an object that code passes on.
type passed map[string]abi.Capability

func (p passed) Capabilities() map[string]abi.Capability { return p }
func (passed) Origin(name string) string                 { return name }

// toolbox is the toolbox of a viewer, as a call receives it.
func toolbox(t *testing.T, m *Manager, v Viewer) *tools.Toolbox {
	t.Helper()
	box, err := m.Toolbox(v, nil)
	if err != nil {
		t.Fatal(err)
	}
	opened, err := box.Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return opened.(*tools.Toolbox)
}

// TestCallAfterClose checks that a late call fails, also when another process has changed the store.
func TestCallAfterClose(t *testing.T) {
	h := newHome(t)
	m, other := h.open(), h.open()
	write(t, m, draft("answer", "42", ""))
	says(t, m, "answer_get", "42")
	if err := m.Close(); err != nil {
		t.Fatal(err)
	}
	write(t, other, draft("answer", "43", ""))
	if err := m.Refresh(t.Context()); err == nil {
		t.Error("it reads a store that is closed")
	}
	if _, err := m.Call(t.Context(), Call{Viewer: agent, Tool: "answer_get"}); !errors.Is(err, ErrClosed) {
		t.Errorf("got %v", err)
	}
}
