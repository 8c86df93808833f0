package workspace

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// TestListingsFollow has two processes change a workspace, and compares what each has in memory with the database after each change.
func TestListingsFollow(t *testing.T) {
	dir := t.TempDir()
	rapid.Check(t, func(r *rapid.T) {
		file := filepath.Join(dir, fmt.Sprintf("db%d", rapid.Uint64().Draw(r, "file")))
		defer func() {
			for _, end := range []string{"", "-wal", "-shm"} {
				_ = os.Remove(file + end)
			}
		}()
		var stores [2]*Store
		for i := range stores {
			s, err := Open(t.Context(), file, Options{Revisions: 2})
			if err != nil {
				r.Fatal(err)
			}
			defer func() { _ = s.Close() }() // a fault would show in what it lists
			stores[i] = s
		}
		path := rapid.Custom(func(r *rapid.T) string {
			return strings.Join(rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", "a-b"}), 1, 3).Draw(r, "names"), "/")
		})
		for range rapid.IntRange(1, 30).Draw(r, "changes") {
			d := stores[rapid.IntRange(0, 1).Draw(r, "process")].Workspace("w")
			one, other, text := path.Draw(r, "path"), path.Draw(r, "other"), rapid.StringMatching(`[a-z]{0,8}`).Draw(r, "text")
			ctx := t.Context()
			var err error // many changes are refused
			switch rapid.IntRange(0, 10).Draw(r, "change") {
			case 0, 1, 2:
				err = d.Write(ctx, one, text)
			case 3:
				err = d.Append(ctx, one, text)
			case 4:
				err = d.Move(ctx, one, other)
			case 5:
				err = d.Copy(ctx, one, other)
			case 6:
				err = d.Remove(ctx, one, true)
			case 7:
				err = d.SetMode(ctx, one, 0o600)
			case 8:
				err = d.MakeLink(ctx, one, text)
			case 9:
				var all []Revision
				if all, err = d.History(ctx, one); err == nil && len(all) > 0 {
					err = d.Restore(ctx, one, all[0].ID)
				}
			case 10:
				var digest *string
				if now, err := d.ReadWithDigest(ctx, one, 0); err == nil {
					digest = &now.Digest
				}
				_, err = d.Replace(ctx, one, text, digest)
			}
			r.Log(one, other, text, err)
			for i, s := range stores {
				err := s.Workspace("w").view(ctx, "list", func(o *op) error {
					return sameListings(o.files.(*tree), "", func(path string, got, want any) {
						r.Fatalf("process %d: %q has %v in memory, and %v in the database", i, path, got, want)
					})
				})
				if err != nil {
					r.Fatal(err)
				}
			}
		}
	})
}

// sameListings compares a directory and all below it with the database, in pages of two too.
func sameListings(t *tree, path string, differ func(path string, got, want any)) error {
	for range 2 { // the second time from memory
		want, err := t.list(path, "", 100)
		if err != nil {
			return err
		}
		got, err := t.entries(path, "", 100)
		if err != nil {
			return err
		}
		if len(got)+len(want) > 0 && !reflect.DeepEqual(got, want) {
			differ(path, got, want)
		}
		for _, e := range append(want, dirent{Entry: Entry{Name: "none"}}) {
			n, err := t.lookup(path + "/" + e.Name)
			if err != nil {
				return err
			}
			if !reflect.DeepEqual(n, e.node) {
				differ(path+"/"+e.Name, n, e.node)
			}
		}
		var pages []dirent
		for after := ""; ; after = pages[len(pages)-1].Name {
			page, err := t.entries(path, after, 2)
			if err != nil {
				return err
			}
			if pages = append(pages, page...); len(page) < 2 {
				break
			}
		}
		if len(pages)+len(want) > 0 && !reflect.DeepEqual(pages, want) {
			differ(path, pages, want)
		}
		for _, e := range want {
			if e.Status.Kind == KindDirectory {
				if err := sameListings(t, path+"/"+e.Name, differ); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// TestListingsAreUsed lists a directory again after a file in it got another content.
func TestListingsAreUsed(t *testing.T) {
	s := openedStore(t, filepath.Join(t.TempDir(), "db"))
	d := s.Workspace("w")
	known := func() (version int64, all []dirent) {
		if of := s.listings.all["w"]; of != nil {
			return of.version, of.directories["/a"]
		}
		return 0, nil
	}
	for _, text := range []string{"one", "three", ""} {
		if err := d.Write(t.Context(), "a/b", text); err != nil {
			t.Fatal(err)
		}
		if version, all := known(); text != "one" && (version == 0 || len(all) != 1 || all[0].Status.Size != uint64(len(text))) {
			t.Errorf("after the write of %q, version %d has %v", text, version, all)
		}
		if _, err := d.List(t.Context(), "a", 10, nil); err != nil {
			t.Fatal(err)
		}
	}
	if err := d.Write(t.Context(), "a/c", ""); err != nil {
		t.Fatal(err)
	}
	before, _ := known()
	if _, err := d.List(t.Context(), "a", 10, nil); err != nil {
		t.Fatal(err)
	}
	if now, all := known(); now != before+1 || len(all) != 2 {
		t.Errorf("after a new file, version %d has %v, and there was version %d", now, all, before)
	}
}

// TestListingsWithin has a transaction look at what it has changed itself, and then fail.
func TestListingsWithin(t *testing.T) {
	s := openedStore(t, filepath.Join(t.TempDir(), "db"))
	d := s.Workspace("w")
	write(t, d, "a", "")
	look := func(f files, want int) {
		t.Helper()
		n, err := f.lookup("/b")
		all, listed := f.entries("", "", 10)
		if err != nil || listed != nil || (n != nil) != (want == 2) || len(all) != want {
			t.Errorf("got %v, %v and %v, %v, want %d entries", n, err, all, listed, want)
		}
	}
	undone := errors.New("undone")
	if err := d.volume.update(t.Context(), "", func(f files) error {
		look(f, 1)
		look(f, 1) // from memory
		if err := f.makeDirectory("/b"); err != nil {
			return err
		}
		look(f, 2)
		return undone
	}); !errors.Is(err, undone) {
		t.Fatal(err)
	}
	if err := d.volume.view(t.Context(), "", func(f files) error { look(f, 1); return nil }); err != nil {
		t.Fatal(err)
	}
}

// TestListingsAreBounded keeps directories of any size.
func TestListingsAreBounded(t *testing.T) {
	for _, entries := range []int{0, 1, 1000, 100_000} {
		var l listings
		held := func() (n int) {
			for workspace, of := range l.all {
				for directory, all := range of.directories {
					n += listingEach + len(workspace) + len(directory)
					for _, e := range all {
						n += listingEach + len(e.Name)
					}
				}
			}
			return n
		}
		all := make([]dirent, entries)
		for i := range all {
			all[i] = dirent{Entry{Name: fmt.Sprintf("%08d", i)}, &node{}}
		}
		for i := range 3 * listingBytes / (listingEach * (entries + 1)) {
			l.put(fmt.Sprint("w", i%7), int64(1+i/1000), fmt.Sprint("/", i), all)
			if got := held(); i%100 == 0 && got > listingBytes {
				t.Fatalf("directories of %d entries: %d bytes are held", entries, got)
			}
		}
		if got := held(); got > listingBytes {
			t.Errorf("directories of %d entries: %d bytes are held", entries, got)
		}
	}
}

// TestChangesAreCounted makes sure that each statement of a transaction goes through exec, which forgets what was counted.
func TestChangesAreCounted(t *testing.T) {
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasSuffix(file, "_test.go") {
			n += bytes.Count(text, []byte(".conn.Exec("))
		}
	}
	if n != 1 {
		t.Errorf("%d statements of transactions are executed without exec, besides one in it", n-1)
	}
}
