package main

import (
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stilehost/stile/internal/treetest"
)

// TestFolderOfDraft walks folders with no end, and those that hold as much as a draft may have.
func TestFolderOfDraft(t *testing.T) {
	files := fstest.MapFS{}
	for _, name := range []string{"a.ts", "b/c/d.ts", "b/e.ts"} {
		files[name] = &fstest.MapFile{}
	}
	for _, in := range []string{".", "b", "b/c", ""} {
		for _, most := range []int{5, 4, 2000} {
			var seen []string
			err := fs.WalkDir(&fewEntries{treetest.Endless(files, in), "x", most}, ".", func(name string, _ fs.DirEntry, err error) error {
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
