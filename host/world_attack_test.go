package host_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/capabilities/clock"
	"github.com/stilehost/stile/capabilities/console"
	"github.com/stilehost/stile/host"
	"github.com/stilehost/stile/internal/errkind"
)

// TestWorldTextWithoutConsole has guests write text whose console is over: that loses the text, and not the call.
func TestWorldTextWithoutConsole(t *testing.T) {
	records := &kept{}
	h := newHost(t, host.Options{Recorder: records})
	c, err := h.Load(t.Context(), lateComponent(t, wasiImports, writingLowered, writingImports, writes("early\n"), writes("one\n", "two\n", "end")))
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	to := console.To(func(_ console.Level, m string) { lines = append(lines, m) })
	revoked := host.NewGrant(to, host.GrantOptions{})
	revoked.Revoke("no more text")
	for name, c2 := range map[string]struct {
		grant abi.Capability
		want  []string
	}{
		"revoked": {revoked, nil},
		"expired": {host.NewGrant(to, host.GrantOptions{Expires: time.Now().Add(-time.Hour)}), nil},
		"budget":  {host.NewGrant(to, host.GrantOptions{Operations: 2}), []string{"early", "one"}},
	} {
		t.Run(name, func(t *testing.T) {
			lines = nil
			_, err := c.Do(t.Context(), host.Request{Tool: "t", Env: host.Env{"console": c2.grant}, Approved: onlyT})
			if err != nil {
				t.Errorf("the call ended: %v", err)
			}
			if !slices.Equal(lines, c2.want) {
				t.Errorf("logged %q, want %q", lines, c2.want)
			}
			again(t, c, records)
		})
	}
}

// TestWorldTextInSteps has guests that are called in steps write text without a line end, before and after they wait. A replay does the same.
func TestWorldTextInSteps(t *testing.T) {
	records := &kept{}
	h := newHost(t, host.Options{Recorder: records})
	const (
		after = `(call $clock (local.get $env) (i32.const 2048) (i32.const 5) (i32.const 256))
			(i32.store (i32.const 512) (call $after (i32.load (i32.const 264)) (i64.const 3000000)))`
		text = `(drop (call $write (i32.const 1) (i32.const 2056) (i32.const 1) (i32.const 520)))`
		park = `(call $park (i32.const 512) (i32.const 1))`
	)
	for name, c := range map[string]struct {
		start, resume string
		want          []string
	}{
		"waits":                 {text + after + `(if ` + park + ` (then (return (call $none)))) (call $poll (i32.const 512) (i32.const 1) (i32.const 768)) ` + text + `(call $some)`, `(call $poll (i32.const 512) (i32.const 1) (i32.const 768)) ` + text + `(call $some)`, []string{"textex"}},
		"announces, and ends":   {text + after + `(drop ` + park + `) (call $some)`, "", []string{"tex"}},
		"announces, and traps":  {text + after + `(drop ` + park + `) unreachable`, "", []string{"tex"}},
		"traps when it goes on": {text + after + `(if ` + park + ` (then (return (call $none)))) (call $poll (i32.const 512) (i32.const 1) (i32.const 768)) unreachable`, `(call $poll (i32.const 512) (i32.const 1) (i32.const 768)) unreachable`, []string{"tex"}},
		"waits for nothing":     {text + `(call $none)`, "", nil},
	} {
		t.Run(name, func(t *testing.T) {
			component := guest{
				uses: "clock after park poll fd-write", data: `clock\00\00\00\10\08\00\00\03\00\00\00tex`, start: c.start, resume: c.resume,
			}.load(t, h)
			var lines []string
			env := host.Env{"clock": clock.System(), "console": console.To(func(_ console.Level, m string) { lines = append(lines, m) })}
			_, err := component.Do(t.Context(), host.Request{Tool: "t", Env: env, Approved: onlyT})
			if traps := errkind.Is[*host.TrapError](err); traps != (name != "waits" && name != "announces, and ends") {
				t.Errorf("ended with %v", err)
			}
			if !slices.Equal(lines, c.want) {
				t.Errorf("logged %q, want %q", lines, c.want)
			}
			again(t, component, records)
		})
	}
}
