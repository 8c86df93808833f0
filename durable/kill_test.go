package durable_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	httpcap "github.com/stilehost/stile/capabilities/http"
	"github.com/stilehost/stile/durable"
	"github.com/stilehost/stile/internal/cache/cachetest"
)

// TestKilledEverywhere kills the process that works on runs at random times, while they change a bucket and a file, send requests with and without
// keys, receive signals that are delivered twice, and sleep.
func TestKilledEverywhere(t *testing.T) { killedEverywhere(t, 30) }

// orders is a server that answers late at times, so that the process may be gone by then.
type orders struct {
	mu    sync.Mutex
	keyed map[string]string // bodies by key
	keys  map[string]string // keys by body
	plain map[string]int    // how often a body without a key came
	wrong []string
}

func (o *orders) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	text, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	body, key := string(text), r.Header.Get("Idempotency-Key")
	o.mu.Lock()
	switch was, known := o.keyed[key]; {
	case r.URL.Path == "/plain":
		o.plain[body]++
	case known && was != body:
		o.wrong = append(o.wrong, fmt.Sprintf("the key %s has the bodies %q and %q", key, was, body))
	case o.keys[body] != "" && o.keys[body] != key:
		o.wrong = append(o.wrong, fmt.Sprintf("the body %q has the keys %s and %s", body, o.keys[body], key))
	default:
		o.keyed[key], o.keys[body] = body, key
	}
	o.mu.Unlock()
	if rand.IntN(4) == 0 {
		select {
		case <-time.After(time.Duration(rand.IntN(60)) * time.Millisecond):
		case <-r.Context().Done():
		}
	}
	_, _ = w.Write(text)
}

func killedEverywhere(t *testing.T, kills int) {
	o := &orders{keyed: map[string]string{}, keys: map[string]string{}, plain: map[string]int{}}
	server := httptest.NewServer(o)
	defer server.Close()
	t.Setenv(serverEnv, server.URL)
	dir := t.TempDir()
	cacheDir, keyDir := cachetest.Dirs(t)
	s, err := open(t.Context(), dir, cacheDir, keyDir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.close(); err != nil {
			t.Error(err)
		}
	})
	spec := program(t, s, cacheDir, keyDir, `
		const post = async (path: string, i: number) => (await env.web.fetch(input.url + path, { method: "POST", body: input.name + " " + i })).text();
		const told: number[] = [], signals: number[] = [], lost: Record<string, string> = {};
		for (let i = 0; i < 100; i++) {
			await env.store.increment("n", 1);
			if (i % 10 == 0) await env.files.append("log", i + "\n");
			if (i % 10 == 5) {
				try { if (await post("/keyed", i) !== input.name + " " + i) throw new Error("another answer"); } catch (e: any) {
					if (e.code !== "interrupted" || e.message.includes("client.start")) throw e;
					lost[i] = e.message; // it had read the head already
				}
			}
			if (i % 20 == 7) {
				try { await post("/plain", i); } catch (e: any) { if (e.code !== "interrupted") throw e; told.push(i); }
			}
			if (i % 20 == 13) signals.push((await env.signals.receive("go", { timeout: "1 day" })).data);
			if (i % 25 == 24) await env.clock.sleep(60);
		}
		return { told, lost, signals, log: await env.files.read("log") };`)
	var log strings.Builder
	for i := 0; i < 100; i += 10 {
		fmt.Fprintln(&log, i)
	}
	const each = 5              // signals of a run
	open := map[string]string{} // the runs that have not ended, and what they are called
	sent := map[string]int{}    // how many signals they were sent
	names := 0
	interrupted := 0
	check := func(run, name string) {
		r, err := s.runs.Result(t.Context(), run)
		if err != nil {
			t.Fatal(err)
		}
		if !r.State.Final() {
			return
		}
		delete(open, run)
		var out struct {
			Told, Signals []int
			Lost          map[int]string
			Log           string
		}
		if r.State != durable.Done || json.Unmarshal(r.Output, &out) != nil {
			t.Errorf("%s is %s: %s %v", name, r.State, r.Reason, r.Outcome)
			return
		}
		if v, err := s.bucket.Bucket(name).Get(t.Context(), "n"); err != nil || *v != "100" {
			t.Errorf("%s: the counter is %v, %v", name, *v, err)
		}
		if out.Log != log.String() {
			t.Errorf("%s: the file has %q", name, out.Log)
		}
		if !slices.Equal(out.Signals, []int{1, 2, 3, 4, 5}) {
			t.Errorf("%s: it received the signals %v", name, out.Signals)
		}
		interrupted += len(out.Told)
		o.mu.Lock()
		defer o.mu.Unlock()
		for i := range 100 {
			body := fmt.Sprint(name, " ", i)
			if i%10 == 5 && o.keys[body] == "" {
				t.Errorf("%s: the order %d did not arrive: %q", name, i, out.Lost[i])
			}
			n, told := o.plain[body], slices.Contains(out.Told, i)
			if i%20 == 7 && (n > 1 || n == 0 && !told) {
				t.Errorf("%s: the order %d without a key arrived %d times; the run was told that it may have: %t", name, i, n, told)
			}
		}
	}
	killed := 0
	for ; killed < kills || len(open) > 0; killed++ {
		for len(open) < 8 && killed < kills {
			names++
			name := fmt.Sprint("r", names)
			spec.Target, spec.Input = name, fmt.Appendf(nil, `{"url":%q,"name":%q}`, server.URL, name)
			info, _, err := s.runs.Start(t.Context(), spec)
			if err != nil {
				t.Fatal(err)
			}
			open[info.Name] = name
		}
		kill := worker(t, dir, cacheDir, keyDir)
		for run := range open {
			for sent[run] < each && (killed >= kills || rand.IntN(2) == 0) {
				sent[run]++
				for _, want := range []bool{true, false} {
					delivered, err := s.runs.Signal(t.Context(), run, "go", durable.Message{Data: fmt.Append(nil, sent[run]), Key: fmt.Sprint("key ", sent[run])})
					if err != nil || delivered != want {
						t.Fatalf("%s: signal %d: delivered %t, %v", open[run], sent[run], delivered, err)
					}
				}
			}
		}
		wait := time.Duration(rand.IntN(250)) * time.Millisecond
		if killed >= kills {
			wait = time.Minute
		}
		ctx, cancel := context.WithTimeout(t.Context(), wait)
		for run := range open {
			_, _ = s.runs.Wait(ctx, run)
			if killed < kills {
				break
			}
		}
		cancel()
		kill()
		for run, name := range open {
			check(run, name)
		}
		if killed > kills+20 {
			t.Fatalf("%d runs have not ended", len(open))
		}
	}
	for _, w := range o.wrong {
		t.Error(w)
	}
	t.Logf("killed %d times, over %d runs; %d requests without a key may have happened", killed, names, interrupted)
}

// serverEnv is the address of the server for the binding web, in a process that works on runs.
const serverEnv = "STILE_TEST_SERVER"

// webOf is the binding web.
func webOf(server string) (*httpcap.Grant, error) {
	var rules []httpcap.Rule
	for _, text := range []string{"/keyed,methods=POST,idempotency=Idempotency-Key", "/plain,methods=POST"} {
		rule, err := httpcap.ParseRule(server + text)
		if err != nil {
			return nil, err
		}
		rules = append(rules, rule)
	}
	return httpcap.New(httpcap.Options{Rules: rules})
}
