package workspace

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/capabilities/blob"
	"github.com/stilehost/stile/internal/sqlite"
)

// beside writes small files into a workspace of its own until its input ends, and says how many.
func beside(s *Store) error {
	done := make(chan struct{})
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		close(done)
	}()
	fmt.Println("begun")
	for n := 0; ; n++ {
		select {
		case <-done:
			fmt.Println(n)
			return nil
		default:
		}
		if err := s.Workspace("beside").Write(context.Background(), fmt.Sprint(n%10), fmt.Sprint(n)); err != nil {
			return err
		}
	}
}

// bushy makes a directory of 64 times 50 files.
func bushy(t testing.TB, d *Directory, path string) {
	t.Helper()
	for i := range 50 {
		write(t, d, fmt.Sprint(path, "/0/", i), fmt.Sprint("content ", i))
	}
	for have := 1; have < 64; have *= 2 {
		for i := range have {
			if err := d.Copy(t.Context(), fmt.Sprint(path, "/", i), fmt.Sprint(path, "/", have+i)); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// TestNoOperationHoldsTheLock does every operation that writes to a large workspace beside a second process that writes to the same store.
// Each transaction changes a bounded number of rows, and the second process never fails.
func TestNoOperationHoldsTheLock(t *testing.T) {
	file := filepath.Join(t.TempDir(), "ws.db")
	s, err := Open(t.Context(), file, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	d := s.Workspace("w")
	bushy(t, d, "dir")
	large := make([]byte, 6<<20)
	for i := range large {
		large[i] = 'a' + byte((i+i>>16)%26) // no two pieces are the same
	}
	content := blob.New("", large)
	write(t, d, "large", "before "+string(large))

	cmd := child(t, "beside", file)
	input, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	cmd.Stdout = &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}

	var snapshot uint64
	ctx := t.Context()
	for _, op := range []struct {
		name string
		// least is the fewest transactions that show that it was done in parts.
		least int
		do    func(ctx context.Context) error
	}{
		{"write", 1, func(ctx context.Context) error { return d.Write(ctx, "small", "x") }},
		{"append", 1, func(ctx context.Context) error { return d.Append(ctx, "small", "x") }},
		{"write a large file", 3, func(ctx context.Context) error { return d.WriteBlob(ctx, "large2", content) }},
		{"append to a large file", 1, func(ctx context.Context) error { return d.Append(ctx, "large2", "x") }},
		{"edit", 1, func(ctx context.Context) error { return d.Edit(ctx, "small", []Replacement{{"xx", "y"}}) }},
		{"edit a large file", 3, func(ctx context.Context) error { return d.Edit(ctx, "large", []Replacement{{"before", "after"}}) }},
		{"make directories", 1, func(ctx context.Context) error { return d.MakeDirectory(ctx, strings.Repeat("x/", 200)+"x") }},
		{"make a link", 1, func(ctx context.Context) error { return d.MakeLink(ctx, "link", "small") }},
		{"set the mode", 1, func(ctx context.Context) error { return d.SetMode(ctx, "small", 0o700) }},
		{"snapshot", 6, func(ctx context.Context) (err error) { snapshot, err = d.Snapshot(ctx); return err }},
		{"copy", 6, func(ctx context.Context) error { return d.Copy(ctx, "dir", "copy") }},
		{"move", 6, func(ctx context.Context) error { return d.Move(ctx, "dir", "moved") }},
		{"remove", 6, func(ctx context.Context) error { return d.Remove(ctx, "moved", true) }},
		{"restore", 1, func(ctx context.Context) error {
			all, err := d.History(ctx, "small")
			if err != nil {
				return err
			}
			return d.Restore(ctx, "small", all[0].ID)
		}},
		{"restore the snapshot", 12, func(ctx context.Context) error { return d.RestoreSnapshot(ctx, snapshot) }},
		{"restore it again", 6, func(ctx context.Context) error { return d.RestoreSnapshot(ctx, snapshot) }},
		{"remove the snapshot", 6, func(ctx context.Context) error { return d.RemoveSnapshot(ctx, snapshot) }},
		{"prune all history", 12, func(ctx context.Context) error {
			s.options.HistoryBytes = 1
			return d.Write(ctx, "small", "last")
		}},
	} {
		t.Run(op.name, func(t *testing.T) {
			transactions, most := 0, int64(0)
			ctx := sqlite.Observe(ctx, func() func(int64) {
				transactions++
				return func(changes int64) { most = max(most, changes) }
			})
			if err := op.do(ctx); err != nil {
				t.Fatal(err)
			}
			if transactions < op.least {
				t.Errorf("%d transactions, want at least %d", transactions, op.least)
			}
			if most > 8*defaultBatch {
				t.Errorf("one of %d transactions changed %d rows", transactions, most)
			}
			t.Logf("%d transactions, at most %d rows in one", transactions, most)
		})
	}
	if err := errors.Join(input.Close(), cmd.Wait()); err != nil {
		t.Errorf("the second process: %v", err)
	}
	var n int
	if _, err := fmt.Sscanf(out.String(), "begun\n%d", &n); err != nil || n == 0 {
		t.Errorf("the second process wrote %q files, %v", out.String(), err)
	}
	if got, err := d.Read(ctx, "large"); err != nil || got != "after "+string(large) {
		t.Errorf("%d bytes, %v", len(got), err)
	}
	sound(t, s)
}

// TestUnfinished ends operations after each of their transactions. Whoever comes next, in a view or an update, through another Store,
// finds them done or not begun.
func TestUnfinished(t *testing.T) {
	operations := map[string]func(ctx context.Context, d *Directory, snapshot uint64) error{
		"copy":             func(ctx context.Context, d *Directory, _ uint64) error { return d.Copy(ctx, "a", "b/c") },
		"move":             func(ctx context.Context, d *Directory, _ uint64) error { return d.Move(ctx, "a", "b/c") },
		"remove":           func(ctx context.Context, d *Directory, _ uint64) error { return d.Remove(ctx, "a", true) },
		"snapshot":         func(ctx context.Context, d *Directory, _ uint64) error { _, err := d.Snapshot(ctx); return err },
		"restore snapshot": func(ctx context.Context, d *Directory, id uint64) error { return d.RestoreSnapshot(ctx, id) },
		"remove snapshot":  func(ctx context.Context, d *Directory, id uint64) error { return d.RemoveSnapshot(ctx, id) },
		"write": func(ctx context.Context, d *Directory, _ uint64) error {
			return d.Write(ctx, "a/0", strings.Repeat("x", 5<<20))
		},
	}
	for name, operation := range operations {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "ws.db")
			results := map[string]int{}
			for n := 1; ; n++ {
				s, err := Open(t.Context(), file+fmt.Sprint(n), Options{})
				if err != nil {
					t.Fatal(err)
				}
				d := s.Workspace("w")
				for i := range 4 {
					write(t, d, fmt.Sprint("a/", i), "first")
				}
				snapshot, err := d.Snapshot(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				write(t, d, "a/4", "later")
				if err := errors.Join(d.Remove(t.Context(), "a/1", false), d.Write(t.Context(), "a/2", "other")); err != nil {
					t.Fatal(err)
				}
				s.batch = 1
				transactions := 0
				ctx, cancel := context.WithCancel(t.Context())
				failed := operation(sqlite.Observe(ctx, func() func(int64) {
					transactions++
					return func(int64) {
						if transactions == n {
							cancel()
						}
					}
				}), d, snapshot)
				cancel()
				if failed != nil && !errors.Is(failed, context.Canceled) {
					t.Fatal(failed)
				}
				other, err := Open(t.Context(), file+fmt.Sprint(n), Options{})
				if err != nil {
					t.Fatal(err)
				}
				taken, err := other.Workspace("w").Snapshots(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				now := fmt.Sprint(len(taken), dump(t, other.Workspace("w")))
				if len(now) > 5<<20 {
					now = "large"
				}
				results[now]++
				sound(t, other)
				if err := errors.Join(other.sweep(t.Context()), other.Close(), s.Close()); err != nil {
					t.Fatal(err)
				}
				if transactions < n {
					break
				}
			}
			if len(results) > 2 {
				t.Errorf("%d states were seen, want those before and after: %v", len(results), results)
			}
			t.Log(results)
		})
	}
}

// TestLimitsOfLargeDirectories refuses before it begins what would not fit.
func TestLimitsOfLargeDirectories(t *testing.T) {
	s := opened(t, Options{Files: 20, Bytes: 200})
	s.batch = 2
	d := s.Workspace("w")
	for i := range 9 {
		write(t, d, fmt.Sprint("dir/", i), "0123456789")
	}
	before := dump(t, d)
	snapshot, err := d.Snapshot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	write(t, d, "dir/9", "0123456789")
	expect(t, "copy", d.Copy(t.Context(), "dir", "copy"), abi.ErrExhausted, "files and directories: limit 20, needed 22")
	expect(t, "move", d.Move(t.Context(), "dir", strings.Repeat("x/", 2046)+"xx"), abi.ErrInvalid, "a path below the target would have")
	if err := d.Remove(t.Context(), "dir", true); err != nil {
		t.Fatal(err)
	}
	write(t, d, "big", strings.Repeat("x", 150))
	if err := d.RestoreSnapshot(t.Context(), snapshot); err != nil { // big goes
		t.Fatal(err)
	}
	if got := dump(t, d); fmt.Sprint(got) != fmt.Sprint(before) {
		t.Errorf("got %v", got)
	}
}
