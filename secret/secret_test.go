package secret

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

const value = "ghp_canary0123456789"

func opened(t *testing.T, dir string, o Options) *Store {
	t.Helper()
	s, err := Open(t.Context(), dir, o)
	must(t, err)
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func want(t *testing.T, s *Store, name, value string) {
	t.Helper()
	got, err := s.Get(t.Context(), name)
	if err != nil || got != value {
		t.Fatalf("%s: got %q, %v; want %q", name, got, err, value)
	}
}

// as asserts the type of an error, and that it tells no value.
func as[T error](t *testing.T, err error, says string) {
	t.Helper()
	if _, ok := errors.AsType[T](err); !ok || !strings.Contains(err.Error(), says) {
		t.Fatalf("got %T %v; want %T that says %q", err, err, *new(T), says)
	}
	if strings.Contains(err.Error(), "canary") {
		t.Fatalf("the error tells a value: %v", err)
	}
}

// filled is a folder with a store whose key is in a file.
func filled(t *testing.T) (dir string) {
	t.Helper()
	dir = t.TempDir()
	s := opened(t, dir, Options{})
	must(t, s.Set(t.Context(), "github", value))
	must(t, s.Set(t.Context(), "docs", "canary of docs"))
	return dir
}

func content(t *testing.T, path string) []byte {
	t.Helper()
	data, err := os.ReadFile(path)
	must(t, err)
	return data
}

func TestStore(t *testing.T) {
	ctx, dir := t.Context(), filepath.Join(t.TempDir(), "new", "home")
	s := opened(t, dir, Options{})
	if _, err := s.Get(ctx, "github"); !errors.Is(err, ErrNotFound) {
		t.Fatal(err)
	}
	if err := s.Remove(ctx, "github"); !errors.Is(err, ErrNotFound) {
		t.Fatal(err)
	}
	if entries, err := s.List(ctx); err != nil || len(entries) != 0 || s.KeyPlace() != PlaceNone {
		t.Fatal(entries, err)
	}
	for _, name := range []string{File, KeyFile} {
		if _, err := os.Stat(filepath.Join(dir, name)); err == nil {
			t.Errorf("%s is there before there is a secret", name)
		}
	}

	other := opened(t, dir, Options{}) // opened before there was a store
	must(t, s.Set(ctx, "github", value))
	must(t, s.Set(ctx, "docs_2-x", "\x00 \xff any bytes\r\n"))
	want(t, other, "github", value)
	want(t, other, "docs_2-x", "\x00 \xff any bytes\r\n")
	if s.KeyPlace() != PlaceFile || other.KeyPlace() != PlaceFile {
		t.Error(s.KeyPlace(), other.KeyPlace())
	}
	if got, err := other.Get(ctx, "github"); err != nil || got != value {
		t.Error(got, err)
	}
	must(t, other.Set(ctx, "github", "changed"))
	want(t, s, "github", "changed")
	must(t, s.Remove(ctx, "docs_2-x"))
	entries, err := opened(t, dir, Options{}).List(ctx)
	if err != nil || len(entries) != 1 || entries[0].Name != "github" {
		t.Fatal(entries, err)
	}

	for _, name := range []string{File, KeyFile, File + ".lock"} {
		info, err := os.Stat(filepath.Join(dir, name))
		must(t, err)
		if info.Mode().Perm() != 0o600 {
			t.Errorf("%s has mode %v", name, info.Mode())
		}
	}
	must(t, s.Close())
	must(t, s.Close())
	if _, err := s.Get(ctx, "github"); !errors.Is(err, errClosed) {
		t.Error(err)
	}
	if err := s.Set(ctx, "github", "x"); !errors.Is(err, errClosed) {
		t.Error(err)
	}
}

func TestTimes(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		s := opened(t, dir, Options{})
		must(t, s.Set(t.Context(), "github", "one"))
		first := time.Now().UTC()
		time.Sleep(time.Hour) // of the bubble's clock
		must(t, s.Set(t.Context(), "github", "two"))
		entries, err := s.List(t.Context())
		must(t, err)
		if len(entries) != 1 || !entries[0].Created.Equal(first) || !entries[0].Changed.Equal(first.Add(time.Hour)) {
			t.Error(entries)
		}
	})
}

func TestNamesAndValues(t *testing.T) {
	ctx, s := t.Context(), opened(t, t.TempDir(), Options{})
	for _, name := range []string{"", ".", "-x", "_x", "a/b", "../x", "a b", "a\n", "ö", "a.b", "GitHub", "a\x00", strings.Repeat("a", 65), value + "+/="} {
		as[*NameError](t, s.Set(ctx, name, "x"), "use up to 64")
		as[*NameError](t, s.Remove(ctx, name), "use up to 64")
		_, err := s.Get(ctx, name)
		as[*NameError](t, err, "use up to 64")
	}
	as[*ValueError](t, s.Set(ctx, "github", ""), "is empty")
	as[*ValueError](t, s.Set(ctx, "github", strings.Repeat("canary", MaxValue)), "more than 16384 bytes")
	must(t, s.Set(ctx, strings.Repeat("a", 64), strings.Repeat("x", MaxValue)))
}

func TestManySecrets(t *testing.T) {
	dir := filled(t)
	s := opened(t, dir, Options{})
	c, key, err := s.load(t.Context())
	must(t, err)
	c.Entries = nil
	for i := range MaxSecrets {
		e := Entry{Name: fmt.Sprintf("name%04d", i)}
		c.Entries = append(c.Entries, entry{e, seal(key, "x", c.context(e))})
	}
	must(t, s.write(c))
	as[*ValueError](t, s.Set(t.Context(), "more", value), "1000 secrets")
	must(t, s.Set(t.Context(), "name0500", "y"))
	must(t, s.Remove(t.Context(), "name0000"))
	must(t, s.Set(t.Context(), "more", value))
}

// TestNothingInTheClear looks for values in all files of the folder.
func TestNothingInTheClear(t *testing.T) {
	dir := filled(t)
	files, err := os.ReadDir(dir)
	must(t, err)
	for _, f := range files {
		data := content(t, filepath.Join(dir, f.Name()))
		if r := NewRedactor(value, "canary of docs"); r.Redact(string(data)) != string(data) {
			t.Errorf("%s holds a value", f.Name())
		}
	}
}

// TestAltered changes each byte of a store, and cuts it at each: no value comes out that was not put in, and a store that is
// not what was written is left alone.
func TestAltered(t *testing.T) {
	dir := filled(t)
	path := filepath.Join(dir, File)
	sound := content(t, path)
	try := func(what string, altered []byte) {
		must(t, os.WriteFile(path, altered, 0o600))
		failed := 0
		s, err := Open(t.Context(), dir, Options{})
		if err != nil {
			failed++
		} else {
			for name, was := range map[string]string{"github": value, "docs": "canary of docs"} {
				got, err := s.Get(t.Context(), name)
				if err == nil && got != was {
					t.Fatalf("%s: %s is %q", what, name, got)
				}
				if err != nil {
					failed++
				}
			}
			_, err = s.List(t.Context())
		}
		if failed == 0 || err == nil {
			t.Fatalf("%s: nobody noticed", what)
		}
		damaged, key := new(DamagedError), new(KeyError)
		if !errors.As(err, &damaged) && !errors.As(err, &key) || strings.Contains(err.Error(), "canary") {
			t.Fatalf("%s: %T %v", what, err, err)
		}
		if !bytes.Equal(content(t, path), altered) {
			t.Fatalf("%s: the file was changed", what)
		}
	}
	for i := range sound {
		altered := slices.Clone(sound)
		altered[i] ^= 1
		try(fmt.Sprintf("byte %d", i), altered)
		try(fmt.Sprintf("cut at %d", i), sound[:i])
	}
	try("twice", slices.Concat(sound, sound))
	try("a space more", append(slices.Clone(sound), ' '))
	try("nothing but zeros", make([]byte, len(sound)))
	try("not ours", []byte(`{"token": "canary"}`))
	try("null", []byte("null\n"))
	must(t, os.WriteFile(path, bytes.Replace(sound, []byte("secrets 1"), []byte("secrets 2"), 1), 0o600))
	_, err := Open(t.Context(), dir, Options{})
	as[*DamagedError](t, err, "another version")

	must(t, os.WriteFile(path, sound, 0o600))
	want(t, opened(t, dir, Options{}), "github", value)
}

// rewrite changes the contents of a store as somebody without the key could.
func rewrite(t *testing.T, dir string, change func(c *contents)) {
	t.Helper()
	var c contents
	must(t, json.Unmarshal(content(t, filepath.Join(dir, File)), &c))
	change(&c)
	text, err := c.encode()
	must(t, err)
	must(t, os.WriteFile(filepath.Join(dir, File), text, 0o600))
}

// TestSwapped puts what is sealed under other names, times and stores.
func TestSwapped(t *testing.T) {
	dir, foreign := filled(t), filled(t)
	must(t, os.WriteFile(filepath.Join(foreign, KeyFile), content(t, filepath.Join(dir, KeyFile)), 0o600))
	must(t, os.Remove(filepath.Join(foreign, File)))
	must(t, opened(t, foreign, Options{}).Set(t.Context(), "github", "canary of another store, same key"))
	var other contents
	must(t, json.Unmarshal(content(t, filepath.Join(foreign, File)), &other))
	for what, change := range map[string]func(*contents){
		"swapped":        func(c *contents) { c.Entries[0].Sealed, c.Entries[1].Sealed = c.Entries[1].Sealed, c.Entries[0].Sealed },
		"copied":         func(c *contents) { c.Entries[1].Sealed = c.Entries[0].Sealed },
		"the check":      func(c *contents) { c.Entries[1].Sealed = c.Check },
		"renamed":        func(c *contents) { c.Entries[1].Name = "gitlab" },
		"created":        func(c *contents) { c.Entries[1].Created = c.Entries[1].Created.Add(-time.Hour) },
		"changed":        func(c *contents) { c.Entries[1].Changed = c.Entries[1].Changed.Add(time.Hour) },
		"another store":  func(c *contents) { c.Entries[1].Sealed = other.Entries[0].Sealed },
		"nothing sealed": func(c *contents) { c.Entries[1].Sealed = nil },
	} {
		sound := content(t, filepath.Join(dir, File))
		rewrite(t, dir, change)
		s := opened(t, dir, Options{})
		_, err := s.List(t.Context())
		as[*DamagedError](t, err, "set this secret again, or remove it")
		for _, name := range []string{"github", "gitlab"} {
			if got, err := s.Get(t.Context(), name); err == nil {
				t.Errorf("%s: %s is %q", what, name, got)
			}
		}
		if what != "swapped" {
			want(t, s, "docs", "canary of docs") // the others are sound
		}
		must(t, os.WriteFile(filepath.Join(dir, File), sound, 0o600))
	}
	for what, change := range map[string]func(*contents){
		"twice":        func(c *contents) { c.Entries = append(c.Entries, c.Entries[1]) },
		"out of order": func(c *contents) { slices.Reverse(c.Entries) },
		"bad name":     func(c *contents) { c.Entries[0].Name = "../docs" },
	} {
		sound := content(t, filepath.Join(dir, File))
		rewrite(t, dir, change)
		if _, err := Open(t.Context(), dir, Options{}); err == nil {
			t.Errorf("%s was believed", what)
		}
		must(t, os.WriteFile(filepath.Join(dir, File), sound, 0o600))
	}

	// What is damaged can be set again or removed, as the error says.
	rewrite(t, dir, func(c *contents) { c.Entries[0].Sealed, c.Entries[1].Sealed = c.Entries[1].Sealed, c.Entries[0].Sealed })
	s := opened(t, dir, Options{})
	must(t, s.Set(t.Context(), "github", "anew"))
	must(t, s.Remove(t.Context(), "docs"))
	want(t, s, "github", "anew")
	if _, err := s.List(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestKeyFile(t *testing.T) {
	dir := filled(t)
	store, key := content(t, filepath.Join(dir, File)), content(t, filepath.Join(dir, KeyFile))
	other := content(t, filepath.Join(filled(t), KeyFile))
	path := filepath.Join(dir, KeyFile)
	for what, c := range map[string]struct {
		change func() error
		says   string
	}{
		"missing": {func() error { return os.Remove(path) }, "it is missing in " + path},
		"another": {func() error { return os.WriteFile(path, other, 0o600) }, "not the key that " + filepath.Join(dir, File)},
		"cut":     {func() error { return os.WriteFile(path, key[:31], 0o600) }, "is damaged"},
		"longer":  {func() error { return os.WriteFile(path, append(slices.Clone(key), 0), 0o600) }, "is damaged"},
		"zeros":   {func() error { return os.WriteFile(path, make([]byte, 32), 0o600) }, "is damaged"},
		"empty":   {func() error { return os.WriteFile(path, nil, 0o600) }, "is damaged"},
	} {
		s := opened(t, dir, Options{}) // has the key already
		must(t, c.change())
		_, err := Open(t.Context(), dir, Options{})
		as[*KeyError](t, err, c.says)
		as[*KeyError](t, err, "away and set them again")
		want(t, s, "github", value)
		if !bytes.Equal(content(t, filepath.Join(dir, File)), store) {
			t.Errorf("%s: the store was changed", what)
		}
		must(t, os.WriteFile(path, key, 0o600))
	}
	// A damaged key that no store needs is not made anew over what may be a backup.
	must(t, os.Remove(filepath.Join(dir, File)))
	must(t, os.WriteFile(path, key[:31], 0o600))
	as[*KeyError](t, opened(t, dir, Options{}).Set(t.Context(), "github", value), "is damaged")
	if !bytes.Equal(content(t, path), key[:31]) {
		t.Error("the key was changed")
	}
}

// TestAccess is of files and folders that are not the user's alone, or not files.
func TestAccess(t *testing.T) {
	for _, name := range []string{File, KeyFile} {
		for _, mode := range []os.FileMode{0o640, 0o604, 0o620, 0o666} {
			dir := filled(t)
			path := filepath.Join(dir, name)
			must(t, os.Chmod(path, mode))
			_, err := Open(t.Context(), dir, Options{})
			as[*AccessError](t, err, "chmod go-rwx "+path)
			must(t, os.Chmod(path, 0o600))
			want(t, opened(t, dir, Options{}), "github", value)
		}
		dir := filled(t)
		path, elsewhere := filepath.Join(dir, name), filepath.Join(t.TempDir(), "elsewhere")
		must(t, os.Rename(path, elsewhere))
		must(t, os.Symlink(elsewhere, path))
		_, err := Open(t.Context(), dir, Options{})
		as[*AccessError](t, err, "not a regular file")
		must(t, os.Remove(path))
		must(t, syscall.Mkfifo(path, 0o600)) // nobody writes to it: a read would wait for ever
		_, err = Open(t.Context(), dir, Options{})
		as[*AccessError](t, err, "not a regular file")
		must(t, os.Remove(path))
		must(t, os.Mkdir(path, 0o700))
		_, err = Open(t.Context(), dir, Options{})
		as[*AccessError](t, err, "not a regular file")
	}

	// A store that is far too large takes no more memory than the largest valid one.
	dir := filled(t)
	must(t, os.Truncate(filepath.Join(dir, File), 1<<40))
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err := Open(t.Context(), dir, Options{})
	runtime.ReadMemStats(&after)
	as[*DamagedError](t, err, "more than 67108864 bytes")
	if took := after.TotalAlloc - before.TotalAlloc; took > 3*maxFile {
		t.Errorf("to refuse it took %d bytes", took)
	}

	// A link in place of a store that is not there yet is not written through either.
	dir = t.TempDir()
	target := filepath.Join(t.TempDir(), "target")
	s := opened(t, dir, Options{})
	must(t, os.Symlink(target, filepath.Join(dir, File)))
	as[*AccessError](t, s.Set(t.Context(), "github", value), "not a regular file")
	must(t, os.Rename(filepath.Join(dir, File), filepath.Join(dir, File+".tmp")))
	must(t, s.Set(t.Context(), "github", value))
	if _, err := os.Lstat(target); err == nil {
		t.Error("a link was followed")
	}

	must(t, os.Chmod(dir, 0o770))
	_, err = Open(t.Context(), dir, Options{})
	as[*AccessError](t, err, "chmod go-rwx "+dir)
}

func TestConcurrent(t *testing.T) {
	s := opened(t, t.TempDir(), Options{})
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			name := fmt.Sprint("name", i)
			if err := s.Set(context.Background(), name, name); err != nil {
				t.Error(err)
			}
			if got, err := s.Get(context.Background(), name); err != nil || got != name {
				t.Error(got, err)
			}
		})
	}
	all.Wait()
	if entries, err := s.List(t.Context()); err != nil || len(entries) != 8 {
		t.Error(entries, err)
	}
}

func TestCancelled(t *testing.T) {
	dir := filled(t)
	s := opened(t, dir, Options{})
	why := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(why)
	if _, err := Open(ctx, dir, Options{}); !errors.Is(err, why) {
		t.Error(err)
	}
	if _, err := s.Get(ctx, "github"); !errors.Is(err, why) {
		t.Error(err)
	}
	if err := s.Set(ctx, "github", "x"); !errors.Is(err, why) {
		t.Error(err)
	}
	want(t, s, "github", value)
}

// safe is a keyring in memory, as an embedding program may have one.
type safe struct {
	mu   sync.Mutex
	kept map[string]string
	err  error
}

func (k *safe) Get(_ context.Context, account string) (string, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	v, ok := k.kept[account]
	if !ok && k.err == nil {
		return "", ErrNotFound
	}
	return v, k.err
}

func (k *safe) Set(_ context.Context, account, value string) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.kept[account] = value
	return k.err
}

// forgetful keeps nothing and says that it did.
type forgetful struct{ *safe }

func (forgetful) Set(context.Context, string, string) error { return nil }

func TestKeyring(t *testing.T) {
	ctx, dir := t.Context(), t.TempDir()
	k := &safe{kept: map[string]string{}}
	s := opened(t, dir, Options{Keyring: k})
	must(t, s.Set(ctx, "github", value))
	must(t, s.Set(ctx, "docs", value))
	if s.KeyPlace() != PlaceKeyring || len(k.kept) != 1 {
		t.Error(s.KeyPlace(), k.kept)
	}
	if _, err := os.Stat(filepath.Join(dir, KeyFile)); err == nil {
		t.Error("the key is in a file too")
	}
	want(t, opened(t, dir, Options{Keyring: k}), "github", value)

	// Without its key the store is refused, and no other key is made.
	before := content(t, filepath.Join(dir, File))
	_, err := Open(ctx, dir, Options{})
	as[*KeyError](t, err, "turned off")
	_, err = Open(ctx, dir, Options{Keyring: &safe{err: errors.New("locked")}})
	as[*KeyError](t, err, "locked; nothing was changed: unlock it")
	_, err = Open(ctx, dir, Options{Keyring: &safe{}})
	as[*KeyError](t, err, "it is missing in the keyring")
	for account := range k.kept {
		_, err = Open(ctx, dir, Options{Keyring: &safe{kept: map[string]string{account: "canary, not base64"}}})
		as[*KeyError](t, err, "what is in the keyring is damaged")
	}
	if !bytes.Equal(content(t, filepath.Join(dir, File)), before) {
		t.Error("the store was changed")
	}

	// A store whose key is in a file needs no keyring; nor does a new one where the keyring does not work.
	for _, broken := range []Keyring{&safe{kept: map[string]string{}, err: errors.New("no bus")}, forgetful{&safe{}}} {
		dir := t.TempDir()
		s := opened(t, dir, Options{Keyring: broken})
		must(t, s.Set(ctx, "github", value))
		if s.KeyPlace() != PlaceFile {
			t.Error(s.KeyPlace())
		}
		want(t, opened(t, dir, Options{}), "github", value)
		want(t, opened(t, dir, Options{Keyring: k}), "github", value)
	}
}

// FuzzParse reads any file; what is accepted has one spelling.
func FuzzParse(f *testing.F) {
	c := contents{Format: format, ID: "id", Key: PlaceFile, Check: []byte("c"), Entries: []entry{{Entry{Name: "a"}, []byte("s")}}}
	text, err := c.encode()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(text)
	f.Add([]byte(`{"format":"stile secrets 1","entries":null}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		c, err := parse(text)
		if err != nil {
			return
		}
		again, err := c.encode()
		if err != nil || !bytes.Equal(again, text) {
			t.Fatalf("%q is also %q, %v", text, again, err)
		}
	})
}
