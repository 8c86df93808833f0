package lifecycle

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stilehost/stile/extension"
	"github.com/stilehost/stile/extension/policy"
	"github.com/stilehost/stile/host"
)

// If a person revoked or denied a version, no policy approves it when it is written again.
func TestPolicyDoesNotOverruleAPerson(t *testing.T) {
	h := newHome(t)
	h.policyOf(`{"updates": "same"}`)
	m := h.open()
	write(t, m, draft("answer", "1", ""))
	if _, err := m.Revoke(t.Context(), own, "answer", person); err != nil {
		t.Fatal(err)
	}
	for _, value := range []string{"1", "2"} {
		if w := write(t, m, draft("answer", value, "")); w.Release.State != Pending {
			t.Errorf("%s after it was revoked: it is %s", value, w.Release.State)
		}
	}
	approve(t, m, write(t, m, draft("answer", "2", "")).Release)
	if w := write(t, m, draft("answer", "3", "")); w.Release.State != Active {
		t.Errorf("an update after a person approved one is %s", w.Release.State)
	}

	no := write(t, m, draft("notes", "1", `{"kv": true}`)).Release
	d := person
	d.Release, d.Digest = no.ID, no.Digest
	if _, err := m.Deny(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	approve(t, m, write(t, m, draft("notes", "2", `{"kv": true}`)).Release)
	if w := write(t, m, draft("notes", "1", `{"kv": true}`)); w.Release.State != Pending {
		t.Errorf("what was denied is %s", w.Release.State)
	}
}

// An update needs no person only if its author owns the scope.
func TestUpdateByAnotherAuthor(t *testing.T) {
	h := newHome(t)
	h.policyOf(`{"updates": "same"}`)
	m := h.open()
	for _, scope := range []extension.Scope{{Kind: extension.Shared}, {Kind: extension.User, Owner: "tom"}, {Kind: extension.Agent, Owner: "b"}} {
		d := draft("notes", "1", `{"kv": true}`)
		d.Scope, d.Author = scope, "user:tom"
		approve(t, m, write(t, m, d).Release)
		d = draft("notes", "2", `{"kv": true}`)
		d.Scope = scope
		if w := write(t, m, d); w.Release.State != Pending || len(w.Changes) != 0 {
			t.Errorf("%s: an update by agent:a is %s, %v", scope, w.Release.State, w.Changes)
		}
	}
}

// A version that is revoked during the build of an update is no reason to approve the update.
func TestRevokeDuringWrite(t *testing.T) {
	h := newHome(t)
	h.policyOf(`{"updates": "same"}`)
	m := h.open()
	approve(t, m, write(t, m, draft("notes", "1", `{"kv": true}`)).Release)
	d := draft("notes", "2", `{"kv": true}`)
	d.Progress = func(s extension.Stage) {
		if s == extension.StagePolicy {
			if _, err := m.Remove(t.Context(), own, "notes", person); err != nil {
				t.Error(err)
			}
		}
		if s != extension.StageValidate {
			d.Files["tool.ts"][0] = '?' // changes of the caller's bytes have no effect either
		}
	}
	if w := write(t, m, d); w.Release.State != Pending || len(w.Changes) != 1 || w.Version.Files["tool.ts"][0] != 'i' {
		t.Errorf("it is %s, %v, %.20s", w.Release.State, w.Changes, w.Version.Files["tool.ts"])
	}
	if entries, _, err := m.VerifyAudit(t.Context()); err != nil || entries == 0 {
		t.Errorf("got %d, %v", entries, err)
	}
}

// Once a draft is committed, it succeeds even if its author has disconnected.
func TestCancelAfterCommit(t *testing.T) {
	h := newHome(t)
	m, other := h.open(), h.open()
	ctx, cancel := context.WithCancel(t.Context())
	m.reloading.Lock()
	done := make(chan error, 1)
	go func() {
		_, err := m.Write(ctx, draft("answer", "1", ""))
		done <- err
	}()
	eventually(t, other, "it is committed", func() bool { return len(offered(t, other, agent)) == 1 })
	cancel()
	m.reloading.Unlock()
	if err := <-done; err != nil {
		t.Error(err)
	}
	says(t, m, "answer_get", "1")
}

// A restored version requires that its names are free, and follows the current policy.
func TestRollbackChecks(t *testing.T) {
	h := newHome(t)
	m := h.open()
	source := func(name string) string {
		return fmt.Sprintf(`import { extension } from "stile";
export default extension({ tools: { %s: { description: "d", input: { type: "object" }, run: () => 1 } } });`, name)
	}
	before := write(t, m, tool("a-b", "c", source("c"), ""))
	write(t, m, tool("a-b", "d", source("d"), ""))
	write(t, m, tool("a", "b_c", source("b_c"), ""))
	if _, err := m.Rollback(t.Context(), own, "a-b", before.Version.Digest, person); err == nil || !strings.Contains(err.Error(), "a_b_c") {
		t.Errorf("got %v", err)
	}
	notes := write(t, m, draft("notes", "1", `{"kv": true}`))
	approve(t, m, notes.Release)
	write(t, m, draft("notes", "2", ""))
	h.policyOf(`{"ceiling": {"permissions": {"workspace": "read"}}}`)
	if _, err := h.open().Rollback(t.Context(), own, "notes", notes.Version.Digest, person); !errors.As(err, new(*PolicyError)) {
		t.Errorf("got %v", err)
	}
}

func TestPromoteIsWider(t *testing.T) {
	m := newHome(t).open()
	write(t, m, draft("answer", "1", ""))
	for _, to := range []extension.Scope{own, {Kind: extension.Agent, Owner: "b"}, {}} {
		if r, err := m.Promote(t.Context(), own, to, "answer", "agent:a", "test"); err == nil {
			t.Errorf("%v: got %+v", to, r)
		}
	}
	if _, err := m.Promote(t.Context(), own, extension.Scope{Kind: extension.Shared}, "answer", "agent:a\nuser:tom", "test"); err == nil {
		t.Error("the author can be anything")
	}
	d := draft("other", "1", "")
	d.Scope = extension.Scope{Kind: extension.Agent, Owner: "../b"}
	if _, err := m.Write(t.Context(), d); !errors.As(err, new(*extension.ScopeError)) {
		t.Errorf("got %v", err)
	}
}

// No stored text can imitate other output when it is printed.
func TestPrintable(t *testing.T) {
	m := newHome(t).open()
	const hostile = "no\x1b[2J\n9 approve user:tom \u202e"
	write(t, m, draft("answer", "1", ""))
	if _, err := m.Call(t.Context(), Call{Viewer: Viewer{Agent: "a", User: hostile}, Tool: "answer_get"}); err != nil {
		t.Fatal(err)
	}
	_, _ = m.Call(t.Context(), Call{Viewer: Viewer{User: hostile}, Tool: hostile})
	r, err := m.Revoke(t.Context(), own, "answer", Decision{By: hostile, Via: "elicitation:" + hostile, Reason: hostile + strings.Repeat("x", 1<<16)})
	if err != nil {
		t.Fatal(err)
	}
	_, notFound := m.History(t.Context(), own, hostile)
	_, noVersion := m.Version(t.Context(), strings.Repeat("0", 64))
	if !errors.As(noVersion, new(*NotFoundError)) {
		t.Errorf("got %v", noVersion)
	}
	texts := []string{r.Reason, r.By, notFound.Error(), noVersion.Error(), cut("a\nb\tc")}
	entries, err := m.Audit(t.Context(), 100)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		texts = append(texts, e.By, e.Via, e.Reason)
	}
	for _, text := range texts {
		if strings.ContainsAny(text, "\x1b\n\t\u202e") || len(text) > 2000 {
			t.Errorf("got %.200q", text)
		}
	}
}

// A reviewer sees every file, and all of it.
func TestReviewHidesNothing(t *testing.T) {
	m := newHome(t).open()
	d := draft("notes", "1", `{"kv": true}`)
	d.Files["tool.ts"] = append(d.Files["tool.ts"], "\n// \xff\nfunction unseen() {}\n"...)
	d.Files["manifest.json"] = []byte(`{"code": "one"}`)
	d.Files["packages"] = []byte("two")
	d.Entry = "tool.ts"
	review, err := m.Review(t.Context(), write(t, m, d).Release.ID)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"+function unseen", `+// \xff`, `+{"code": "one"}`, "+two", `+{"name": "notes"`} {
		if !strings.Contains(review.Code, want) {
			t.Errorf("it does not show %q: %s", want, review.Code)
		}
	}
	for _, name := range []string{"a.ts\n+++ b/tool.ts", "a\x1b[2J.ts", "a\u202e.ts", "\xff.ts"} {
		d := draft("notes", "1", "")
		d.Files[name], d.Entry = nil, "tool.ts"
		if _, err := m.Write(t.Context(), d); !errors.As(err, new(*extension.ProblemsError)) {
			t.Errorf("%q: got %v", name, err)
		}
	}
}

// Concurrent drafts do not bypass the budget, and a clock that ran ahead does not use it up.
func TestBudgetAtOnce(t *testing.T) {
	h := newHome(t)
	h.policyOf(`{"limits": {"buildsPerHour": 2}}`)
	now := time.Now()
	h.options.Now = func() time.Time { return now.Add(24 * time.Hour) }
	m := h.open()
	write(t, m, draft("early", "1", ""))
	write(t, m, draft("early", "2", ""))
	if err := m.Close(); err != nil {
		t.Fatal(err)
	}
	h.options.Now = func() time.Time { return now }
	m = h.open()
	var wait sync.WaitGroup
	var mu sync.Mutex
	written := 0
	for i := range 6 {
		wait.Go(func() {
			if _, err := m.Write(t.Context(), draft("answer", fmt.Sprint(i), "")); err == nil {
				mu.Lock()
				defer mu.Unlock()
				written++
			} else if !errors.As(err, new(*BudgetError)) {
				t.Error(err)
			}
		})
	}
	wait.Wait()
	if written == 0 || written > 2 {
		t.Errorf("%d are written", written)
	}
}

// Tools of others do not displace those that a viewer sees, and a search finds only callable tools.
func TestSearchOfMany(t *testing.T) {
	m := newHome(t).open()
	write(t, m, draft("weather", "1", ""))
	alter(t, m, `WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 300)
		INSERT INTO release (scope, name, digest, state, author, asked) SELECT 'agent:b', 'weather' || i, digest, 'active', author, asked FROM release, n`)
	alter(t, m, "UPDATE head SET generation = random()")
	if found, err := m.Search(t.Context(), agent, "weather", 5); err != nil || len(found) != 1 || found[0].Scope != own {
		t.Errorf("got %v, %v", found, err)
	}
	for _, query := range []string{"½", "² OR weather", `"`, "weather*", "NEAR(weather)", "full_name:weather", "\x00", strings.Repeat("weather ", 10000), "ª", "٣"} {
		if _, err := m.Search(t.Context(), agent, query, 5); err != nil {
			t.Errorf("%.20q: %v", query, err)
		}
	}
	alter(t, m, "UPDATE release SET quarantine = 'broken' WHERE scope = 'agent:a'")
	if found, err := m.Search(t.Context(), agent, "weather", 5); err != nil || len(found) != 0 {
		t.Errorf("got %v, %v", found, err)
	}
}

// A list does not read the source.
func TestListWithoutSource(t *testing.T) {
	m := newHome(t).open()
	write(t, m, draft("answer", "1", ""))
	alter(t, m, "DELETE FROM object WHERE digest = (SELECT record->'files'->>'tool.ts' FROM version)")
	if list, err := m.List(t.Context(), agent); err != nil || len(list) != 1 || list[0].Problem != "" || len(list[0].Tools) != 1 {
		t.Errorf("got %+v, %v", list, err)
	}
}

// A caller that waits for a component that another caller loads does not get that caller's reasons for giving up.
func TestLoadGivenUp(t *testing.T) {
	s := newLoadedSet(1, 1)
	ctx, cancel := context.WithCancelCause(t.Context())
	begun, ended := make(chan struct{}), make(chan error, 2)
	go func() {
		_, _, err := s.get(ctx, "", "x", func(*host.Component) (*host.Component, int64, error) {
			close(begun)
			<-ctx.Done()
			return nil, 0, context.Cause(ctx)
		})
		ended <- err
	}()
	<-begun
	second := make(chan error, 1)
	go func() {
		_, done, err := s.get(t.Context(), "", "x", func(*host.Component) (*host.Component, int64, error) { return nil, 0, nil })
		if err == nil {
			done()
		}
		second <- err
	}()
	for users := 1; users < 2; {
		s.mu.Lock()
		users = s.all["x"].users
		s.mu.Unlock()
	}
	cancel(&RevokedError{Extension: "another"})
	if err := <-ended; !errors.As(err, new(*RevokedError)) {
		t.Errorf("got %v", err)
	}
	if err := <-second; err != nil {
		t.Errorf("got %v", err)
	}
}

// Every build counts, also one that its author cancels, but not one of what is active already. A draft above the limit is not built.
func TestBudgetCountsEveryBuild(t *testing.T) {
	h := newHome(t)
	h.policyOf(`{"limits": {"buildsPerHour": 3, "extensionsPerScope": 2}}`)
	m := h.open()
	write(t, m, draft("answer", "1", ""))
	write(t, m, draft("answer", "1", ""))
	write(t, m, draft("answer", "1", ""))
	write(t, m, draft("notes", "1", `{"kv": true}`))
	ctx, cancel := context.WithCancel(t.Context())
	d := draft("answer", "2", "")
	d.Progress = func(s extension.Stage) {
		if s == extension.StageTest {
			cancel()
		}
	}
	if _, err := m.Write(ctx, d); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if _, err := m.Write(t.Context(), draft("answer", "3", "")); !errors.As(err, new(*BudgetError)) {
		t.Errorf("there is a fourth build: %v", err)
	}

	h.policyOf(`{"limits": {"extensionsPerScope": 2}}`)
	d = draft("other", "1", "")
	d.Progress = func(s extension.Stage) {
		if s == extension.StageBundle {
			t.Error("it is built, and there is no room")
		}
	}
	if _, err := h.open().Write(t.Context(), d); !errors.As(err, new(*BudgetError)) {
		t.Errorf("got %v", err)
	}
}

// One author's request does not replace another's: a person decides each of them.
func TestRequestsOfTwoAuthors(t *testing.T) {
	m := newHome(t).open()
	shared := extension.Scope{Kind: extension.Shared}
	ask := func(author, value string) Release {
		t.Helper()
		d := draft("notes", value, `{"kv": true}`)
		d.Scope, d.Author = shared, author
		return write(t, m, d).Release
	}
	first, other := ask("agent:a", "1"), ask("agent:b", "2")
	again := ask("agent:b", "3")
	for id, want := range map[int64]State{first.ID: Pending, other.ID: Withdrawn, again.ID: Pending} {
		if r, err := m.Release(t.Context(), id); err != nil || r.State != want {
			t.Errorf("request %d is %s, %v; want %s", id, r.State, err, want)
		}
	}
	same := ask("agent:c", "1")
	if v, err := m.Version(t.Context(), same.Digest); err != nil || same.Digest != first.Digest || same.ID == first.ID || v.Author != "agent:a" {
		t.Errorf("the same of another author is %+v, %v", same, err)
	}
	if all, err := m.Pending(t.Context()); err != nil || len(all) != 3 {
		t.Errorf("got %+v, %v", all, err)
	}
	for v, want := range map[Viewer]int64{{Person: true}: same.ID, agent: first.ID, {Agent: "b"}: again.ID, {User: "tom", Agent: "d"}: 0} {
		switch list, err := m.List(t.Context(), v); {
		case err != nil || (len(list) == 1) != (want > 0):
			t.Errorf("%v sees %+v, %v", v, list, err)
		case want > 0 && list[0].Pending.ID != want:
			t.Errorf("%v sees request %d, want %d", v, list[0].Pending.ID, want)
		}
	}
	approve(t, m, first)
	says(t, m, "notes_get", "1")
	if r, err := m.Revoke(t.Context(), shared, "notes", person); err != nil || r.ID != first.ID {
		t.Errorf("got %+v, %v", r, err)
	}
	if all, err := m.Pending(t.Context()); err != nil || len(all) != 0 {
		t.Errorf("got %+v, %v", all, err)
	}
	kinds := map[string]int{}
	entries, err := m.Audit(t.Context(), 100)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		kinds[e.Kind]++
	}
	delete(kinds, "call")
	if want := map[string]int{"write": 4, "withdraw": 1, "approve": 1, "revoke": 1, "deny": 2}; !maps.Equal(want, kinds) {
		t.Errorf("the audit log has %v, want %v", kinds, want)
	}
}

// A policy change while calls run takes effect at once, for requests and for the handles of running calls.
func TestSetPolicy(t *testing.T) {
	h := newHome(t)
	h.policyOf(`{"approve": [{"permissions": {"kv": true}}]}`)
	m := h.open()
	d := tool("notes", "get,wait", `import { extension } from "stile";
export default extension({ tools: {
	get: { description: "Gets", input: { type: "object" }, run: async (_, env) => (await env.kv.get("k")) ?? "none" },
	wait: { description: "Waits", input: { type: "object" }, run: async (_, env) => {
		console.log("begun");
		for (;;) { await env.kv.get("k"); await new Promise((r) => setTimeout(r, 1)); }
	} },
} });`, `{"kv": true}`)
	if w := write(t, m, d); w.Release.State != Active {
		t.Fatalf("it is %s", w.Release.State)
	}
	says(t, m, "notes_get", `"none"`)
	ended := begins(t, m, t.Context(), "notes_wait")
	set := func(text string) {
		t.Helper()
		p, err := policy.Parse([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		m.SetPolicy(p)
	}
	set(`{"ceiling": {"permissions": {"workspace": "read"}}}`)
	if err := <-ended; err == nil || !strings.Contains(err.Error(), "policy") {
		t.Errorf("the call under way ended with %v", err)
	}
	if r, err := m.Call(t.Context(), Call{Viewer: agent, Tool: "notes_get"}); err == nil {
		t.Errorf("got %s in spite of the ceiling", r.Output)
	}
	if _, err := m.Write(t.Context(), draft("other", "1", `{"kv": true}`)); !errors.As(err, new(*extension.ProblemsError)) {
		t.Errorf("got %v", err)
	}
	set(`{}`)
	says(t, m, "notes_get", `"none"`)
	if w := write(t, m, draft("other", "1", `{"kv": true}`)); w.Release.State != Pending {
		t.Errorf("it is %s", w.Release.State)
	}
}

// A stricter policy reaches the handles of running calls: those of a superseded version, and those of a version whose host has another
// address now. Handles that the policy still allows stay.
func TestSetPolicyUnderWay(t *testing.T) {
	const approve = `"approve": [{"permissions": {"kv": true, "network": ["api.example.test"]}}], "updates": "same"`
	source := func(what string) string {
		return fmt.Sprintf(`import { extension } from "stile";
export default extension({ tools: { wait: { description: "Waits", input: { type: "object" }, run: async (_, env) => {
	console.log("begun");
	for (;;) { %s; await new Promise((r) => setTimeout(r, 1)); }
} } } });`, what)
	}
	for _, test := range []struct {
		name, permissions, what, before, after string
		update, stays                          bool
	}{
		{"superseded", `{"kv": true}`, `await env.kv.get("k")`, "", `, "ceiling": {"permissions": {"workspace": "read"}}`, true, false},
		{"address", `{"network": ["api.example.test"]}`, `env.network`, `, "hosts": {"api.example.test": "127.0.0.1"}`, ``, false, false},
		{"address of another's", `{"kv": true}`, `await env.kv.get("k")`, `, "hosts": {"api.example.test": "127.0.0.1"}`, ``, false, true},
		{"limits", `{"kv": true}`, `await env.kv.get("k")`, ``, `, "limits": {"nesting": 2}`, false, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			h := newHome(t)
			h.policyOf("{" + approve + test.before + "}")
			m := h.open()
			write(t, m, tool("notes", "wait", source(test.what), test.permissions))
			ended := begins(t, m, t.Context(), "notes_wait")
			m.mu.RLock()
			var held []*host.Grant
			for _, a := range m.releases {
				held = append(held, a.grants...)
			}
			m.mu.RUnlock()
			if test.update {
				if w := write(t, m, tool("notes", "wait", source(test.what)+"// 2", test.permissions)); w.Release.State != Active {
					t.Fatalf("it is %s", w.Release.State)
				}
			}
			p, err := policy.Parse([]byte("{" + approve + test.after + "}"))
			if err != nil {
				t.Fatal(err)
			}
			m.SetPolicy(p)
			for _, g := range held {
				if revoked := g.Usage().Ended != nil; revoked == test.stays {
					t.Errorf("%s is revoked: %v", g.Interface(), revoked)
				}
			}
			if _, err := m.Revoke(t.Context(), own, "notes", person); err != nil {
				t.Fatal(err)
			}
			if err := <-ended; err == nil {
				t.Error("it ended well")
			}
		})
	}
}

// No policy approves what a person revoked, in whatever order the versions were requested and approved.
func TestRevokedInAnotherOrder(t *testing.T) {
	m := newHome(t).open()
	ask := func(author, value string) Release {
		t.Helper()
		d := draft("notes", value, `{"network": ["example.com"]}`)
		d.Author = author
		return write(t, m, d).Release
	}
	first, second := ask("agent:a", "1"), ask("agent:b", "2")
	approve(t, m, second)
	approve(t, m, first)
	if r, err := m.Revoke(t.Context(), own, "notes", person); err != nil || r.ID != first.ID {
		t.Fatalf("got %+v, %v", r, err)
	}
	if r := write(t, m, draft("notes", "3", "")).Release; r.State != Pending {
		t.Errorf("it is %s by %s %s", r.State, r.By, r.Line)
	}
}

// A waiting request reserves its names only against its own author, and a refusal tells the author nothing new. The first approved gets them.
func TestNamesOfRequests(t *testing.T) {
	m := newHome(t).open()
	own := func(name string) extension.Scope { return extension.Scope{Kind: extension.Agent, Owner: name} }
	of := func(author, name, tool, permissions string) Draft {
		d := draft(name, "1", permissions)
		d.Scope, d.Author = own(author), "agent:"+author
		d.Manifest = bytes.ReplaceAll(d.Manifest, []byte(`"get"`), []byte(`"`+tool+`"`))
		d.Files["tool.ts"] = bytes.ReplaceAll(d.Files["tool.ts"], []byte("get"), []byte(tool))
		return d
	}
	first := write(t, m, of("a", "notes-x", "get", `{"kv": true}`)).Release
	second := write(t, m, of("b", "notes", "x_get", `{"kv": true}`)).Release
	if first.State != Pending || second.State != Pending {
		t.Fatalf("got %+v, %+v", first, second)
	}
	refused := func(d Draft, want string) {
		t.Helper()
		if _, err := m.Write(t.Context(), d); !errors.As(err, new(*extension.ProblemsError)) || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
	refused(of("a", "notes", "x_get", ""), `of the extension "notes-x" is called already`)
	approve(t, m, first)
	d := Decision{Release: second.ID, Digest: second.Digest, By: "user:tom", Via: "terminal"}
	if _, err := m.Approve(t.Context(), d); !errors.As(err, new(*extension.ProblemsError)) || !strings.Contains(err.Error(), `of the extension "notes-x" is called already`) {
		t.Errorf("got %v", err)
	}
	refused(of("c", "notes", "x_get", ""), "of an extension in another scope is called already") // the name of another agent's extension is not revealed
	person := of("b", "notes", "x_get", "")
	person.Author = "user:tom"
	refused(person, `of the extension "notes-x" is called already`)

	// An agent can withdraw only its own requests.
	by := Decision{By: "agent:b", Via: "mcp"}
	person = draft("other", "1", `{"kv": true}`)
	person.Scope, person.Author = own("b"), "user:tom"
	waits := write(t, m, person).Release
	if _, err := m.Remove(t.Context(), own("b"), "other", by); !errors.As(err, new(*NotFoundError)) {
		t.Errorf("got %v", err)
	}
	if r, err := m.Release(t.Context(), waits.ID); err != nil || r.State != Pending {
		t.Errorf("got %+v, %v", r, err)
	}
	if r, err := m.Remove(t.Context(), own("b"), "notes", by); err != nil || r.ID != second.ID || r.State != Removed {
		t.Errorf("got %+v, %v", r, err)
	}
}
