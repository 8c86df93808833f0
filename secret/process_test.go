package secret

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestMain also serves as the other processes of the tests below: STILE_TEST_ROLE says which.
func TestMain(m *testing.M) {
	work := map[string]func(context.Context, *Store) error{
		"steps": func(ctx context.Context, s *Store) error {
			for i := 0; ; i++ {
				if err := s.Set(ctx, "step", fmt.Sprint(i, strings.Repeat(" ", i*997%MaxValue))); err != nil {
					return err
				}
				fmt.Println("done", i)
			}
		},
		"names": func(ctx context.Context, s *Store) error {
			for i := range 20 {
				if err := s.Set(ctx, fmt.Sprintf("p%d-%d", os.Getpid(), i), "x"); err != nil {
					return err
				}
			}
			return nil
		},
		"full": func(ctx context.Context, s *Store) error {
			none := syscall.Rlimit{}
			if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &none); err != nil {
				return err
			}
			if err := s.Set(ctx, "github", "canary that does not fit"); !errors.Is(err, syscall.EFBIG) {
				return fmt.Errorf("got %w", err)
			}
			return nil
		},
	}[os.Getenv("STILE_TEST_ROLE")]
	if work == nil {
		os.Exit(m.Run())
	}
	ctx := context.Background()
	s, err := Open(ctx, os.Getenv("STILE_TEST_DIR"), Options{})
	if err == nil {
		err = errors.Join(work(ctx, s), s.Close())
	}
	if err != nil {
		panic(err)
	}
}

func child(t *testing.T, role, dir string) *exec.Cmd {
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), "STILE_TEST_ROLE="+role, "STILE_TEST_DIR="+dir)
	cmd.Stderr = os.Stderr
	return cmd
}

// TestKill kills a process while it writes, also while it makes the store. Afterwards the store is sound, and holds the last
// value that was acknowledged or the one that was under way.
func TestKill(t *testing.T) {
	for round := range 20 {
		dir := t.TempDir()
		cmd := child(t, "steps", dir)
		out, err := cmd.StdoutPipe()
		must(t, err)
		must(t, cmd.Start())
		kill, done := rand.N(30), 0
		for lines := bufio.NewScanner(out); lines.Scan(); done++ {
			if done == kill {
				must(t, cmd.Process.Kill())
			}
		}
		_ = cmd.Wait() // "signal: killed"
		s := opened(t, dir, Options{})
		got, err := s.Get(t.Context(), "step")
		must(t, err)
		number := strings.TrimSpace(got)
		if number != fmt.Sprint(done-1) && number != fmt.Sprint(done) {
			t.Fatalf("round %d: %s after %d steps", round, number, done)
		}
		must(t, s.Set(t.Context(), "step", "again")) // what the process left does not stand in the way
		files, err := filepath.Glob(filepath.Join(dir, "*"))
		if err != nil || len(files) != 4 {
			t.Fatalf("round %d: left %v, %v", round, files, err)
		}
	}
}

// TestProcesses has several processes make one store and fill it. Nothing is lost.
func TestProcesses(t *testing.T) {
	dir := t.TempDir()
	children := make([]*exec.Cmd, 4)
	for i := range children {
		children[i] = child(t, "names", dir)
		must(t, children[i].Start())
	}
	for _, c := range children {
		must(t, c.Wait())
	}
	entries, err := opened(t, dir, Options{}).List(t.Context())
	if err != nil || len(entries) != 80 {
		t.Fatalf("%d secrets, %v", len(entries), err)
	}
}

// TestFull has no room for what is written.
func TestFull(t *testing.T) {
	dir := filled(t)
	must(t, child(t, "full", dir).Run())
	want(t, opened(t, dir, Options{}), "github", value)
	if _, err := os.Lstat(filepath.Join(dir, File+".tmp")); err == nil {
		t.Error("a part of a file was left")
	}
	empty := t.TempDir()
	must(t, child(t, "full", empty).Run())
	must(t, opened(t, empty, Options{}).Set(t.Context(), "github", value))
}
