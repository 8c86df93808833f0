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
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/internal/sqlite"
	"github.com/stilehost/stile/internal/sqlite/sqlitetest"
)

// TestMain also runs the other processes of the tests below. STILE_TEST_ROLE selects one.
func TestMain(m *testing.M) {
	var work func(*Store) error
	switch role := os.Getenv("STILE_TEST_ROLE"); role {
	case "":
		os.Exit(sqlitetest.InMemory(m.Run))
	case "steps":
		work = func(s *Store) error { return steps(s, os.Getenv("STILE_TEST_SEED")) }
	case "full":
		work = fill
	default:
		work = func(s *Store) error { return appendLines(context.Background(), s.Workspace("w"), role) }
	}
	s, err := Open(context.Background(), os.Getenv("STILE_TEST_FILE"), stepOptions)
	if err == nil {
		lowerBatch(s, os.Getenv("STILE_TEST_BATCH"))
		err = errors.Join(work(s), s.Close())
	}
	if err != nil {
		panic(err)
	}
}

// lowerBatch limits the files that a store handles in one transaction, if the number is set.
func lowerBatch(s *Store, batch string) {
	if n, err := strconv.Atoi(batch); err == nil {
		s.batch = n
	}
}

// child is a process of this test binary that works on a workspace in file.
func child(t *testing.T, role, file string) *exec.Cmd {
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), "STILE_TEST_ROLE="+role, "STILE_TEST_FILE="+file)
	cmd.Stderr = os.Stderr
	return cmd
}

// stepOptions make revisions come and go.
var stepOptions = Options{Revisions: 2, HistoryBytes: 1 << 20}

// steps does random operations and says of each that it is done, until it is killed.
func steps(s *Store, seed string) error {
	n, err := strconv.ParseUint(seed, 10, 64)
	if err != nil {
		return err
	}
	random := rand.New(rand.NewPCG(n, 0))
	for i := 0; ; i++ {
		step(context.Background(), s.Workspace("w"), random)
		fmt.Println("done", i)
	}
}

// step does one random operation, which may be refused: the same random numbers and state give the same.
func step(ctx context.Context, d *Directory, random *rand.Rand) {
	path := func() string { return fmt.Sprintf("%c/%c", 'a'+random.IntN(4), 'a'+random.IntN(6)) }
	text := strings.Repeat(fmt.Sprint(random.IntN(100)), random.IntN(3)*random.IntN(50_000))
	switch p := path(); random.IntN(13) {
	case 0, 1, 2:
		_ = d.Write(ctx, p, text)
	case 3, 4:
		_ = d.Append(ctx, p, text)
	case 5:
		_ = d.Copy(ctx, p, path())
	case 6:
		_ = d.Move(ctx, p, path())
	case 7:
		_ = d.Copy(ctx, p[:1], path()[:1])
	case 8:
		_ = d.Remove(ctx, p[:1+random.IntN(2)*2], true)
	case 9:
		_, _ = d.Snapshot(ctx)
	case 10:
		if all, err := d.Snapshots(ctx); err == nil && len(all) > 0 {
			_ = d.RestoreSnapshot(ctx, all[0].ID)
		}
	case 11:
		if all, err := d.Snapshots(ctx); err == nil && len(all) > 1 {
			_ = d.RemoveSnapshot(ctx, all[1].ID)
		}
	default:
		if all, err := d.History(ctx, p); err == nil && len(all) > 0 {
			_ = d.Restore(ctx, p, all[len(all)-1].ID)
		}
	}
}

// state is all that a workspace holds: files, their history, and how many snapshots.
func state(t *testing.T, d *Directory) map[string]string {
	t.Helper()
	all := dump(t, d)
	for a := range 4 {
		for b := range 6 {
			path := fmt.Sprintf("%c/%c", 'a'+a, 'a'+b)
			all["history of "+path] = fmt.Sprintf("%q", revisions(t, d, path))
		}
	}
	taken, err := d.Snapshots(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	all["snapshots"] = fmt.Sprint(len(taken))
	return all
}

// TestKill kills a process at random moments of 1,000 random operations. Each time the store must be sound and hold exactly
// what the operations that were acknowledged left, or those and the one under way.
func TestKill(t *testing.T) {
	t.Run("whole", func(t *testing.T) { testKill(t, 700, "") })
	t.Run("in parts", func(t *testing.T) { testKill(t, 300, "1") }) // each operation on a directory takes several transactions
}

func testKill(t *testing.T, operations int, batch string) {
	for total := 0; total < operations; {
		file := filepath.Join(t.TempDir(), "ws.db")
		seed := rand.Uint64()
		cmd := child(t, "steps", file)
		cmd.Env = append(cmd.Env, fmt.Sprint("STILE_TEST_SEED=", seed), "STILE_TEST_BATCH="+batch)
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
			if done++; done == kill { // the child is at work on the next one, or the one after that
				if err := cmd.Process.Kill(); err != nil {
					t.Fatal(err)
				}
			}
		}
		_ = cmd.Wait() // "signal: killed"
		if done < kill {
			t.Fatalf("the child stopped after %d operations", done)
		}
		total += done

		s, err := Open(t.Context(), file, stepOptions)
		if err != nil {
			t.Fatal(err)
		}
		lowerBatch(s, batch)
		sound(t, s)
		got := state(t, s.Workspace("w"))
		same := opened(t, stepOptions)
		lowerBatch(same, batch) // the order in which history is made and forgotten depends on it
		model := same.Workspace("w")
		random := rand.New(rand.NewPCG(seed, 0))
		for range done {
			step(t.Context(), model, random)
		}
		if !maps.Equal(got, state(t, model)) {
			step(t.Context(), model, random)
			if !maps.Equal(got, state(t, model)) {
				t.Errorf("seed %d: killed after operation %d, the workspace is in another state", seed, done)
			}
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// fill writes until the disk is full, with a limit on the size of files in its place; then it must go on.
func fill(s *Store) error {
	ctx, d := context.Background(), s.Workspace("w")
	signal.Ignore(syscall.SIGXFSZ)
	const limit = 4 << 20
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: limit, Max: limit}); err != nil {
		return err
	}
	failed := 0
	for i := range 400 {
		text := strings.Repeat(fmt.Sprintf("%06d ", i), 3000*(1+i%10))
		switch err := d.Write(ctx, fmt.Sprint("f", i), text); {
		case err == nil:
			fmt.Println("kept", i)
		case errors.Is(err, abi.ErrUnavailable):
			failed++
		default:
			return fmt.Errorf("full: %w", err)
		}
	}
	if failed == 0 {
		return errors.New("the disk was never full")
	}
	if _, err := d.Read(ctx, "f0"); err != nil {
		return fmt.Errorf("read while full: %w", err)
	}
	return s.Check(ctx)
}

// A full disk is an error, and what was acknowledged before and after it is there.
func TestDiskFull(t *testing.T) {
	file := filepath.Join(t.TempDir(), "ws.db")
	out, err := child(t, "full", file).Output()
	if err != nil {
		t.Fatal(err)
	}
	s, err := Open(t.Context(), file, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	sound(t, s)
	d := s.Workspace("w")
	kept := 0
	for line := range strings.Lines(string(out)) {
		var i int
		if _, err := fmt.Sscanf(line, "kept %d", &i); err != nil {
			t.Fatal(err)
		}
		if want := strings.Repeat(fmt.Sprintf("%06d ", i), 3000*(1+i%10)); read(t, d, fmt.Sprint("f", i)) != want {
			t.Errorf("file %d is another", i)
		}
		kept++
	}
	if all := findAll(t, d, "*", 1000); len(all) != kept || kept == 0 {
		t.Errorf("%d files, %d were acknowledged", len(all), kept)
	}
	write(t, d, "after", strings.Repeat("x", 1<<20))
}

// The same within one process, at each number of pages up to what is needed.
func TestNoMorePages(t *testing.T) {
	s := opened(t, Options{})
	d := s.Workspace("w")
	write(t, d, "kept", strings.Repeat("k", 100_000))
	before := dump(t, d)
	bound := func(pages int) {
		t.Helper()
		err := s.db.Update(t.Context(), func(c *sqlite.Conn) error {
			var now int
			return c.Row(t.Context(), fmt.Sprintf(`PRAGMA max_page_count = %d`, pages)).Scan(&now)
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for pages, failed := 1, 0; ; pages += 7 { // never less than there are
		bound(pages)
		err := d.Write(t.Context(), "new", strings.Repeat("n", 300_000))
		if err == nil {
			if failed == 0 {
				t.Error("it was never full")
			}
			break
		}
		expect(t, "write", err, abi.ErrUnavailable, "full")
		if failed++; !maps.Equal(dump(t, d), before) {
			t.Fatalf("at %d pages something else changed", pages)
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
