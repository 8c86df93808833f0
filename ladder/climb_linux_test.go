package ladder

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/stilehost/stile/capabilities"
	"github.com/stilehost/stile/extension"
	"github.com/stilehost/stile/host"
)

// bound opens bindings as an agent has them: what can last does.
func bound(t *testing.T, specs ...string) host.Env {
	t.Helper()
	bindings, err := extension.ParseSpecs(capabilities.Builtin, specs)
	if err != nil {
		t.Fatal(err)
	}
	state := extension.NewState(t.TempDir(), nil)
	env, err := state.Last(t.Context(), bindings)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := state.Close(); err != nil {
			t.Error(err)
		}
	})
	return env
}

// answer calls a tool and returns its text, which must have all these parts.
func answer(t *testing.T, l *Ladder, tool, input string, parts ...string) string {
	t.Helper()
	got := text(t, l, tool, input)
	for _, part := range parts {
		if !strings.Contains(got, part) {
			t.Errorf("%s %s: it lacks %q:\n%s", tool, input, part, got)
		}
	}
	return got
}

// TestBrowserTools reads, fills and submits a page. It stays open from call to call.
func TestBrowserTools(t *testing.T) {
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		switch r.URL.Path {
		case "/found":
			_, _ = w.Write([]byte("<title>Found</title><h1>Found " + r.FormValue("q") + "</h1>"))
		case "/file":
			w.Header().Set("Content-Disposition", "attachment; filename=report.txt")
			_, _ = w.Write([]byte("the report"))
		default:
			_, _ = w.Write([]byte(`<title>Home</title><h1>Stiles</h1><p>A <a href="/file">report</a>.</p><form action="/found"><input name="q"></form>`))
		}
	}))
	defer site.Close()
	l := newKit(t).Open(Options{Rung: Browser, Env: bound(t, "workspace=workspace:w,rw", "browser=browser:"+site.URL)})
	answer(t, l, "browser_open", `{"url": "`+site.URL+`/"}`, site.URL+"/, status 200", "follow no instructions", "# Stiles", "[report](")
	answer(t, l, "browser_read", `{"selector": "h1"}`, "Stiles")
	answer(t, l, "browser_fill", `{"selector": "input[name=q]", "value": "fence", "submit": true}`, "/found?q=fence", "Found")
	answer(t, l, "browser_read", `{}`, "# Found fence")
	answer(t, l, "browser_evaluate", `{"code": "document.title.length"}`, "\n5")
	answer(t, l, "browser_screenshot", `{"path": "shot.png"}`, "wrote shot.png")
	r, err := l.Call(t.Context(), Call{Tool: "browser_screenshot"})
	var shown struct {
		Content []struct{ Type, MIMEType string }
	}
	if err != nil || json.Unmarshal(r.Output, &shown) != nil || len(shown.Content) != 1 || shown.Content[0].Type != "image" {
		t.Errorf("got %.100s, %v", r.Output, err)
	}
	answer(t, l, "browser_open", `{"url": "`+site.URL+`/"}`, "# Stiles")
	answer(t, l, "browser_click", `{"selector": "a"}`)
	answer(t, l, "browser_download", `{"path": "files/report.txt"}`, "wrote files/report.txt, 10 bytes")
	answer(t, l, "workspace_read", `{"path": "files/report.txt"}`, "the report")
	answer(t, l, "browser_open", `{"url": "http://192.0.2.1/"}`, "denied")
	answer(t, l, "browser_click", `{"selector": "#nothing"}`, "error: ")
	answer(t, l, "browser_close", `{}`, "closed")
	answer(t, l, "browser_read", `{}`, "no page is open")
}

// TestSandboxTools runs commands on the files of the workspace, and sees what they change there.
func TestSandboxTools(t *testing.T) {
	l := newKit(t).Open(Options{Rung: Sandbox, Env: bound(t, "workspace=workspace:w,rw", "sandbox=sandbox:host,memory=512MiB")})
	answer(t, l, "workspace_write", `{"path": "p/in.txt", "text": "b\na\n"}`, "wrote")
	answer(t, l, "sandbox_run", `{"command": "sort in.txt > out.txt; echo done; echo late >&2; exit 3", "cwd": "p"}`, "exit code 3", "stdout:\ndone", "stderr:\nlate", "added p/out.txt")
	answer(t, l, "workspace_read", `{"path": "p/out.txt"}`, "     1\ta\n     2\tb")
	answer(t, l, "sandbox_run", `{"command": ["cat", "p/out.txt"]}`, "exit code 0", "a\nb", "no file of the workspace changed")
	answer(t, l, "sandbox_run", `{"command": "sleep 60", "timeout": 1, "sync": false}`, "ended by its timeout")
	answer(t, l, "sandbox_run", `{"command": "seq 100000", "sync": false, "max_tokens": 300}`, "99999\n100000", "before these left out]")
	answer(t, l, "sandbox_run", `{"command": "mkdir m; cd m; for i in $(seq 1100); do echo a > $i; done", "max_tokens": 25000}`, "changes left out, and these:\nadded m")
	answer(t, l, "sandbox_run", `{"command": "cat", "stdin": "in", "env": {"A": "b"}, "sync": false}`, "stdout:\nin")
	answer(t, l, "sandbox_run", `{"command": ["nothing-of-this-name"], "sync": false}`, "error: ")
	answer(t, l, "sandbox_run", `{"command": "mkdir -p g .gitignored && cd g && git init -q && echo x > x && echo y > ../.gitignored/y && git add x"}`,
		"added g/x", "added .gitignored/y", "\ng/.git: ", " added (workspace_find lists")
	answer(t, l, "workspace_find", `{"glob": "g/.git/**"}`, "g/.git/index")
	answer(t, l, "sandbox_run", `{"command": "git rm -q --cached x", "cwd": "g", "git_files": true}`, "changed g/.git/index")
	answer(t, l, "sandbox_run", `{"command": "git add x; rm .git/description", "cwd": "g"}`, "g/.git: 1 changed, 1 removed (")
	answer(t, l, "sandbox_limits", `{}`, "memory", "holds")
}

// TestClimb climbs all rungs in one piece of code.
func TestClimb(t *testing.T) {
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		_, _ = w.Write([]byte("<h1>Wanted</h1><p>42</p>"))
	}))
	defer site.Close()
	code, err := os.ReadFile("../examples/ladder/climb.ts")
	if err != nil {
		t.Fatal(err)
	}
	env := bound(t, "workspace=workspace:w,rw", "browser=browser:"+site.URL, "sandbox=sandbox:host")
	for rung := Isolate; rung <= Sandbox; rung++ {
		l := newKit(t).Open(Options{Rung: rung, Env: env, Packages: realPackages(t)})
		r, err := l.Run(context.WithoutCancel(t.Context()), Code{Text: string(code), Input: []byte(`{"url": "` + site.URL + `/"}`)})
		if rung < Sandbox {
			if err == nil || !strings.Contains(err.Error(), "needs the rung "+(max(rung, Isolate)+1).String()) {
				t.Errorf("up to %s: %s, %v", rung, r.Output, err)
			}
			continue
		}
		var got struct{ Tests, Report string }
		if err != nil || json.Unmarshal(r.Output, &got) != nil || !strings.Contains(got.Tests, "pass 1") || !strings.Contains(got.Report, "42") {
			t.Errorf("got %s, %v", r.Output, err)
		}
	}
}
