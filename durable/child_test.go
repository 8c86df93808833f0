package durable_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/capabilities/tools"
	"github.com/stilehost/stile/durable"
	"github.com/stilehost/stile/host"
)

// family has the program of a store call itself.
type family struct {
	dir string
	s   *shop
}

const (
	familyCode   = "family.wasm"
	familyEngine = "engine.wasm"
)

// Can implements [tools.Durable].
func (*family) Can(tool string) bool { return tool != "awake" }

// Start implements [tools.Durable].
func (f *family) Start(ctx context.Context, _ string, input []byte, _ map[string]abi.Capability) error {
	return f.s.runs.StartChild(ctx, func() (durable.Spec, error) { return f.spec(input) })
}

func (f *family) spec(input []byte) (durable.Spec, error) {
	code, err := os.ReadFile(filepath.Join(f.dir, familyCode))
	if err != nil {
		return durable.Spec{}, err
	}
	engine, err := os.ReadFile(filepath.Join(f.dir, familyEngine))
	return durable.Spec{Component: durable.CodeOf(code), Modules: durable.Modules{host.ModuleName(engine): durable.CodeOf(engine).Read}, Tool: "t", Input: input, Target: "family"}, err
}

// Take implements [tools.Durable].
func (f *family) Take(ctx context.Context, tool string, sequence uint64) (tools.Ended, bool, error) {
	r, ok, err := f.s.runs.TakeChild(ctx, sequence)
	if err != nil || !ok {
		return tools.Ended{}, false, err
	}
	return tools.Ended{Output: r.Output, Failure: r.Failure(tool), CPU: r.Usage.CPU}, true, nil
}

// haveFamily gives the runs of a store a binding that calls their own program, if there is one.
func (s *shop) haveFamily(dir string) (err error) {
	if _, err := os.Stat(filepath.Join(dir, familyCode)); err != nil {
		return nil
	}
	f := &family{dir, s}
	s.starter = starter{f}
	s.box, err = tools.New(tools.Options{Durable: f, Resolve: func(string) (tools.Func, error) {
		return func(_ context.Context, name string, _ []byte, _ map[string]abi.Capability, done func([]byte, error)) {
			done([]byte(`"`+name+`"`), nil)
		}, nil
	}})
	return err
}

// newFamily is a store whose program calls itself.
func newFamily(t *testing.T, options ...func(*durable.Options)) (*stored, durable.Spec) {
	t.Helper()
	s := newStored(t, options...)
	spec := program(t, s.shop, s.cacheDir, s.keyDir, familyProgram)
	spec.Target = "family"
	files := map[string][]byte{familyCode: bytesOf(t, spec.Component.Read)}
	for _, read := range spec.Modules {
		files[familyEngine] = bytesOf(t, read)
	}
	for name, body := range files {
		if err := os.WriteFile(filepath.Join(s.dir, name), body, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.haveFamily(s.dir); err != nil {
		t.Fatal(err)
	}
	return s, spec
}

// familyProgram does what its input says, and to whom.
const familyProgram = `
	const { name, children = 0, deep = 0, what = "work", size = 0 } = input;
	const call = (input: any) => env.tools.call("t", input);
	const told = async (p: Promise<any>) => { try { return await p; } catch (e: any) { return e.code + ": " + e.message; } };
	switch (what) {
	case "work":
		for (let i = 0; i < 20; i++) {
			await env.store.increment(name, 1);
			if (i % 8 == 5) await env.clock.sleep(60);
		}
		return Number(await env.store.get(name));
	case "count": return await env.store.increment(name, 1);
	case "parent":
		await env.store.increment(name, 1);
		const all = [];
		for (let i = 0; i < children; i++) all.push(call({ name: name + "/" + i }));
		const sums = await Promise.all(all);
		await env.store.increment(name, 1);
		return { sums, own: Number(await env.store.get(name)) };
	case "sleep":
		if (name) await env.store.increment(name, 1);
		await env.clock.sleep(3600000);
		return "slept";
	case "tree":
		await Promise.all(Array.from({ length: deep ? children : 0 }, () => call({ what, deep: deep - 1, children })).concat(deep ? [] : [call({ what: "sleep" })]));
		return "tree";
	case "deep": return (await told(call({ what, deep: deep + 1 })));
	case "many":
		const texts = [];
		for (let i = 0; i < children; i++) {
			const t = await told(Promise.race([call({ what: "sleep" }), env.clock.sleep(size)]));
			if (t) texts.push(t);
		}
		return texts;
	case "each": let n = 0; for (let i = 0; i < children; i++) n += (await call({ what: "large", size })).length; return n;
	case "large": await env.clock.sleep(input.after ?? 0); 
		let x = 1, text = ""; // which does not compress
		while (text.length < size) text += (x = (x * 48271) % 2147483647).toString(36);
		return text.slice(0, size);
	case "hold": {
		const lengths = await Promise.all(Array.from({ length: children }, () => told(call({ what: "large", size, after: 3600000 }))));
		return lengths.map((t: string) => t.startsWith("exhausted") ? t : t.length);
	}
	case "fail": throw new Error("no more " + name);
	case "starter": {
		const all = [];
		for (let i = 0; i < children; i++) all.push(await env.runs.start("t", { what: "three", name: name + "/" + i }, i % 2 ? { key: name + i } : {}));
		const sleeps = await env.runs.start("t", { what: "sleep" });
		for (let n = 1; n <= 3; n++) {
			for (const run of all) if (!await run.signal("go", n)) throw new Error("it was not delivered");
			if (n == 2) await env.clock.sleep(60);
		}
		await sleeps.cancel();
		return [...await Promise.all(all.map((run: any) => run.result())), await told(sleeps.result())];
	}
	case "three": {
		await env.store.increment(name, 1);
		const got = [];
		while (got.length < 3) { const { data, from } = await env.signals.receive("go"); got.push(data + " from " + from); }
		return got;
	}
	case "await": {
		const run = env.runs.started(input.run);
		if (input.durably) return await told(run.result());
		const { status, signal, cancel, result } = run as any;
		return await told({ status, signal, cancel, result }[input.does as "status"](...(input.args ?? [])));
	}
	case "waits": return await (await env.runs.start("t", input.order)).result();
	case "leaves": {
		if (await env.store.increment(name, 1) > 1) return await env.signals.receive("go"), "left";
		const run = await env.runs.start("t", { what: "sleep" });
		await Promise.race([run.result(), env.signals.receive("go")]);
		throw new Error("it does not wait any more");
	}
	case "calls": return await call(input.order);
	case "one": return (await env.signals.receive("last")).data;
	case "echo": return name ?? null;
	case "start": { const run = await env.runs.start("t", input.order, input.options); return run.id; }
	case "ask": return [await told(call({ what: "fail", name })), await told(call({ what: "large", size: 2000000 })), await told(env.tools.call("t", input.bad))];
	case "awake": return await env.tools.call("awake", {});
	case "retry":
		await call({ what: "work", name: name + "/" + (await env.store.increment(name, 1)) });
		const late = call({ what: "sleep", name: name + "/late" });
		while (Number(await env.store.get(name + "/late") ?? "0") < Number(await env.store.get(name))) await env.clock.sleep(5);
		if (Number(await env.store.get(name)) < 3) throw new Error("again");
		return "third";
	}`

func (s *stored) start(t *testing.T, spec durable.Spec, input string) string {
	t.Helper()
	spec.Input = []byte(input)
	info, _, err := s.runs.Start(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	return info.Name
}

func (s *stored) counter(t *testing.T, name string) string {
	t.Helper()
	return s.kept(t, "family", name)
}

// childrenIn waits until a run has so many children in a state.
func (s *stored) childrenIn(t *testing.T, parent string, n int, state durable.State) (names []string) {
	t.Helper()
	for {
		all, err := s.runs.Children(t.Context(), parent)
		if err != nil {
			t.Fatal(err)
		}
		names = nil
		for _, c := range all {
			if c.Parent != parent {
				t.Fatalf("%s has the parent %s", c.Name, c.Parent)
			}
			if c.State == state {
				names = append(names, c.Name)
			}
		}
		if len(names) == n {
			return names
		}
		select {
		case <-time.After(5 * time.Millisecond):
		case <-t.Context().Done():
			t.Fatalf("%d of %d children are %s", len(names), n, state)
		}
	}
}

// TestChildrenKilled kills the process that works on runs at random times, while they call three tools each. Every effect of all comes about once.
func TestChildrenKilled(t *testing.T) {
	s, spec := newFamily(t)
	const kills = 25
	open := map[string]string{}
	killed, parents := 0, 0
	for ; killed < kills || len(open) > 0; killed++ {
		for len(open) < 6 && killed < kills {
			parents++
			name := fmt.Sprint("p", parents)
			open[s.start(t, spec, fmt.Sprintf(`{"what": "parent", "name": %q, "children": 3}`, name))] = name
		}
		kill := worker(t, s.dir, s.cacheDir, s.keyDir)
		wait := time.Duration(rand.IntN(300)) * time.Millisecond
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
			r, err := s.runs.Result(t.Context(), run)
			if err != nil {
				t.Fatal(err)
			}
			if !r.State.Final() {
				continue
			}
			delete(open, run)
			if r.State != durable.Done || string(r.Output) != `{"sums":[20,20,20],"own":2}` {
				t.Errorf("%s is %s: %s %s %s", name, r.State, r.Output, r.Reason, r.Outcome)
			}
			children, err := s.runs.Children(t.Context(), run)
			if err != nil || len(children) != 3 {
				t.Errorf("%s has %d children: %v", name, len(children), err)
			}
			for i := range 3 {
				if n := s.counter(t, fmt.Sprint(name, "/", i)); n != "20" {
					t.Errorf("%s: child %d counts %s", name, i, n)
				}
			}
		}
		if killed > kills+20 {
			t.Fatalf("%d runs have not ended", len(open))
		}
	}
	t.Logf("killed %d times, over %d runs", killed, parents)
}

// TestChildSleeps has a run sleep without memory for what it called, and both go on in other processes.
func TestChildSleeps(t *testing.T) {
	s, spec := newFamily(t)
	s.runs.Work()
	run := s.start(t, spec, `{"what": "tree", "deep": 2, "children": 2}`)
	s.until(t, run, durable.Asleep)
	for _, child := range s.childrenIn(t, run, 2, durable.Asleep) {
		s.childrenIn(t, child, 2, durable.Asleep)
	}
	if list, err := s.runs.List(t.Context(), "", 100); err != nil || len(list) != 1 {
		t.Errorf("%d runs are listed: %v", len(list), err)
	}
	if list, err := s.runs.ListAll(t.Context(), "", 100); err != nil || len(list) != 1+2+4+4 {
		t.Errorf("%d runs are listed with children: %v", len(list), err)
	}
	for s.count(t, `SELECT count(*) FROM run WHERE state <> 'asleep'`) > 0 {
		<-time.After(5 * time.Millisecond)
	}
	if err := s.close(); err != nil {
		t.Fatal(err)
	}
	s.reopen(t)
	s.set(2 * 3600e9)
	s.runs.Work(run) // and with it what it called
	if r := s.until(t, run, durable.Done); string(r.Output) != `"tree"` {
		t.Errorf("it returned %s", r.Output)
	}
	if n := s.count(t, `SELECT count(*) FROM run`); n != 3 { // of the others nobody asks any more
		t.Errorf("%d runs are kept", n)
	}
	child := s.childrenIn(t, run, 2, durable.Done)[0]
	var goes *durable.ChildError
	if _, err := s.runs.Remove(t.Context(), child); !errors.As(err, &goes) || goes.Parent != run {
		t.Errorf("a child is removed: %v", err)
	}
	if _, _, err := s.runs.Start(t.Context(), durable.Spec{Key: "child:" + run + ":1"}); err == nil {
		t.Error("somebody else can use the key of a child")
	}
	if removed, err := s.runs.Remove(t.Context(), run); err != nil || !removed {
		t.Error(removed, err)
	}
	for _, table := range []string{"run", "outcome", "message", "waiting", "snapshot", "log", "code"} {
		if n := s.count(t, `SELECT count(*) FROM `+table); n != 0 {
			t.Errorf("%d rows of %s are left", n, table)
		}
	}
}

// TestChildrenEnd ends a run while what it called is asleep or under way.
func TestChildrenEnd(t *testing.T) {
	for _, how := range []string{"cancelled", "late", "its child cancelled"} {
		t.Run(how, func(t *testing.T) {
			s, spec := newFamily(t)
			s.runs.Work()
			spec.Deadline = 2 * time.Hour
			run := s.start(t, spec, `{"what": "tree", "deep": 2, "children": 2}`)
			children := s.childrenIn(t, run, 2, durable.Asleep)
			for _, child := range children {
				s.childrenIn(t, child, 2, durable.Asleep)
			}
			for s.count(t, `SELECT count(*) FROM run WHERE state = 'asleep'`) < 11 {
				<-time.After(5 * time.Millisecond)
			}
			if n := s.count(t, `SELECT count(*) FROM run WHERE deadline <> (SELECT deadline FROM run WHERE parent IS NULL)`); n != 0 {
				t.Errorf("%d children have another deadline", n)
			}
			want := durable.Cancelled
			switch how {
			case "cancelled":
				if ok, err := s.runs.Cancel(t.Context(), run); err != nil || !ok {
					t.Fatal(ok, err)
				}
			case "late":
				want = durable.Failed
				s.set(3 * time.Hour)
			default:
				want = durable.Failed
				if ok, err := s.runs.Cancel(t.Context(), children[0]); err != nil || !ok {
					t.Fatal(ok, err)
				}
			}
			r, err := s.runs.Wait(t.Context(), run)
			if err != nil || r.State != want {
				t.Fatalf("%s %s %v", r.State, r.Outcome, err)
			}
			if how == "its child cancelled" && !strings.Contains(r.Outcome.Message, "its run was cancelled") {
				t.Errorf("it is told %s", r.Outcome.Message)
			}
			for s.count(t, `SELECT count(*) FROM run WHERE state NOT IN ('failed', 'cancelled')`) > 0 {
				<-time.After(5 * time.Millisecond)
			}
			if n := s.count(t, `SELECT count(*) FROM run`); n != 3 {
				t.Errorf("%d runs are kept", n)
			}
			for _, table := range []string{"message", "waiting", "snapshot", "log"} {
				if n := s.count(t, `SELECT count(*) FROM `+table); n != 0 {
					t.Errorf("%d rows of %s are left", n, table)
				}
			}
		})
	}
}

// TestChildrenAwakeEnd cancels a run while what it called has work to do.
func TestChildrenAwakeEnd(t *testing.T) {
	s, spec := newFamily(t, func(o *durable.Options) { o.Idle = time.Hour })
	s.runs.Work()
	run := s.start(t, spec, `{"what": "tree", "deep": 1, "children": 2}`)
	for s.count(t, `SELECT count(*) FROM run WHERE state = 'running'`) < 5 {
		<-time.After(5 * time.Millisecond)
	}
	if _, err := s.runs.Cancel(t.Context(), run); err != nil {
		t.Fatal(err)
	}
	for s.count(t, `SELECT count(*) FROM run WHERE state = 'running'`) > 0 {
		<-time.After(5 * time.Millisecond)
	}
	s.childrenIn(t, run, 2, durable.Cancelled)
}

// TestChildFailures tells a run what became of what it called, and goes on.
func TestChildFailures(t *testing.T) {
	s, spec := newFamily(t)
	s.runs.Work()
	r := s.until(t, s.start(t, spec, `{"what": "ask", "name": "bread"}`), durable.Done)
	var told []string
	if err := json.Unmarshal(r.Output, &told); err != nil || len(told) != 3 {
		t.Fatal(string(r.Output), err)
	}
	for i, want := range []string{"unavailable: ", "exhausted: ", ""} {
		if !strings.HasPrefix(told[i], want) {
			t.Errorf("%d: %s", i, told[i])
		}
	}
	if !strings.Contains(told[0], "no more bread") || !strings.Contains(told[1], "output") {
		t.Errorf("got %q", told)
	}
	if r := s.until(t, s.start(t, spec, `{"what": "awake"}`), durable.Done); string(r.Output) != `"awake"` {
		t.Errorf("what cannot be durable returned %s", r.Output)
	}
}

// TestChildAttempts has a run fail and begin again: what its earlier attempts called is ended.
func TestChildAttempts(t *testing.T) {
	s, spec := newFamily(t)
	s.runs.Work()
	spec.Retry = durable.Retry{Attempts: 3, Delay: time.Millisecond}
	run := s.start(t, spec, `{"what": "retry", "name": "r"}`)
	if r := s.until(t, run, durable.Done); string(r.Output) != `"third"` {
		t.Errorf("it returned %s", r.Output)
	}
	for _, child := range []string{"r/1", "r/2", "r/3"} {
		if n := s.counter(t, child); n != "20" {
			t.Errorf("%s counts %s", child, n)
		}
	}
	for s.count(t, `SELECT count(*) FROM run WHERE state NOT IN ('done', 'cancelled')`) > 0 {
		<-time.After(5 * time.Millisecond)
	}
	if n := s.count(t, `SELECT count(*) FROM run`); n != 3 { // those of the last attempt
		t.Errorf("%d runs are kept", n)
	}
}

// TestChildBombs has runs call themselves without end, in depth and in breadth, and keep what they get.
func TestChildBombs(t *testing.T) {
	s, spec := newFamily(t)
	s.runs.Work()
	t.Run("deep", func(t *testing.T) {
		r := s.until(t, s.start(t, spec, `{"what": "deep"}`), durable.Done)
		if !strings.Contains(string(r.Output), "exhausted: ") || !strings.Contains(string(r.Output), "64 calls of tools in one another") {
			t.Errorf("it returned %s", r.Output)
		}
	})
	t.Run("many", func(t *testing.T) {
		run := s.start(t, spec, `{"what": "many", "children": 103, "size": 1}`)
		r := s.until(t, run, durable.Done)
		if strings.Count(string(r.Output), "100 calls of tools whose results the run has not taken") != 3 {
			t.Errorf("it returned %s", r.Output)
		}
		s.childrenIn(t, run, 100, durable.Cancelled)
	})
	t.Run("tree", func(t *testing.T) {
		run := s.start(t, spec, `{"what": "many", "children": 2, "size": 1800000}`)
		s.childrenIn(t, run, 1, durable.Asleep)
		s.until(t, run, durable.Asleep)
		db := s.file(t)
		defer func() { _ = db.Close() }()
		if _, err := db.ExecContext(t.Context(), `WITH RECURSIVE n (i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n WHERE i < 999)
			INSERT INTO run (name, state, created, changed, deadline, code, spec, head, root) SELECT 'made' || i, 'parked', 0, 0, 0, '', x'', x'', run.id FROM n, run WHERE name = ?`, run); err != nil {
			t.Fatal(err)
		}
		s.set(45 * time.Minute) // the run stops waiting for its child, which sleeps for an hour
		r := s.until(t, run, durable.Done)
		if !strings.Contains(string(r.Output), "1000 calls of tools of one run") {
			t.Errorf("it returned %s", r.Output)
		}
	})
	t.Run("in turn", func(t *testing.T) {
		run := s.start(t, spec, `{"what": "each", "children": 40, "size": 200000}`)
		if r := s.until(t, run, durable.Done); string(r.Output) != "8000000" {
			t.Errorf("it returned %s", r.Output)
		}
		if all, err := s.runs.Children(t.Context(), run); err != nil || len(all) > 22 {
			t.Errorf("%d children are kept: %v", len(all), err)
		}
	})
	t.Run("large", func(t *testing.T) {
		run := s.start(t, spec, `{"what": "hold", "children": 20, "size": 1000000}`)
		s.childrenIn(t, run, 20, durable.Asleep)
		s.until(t, run, durable.Asleep)
		db := s.file(t)
		defer func() { _ = db.Close() }()
		if _, err := db.ExecContext(t.Context(), `UPDATE run SET state = 'parked' WHERE name = ?`, run); err != nil { // so that it takes nothing
			t.Fatal(err)
		}
		s.set(4 * time.Hour)
		for s.count(t, `SELECT count(*) FROM run WHERE state IN ('ready', 'running', 'asleep')`) > 0 {
			<-time.After(5 * time.Millisecond)
		}
		if ok, err := s.runs.Retry(t.Context(), run); err != nil || !ok {
			t.Fatal(ok, err)
		}
		r := s.until(t, run, durable.Done)
		if n := strings.Count(string(r.Output), "16 MiB of inputs and results"); n == 0 || n > 10 {
			t.Errorf("%d are refused: %s", n, r.Output)
		}
	})
}

// TestChildOfLostRun takes a run from its process right before it calls a tool, and before it takes the result. Nothing comes of either.
func TestChildOfLostRun(t *testing.T) {
	s, spec := newFamily(t)
	db := s.file(t)
	defer func() { _ = db.Close() }()
	steal := func() error {
		_, err := db.ExecContext(t.Context(), `UPDATE run SET fence = fence + 1, owner = 'another' WHERE parent IS NULL`)
		return err
	}
	for _, when := range []string{"start", "take"} {
		t.Run(when, func(t *testing.T) {
			stolen, told := false, make(chan error, 1)
			do := func(now string, err func() error) error {
				if now != when || stolen {
					return err()
				}
				stolen = true
				if err := steal(); err != nil {
					return err
				}
				lost := err()
				told <- lost
				return lost
			}
			f := &family{s.dir, s.shop}
			var err error
			s.box, err = tools.New(tools.Options{Durable: watched{f, do}, Resolve: func(string) (tools.Func, error) { return nil, nil }})
			if err != nil {
				t.Fatal(err)
			}
			s.runs.Work()
			run := s.start(t, spec, `{"what": "parent", "name": "lost-`+when+`", "children": 1}`)
			if err := <-told; !errors.As(err, new(*durable.LostError)) {
				t.Errorf("got %v", err)
			}
			want := int64(0)
			if when == "take" {
				want = 1
			}
			if n := s.count(t, `SELECT count(*) FROM run WHERE parent = (SELECT max(id) FROM run WHERE parent IS NULL)`); n != want {
				t.Errorf("it has %d children", n)
			}
			if n := s.count(t, `SELECT count(*) FROM run WHERE taken IS NOT NULL`); n != 0 {
				t.Error("the result was taken")
			}
			if _, err := db.ExecContext(t.Context(), `UPDATE run SET state = 'ready', owner = NULL WHERE owner = 'another'`); err != nil { // it goes on
				t.Fatal(err)
			}
			if r := s.until(t, run, durable.Done); string(r.Output) != `{"sums":[20],"own":2}` {
				t.Errorf("it returned %s", r.Output)
			}
			if ok, err := s.runs.Remove(t.Context(), run); err != nil || !ok {
				t.Fatal(ok, err)
			}
		})
	}
}

// watched is a family with something to do around each operation.
type watched struct {
	*family
	do func(when string, operation func() error) error
}

func (w watched) Start(ctx context.Context, tool string, input []byte, env map[string]abi.Capability) error {
	return w.do("start", func() error { return w.family.Start(ctx, tool, input, env) })
}

func (w watched) Take(ctx context.Context, tool string, sequence uint64) (e tools.Ended, ok bool, err error) {
	err = w.do("take", func() error {
		e, ok, err = w.family.Take(ctx, tool, sequence)
		return err
	})
	return e, ok, err
}

// TestChildAltered gives runs what others called, as somebody can who writes to the file and has no key.
func TestChildAltered(t *testing.T) {
	for name, change := range map[string]string{
		"the key of another": `UPDATE run SET key = replace(replace(key, (SELECT name FROM run WHERE id = 1), 'x'), (SELECT name FROM run WHERE id = 2), (SELECT name FROM run WHERE id = 1)) WHERE parent IS NOT NULL`,
		"an outcome":         `UPDATE outcome SET body = (SELECT body FROM outcome WHERE run = (SELECT id FROM run WHERE parent = 2)) WHERE run = (SELECT id FROM run WHERE parent = 1)`,
		"no outcome":         `DELETE FROM outcome WHERE run = (SELECT id FROM run WHERE parent = 1)`,
	} {
		t.Run(name, func(t *testing.T) {
			s, spec := newFamily(t)
			first := s.start(t, spec, `{"what": "hold", "size": 10, "children": 1}`)
			second := s.start(t, spec, `{"what": "hold", "size": 20, "children": 1}`)
			s.runs.Work()
			for _, run := range []string{first, second} {
				s.childrenIn(t, run, 1, durable.Asleep)
				s.until(t, run, durable.Asleep)
			}
			db := s.file(t)
			defer func() { _ = db.Close() }()
			if _, err := db.ExecContext(t.Context(), `UPDATE run SET state = 'parked' WHERE parent IS NULL`); err != nil { // so that they take nothing
				t.Fatal(err)
			}
			s.set(2 * time.Hour)
			s.childrenIn(t, first, 1, durable.Done)
			s.childrenIn(t, second, 1, durable.Done)
			s.change(t, change)
			s.runs.Work()
			if ok, err := s.runs.Retry(t.Context(), first); err != nil || !ok {
				t.Fatal(ok, err)
			}
			r, err := s.runs.Wait(t.Context(), first)
			if err != nil || strings.Contains(string(r.Output), "[10]") || strings.Contains(string(r.Output), "[20]") {
				t.Errorf("%s: %s %v", r.State, r.Output, err)
			}
		})
	}
}

// TestChildrenAreTidied keeps as many runs as the options say, counted with their children. Children go with their parent, and not before.
func TestChildrenAreTidied(t *testing.T) {
	s, spec := newFamily(t, func(o *durable.Options) { o.MaxEnded = 5 })
	s.runs.Work()
	var runs []string
	for range 3 {
		run := s.start(t, spec, `{"what": "each", "children": 3, "size": 10}`)
		s.until(t, run, durable.Done)
		runs = append(runs, run)
	}
	if err := s.close(); err != nil {
		t.Fatal(err)
	}
	s.reopen(t)
	s.runs.Work() // which tidies at first
	for s.count(t, `SELECT count(*) FROM run`) != 4 {
		<-time.After(5 * time.Millisecond)
	}
	s.childrenIn(t, runs[2], 3, durable.Done)
}

// TestChildParked has a run wait for one that is parked, through another. It says so, to the end of the one that is parked.
func TestChildParked(t *testing.T) {
	for _, how := range []string{"retried", "ended", "ended itself"} {
		t.Run(how, func(t *testing.T) {
			s, spec := newFamily(t)
			s.runs.Work()
			run := s.start(t, spec, `{"what": "tree", "deep": 1, "children": 1}`)
			child := s.childrenIn(t, run, 1, durable.Asleep)[0]
			parked := s.childrenIn(t, child, 1, durable.Asleep)[0]
			s.until(t, run, durable.Asleep)
			if r := s.until(t, child, durable.Asleep); r.Blocked != nil {
				t.Errorf("it is blocked: %+v", r.Blocked)
			}
			var snapshot string
			db := s.file(t)
			if err := db.QueryRowContext(t.Context(), `SELECT hex(body) FROM snapshot ORDER BY run DESC`).Scan(&snapshot); err != nil {
				t.Fatal(err)
			}
			if err := db.Close(); err != nil {
				t.Fatal(err)
			}
			const last = ` WHERE run = (SELECT max(id) FROM run)`
			s.change(t, flip("snapshot", "body", "run = (SELECT max(id) FROM run)"), `UPDATE run SET wake = 0 WHERE state = 'asleep' AND id = (SELECT max(id) FROM run)`)
			s.runs.Work()
			reason := s.until(t, parked, durable.Parked).Reason
			list, err := s.runs.List(t.Context(), "", 10)
			if err != nil || len(list) != 1 {
				t.Fatal(list, err)
			}
			for _, name := range []string{run, child} {
				got, err := s.runs.Get(t.Context(), name)
				r, failed := s.runs.Result(t.Context(), name)
				if err != nil || failed != nil {
					t.Fatal(err, failed)
				}
				for _, b := range []*durable.Blocked{got.Blocked, r.Blocked, list[0].Blocked} {
					if b == nil || b.Run != parked || b.Reason != reason || reason == "" {
						t.Errorf("%s is blocked by %+v; %s is parked: %s", name, b, parked, reason)
					}
				}
			}
			want := durable.Done
			switch how {
			case "retried":
				s.change(t, `UPDATE snapshot SET body = x'`+snapshot+`'`+last)
				s.set(2 * time.Hour)
				s.runs.Work()
				if ok, err := s.runs.Retry(t.Context(), parked); err != nil || !ok {
					t.Fatal(ok, err)
				}
			case "ended":
				want = durable.Cancelled
				if ok, err := s.runs.Cancel(t.Context(), run); err != nil || !ok {
					t.Fatal(ok, err)
				}
			default:
				want = durable.Failed
				if ok, err := s.runs.Cancel(t.Context(), parked); err != nil || !ok {
					t.Fatal(ok, err)
				}
			}
			r, err := s.runs.Wait(t.Context(), run)
			if err != nil || r.State != want || r.Blocked != nil {
				t.Errorf("%s is %s, blocked by %+v: %s %v", run, r.State, r.Blocked, r.Outcome, err)
			}
			if n := s.count(t, `SELECT count(*) FROM run WHERE state NOT IN ('done', 'failed', 'cancelled')`); n != 0 {
				t.Errorf("%d runs have not ended", n)
			}
		})
	}
}

// TestRunsBelowThemselves lists runs of a file in which somebody made two of them each other's callers.
func TestRunsBelowThemselves(t *testing.T) {
	s, spec := newFamily(t)
	run, other := s.start(t, spec, `{}`), s.start(t, spec, `{}`)
	s.change(t, `UPDATE run SET parent = 3 - id, root = 1`)
	for _, name := range []string{run, other} {
		if r, err := s.runs.Get(t.Context(), name); err != nil || r.Blocked != nil {
			t.Errorf("got %+v, %v", r.Blocked, err)
		}
	}
	s.change(t, `UPDATE run SET state = 'parked' WHERE id = 2`)
	if r, err := s.runs.Get(t.Context(), run); err != nil || r.Blocked == nil || r.Blocked.Run != other {
		t.Errorf("got %+v, %v", r.Blocked, err)
	}
}
