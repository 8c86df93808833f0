package toolchain_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/capabilities/clock"
	httpcap "github.com/stilehost/stile/capabilities/http"
	"github.com/stilehost/stile/capabilities/workspace"
	"github.com/stilehost/stile/host"
)

// vault has one secret, until it is deleted.
type vault struct{ deleted bool }

func (v *vault) Get(context.Context, string) (string, error) {
	if v.deleted {
		return "", errors.New("there is no such secret")
	}
	return "the secret of the shop", nil
}

// TestTakenWhileAsleep takes away what a durable call has while it sleeps. What it held before, and what it derived from that, does nothing more when it wakes.
func TestTakenWhileAsleep(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var seen []string // credentials that the server got after the call slept
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		seen = append(seen, r.URL.Path+" "+r.Header.Get("Authorization"))
		_, _ = w.Write([]byte("x"))
	}))
	t.Cleanup(server.Close)
	secrets := &vault{}
	web := func(rest string) abi.Capability {
		rule, err := httpcap.ParseRule(server.URL + rest)
		if err != nil {
			t.Fatal(err)
		}
		rule.Credential, rule.As = "shop", "bearer"
		g, err := httpcap.New(httpcap.Options{Rules: []httpcap.Rule{rule}, Credentials: secrets})
		if err != nil {
			t.Fatal(err)
		}
		return g
	}
	store, err := workspace.Open(t.Context(), filepath.Join(t.TempDir(), "w.db"), workspace.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	revoked, expired := host.NewGrant(web("/**"), host.GrantOptions{}), host.NewGrant(web("/**"), host.GrantOptions{Expires: time.Now().Add(time.Hour)})
	hosts := make([]*host.Component, 2)
	for i := range hosts {
		_, chain := newToolchain(t, host.Options{WIT: []string{ownWIT}})
		hosts[i] = build(t, chain, tool("", `
			const code = async (f: () => Promise<unknown>) => { try { await f(); return "done"; } catch (e: any) { return e.code ?? e.message; } };
			const web = "web" in env && env.web.narrow(env.web.rules()), files = "files" in env && env.files.subdirectory("d");
			const ticket = "shop" in env && await env.shop.ticket(1);
			const all = async () => [
				web && await code(async () => (await web.fetch(input.url + "/a")).text()), web && await code(async () => (await env.web.fetch(input.url + "/a")).text()),
				files && await code(() => files.write("f", "a")), ticket && await code(async () => ticket.number()),
			].filter(Boolean).join(" ");
			const before = await all();
			await env.clock.sleep(3_600_000);
			return before + ", " + await all();`))
	}
	for _, c := range []struct {
		name          string
		before, after host.Env
		take          func()
		want          string
	}{
		{name: "nothing", before: host.Env{"web": web("/**")}, want: "done done, done done"},
		{name: "the binding", before: host.Env{"web": web("/**")}, after: host.Env{}, want: "done done, revoked revoked"},
		{name: "a path of the rule", before: host.Env{"web": web("/**")}, after: host.Env{"web": web("/b")}, want: "done done, denied denied"},
		{name: "the grant", before: host.Env{"web": revoked}, take: func() { revoked.Revoke("for a test") }, want: "done done, revoked revoked"},
		{name: "the time of the grant", before: host.Env{"web": expired}, after: host.Env{"web": host.NewGrant(web("/**"), host.GrantOptions{Expires: time.Now()})}, want: "done done, expired expired"},
		{name: "the right to write", before: host.Env{"files": store.Workspace("w")}, after: host.Env{"files": store.Workspace("w").AsReadOnly()}, want: "done, denied"},
		{name: "what an embedder's value needs", before: host.Env{"shop": &own{}}, after: host.Env{"shop": &own{closed: true}}, want: "done, denied"},
		{name: "the secret", before: host.Env{"web": web("/**")}, take: func() { secrets.deleted = true }, want: "done done, denied denied"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if err := store.Workspace("w").MakeDirectory(t.Context(), "d"); err != nil {
				t.Fatal(err)
			}
			with := func(env host.Env, ahead time.Duration) host.Env {
				e := host.Env{"clock": clock.By(func() time.Time { return time.Now().Add(ahead) })}
				maps.Copy(e, env)
				return e
			}
			d := host.Durable{Run: "r", Idle: time.Millisecond, Journal: &logged{kill: 1 << 30}}
			r := host.Request{Tool: "t", Input: fmt.Appendf(nil, `{"url":%q}`, server.URL), Env: with(c.before, 0), Durable: &d}
			_, err := hosts[0].Do(t.Context(), r)
			asleep, ok := errors.AsType[*host.AsleepError](err)
			if !ok {
				t.Fatalf("it does not sleep: %v", err)
			}
			if c.take != nil {
				c.take()
			}
			if c.after == nil {
				c.after = c.before
			}
			mu.Lock()
			seen = nil
			mu.Unlock()
			d.State, r.Env = asleep.State, with(c.after, 2*time.Hour)
			result, err := hosts[1].Do(t.Context(), r)
			var got string
			if err != nil || json.Unmarshal(result.Output, &got) != nil || got != c.want {
				t.Errorf("got %s, %v; want %q", result.Output, err, c.want)
			}
			mu.Lock()
			defer mu.Unlock()
			if c.name != "nothing" && len(seen) > 0 {
				t.Errorf("the server got %q", seen)
			}
		})
	}
}
