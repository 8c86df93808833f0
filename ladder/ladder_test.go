package ladder

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/fstest"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/capabilities"
	"github.com/stilehost/stile/capabilities/workspace"
	"github.com/stilehost/stile/host"
	"github.com/stilehost/stile/internal/cache/cachetest"
	"github.com/stilehost/stile/toolchain"
	"github.com/stilehost/stile/toolchain/npm"
)

var update = flag.Bool("update", false, "rewrite definitions.json")

// What all tests of this package share.
var (
	hosted *host.Host
	built  *toolchain.Toolchain
	kit    *Kit
)

func TestMain(m *testing.M) {
	code := m.Run()
	if kit != nil {
		if err := errors.Join(kit.Close(), built.Close(), hosted.Close()); err != nil {
			panic(err)
		}
	}
	os.Exit(code)
}

// newKit makes the kit that all tests share.
func newKit(t *testing.T) *Kit {
	t.Helper()
	if kit != nil {
		return kit
	}
	o := host.Options{Wants: capabilities.Builtin.Wants}
	o.CacheDir, o.KeyDir = cachetest.Dirs(t)
	var err error
	if hosted, err = host.New(context.Background(), o); err != nil {
		t.Fatal(err)
	}
	if built, err = toolchain.New(context.Background(), hosted, toolchain.Options{CacheDir: o.CacheDir, KeyDir: o.KeyDir}); err != nil {
		t.Fatal(err)
	}
	kit = NewKit(KitOptions{Host: hosted, Toolchain: func(context.Context) (*toolchain.Toolchain, error) { return built, nil }})
	return kit
}

// TestDefinitions compares definitions.json with what the tools export.
func TestDefinitions(t *testing.T) {
	exported := map[string][]abi.Definition{}
	for _, s := range sets {
		c, err := newKit(t).component(t.Context(), s)
		if err != nil {
			t.Fatal(err)
		}
		if exported[s.name], err = c.Tools(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	text, err := json.MarshalIndent(exported, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	text = append(text, '\n')
	if *update {
		if err := os.WriteFile("definitions.json", text, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if string(text) != string(definitions) {
		t.Error("definitions.json differs from what the tools export; run go generate ./ladder")
	}
}

func directory(t *testing.T) *workspace.Directory {
	t.Helper()
	s, err := workspace.Open(t.Context(), filepath.Join(t.TempDir(), workspace.File), workspace.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s.Workspace("w")
}

// text calls a tool and returns its text, or the text of its error.
func text(t *testing.T, l *Ladder, tool, input string) string {
	t.Helper()
	r, err := l.Call(t.Context(), Call{Tool: tool, Input: []byte(input)})
	if failed, ok := errors.AsType[*host.GuestError](err); ok {
		return "error: " + failed.Failure.Message
	}
	if err != nil {
		return "error: " + err.Error()
	}
	var s string
	if err := json.Unmarshal(r.Output, &s); err != nil {
		t.Fatalf("%s returned %s", tool, r.Output)
	}
	return s
}

// TestWorkspace plays a session of a model. Each step is a tool, its input and what its answer has; <v> stands for the version that the
// answer before named last.
func TestWorkspace(t *testing.T) {
	onBoth(t, func(t *testing.T, d *workspace.Directory, disk bool) {
		l := newKit(t).Open(Options{Env: host.Env{"workspace": d}})
		version := ""
		for i, step := range []struct {
			tool, input string
			want        []string
			store       bool // only where there is a history
		}{
			{"list", `{}`, []string{"/ is empty"}, false},
			{"write", `{"path": "src/a.ts", "text": "one\ntwo\nthree\n"}`, []string{"wrote src/a.ts: 3 lines, 14 B, version "}, false},
			{"write", `{"path": "src/b.ts", "text": "", "version": "none"}`, []string{"0 lines, 0 B"}, false},
			{"write", `{"path": "src/b.ts", "text": "x", "version": "none"}`, []string{"error: src/b.ts exists, with version e3b0c44298fc; read it before"}, false},
			{"read", `{"path": "src/b.ts"}`, []string{"src/b.ts, version e3b0c44298fc, empty"}, false},
			{"list", `{"path": "src"}`, []string{"src:\n  a.ts  14 B\n  b.ts  0 B"}, false},
			{"list", `{"depth": 2}`, []string{"/:\n  src/\n    a.ts  14 B\n    b.ts  0 B"}, false},
			{"list", `{"path": "src/a.ts"}`, []string{"error: src/a.ts is not a directory"}, false},
			{"read", `{"path": "src/a.ts"}`, []string{"lines 1 to 3 of 3\n     1\tone\n     2\ttwo\n     3\tthree"}, false},
			{"read", `{"path": "src/a.ts", "from": 2, "lines": 1}`, []string{"lines 2 to 2 of 3\n     2\ttwo\n[continue with \"from\": 3]"}, false},
			{"read", `{"path": "src/a.ts", "from": 4}`, []string{"error: src/a.ts has 3 lines; from is 4"}, false},
			{"read", `{"path": "src"}`, []string{"error: src is a directory: workspace_list lists it"}, false},
			{"read", `{"path": "src/c.ts"}`, []string{"error: there is no src/c.ts; src has a.ts, b.ts"}, false},
			{"read", `{"path": "lib/deep/c.ts"}`, []string{"error: there is no lib/deep/c.ts; the workspace has src/"}, false},
			{"edit", `{"path": "src/a.ts", "edits": [{"old": "two", "new": "2"}, {"old": "three\n", "new": "3\n4\n"}]}`, []string{"edited src/a.ts: 2 replacements, version ", "     1\tone\n     2\t2\n     3\t3\n     4\t4"}, false},
			{"edit", `{"path": "src/a.ts", "edits": [{"old": "3", "new": "three"}], "version": "<v>"}`, []string{"1 replacement,"}, false},
			{"edit", `{"path": "src/a.ts", "edits": [{"old": "three", "new": "3"}], "version": "000000000000"}`, []string{"error: src/a.ts has changed since you read it", "read it again"}, false},
			{"edit", `{"path": "src/a.ts", "edits": [{"old": "  three\n", "new": "3"}]}`, []string{`error: edit 1: its old text is not in src/a.ts; line 3 is "three", so spaces`, "nothing was changed"}, false},
			{"edit", `{"path": "src/a.ts", "edits": [{"old": "\n", "new": ";"}]}`, []string{"error: edit 1: its old text occurs 4 times in src/a.ts, in lines 1, 2, 3, 4"}, false},
			{"edit", `{"path": "src/a.ts", "edits": [{"old": "one\n2", "new": ""}, {"old": "2\nthree", "new": ""}]}`, []string{"error: edits 1 and 2: their old texts overlap"}, false},
			{"edit", `{"path": "src/a.ts", "edits": [{"old": "\n", "new": "\r\n", "all": true}]}`, []string{"4 replacements"}, false},
			{"edit", `{"path": "src/a.ts", "edits": [{"old": "one", "new": "$& $1 \\1"}]}`, []string{"     1\t$& $1 \\1"}, false},
			{"edit", `{"path": "src", "edits": [{"old": "a", "new": "b"}]}`, []string{"error: src is a directory"}, false},
			{"grep", `{"pattern": "^th.*", "context": 1}`, []string{"src/a.ts-2- 2\nsrc/a.ts:3: three"}, false},
			{"grep", `{"pattern": "nothing"}`, []string{"no line matches nothing"}, false},
			{"grep", `{"pattern": "(?=a)"}`, []string{"error: ", "Perl syntax"}, false},
			{"find", `{"glob": "*.ts"}`, []string{"src/a.ts\nsrc/b.ts"}, false},
			{"find", `{"glob": "*.go"}`, []string{"no path matches *.go"}, false},
			{"diff", `{"path": "src/a.ts", "with": "src/b.ts"}`, []string{"--- a/src/a.ts", "+++ b/src/b.ts", "-4"}, false},
			{"diff", `{"path": "src/a.ts", "with": "src/a.ts"}`, []string{"no difference"}, false},
			{"diff", `{"path": "src/a.ts"}`, []string{"-one", "+$& $1"}, true},
			{"history", `{"path": "src/a.ts"}`, []string{"revision ", "14 B"}, true},
			{"restore", `{"path": "src/a.ts"}`, []string{"restored src/a.ts to revision "}, true},
			{"copy", `{"from": "src", "to": "copy"}`, []string{"copied src to copy"}, false},
			{"move", `{"from": "copy/a.ts", "to": "moved.ts"}`, []string{"moved copy/a.ts to moved.ts"}, false},
			{"move", `{"from": "nothing", "to": "x"}`, []string{"error: there is no nothing; the workspace has copy/, moved.ts, src/"}, false},
			{"delete", `{"path": "src"}`, []string{"error: src is a directory that is not empty: set \"recursive\""}, false},
			{"delete", `{"path": "src", "recursive": true}`, []string{"deleted src"}, false},
			{"restore", `{"path": "src/a.ts"}`, []string{"restored src/a.ts"}, true},
			{"read", `{"path": "../x"}`, []string{"error: ", "denied"}, false},
			{"read", `{"path": "a", "file": 1}`, []string{"error: ", "file"}, false},
		} {
			if step.store && disk {
				continue
			}
			got := text(t, l, "workspace_"+step.tool, strings.ReplaceAll(step.input, "<v>", version))
			for _, want := range step.want {
				if !strings.Contains(got, want) {
					t.Errorf("step %d, %s %s: got\n%s\nwant %q", i, step.tool, step.input, got, want)
				}
			}
			if _, after, ok := strings.Cut(got, "version "); ok && len(after) >= 12 {
				version = after[:12]
			}
		}
	})
}

// onBoth runs a test on a workspace and on a directory of the machine.
func onBoth(t *testing.T, test func(t *testing.T, d *workspace.Directory, disk bool)) {
	t.Run("store", func(t *testing.T) { test(t, directory(t), false) })
	t.Run("disk", func(t *testing.T) {
		disk, err := workspace.OpenDisk(t.TempDir(), workspace.DiskOptions{})
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = disk.Close() }()
		test(t, disk.Directory(), true)
	})
}

// TestAnswersAreCut checks that answers stay in their budget, are valid text, say what is left out, and that nothing is lost between
// them.
func TestAnswersAreCut(t *testing.T) {
	d := directory(t)
	l := newKit(t).Open(Options{Env: host.Env{"workspace": d}})
	write := func(path, text string) {
		t.Helper()
		if err := d.Write(t.Context(), path, text); err != nil {
			t.Fatal(err)
		}
	}
	var lines strings.Builder
	for i := range 3000 {
		fmt.Fprintf(&lines, "line %d of \U0001f409 dragons, in a file of many lines\n", i+1)
	}
	for i := range 700 {
		name := fmt.Sprintf("many/%s-%03d.txt", strings.Repeat("long", i%20), i)
		write(name, "a needle\n")
	}
	write("lines.md", lines.String())
	write("wide.md", strings.Repeat("\U0001f409", 9000))
	write("huge.md", strings.Repeat(lines.String(), 35))

	whole := func(tool, base, again string) (all string, calls int) {
		t.Helper()
		input := `{"max_tokens": 300, ` + base + `}`
		for calls = 1; ; calls++ {
			got := text(t, l, tool, input)
			if budget := 300 * 4; len(got) > 2*budget { // characters of four bytes count as one token each
				t.Fatalf("%s answered %d bytes:\n%s", input, len(got), got)
			}
			body, rest, more := strings.Cut(got, "\n["+again)
			all += body + "\n"
			if !more {
				return all, calls
			}
			rest, _, _ = strings.Cut(rest, "]")
			rest = rest[strings.Index(rest, `"`):]
			input = `{"max_tokens": 300, ` + base + `, ` + rest + `}`
			if calls > 2000 {
				t.Fatal("it does not end")
			}
		}
	}
	got, calls := whole("workspace_find", `"glob": "*.txt"`, "there may be more: ")
	found := strings.Split(strings.TrimSpace(got), "\n")
	seen := map[string]bool{}
	for _, path := range found {
		seen[path] = true
	}
	if len(found) != 700 || len(seen) != 700 || calls < 10 {
		t.Errorf("found %d paths, %d different, in %d calls", len(found), len(seen), calls)
	}
	got, _ = whole("workspace_grep", `"pattern": "needle"`, "there may be more: ")
	if n := strings.Count(got, ":1: a needle"); n != 700 {
		t.Errorf("%d matches, want 700", n)
	}
	got, calls = whole("workspace_read", `"path": "lines.md"`, "continue with ")
	for i := range 3000 {
		if want := fmt.Sprintf("%6d\tline %d of", i+1, i+1); strings.Count(got, want+" ") != 1 {
			t.Fatalf("%q is there %d times in %d calls", want, strings.Count(got, want), calls)
		}
	}
	if got := text(t, l, "workspace_read", `{"path": "wide.md", "max_tokens": 25000}`); !strings.Contains(got, `[... 16000 more characters in this line: "from": 1, "column": 2001]`) || strings.Contains(got, "\ufffd") {
		t.Errorf("got %.300s", got[len(got)-300:])
	}
	// The rest of a line, in pieces. Each character here has two columns.
	write("line.json", "[\n"+strings.Repeat("ab\U0001f409", 3000)+"\n]\n")
	input, line, calls := `"from": 2, "column": 1`, "", 0
	for ; strings.Contains(input, "column"); calls++ {
		got := text(t, l, "workspace_read", `{"path": "line.json", "max_tokens": 1000, `+input+`}`)
		head, rest, _ := strings.Cut(got, "\n     2\t")
		piece, next, more := strings.Cut(rest, "\n[continue with ")
		if !strings.HasPrefix(head, "line.json, version ") || !strings.Contains(head, "line 2, characters ") || !more || len(got) > 4000 || calls > 100 {
			t.Fatalf("%s: got %s", input, got)
		}
		line += piece
		input = strings.TrimSuffix(next, "]")
	}
	if line != strings.Repeat("ab\U0001f409", 3000) || calls < 3 || input != `"from": 3` {
		t.Errorf("%d bytes in %d calls, then %s", len(line), calls, input)
	}
	for input, want := range map[string]string{
		`"from": 2, "column": 4`:     "characters 3 to ", // the middle of a character
		`"from": 2, "column": 12001`: "error: line 2 has 12000 characters; column is 12001",
		`"from": 3, "column": 1`:     "line 3, characters 1 to 1 of 1\n     3\t]",
		`"from": 4, "column": 1`:     "error: line.json has 3 lines; from is 4",
	} {
		if got := text(t, l, "workspace_read", `{"path": "line.json", `+input+`}`); !strings.Contains(got, want) || strings.Contains(got, "\ufffd") {
			t.Errorf("%s: got %.200s", input, got)
		}
	}
	write("huge.json", strings.Repeat("x", 5<<20)+"END")
	if got := text(t, l, "workspace_read", `{"path": "huge.json", "from": 1, "column": 5242870}`); !strings.Contains(got, "xxxEND") {
		t.Errorf("got %.200s", got)
	}
	if got := text(t, l, "workspace_read", `{"path": "huge.md", "from": 100000, "lines": 1}`); !strings.Contains(got, "lines 100000 to 100000 of more (") || !strings.Contains(got, `continue with "from": 100001`) {
		t.Errorf("got %s", got)
	}
	if got := text(t, l, "workspace_list", `{"path": "many", "max_tokens": 300}`); len(got) > 2500 || !strings.Contains(got, "more entries are left out") {
		t.Errorf("got %s", got)
	}
}

// TestMuchIsNotLost makes edits and finds matches that are larger than usual.
func TestMuchIsNotLost(t *testing.T) {
	d := directory(t)
	l := newKit(t).Open(Options{Env: host.Env{"workspace": d}})
	write := func(path, text string) {
		t.Helper()
		if err := d.Write(t.Context(), path, text); err != nil {
			t.Fatal(err)
		}
	}
	write("many.csv", strings.Repeat("a,", 10_050))
	text(t, l, "workspace_edit", `{"path": "many.csv", "edits": [{"old": ",", "new": ";", "all": true}]}`)
	if got, err := d.Read(t.Context(), "many.csv"); err != nil || got != strings.Repeat("a;", 10_050) {
		t.Errorf("%d of 10050 places were edited, %v", strings.Count(got, ";"), err)
	}
	write("wide.txt", strings.Repeat(strings.Repeat("w", 900)+"\n", 5)+"needle\n"+strings.Repeat(strings.Repeat("w", 900)+"\n", 5))
	if got := text(t, l, "workspace_grep", `{"pattern": "needle", "context": 5, "max_tokens": 600}`); !strings.Contains(got, "[9 more lines of this; set a larger max_tokens]") {
		t.Errorf("got %s", got)
	}
}

// TestPackaged builds the evaluators of two keys at a time, each once, and none after the end.
func TestPackaged(t *testing.T) {
	var p packaged
	begun, end := make(chan struct{}), make(chan struct{})
	ended := make(chan error)
	go func() {
		_, done, err := p.get(t.Context(), "", "slow", func() (*toolchain.Evaluator, error) {
			close(begun)
			<-end
			return nil, nil
		})
		if err == nil {
			done()
		}
		ended <- err
	}()
	<-begun
	_, done, err := p.get(t.Context(), "", "quick", func() (*toolchain.Evaluator, error) { return nil, nil })
	if err != nil {
		t.Fatal(err)
	}
	done()
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	again := func() (*toolchain.Evaluator, error) { t.Error("it is built twice"); return nil, nil }
	if _, _, err := p.get(gone, "", "slow", again); !errors.Is(err, context.Canceled) {
		t.Errorf("a call that ended waits: %v", err)
	}
	close(end)
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if _, done, err := p.get(t.Context(), "", "slow", again); err != nil {
		t.Error(err)
	} else {
		done()
	}
	failed := errors.New("not built")
	for range 2 { // a failure is not kept
		if _, _, err := p.get(t.Context(), "", "bad", func() (*toolchain.Evaluator, error) { return nil, failed }); !errors.Is(err, failed) {
			t.Errorf("got %v", err)
		}
	}
	for i := range 2 * maxPackaged {
		if _, done, err := p.get(t.Context(), "", fmt.Sprint(i), func() (*toolchain.Evaluator, error) { return nil, nil }); err != nil {
			t.Error(err)
		} else {
			done()
		}
	}
	if len(p.recent) != maxPackaged {
		t.Errorf("%d are kept", len(p.recent))
	}
	if err := p.close(); err != nil {
		t.Error(err)
	}
	if _, _, err := p.get(t.Context(), "", "late", again); !errors.Is(err, ErrClosed) {
		t.Errorf("after the end: %v", err)
	}
}

// TestEscalation checks what a ladder says to a tool that it does not have.
func TestEscalation(t *testing.T) {
	d := directory(t)
	low := newKit(t).Open(Options{Env: host.Env{"workspace": d}})
	if _, err := low.Run(t.Context(), Code{Text: "return 1"}); !errors.As(err, new(*RungError)) || err.Error() != "code_run needs the rung isolate (1), and this ladder goes up to workspace (0)" {
		t.Errorf("code on the lowest rung: %v", err)
	}
	if _, err := low.Call(t.Context(), Call{Tool: "workspace_fly"}); !errors.As(err, new(*UnknownToolError)) {
		t.Errorf("an unknown tool: %v", err)
	}
	if _, err := newKit(t).Open(Options{}).Call(t.Context(), Call{Tool: "workspace_read", Input: []byte(`{"path": "x"}`)}); !errors.As(err, new(*UnboundError)) {
		t.Errorf("without a workspace: %v", err)
	}
	if got := newKit(t).Open(Options{}).Tools(); len(got) != 0 {
		t.Errorf("tools without a workspace: %v", got)
	}
	if got := low.Tools(); len(got) != 12 {
		t.Errorf("%d tools of the lowest rung", len(got))
	}
}

// TestRun checks that code has the workspace, and calls the ladder's tools.
func TestRun(t *testing.T) {
	d := directory(t)
	l := newKit(t).Open(Options{Rung: Isolate, Env: host.Env{"workspace": d}})
	r, err := l.Run(t.Context(), Code{
		Text:  `await env.workspace.write("a", "b\n"); const read = await tools.workspace.read({ path: "a" }); return [input, read.split("\n")[1], (await tools.search("history"))[0].name];`,
		Input: []byte(`{"n": 1}`),
	})
	if want := `[{"n":1},"     1\tb","workspace_history"]`; err != nil || string(r.Output) != want {
		t.Errorf("got %s, %v, want %s", r.Output, err, want)
	}
	_, err = l.Run(t.Context(), Code{Text: `return await tools.workspace.fly({})`})
	if err == nil || !strings.Contains(err.Error(), `no rung has a tool "workspace_fly"`) {
		t.Errorf("got %v", err)
	}
}

// oneDot resolves the package is-odd by hand.
type oneDot struct {
	asked  [][]string
	builds int
}

func (p *oneDot) Count(context.Context) error {
	if p.builds++; p.builds > 1 {
		return errors.New("too many builds")
	}
	return nil
}

func (p *oneDot) Resolve(_ context.Context, imports []string) (fs.FS, []byte, error) {
	p.asked = append(p.asked, imports)
	return fstest.MapFS{
		"node_modules/dot/package.json": {Data: []byte(`{"name": "dot", "version": "1.0.0", "main": "dot.js"}`)},
		"node_modules/dot/dot.js":       {Data: []byte(`exports.dot = (n) => ".".repeat(n);`)},
	}, []byte("1.0.0"), nil
}

// TestImports checks code that imports packages.
func TestImports(t *testing.T) {
	d, packages := directory(t), &oneDot{}
	l := newKit(t).Open(Options{Rung: NPM, Env: host.Env{"workspace": d}, Packages: packages})
	code := "// dots\nimport { dot } from \"dot\"\nimport type {\n  A } from 'a';\nawait env.workspace.write(\"dots\", dot(input)); return tools.workspace.read({ path: \"dots\" });"
	for range 2 {
		r, err := l.Run(t.Context(), Code{Text: code, Input: []byte("3")})
		if err != nil || !strings.HasSuffix(string(r.Output), `1\t..."`) {
			t.Errorf("got %s, %v", r.Output, err)
		}
	}
	if len(packages.asked) != 2 || len(packages.asked[0]) != 1 || packages.asked[0][0] != "dot" {
		t.Errorf("asked for %v", packages.asked)
	}
	if packages.builds != 1 {
		t.Errorf("%d builds were counted", packages.builds)
	}
	if _, err := l.Run(t.Context(), Code{Text: "import { dot } from \"dot\";\nimport { extension } from \"stile\";\nreturn dot(1);"}); err == nil || err.Error() != "too many builds" {
		t.Errorf("a build that does not count: %v", err)
	}
	packages.builds = -100
	_, err := newKit(t).Open(Options{Rung: Isolate, Packages: packages}).Run(t.Context(), Code{Text: code})
	if !errors.As(err, new(*RungError)) || !strings.Contains(err.Error(), "import of dot needs the rung npm (2)") {
		t.Errorf("below the rung: %v", err)
	}
	if _, err := newKit(t).Open(Options{Rung: NPM}).Run(t.Context(), Code{Text: code}); !errors.As(err, new(*PackagesError)) {
		t.Errorf("without packages: %v", err)
	}
	_, err = l.Run(t.Context(), Code{Text: "import { dot } from \"dot\";\n\nthrow new Error(dot(1));"})
	if failed, ok := errors.AsType[*host.GuestError](err); !ok || !strings.Contains(failed.Failure.Stack, "code.ts:3:") {
		t.Errorf("a stack: %v", err)
	}
	_, err = l.Run(t.Context(), Code{Text: "import { dot } from \"dot\";\nlet a = = 1;"})
	if built, ok := errors.AsType[*toolchain.BuildError](err); !ok || built.Problems[0].Line != 2 {
		t.Errorf("a mistake: %v", err)
	}
	for code, want := range map[string]string{
		`const { dot } = await import("dot"); return dot(1);`:                      `"dot" cannot be imported here: import statements come first in the code, as in import * as module from "dot"`,
		"import { dot } from \"dot\";\nreturn (await import(\"./near\")).default;": `"./near" cannot be imported here: import statements come first`,
		"const a = 1;\nimport { dot } from \"dot\";\nreturn dot(a);":               "import statements come first in the code: move this one",
		`const a = 1; import { dot } from "dot"; return dot(a);`:                   "import statements come first in the code: move this one",
		`const a = 1; import dot from "dot"; return dot(a);`:                       "import statements come first in the code: move this one",
		`return require("dot").dot(1);`:                                            `modules are imported by statements that come first in the code, as in import * as module from "name"`,
		`const name = "dot"; return (await import(name)).dot(1);`:                  `could not load module 'dot': modules are imported by statements that come first in the code`,
	} {
		if _, err := l.Run(t.Context(), Code{Text: code}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", code, err)
		}
	}
	for _, missing := range []string{"node:net", "./near", "dot/none"} {
		_, err = l.Run(t.Context(), Code{Text: "import { dot } from \"dot\";\nimport no from '" + missing + "';\nreturn no;"})
		if built, ok := errors.AsType[*toolchain.BuildError](err); !ok || built.Problems[0].File != "code.ts" || built.Problems[0].Line != 2 || built.Problems[0].Column != 16 {
			t.Errorf("%s: %v", missing, err)
		}
	}
}

// packagesOf resolves packages through npm.
type packagesOf struct{ *npm.Client }

func (p packagesOf) Resolve(ctx context.Context, imports []string) (fs.FS, []byte, error) {
	found, err := p.Client.Resolve(ctx, npm.Request{Imports: imports, Recall: true})
	if err != nil {
		return nil, nil, err
	}
	return found.FS, found.Lock, nil
}

func (packagesOf) Count(context.Context) error { return nil }

func realPackages(t *testing.T) Packages {
	t.Helper()
	cacheDir, keyDir := cachetest.Dirs(t)
	client, err := npm.New(npm.Options{CacheDir: cacheDir, KeyDir: keyDir})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	return packagesOf{client}
}

// TestPackagesInUseAreBounded has the calls of a user wait, each with other modules in its image. Those of another user find room.
func TestPackagesInUseAreBounded(t *testing.T) {
	k := NewKit(newKit(t).options)
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	begun := make(chan error)
	run := func(user string, n int) error {
		l := k.Open(Options{Rung: Isolate, User: user, Ask: func(ctx context.Context, _ string, done func(bool, error)) error {
			begun <- nil
			context.AfterFunc(ctx, func() { done(false, nil) })
			return nil
		}})
		code := Code{Text: fmt.Sprintf("import * as p from %q;\nreturn await tools.person.approve({ question: 'wait' }), p;", "./"+strings.Repeat("./", n)+packagesFile)}
		all.Go(func() {
			if _, err := l.Run(ctx, code); ctx.Err() == nil {
				begun <- err
			}
		})
		return <-begun
	}
	used := 0
	for limit := (*host.LimitError)(nil); ; used++ {
		if err := run("busy", used); errors.As(err, &limit) && limit.Limit == "engine" {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		if used > 2*ownPackagedBytes>>20 {
			t.Fatalf("%d images of one user are in use", used)
		}
	}
	if used < 4 {
		t.Errorf("a user uses only %d", used)
	}
	k.packaged.mu.Lock()
	if n := k.packaged.uses.Size("busy"); n > ownPackagedBytes || k.packaged.bytes > ownPackagedBytes+ownPackagedBytes/4 {
		t.Errorf("%d bytes in use, %d in all", n, k.packaged.bytes)
	}
	k.packaged.mu.Unlock()
	if err := run("other", used+1); err != nil {
		t.Errorf("another user: %v", err)
	}
	cancel()
	all.Wait()
	if n := k.packaged.uses.Size("busy") + k.packaged.uses.Size("other"); n > 0 || len(k.packaged.recent) > maxPackaged {
		t.Errorf("afterwards %d bytes are in use, %d kept", n, len(k.packaged.recent))
	}
	if err := k.Close(); err != nil || k.packaged.bytes != 0 {
		t.Errorf("%v, %d bytes are left", err, k.packaged.bytes)
	}
}
