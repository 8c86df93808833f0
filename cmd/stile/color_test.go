package main

import (
	"bufio"
	"errors"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/creack/pty"

	"github.com/stilehost/stile/extension"
	"github.com/stilehost/stile/extension/trial"
)

// TestColor checks when there is colour.
func TestColor(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "missing.ts")
	for _, c := range []struct {
		name     string
		args     []string
		env      map[string]string
		terminal bool
		want     bool
	}{
		{"terminal", nil, nil, true, true},
		{"pipe", nil, nil, false, false},
		{"NO_COLOR", nil, map[string]string{"NO_COLOR": "1"}, true, false},
		{"empty NO_COLOR", nil, map[string]string{"NO_COLOR": ""}, true, true},
		{"dumb", nil, map[string]string{"TERM": "dumb"}, true, false},
		{"CLICOLOR", nil, map[string]string{"CLICOLOR": "0"}, true, false},
		{"CLICOLOR_FORCE", nil, map[string]string{"CLICOLOR_FORCE": "1"}, false, true},
		{"CLICOLOR_FORCE=0", nil, map[string]string{"CLICOLOR_FORCE": "0"}, false, false},
		{"NO_COLOR and CLICOLOR_FORCE", nil, map[string]string{"CLICOLOR_FORCE": "1", "NO_COLOR": "1"}, true, false},
		{"never", []string{"--color=never"}, nil, true, false},
		{"never, in two words", []string{"--color", "never"}, nil, true, false},
		{"always", []string{"--color=always"}, nil, false, true},
		{"always, with NO_COLOR", []string{"--color=always"}, map[string]string{"NO_COLOR": "1"}, false, true},
		{"always, on a dumb terminal", []string{"--color=always"}, map[string]string{"TERM": "dumb"}, true, true},
		{"auto", []string{"--color=auto"}, nil, false, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			for name, value := range map[string]string{"NO_COLOR": "", "CLICOLOR": "", "CLICOLOR_FORCE": "", "TERM": "xterm"} {
				t.Setenv(name, value)
			}
			for name, value := range c.env {
				t.Setenv(name, value)
			}
			read, write, err := os.Pipe()
			if c.terminal {
				read, write, err = pty.Open()
			}
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = errors.Join(read.Close(), write.Close()) })
			code := run(append([]string{"run", missing}, c.args...), &streams{in: strings.NewReader(""), out: io.Discard, err: write})
			line, err := bufio.NewReader(read).ReadString('\n')
			if err != nil || code != 2 {
				t.Fatal(code, err)
			}
			if got := strings.HasPrefix(line, red+"stile:"+plain+" "); got != c.want || strings.Contains(line, "\x1b") != c.want {
				t.Errorf("it says %q", line)
			}
		})
	}
}

// ours are the sequences that this program writes.
var ours = regexp.MustCompile("\x1b\\[(0|31|32|33)m")

// TestColorIsOurs checks that no sequence of a guest gets out with ours, and that only words of ours have colour.
func TestColorIsOurs(t *testing.T) {
	const hostile = "ok \x1b[2J\x1b]0;title\x07\nok  forged\nfailed  forged\n+ forged\nstile: warning: forged"
	var out, errs strings.Builder
	s := &streams{in: strings.NewReader(""), out: &out, err: &errs, color: "always"}
	failed := extension.Problem{File: hostile, Text: "printed", Fix: "none"}
	text := s.outcomes(testsText([]trial.Result{{Name: hostile, Tool: "add", Problem: &failed}, {Name: "good", Tool: "add", Passed: true}}))
	if strings.Contains(ours.ReplaceAllString(text, ""), "\x1b") || strings.Count(text, red) != 1 || strings.Count(text, green) != 1 {
		t.Errorf("tests: %q", text)
	}
	dir := t.TempDir()
	t.Setenv("STILE_HOME", dir)
	name := filepath.Join(dir, "a\x1b[2J\nstile: warning: b.ts")
	if code := run([]string{"run", name, "--color=always"}, s); code != 2 {
		t.Fatal(code)
	}
	if said := errs.String(); strings.Contains(ours.ReplaceAllString(said, ""), "\x1b") || strings.Contains(said, yellow) {
		t.Errorf("errors: %q", said)
	}
}
