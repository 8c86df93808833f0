// Package treetest has file trees for tests that are hard to read.
package treetest

import (
	"errors"
	"io/fs"
	"slices"
)

// Endless returns files, in which one folder has no end. Reading all of the folder at once fails.
func Endless(files fs.FS, folder string) fs.FS { return endless{files, folder} }

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
