package workspace

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stilehost/stile/internal/sqlite"
)

func openedStore(t *testing.T, file string) *Store {
	t.Helper()
	s, err := Open(t.Context(), file, Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// TestRecentFollowsOthers reads what another process writes, as soon as it has been written.
func TestRecentFollowsOthers(t *testing.T) {
	file := filepath.Join(t.TempDir(), "db")
	ours, theirs := openedStore(t, file).Workspace("w"), openedStore(t, file).Workspace("w")
	for i, text := range []string{"one\n", "two\n", "two\nthree\n", ""} {
		var err error
		if i == 2 {
			err = theirs.Append(t.Context(), "a/b", "three\n")
		} else {
			err = theirs.Write(t.Context(), "a/b", text)
		}
		if err != nil {
			t.Fatal(err)
		}
		for range 2 { // the second time from memory
			got, err := ours.Read(t.Context(), "a/b")
			found, failed := ours.Grep(t.Context(), ".", Search{}, 10, nil)
			if err := errors.Join(err, failed); err != nil || got != text || len(found.Matches) != strings.Count(text, "\n") {
				t.Fatalf("after %q: read %q, found %v, %v", text, got, found.Matches, err)
			}
		}
	}
}

// TestRecentIsCommitted reads a content in a transaction that is rolled back. The next content gets the same number.
func TestRecentIsCommitted(t *testing.T) {
	s := openedStore(t, filepath.Join(t.TempDir(), "db"))
	d := s.Workspace("w")
	undone := errors.New("undone")
	var lost int64
	err := d.update(t.Context(), "write", func(o *op) error {
		if err := o.put("/a", nil, 4, strings.NewReader("lost")); err != nil {
			return err
		}
		text, err := o.text("/a")
		if err != nil || text != "lost" {
			t.Errorf("read %q, %v", text, err)
		}
		n, err := o.lookup("/a")
		if err != nil {
			return err
		}
		all := map[int64][]byte{}
		err = o.contents([]*node{n}, all)
		if lost = n.bytes; err != nil || string(all[lost]) != "lost" {
			t.Errorf("read %q, %v", all[lost], err)
		}
		return undone
	})
	if !errors.Is(err, undone) {
		t.Fatal(err)
	}
	if err := d.Write(t.Context(), "a", "kept"); err != nil {
		t.Fatal(err)
	}
	err = d.view(t.Context(), "read", func(o *op) error {
		n, err := o.lookup("/a")
		if err == nil && n.bytes != lost {
			t.Errorf("the numbers are %d and %d, so this test shows nothing", lost, n.bytes)
		}
		return err
	})
	text, failed := d.Read(t.Context(), "a")
	if err := errors.Join(err, failed); err != nil || text != "kept" {
		t.Fatalf("read %q, %v", text, err)
	}
}

// TestRecentIsBounded keeps contents of each size, also larger ones that another program made.
func TestRecentIsBounded(t *testing.T) {
	held := func(r *recent) (n int) {
		for _, some := range []map[int64][]byte{r.now, r.old} {
			for _, bytes := range some {
				n += recentEach + len(bytes)
			}
		}
		return n
	}
	for _, size := range []int{0, 1, 1000, chunkSize} {
		var r recent
		number := int64(3*recentBytes/(recentEach+size) + 10)
		for id := range number {
			r.put(id, make([]byte, size))
			if _, has := r.get(0); !has {
				t.Fatalf("contents of %d bytes: what is always used was forgotten after %d", size, id)
			}
		}
		if got := held(&r); got > recentBytes || got < recentBytes/2-2*(recentEach+size) {
			t.Errorf("contents of %d bytes: %d bytes are held", size, got)
		}
		if _, has := r.get(number - 1); !has {
			t.Errorf("contents of %d bytes: the newest is not kept", size)
		}
		r.put(-1, make([]byte, 2*recentBytes))
		if got := held(&r); got > recentBytes {
			t.Errorf("contents of %d bytes: %d bytes are held after a large one", size, got)
		}
	}
}

// TestRecentIsUsed reads small files without asking for their contents.
func TestRecentIsUsed(t *testing.T) {
	s := openedStore(t, filepath.Join(t.TempDir(), "db"))
	d := s.Workspace("w")
	if err := d.Write(t.Context(), "a", "text"); err != nil {
		t.Fatal(err)
	}
	if text, err := d.Read(t.Context(), "a"); err != nil || text != "text" {
		t.Fatal(text, err)
	}
	if err := s.db.Update(t.Context(), func(c *sqlite.Conn) error { // as no program of ours does
		_, err := c.Exec(context.WithoutCancel(t.Context()), `UPDATE content SET bytes = x'00'`)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	found, err := d.Grep(t.Context(), "text", Search{}, 1, nil)
	if text, failed := d.Read(t.Context(), "a"); errors.Join(err, failed) != nil || text != "text" || len(found.Matches) != 1 {
		t.Errorf("read %q, found %v, %v", text, found, err)
	}
}

// TestWrittenIsRecent keeps what this process gave to a file, once it is committed.
func TestWrittenIsRecent(t *testing.T) {
	s := openedStore(t, filepath.Join(t.TempDir(), "db"))
	d := s.Workspace("w")
	undone := errors.New("undone")
	var lost int64
	if err := d.Write(t.Context(), "a", "one"); err != nil {
		t.Fatal(err)
	}
	err := d.update(t.Context(), "write", func(o *op) error {
		n, err := o.lookup("/a")
		if err == nil {
			err = o.put("/a", n, 4, strings.NewReader("lost"))
		}
		lost = o.files.(*tree).replaced.content
		return errors.Join(err, undone)
	})
	if !errors.Is(err, undone) {
		t.Fatal(err)
	}
	if bytes, has := s.recent.get(lost); has {
		t.Errorf("%q is kept, which was never committed", bytes)
	}
	for _, text := range []string{"two", "three"} {
		if err := d.Write(t.Context(), "a", text); err != nil {
			t.Fatal(err)
		}
		err := d.view(t.Context(), "read", func(o *op) error {
			n, err := o.lookup("/a")
			if err != nil {
				return err
			}
			if bytes, has := s.recent.get(n.bytes); !has || string(bytes) != text {
				t.Errorf("after %q: %q, %v", text, bytes, has)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}
