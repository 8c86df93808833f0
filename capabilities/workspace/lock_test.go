package workspace

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/capabilities/blob"
	"github.com/stilehost/stile/internal/sqlite"
	"github.com/stilehost/stile/internal/sqlite/sqlitetest"
)

// TestBeside is the second process of TestNoOperationHoldsTheLock.
func TestBeside(t *testing.T) {
	sqlitetest.Beside(t, func(file string) (func(int) error, func() error, error) {
		s, err := Open(t.Context(), file, Options{})
		if err != nil {
			return nil, nil, err
		}
		d := s.Workspace("beside")
		return func(n int) error { return d.Write(t.Context(), fmt.Sprint(n%10), fmt.Sprint(n)) }, s.Close, nil
	})
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

// huge makes a file of the default maximum size minus some bytes, from one repeated piece.
func huge(t testing.TB, s *Store, workspace, name string) {
	t.Helper()
	const pieces = 1<<30/chunkSize - 1
	digest := sha256.Sum256(make([]byte, chunkSize))
	if err := s.db.Update(t.Context(), func(c *sqlite.Conn) error {
		id, err := newContent(t.Context(), c)
		for _, statement := range []string{
			`INSERT INTO piece (digest, bytes) VALUES (?2, zeroblob(65536)) ON CONFLICT DO NOTHING`,
			`INSERT INTO content (id, size) VALUES (?1, ?3 * 65536)`,
			`INSERT INTO part WITH RECURSIVE n (i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i + 1 < ?3) SELECT ?1, i, (SELECT id FROM piece WHERE digest = ?2) FROM n`,
			`INSERT INTO node (workspace, parent, name, kind, size, modified, mode, content, target) VALUES (?4, '', ?5, 0, ?3 * 65536, 0, 420, ?1, '')`,
		} {
			if err == nil {
				_, err = c.Exec(t.Context(), statement, id, digest[:], pieces, workspace, name)
			}
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
}

// TestNoOperationHoldsTheLock runs every operation that writes to a large workspace, while a second process writes to the same store.
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

	huge(t, s, "h", "huge")
	much := make([]byte, abi.MaxText) // as ASCII
	_, _ = rand.NewChaCha8([32]byte{}).Read(much)
	for i := range much {
		much[i] &= 0x7f
	}

	var snapshot uint64
	ctx := t.Context()
	var operations []sqlitetest.Operation
	for _, o := range []struct {
		name  string
		least int
		do    func(ctx context.Context) error
	}{
		{"write", 1, func(ctx context.Context) error { return d.Write(ctx, "small", "x") }},
		{"append", 1, func(ctx context.Context) error { return d.Append(ctx, "small", "x") }},
		{"write a large file", 3, func(ctx context.Context) error { return d.WriteBlob(ctx, "large2", content) }},
		{"append to a large file", 1, func(ctx context.Context) error { return d.Append(ctx, "large2", "x") }},
		{"append to a huge file", 1, func(ctx context.Context) error { return s.Workspace("h").Append(ctx, "huge", "x") }},
		{"append to it again", 1, func(ctx context.Context) error { return s.Workspace("h").Append(ctx, "huge", "x") }},
		{"remove a huge file", 1, func(ctx context.Context) error {
			s.options.HistoryBytes = 1
			defer func() { s.options.HistoryBytes = 1 << 30 }()
			return s.Workspace("h").Remove(ctx, "huge", false)
		}},
		{"append much", 6, func(ctx context.Context) error { return d.Append(ctx, "large2", string(much)) }},
		{"append much to a new file", 6, func(ctx context.Context) error { return d.Append(ctx, "large3", string(much)) }},
		{"replace", 1, func(ctx context.Context) error { _, err := d.Replace(ctx, "replaced", "xx", nil); return err }},
		{"replace with a large text", 3, func(ctx context.Context) error {
			_, err := d.Replace(ctx, "replaced", string(much), new(digestOf("xx")))
			return err
		}},
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
		operations = append(operations, sqlitetest.Operation{Name: o.name, Least: o.least, Rows: 8 * defaultBatch, Do: o.do})
	}
	sqlitetest.HoldNoLock(t, s.db, file, "TestBeside", operations)
	if got, err := d.Read(ctx, "large"); err != nil || got != "after "+string(large) {
		t.Errorf("%d bytes, %v", len(got), err)
	}
	sound(t, s)
}

// TestNoOperationHoldsTheLockForPaths runs operations for which the writer must look up or create as many entries as paths and links can name, while
// a second process writes to the same store. It also runs operations on a directory beside many others with longer names of the same prefix.
func TestNoOperationHoldsTheLockForPaths(t *testing.T) {
	file := filepath.Join(t.TempDir(), "ws.db")
	s, err := Open(t.Context(), file, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	d := s.Workspace("w")
	directory := func(path string) {
		t.Helper()
		makeAbove(t, d, path)
		if err := d.MakeDirectory(t.Context(), path); err != nil {
			t.Fatal(err)
		}
	}
	link := func(path, target string) {
		t.Helper()
		if err := d.MakeLink(t.Context(), path, target); err != nil {
			t.Fatal(err)
		}
	}
	beside := "a-" + strings.Repeat("/"+strings.Repeat("n", maxName), 15)
	far := "f" + strings.TrimPrefix(beside, "a-")
	for path, entries := range map[string]int{beside: 20_000, far: 600} {
		directory(path)
		if err := s.db.Update(t.Context(), func(c *sqlite.Conn) error {
			_, err := c.Exec(t.Context(), `INSERT INTO node (workspace, parent, name, kind, size, modified) WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?)
				SELECT 'w', '/' || ?, i, 1, 0, 0 FROM n`, entries, path)
			return err
		}); err != nil {
			t.Fatal(err)
		}
	}
	sub, err := d.Sub("f")
	if err != nil {
		t.Fatal(err)
	}
	var snapshot uint64
	for i := range 600 {
		write(t, d, fmt.Sprint("a/", i), "")
		write(t, d, fmt.Sprint("a/b/", i), "")
	}
	deep := strings.Repeat("x/", maxPath/2-1-maxMade)
	directory(deep)
	for i := range maxLinks + 1 {
		link(fmt.Sprint("long", i), strings.Repeat("x/../", 800)+fmt.Sprint("long", i+1))
		link(fmt.Sprint("down", i), strings.Repeat("x/", 800)+strings.Repeat("../", 800)+fmt.Sprint("down", i+1))
		link(fmt.Sprint("short", i), strings.Repeat("x/../", (maxFollowed/maxLinks-1)/2)+fmt.Sprint("short", i+1))
	}
	middle := deep[:maxPath/2-8]
	link(middle+"link", strings.Repeat("../x/", maxFollowed/2-1)+"../file")
	var operations []sqlitetest.Operation
	for _, o := range []struct {
		name  string
		least int
		do    func(ctx context.Context) error
		err   error
	}{
		{"write through short links", 1, func(ctx context.Context) error { return d.Write(ctx, "short1", "x") }, nil},
		{"write through long links", 1, func(ctx context.Context) error { return d.Write(ctx, "long1", "x") }, abi.ErrInvalid},
		{"write down and up again", 1, func(ctx context.Context) error { return d.Write(ctx, "down1", "x") }, abi.ErrInvalid},
		{"write through a link far down", 1, func(ctx context.Context) error { return d.Write(ctx, middle+"link", "x") }, nil},
		{"move through links", 1, func(ctx context.Context) error { return d.Move(ctx, "down1/x", "long1/x") }, abi.ErrInvalid},
		{"make all directories of a path", 1, func(ctx context.Context) error { return d.MakeDirectory(ctx, strings.Repeat("y/", maxPath/2)) }, abi.ErrInvalid},
		{"write below all of them", 1, func(ctx context.Context) error { return d.Write(ctx, strings.Repeat("y/", maxPath/2-1)+"y", "x") }, abi.ErrInvalid},
		{"make as many as there can be", 1, func(ctx context.Context) error { return d.MakeDirectory(ctx, strings.Repeat("y/", maxMade)) }, nil},
		{"make as many far down", 1, func(ctx context.Context) error { return d.MakeDirectory(ctx, deep+strings.Repeat("y/", maxMade)) }, nil},
		{"make the directories of a handle", 1, func(ctx context.Context) error {
			sub, err := s.Workspace("other").Sub(strings.Repeat("y/", maxPath/2-2))
			if err != nil {
				return err
			}
			return sub.Write(ctx, "x", "")
		}, abi.ErrInvalid},
		{"make the directories of a handle and of a path", 1, func(ctx context.Context) error {
			sub, err := s.Workspace("other").Sub(strings.Repeat("y/", maxMade))
			if err != nil {
				return err
			}
			return sub.MakeDirectory(ctx, strings.Repeat("z/", 2))
		}, abi.ErrInvalid},
		{"copy", 3, func(ctx context.Context) error { return d.Copy(ctx, "a", "copy") }, nil},
		{"move", 3, func(ctx context.Context) error { return d.Move(ctx, "a", "moved") }, nil},
		{"move back", 3, func(ctx context.Context) error { return d.Move(ctx, "moved", "a") }, nil},
		{"remove", 3, func(ctx context.Context) error { return d.Remove(ctx, "a", true) }, nil},
		{"snapshot of long paths", 5, func(ctx context.Context) (err error) { snapshot, err = sub.Snapshot(ctx); return err }, nil},
		{"copy long paths", 5, func(ctx context.Context) error { return d.Copy(ctx, "f", "g") }, nil},
		{"move long paths", 5, func(ctx context.Context) error { return d.Move(ctx, "f", "h") }, nil},
		{"restore long paths", 5, func(ctx context.Context) error { return sub.RestoreSnapshot(ctx, snapshot) }, nil},
		{"restore them again", 5, func(ctx context.Context) error { return sub.RestoreSnapshot(ctx, snapshot) }, nil},
		{"remove long paths", 5, func(ctx context.Context) error { return d.Remove(ctx, "h", true) }, nil},
		{"remove a snapshot of long paths", 5, func(ctx context.Context) error { return sub.RemoveSnapshot(ctx, snapshot) }, nil},
	} {
		operations = append(operations, sqlitetest.Operation{Name: o.name, Least: o.least, Rows: 8 * defaultBatch, Do: o.do, Err: o.err})
	}
	sqlitetest.HoldNoLock(t, s.db, file, "TestBeside", operations)
	for i := range 600 {
		for _, name := range []string{fmt.Sprint("copy/", i), fmt.Sprint("copy/b/", i)} {
			if got := read(t, d, name); got != "" {
				t.Errorf("%s: %q", name, got)
			}
		}
	}
	sound(t, s)
}

// TestUnfinished interrupts operations after each of their transactions. The next view or update, through another Store,
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
				failed := operation(sqlite.Observe(ctx, func() func(sqlite.Work) {
					transactions++
					return func(sqlite.Work) {
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

// TestLimitsOfLargeDirectories checks that an operation over a limit is refused before it begins.
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
	expect(t, "move", d.Move(t.Context(), "dir", strings.Repeat("/"+strings.Repeat("x", maxName), maxPath/(maxName+1))), abi.ErrInvalid, "a path below the target would have")
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

// TestAppendShares appends to large files whose contents begin with those of others, and removes them in any order.
func TestAppendShares(t *testing.T) {
	for _, batch := range []int{1, 3, defaultBatch} {
		s := opened(t, Options{Revisions: 5})
		s.batch = batch
		d := s.Workspace("w")
		random := rand.New(rand.NewPCG(uint64(batch), 0))
		data := make([]byte, 3<<20)
		for i := range data {
			data[i] = 'a' + byte(random.IntN(26))
		}
		contents := map[string]string{}
		for n := range 120 {
			name := fmt.Sprint(random.IntN(3))
			switch more := string(data[:random.IntN(abi.MaxBytes)]); random.IntN(12) {
			case 0:
				if _, err := d.Snapshot(t.Context()); err != nil {
					t.Fatal(err)
				}
			case 1:
				to := fmt.Sprint(random.IntN(3))
				if err := d.Copy(t.Context(), name, to); err == nil {
					contents[to] = contents[name]
				}
			case 2:
				if err := d.Remove(t.Context(), name, false); err == nil {
					delete(contents, name)
				}
			case 3:
				if all, err := d.History(t.Context(), name); err == nil && len(all) > 0 {
					past := all[random.IntN(len(all))].ID
					content, err := d.ReadRevision(t.Context(), name, past)
					if err != nil {
						t.Fatal(err)
					}
					text, err := content.Text(t.Context(), abi.MaxText)
					if err := errors.Join(err, content.Close(), d.Restore(t.Context(), name, past)); err != nil {
						t.Fatal(err)
					}
					contents[name] = text
				}
			case 4, 5:
				if len(contents[name]) > 8<<20 {
					continue
				}
				more = string(data[random.IntN(2*chunkSize):])
				fallthrough
			default:
				if err := d.Append(t.Context(), name, more); err != nil {
					t.Fatal(err)
				}
				contents[name] += more
			}
			if want, is := contents[name]; is {
				from := random.IntN(len(want) + 1)
				part, err := d.ReadBytes(t.Context(), name, uint64(from), abi.MaxBytes)
				if err != nil || string(part) != want[from:min(from+abi.MaxBytes, len(want))] || read(t, d, name) != want {
					t.Fatalf("batch %d, step %d: the file is another one from %d on, %v", batch, n, from, err)
				}
			}
		}
		sound(t, s)
		var bases int
		if err := s.db.View(t.Context(), func(c *sqlite.Conn) error { return c.Row(t.Context(), `SELECT count(*) FROM prefix`).Scan(&bases) }); err != nil || (bases > 0) != (batch < defaultBatch) {
			t.Errorf("batch %d: %d contents have a base, %v", batch, bases, err)
		}
		// Unused contents are deleted.
		taken, err := d.Snapshots(t.Context())
		for _, snapshot := range taken {
			err = errors.Join(err, d.RemoveSnapshot(t.Context(), snapshot.ID))
		}
		for name := range contents {
			err = errors.Join(err, d.Remove(t.Context(), name, false))
		}
		s.options.HistoryBytes = 1
		if err := errors.Join(err, d.Write(t.Context(), "small", ""), d.Remove(t.Context(), "small", false)); err != nil {
			t.Fatal(err)
		}
		sound(t, s)
		var left int
		if err := s.db.View(t.Context(), func(c *sqlite.Conn) error {
			return c.Row(t.Context(), `SELECT (SELECT count(*) FROM prefix) + (SELECT count(*) FROM part) + (SELECT count(*) FROM piece) + (SELECT count(*) FROM garbage)`).Scan(&left)
		}); err != nil || left != 0 {
			t.Errorf("batch %d: %d rows are left, %v", batch, left, err)
		}
	}
}
