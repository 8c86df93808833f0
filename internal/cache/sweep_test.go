package cache

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// age makes files older than they are.
func age(t *testing.T, by time.Duration, names ...string) {
	t.Helper()
	for _, name := range names {
		then := time.Now().Add(-by)
		must(t, os.Chtimes(name, then, then))
	}
}

// ageEntry says that an entry was last used a while ago.
func ageEntry(t *testing.T, c *Cache, key string, by time.Duration) {
	t.Helper()
	record, object := files(t, c, "code", key)
	age(t, by, record, object)
}

// sweepNow has the next Put sweep.
func sweepNow(t *testing.T, c *Cache) {
	t.Helper()
	must(t, os.Truncate(filepath.Join(c.dir, locks, sweepFile), c.max/sweepPart/countUnit+1))
}

// count is how many files a folder of the cache has.
func count(t *testing.T, c *Cache, folder string) int {
	t.Helper()
	entries, err := os.ReadDir(filepath.Join(c.dir, folder))
	must(t, err)
	return len(entries)
}

// entry is what an entry with a [content] takes.
const entry = 2 * block

// content is 100 bytes that no other key has.
func content(key string) string { return key + strings.Repeat("-", 100-len(key)) }

func TestSweep(t *testing.T) {
	c := open(t, t.TempDir(), t.TempDir())
	c.max = sweepPart * 100 * countUnit
	for i, key := range []string{"e", "b", "c", "a", "d"} {
		put(t, c, "code", key, content(key))
		ageEntry(t, c, key, time.Duration(10-i)*time.Hour)
	}
	want(t, c, "code", "e", content("e")) // is used, and so no longer the oldest
	leftover := filepath.Join(c.dir, objects, "tmp-x")
	must(t, os.WriteFile(leftover, nil, 0o600))
	age(t, 20*time.Hour, leftover)

	c.max = 3 * entry // so each Put now sweeps
	unlock := c.lockFile(sweepFile)
	held, err := unlock.TryLock()
	if must(t, err); !held {
		t.Fatal("the sweep is locked")
	}
	put(t, c, "code", "f", content("f")) // while another process sweeps
	must(t, unlock.Close())
	for _, key := range []string{"a", "b", "c", "d", "e", "f"} {
		files(t, c, "code", key) // is there: a look at the entry would count as a use
	}
	put(t, c, "code", "g", content("g")) // now seven entries: the four oldest go
	for key, kept := range map[string]bool{"a": false, "b": false, "c": false, "d": false, "e": true, "f": true, "g": true} {
		if kept {
			want(t, c, "code", key, content(key))
		} else {
			want(t, c, "code", key, "")
		}
	}
	if objects, records := count(t, c, objects), count(t, c, "code"); objects != 3 || records != 3 {
		t.Errorf("%d objects and %d records are left", objects, records)
	}
	put(t, c, "code", "a", content("a"))
	want(t, c, "code", "a", content("a"))
}

// Entries of the last hour take no more room than others, and small ones count the blocks that they take on disk.
func TestSweepHoldsTheSize(t *testing.T) {
	c := open(t, t.TempDir(), t.TempDir())
	c.max = sweepPart * countUnit
	var most int64
	for i := range 100 {
		size := 1 // many small ones, and then large ones
		if i >= 50 {
			size = int(c.max / 10)
		}
		put(t, c, "code", fmt.Sprint(i), strings.Repeat(string(rune('0'+i)), size))
		all, err := c.stored(objects)
		must(t, err)
		var takes int64
		for _, o := range all {
			takes += o.takes()
		}
		most = max(most, takes)
	}
	if limit := c.max + c.max/sweepPart + c.max/10; most > limit || most < c.max/2 {
		t.Errorf("it took up to %d bytes, want at most %d", most, limit)
	}
	want(t, c, "code", "99", strings.Repeat(string(rune('0'+99)), int(c.max/10)))
	want(t, c, "code", "0", "")
}

// A file that another process is writing stays. One that is an hour old was left behind.
func TestSweepOfUnfinishedFiles(t *testing.T) {
	c := open(t, t.TempDir(), t.TempDir())
	c.max = 0
	put(t, c, "code", "a", content("a"))
	for _, folder := range []string{objects, "code"} {
		for name, left := range map[string]bool{"tmp-young": true, "tmp-old": false} {
			file := filepath.Join(c.dir, folder, name)
			must(t, os.WriteFile(file, []byte("x"), 0o600))
			if !left {
				age(t, 61*time.Minute, file)
			}
		}
	}
	put(t, c, "code", "b", content("b"))
	for _, folder := range []string{objects, "code"} {
		for name, left := range map[string]bool{"tmp-young": true, "tmp-old": false} {
			if _, err := os.Stat(filepath.Join(c.dir, folder, name)); left != (err == nil) {
				t.Errorf("%s in %s: %v, want it left: %v", name, folder, err, left)
			}
		}
	}
}

// Entries stay while the cache is below its limit, however old they are.
func TestSweepKeepsWhatFits(t *testing.T) {
	c := open(t, t.TempDir(), t.TempDir())
	put(t, c, "code", "a", content("a"))
	ageEntry(t, c, "a", 1000*time.Hour)
	sweepNow(t, c)
	put(t, c, "code", "b", content("b"))
	want(t, c, "code", "a", content("a"))
}

// Folders of others, such as npm's own cache, are neither swept nor in the way, not even while they change.
func TestSweepLeavesFoldersOfOthers(t *testing.T) {
	dir := t.TempDir()
	var log bytes.Buffer
	c, err := Open(dir, t.TempDir(), slog.New(slog.NewTextHandler(&log, nil)))
	must(t, err)
	t.Cleanup(func() { must(t, c.Close()) })
	put(t, c, "code", "a", content("a"))
	ageEntry(t, c, "a", 2*time.Hour)
	var theirs []string
	for _, name := range []string{"npm_cache/_cacache/tmp", "npm_cache/_logs", "bench/image/bin", "code/folder/within", "objects/folder"} {
		must(t, os.MkdirAll(filepath.Join(dir, name), 0o700))
		theirs = append(theirs, name)
	}
	for _, name := range []string{"npm_cache/_update-notifier-last-checked", "npm_cache/_cacache/index", "bench/image/ready"} {
		must(t, os.WriteFile(filepath.Join(dir, name), []byte(name), 0o600))
		theirs = append(theirs, name)
	}
	for i := range theirs { // those within first, as making them made their folders young
		for name := theirs[i]; name != "."; name = filepath.Dir(name) {
			age(t, 3*time.Hour, filepath.Join(dir, name))
		}
	}
	c.max = 0
	put(t, c, "code", "b", content("b"))
	want(t, c, "code", "a", "")
	for _, name := range theirs {
		if _, err := os.Lstat(filepath.Join(dir, name)); err != nil {
			t.Error(err)
		}
	}
	if log.Len() > 0 {
		t.Errorf("logged %s", log.Bytes())
	}
}

// A folder that goes while a sweep looks is empty.
func TestSweepOfAFolderThatGoes(t *testing.T) {
	c := open(t, t.TempDir(), t.TempDir())
	if files, err := c.stored("gone"); len(files) > 0 || err != nil {
		t.Errorf("%v, %v", files, err)
	}
}

func TestLockFilesGo(t *testing.T) {
	c := open(t, t.TempDir(), t.TempDir())
	build := func() ([]byte, error) { return []byte("x"), nil }
	for _, key := range []string{"a", "b", "c"} {
		if _, err := c.Do(t.Context(), "code", key, build); err != nil {
			t.Fatal(err)
		}
	}
	if n := count(t, c, locks); n != 1 { // sweep
		t.Fatalf("%d lock files are left", n)
	}
	// One of a process that was killed, and one that is held.
	left, held := filepath.Join(c.dir, locks, "left"), c.lockFile("held")
	must(t, os.WriteFile(left, nil, 0o600))
	if ok, err := held.TryLock(); !ok || err != nil {
		t.Fatal(ok, err)
	}
	age(t, 2*time.Hour, left, held.Path())
	sweepNow(t, c)
	put(t, c, "code", "d", "x")
	if _, err := os.Lstat(left); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the lock file that nobody holds is left: %v", err)
	}
	if !c.current(held) {
		t.Error("the lock file that is held was removed")
	}
	c.unlock(held)
}

// A lock whose file is removed during the wait for it protects nothing, so the waiter takes another lock.
func TestLockOfARemovedFile(t *testing.T) {
	c := open(t, t.TempDir(), t.TempDir())
	unlock, err := c.lock(t.Context(), "code", "a")
	must(t, err)
	name := c.fileName("code", "a")
	waiting := c.lockFile(name)
	if held, err := waiting.TryLock(); held || err != nil { // has the file open from here on
		t.Fatal(held, err)
	}
	unlock()
	unlock, err = c.lock(t.Context(), "code", "a")
	must(t, err)
	defer unlock()
	if held, err := waiting.TryLock(); err != nil || held && c.current(waiting) {
		t.Fatalf("two hold the lock: %v", err)
	}
	must(t, waiting.Close())
}

// An entry that is renewed is kept like one that was read.
func TestRenew(t *testing.T) {
	c := open(t, t.TempDir(), t.TempDir())
	for _, key := range []string{"a", "b"} {
		put(t, c, "code", key, content(key))
		ageEntry(t, c, key, 2*time.Hour)
	}
	c.Renew("code", "a")
	c.Renew("code", "none")
	c.Renew("no kind", "a")
	c.max = 2 * entry
	put(t, c, "code", "c", content("c"))
	want(t, c, "code", "a", content("a"))
	want(t, c, "code", "b", "")
}
