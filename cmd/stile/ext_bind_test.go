package main

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"strings"
	"syscall"
	"testing"

	"github.com/creack/pty"
)

// TestBindAsks checks that a person at a terminal sees what a binding gives before a call gets it, and that the call gets nothing without a yes.
func TestBindAsks(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	dir := h.extensionWith("keeps", "1.0.0", `{"mine": {"workspace": {"path": "/", "access": "read-write"}}}`, `await env.mine.write("a.txt", "written"); return 1;`)
	h.stile("ext", "add", dir)
	h.approveAll()
	for _, tt := range []struct {
		answer string
		code   int
	}{{"n", 1}, {"y", 0}} {
		person, terminal, err := pty.Open()
		if err != nil {
			t.Fatal(err)
		}
		c := h.command("ext", "call", "keeps_get", "--bind", "mine=workspace:other,rw", "--color=never")
		var out bytes.Buffer
		c.Stdin, c.Stdout, c.Stderr = terminal, &out, terminal
		c.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		said, err := bufio.NewReader(person).ReadString(']')
		if err != nil || !strings.Contains(said, "nobody has approved") || !strings.Contains(said, "may read, write and remove files in the workspace other") {
			t.Errorf("it asks %q, %v", said, err)
		}
		if _, err := io.WriteString(person, tt.answer+"\n"); err != nil {
			t.Fatal(err)
		}
		_ = c.Wait()
		if code := c.ProcessState.ExitCode(); code != tt.code {
			t.Errorf("%s: exit code %d: %s", tt.answer, code, &out)
		}
		list := h.command("ws", "cat", "other/a.txt").Run()
		if (list == nil) != (tt.answer == "y") {
			t.Errorf("%s: the file: %v", tt.answer, list)
		}
		_ = errors.Join(person.Close(), terminal.Close())
	}
	if log := h.stile("audit", "list", "--json"); strings.Count(log, `"kind": "override"`) != 1 {
		t.Errorf("the audit log has %s", log)
	}
	h.stile("audit", "verify")
}
