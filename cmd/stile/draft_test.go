package main

import (
	"errors"
	"io/fs"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

// endless is a tree with one folder that has no end.
type endless struct {
	fs.FS
	in string
}

func (e endless) Open(name string) (fs.File, error) {
	f, err := e.FS.Open(name)
	if err == nil && name == e.in {
		return endlessFolder{f}, nil
	}
	return f, err
}

type endlessFolder struct{ fs.File }

func (f endlessFolder) ReadDir(n int) ([]fs.DirEntry, error) {
	if n <= 0 {
		return nil, errors.New("this would never end")
	}
	info, err := f.Stat()
	return slices.Repeat([]fs.DirEntry{fs.FileInfoToDirEntry(info)}, min(n, 100)), err
}

// TestFolderOfDraft walks folders with no end, and those that hold as much as a draft may have.
func TestFolderOfDraft(t *testing.T) {
	files := fstest.MapFS{}
	for _, name := range []string{"a.ts", "b/c/d.ts", "b/e.ts"} {
		files[name] = &fstest.MapFile{}
	}
	for _, in := range []string{".", "b", "b/c", ""} {
		for _, most := range []int{5, 4, 2000} {
			var seen []string
			err := fs.WalkDir(&fewEntries{endless{files, in}, "x", most}, ".", func(name string, _ fs.DirEntry, err error) error {
				seen = append(seen, name)
				return err
			})
			whole := in == "" && most >= 5
			if whole && (err != nil || strings.Join(seen, " ") != ". a.ts b b/c b/c/d.ts b/e.ts") || !whole && (err == nil || !strings.HasPrefix(err.Error(), "x holds more than 2000 files and folders")) {
				t.Errorf("%q, at most %d: %v, %q", in, most, err, seen)
			}
		}
	}
}
