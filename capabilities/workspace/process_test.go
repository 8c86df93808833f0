package workspace

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestMain also serves as the other processes of the tests below: STILE_TEST_ROLE says which.
func TestMain(m *testing.M) {
	var work func(*Directory) error
	switch role := os.Getenv("STILE_TEST_ROLE"); role {
	case "":
		os.Exit(m.Run())
	case "steps":
		work = func(d *Directory) error {
			for i := 0; ; i++ {
				if err := step(context.Background(), d, i); err != nil {
					return err
				}
				fmt.Println("done", i)
			}
		}
	default:
		work = func(d *Directory) error { return appendLines(context.Background(), d, role) }
	}
	s, err := Open(context.Background(), os.Getenv("STILE_TEST_FILE"), Options{})
	if err == nil {
		err = errors.Join(work(s.Workspace("w")), s.Close())
	}
	if err != nil {
		panic(err)
	}
}

// child is a process of this test binary that works on a workspace in file.
func child(t *testing.T, role, file string) *exec.Cmd {
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), "STILE_TEST_ROLE="+role, "STILE_TEST_FILE="+file)
	cmd.Stderr = os.Stderr
	return cmd
}

// step changes a workspace in a way that depends on i and on what the steps before i left.
func step(ctx context.Context, d *Directory, i int) error {
	switch i % 7 {
	case 0:
		return d.Write(ctx, fmt.Sprintf("f/%d", i%21), strings.Repeat(fmt.Sprintf("%d ", i), 1+i*997%40_000))
	case 1:
		return d.Append(ctx, "log", fmt.Sprintf("%d\n", i))
	case 2:
		return d.Copy(ctx, "f", fmt.Sprintf("c%d", i%2))
	case 3:
		return d.Move(ctx, fmt.Sprintf("c%d", (i-1)%2), "m/n")
	case 4:
		return d.Edit(ctx, fmt.Sprintf("m/n/%d", (i-4)%21), nil)
	case 5:
		return d.Append(ctx, fmt.Sprintf("m/n/%d", (i-5)%21), strings.Repeat("tail", i%20_000))
	default:
		return d.Remove(ctx, "m", true)
	}
}

// TestKill kills a process while it writes. Afterwards the workspace must be sound and stand exactly after the last
// acknowledged step, or after the one that was under way.
func TestKill(t *testing.T) {
	file := filepath.Join(t.TempDir(), "ws.db")
	model := opened(t, Options{}).Workspace("w")
	for round := range 20 {
		cmd := child(t, "steps", file)
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		kill := 1 + rand.N(100)
		done := 0
		for lines := bufio.NewScanner(out); lines.Scan(); {
			if want := fmt.Sprint("done ", done); lines.Text() != want {
				t.Fatalf("got %q, want %q", lines.Text(), want)
			}
			if done++; done == kill {
				if err := cmd.Process.Kill(); err != nil {
					t.Fatal(err)
				}
			}
		}
		_ = cmd.Wait() // "signal: killed"
		if done < kill {
			t.Fatalf("round %d: the child stopped after %d steps", round, done)
		}

		s, err := Open(t.Context(), file, Options{})
		if err != nil {
			t.Fatalf("round %d: %v", round, err)
		}
		sound(t, s)
		got := dump(t, s.Workspace("w"))
		for i := range done {
			if err := step(t.Context(), model, i); err != nil {
				t.Fatal(err)
			}
		}
		if !maps.Equal(got, dump(t, model)) {
			if err := step(t.Context(), model, done); err != nil {
				t.Fatal(err)
			}
			if !maps.Equal(got, dump(t, model)) {
				t.Errorf("round %d: killed after step %d, the workspace is in another state", round, done)
			}
		}
		for _, d := range []*Directory{s.Workspace("w"), model} { // empty both for the next round
			for path := range dump(t, d) {
				if strings.LastIndexByte(path, '/') == 0 {
					if err := d.Remove(t.Context(), path, true); err != nil {
						t.Fatal(err)
					}
				}
			}
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

const linesEach = 100

func appendLines(ctx context.Context, d *Directory, name string) error {
	for i := range linesEach {
		if err := d.Append(ctx, "log", fmt.Sprintf("%s %d\n", name, i)); err != nil {
			return err
		}
		if err := d.Write(ctx, fmt.Sprintf("of/%s/%d", name, i), name); err != nil {
			return err
		}
	}
	return nil
}

// TestSeveralProcesses lets processes race to make a store and to write to one file in it.
func TestSeveralProcesses(t *testing.T) {
	file := filepath.Join(t.TempDir(), "ws.db")
	names := []string{"a", "b", "here"}
	var children []*exec.Cmd
	for _, name := range names[:2] {
		cmd := child(t, name, file)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		children = append(children, cmd)
	}
	s, err := Open(t.Context(), file, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	d := s.Workspace("w")
	if err := appendLines(t.Context(), d, names[2]); err != nil {
		t.Fatal(err)
	}
	for _, cmd := range children {
		if err := cmd.Wait(); err != nil {
			t.Error(err)
		}
	}
	sound(t, s)
	next := map[string]int{}
	for line := range strings.Lines(read(t, d, "log")) {
		name, _, _ := strings.Cut(line, " ")
		if want := fmt.Sprintf("%s %d\n", name, next[name]); line != want {
			t.Fatalf("line %q, want %q", line, want)
		}
		next[name]++
	}
	for _, name := range names {
		if next[name] != linesEach {
			t.Errorf("%d lines of %s, want %d", next[name], name, linesEach)
		}
	}
	if got, want := len(dump(t, d)), 2+len(names)*(1+linesEach); got != want {
		t.Errorf("%d files and directories, want %d", got, want)
	}
}
