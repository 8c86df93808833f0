package main

import (
	"bufio"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"

	"github.com/stilehost/stile/extension/lifecycle"
)

// completingHome is a home with names of every kind.
func completingHome(t *testing.T) *home {
	h := newHome(t)
	h.stile("ext", "add", h.extension("keeps", "1.0.0", "return 1;"))
	h.stile("ext", "add", h.extensionWith("asks", "1.0.0", `{"kept": {"kv": true}}`, "return 1;"), "--scope", "agent:claude", "--no-approve")
	h.stile("ext", "call", "keeps_get")
	put := h.command("ws", "put", "notes/a.md")
	put.Stdin = strings.NewReader("text")
	set := h.command("secret", "set", "site-token")
	set.Stdin = strings.NewReader("a long enough value")
	for _, c := range []*exec.Cmd{put, set} {
		if said, err := c.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, said)
		}
	}
	return h
}

// words are the words that stile complete offers.
func (h *home) words(line ...string) (all []string) {
	h.t.Helper()
	for offered := range strings.Lines(h.stile(append([]string{"complete", "--"}, line...)...)) {
		word, _, _ := strings.Cut(offered, "\t")
		all = append(all, word)
	}
	return all
}

// TestCompleteNames checks that names of STILE_HOME are offered where a command takes one, and that nothing is made or changed for them.
func TestCompleteNames(t *testing.T) {
	t.Parallel()
	h := completingHome(t)
	before, err := os.ReadDir(h.dir)
	if err != nil {
		t.Fatal(err)
	}
	for line, want := range map[string]string{
		"ext show ":                 "asks keeps",
		"ext show k":                "keeps",
		"ext show keeps ":           "",
		"ext diff ":                 "asks keeps",
		"ext rollback k":            "keeps",
		"ext approve ":              "asks 2",
		"ext approve 2":             "2",
		"ext deny --reason no a":    "asks",
		"ext call ":                 "keeps_get",
		"ext call no":               "",
		"calls show ":               "1",
		"calls replay ":             "1",
		"calls list --tool ":        "get",
		"secret remove ":            "site-token",
		"ext generate --model-key":  "--model-key",
		"ext generate --model-key ": "site-token",
		"ws ls ":                    "notes",
		"ws forget notes n":         "notes",
		"ws cat notes/":             "",
		"ext list --scope ":         "user shared agent:claude user:tom",
		"ext list --scope=ag":       "--scope=agent:claude",
		"ext promote asks --to s":   "shared",
		"ext list --color ":         "auto always never",
		"completion ":               "bash zsh fish",
		"new x --template ":         "basic http notes npm multi-file tests",
		"new x --language=py":       "--language=python",
		"ext show %":                "",
		"ext show 'OR'1":            "",
	} {
		if got := strings.Join(h.words(strings.Split(line, " ")...), " "); got != want {
			t.Errorf("stile %s: %q, not %q", line, got, want)
		}
	}
	after, err := os.ReadDir(h.dir)
	if err != nil {
		t.Fatal(err)
	}
	if fmt.Sprint(before) != fmt.Sprint(after) {
		t.Errorf("the home has %v, before %v", after, before)
	}
	missing := filepath.Join(t.TempDir(), "none")
	h.env = append(h.env, "STILE_HOME="+missing)
	if got := h.words("ext", "show", ""); got != nil {
		t.Errorf("a home that does not exist has %q", got)
	}
	if _, err := os.Lstat(missing); err == nil {
		t.Error("completing made the home")
	}
}

// TestCompleteNamesHostile checks that a store that somebody else wrote, holds or broke neither delays a person nor gives a shell anything but names.
func TestCompleteNamesHostile(t *testing.T) {
	t.Parallel()
	h := completingHome(t)
	file := filepath.Join(h.dir, lifecycle.File)
	change := func(query string) (end func()) {
		db, err := sql.Open("sqlite", file)
		if err != nil {
			t.Fatal(err)
		}
		c, err := db.Conn(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for one := range strings.SplitSeq(query, ";") {
			if _, err := c.ExecContext(t.Context(), one); err != nil {
				t.Fatalf("%s: %v", one, err)
			}
		}
		return func() { _ = errors.Join(c.Close(), db.Close()) }
	}
	// A process in the middle of a change, with its log.
	end := change(`BEGIN IMMEDIATE; UPDATE release SET name = 'changing'`)
	if got := strings.Join(h.words("ext", "show", ""), " "); got != "asks keeps" {
		t.Errorf("while another process writes: %q", got)
	}
	end()
	for _, name := range []string{"a\x1b[2J", "a;reboot", "a b", "$(reboot)", "`reboot`", "a\nb", "a\tb", "-rf", "a'b", strings.Repeat("a", 300), strings.Repeat("a", 100<<10), "ä"} {
		end := change("UPDATE release SET name = '" + strings.ReplaceAll(strings.ReplaceAll(name, "'", "''"), ";", "'||char(59)||'") + "', author = 'x' || char(27) || '[2J' || char(10) || 'y'")
		for _, command := range []string{"show", "approve"} {
			out := h.stile("complete", "--", "ext", command, "")
			for line := range strings.Lines(out) {
				if !regexp.MustCompile(`^[0-9]+\t[^\x00-\x1f\x7f]*\n$`).MatchString(line) {
					t.Errorf("%s with the name %.40q offers %q", command, name, line)
				}
			}
		}
		end()
	}
	change("INSERT INTO version SELECT 'd' || value, 'n', '', '{}' FROM (WITH RECURSIVE n(value) AS (SELECT 1 UNION ALL SELECT value + 1 FROM n WHERE value < 5000) SELECT value FROM n);" +
		"INSERT INTO release (scope, name, digest, state, author, asked) SELECT 'user:u' || rowid, 'n' || rowid, digest, 'active', 'user:tom', 1 FROM version")()
	for _, line := range [][]string{{"ext", "show", ""}, {"ext", "list", "--scope", ""}} {
		if got := h.words(line...); len(got) != maxNames {
			t.Errorf("%q: %d names", line, len(got))
		}
	}
	// The exclusive lock of another process, without and with its log.
	end = change("PRAGMA locking_mode = EXCLUSIVE; BEGIN IMMEDIATE; UPDATE release SET name = 'changing'")
	began := time.Now()
	h.words("ext", "show", "")
	if took := time.Since(began); took > 9*time.Second { // other commands wait ten
		t.Errorf("with an exclusive lock, completing took %s", took)
	}
	end()
	for what, of := range map[string]func() error{
		"noise":    func() error { return os.WriteFile(file, []byte(strings.Repeat("no database", 1000)), 0o600) },
		"nothing":  func() error { return os.WriteFile(file, nil, 0o600) },
		"a pipe":   func() error { return errors.Join(os.Remove(file), syscall.Mkfifo(file, 0o600)) },
		"a folder": func() error { return errors.Join(os.Remove(file), os.Mkdir(file, 0o700)) },
	} {
		_ = os.RemoveAll(file)
		if err := os.WriteFile(file, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := of(); err != nil {
			t.Fatal(err)
		}
		c := h.command("complete", "--", "ext", "show", "")
		if said, err := c.CombinedOutput(); err != nil || len(said) > 0 {
			t.Errorf("%s: %v, %q", what, err, said)
		}
	}
}

// TestShells completes command lines in the shells.
func TestShells(t *testing.T) {
	t.Parallel()
	h := completingHome(t)
	lines := map[string]string{
		"stile ext app":                            "stile ext approve",
		"stile ext show ke":                        "stile ext show keeps",
		"stile ext approve as":                     "stile ext approve asks",
		"stile ext call ke":                        "stile ext call keeps_get",
		"stile secret remove si":                   "stile secret remove site-token",
		"stile ext list --scope agent:cl":          "stile ext list --scope agent:claude",
		"stile ext list --scope=agent:cl":          "stile ext list --scope=agent:claude",
		"true; stile ext list --scope ag":          "true; stile ext list --scope agent:claude",
		"stile ext list --scope agent:claude --j":  "stile ext list --scope agent:claude --json",
		"stile inspect to":                         "stile inspect tool.ts",
		"stile inspect --wit other.wit --nothing ": "stile inspect --wit other.wit --nothing tool.ts",
	}
	folder := t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, "tool.ts"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	h.env = append(h.env, "TERM=dumb", "PS1=> ", "HISTFILE=/dev/null", "HOME="+folder, "XDG_CONFIG_HOME="+folder+"/.config", "XDG_DATA_HOME="+folder+"/.local", "LC_ALL=C.UTF-8", "CDPATH=")
	t.Run("bash", func(t *testing.T) {
		inShell(t, h, folder, lines, "source <(stile completion bash)", "bash", "--norc", "--noprofile", "-i")
	})
	t.Run("zsh", func(t *testing.T) {
		inShell(t, h, folder, lines, "autoload -Uz compinit; compinit -u -D; source <(stile completion zsh)", "zsh", "-f", "-i")
	})
	t.Run("fish", func(t *testing.T) {
		fish, err := exec.LookPath("fish")
		if err != nil {
			t.Skip("completion in fish NOT TESTED: it is not installed")
		}
		for line, want := range lines {
			c := exec.CommandContext(h.ctx, fish, "--no-config", "-c", "stile completion fish | source; complete -C "+"'"+line+"'")
			c.Env, c.Dir = h.env, folder
			out, err := c.CombinedOutput()
			if err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			word, _, _ := strings.Cut(strings.TrimSuffix(string(out), "\n"), "\t")
			if last := want[strings.LastIndexByte(want, ' ')+1:]; word != last || strings.Count(string(out), "\n") != 1 {
				t.Errorf("%s: %q, not %q", line, out, last)
			}
		}
	})
}

// inShell types lines with a tab after each at an interactive shell, and has the shell print what they became.
func inShell(t *testing.T, h *home, folder string, lines map[string]string, setup string, shell ...string) {
	t.Helper()
	program, err := exec.LookPath(shell[0])
	if err != nil {
		t.Skipf("completion in %s NOT TESTED: it is not installed", shell[0])
	}
	person, terminal, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	if err := pty.Setsize(terminal, &pty.Winsize{Rows: 40, Cols: 500}); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithTimeout(h.ctx, 2*time.Minute)
	defer stop()
	c := exec.CommandContext(ctx, program, shell[1:]...)
	c.Env, c.Dir = h.env, folder
	c.Stdin, c.Stdout, c.Stderr = terminal, terminal, terminal
	c.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := errors.Join(c.Start(), terminal.Close()); err != nil {
		t.Fatal(err)
	}
	said := bufio.NewReader(person)
	var all strings.Builder
	until := func(end string) string {
		from := all.Len()
		for !strings.HasSuffix(all.String()[from:], end) {
			b, err := said.ReadByte()
			if err != nil {
				t.Fatalf("%v; it said %q", err, all.String())
			}
			all.WriteByte(b)
		}
		return all.String()[from:]
	}
	enter := func(text string) {
		if _, err := io.WriteString(person, text); err != nil {
			t.Fatal(err)
		}
	}
	enter(setup + "; echo rea''dy\r")
	until("ready\r\n")
	for line, want := range lines {
		// Control-A goes to the beginning of the line, and Control-E to its end.
		enter(line + "\t\x01echo 'GOT''<\x05>'\r")
		until("GOT<")
		if got := strings.TrimRight(strings.TrimSuffix(until(">"), ">"), " "); got != want {
			t.Errorf("%s: %q, not %q", line, got, want)
		}
	}
	enter("exit\r")
	_ = c.Wait() // with the code of the last command
	_ = person.Close()
}
