package atomicfile_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
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
