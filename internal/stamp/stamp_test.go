//go:build unix

package stamp

import (
	"bytes"
	"encoding/binary"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
	"pgregory.net/rapid"
)

// A process of the model: what it holds, and where it is in a change or in naming the newest state.
type process struct {
	file  *File
	known int64 // the state of the store that it has read
	at    int   // its place in a change; it holds the lock of the store at all of them but the first
	next  int64 // the state that it will commit
}

const (
	idle     = iota
	changing // holds the lock; nothing is done
	cleared
	settling
)

// Processes run in any order, are killed anywhere, and the file may be lost or damaged. No process takes an older state for the newest.
func TestProtocol(t *testing.T) {
	dir := t.TempDir()
	n := 0
	rapid.Check(t, func(t *rapid.T) {
		n++
		path := filepath.Join(dir, "stamp")
		_ = os.RemoveAll(path)
		stamp := rapid.Int64().Filter(func(v int64) bool { return v != 0 })
		used := map[int64]bool{-1: true} // what "write" below writes
		fresh := func() int64 {
			v := stamp.Filter(func(v int64) bool { return !used[v] }).Draw(t, "stamp")
			used[v] = true
			return v
		}
		store := fresh()
		processes := make([]*process, 3)
		for i := range processes {
			processes[i] = &process{file: New(path), known: store}
			defer func() { processes[i].file.Close() }()
		}
		var holder *process // of the lock
		pick := func() *process { return processes[rapid.IntRange(0, 2).Draw(t, "process")] }
		leave := func(p *process) { p.at, holder = idle, nil }
		t.Repeat(map[string]func(*rapid.T){
			"": func(t *rapid.T) {
				for i, p := range processes {
					if p.file.Is(p.known) && p.known != store {
						t.Fatalf("process %d takes %x for the newest state, which is %x", i, p.known, store)
					}
				}
			},
			"refresh": func(*rapid.T) {
				p := pick()
				if !p.file.Is(p.known) {
					p.known = store
					p.file.Look()
				}
			},
			"change": func(t *rapid.T) {
				p := pick()
				if holder != nil && holder != p {
					t.Skip("it waits for the lock")
				}
				switch p.at {
				case idle:
					p.at, holder = changing, p
				case changing:
					if err := p.file.Clear(); err != nil {
						t.Fatal(err)
					}
					p.at, p.next = cleared, fresh()
				case cleared:
					store = p.next
					leave(p)
				case settling:
					if err := p.file.Set(store); err != nil {
						t.Fatal(err)
					}
					leave(p)
				}
			},
			"settle": func(t *rapid.T) {
				if holder != nil {
					t.Skip("it waits for the lock")
				}
				holder = pick()
				holder.at = settling
			},
			"give up": func(*rapid.T) { leave(pickHolder(t, holder)) },
			"kill": func(*rapid.T) {
				i := rapid.IntRange(0, 2).Draw(t, "killed")
				if holder == processes[i] {
					holder = nil
				}
				processes[i].file.Close()
				processes[i] = &process{file: New(path), known: store}
			},
			"foreign": func(t *rapid.T) {
				switch rapid.SampledFrom([]string{"remove", "truncate", "replace", "folder", "pipe", "write"}).Draw(t, "what") {
				case "remove":
					_ = os.RemoveAll(path)
				case "truncate":
					_ = os.Truncate(path, rapid.Int64Range(0, 7).Draw(t, "size"))
				case "replace":
					other := path + ".new"
					content := rapid.SliceOfN(rapid.Byte(), 0, 12).Draw(t, "content")
					if len(content) >= size {
						v := int64(binary.LittleEndian.Uint64(content))
						if used[v] {
							t.Skip("nobody guesses 64 random bits")
						}
						used[v] = true
					}
					if err := os.WriteFile(other, content, 0o600); err != nil {
						t.Fatal(err)
					}
					_ = os.Rename(other, path) // not over a folder
				case "folder":
					_ = os.RemoveAll(path)
					_ = os.Mkdir(path, 0o700)
				case "pipe":
					_ = os.RemoveAll(path)
					_ = unix.Mkfifo(path, 0o600)
				case "write":
					if info, err := os.Lstat(path); err == nil && info.Mode().IsRegular() {
						_ = os.WriteFile(path, bytes.Repeat([]byte{0xff}, 16), 0o600)
					}
				}
			},
		})
	})
	if n == 0 {
		t.Fatal("nothing was checked")
	}
}

func pickHolder(t *rapid.T, holder *process) *process {
	if holder == nil {
		t.Skip("nobody holds the lock")
	}
	return holder
}

// After a settled change everybody is served by the file alone, also by one that took the place of another.
func TestSettles(t *testing.T) {
	path := filepath.Join(t.TempDir(), "stamp")
	a, b := New(path), New(path)
	defer a.Close()
	defer b.Close()
	if a.Is(0) || a.Is(7) {
		t.Error("a file that is not there names a state")
	}
	settles := func(what string, stamp int64) {
		t.Helper()
		if err := a.Set(stamp); err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		b.Look()
		if !a.Is(stamp) || !b.Is(stamp) || b.Is(stamp+1) {
			t.Errorf("%s: the state is not named", what)
		}
	}
	settles("none", 7)
	if err := b.Clear(); err != nil || a.Is(7) || a.Is(0) || b.Is(0) {
		t.Errorf("it is not cleared: %v", err)
	}
	for what, make := range map[string]func() error{
		"removed":   func() error { return os.Remove(path) },
		"moved":     func() error { return os.Rename(path, path+".old") },
		"truncated": func() error { return os.Truncate(path, 3) },
		"longer":    func() error { return os.WriteFile(path, bytes.Repeat([]byte("x"), 100), 0o600) },
		"a folder":  func() error { return os.Remove(path) },
	} {
		if err := make(); err != nil {
			t.Fatal(err)
		}
		if what == "a folder" {
			if err := os.Mkdir(path, 0o700); err != nil {
				t.Fatal(err)
			}
			if err := b.Clear(); err != nil || b.Is(7) {
				t.Errorf("%s: %v", what, err)
			}
		}
		settles(what, 8)
	}
	a.Close()
	if a.Look(); a.Is(8) {
		t.Error("it reads after Close")
	}
}

// What can be neither cleared nor removed keeps a change from being made.
func TestClearFails(t *testing.T) {
	path := filepath.Join(t.TempDir(), "stamp")
	if err := os.MkdirAll(filepath.Join(path, "full"), 0o700); err != nil {
		t.Fatal(err)
	}
	f := New(path)
	defer f.Close()
	if err := f.Clear(); err == nil {
		t.Error("it says that it cleared a folder")
	}
	if err := f.Set(7); err == nil || f.Is(7) {
		t.Errorf("got %v", err)
	}
}

// BenchmarkIs is what a check costs, beside one read of the same file.
func BenchmarkIs(b *testing.B) {
	path := filepath.Join(b.TempDir(), "stamp")
	f := New(path)
	defer f.Close()
	if err := f.Set(7); err != nil {
		b.Fatal(err)
	}
	b.Run("check", func(b *testing.B) {
		for b.Loop() {
			if !f.Is(7) {
				b.Fatal("it is another one")
			}
		}
	})
	b.Run("pread", func(b *testing.B) {
		var p [size]byte
		for b.Loop() {
			if n, err := unix.Pread(f.fd, p[:], 0); n != size || err != nil {
				b.Fatal(err)
			}
		}
	})
}
