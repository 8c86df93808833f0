package lease_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stilehost/stile/internal/lease"
)

func Example() {
	dir, err := os.MkdirTemp("", "holders")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = os.RemoveAll(dir) }()
	h, err := lease.New(dir)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(lease.Ended(dir, h.Name))
	if err := h.Close(); err != nil {
		fmt.Println(err)
	}
	fmt.Println(lease.Ended(dir, h.Name))
	// Output:
	// false
	// true
}

// The test binary starts itself to be another process, with what it does and a folder.
const otherEnv = "STILE_TEST_HOLDERS"

func TestMain(m *testing.M) {
	if does, dir, ok := strings.Cut(os.Getenv(otherEnv), " "); ok {
		if err := other(does, dir); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// other makes a holder and waits until the standard input ends, or makes many, one after the other.
func other(does, dir string) error {
	if does == "hold" {
		h, err := lease.New(dir)
		if err != nil {
			return err
		}
		fmt.Println(h.Name)
		_, err = io.Copy(io.Discard, os.Stdin)
		return err
	}
	for range 5000 {
		h, err := lease.New(dir)
		if err != nil {
			return err
		}
		_, err = os.Lstat(filepath.Join(dir, "holder-"+h.Name+".lock"))
		if err := errors.Join(err, h.Close()); err != nil {
			return err
		}
	}
	return nil
}

func process(t *testing.T, does, dir string) (c *exec.Cmd, out *bufio.Reader) {
	t.Helper()
	c = exec.CommandContext(context.WithoutCancel(t.Context()), os.Args[0])
	c.Env, c.Stderr = append(os.Environ(), otherEnv+"="+does+" "+dir), os.Stderr
	_, err := c.StdinPipe() // it is open until Wait
	if err != nil {
		t.Fatal(err)
	}
	pipe, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	return c, bufio.NewReader(pipe)
}

// files are the names in a folder.
func files(t *testing.T, dir string) (names []string) {
	t.Helper()
	list, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range list {
		names = append(names, f.Name())
	}
	return names
}

// TestSweep has a process that is killed, and one that lives.
func TestSweep(t *testing.T) {
	dir := t.TempDir()
	killed, out := process(t, "hold", dir)
	name, err := out.ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	mine, err := lease.New(dir)
	if err != nil {
		t.Fatal(err)
	}
	const others = "holder-of-keys.lock"
	if err := os.WriteFile(filepath.Join(dir, others), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := lease.Sweep(dir); err != nil || len(files(t, dir)) != 3 {
		t.Errorf("%q is left of two that live, %v", files(t, dir), err)
	}
	if err := killed.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = killed.Wait()
	if err := lease.Sweep(dir); err != nil {
		t.Error(err)
	}
	want := []string{"holder-" + mine.Name + ".lock", others}
	slices.Sort(want)
	if got := files(t, dir); !slices.Equal(got, want) || !lease.Ended(dir, strings.TrimSpace(name)) || lease.Ended(dir, mine.Name) {
		t.Errorf("%q is left, want %q", got, want)
	}
	if err := mine.Close(); err != nil {
		t.Error(err)
	}
}

// TestSweepWhileOthersBegin has two processes make holders while this one sweeps: none of them has a file that is not there.
func TestSweepWhileOthersBegin(t *testing.T) {
	dir := t.TempDir()
	done := make(chan error, 2)
	for range cap(done) {
		c, out := process(t, "begin", dir)
		go func() {
			_, err := io.Copy(io.Discard, out)
			done <- errors.Join(err, c.Wait())
		}()
	}
	for left := cap(done); left > 0; {
		select {
		case err := <-done:
			left--
			if err != nil {
				t.Error(err)
			}
		default:
			if err := lease.Sweep(dir); err != nil {
				t.Error(err)
			}
		}
	}
	if left := files(t, dir); len(left) > 0 {
		t.Errorf("%q is left", left)
	}
}

// TestForged has names and files that no holder made.
func TestForged(t *testing.T) {
	dir := t.TempDir()
	outside := filepath.Join(dir, "holder-x.lock")
	if err := os.WriteFile(outside, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	inside := filepath.Join(dir, "in")
	if err := os.Mkdir(inside, 0o700); err != nil {
		t.Fatal(err)
	}
	if !lease.Ended(inside, "../x") {
		t.Error("a name with a path is a holder")
	}
	if _, err := os.Stat(outside); err != nil {
		t.Error("a file elsewhere was removed")
	}
	if err := os.Symlink(outside, filepath.Join(inside, "holder-link.lock")); err != nil {
		t.Fatal(err)
	}
	lease.Ended(inside, "link")
	if _, err := os.Stat(outside); err != nil {
		t.Error("a link was followed")
	}
}

func TestUptime(t *testing.T) {
	boot, at, err := lease.Uptime()
	if err != nil {
		t.Fatal(err)
	}
	again, later, err := lease.Uptime()
	if err != nil || again != boot || later < at || later > at+time.Hour {
		t.Errorf("%s %v, then %s %v, %v", boot, at, again, later, err)
	}
}
