package abi

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	slashpath "path"
	"slices"
	"strings"
)

// ParseFolder reads a WIT package from a folder that is laid out as tools for WIT expect it:
//
//	*.wit             the package; one of the files at least has its `package` line
//	deps/NAME/*.wit   another package, in the same way
//	deps/NAME.wit     another package
//
// Other files and folders are ignored. Each package is in one place only. Items behind `@unstable(feature = x)` are part of the
// result if x is among features; otherwise [Parse] says what holds. The error is a [*SyntaxError], or that of reading folder.
func ParseFolder(folder fs.FS, features ...string) (*Resolve, error) {
	f := folderReader{fs: folder}
	entries, err := f.list("deps")
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("read the packages that a WIT package needs: %w", err)
	}
	groups := make([]group, 1, 1+len(entries))
	if groups[0], err = f.group("."); err != nil {
		return nil, err
	}
	for _, entry := range entries {
		name := slashpath.Join("deps", entry.Name())
		g := group{}
		switch {
		case isFolder(folder, entry, name):
			g, err = f.group(name)
		case slashpath.Ext(name) == ".wit":
			err = f.add(&g, name)
		case slashpath.Ext(name) == ".wasm", slashpath.Ext(name) == ".wat":
			err = &SyntaxError{File: name, Message: "a package in WebAssembly form is not supported; put its WIT text here"}
		default:
			continue
		}
		if err != nil {
			return nil, err
		}
		groups = append(groups, g)
	}
	return resolve(groups, features, nil)
}

// folderReader reads files, and numbers them.
type folderReader struct {
	fs    fs.FS
	files int
}

// maxEntries is how many files and folders are in one folder. A folder of other files would take some 350 bytes for each.
const maxEntries = 10 * maxItems

// list reads a folder, in the order of names.
func (f *folderReader) list(name string) ([]fs.DirEntry, error) {
	file, err := f.fs.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }() // it was only read
	folder, ok := file.(fs.ReadDirFile)
	if !ok {
		return nil, &fs.PathError{Op: "read", Path: name, Err: errors.New("not a folder")}
	}
	var entries []fs.DirEntry
	for len(entries) <= maxEntries {
		some, err := folder.ReadDir(maxEntries + 1 - len(entries))
		entries = append(entries, some...)
		if errors.Is(err, io.EOF) {
			slices.SortFunc(entries, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
			return entries, nil
		}
		if err != nil {
			return nil, err
		}
	}
	return nil, &SyntaxError{File: name, Message: fmt.Sprintf("the folder holds more than %d files and folders", maxEntries)}
}

// group reads the WIT files of one folder.
func (f *folderReader) group(folder string) (group, error) {
	g := group{}
	entries, err := f.list(folder)
	if err != nil {
		return g, fmt.Errorf("read a WIT package: %w", err)
	}
	for _, entry := range entries {
		name := slashpath.Join(folder, entry.Name())
		if slashpath.Ext(name) != ".wit" || isFolder(f.fs, entry, name) {
			continue
		}
		if err := f.add(&g, name); err != nil {
			return g, err
		}
	}
	if len(g.sources) == 0 {
		return g, &SyntaxError{File: folder, Message: "there is no .wit file in this folder"}
	}
	return g, nil
}

// add reads one file into g.
func (f *folderReader) add(g *group, name string) error {
	if f.files == maxItems {
		return &SyntaxError{File: name, Message: fmt.Sprintf("there are more than %d .wit files", maxItems)}
	}
	info, err := fs.Stat(f.fs, name)
	if err == nil && !info.Mode().IsRegular() { // opening a pipe would wait for a writer
		return &SyntaxError{File: name, Message: "this is not a file"}
	}
	var file fs.File
	if err == nil {
		file, err = f.fs.Open(name)
	}
	if err != nil {
		return fmt.Errorf("read a WIT file: %w", err)
	}
	text, err := io.ReadAll(io.LimitReader(file, maxText+1))
	if closed := file.Close(); err == nil {
		err = closed
	}
	if err != nil {
		return fmt.Errorf("read a WIT file: %w", err)
	}
	g.sources = append(g.sources, &source{index: f.files, file: name, text: string(text)})
	f.files++
	return nil
}

// isFolder follows a symbolic link.
func isFolder(folder fs.FS, entry fs.DirEntry, name string) bool {
	if entry.Type()&fs.ModeSymlink == 0 {
		return entry.IsDir()
	}
	info, err := fs.Stat(folder, name)
	return err == nil && info.IsDir()
}
