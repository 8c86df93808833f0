package toolchain_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/capabilities/browser"
	"github.com/stilehost/stile/capabilities/clock"
	codecap "github.com/stilehost/stile/capabilities/code"
	"github.com/stilehost/stile/capabilities/console"
	httpcap "github.com/stilehost/stile/capabilities/http"
	"github.com/stilehost/stile/capabilities/tools"
	"github.com/stilehost/stile/capability"
	"github.com/stilehost/stile/host"
)

// untilDue waits until a call that sleeps for a time goes on.
func untilDue(asleep *host.AsleepError) {
	for _, w := range asleep.Waits {
		<-time.After(time.Until(w.At))
	}
}

// TestLimitsAreKept has durable calls use as much as they can of what a call may use, while they sleep, are killed, and go on with lower limits. In all, they get what a call gets that does neither.
func TestLimitsAreKept(t *testing.T) {
	t.Parallel()
	var lines sync.Map // of the calls of one row; a line may be written again
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		w.Header()["Date"] = nil
		_, _ = w.Write(make([]byte, 50_000))
	}))
	t.Cleanup(server.Close)
	rule, err := httpcap.ParseRule(server.URL + "/**")
	if err != nil {
		t.Fatal(err)
	}
	rule.Addresses = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}
	web := func(uses int64) abi.Capability {
		g, err := httpcap.New(httpcap.Options{Rules: []httpcap.Rule{rule}, Received: uses*50_000 + 25_000})
		if err != nil {
			t.Fatal(err)
		}
		return g
	}
	site := capability.NewSite(t.TempDir(), nil)
	t.Cleanup(func() {
		if err := site.Close(); err != nil {
			t.Error(err)
		}
	})
	// What it is passed on to uses it too, with a value of its own.
	box, err := tools.New(tools.Options{Resolve: func(string) (tools.Func, error) {
		return func(ctx context.Context, _ string, _ []byte, env map[string]abi.Capability, done func([]byte, error)) {
			go func() {
				done([]byte("1"), func() error {
					opened, err := env["it"].(abi.Opener).Open(ctx)
					if err != nil {
						return err
					}
					e, err := opened.(*httpcap.Client).Start(ctx, httpcap.Request{Method: "GET", URL: server.URL})
					if err != nil {
						return err
					}
					_, err = e.Text(abi.WithRoom(ctx, func(int64) error { return nil }), 1<<20) // the room is for what a guest gets
					return errors.Join(err, e.Close())
				}())
			}()
		}, nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	rows := []struct {
		name, use string
		bind      func(uses int64) abi.Capability
		slow      bool // too slow to be killed at every place
	}{
		{name: "bytes of http", use: `await (await env.it.fetch(input.url)).text();`, bind: web},
		{name: "bytes of http that a tool uses", use: `await env.tools.call("fetch", {}, { env: { it: env.it } });`, bind: web},
		{name: "text of console", use: `env.it.log("1234567" + i);`, bind: func(uses int64) abi.Capability {
			return console.To(func(_ console.Level, text string) {
				if strings.HasPrefix(text, "1234567") {
					lines.Store(text, true)
				}
			}).WithLimit(int(uses)*8 + 4)
		}},
		{name: "runs of code", use: `await env.it.execute("1");`, bind: func(uses int64) abi.Capability {
			return codecap.New(codecap.Rights{Limits: codecap.Limits{Runs: int(uses)}}, func(_ context.Context, _ codecap.Program, done func([]byte, error)) {
				done([]byte("1"), nil)
			})
		}},
		{name: "pages of a browser", slow: true, use: `await env.it.open(input.url); await env.it.close();`, bind: func(uses int64) abi.Capability {
			c, err := browser.Rights{Rules: []httpcap.Rule{rule}, Budget: browser.Budget{Pages: int(uses)}}.Open(t.Context(), site)
			if err != nil {
				t.Fatal(err)
			}
			return c
		}},
	}
	const most = 4
	for _, row := range rows {
		hosts := make([]*host.Component, 2)
		for i := range hosts {
			_, chain := newToolchain(t, host.Options{})
			// Every other time that it wakes, it sleeps again and has not used the binding.
			hosts[i] = build(t, chain, tool("", `
				let used = 0;
				for (let i = 0; i < 8; i++) {
					try { `+row.use+` used++; } catch (e: any) { if (!["exhausted", "interrupted", "unavailable", "too-large"].includes(e.code)) throw e; }
					if (i % 3 == 2) { await env.clock.sleep(input.wait); await env.clock.sleep(input.wait); }
				}
				return used;`))
		}
		request := func(uses int64) host.Request {
			return host.Request{
				Tool: "t", Input: fmt.Appendf(nil, `{"url":%q,"wait":10}`, server.URL), Limits: host.Limits{Wall: time.Minute},
				Env: host.Env{"it": row.bind(uses), "tools": box, "clock": clock.System()},
			}
		}
		count := func(t *testing.T, r host.Result) (used int) {
			t.Helper()
			if err := json.Unmarshal(r.Output, &used); err != nil {
				t.Fatal(err)
			}
			if row.name == "text of console" {
				used = 0
				lines.Range(func(any, any) bool { used++; return true })
				lines.Clear()
			}
			return used
		}
		t.Run(row.name, func(t *testing.T) {
			r, err := hosts[0].Do(t.Context(), request(most))
			if err != nil {
				t.Fatal(err)
			}
			if n := count(t, r); n != most {
				t.Fatalf("a call that is not durable used %d", n)
			}
			for kill := 0; ; kill++ {
				if row.slow {
					kill = 1 << 20
				}
				r, slept, killed := lives(t, hosts, kill, request(most))
				if got := count(t, r); got > most || !killed && (got != most || slept == 0) {
					t.Errorf("killed at %d, and asleep %d times: it used %d", kill, slept, got)
				}
				if !killed {
					break
				}
			}
			// The limit is lower when it goes on.
			d := host.Durable{Run: "lower", Idle: time.Millisecond, Journal: &logged{kill: 1 << 30}}
			for i := 0; ; i++ {
				r := request(1)
				if i == 0 {
					r = request(most)
				}
				r.Durable, r.Input = &d, fmt.Appendf(nil, `{"url":%q,"wait":200}`, server.URL) // long enough to sleep each time
				result, err := hosts[i%2].Do(t.Context(), r)
				asleep, ok := errors.AsType[*host.AsleepError](err)
				if ok {
					d.State = asleep.State
					untilDue(asleep)
					continue
				}
				if err != nil || i == 0 {
					t.Fatalf("it ended with %v", err)
				}
				if got := count(t, result); got != 3 {
					t.Errorf("it used %d, 3 of them before its limit became 1", got)
				}
				break
			}
		})
	}
}
