package turns

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/gofrs/flock"
)

const otherFolder = "STILE_TEST_TURNS" // set in the process that TestProcesses starts

// otherProcess takes the only place when it reads a line, and gives it back at the next one.
func otherProcess(t *testing.T, dir string) {
	Share(dir)
	p := NewNamed("work", 1)
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		if err := p.Take(t.Context()); err != nil {
			t.Fatal(err)
		}
		fmt.Println("taken")
		if !lines.Scan() {
			return
		}
		p.Give()
		fmt.Println("given")
	}
}

// TestProcesses has two processes share a place. Waiting ends with its context. The process that gives the place back and takes it again
// comes after the other one, which then is killed while it has the place.
func TestProcesses(t *testing.T) {
	if dir := os.Getenv(otherFolder); dir != "" {
		otherProcess(t, dir)
		return
	}
	dir := t.TempDir()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	other := exec.CommandContext(ctx, os.Args[0], "-test.run=^TestProcesses$")
	other.Env = append(os.Environ(), otherFolder+"="+dir)
	to, err := other.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	from, err := other.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := other.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(from)
	tell := func() {
		if _, err := io.WriteString(to, "\n"); err != nil {
			t.Fatal(err)
		}
	}
	hear := func(want string) {
		t.Helper()
		if !lines.Scan() || lines.Text() != want {
			t.Fatalf("heard %q instead of %q, %v", lines.Text(), want, lines.Err())
		}
	}

	Share(dir)
	defer folder.Store(nil)
	p := NewNamed("work", 1)
	tell()
	hear("taken")
	gone, end := context.WithCancelCause(t.Context())
	enough := errors.New("enough")
	taken := make(chan error)
	go func() { taken <- p.Take(gone) }()
	queued(t, dir)
	end(enough)
	if err := <-taken; !errors.Is(err, enough) {
		t.Fatalf("beside the other process: %v", err)
	}
	tell()
	hear("given")
	if err := p.Take(ctx); err != nil {
		t.Fatal(err)
	}

	tell()
	queued(t, dir)
	p.Give()
	go func() { taken <- p.Take(ctx) }()
	hear("taken")
	_ = other.Process.Kill() // it waits for a line
	_ = other.Wait()
	if err := <-taken; err != nil {
		t.Fatal(err)
	}
	p.Give()
	if p.free != 1 || len(p.shared) > 0 {
		t.Errorf("%+v", p)
	}
}

// TestGarbageInPlace has folders and a link where the files of a place belong.
func TestGarbageInPlace(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"work.next/a/b", "work.place0/a"} {
		if err := os.MkdirAll(filepath.Join(dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(os.DevNull, filepath.Join(dir, "work.place1")); err != nil {
		t.Fatal(err)
	}
	Share(dir)
	defer folder.Store(nil)
	p := NewNamed("work", 2)
	for range 2 {
		if err := p.Take(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"work.next", "work.place0", "work.place1"} {
		if info, err := os.Lstat(filepath.Join(dir, name)); err != nil || !info.Mode().IsRegular() {
			t.Errorf("%s: %v, %v", name, info, err)
		}
	}
	p.Give()
	p.Give()
}

// queued returns when somebody is next.
func queued(t *testing.T, dir string) {
	t.Helper()
	for {
		next := flock.New(filepath.Join(dir, "work.next"))
		free, err := next.TryLock()
		if err = errors.Join(err, next.Close()); err != nil {
			t.Fatal(err)
		}
		if !free {
			return
		}
		runtime.Gosched()
	}
}

func BenchmarkShared(b *testing.B) {
	Share(b.TempDir())
	defer folder.Store(nil)
	p := NewNamed("work", 1)
	for b.Loop() {
		if err := p.Take(b.Context()); err != nil {
			b.Fatal(err)
		}
		p.Give()
	}
}
