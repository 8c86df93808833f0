package toolchain_test

import (
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/stilehost/stile/capabilities/blob"
	"github.com/stilehost/stile/capabilities/clock"
	"github.com/stilehost/stile/host"
)

// TestBlobsWake has a durable call sleep with a blob. It has that again if its binding still allows it, and counts it once more.
func TestBlobsWake(t *testing.T) {
	t.Parallel()
	_, chain := newToolchain(t, host.Options{})
	c := build(t, chain, tool("", `
		const { blobs } = env;
		const kept = await blobs.createBlob(["a".repeat(input.size)]);
		await env.clock.sleep(3_600_000);
		try {
			const more = input.more ? (await blobs.createBlob(["b".repeat(input.more)])).size : 0;
			return (await kept.text()).length + more;
		} catch (e: any) { return e.code; }`))
	env := func(limit int64, ahead time.Duration, revoked bool) host.Env {
		g := host.NewGrant(blob.NewStore(blob.StoreOptions{Limit: limit}), host.GrantOptions{})
		if revoked {
			g.Revoke("enough")
		}
		return host.Env{"blobs": g, "clock": clock.By(func() time.Time { return time.Now().Add(ahead) })}
	}
	gone := env(1<<20, 2*time.Hour, false)
	delete(gone, "blobs")
	for name, c2 := range map[string]struct {
		input, want string
		env         host.Env
	}{
		"again":            {`{"size": 60000}`, `60000`, env(1<<20, 2*time.Hour, false)},
		"empty":            {`{"size": 0}`, `0`, env(1<<20, 2*time.Hour, false)},
		"revoked":          {`{"size": 60000}`, `"revoked"`, env(1<<20, 2*time.Hour, true)},
		"gone":             {`{"size": 60000}`, `"revoked"`, gone},
		"a lower limit":    {`{"size": 60000}`, `"exhausted"`, env(50_000, 2*time.Hour, false)},
		"it counts":        {`{"size": 60000, "more": 50000}`, `"exhausted"`, env(100_000, 2*time.Hour, false)},
		"it counts enough": {`{"size": 60000, "more": 40000}`, `100000`, env(100_000, 2*time.Hour, false)},
	} {
		t.Run(name, func(t *testing.T) {
			d := host.Durable{Run: name, Idle: time.Millisecond, Journal: &logged{kill: 1 << 30}}
			r := host.Request{Tool: "t", Input: json.RawMessage(c2.input), Env: env(1<<20, 0, false), Durable: &d, Limits: host.Limits{Wall: 20 * time.Second}}
			_, err := c.Do(t.Context(), r)
			asleep, ok := errors.AsType[*host.AsleepError](err)
			if !ok {
				t.Fatalf("it ended with %v", err)
			}
			if most := 200_000; len(asleep.State) > most {
				t.Errorf("its state has %d bytes", len(asleep.State))
			}
			d.State, r.Env = asleep.State, c2.env
			result, err := c.Do(t.Context(), r)
			if err != nil || string(result.Output) != c2.want {
				t.Errorf("got %s, %v", result.Output, err)
			}
		})
	}
}

// TestBlobsOfKilled kills a durable call at each place. What it has in a blob is there, unless the process ended while the blob was made.
func TestBlobsOfKilled(t *testing.T) {
	t.Parallel()
	_, chain := newToolchain(t, host.Options{})
	hosts := []*host.Component{build(t, chain, tool("", `
		let kept: any;
		try { kept = await env.blobs.createBlob(["a".repeat(50_000)]); } catch (e: any) { return e.code; }
		await env.clock.now();
		await env.clock.sleep(10);
		await env.clock.now();
		return (await kept.text()).length;`))}
	request := host.Request{Tool: "t", Limits: host.Limits{Wall: time.Minute}, Env: host.Env{"blobs": blob.NewStore(blob.StoreOptions{}), "clock": clock.System()}}
	whole := 0
	for kill := 0; ; kill++ {
		r, _, killed := lives(t, hosts, kill, request)
		switch got := string(r.Output); {
		case got == "50000":
			whole++
		case got != `"interrupted"` || !killed:
			t.Errorf("killed at %d: got %s", kill, got)
		}
		if !killed {
			break
		}
	}
	if whole < 5 { // after it was made, there are some operations more
		t.Errorf("a blob was there %d times", whole)
	}
}
