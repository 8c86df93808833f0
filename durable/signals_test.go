package durable_test

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stilehost/stile/capabilities/signals"
	"github.com/stilehost/stile/capabilities/tools"
	"github.com/stilehost/stile/durable"
	"github.com/stilehost/stile/host"
	"github.com/stilehost/stile/internal/cache/cachetest"
)

// TestSignals runs a tool that waits for signals, for as long as it likes, for a time, and twice at once.
func TestSignals(t *testing.T) {
	s := newStored(t)
	spec := program(t, s.shop, s.cacheDir, s.keyDir, `
		const first = await env.signals.receive("approved");
		const none = await env.signals.receive("never", { timeout: "30 ms" });
		const both = await Promise.all([env.signals.receive("go"), env.signals.receive("go", { timeout: "3 days" })]);
		return { first, none: none === undefined, both: both.map((m) => m.data).sort() };`)
	run, _, err := s.runs.Start(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	s.runs.Work()
	s.until(t, run.Name, durable.Asleep)
	signal := func(mailbox, data string) {
		t.Helper()
		if _, err := s.runs.Signal(t.Context(), run.Name, mailbox, durable.Message{Data: []byte(data), From: "a test"}); err != nil {
			t.Fatal(err)
		}
	}
	signal("approved", `{"by": "ada"}`)
	for { // it waits for 30 ms, and then for three days
		r := s.until(t, run.Name, durable.Asleep)
		if left := time.Until(r.Wake); left > 71*time.Hour && left < 73*time.Hour {
			break
		}
		<-time.After(5 * time.Millisecond)
	}
	signal("go", `1`)
	signal("go", `2`)
	r, err := s.runs.Wait(t.Context(), run.Name)
	if err != nil || r.State != durable.Done {
		t.Fatalf("got %s %v, %v", r.State, r.Err(), err)
	}
	var received int64
	if n, err := fmt.Sscanf(string(r.Output), `{"first":{"data":{"by":"ada"},"from":"a test","received":%d},"none":true,"both":[1,2]}`, &received); n != 1 || err != nil || time.Since(time.UnixMilli(received)) > time.Minute {
		t.Errorf("got %s, %v", r.Output, err)
	}
}

// TestSignalsKilled sends signals to runs while the process that works on them is killed again and again. Each run gets each of its signals once, in order.
func TestSignalsKilled(t *testing.T) {
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
	const each = 40
	spec := program(t, s, cacheDir, keyDir, fmt.Sprintf(`
		const got = [];
		while (got.length < %d) {
			const signal = await env.signals.receive("go", { timeout: 40 });
			if (!signal) continue;
			got.push(signal.data);
			await env.store.increment("n", signal.data);
		}
		return got.every((n, i) => n === i + 1) ? "in order" : got;`, each))
	runs := make([]string, 8)
	for i := range runs {
		spec.Target = fmt.Sprint("bucket", i)
		info, _, err := s.runs.Start(t.Context(), spec)
		if err != nil {
			t.Fatal(err)
		}
		runs[i] = info.Name
	}
	kills := 0
	for sent, ended := 0, 0; ended < len(runs); kills++ {
		kill := worker(t, dir, cacheDir, keyDir)
		for range 1 + rand.IntN(4) {
			for _, name := range runs {
				if sent == each {
					break
				}
				for range 2 { // what sends it is not sure that it came
					_, err := s.runs.Signal(t.Context(), name, "go", durable.Message{Data: fmt.Append(nil, sent+1), Key: fmt.Sprint(sent)})
					if err != nil && !errors.As(err, new(*durable.FullError)) {
						t.Fatal(err)
					}
				}
			}
			sent = min(sent+1, each)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Duration(rand.IntN(200+20*kills))*time.Millisecond)
		_, _ = s.runs.Wait(ctx, runs[rand.IntN(len(runs))])
		cancel()
		kill()
		ended = 0
		for _, name := range runs {
			r, err := s.runs.Get(t.Context(), name)
			if err != nil {
				t.Fatal(err)
			}
			if r.State.Final() {
				ended++
			}
		}
		if kills > 300 {
			t.Fatalf("%d of %d have ended", ended, len(runs))
		}
	}
	t.Logf("killed %d times", kills)
	for i, name := range runs {
		r, err := s.runs.Result(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		value, err := s.bucket.Bucket(fmt.Sprint("bucket", i)).Get(t.Context(), "n")
		if string(r.Output) != `"in order"` || err != nil || *value != fmt.Sprint(each*(each+1)/2) {
			t.Errorf("run %s: %s %s %v; the counter is %v, %v", name, r.State, r.Output, r.Err(), *value, err)
		}
	}
}

// TestInnerCall has a run call a tool that is no run: each of its operations counts, and it receives no signals.
func TestInnerCall(t *testing.T) {
	s := newStored(t)
	inner := program(t, s.shop, s.cacheDir, s.keyDir, `
		const ns = [await env.store.increment("n", 1), await env.store.increment("n", 1)];
		try { await env.signals.receive("go"); } catch (e: any) { return [...ns, e.code]; }`)
	for name, read := range inner.Modules {
		if err := s.host.AddModuleNamed(t.Context(), name, read); err != nil {
			t.Fatal(err)
		}
	}
	component, err := s.host.Load(t.Context(), bytesOf(t, inner.Component.Read))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = component.Close() }()
	if s.box, err = tools.New(tools.Options{Resolve: func(string) (tools.Func, error) {
		return host.Callee{Component: component, Tool: "t", Env: host.Env{"store": s.bucket.Bucket(""), "signals": &signals.Mailboxes{}}}.Start, nil
	}}); err != nil {
		t.Fatal(err)
	}
	spec := program(t, s.shop, s.cacheDir, s.keyDir, `return await env.tools.call("t", {});`)
	run, _, err := s.runs.Start(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	s.runs.Work()
	if r, err := s.runs.Wait(t.Context(), run.Name); err != nil || string(r.Output) != `[1,2,"unavailable"]` {
		t.Errorf("got %s %s %v, %v", r.State, r.Output, r.Err(), err)
	}
}

// TestClockSet sets the machine's clock forward and back by days while runs sleep. They wake by what it says.
func TestClockSet(t *testing.T) {
	s := newStored(t)
	start := time.Now()
	s.set(0)
	spec := program(t, s.shop, s.cacheDir, s.keyDir, `
		if (input.until) await env.clock.sleep(input.until);
		else await env.signals.receive("go", { timeout: "3 days" });
		return env.clock.now();`)
	const day = 24 * time.Hour
	var runs []string
	for _, input := range []string{`{"until": "3 days"}`, fmt.Sprintf(`{"until": %q}`, start.Add(3*day).UTC().Format(time.RFC3339)), `{}`} {
		spec.Input = []byte(input)
		run, _, err := s.runs.Start(t.Context(), spec)
		if err != nil {
			t.Fatal(err)
		}
		runs = append(runs, run.Name)
	}
	s.runs.Work()
	asleep := func(want bool) {
		t.Helper()
		for _, name := range runs {
			if r := s.until(t, name, durable.Asleep); (r.Wake.Sub(start) > 2*day) != want {
				t.Errorf("it sleeps until %v", r.Wake)
			}
		}
	}
	asleep(true)
	s.set(-5 * day)
	asleep(true)
	s.set(2 * day)
	asleep(true)
	s.set(3*day + time.Minute)
	for _, name := range runs {
		r, err := s.runs.Wait(t.Context(), name)
		var ended int64
		if _, scanned := fmt.Sscan(string(r.Output), &ended); err != nil || scanned != nil || time.UnixMilli(ended).Sub(start) < 3*day {
			t.Errorf("got %s %s %v, %v", r.State, r.Output, r.Err(), err)
		}
	}
}

// TestAddresses has a guest make addresses without end. Each mailbox has one, a run has few, and they end with it.
func TestAddresses(t *testing.T) {
	s := newStored(t)
	spec := program(t, s.shop, s.cacheDir, s.keyDir, `
		const same = new Set();
		for (let i = 0; i < 1000; i++) same.add(await env.signals.url("go"));
		let made = same.size, code = "";
		for (let i = 0; i < 9000 && !code; i++) await env.signals.url("m" + i).then(() => made++, (e: any) => { code = e.code; });
		await env.signals.receive("ready");
		return { url: [...same], made, code, got: (await env.signals.receive("go")).data };`)
	runs := make([]string, 2)
	for i := range runs {
		run, _, err := s.runs.Start(t.Context(), spec)
		if err != nil {
			t.Fatal(err)
		}
		runs[i] = run.Name
	}
	s.runs.Work()
	end := func(run string) string {
		t.Helper()
		s.until(t, run, durable.Asleep)
		for _, mailbox := range []string{"ready", "go"} {
			if _, err := s.runs.Signal(t.Context(), run, mailbox, durable.Message{Data: []byte(`1`)}); err != nil {
				t.Fatal(err)
			}
		}
		r, err := s.runs.Wait(t.Context(), run)
		if err != nil {
			t.Fatal(err)
		}
		var out struct {
			URL  []string
			Made int
			Code string
		}
		if err := json.Unmarshal(r.Output, &out); err != nil || len(out.URL) != 1 || out.Made != durable.MaxMailboxes || out.Code != "exhausted" {
			t.Fatalf("got %s %v, %v", r.Output, r.Err(), err)
		}
		token, ok := strings.CutPrefix(out.URL[0], "https://signals.example/")
		if !ok || len(token) != 43 {
			t.Fatalf("it is %s", out.URL[0])
		}
		return token
	}
	s.until(t, runs[1], durable.Asleep)
	first := end(runs[0])
	if has, err := s.runs.HasAddress(t.Context(), first); has || err != nil {
		t.Errorf("the address of a run that has ended is there: %v", err)
	}
	if _, err := s.runs.Post(t.Context(), first, nil, durable.Message{Data: []byte(`1`)}); !errors.Is(err, durable.ErrAddress) {
		t.Errorf("got %v", err)
	}
	// Somebody who can write to the file makes the token that they know one of another run, and an address of their own.
	known := fmt.Sprintf("%x", sha256.Sum256([]byte(first)))
	s.change(t, fmt.Sprintf(`INSERT INTO address (token, run, mailbox) SELECT '%s', id, 'go' FROM run WHERE name = '%s'`, known, runs[1]))
	if _, err := s.runs.Post(t.Context(), first, nil, durable.Message{Data: []byte(`1`)}); !errors.Is(err, durable.ErrAddress) {
		t.Errorf("got %v", err)
	}
	s.runs.Work()
	if second := end(runs[1]); second == first {
		t.Error("two runs have one address")
	}
}

// TestAddressOfOtherURL shows what a tool did with an address that does not begin as those of this process do.
func TestAddressOfOtherURL(t *testing.T) {
	const token = "AbCdEfGhIjKlMnOpQrStUvWxYz0123456789-_abcde"
	for _, url := range []string{"", "https://later.example/signals/", "https://h.example/"} {
		s := newStored(t, func(o *durable.Options) { o.URL = url })
		run, _, err := s.runs.Start(t.Context(), program(t, s.shop, s.cacheDir, s.keyDir, `
			await env.store.set("url", "https://h.example/signals/`+token+`");
			await env.signals.receive("approved");
			return await env.store.get("url");`))
		if err != nil {
			t.Fatal(err)
		}
		s.runs.Work()
		s.until(t, run.Name, durable.Asleep)
		if _, err := s.runs.Signal(t.Context(), run.Name, "approved", durable.Message{Data: []byte(`1`)}); err != nil {
			t.Fatal(err)
		}
		if r, err := s.runs.Wait(t.Context(), run.Name); err != nil || string(r.Output) != `"https://h.example/signals/`+token+`"` { // for its caller
			t.Errorf("it returned %s, %v", r.Output, err)
		}
		all := strings.Join(texts(operations(t, s.runs, run.Name)), "\n")
		shown, err := s.runs.Show(t.Context(), run.Name)
		if err != nil {
			t.Fatal(err)
		}
		if all += "\n" + string(shown.Output); strings.Contains(all, token[:10]) || strings.Count(all, `https://h.example/signals/[address]"`) != 3 {
			t.Errorf("with the URL %q:\n%s", url, all)
		}
	}
}

// TestAddressAgain has a run begin again: the address that its first attempt gave out works once the second asks for it, and not before.
func TestAddressAgain(t *testing.T) {
	s := newStored(t)
	run, _, err := s.runs.Start(t.Context(), program(t, s.shop, s.cacheDir, s.keyDir, `
		if (await env.store.increment("attempts", 1) > 1) await env.signals.receive("ready");
		await env.store.set("url", await env.signals.url("go"));
		return (await env.signals.receive("go")).data;`))
	if err != nil {
		t.Fatal(err)
	}
	s.runs.Work()
	s.until(t, run.Name, durable.Asleep)
	token := strings.TrimPrefix(s.kept(t, "", "url"), "https://signals.example/")
	shown := func() { // as what makes the address returns, and where the tool passes it on
		t.Helper()
		all := strings.Join(texts(operations(t, s.runs, run.Name)), "\n")
		for _, want := range []string{`signals.url("go") answered  "https://signals.example/[address]"`, `store.set("url", "https://signals.example/[address]")`} {
			if !strings.Contains(all, want) {
				t.Errorf("%s is not in\n%s", want, all)
			}
		}
		if strings.Contains(all, token[:10]) {
			t.Errorf("the address is in\n%s", all)
		}
	}
	shown()
	has := func(want bool) {
		t.Helper()
		if has, err := s.runs.HasAddress(t.Context(), token); has != want || err != nil {
			t.Errorf("the address is there: %t, %v", has, err)
		}
	}
	has(true)
	for _, change := range []func(context.Context, string) (bool, error){s.runs.Cancel, s.runs.Retry} {
		if ok, err := change(t.Context(), run.Name); err != nil || !ok {
			t.Fatal(ok, err)
		}
		has(false)
	}
	s.until(t, run.Name, durable.Asleep)
	has(false)
	if _, err := s.runs.Signal(t.Context(), run.Name, "ready", durable.Message{Data: []byte(`1`)}); err != nil {
		t.Fatal(err)
	}
	for {
		delivered, err := s.runs.Post(t.Context(), token, nil, durable.Message{Data: []byte(`2`), Key: "once"})
		if delivered {
			break
		}
		if !errors.Is(err, durable.ErrAddress) {
			t.Fatal(delivered, err)
		}
		<-time.After(time.Millisecond)
	}
	if r := s.until(t, run.Name, durable.Done); string(r.Output) != "2" {
		t.Errorf("got %s", r.Output)
	}
}

// TestPost posts to an address of a run that sleeps.
func TestPost(t *testing.T) {
	s := newStored(t)
	spec := program(t, s.shop, s.cacheDir, s.keyDir, `
		await env.store.set("url", await env.signals.url("go"));
		return [(await env.signals.receive("go")), (await env.signals.receive("go"))].map(({ data, from }) => [data, from]);`)
	run, _, err := s.runs.Start(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	s.runs.Work()
	s.until(t, run.Name, durable.Asleep)
	url, err := s.bucket.Bucket("").Get(t.Context(), "url")
	if err != nil {
		t.Fatal(err)
	}
	token := strings.TrimPrefix(*url, "https://signals.example/")
	for i, key := range []string{"a", "a", "b"} {
		if delivered, err := s.runs.Post(t.Context(), token, nil, durable.Message{Data: fmt.Append(nil, i), Key: key, From: "outside"}); err != nil || delivered != (i != 1) {
			t.Errorf("%d: %v, %v", i, delivered, err)
		}
	}
	if r, err := s.runs.Wait(t.Context(), run.Name); err != nil || string(r.Output) != `[[0,"outside"],[2,"outside"]]` {
		t.Errorf("got %s %v, %v", r.Output, r.Err(), err)
	}
}

// TestSignedPost posts to an address that asks for signatures: without one, with a wrong one, after the secret is gone, and after somebody has altered the file.
func TestSignedPost(t *testing.T) {
	const secret = "It's a Secret to Everybody"
	secrets := map[string]string{"hook": secret}
	var broken error
	s := newStored(t, func(o *durable.Options) {
		o.Secret = func(_ context.Context, name string) (string, error) {
			value, ok := secrets[name]
			if !ok {
				return "", errors.Join(errors.New("no such secret"), broken)
			}
			return value, broken
		}
	})
	spec := program(t, s.shop, s.cacheDir, s.keyDir, `
		for (const [mail, name] of [["signals", "go"], ["signed", "go"], ["signed", "other"], ["signed", "go"]]) await env.store.set(mail + "-" + name, await env[mail].url(name));
		return [(await env.signals.receive("go")).data, (await env.signals.receive("go")).data];`)
	run, _, err := s.runs.Start(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	s.runs.Work()
	s.until(t, run.Name, durable.Asleep)
	token := func(name string) string {
		t.Helper()
		url, err := s.bucket.Bucket("").Get(t.Context(), name)
		if err != nil || url == nil {
			t.Fatal(name, err)
		}
		return strings.TrimPrefix(*url, "https://signals.example/")
	}
	open, signed, other := token("signals-go"), token("signed-go"), token("signed-other")
	if open == signed || signed == other {
		t.Fatal("addresses are the same")
	}
	headers := func(body string) map[string][]string {
		h := hmac.New(sha256.New, []byte(secret))
		h.Write([]byte(body))
		return map[string][]string{"X-Hub-Signature-256": {fmt.Sprintf("sha256=%x", h.Sum(nil))}}
	}
	refused := 0
	post := func(what, body string, headers map[string][]string, want error) {
		t.Helper()
		delivered, err := s.runs.Post(t.Context(), signed, headers, durable.Message{Data: []byte(body), From: "outside"})
		if !errors.Is(err, want) || delivered != (want == nil) {
			t.Errorf("%s: %v, %v", what, delivered, err)
		}
		if errors.Is(want, durable.ErrSignature) {
			refused++
		}
		shown, err := s.runs.Show(t.Context(), run.Name)
		if err != nil || (shown.Refused != nil) != (refused > 0) || refused > 0 && (shown.Refused.Posts != refused || shown.Refused.Last.IsZero()) || len(shown.Messages) > 0 && want != nil {
			t.Errorf("%s: %d are refused, %+v, %v", what, refused, shown.Refused, err)
		}
	}
	post("no signature", `1`, nil, durable.ErrSignature)
	post("another body", `1`, headers(`2`), durable.ErrSignature)
	post("what is signed is what was posted, not its JSON", ` 1`, headers(`1`), durable.ErrSignature)
	post("no JSON", `{`, headers(`1`), durable.ErrSignature)
	if _, err := s.runs.Post(t.Context(), signed, headers(`{`), durable.Message{Data: []byte(`{`)}); !errors.As(err, new(*durable.MessageError)) {
		t.Errorf("got %v", err)
	}
	for _, value := range []string{"", "short"} {
		secrets["hook"] = value
		post("a secret of "+value, `1`, headers(`1`), durable.ErrSignature)
	}
	secrets["hook"] = secret
	broken = errors.New("the keyring is locked")
	post("a secret that cannot be read", `1`, headers(`1`), durable.ErrSignature)
	broken = nil
	delete(secrets, "hook")
	post("a deleted secret", `1`, headers(`1`), durable.ErrSignature)
	var problem *durable.SecretError
	if _, err := s.runs.Post(t.Context(), signed, headers(`1`), durable.Message{Data: []byte(`1`)}); !errors.As(err, &problem) || problem.Secret != "hook" || problem.Mailbox != "go" {
		t.Errorf("got %v", err)
	}
	refused++
	secrets["hook"] = secret
	// Somebody who can write to the file takes the check away, or moves one of another mailbox.
	digest := func(token string) string { return fmt.Sprintf("%x", sha256.Sum256([]byte(token))) }
	s.change(t, `CREATE TABLE copy AS SELECT * FROM address`)
	for what, q := range map[string]string{
		"no check":           `UPDATE address SET verify = NULL`,
		"an empty one":       `UPDATE address SET verify = x''`,
		"a byte":             flip("address", "verify", "verify IS NOT NULL"),
		"of another mailbox": fmt.Sprintf(`UPDATE address SET verify = (SELECT verify FROM copy WHERE token = '%s') WHERE token = '%s'`, digest(other), digest(signed)),
		"another mailbox":    fmt.Sprintf(`UPDATE address SET mailbox = 'other' WHERE token = '%s'`, digest(signed)),
	} {
		s.change(t, q)
		post(what, `1`, headers(`1`), durable.ErrAddress)
		post(what, `1`, nil, durable.ErrAddress)
		s.change(t, `DELETE FROM address`, `INSERT INTO address SELECT * FROM copy`)
	}
	// The open address is not closed by a check of another's, and this run asked for both.
	if delivered, err := s.runs.Post(t.Context(), open, nil, durable.Message{Data: []byte(`0`)}); err != nil || !delivered {
		t.Error(err)
	}
	if delivered, err := s.runs.Post(t.Context(), signed, headers(` 1`), durable.Message{Data: []byte(` 1`)}); err != nil || !delivered {
		t.Error(err)
	}
	s.runs.Work()
	if r, err := s.runs.Wait(t.Context(), run.Name); err != nil || string(r.Output) != `[0,1]` {
		t.Errorf("got %s %v, %v", r.Output, r.Err(), err)
	}
	if shown, err := s.runs.Show(t.Context(), run.Name); err != nil || shown.Refused == nil || shown.Refused.Posts != refused {
		t.Errorf("after the end: %+v, %v", shown.Refused, err)
	}
}

// TestWallGoesOn ends a run's process again and again, each time before the wall clock of the run is over. The log says how long the run was awake, so it ends.
func TestWallGoesOn(t *testing.T) {
	const wall, process = 3 * time.Second, 1500 * time.Millisecond
	s := newStored(t)
	s.options = append(s.options, func(o *durable.Options) {
		request := o.Request
		o.Request = func(ctx context.Context, run durable.Info) (durable.Authority, error) {
			a, err := request(ctx, run)
			a.Request.Limits.Wall = wall
			return a, err
		}
	})
	s.change(t)
	run, _, err := s.runs.Start(t.Context(), program(t, s.shop, s.cacheDir, s.keyDir, `
		for (;;) await new Promise((r) => setTimeout(r, 5));`))
	if err != nil {
		t.Fatal(err)
	}
	for range 8 {
		s.runs.Work()
		ctx, cancel := context.WithTimeout(t.Context(), process)
		r, err := s.runs.Wait(ctx, run.Name)
		cancel()
		if err == nil {
			if r.Outcome.Limit != "wall" {
				t.Errorf("got %s %v", r.State, r.Err())
			}
			return
		}
		s.change(t) // ends it
	}
	t.Errorf("it was awake for %v, and goes on", 8*process)
}

// TestWallIsTimeAwake has a run wait more often than its wall clock would allow if the time counted in which a call waits to see whether it should sleep.
func TestWallIsTimeAwake(t *testing.T) {
	const idle, wall, waits = 150 * time.Millisecond, 1500 * time.Millisecond, 12
	s := newStored(t)
	s.options = append(s.options, func(o *durable.Options) {
		o.Idle = idle
		request := o.Request
		o.Request = func(ctx context.Context, run durable.Info) (durable.Authority, error) {
			a, err := request(ctx, run)
			a.Request.Limits.Wall = wall
			return a, err
		}
	})
	s.change(t)
	run, _, err := s.runs.Start(t.Context(), program(t, s.shop, s.cacheDir, s.keyDir, fmt.Sprintf(`
		for (let i = 0; i < %d; i++) await env.signals.receive("go");
		for (;;) await new Promise((r) => setTimeout(r, 1));`, waits)))
	if err != nil {
		t.Fatal(err)
	}
	s.runs.Work()
	for range waits {
		s.until(t, run.Name, durable.Asleep)
		if _, err := s.runs.Signal(t.Context(), run.Name, "go", durable.Message{Data: []byte("1")}); err != nil {
			t.Fatal(err)
		}
	}
	// What it does awake counts.
	r, err := s.runs.Wait(t.Context(), run.Name)
	if err != nil || r.Outcome.Limit != "wall" {
		t.Errorf("got %s %v, %v", r.State, r.Err(), err)
	}
}
