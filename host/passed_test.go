package host_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/stilehost/stile/abi"
	codecap "github.com/stilehost/stile/capabilities/code"
	"github.com/stilehost/stile/host"
)

// TestPassedOn has guests pass bindings on to code by every way that the contract leaves. However they are called on the way, the host says
// where they come from, and the runner stays.
func TestPassedOn(t *testing.T) {
	h := newHost(t, host.Options{})
	const (
		// into makes an empty env at 516, and puts $box into it under the name at an address.
		into = `(call $subset (local.get $env) (i32.const 0) (i32.const 0) (i32.const 512))
			(call $give (i32.load (i32.const 516)) (i32.const %d) (i32.const 1) (local.get $box) (i32.const 640))`
		// again gets what is in that env under the name at an address.
		again = `(call $open (i32.load (i32.const 516)) (i32.const %d) (i32.const 1) (i32.const 256)) (local.set $box (i32.load (i32.const 264)))`
		get   = `(call $runner (local.get $env) (i32.const 2050) (i32.const 6) (i32.const 320))`
		run   = `(call $run (i32.load (i32.const 328)) (i32.const 2056) (i32.const 1) (i32.const 2057) (i32.const 4) (i32.const 0) (i32.const 0) %s (i32.const 768)) ` + returns
		put   = `(i32.load (i32.const 516))`
	)
	for _, c := range []struct {
		name, call string
		allowed    []string
		want       string // what code has, or the denial
	}{
		{"as it is", fmt.Sprintf(into, 2048) + get + fmt.Sprintf(run, put), []string{"box"}, "[console k]"},
		{"as it is, not allowed", fmt.Sprintf(into, 2048) + get + fmt.Sprintf(run, put), []string{"k"}, "pass box on to code"},
		{
			"under a name that it has elsewhere", fmt.Sprintf(into, 2048) + fmt.Sprintf(again, 2048) + fmt.Sprintf(into, 2049) + get + fmt.Sprintf(run, put),
			[]string{"k", "x"},
			"pass box on to code",
		},
		{"twice", fmt.Sprintf(into, 2048) + fmt.Sprintf(again, 2048) + fmt.Sprintf(into, 2049) + get + fmt.Sprintf(run, put), []string{"box"}, "[console x]"},
		{"derived", `(local.set $box (call $split (local.get $box)))` + fmt.Sprintf(into, 2048) + get + fmt.Sprintf(run, put), []string{"k"}, "pass box on to code"},
		{"the whole env", get + fmt.Sprintf(run, `(local.get $env)`), []string{"box", "runner"}, "[box console]"},
		{"the whole env, not allowed", get + fmt.Sprintf(run, `(local.get $env)`), nil, "pass box on to code"},
		{
			"the runner", `(call $subset (local.get $env) (i32.const 0) (i32.const 0) (i32.const 512))` + get +
				`(call $lend (i32.load (i32.const 516)) (i32.const 2048) (i32.const 1) (i32.load (i32.const 328)) (i32.const 640))` + get + fmt.Sprintf(run, put),
			[]string{"runner", "k"},
			"[console]",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := ""
			evaluate := func(_ context.Context, p codecap.Program, done func([]byte, error)) {
				got = fmt.Sprint(slices.Sorted(maps.Keys(p.Env)))
				done([]byte("1"), nil)
			}
			g := guest{uses: "open give subset split runner lend run", data: "kxrunner1a.ts", call: c.call}
			r, err := g.load(t, h).Do(t.Context(), host.Request{Tool: "t", Env: host.Env{
				"box": &box{}, "runner": host.NewGrant(codecap.New(codecap.Rights{Env: c.allowed}, evaluate), host.GrantOptions{}),
			}})
			if err != nil {
				t.Fatal(err)
			}
			for _, d := range r.Usage.Denials {
				got += d.Operation
			}
			if got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}

var _ abi.Fixed = (*codecap.Grant)(nil)
