package main

import (
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/stilehost/stile/internal/jslex"
	"github.com/stilehost/stile/toolchain"
)

// watched are the files that a build reads or looks for. Their states are compared again and again, which notices whatever an editor does,
// in every file system, and files that do not exist yet. It is safe for concurrent use.
type watched struct {
	mu    sync.Mutex
	files map[string]fileState // as they were before they were read
	// sources are the code below a folder, as it was and as it is. It is listed again when one of its folders changes.
	sources, now sources
	list         func() sources
}

func newWatched(list func() sources) *watched {
	w := &watched{files: map[string]fileState{}, sources: list(), list: list}
	w.now = w.sources
	return w
}

// see notes the state of a file that is about to be read.
func (w *watched) see(name string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if _, ok := w.files[name]; !ok {
		w.files[name] = stateOf(name)
	}
}

// changed returns the files that are not as they were when they were read, sorted.
func (w *watched) changed() (names []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for name, before := range w.files {
		if stateOf(name) != before {
			names = append(names, name)
		}
	}
	for name, before := range w.now.folders {
		if !changedAt(name).Equal(before) {
			w.now = w.list()
			break
		}
	}
	for _, name := range slices.Concat(w.now.files, w.sources.files) {
		if slices.Contains(w.now.files, name) != slices.Contains(w.sources.files, name) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// states are the present states of the files.
func (w *watched) states() map[string]fileState {
	w.mu.Lock()
	defer w.mu.Unlock()
	all := map[string]fileState{}
	for name := range w.files {
		all[name] = stateOf(name)
	}
	return all
}

// through returns a tree that notes what is read of it. dir is its folder.
func (w *watched) through(dir string) func(fs.FS) fs.FS {
	return func(tree fs.FS) fs.FS { return &seen{tree, dir, w} }
}

type seen struct {
	tree fs.FS
	dir  string
	by   *watched
}

// Open implements [fs.FS].
func (t *seen) Open(name string) (fs.File, error) {
	t.by.see(filepath.Join(t.dir, filepath.FromSlash(name)))
	return t.tree.Open(name)
}

// Stat implements [fs.StatFS].
func (t *seen) Stat(name string) (fs.FileInfo, error) {
	t.by.see(filepath.Join(t.dir, filepath.FromSlash(name)))
	return fs.Stat(t.tree, name)
}

// sources are the files with code below a folder, sorted, those with data, and the times at which its folders last changed.
type sources struct {
	files   []string
	data    []string
	folders map[string]time.Time
}

// sourcesIn lists what stile ext add would take of a folder, if that is an extension's. Names begin with dir.
func sourcesIn(dir string, keep ...string) sources {
	found := sources{folders: map[string]time.Time{}}
	tree, closer, err := toolchain.OpenFolder(dir, keep...)
	if err != nil {
		return found
	}
	defer func() { _ = closer.Close() }() // it was only read
	_ = fs.WalkDir(&fewEntries{FS: tree, dir: dir, left: maxDraftEntries}, ".", func(name string, entry fs.DirEntry, err error) error {
		full := filepath.Join(dir, filepath.FromSlash(name))
		switch base := path.Base(name); {
		case err != nil:
			return fs.SkipAll // too many, or it is being replaced
		case name != "." && strings.HasPrefix(base, "."), entry.IsDir() && base == "node_modules":
			if entry.IsDir() {
				return fs.SkipDir
			}
		case entry.IsDir():
			found.folders[full] = changedAt(full)
		case jslex.IsCode(base) || path.Ext(base) == ".wasm":
			found.files = append(found.files, full)
		case path.Ext(base) == ".json":
			found.data = append(found.data, full)
		}
		return nil
	})
	slices.Sort(found.files)
	return found
}

// changedAt is when entries of a folder were last added or removed. It is zero if there is no folder.
func changedAt(folder string) time.Time {
	info, err := os.Stat(folder)
	if err != nil {
		return time.Time{}
	}
	return info.ModTime()
}
