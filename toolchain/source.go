package toolchain

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// Source is what an extension is built from.
type Source struct {
	// FS is the source tree. Imports are resolved inside it and nowhere else; packages stand in its node_modules. Names
	// that begin with a dot are not looked for, except in node_modules.
	FS fs.FS
	// Entry is the module that exports the extension, a path in FS, e.g. "tool.ts".
	Entry string
	// Imports are the interfaces that the component may import, by full name, e.g. "stile:capability/kv@0.1.0". Nil means the
	// interfaces of Bindings. If Bindings is nil too, it means those that the host knows and the code uses.
	Imports []string
	// Bindings are the names that the env of a call will have, with their interfaces, if they are known in advance, as from
	// a manifest. They grant nothing. They save each call the lookup of its bindings.
	Bindings map[string]string
	// Files names the binding of stile:capability/workspace whose files node's module fs has. Without it, that module has none.
	Files string
	// Found is the result of [FindImports] for FS and Entry, if it was called. If the source imports only its own files, Found also
	// has its bundle, which is not made again.
	Found *Imports
	// Absent lets the source's own files import what is not there: it fails when it is used. That is for looking at the rest of a source with
	// such a problem.
	Absent bool
	// Large is for your own program, such as a compiler: its top level may take a minute instead of 5 s.
	Large bool

	// node returns the files of nodeModules. Without it, these are left out.
	node func() (fs.FS, error)
}

// Open returns the source whose entry is file. Its tree is the folder of file. Nothing outside that folder is read, wherever
// links point. Hidden files are not read either: files whose name, or the name of a folder above them, begins with a dot,
// except in node_modules.
//
// A folder that holds more than the extension is not a tree: the user's home folder, a folder of keep, any folder above one
// of these, and the folder for temporary files. There, the tree has only the entry and node_modules. The caller closes the
// tree after building the source.
func Open(file string, keep ...string) (Source, io.Closer, error) {
	tree, err := openTree(filepath.Dir(file), filepath.Base(file), keep)
	if err != nil {
		return Source{}, nil, fmt.Errorf("open source: %w", err)
	}
	info, err := tree.Stat(tree.entry)
	if link, noLink := tree.root.Lstat(tree.entry); err != nil && noLink == nil && link.Mode()&fs.ModeSymlink != 0 {
		err = fmt.Errorf("%s is a link out of its folder, to a hidden name or to nothing; name the file itself", file)
	}
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s is not a file", file)
	}
	if err != nil {
		return Source{}, nil, fmt.Errorf("open source: %w", errors.Join(err, tree.root.Close()))
	}
	return Source{FS: tree, Entry: tree.entry}, tree.root, nil
}

// OpenFolder returns everything in a folder that an extension may use, as [Open] does. It refuses a folder that holds more
// than the extension. The caller closes the tree.
func OpenFolder(dir string, keep ...string) (fs.FS, io.Closer, error) {
	tree, err := openTree(dir, "", keep)
	if err == nil && tree.shared {
		err = errors.Join(fmt.Errorf("%s holds more than an extension: put the extension into a folder of its own", dir), tree.root.Close())
	}
	if err != nil {
		return nil, nil, fmt.Errorf("open source: %w", err)
	}
	return tree, tree.root, nil
}

func openTree(dir, entry string, keep []string) (*sourceTree, error) {
	dir, err := filepath.Abs(dir)
	if err == nil {
		dir, err = filepath.EvalSymlinks(dir)
	}
	if err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	tree := &sourceTree{dir: dir, entry: entry, root: root}
	if tree.shared, err = shared(root, dir, keep); err != nil {
		return nil, errors.Join(err, root.Close())
	}
	return tree, nil
}

// maxDepth is how many folders a file is in at most: each time a file is looked for, the machine walks through all of them, several times.
const maxDepth = 32

// sourceTree is the set of files in a folder that an extension may use.
type sourceTree struct {
	dir    string // absolute, without links
	entry  string
	root   *os.Root
	shared bool // with more than the extension
}

func (t *sourceTree) Open(name string) (fs.File, error) {
	if err := t.admit("open", name); err != nil {
		return nil, err
	}
	f, err := t.root.OpenFile(filepath.FromSlash(name), os.O_RDONLY|syscall.O_NONBLOCK, 0) // it does not block on a pipe
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() && !info.IsDir() {
		err = &fs.PathError{Op: "open", Path: name, Err: &refusedError{reason: fmt.Sprintf("%q is not a file", name)}}
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// Stat implements [fs.StatFS].
func (t *sourceTree) Stat(name string) (fs.FileInfo, error) {
	if err := t.admit("stat", name); err != nil {
		return nil, err
	}
	return fs.Stat(t.root.FS(), name)
}

// admit refuses a file that exists and is not in the tree. It checks both names of a file, the requested one and the one after
// following all links, so that no link is a way around.
func (t *sourceTree) admit(operation, name string) error {
	if !fs.ValidPath(name) {
		return &fs.PathError{Op: operation, Path: name, Err: fs.ErrInvalid}
	}
	if strings.Count(name, "/") > maxDepth {
		return &refusedError{reason: fmt.Sprintf("%q... is in more than %d folders, one in another: move it up", name[:min(len(name), 100)], maxDepth)}
	}
	if _, err := fs.Stat(t.root.FS(), name); err != nil && strings.HasSuffix(err.Error(), "path escapes from parent") {
		return &refusedError{reason: fmt.Sprintf("%q is a link out of the folder of the extension, or behind one", name)}
	} else if err != nil {
		return err
	}
	target, err := filepath.EvalSymlinks(filepath.Join(t.dir, filepath.FromSlash(name)))
	if err != nil {
		return err
	}
	if target, err = filepath.Rel(t.dir, target); err != nil {
		return err
	}
	target = filepath.ToSlash(target)
	var refused error
	switch {
	case name != t.entry && hidden(name) || name != target && hidden(target):
		refused = hiddenError(name)
	case t.shared && name != t.entry && name != "." && (!below("node_modules", name) || !below("node_modules", target)):
		refused = &refusedError{reason: fmt.Sprintf("%q is in %s, which holds more than this extension, so only %s and node_modules are used: "+
			"put the extension into a folder of its own", name, t.dir, t.entry), notInTree: true}
	default:
		return nil
	}
	return &fs.PathError{Op: operation, Path: name, Err: refused}
}

// shared reports whether a folder holds more than an extension. It compares folders themselves, because links and case can change
// their names.
func shared(root *os.Root, dir string, keep []string) (bool, error) {
	folder, err := root.Stat(".")
	if err != nil {
		return false, err
	}
	if info, err := os.Stat(os.TempDir()); err == nil && os.SameFile(info, folder) || filepath.Dir(dir) == dir {
		return true, nil
	}
	if home, err := os.UserHomeDir(); err == nil {
		keep = append(slices.Clone(keep), home)
	}
	return slices.ContainsFunc(keep, func(name string) bool {
		name, err := filepath.Abs(name)
		return err == nil && holds(folder, name)
	}), nil
}

// below reports whether name is the folder dir or in it.
func below(dir, name string) bool { return name == dir || strings.HasPrefix(name, dir+"/") }

// holds reports whether folder is the folder name, which may not exist yet, or contains it, by its name or through links.
func holds(folder fs.FileInfo, name string) bool {
	for {
		if info, err := os.Stat(name); err == nil && os.SameFile(info, folder) {
			return true
		}
		if target, err := filepath.EvalSymlinks(name); err == nil && target != name && holds(folder, target) {
			return true
		}
		above := filepath.Dir(name)
		if above == name {
			return false
		}
		name = above
	}
}
