package npm

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// A process that is killed leaves files in the temporary folder, perhaps a login. The next process removes them, but no folder in use.
func TestKilled(t *testing.T) {
	const inChild = "TEST_NPM_KILLED"
	if npm := os.Getenv(inChild); npm != "" {
		c, err := New(Options{NPM: npm})
		if err != nil {
			t.Fatal(err)
		}
		login := "//registry.example.com/:_authToken=canary"
		c.user = &userSettings{npmrc: login}
		_, err = resolve(t, c, map[string]string{"p": "1"})
		t.Fatal(err)
	}
	temporary, dir := t.TempDir(), t.TempDir()
	t.Setenv("TMPDIR", temporary)
	npm, pid := filepath.Join(dir, "npm"), filepath.Join(dir, "pid")
	if err := errors.Join(syscall.Mkfifo(pid, 0o600), os.WriteFile(npm, []byte("#!/bin/sh\necho $$ >"+pid+"\nexec sleep 1000\n"), 0o700)); err != nil {
		t.Fatal(err)
	}
	child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestKilled$")
	child.Env = append(os.Environ(), inChild+"="+npm)
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(pid)
	if err != nil {
		t.Fatal(err)
	}
	group, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = syscall.Kill(-group, syscall.SIGKILL) }()
	sweep := func() (left []string) {
		left, err := filepath.Glob(filepath.Join(temporary, "stile-npm-*", "npmrc"))
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range left {
			long := time.Now().Add(-time.Hour)
			if err := os.Chtimes(filepath.Dir(name), long, long); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := New(Options{}); err != nil {
			t.Fatal(err)
		}
		left, _ = filepath.Glob(filepath.Join(temporary, "stile-npm-*"))
		return left
	}
	if left := sweep(); len(left) != 1 {
		t.Errorf("of a process that runs, there is %q", left)
	}
	if err := child.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = child.Wait()
	if left := sweep(); len(left) > 0 {
		t.Errorf("of a process that was killed, there is %q", left)
	}
}
