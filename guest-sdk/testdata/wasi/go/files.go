package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

func read(path string) (string, error) {
	b, err := os.ReadFile(path)
	return string(b), err
}

func write(path string) (string, error) {
	return "ok", os.WriteFile(path, []byte("written"), 0o666)
}

func list(path string) (string, error) {
	entries, err := os.ReadDir(path)
	var names []string
	for _, e := range entries {
		name := e.Name()
		if e.IsDir() {
			name += "/"
		}
		names = append(names, name)
	}
	return strings.Join(names, " "), err
}

// checks are the first thing that went wrong.
type checks struct{ err error }

func (c *checks) ok(err error) {
	if c.err == nil {
		c.err = err
	}
}

func (c *checks) fails(err, want error) {
	if c.err == nil && !errors.Is(err, want) {
		c.err = fmt.Errorf("got %v, want %v", err, want)
	}
}

func (c *checks) same(got, want any) {
	if c.err == nil && got != want {
		c.err = fmt.Errorf("got %v, want %v", got, want)
	}
}

// all uses most of package os in a directory.
func all(root string) (string, error) {
	c := &checks{}
	at := func(names ...string) string { return filepath.Join(append([]string{root}, names...)...) }
	holds := func(path, want string) {
		got, err := read(path)
		c.ok(err)
		c.same(got, want)
	}

	_, err := os.ReadFile(at("none"))
	c.fails(err, fs.ErrNotExist)
	c.ok(os.MkdirAll(at("a", "b", "c"), 0o777))
	c.fails(os.Mkdir(at("a"), 0o777), fs.ErrExist)
	c.fails(os.WriteFile(at("missing", "x"), nil, 0o666), fs.ErrNotExist)
	info, err := os.Stat(at("a"))
	c.ok(err)
	c.same(err == nil && info.IsDir(), true)

	c.ok(os.WriteFile(at("a", "small"), []byte("hello"), 0o666))
	holds(at("a", "small"), "hello")
	large := make([]byte, 700_000)
	for i := range large {
		large[i] = byte(i * 31 >> 3)
	}
	c.ok(os.WriteFile(at("a", "large"), large, 0o666))
	got, err := os.ReadFile(at("a", "large"))
	c.ok(err)
	c.same(bytes.Equal(got, large), true)

	f, err := os.OpenFile(at("a", "small"), os.O_APPEND|os.O_WRONLY, 0)
	c.ok(err)
	_, err = f.WriteString(", world")
	c.ok(errors.Join(err, f.Close()))
	f, err = os.OpenFile(at("a", "small"), os.O_RDWR, 0)
	c.ok(err)
	_, err = f.WriteAt([]byte("W"), 7)
	c.ok(err)
	_, err = f.Seek(0, io.SeekEnd)
	c.ok(err)
	_, err = f.WriteString("!")
	c.ok(err)
	_, err = f.Seek(-1, io.SeekCurrent)
	c.ok(err)
	last, err := io.ReadAll(f)
	c.ok(err)
	c.same(string(last), "!")
	c.ok(f.Truncate(5))
	c.ok(f.Sync())
	c.ok(f.Close())
	holds(at("a", "small"), "hello")
	_, err = f.Read(make([]byte, 1))
	c.fails(err, fs.ErrClosed)

	f, err = os.OpenFile(at("a", "large"), os.O_WRONLY, 0)
	c.ok(err)
	_, err = f.WriteAt([]byte("in the middle"), 300_000)
	c.ok(errors.Join(err, f.Close()))
	copy(large[300_000:], "in the middle")
	got, err = os.ReadFile(at("a", "large"))
	c.ok(err)
	c.same(bytes.Equal(got, large), true)

	_, err = os.OpenFile(at("a", "small"), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o666)
	c.fails(err, fs.ErrExist)
	f, err = os.Create(at("lines"))
	c.ok(err)
	w := bufio.NewWriter(f)
	for n := range 1000 {
		fmt.Fprintf(w, "line %d\n", n)
	}
	c.ok(errors.Join(w.Flush(), f.Close()))
	f, err = os.Open(at("lines"))
	c.ok(err)
	lines := 0
	for s := bufio.NewScanner(f); s.Scan(); {
		lines++
	}
	c.same(lines, 1000)
	c.ok(f.Close())

	c.ok(os.Rename(at("a", "small"), at("a", "b", "renamed")))
	c.ok(os.WriteFile(at("over"), []byte("over"), 0o666))
	c.ok(os.Rename(at("over"), at("a", "b", "renamed")))
	holds(at("a", "b", "renamed"), "over")
	c.ok(os.Symlink("renamed", at("a", "b", "link")))
	target, err := os.Readlink(at("a", "b", "link"))
	c.ok(err)
	c.same(target, "renamed")
	holds(at("a", "b", "link"), "over")

	c.ok(os.Mkdir(at("many"), 0o777))
	for i := range 300 {
		c.ok(os.WriteFile(at("many", fmt.Sprintf("file-with-a-name-%03d", i)), nil, 0o666))
	}
	entries, err := os.ReadDir(at("many"))
	c.ok(err)
	c.same(len(entries), 300)
	d, err := os.Open(at("many"))
	c.ok(err)
	names := map[string]bool{}
	for range 2 { // from the start again
		for {
			some, err := d.Readdirnames(7)
			for _, name := range some {
				names[name] = true
			}
			if err != nil {
				c.same(err, io.EOF)
				break
			}
		}
		c.same(len(names), 300)
		_, err = d.Seek(0, io.SeekStart)
		c.ok(err)
	}
	c.ok(d.Close())

	seen := 0
	c.ok(fs.WalkDir(os.DirFS(root), ".", func(string, fs.DirEntry, error) error { seen++; return nil }))
	c.same(seen, 309)
	c.fails(os.Remove(at("a", "c")), fs.ErrNotExist)
	c.same(os.Remove(at("a")) != nil, true)
	c.ok(os.RemoveAll(at("a")))
	c.ok(os.RemoveAll(at("many")))
	c.ok(os.Remove(at("lines")))
	_, err = os.Stat(at("a"))
	c.fails(err, fs.ErrNotExist)
	c.same(os.Link(at("x"), at("y")) != nil, true)
	c.same(os.Chtimes(root, time.Time{}, time.Unix(1, 0)) != nil, true)

	open := []*os.File{}
	for range 100 { // until there are too many
		f, err := os.Create(at("open"))
		if err != nil {
			break
		}
		open = append(open, f)
	}
	c.same(len(open) > 50 && len(open) < 64, true)
	for _, f := range open {
		c.ok(f.Close())
	}
	c.ok(os.Remove(at("open")))
	return "ok", c.err
}
