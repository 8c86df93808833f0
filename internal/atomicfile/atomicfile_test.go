package atomicfile_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stilehost/stile/internal/atomicfile"
)

func Example() {
	dir, err := os.MkdirTemp("", "")
	if err != nil {
		panic(err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	file := filepath.Join(dir, "settings.json")
	for _, text := range []string{`{"a": 1}`, `{}`} {
		if err := atomicfile.ReplaceLocked(atomicfile.Machine{}, file, []byte(text)); err != nil {
			panic(err)
		}
	}
	text, err := os.ReadFile(file)
	fmt.Println(string(text), err)
	// Output: {} <nil>
}

// failing is a folder in which one operation fails.
type failing struct {
	atomicfile.Machine
	rename, open bool
}

func (f failing) Rename(from, to string) error {
	if f.rename {
		return fs.ErrPermission
	}
	return f.Machine.Rename(from, to)
}

func (f failing) OpenFile(name string, flag int, perm fs.FileMode) (*os.File, error) {
	if f.open {
		flag = flag&^os.O_WRONLY | os.O_RDONLY // so that nothing can be written
	}
	return f.Machine.OpenFile(name, flag, perm)
}

// TestReplace fails at every step. The file keeps its content, and no other file is left.
func TestReplace(t *testing.T) {
	for _, tt := range []struct {
		name   string
		in     atomicfile.Folder
		beside string // a file that is there before
		want   string
	}{
		{"a new content", atomicfile.Machine{}, "", "new"},
		{"a file of a process that was killed", atomicfile.Machine{}, "file.tmp", "new"},
		{"no rename", failing{rename: true}, "", "old"},
		{"no write", failing{open: true}, "", "old"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			file := filepath.Join(dir, "file")
			if err := os.WriteFile(file, []byte("old"), 0o600); err != nil {
				t.Fatal(err)
			}
			if tt.beside != "" {
				if err := os.WriteFile(filepath.Join(dir, tt.beside), []byte("half"), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if err := atomicfile.ReplaceLocked(tt.in, file, []byte("new")); (err == nil) != (tt.want == "new") {
				t.Error(err)
			}
			text, err := os.ReadFile(file)
			if err != nil || string(text) != tt.want {
				t.Errorf("%q, %v", text, err)
			}
			if left, err := os.ReadDir(dir); err != nil || len(left) != 1 {
				t.Errorf("%v, %v", left, err)
			}
		})
	}
}

// TestNoTakeover leaves a temporary file of another process alone.
func TestNoTakeover(t *testing.T) {
	root, err := os.OpenRoot(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = root.Close() }()
	if err := root.WriteFile("other", []byte("theirs"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := atomicfile.Replace(root, "file", "other", []byte("new"), 0o600, false); !errors.Is(err, fs.ErrExist) {
		t.Error(err)
	}
	if text, err := root.ReadFile("other"); err != nil || string(text) != "theirs" {
		t.Errorf("%q, %v", text, err)
	}
}

// full is a folder in which a number of files cannot be created, as on a full disk.
type full struct {
	atomicfile.Machine
	refused *int
}

func (f full) OpenFile(name string, flag int, perm fs.FileMode) (*os.File, error) {
	if flag&os.O_CREATE != 0 && *f.refused > 0 {
		*f.refused--
		return nil, syscall.ENOSPC
	}
	return f.Machine.OpenFile(name, flag, perm)
}

// TestReplaceSpared shrinks a file when no file can be created, and grows it only together with its spare. What another program put in the
// place of the spare is not written to.
func TestReplaceSpared(t *testing.T) {
	for _, tt := range []struct {
		name   string
		put    func(spare, other string) error // puts something in the place of the spare
		data   string
		refuse int // how many files
		want   string
	}{
		{"a smaller content", nil, "new", 9, "new"},
		{"an empty content", nil, "", 9, ""},
		{"no room for the spare of a larger content", nil, "longer", 1, "first"},
		{"room for the larger content only", os.Rename, "longer", 1, "first"},
		{"a spare cut short by a process that was killed", func(spare, _ string) error { return os.Truncate(spare, 3) }, "new", 9, "new"},
		{"a spare too short", func(spare, _ string) error { return os.Truncate(spare, 2) }, "new", 9, "first"},
		{"no spare", os.Rename, "new", 9, "first"},
		{"no spare, and room for the content", os.Rename, "new", 1, "new"},
		{"a link", func(spare, other string) error { return errors.Join(os.Remove(spare), os.Symlink(other, spare)) }, "new", 9, "first"},
		{"a link, and room", func(spare, other string) error { return errors.Join(os.Remove(spare), os.Symlink(other, spare)) }, "new", 0, "new"},
		{"a pipe", func(spare, _ string) error { return errors.Join(os.Remove(spare), syscall.Mkfifo(spare, 0o600)) }, "new", 9, "first"},
		{"half a spare of a process that was killed", func(spare, _ string) error { return os.WriteFile(spare+".tmp", nil, 0o600) }, "new", 0, "new"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			file, other := filepath.Join(dir, "file"), filepath.Join(t.TempDir(), "other")
			if err := errors.Join(atomicfile.ReplaceSpared(atomicfile.Machine{}, file, []byte("first")), os.WriteFile(other, []byte("theirs"), 0o600)); err != nil {
				t.Fatal(err)
			}
			theirs := "theirs"
			if tt.put != nil {
				if err := tt.put(file+".spare", other); err != nil {
					t.Fatal(err)
				}
				b, err := os.ReadFile(other)
				if err != nil {
					t.Fatal(err)
				}
				theirs = string(b)
			}
			err := atomicfile.ReplaceSpared(full{refused: &tt.refuse}, file, []byte(tt.data))
			if (err == nil) != (tt.want == tt.data) || err != nil && !errors.Is(err, syscall.ENOSPC) {
				t.Error(err)
			}
			text, err := os.ReadFile(file)
			if err != nil || string(text) != tt.want {
				t.Errorf("%q, %v", text, err)
			}
			if b, err := os.ReadFile(other); err != nil || string(b) != theirs {
				t.Errorf("%q, %v", b, err)
			}
			if left, err := filepath.Glob(filepath.Join(dir, "*.tmp")); err != nil || len(left) != 0 {
				t.Errorf("%v, %v", left, err)
			}
		})
	}
}
