package mcp

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/stilehost/stile/extension/lifecycle"
	"github.com/stilehost/stile/extension/policy"
	"github.com/stilehost/stile/internal/cache/cachetest"
	"github.com/stilehost/stile/toolchain/npm"
)

const asks = `const { approved } = await tools.person.approve({ question: "Delete 40 files?" }); return approved ? "deleted" : "left";`

// Code waits for a person: the one at the client if the policy trusts it, and otherwise whoever answers on the pages.
func TestCodeAsks(t *testing.T) {
	h := newHome(t, `{"persons": ["editor"]}`)
	answered := func(question string, approved bool) {
		t.Helper()
		for {
			all, changed := h.manager.Questions()
			for _, q := range all {
				if q.Of != alice.String() || !strings.Contains(q.Text, question) {
					t.Errorf("asked %+v", q)
				}
				if err := h.manager.Answer(t.Context(), q.ID, approved, "user:tom", lifecycle.ViaWeb); err != nil {
					t.Error(err)
				}
				if err := h.manager.Answer(t.Context(), q.ID, !approved, "user:tom", lifecycle.ViaWeb); err == nil {
					t.Error("a question is answered twice")
				}
				return
			}
			<-changed
		}
	}
	c := h.client()
	for approved, want := range map[bool]string{true: "deleted", false: "left"} {
		go answered("Delete 40 files?", approved)
		if got := does[codeOutput](c, "code_run", object{"code": asks}); got.Result != want {
			t.Errorf("got %v, want %s", got.Result, want)
		}
	}
	entries, err := h.manager.Audit(t.Context(), 2)
	if err != nil || len(entries) != 2 || entries[0].Kind != "answer" || entries[0].By != "user:tom" || !strings.Contains(entries[0].Reason, "Delete 40 files?") {
		t.Errorf("the log has %+v, %v", entries, err)
	}
	// A call that ends takes its question along.
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_, _ = c.CallTool(ctx, &sdk.CallToolParams{Name: "code_run", Arguments: object{"code": asks}})
	}()
	until := func(count int) {
		for {
			all, changed := h.manager.Questions()
			if len(all) == count {
				return
			}
			<-changed
		}
	}
	until(1)
	cancel()
	<-ended
	until(0)
	for action, want := range map[string]string{"accept": "deleted", "decline": "left", "cancel": "left"} {
		var said string
		editor := h.personAt("2025-06-18", alice, "editor", func(p *sdk.ElicitParams) *sdk.ElicitResult {
			said = p.Message
			return &sdk.ElicitResult{Action: action, Content: object{"approve": true}}
		})
		if got := does[codeOutput](editor, "code_run", object{"code": asks}); got.Result != want || !strings.Contains(said, "Delete 40 files?") {
			t.Errorf("%s: got %v, after %q", action, got.Result, said)
		}
	}
	for code, says := range map[string]string{
		`return tools.person.approve({});`:                                                                    "the input is not",
		`return tools.person.approve({ question: "x".repeat(5000) });`:                                        "the question has 5000 bytes",
		`return Promise.all(Array.from({ length: 17 }, () => tools.person.approve({ question: "again?" })));`: "too many questions wait",
	} {
		if r := c.tool("code_run", object{"code": code}); !strings.Contains(text(r), says) {
			t.Errorf("%s: got %s", code, text(r))
		}
	}
}

// A client that asks its person for code has as few questions at once as the pages, whatever sessions it has.
func TestQuestionsOfClients(t *testing.T) {
	h := newHome(t, `{"persons": ["editor"]}`)
	asked, answer := make(chan bool), make(chan bool)
	ask := func(*sdk.ElicitParams) *sdk.ElicitResult {
		asked <- true
		<-answer
		return &sdk.ElicitResult{Action: "accept", Content: object{"approve": true}}
	}
	const code = `const got = await Promise.allSettled(Array.from({ length: input }, () => tools.person.approve({ question: "again?" })));
return got.map((g) => g.value?.approved ? "yes" : /too many questions wait/.test(g.reason.message) ? "too many" : g.reason.message)[0];`
	run := func(c *client, n int) any {
		return does[codeOutput](c, "code_run", object{"code": code, "input": n}).Result
	}
	var wait sync.WaitGroup
	first := h.personAt("2025-06-18", alice, "editor", ask)
	wait.Go(func() {
		if got := run(first, 16); got != "yes" {
			t.Errorf("16 questions: %v", got)
		}
	})
	for range 16 {
		<-asked
	}
	if got := run(h.personAt("2025-06-18", alice, "editor", ask), 1); got != "too many" {
		t.Errorf("one more: %v", got)
	}
	close(answer)
	wait.Wait()
}

// A package that nobody has approved waits for a person. The policy can name it, and an answer holds for the next run.
func TestCodePackages(t *testing.T) {
	h := newHome(t, `{"ladder": [{"agents": ["low"], "rung": "isolate"}, {"rung": "npm"}], "persons": ["editor"], "packages": ["is-odd"]}`)
	cacheDir, keyDir := cachetest.Dirs(t)
	packages, err := npm.New(npm.Options{CacheDir: cacheDir, KeyDir: keyDir})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = packages.Close() })
	h.options.Packages = packages
	h.with(func(*Options) {})
	code := func(name string) object {
		return object{"code": fmt.Sprintf("import f from %q;\nreturn f(input);", name), "input": 3}
	}
	if got := does[codeOutput](h.client(), "code_run", code("is-odd")); got.Result != true {
		t.Errorf("got %v", got.Result)
	}
	low := h.person(lifecycle.Viewer{User: "tom", Agent: "low"}, "test", nil)
	if r := low.tool("code_run", code("is-odd")); !strings.Contains(text(r), "import of is-odd needs the rung npm (2)") {
		t.Errorf("got %s", text(r))
	}
	_, _, err = h.manager.CodePackages(alice, func(ctx context.Context, _ string, done func(bool, error)) error {
		if _, ends := ctx.Deadline(); !ends {
			t.Error("a question about packages waits for ever")
		}
		done(false, nil)
		return nil
	}).Resolve(t.Context(), []string{"is-even"})
	if !errors.As(err, new(*lifecycle.PackagesError)) {
		t.Errorf("got %v", err)
	}
	const line = `in policy.json, "packages": ["is-even"] would allow it`
	if _, _, err = h.manager.CodePackages(alice, nil).Resolve(t.Context(), []string{"is-even"}); err == nil || !strings.Contains(err.Error(), line) {
		t.Errorf("nobody to ask: %v", err)
	}
	asked, approve := 0, false
	editor := h.personAt("2025-06-18", alice, "editor", func(p *sdk.ElicitParams) *sdk.ElicitResult {
		asked++
		if !strings.Contains(p.Message, "is-even 1.0.0, MIT") || !strings.Contains(p.Message, "sha512-") {
			t.Errorf("asked %s", p.Message)
		}
		return &sdk.ElicitResult{Action: "accept", Content: object{"approve": approve}}
	})
	if r := editor.tool("code_run", code("is-even")); !strings.Contains(text(r), "is-even cannot be imported: a person said no") {
		t.Errorf("got %s", text(r))
	}
	approve = true
	for range 2 {
		if got := does[codeOutput](editor, "code_run", code("is-even")); got.Result != false {
			t.Errorf("got %v", got.Result)
		}
	}
	if asked != 2 {
		t.Errorf("asked %d times", asked)
	}
	// A new policy takes back what a person has allowed, also from code that runs.
	const ladders = `"ladder": [{"agents": ["low"], "rung": "isolate"}, {"rung": "npm", "permissions": {"workspace": "read-write"}}], "persons": ["editor"]`
	set := func(text string) {
		t.Helper()
		p, err := policy.Parse([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		h.manager.SetPolicy(p)
	}
	set(`{` + ladders + `, "packages": ["is-odd"], "limits": {"nesting": 7}}`)
	if got := does[codeOutput](editor, "code_run", code("is-even")); got.Result != false || asked != 3 {
		t.Errorf("got %v, after %d questions", got.Result, asked)
	}
	set(`{` + ladders + `, "packages": ["is-odd"], "limits": {"nesting": 7}}`) // the same one
	if got := does[codeOutput](editor, "code_run", code("is-even")); got.Result != false || asked != 3 {
		t.Errorf("got %v, after %d questions", got.Result, asked)
	}
	ended := make(chan string)
	for _, name := range []string{"is-odd", "is-even"} { // the policy names one, a person allows the other
		go func() {
			ended <- text(editor.tool("code_run", object{"code": fmt.Sprintf(
				"import f from %q;\nawait env.workspace.write(%[1]q, \"\"); for (;;) await new Promise((r) => setTimeout(r, 5));", name)}))
		}()
		for text(editor.tool("workspace_find", object{"glob": name})) != name {
			select {
			case said := <-ended:
				t.Fatal(said)
			default:
			}
		}
	}
	set(`{` + ladders + `}`)
	for range 2 {
		if said := <-ended; !strings.Contains(said, "cannot be imported: it was allowed when the code began, and is not any more") {
			t.Errorf("got %s", said)
		}
	}
	// Builds of packages count.
	set(`{` + ladders + `, "packages": ["*"], "limits": {"buildsPerHour": 1}}`)
	if r := editor.tool("code_run", object{"code": "import * as a from \"is-odd\";\nimport * as b from \"is-even\";\nreturn !a && !b;"}); !strings.Contains(text(r), "the limit of 1 builds an hour is reached") {
		t.Errorf("got %s", text(r))
	}
	if got := does[codeOutput](editor, "code_run", code("is-even")); got.Result != false { // which is built
		t.Errorf("got %v", got.Result)
	}
	if r := editor.tool("code_run", code("is-odd-that-nobody-has-published")); !strings.Contains(text(r), "is-odd-that-nobody-has-published") {
		t.Errorf("got %s", text(r))
	}
}
