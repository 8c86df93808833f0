package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"

	"github.com/stilehost/stile/internal/cache/cachetest"
)

// devSession is a stile dev --json in a folder of its own.
type devSession struct {
	t      *testing.T
	dir    string
	cmd    *exec.Cmd
	rounds *json.Decoder
	stderr *bufio.Reader
	last   devRound
}

func startDev(t *testing.T, files map[string]string, args ...string) *devSession {
	t.Helper()
	dir, keyDir := cachetest.Dirs(t)
	prepareCache(t, dir, keyDir)
	s := newShell(t, dir, keyDir)
	d := &devSession{t: t, dir: filepath.Join(s.dir, "dev")}
	for name, text := range files {
		d.write(name, text)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	d.cmd = exec.CommandContext(ctx, "stile", append([]string{"dev", "--json"}, args...)...)
	d.cmd.Dir, d.cmd.Env = d.dir, append(s.env, "STILE_HOME="+s.home)
	out, err := d.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	said, err := d.cmd.StderrPipe()
	if err == nil {
		err = d.cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	d.rounds, d.stderr = json.NewDecoder(out), bufio.NewReader(said)
	return d
}

func (d *devSession) write(name, text string) {
	d.t.Helper()
	file := filepath.Join(d.dir, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		d.t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		d.t.Fatal(err)
	}
}

// replace writes a file as many editors do: a new file takes the place of the old one.
func (d *devSession) replace(name, text string) {
	d.t.Helper()
	d.write(name+"~", text)
	if err := os.Rename(filepath.Join(d.dir, name+"~"), filepath.Join(d.dir, name)); err != nil {
		d.t.Fatal(err)
	}
}

func (d *devSession) remove(name string) {
	d.t.Helper()
	if err := os.RemoveAll(filepath.Join(d.dir, name)); err != nil {
		d.t.Fatal(err)
	}
}

// next waits for the next round.
func (d *devSession) next() devRound {
	d.t.Helper()
	var r devRound
	if err := d.rounds.Decode(&r); err != nil {
		said, _ := io.ReadAll(d.stderr)
		d.t.Fatalf("no round follows %+v (%v): %v\n%s", d.last, d.last.Error, err, said)
	}
	if r.Round != d.last.Round+1 {
		d.t.Errorf("round %d follows round %d", r.Round, d.last.Round)
	}
	d.last = r
	return r
}

// until waits for a round of which is holds.
func (d *devSession) until(what string, is func(devRound) bool) devRound {
	d.t.Helper()
	for range 20 {
		if r := d.next(); is(r) {
			return r
		} else if r.Round > 1 && len(r.Changed) == 0 && r.State != devSuperseded {
			d.t.Errorf("round %d began for nothing", r.Round)
		}
	}
	d.t.Fatalf("no round has %s", what)
	return devRound{}
}

// result waits for a result.
func (d *devSession) result(want string) devRound {
	d.t.Helper()
	return d.until("the result "+want, func(r devRound) bool { return string(r.Result) == want })
}

// fails waits for an error.
func (d *devSession) fails(of kind, text string) devRound {
	d.t.Helper()
	return d.until(text, func(r devRound) bool {
		return r.State == devFailed && r.Error != nil && r.Error.Kind == of && strings.Contains(r.Error.Message, text)
	})
}

// ends interrupts stile dev, which must exit with 0 and have printed nothing more.
func (d *devSession) ends() {
	d.t.Helper()
	if err := d.cmd.Process.Signal(os.Interrupt); err != nil {
		d.t.Fatal(err)
	}
	var r devRound
	if err := d.rounds.Decode(&r); err != io.EOF {
		d.t.Errorf("after the interrupt: %+v, %v", r, err)
	}
	said, _ := io.ReadAll(d.stderr)
	if err := d.cmd.Wait(); err != nil {
		d.t.Errorf("%v: %s", err, said)
	}
}

// logs waits for a line that the tool logs.
func (d *devSession) logs(text string) {
	d.t.Helper()
	for {
		line, err := d.stderr.ReadString('\n')
		if strings.Contains(line, text) {
			return
		}
		if err != nil {
			d.t.Fatalf("nothing logs %q: %v", text, err)
		}
	}
}

const addTool = "/** Adds. */\nexport function add(a: number, b: number): number {\n\treturn %s;\n}\n"

func adds(result string) string { return fmt.Sprintf(addTool, result) }

// TestDev saves a source in every way that editors have.
func TestDev(t *testing.T) {
	t.Parallel()
	d := startDev(t, map[string]string{"add.ts": adds("a + b"), "in.json": `{"a": 3, "b": 4}`}, "add.ts", "add", "--input", "@in.json", "--no-types")
	if r := d.result("7"); r.Round != 1 || r.State != devOK || r.Build == 0 || r.Call == 0 {
		t.Errorf("the first round: %+v", r)
	}
	d.write("add.ts", adds("a * b"))
	if r := d.result("12"); !slices.Equal(r.Changed, []string{"add.ts"}) {
		t.Errorf("changed: %q", r.Changed)
	}
	d.replace("add.ts", adds("a - b"))
	d.result("-1")
	d.write("in.json", `{"a": 30, "b": 4}`)
	if r := d.result("26"); !slices.Equal(r.Changed, []string{"in.json"}) {
		t.Errorf("changed: %q", r.Changed)
	}

	d.write("add.ts", adds("a +"))
	d.fails(kindBuild, "add.ts:3")
	d.remove("add.ts")
	d.fails(kindUsage, "add.ts: no such file")
	d.write("add.ts", adds("sum(a, b)"))
	d.fails(kindFailed, "sum is not defined")
	// A file that the bundler looked for appears, and goes again.
	d.write("add.ts", "import { sum } from \"./lib/sum\";\n"+adds("sum(a, b)"))
	d.fails(kindBuild, "lib/sum")
	d.write("lib/sum.ts", "export const sum = (a: number, b: number) => a + b;\n")
	if r := d.result("34"); !slices.Contains(r.Changed, "lib/sum.ts") {
		t.Errorf("changed: %q", r.Changed)
	}
	d.write("lib/sum.ts", "export const sum = (a: number, b: number) => a * b;\n")
	d.result("120")
	d.remove("lib")
	d.fails(kindBuild, "lib/sum")
	d.write("lib/sum/index.ts", "export const sum = () => 0;\n")
	d.result("0")
	d.write("in.json", `{"a": "x", "b": 4}`)
	d.fails(kindInput, "")
	d.ends()
}

// TestDevEndsCalls checks that the next save ends a call that loops, and so does an interrupt.
func TestDevEndsCalls(t *testing.T) {
	t.Parallel()
	loops := adds(`(() => { env.console.log("round %d"); for (;;) {} })()`)
	loops = strings.Replace(loops, "b: number", "b: number, env: any", 1)
	d := startDev(t, map[string]string{"add.ts": fmt.Sprintf(loops, 1)}, "add.ts", "add", "--input", `{"a": 1, "b": 2}`, "--limit", "cpu=1h", "--limit", "wall=1h", "--no-types")
	d.logs("round 1")
	d.replace("add.ts", fmt.Sprintf(loops, 2))
	if r := d.next(); r.State != devSuperseded || r.Result != nil || r.Error != nil {
		t.Errorf("the round with the loop: %+v", r)
	}
	d.logs("round 2")
	d.write("add.ts", adds("a + b"))
	d.result("3")
	d.write("add.ts", fmt.Sprintf(loops, 4))
	d.logs("round 4")
	d.ends()
}

// TestDevFolder takes a folder with several files, with types and a manifest that changes.
func TestDevFolder(t *testing.T) {
	t.Parallel()
	manifest := `{"name": "%s", "version": "1.0.0", "description": "Counts", "tools": ["count"], "bindings": {%s}}`
	const kv, more = `"seen": {"kv": true}`, `"seen": {"kv": true}, "api": {"http": [{"host": "example.com"}]}`
	const source = "import type { Env } from \"stile\";\nimport type { Times } from \"./types\";\n/** Counts. */\nexport async function count(env: Env): Promise<Times> {\n" +
		"\tconst times = Number(await env.seen.get(\"times\") ?? \"0\") + 1;\n\tawait env.seen.set(\"times\", String(times));\n\treturn { times };\n}\n"
	d := startDev(t, map[string]string{
		"index.ts": source, "types.ts": "export interface Times { times: number }\n", "m.json": fmt.Sprintf(manifest, "count", kv),
	}, ".", "count", "--manifest", "m.json")
	first := d.result(`{"times":1}`)
	if first.State != devOK || len(first.Types) > 0 || first.Unchecked != "" || first.Check == 0 {
		t.Errorf("the first round: %+v", first)
	}
	// A file of which only types are used is checked, and begins a round.
	d.write("types.ts", "export interface Times { times: string }\n")
	r := d.fails(kindFailed, "/times: got number, want string")
	if len(r.Types) != 1 || r.Types[0].File != "index.ts" || r.Types[0].Line != 7 {
		t.Errorf("types: %+v", r)
	}
	d.remove("types.ts")
	d.result(`{"times":3}`)
	d.replace("types.ts", "export type Times = { times: number };\n")
	if r := d.result(`{"times":4}`); r.State != devOK {
		t.Errorf("types: %+v", r)
	}
	// A syntax error is reported once.
	d.write("index.ts", source+"}")
	if r := d.fails(kindBuild, "index.ts:9"); len(r.Types) > 0 {
		t.Errorf("types: %+v", r)
	}
	// A faulty manifest hides nothing of the code.
	d.write("m.json", `{"name": "count", "version": "1", "description": "Counts", "tools": ["count"], "bindings": {"seen": {"kv": 1}}}`)
	d.write("index.ts", "import { gone } from \"./gone\";\ngone();\nconst n: number = \"one\";\n"+source)
	r = d.until("the manifest and the code", func(r devRound) bool {
		return len(r.Types) > 0 && r.Error != nil && strings.Contains(r.Error.Message, "./gone")
	})
	if !strings.Contains(r.Error.Message, "version: ") || !strings.Contains(r.Error.Message, "bindings.seen.kv: ") || strings.Contains(r.Error.Message, "TS") || len(r.Types) != 1 || !strings.Contains(r.Types[0].Text, "TS2322") {
		t.Errorf("got %+v, types %+v", r.Error, r.Types)
	}
	d.write("m.json", fmt.Sprintf(manifest, "count", kv))
	// The manifest gives no more than it did when stile dev started.
	d.write("index.ts", source)
	d.result(`{"times":5}`)
	d.write("m.json", fmt.Sprintf(manifest, "count", more))
	d.fails(kindDenied, "m.json asks for more than when stile dev started: the binding api (added): + http GET,HEAD https://example.com/**; start stile dev again")
	d.write("m.json", fmt.Sprintf(manifest, "other", kv))
	d.fails(kindDenied, "the name other instead of count")
	d.write("m.json", fmt.Sprintf(manifest, "count", ""))
	if r := d.fails(kindFailed, "seen"); len(r.Types) == 0 { // what the code uses is not bound now
		t.Errorf("types: %+v", r)
	}
	d.write("m.json", "{")
	d.fails(kindBuild, "m.json:1:1: this is not JSON")
	d.write("m.json", fmt.Sprintf(manifest, "count", kv))
	d.result(`{"times":6}`)
	// The folder is replaced, as by git.
	if err := os.Rename(filepath.Join(d.dir, "index.ts"), filepath.Join(d.dir, "other.ts")); err != nil {
		t.Fatal(err)
	}
	d.fails(kindUsage, "which of its files exports the tools")
	if err := os.Rename(filepath.Join(d.dir, "other.ts"), filepath.Join(d.dir, "tool.ts")); err != nil {
		t.Fatal(err)
	}
	d.result(`{"times":7}`)
	d.ends()
}

// TestDevWrites checks that files which a tool writes into its own folder begin no round, and that a storm of changes leads to few.
func TestDevWrites(t *testing.T) {
	t.Parallel()
	source := "/** Writes. */\nexport async function write(env: any): Promise<string> {\n" +
		"\tawait env.files.write(`notes/${(await env.files.list(\"\")).length}.json`, \"{}\");\n\treturn \"%d\";\n}\n"
	d := startDev(t, map[string]string{"write.ts": fmt.Sprintf(source, 0)}, "write.ts", "write", "--bind", "files=dir:.,rw", "--no-types")
	d.result(`"0"`)
	const storm = 2000
	for i := range storm {
		d.replace("write.ts", fmt.Sprintf(source, i+1))
	}
	r := d.until("the last save", func(r devRound) bool { return string(r.Result) == fmt.Sprintf(`"%d"`, storm) })
	if r.Round > storm/10 {
		t.Errorf("%d saves made %d rounds", storm, r.Round)
	}
	d.write("write.ts", fmt.Sprintf(source, 1))
	if again := d.result(`"1"`); again.Round != r.Round+1 {
		t.Errorf("round %d follows round %d, and files that the tool wrote began those between", again.Round, r.Round)
	}
	d.ends()
}

// TestDevTerminal checks what a person sees: the screen is cleared on a terminal only, and never by what a tool says.
func TestDevTerminal(t *testing.T) {
	t.Parallel()
	const clear = "\x1b[2J\x1b[H"
	for name, tt := range map[string]struct {
		env      []string
		terminal bool
		clears   bool
	}{
		"terminal": {[]string{"TERM=xterm"}, true, true},
		"dumb":     {[]string{"TERM=dumb"}, true, false},
		"pipe":     {[]string{"TERM=xterm"}, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir, keyDir := cachetest.Dirs(t)
			prepareCache(t, dir, keyDir)
			s := newShell(t, dir, keyDir)
			d := &devSession{t: t, dir: filepath.Join(s.dir, "dev")}
			d.write("add.ts", adds(`(() => { throw new Error("\x1b[31mfirst\x1b[2J\x1b[H") })()`))
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			t.Cleanup(cancel)
			d.cmd = exec.CommandContext(ctx, "stile", "dev", "add.ts", "add", "--input", `{"a": 1, "b": 2}`, "--no-types")
			d.cmd.Dir, d.cmd.Env = d.dir, append(append(s.env, "STILE_HOME="+s.home), tt.env...)
			var said io.Reader
			if tt.terminal {
				person, terminal, err := pty.Open()
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { _ = errors.Join(person.Close(), terminal.Close()) })
				d.cmd.Stdin, d.cmd.Stdout, d.cmd.Stderr, said = terminal, terminal, terminal, person
			} else {
				out, err := d.cmd.StderrPipe()
				if err != nil {
					t.Fatal(err)
				}
				said = out
			}
			if err := d.cmd.Start(); err != nil {
				t.Fatal(err)
			}
			lines := bufio.NewReader(said)
			reads := func(want string) (all string) {
				for !strings.Contains(all, want) {
					line, err := lines.ReadString('\n')
					if all += line; err != nil {
						t.Fatalf("%v; it said %q", err, all)
					}
				}
				return all
			}
			first := reads("waiting for changes")
			if !strings.Contains(first, "first") || strings.Contains(strings.TrimPrefix(first, clear), "\x1b[2J") {
				t.Errorf("the first round says %q", first)
			}
			d.write("add.ts", adds("a + b"))
			second := reads("waiting for changes")
			if got := strings.HasPrefix(second, clear); got != tt.clears || strings.HasPrefix(first, clear) != tt.clears || !strings.Contains(second, "stile: round 2, for add.ts") {
				t.Errorf("the rounds say %q and %q", first, second)
			}
			if err := d.cmd.Process.Signal(syscall.SIGINT); err != nil {
				t.Fatal(err)
			}
			if err := d.cmd.Wait(); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestDevUntyped imports a package whose types are too large for the check: the rounds say so.
func TestDevUntyped(t *testing.T) {
	t.Parallel()
	const source = "import { twice } from \"twice\";\n/** Doubles. */\nexport function get(): number {\n\treturn twice(%d);\n}\n"
	const says = "the types of twice were not used in the check, because they are too large: what comes from there has the type any"
	d := startDev(t, map[string]string{
		"index.ts": fmt.Sprintf(source, 1), "node_modules/twice/package.json": `{"name": "twice", "version": "1.0.0", "main": "i.js", "types": "i.d.ts"}`,
		"node_modules/twice/i.js": "export const twice = (n) => 2 * n;\n", "node_modules/twice/i.d.ts": "export declare function twice(n: number): number;\n" + strings.Repeat(";", 5<<20),
	}, "index.ts", "get")
	if r := d.result(`2`); r.State != devOK || !slices.Equal(r.Untyped, []string{says}) {
		t.Errorf("the first round: %+v", r)
	}
	d.write("index.ts", fmt.Sprintf(source, 2))
	if r := d.result(`4`); r.State != devOK || !slices.Equal(r.Untyped, []string{says}) {
		t.Errorf("the second round: %+v", r)
	}
}

// TestDevPaths starts elsewhere than in the folder of the source: files of problems lead there from the folder in which the command runs.
func TestDevPaths(t *testing.T) {
	t.Parallel()
	const source = "import { zero } from \"./lib/zero.ts\";\n/** Counts. */\nexport function count(): number { return zero; }\n"
	d := startDev(t, map[string]string{"app/src/index.ts": source, "app/src/lib/zero.ts": "export const zero: number = 0;\n"}, "app/src", "count")
	d.result("0")
	d.write("app/src/lib/zero.ts", "export const zero: string = 0;\n")
	r := d.until("a problem of types", func(r devRound) bool { return len(r.Types) > 0 })
	if file := r.Types[0].File; file != "app/src/lib/zero.ts" {
		t.Errorf("the type is wrong in %s", file)
	}
	d.write("app/src/lib/zero.ts", "export const zero = (;\n")
	if r := d.fails(kindBuild, "app/src/lib/zero.ts:1:"); r.Error.Problems == nil || r.Error.Problems.([]any)[0].(map[string]any)["file"] != "app/src/lib/zero.ts" {
		t.Errorf("the problems: %+v", r.Error.Problems)
	}
	d.ends()
}
