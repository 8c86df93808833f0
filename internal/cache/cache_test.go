package cache

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

func open(t *testing.T, dir, keyDir string) *Cache {
	t.Helper()
	c, err := Open(dir, keyDir, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func put(t *testing.T, c *Cache, kind, key, content string) {
	t.Helper()
	if err := c.Put(kind, key, []byte(content)); err != nil {
		t.Fatal(err)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// want asserts what an entry holds; "" is a miss.
func want(t *testing.T, c *Cache, kind, key, content string) {
	t.Helper()
	data, ok, err := c.Get(kind, key)
	if err != nil {
		t.Fatal(err)
	}
	if ok != (content != "") || string(data) != content {
		t.Fatalf("%s %s: got %q, %v; want %q", kind, key, data, ok, content)
	}
}

// files returns the names of an entry's record and object.
func files(t *testing.T, c *Cache, kind, key string) (record, object string) {
	t.Helper()
	name, err := c.recordName(kind, key)
	if err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(filepath.Join(c.dir, name))
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Join(c.dir, name), filepath.Join(c.dir, objectName(data[8:40]))
}

func edit(t *testing.T, file string, change func([]byte) []byte) {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, change(data), 0o600); err != nil {
		t.Fatal(err)
	}
}

func relink(t *testing.T, target, name string) {
	t.Helper()
	if err := os.RemoveAll(name); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(target, name); err != nil {
		t.Fatal(err)
	}
}

func TestPutGet(t *testing.T) {
	c := open(t, t.TempDir(), t.TempDir())
	want(t, c, "code", "a", "")
	put(t, c, "code", "a", "one")
	put(t, c, "image", "a", "two")
	put(t, c, "code", "b", "one")
	want(t, c, "code", "a", "one")
	want(t, c, "image", "a", "two")
	want(t, c, "code", "b", "one")
	put(t, c, "code", "a", "three")
	want(t, c, "code", "a", "three")
	want(t, c, "code", "b", "one")

	if err := c.Put("code", "empty", nil); err != nil {
		t.Fatal(err)
	}
	if data, ok, err := c.Get("code", "empty"); !ok || len(data) != 0 || err != nil {
		t.Fatalf("empty content: %q, %v, %v", data, ok, err)
	}
	for _, kind := range []string{"", "..", "a/b", "objects", "locks", "Code", "a\x00"} {
		if err := c.Put(kind, "a", nil); err == nil {
			t.Errorf("kind %q was accepted", kind)
		}
	}
	if err := fs.WalkDir(os.DirFS(c.dir), ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err == nil && path != "." && info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s has mode %v", path, info.Mode())
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
}

func TestFileIsExactlyTheContent(t *testing.T) {
	c := open(t, t.TempDir(), t.TempDir())
	content := strings.Repeat("native code ", 100_000)
	put(t, c, "code", "a", content)
	f, ok, err := c.File("code", "a")
	if !ok || err != nil {
		t.Fatal(ok, err)
	}
	defer func() { _ = f.Close() }()
	data, err := os.ReadFile(fmt.Sprintf("/dev/fd/%d", f.Fd()))
	if err != nil || string(data) != content {
		t.Fatalf("%d bytes through the descriptor, %v", len(data), err)
	}
	if data, err := io.ReadAll(f); err != nil || string(data) != content {
		t.Fatalf("%d bytes from the start, %v", len(data), err)
	}
}

// Each attack leaves the entry of key "a" missing and deletes what was tampered with; the entry of key "b" still holds
// or is missing too, and a later Put heals everything.
func TestTampering(t *testing.T) {
	flip := func(at int) func([]byte) []byte {
		return func(b []byte) []byte { b[(len(b)+at)%len(b)] ^= 1; return b }
	}
	attacks := map[string]func(t *testing.T, c *Cache, record, object string){
		"first byte":       func(t *testing.T, _ *Cache, _, object string) { edit(t, object, flip(0)) },
		"last byte":        func(t *testing.T, _ *Cache, _, object string) { edit(t, object, flip(-1)) },
		"truncated":        func(t *testing.T, _ *Cache, _, o string) { edit(t, o, func(b []byte) []byte { return b[:3] }) },
		"emptied":          func(t *testing.T, _ *Cache, _, o string) { edit(t, o, func([]byte) []byte { return nil }) },
		"longer":           func(t *testing.T, _ *Cache, _, o string) { edit(t, o, func(b []byte) []byte { return append(b, 0) }) },
		"object gone":      func(t *testing.T, _ *Cache, _, o string) { must(t, os.Remove(o)) },
		"record's length":  func(t *testing.T, _ *Cache, r, _ string) { edit(t, r, flip(7)) },
		"record's digest":  func(t *testing.T, _ *Cache, r, _ string) { edit(t, r, flip(8)) },
		"record's MAC":     func(t *testing.T, _ *Cache, r, _ string) { edit(t, r, flip(-1)) },
		"record truncated": func(t *testing.T, _ *Cache, r, _ string) { edit(t, r, func(b []byte) []byte { return b[:40] }) },
		"record longer":    func(t *testing.T, _ *Cache, r, _ string) { edit(t, r, func(b []byte) []byte { return append(b, 0) }) },
		"record is a folder": func(t *testing.T, _ *Cache, r, _ string) {
			must(t, os.Remove(r))
			must(t, os.MkdirAll(filepath.Join(r, "x"), 0o700))
		},
		"object is a folder": func(t *testing.T, _ *Cache, _, o string) {
			must(t, os.Remove(o))
			must(t, os.MkdirAll(filepath.Join(o, "x"), 0o700))
		},
		"record of another key": func(t *testing.T, c *Cache, r, _ string) {
			other, _ := files(t, c, "code", "b")
			edit(t, other, func(b []byte) []byte { must(t, os.WriteFile(r, b, 0o600)); return b })
		},
		"record of another kind": func(t *testing.T, c *Cache, r, _ string) {
			put(t, c, "image", "a", "content of image a")
			other, _ := files(t, c, "image", "a")
			edit(t, other, func(b []byte) []byte { must(t, os.WriteFile(r, b, 0o600)); return b })
		},
		"object of another key": func(t *testing.T, c *Cache, _, o string) {
			_, other := files(t, c, "code", "b")
			edit(t, other, func(b []byte) []byte { must(t, os.WriteFile(o, b, 0o600)); return b })
		},
		"forged with another key": func(t *testing.T, c *Cache, r, _ string) {
			forger := open(t, c.dir, t.TempDir())
			put(t, forger, "code", "a", "evil code")
			other, _ := files(t, forger, "code", "a")
			must(t, os.Rename(other, r))
		},
		"record is a link": func(t *testing.T, c *Cache, r, _ string) {
			edit(t, r, func(b []byte) []byte { must(t, os.WriteFile(filepath.Join(c.dir, "moved"), b, 0o600)); return b })
			relink(t, "../moved", r)
		},
		"object is a link": func(t *testing.T, c *Cache, _, o string) {
			edit(t, o, func(b []byte) []byte { must(t, os.WriteFile(filepath.Join(c.dir, "moved"), b, 0o600)); return b })
			relink(t, "../moved", o)
		},
		"object is a link out": func(t *testing.T, _ *Cache, _, o string) {
			outside := filepath.Join(t.TempDir(), "outside")
			must(t, os.WriteFile(outside, []byte("content of code a"), 0o600))
			relink(t, outside, o)
		},
	}
	for name, attack := range attacks {
		t.Run(name, func(t *testing.T) {
			c := open(t, t.TempDir(), t.TempDir())
			put(t, c, "code", "a", "content of code a")
			put(t, c, "code", "b", "content of code b")
			record, object := files(t, c, "code", "a")
			attack(t, c, record, object)
			if f, ok, err := c.File("code", "a"); ok || err != nil || f != nil {
				t.Fatalf("got %v, %v, %v", f, ok, err)
			}
			if _, err := os.Lstat(record); !errors.Is(err, fs.ErrNotExist) {
				t.Fatalf("the record is still there: %v", err)
			}
			want(t, c, "code", "b", "content of code b")
			put(t, c, "code", "a", "content of code a")
			want(t, c, "code", "a", "content of code a")
		})
	}
}

// Homes with keys of their own may share a folder: neither sees, replaces or deletes what the other made.
func TestTwoKeys(t *testing.T) {
	dir := t.TempDir()
	one, two := open(t, dir, t.TempDir()), open(t, dir, t.TempDir())
	put(t, one, "code", "a", "of one")
	want(t, two, "code", "a", "")
	put(t, two, "code", "a", "of two")
	put(t, two, "code", "b", "of one") // the same content
	for range 2 {
		want(t, one, "code", "a", "of one")
		want(t, one, "code", "b", "")
		want(t, two, "code", "a", "of two")
		want(t, two, "code", "b", "of one")
	}
}

func TestKey(t *testing.T) {
	for name, damage := range map[string]string{"empty": "", "short": "abc", "long": strings.Repeat("k", 33), "zeros": strings.Repeat("\x00", 32)} {
		t.Run("damaged "+name, func(t *testing.T) {
			dir, keyDir := t.TempDir(), t.TempDir()
			put(t, open(t, dir, keyDir), "code", "a", "one")
			file := filepath.Join(keyDir, "cache.key")
			edit(t, file, func([]byte) []byte { return []byte(damage) })
			c := open(t, dir, keyDir)
			want(t, c, "code", "a", "")
			put(t, c, "code", "a", "two")
			want(t, open(t, dir, keyDir), "code", "a", "two")
			if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 || info.Size() != 32 {
				t.Fatalf("%v, %v", info, err)
			}
		})
	}
	t.Run("many at once", func(t *testing.T) {
		keyDir := t.TempDir()
		keys := make([][]byte, 20)
		var wg sync.WaitGroup
		for i := range keys {
			wg.Go(func() { keys[i] = open(t, t.TempDir(), keyDir).key })
		}
		wg.Wait()
		for _, key := range keys {
			if !bytes.Equal(key, keys[0]) {
				t.Fatal("two keys were made")
			}
		}
	})
}

func TestRefusals(t *testing.T) {
	tests := map[string]struct {
		spoil func(t *testing.T, dir, keyDir string)
		want  string
	}{
		"cache writable by group":  {func(t *testing.T, dir, _ string) { must(t, os.Chmod(dir, 0o770)) }, "mode 0770"},
		"cache writable by others": {func(t *testing.T, dir, _ string) { must(t, os.Chmod(dir, 0o702)) }, "mode 0702"},
		"home writable by group":   {func(t *testing.T, _, home string) { must(t, os.Chmod(home, 0o720)) }, "mode 0720"},
		"key readable by others": {func(t *testing.T, _, home string) {
			open(t, t.TempDir(), home)
			must(t, os.Chmod(filepath.Join(home, "cache.key"), 0o604))
		}, "mode 0604"},
		"key is a link": {func(t *testing.T, _, home string) {
			other := t.TempDir()
			open(t, t.TempDir(), other)
			relink(t, filepath.Join(other, "cache.key"), filepath.Join(home, "cache.key"))
		}, "not a regular file"},
		"cache is a file": {func(t *testing.T, dir, _ string) {
			must(t, os.Remove(dir))
			must(t, os.WriteFile(dir, nil, 0o600))
		}, "not a directory"},
	}
	if os.Geteuid() == 0 {
		chown := func(t *testing.T, name string) {
			if err := os.Chown(name, 12345, -1); err != nil {
				t.Fatal(err)
			}
		}
		for name, file := range map[string]string{"cache": "dir", "home": "home", "key": "key"} {
			test := tests["cache is a file"]
			test.want = "belongs to user 12345"
			test.spoil = func(t *testing.T, dir, home string) {
				open(t, t.TempDir(), home)
				chown(t, map[string]string{"dir": dir, "home": home, "key": filepath.Join(home, "cache.key")}[file])
			}
			tests[name+" of somebody else"] = test
		}
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			dir, home := filepath.Join(t.TempDir(), "cache"), filepath.Join(t.TempDir(), "home")
			for _, d := range []string{dir, home} {
				if err := os.Mkdir(d, 0o700); err != nil {
					t.Fatal(err)
				}
			}
			test.spoil(t, dir, home)
			c, err := Open(dir, home, nil)
			if err == nil {
				must(t, c.Close())
			}
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Fatalf("got %v, want %q", err, test.want)
			}
		})
	}
}

func TestNotKept(t *testing.T) {
	c := open(t, t.TempDir(), t.TempDir())
	if err := os.RemoveAll(c.dir); err != nil { // stands for a disk that takes nothing; a mode would not stop root
		t.Fatal(err)
	}
	if err := c.Put("code", "a", []byte("x")); err == nil {
		t.Fatal("Put says it kept what it could not")
	}
	data, err := c.Do(t.Context(), "code", "a", func() ([]byte, error) { return []byte("built"), nil })
	if err != nil || string(data) != "built" {
		t.Fatalf("%q, %v", data, err)
	}
}

func TestDo(t *testing.T) {
	c := open(t, t.TempDir(), t.TempDir())
	failure := errors.New("no luck")
	if _, err := c.Do(t.Context(), "code", "a", func() ([]byte, error) { return nil, failure }); !errors.Is(err, failure) {
		t.Fatal(err)
	}
	var builds atomic.Int32
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			data, err := c.Do(t.Context(), "code", "a", func() ([]byte, error) {
				builds.Add(1)
				return c.Do(t.Context(), "engine", "a", func() ([]byte, error) { return []byte("nested"), nil })
			})
			if err != nil || string(data) != "nested" {
				t.Errorf("%q, %v", data, err)
			}
		})
	}
	wg.Wait()
	if n := builds.Load(); n != 1 {
		t.Fatalf("built %d times", n)
	}

	waiting, cancel := context.WithCancel(t.Context())
	_, err := c.Do(t.Context(), "code", "b", func() ([]byte, error) {
		cancel()
		_, err := c.Do(waiting, "code", "b", func() ([]byte, error) { t.Error("built while locked"); return nil, nil })
		return nil, err
	})
	if !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
}

// TestDoBehind builds entries that are stored in the background: whoever asks meanwhile gets the one that was built, what a caller does with its data
// does not matter, and Close waits for all.
func TestDoBehind(t *testing.T) {
	dir, keyDir := t.TempDir(), t.TempDir()
	c, err := Open(dir, keyDir, nil)
	must(t, err)
	const entries, askers = 3 * mostBehind, 3
	content := func(n int) []byte { return bytes.Repeat([]byte{byte(n)}, 1<<20) }
	var builds atomic.Int32
	var wg sync.WaitGroup
	for n := range entries {
		for range askers {
			wg.Go(func() {
				data, err := c.DoBehind(t.Context(), "code", strconv.Itoa(n), func() ([]byte, error) {
					builds.Add(1)
					return content(n), nil
				})
				if err != nil || !bytes.Equal(data, content(n)) {
					t.Errorf("entry %d: %d bytes, %v", n, len(data), err)
				}
				clear(data)
			})
		}
	}
	wg.Wait()
	if got := builds.Load(); got != entries {
		t.Errorf("built %d times, want %d", got, entries)
	}
	failure := errors.New("no luck")
	for range 2 { // the first has given the lock back
		if _, err := c.DoBehind(t.Context(), "code", "failing", func() ([]byte, error) { return nil, failure }); !errors.Is(err, failure) {
			t.Error(err)
		}
		func() {
			defer func() { _ = recover() }()
			_, _ = c.DoBehind(t.Context(), "code", "panicking", func() ([]byte, error) { panic("as it should") })
		}()
	}
	_, err = c.DoBehind(t.Context(), "code", "large", func() ([]byte, error) { return make([]byte, maxBehind+1), nil })
	must(t, err)
	if data, ok, err := c.Get("code", "large"); !ok || err != nil || len(data) != maxBehind+1 { // it is not kept in memory until it is stored
		t.Errorf("the large entry: %t, %v", ok, err)
	}
	for range 2 {
		wg.Go(func() {
			if err := c.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	c = open(t, dir, keyDir)
	for n := range entries {
		if data, ok, err := c.Get("code", strconv.Itoa(n)); !ok || err != nil || !bytes.Equal(data, content(n)) {
			t.Errorf("entry %d after Close: %t, %v", n, ok, err)
		}
	}
}

// TestLinkInPlaceOfLock has a link where the lock of an entry belongs. No lock on it is ever that of the entry.
func TestLinkInPlaceOfLock(t *testing.T) {
	c := open(t, t.TempDir(), t.TempDir())
	name := filepath.Join(c.dir, locks, c.fileName("code", "a"))
	must(t, os.Mkdir(filepath.Dir(name), 0o700))
	other := filepath.Join(t.TempDir(), "other")
	must(t, os.WriteFile(other, []byte("kept"), 0o600))
	must(t, os.Symlink(other, name))
	must(t, os.MkdirAll(filepath.Join(c.dir, locks, sweepFile, "a"), 0o700))
	data, err := c.Do(t.Context(), "code", "a", func() ([]byte, error) {
		info, err := os.Lstat(name)
		if err == nil && !info.Mode().IsRegular() {
			t.Errorf("the lock is %v", info.Mode())
		}
		return []byte("built"), err
	})
	if err != nil || string(data) != "built" {
		t.Errorf("got %q, %v", data, err)
	}
	if data, err := os.ReadFile(other); err != nil || string(data) != "kept" {
		t.Errorf("the other file has %q, %v", data, err)
	}
	if info, err := os.Lstat(filepath.Join(c.dir, locks, sweepFile)); err != nil || !info.Mode().IsRegular() {
		t.Errorf("what sweeps lock is %v, %v", info, err)
	}
}

// TestMain lets the test binary be a second process: it builds one entry and says whether it did.
func TestMain(m *testing.M) {
	dir := os.Getenv("CACHE_TEST_DIR")
	if dir == "" {
		os.Exit(m.Run())
	}
	c, err := Open(filepath.Join(dir, "cache"), filepath.Join(dir, "home"), nil)
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	_, _ = io.ReadAll(os.Stdin) // all processes start when the parent closes their input
	for i := range 10 {
		_, err = c.Do(context.Background(), "code", fmt.Sprint(i), func() ([]byte, error) {
			fmt.Println("built", i)
			return bytes.Repeat([]byte{byte(i)}, 1<<20), nil
		})
		if err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
	}
}

func TestProcesses(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	var output [3]bytes.Buffer
	var commands [3]*exec.Cmd
	var inputs [3]io.Closer
	for i := range commands {
		commands[i] = exec.CommandContext(t.Context(), self)
		commands[i].Env = append(os.Environ(), "CACHE_TEST_DIR="+dir)
		commands[i].Stdout = &output[i]
		if inputs[i], err = commands[i].StdinPipe(); err != nil {
			t.Fatal(err)
		}
		if err := commands[i].Start(); err != nil {
			t.Fatal(err)
		}
	}
	for _, in := range inputs {
		must(t, in.Close())
	}
	builds := 0
	for i, cmd := range commands {
		if err := cmd.Wait(); err != nil {
			t.Fatalf("%v: %s", err, output[i].String())
		}
		builds += strings.Count(output[i].String(), "built")
	}
	if builds != 10 {
		t.Fatalf("10 entries were built %d times", builds)
	}
}
