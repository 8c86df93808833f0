package toolchain

import (
	"bytes"
	"context"
	"encoding/json"
	"testing"
	"testing/fstest"

	"pgregory.net/rapid"

	"github.com/stilehost/stile/capabilities/clock"
	"github.com/stilehost/stile/capabilities/console"
	"github.com/stilehost/stile/capabilities/kv"
	"github.com/stilehost/stile/capabilities/random"
	"github.com/stilehost/stile/host"
)

// recorder keeps the recording of the last call.
type recorder struct{ last *host.Recording }

func (r *recorder) Record(_ context.Context, last *host.Recording) { r.last = last }

// replay repeats the recorded call with the same code, and expects the same operations, up to the end of the recording if it
// is incomplete.
func (r *recorder) replay(t interface {
	Context() context.Context
	Errorf(string, ...any)
}, c *host.Component,
) {
	for _, deny := range []bool{false, true} {
		got, err := c.Replay(t.Context(), r.last, host.ReplayOptions{Deny: deny})
		same := got.Same && bytes.Equal(got.Output, r.last.Output)
		if r.last.Cut != "" {
			same = got.Cut && len(got.Differences) == 0
		}
		if err != nil || !same {
			t.Errorf("deny %v: %+v, %v; recorded %+v", deny, got, err, r.last.Outcome)
		}
	}
}

// interpreter follows the instructions in its input, and returns everything that it observes.
const interpreter = `import { extension } from "stile";

async function step(s: any, env: any): Promise<any> {
	switch (s.do) {
	case "now": return Date.now();
	case "monotonic": return performance.now();
	case "math": return Math.random();
	case "bytes": return [...crypto.getRandomValues(new Uint8Array(s.n))];
	case "sleep": await new Promise((done) => setTimeout(done, s.n % 4)); return Date.now();
	case "get": return (await env.store.get(s.key)) ?? null;
	case "set": return (await env.store.set(s.key, String(Math.random()))) ?? null;
	case "add": try { return String(await env.store.increment(s.key, s.n)); } catch (e: any) { return e.message; }
	case "list": return await env.store.list(s.key);
	case "log": console.log(s.key, Date.now()); return null;
	case "all": return Promise.all(s.of.map((x: any) => step(x, env)));
	case "race": return Promise.race(s.of.map((x: any) => step(x, env)));
	case "fail": throw new Error("failed at " + Date.now());
	}
}

export default extension({ tools: { run: { description: "Run", run: async ({ steps }: any, env: any) => {
	const out = [];
	for (const s of steps) out.push(await step(s, env));
	return out;
} } } });`

// TestReplayIsExact checks that a call is a function of its code, its input and the answers of its capabilities. Whatever it does
// with time, randomness, state and waiting, its recording gives the same bytes.
func TestReplayIsExact(t *testing.T) {
	s := newScripts(t)
	c, err := s.toolchain.Build(t.Context(), Source{
		FS: fstest.MapFS{"run.ts": &fstest.MapFile{Data: []byte(interpreter)}}, Entry: "run.ts",
		Bindings: map[string]string{"store": kv.Interface, "clock": clock.Interface, "random": random.Interface, "console": console.Interface},
	})
	if err != nil {
		t.Fatal(err)
	}
	env := host.Env{
		"store": s.kv.Bucket("replay"), "clock": clock.System(), "random": random.System(),
		"console": console.To(func(console.Level, string) {}),
	}
	type stepOf struct {
		Do  string   `json:"do"`
		N   int      `json:"n"`
		Key string   `json:"key"`
		Of  []stepOf `json:"of"`
	}
	var steps func(t *rapid.T, depth int) []stepOf
	steps = func(t *rapid.T, depth int) []stepOf {
		list := []stepOf{}
		for range rapid.IntRange(1, 5).Draw(t, "length") {
			one := stepOf{
				Do:  rapid.SampledFrom([]string{"now", "monotonic", "math", "bytes", "sleep", "get", "set", "add", "list", "log", "fail", "all", "all", "race"}).Draw(t, "do"),
				N:   rapid.IntRange(0, 100).Draw(t, "n"),
				Key: rapid.SampledFrom([]string{"a", "b", "\u202e\x1b[2J", ""}).Draw(t, "key"),
			}
			if depth > 0 && (one.Do == "all" || one.Do == "race") {
				one.Of = steps(t, depth-1)
			} else if one.Do == "all" || one.Do == "race" {
				one.Do = "now"
			}
			list = append(list, one)
		}
		return list
	}
	ended := map[string]int{}
	rapid.Check(t, func(rt *rapid.T) {
		input, err := json.Marshal(map[string]any{"steps": steps(rt, 2)})
		if err != nil {
			rt.Fatal(err)
		}
		var recorded recorder
		result, err := c.Do(rt.Context(), host.Request{Tool: "run", Input: input, Env: env, Recorder: &recorded})
		if !bytes.Equal(recorded.last.Output, result.Output) {
			rt.Errorf("recorded %s of %s, %v", recorded.last.Output, result.Output, err)
		}
		ended[recorded.last.Outcome.Kind]++
		recorded.replay(rt, c)
	})
	if ended["ok"] == 0 || ended["failed"] == 0 {
		t.Errorf("calls ended %v", ended)
	}
}
