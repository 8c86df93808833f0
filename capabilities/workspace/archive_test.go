package workspace

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	_ "modernc.org/sqlite" // the driver "sqlite"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/capabilities/blob"
	"github.com/stilehost/stile/internal/sqlite"
)

// revisions are the stored contents of a path, newest first.
func revisions(t testing.TB, d *Directory, path string) []string {
	t.Helper()
	all, err := d.History(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	var texts []string
	for _, r := range all {
		b, err := d.ReadRevision(t.Context(), path, r.ID)
		if err != nil {
			t.Fatal(err)
		}
		text, err := b.Text(t.Context(), 16<<20)
		if err != nil || uint64(len(text)) != r.Size {
			t.Fatalf("%d bytes of %d, %v", len(text), r.Size, err)
		}
		texts = append(texts, text)
		_ = b.Close()
	}
	return texts
}

func same(t testing.TB, what string, got []string, want ...string) {
	t.Helper()
	if fmt.Sprintf("%q", got) != fmt.Sprintf("%q", want) {
		t.Errorf("%s: got %.200q, want %.200q", what, got, want)
	}
}

func TestHistory(t *testing.T) {
	now := time.UnixMilli(1000)
	d := opened(t, Options{Revisions: 3, Now: func() time.Time { return now }}).Workspace("w")
	ctx := t.Context()
	for i := range 6 {
		now = now.Add(time.Millisecond)
		write(t, d, "f", fmt.Sprint(i))
	}
	same(t, "the last ones", revisions(t, d, "f"), "4", "3", "2")
	all, err := d.History(ctx, "f")
	if err != nil || all[0].Modified != 1005 || all[0].ID <= all[1].ID {
		t.Errorf("%+v, %v", all, err)
	}
	expect(t, "a forgotten revision", d.Restore(ctx, "f", all[2].ID-1), abi.ErrNotFound, "/f has no revision")
	if err := errors.Join(d.Append(ctx, "f", "+"), d.Edit(ctx, "f", []Replacement{{"+", "-"}})); err != nil {
		t.Fatal(err)
	}
	same(t, "append and edit", revisions(t, d, "f"), "5+", "5", "4")
	expect(t, "a revision of another path", d.Restore(ctx, "g", all[0].ID), abi.ErrNotFound, "/g has no revision")
	if _, err := d.Stat(ctx, "g"); !errors.Is(err, abi.ErrNotFound) {
		t.Errorf("it made g: %v", err)
	}

	// A moved file leaves its history behind: its new holder does not get its earlier contents.
	write(t, d, "private/notes", "a secret")
	write(t, d, "private/notes", "fit to be shown")
	if err := d.Move(ctx, "private/notes", "public/notes"); err != nil {
		t.Fatal(err)
	}
	public, err := d.Subdirectory(ctx, "public")
	if err != nil {
		t.Fatal(err)
	}
	same(t, "moved", revisions(t, public, "notes"))
	same(t, "left behind", revisions(t, d, "private/notes"), "fit to be shown", "a secret")

	// A removed file can be restored, with its parent directories.
	if err := d.Remove(ctx, "public", true); err != nil {
		t.Fatal(err)
	}
	all, err = d.History(ctx, "public/notes")
	if err != nil || len(all) != 1 {
		t.Fatalf("%v, %v", all, err)
	}
	if err := d.Restore(ctx, "public/notes", all[0].ID); err != nil || read(t, d, "public/notes") != "fit to be shown" {
		t.Error(err)
	}
	expect(t, "restore over a directory", d.Restore(ctx, "public", all[0].ID), abi.ErrInvalid, "is a directory")
	write(t, d, "executable", "x")
	if err := errors.Join(d.SetMode(ctx, "executable", 0o750), d.Write(ctx, "executable", "y"), d.SetMode(ctx, "executable", 0o600)); err != nil {
		t.Fatal(err)
	}
	all, err = d.History(ctx, "executable")
	if err != nil || len(all) != 1 {
		t.Fatalf("a mode is no content: %v, %v", all, err)
	}
	if err := d.Restore(ctx, "executable", all[0].ID); err != nil {
		t.Fatal(err)
	}
	if s, err := d.Stat(ctx, "executable"); err != nil || s.Mode != 0o750 {
		t.Errorf("%+v, %v", s, err)
	}
	expect(t, "a mode", d.SetMode(ctx, "executable", 0o1777), abi.ErrInvalid, "at most 0o777")
}

func TestHistoryIsBounded(t *testing.T) {
	s := opened(t, Options{HistoryBytes: 100, Files: 10})
	d := s.Workspace("w")
	for i := range 20 {
		write(t, d, "f", fmt.Sprintf("%010d", i))
	}
	if got := revisions(t, d, "f"); len(got) == 0 || len(got) > 10 || got[0] != "0000000018" {
		t.Errorf("%d revisions: %q", len(got), got)
	}
	write(t, d, "big", strings.Repeat("x", 1000))
	write(t, d, "big", "")
	same(t, "what does not fit", revisions(t, d, "big"))
	// Names that come and go are bounded too, although they have no content.
	other := s.Workspace("other")
	for i := range 200 {
		write(t, other, fmt.Sprint(i), "")
		if err := other.Remove(t.Context(), fmt.Sprint(i), false); err != nil {
			t.Fatal(err)
		}
	}
	var n int
	err := s.db.View(t.Context(), func(c *sqlite.Conn) error {
		return c.Row(t.Context(), `SELECT count(*) FROM revision WHERE workspace = 'other'`).Scan(&n)
	})
	if err != nil || n > 40 || n < 20 {
		t.Errorf("%d revisions, %v", n, err)
	}
}

func TestSnapshots(t *testing.T) {
	d := opened(t, Options{Snapshots: 2, Files: 10, Bytes: 1 << 20}).Workspace("w")
	ctx := t.Context()
	sub, err := d.Sub("é/sub")
	if err != nil {
		t.Fatal(err)
	}
	empty, err := sub.Snapshot(ctx)
	if err != nil {
		t.Fatal(err)
	}
	write(t, d, "é/beside", "stays")
	write(t, sub, "dir/f", "1")
	write(t, sub, "x", "file")
	if err := errors.Join(sub.MakeLink(ctx, "l", "x"), sub.SetMode(ctx, "x", 0o700)); err != nil {
		t.Fatal(err)
	}
	full, err := sub.Snapshot(ctx)
	if err != nil {
		t.Fatal(err)
	}
	_, err = sub.Snapshot(ctx)
	expect(t, "a third", err, abi.ErrExhausted, "snapshots: limit 2, needed 3")
	before := dump(t, sub)
	if err := errors.Join(sub.Remove(ctx, "x", false), sub.Write(ctx, "x/now/deep", ""), sub.Move(ctx, "dir", "moved"), sub.Write(ctx, "l2", "")); err != nil {
		t.Fatal(err)
	}
	expect(t, "of another directory", d.RestoreSnapshot(ctx, full), abi.ErrNotFound, "this directory has no snapshot")
	expect(t, "of another directory", d.RemoveSnapshot(ctx, full), abi.ErrNotFound, "this directory has no snapshot")
	if err := sub.RestoreSnapshot(ctx, full); err != nil {
		t.Fatal(err)
	}
	if got := dump(t, sub); !maps.Equal(got, before) {
		t.Errorf("got %q, want %q", got, before)
	}
	if s, err := sub.Stat(ctx, "x"); err != nil || s.Mode != 0o700 {
		t.Errorf("%+v, %v", s, err)
	}
	same(t, "what came later", revisions(t, sub, "moved/f"), "1")
	if err := sub.RestoreSnapshot(ctx, empty); err != nil || len(dump(t, sub)) != 0 || read(t, d, "é/beside") != "stays" {
		t.Errorf("%q, %v", dump(t, d), err)
	}
	all, err := sub.Snapshots(ctx)
	if err != nil || len(all) != 2 || all[0].ID != full || all[0].Files != 4 || all[0].Bytes != 5 {
		t.Errorf("%+v, %v", all, err)
	}
	if err := errors.Join(sub.RemoveSnapshot(ctx, empty), sub.RestoreSnapshot(ctx, full), sub.RemoveSnapshot(ctx, full)); err != nil {
		t.Error(err)
	}
	expect(t, "a removed one", sub.RestoreSnapshot(ctx, full), abi.ErrNotFound, "no snapshot")
	write(t, d, "b1", strings.Repeat("x", 1000))
}

// counts are the numbers of rows in the tables of contents, and of bytes in them.
func counts(t testing.TB, s *Store) (contents, pieces, size int) {
	t.Helper()
	err := s.db.View(t.Context(), func(c *sqlite.Conn) error {
		return c.Row(t.Context(), `SELECT (SELECT count(*) FROM content), (SELECT count(*) FROM piece),
			(SELECT coalesce(sum(length(bytes)), 0) FROM content) + (SELECT coalesce(sum(length(bytes)), 0) FROM piece)`).Scan(&contents, &pieces, &size)
	})
	if err != nil {
		t.Fatal(err)
	}
	return contents, pieces, size
}

func TestContentIsSharedAndCollected(t *testing.T) {
	s := opened(t, Options{Revisions: 2})
	d := s.Workspace("w")
	ctx := t.Context()
	var b bytes.Buffer
	for i := range 8 * chunkSize / 16 {
		fmt.Fprintf(&b, "%015d\n", i)
	}
	content := blob.New("", b.Bytes())
	for i := range 10 {
		if err := errors.Join(d.WriteBlob(ctx, fmt.Sprint("f", i), content), d.Copy(ctx, fmt.Sprint("f", i), fmt.Sprint("copy", i))); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Workspace("other").WriteBlob(ctx, "f", content); err != nil {
		t.Fatal(err)
	}
	if contents, pieces, size := counts(t, s); contents != 11 || pieces != 8 || size != b.Len() {
		t.Errorf("%d contents, %d pieces, %d bytes", contents, pieces, size)
	}
	for i := range 20 { // a growing log shares all but its end with its earlier version
		if err := d.Append(ctx, "f0", fmt.Sprintln("line", i)); err != nil {
			t.Fatal(err)
		}
	}
	if _, pieces, _ := counts(t, s); pieces != 8+3 {
		t.Errorf("%d pieces", pieces)
	}
	snapshot, err := d.Snapshot(ctx)
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range findAll(t, d, "*", 100) {
		if err := d.Remove(ctx, path, true); err != nil {
			t.Fatal(err)
		}
		for range 3 { // pushes it out of the history
			if err := errors.Join(d.Write(ctx, path, ""), d.Remove(ctx, path, false)); err != nil {
				t.Fatal(err)
			}
		}
	}
	if _, pieces, _ := counts(t, s); pieces != 9 { // the snapshot's
		t.Errorf("%d pieces", pieces)
	}
	if err := errors.Join(d.RemoveSnapshot(ctx, snapshot), s.Workspace("other").Remove(ctx, "f", false)); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if err := errors.Join(s.Workspace("other").Write(ctx, "f", ""), s.Workspace("other").Remove(ctx, "f", false)); err != nil {
			t.Fatal(err)
		}
	}
	if _, pieces, size := counts(t, s); pieces != 0 || size != 0 {
		t.Errorf("%d pieces, %d bytes are left", pieces, size)
	}
}

// old makes a store with the first version of the schema.
func old(t *testing.T, file string) {
	t.Helper()
	first := schema
	first.Migrations = first.Migrations[:1]
	db, err := sqlite.Open(t.Context(), file, first)
	if err != nil {
		t.Fatal(err)
	}
	chunk := bytes.Repeat([]byte("0123456789abcdef"), chunkSize/16)
	err = db.Update(t.Context(), func(c *sqlite.Conn) error {
		_, err := c.Exec(t.Context(), `INSERT INTO node VALUES (1, 'w', '', 'dir', 1, 0, 5), (2, 'w', '/dir', 'small', 0, 3, 6),
			(3, 'w', '/dir', 'empty', 0, 0, 7), (4, 'w', '', 'big', 0, 131075, 8), (5, 'w', '', 'one chunk', 0, 65536, 9)`)
		if err == nil {
			_, err = c.Exec(t.Context(), `INSERT INTO chunk VALUES (2, 0, x'616263'), (4, 0, ?1), (4, 1, ?1), (4, 2, x'010203'), (5, 0, ?1)`, chunk)
		}
		return err
	})
	if err := errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
}

func TestMigration(t *testing.T) {
	file := filepath.Join(t.TempDir(), "ws.db")
	old(t, file)
	s, err := Open(t.Context(), file, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	sound(t, s)
	d := s.Workspace("w")
	got := dump(t, d)
	chunk := strings.Repeat("0123456789abcdef", chunkSize/16)
	want := map[string]string{"/dir": "<directory>", "/dir/small": "abc", "/dir/empty": "", "/big": chunk + chunk + "\x01\x02\x03", "/one chunk": chunk}
	if !maps.Equal(got, want) {
		t.Error("the files are others")
	}
	for path, want := range map[string]Status{"dir": {KindDirectory, 0, 5, 0o755}, "big": {KindFile, 131075, 8, 0o644}} {
		if s, err := d.Stat(t.Context(), path); err != nil || s != want {
			t.Errorf("%s: %+v, %v", path, s, err)
		}
	}
	if err := errors.Join(d.Append(t.Context(), "big", "more"), d.Append(t.Context(), "one chunk", "more"), d.Remove(t.Context(), "dir", true)); err != nil {
		t.Fatal(err)
	}
	if read(t, d, "big") != want["/big"]+"more" || read(t, d, "one chunk") != chunk+"more" {
		t.Error("appending to an old file")
	}
	same(t, "history", revisions(t, d, "dir/small"), "abc")
	sound(t, s)
}

func TestNewerSchemaIsRefused(t *testing.T) {
	file := filepath.Join(t.TempDir(), "ws.db")
	newer := schema
	newer.Migrations = slices.Concat(newer.Migrations, []string{`CREATE TABLE later (x TEXT) STRICT`})
	db, err := sqlite.Open(t.Context(), file, newer)
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(t.Context(), file, Options{}); err == nil || !strings.Contains(err.Error(), fmt.Sprintf("its schema has version %d; this program knows versions up to %d", len(newer.Migrations), len(schema.Migrations))) {
		t.Errorf("got %v", err)
	}
}

func TestBackup(t *testing.T) {
	s := opened(t, Options{})
	d := s.Workspace("w")
	write(t, d, "f", "before")
	write(t, d, "f", strings.Repeat("large", chunkSize))
	file := filepath.Join(t.TempDir(), "backup.db")
	if err := s.Backup(t.Context(), file); err != nil {
		t.Fatal(err)
	}
	write(t, d, "f", "after")
	if err := s.Backup(t.Context(), file); !errors.Is(err, os.ErrExist) {
		t.Errorf("over an existing file: %v", err)
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
	back, err := Open(t.Context(), file, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = back.Close() }()
	sound(t, back)
	if got := read(t, back.Workspace("w"), "f"); got != strings.Repeat("large", chunkSize) {
		t.Errorf("%d bytes", len(got))
	}
	same(t, "history", revisions(t, back.Workspace("w"), "f"), "before")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	gone := file + "2"
	if err := s.Backup(ctx, gone); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if _, err := os.Stat(gone); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a failed backup is left: %v", err)
	}
}

// Check detects data that no transaction would have written.
func TestCheckFindsDamage(t *testing.T) {
	for _, damage := range []string{
		`UPDATE usage SET bytes = bytes + 1`, `UPDATE content SET bytes = x'00'`, `UPDATE content SET size = 7`, `DELETE FROM node WHERE name = 'dir'`,
		`PRAGMA foreign_keys = 0; DELETE FROM piece`, `UPDATE piece SET bytes = x'00'`, `INSERT INTO content VALUES (999, 0, x'')`,
		`UPDATE node SET size = 9 WHERE name = 'f'`, `PRAGMA foreign_keys = 0; DROP TRIGGER part_delete; DELETE FROM part WHERE n = 0`,
	} {
		file := filepath.Join(t.TempDir(), "ws.db")
		s, err := Open(t.Context(), file, Options{})
		if err != nil {
			t.Fatal(err)
		}
		d := s.Workspace("w")
		write(t, d, "dir/f", "x")
		write(t, d, "big", strings.Repeat("x", 2*chunkSize+5))
		if err := errors.Join(s.Check(t.Context()), s.Close()); err != nil {
			t.Fatal(err)
		}
		db, err := sql.Open("sqlite", file)
		if err != nil {
			t.Fatal(err)
		}
		_, err = db.ExecContext(t.Context(), damage)
		if err := errors.Join(err, db.Close()); err != nil {
			t.Fatalf("%s: %v", damage, err)
		}
		if s, err = Open(t.Context(), file, Options{}); err != nil {
			t.Fatal(err)
		}
		if err := s.Check(t.Context()); err == nil {
			t.Errorf("not found: %s", damage)
		}
		_ = s.Close()
	}
}

// TestRestoreGoesOverALimit restores a full snapshot, one file at a time. Files that grow come first.
func TestRestoreGoesOverALimit(t *testing.T) {
	s := opened(t, Options{Bytes: 60})
	s.batch = 1
	d := s.Workspace("w")
	write(t, d, "a", strings.Repeat("a", 40))
	write(t, d, "b", strings.Repeat("b", 20))
	id, err := d.Snapshot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	write(t, d, "a", "")
	write(t, d, "b", strings.Repeat("b", 50))
	if err := d.RestoreSnapshot(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	if a, b := read(t, d, "a"), read(t, d, "b"); len(a) != 40 || len(b) != 20 {
		t.Errorf("got %q and %q", a, b)
	}
}
