package workspace

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"io"
	"io/fs"
	"iter"
	"os"
	"slices"
	"syscall"

	"github.com/stilehost/stile/abi"
)

// folder is a directory of a disk during one operation. root confines all accesses to it, whatever is renamed meanwhile.
type folder struct {
	ctx  context.Context
	disk *Disk
	base string
	root *os.Root // nil while the base is missing
	held int      // entries of pages that are being visited
	// unsynced is set while many changes are made that are put on the disk together.
	unsynced bool

	listed []*listed // directories that are read in pages, the most recently read one last
	ahead  int       // names to keep in all of them; aheadNames unless a test sets it
	read   int       // names that were read
}

// listed is what is known about a directory that is read in pages.
type listed struct {
	path  string
	after string   // the last name that was taken
	names []string // those after it, sorted
	more  bool     // and there may be more
}

// descend opens the base. It does not follow links on the way, because the handle was made for this base.
func (f *folder) descend() error {
	f.root = f.disk.root
	for _, name := range names(f.base) {
		above := f.root
		info, err := above.Lstat(name)
		f.root = nil
		switch {
		case errors.Is(err, fs.ErrNotExist):
		case err != nil:
			err = diskError("", err)
		case !info.IsDir():
			err = mismatch("", &node{status: status(info)}, "directory")
		default:
			if f.root, err = above.OpenRoot(name); err != nil {
				err = diskError("", err)
				break
			}
			var opened fs.FileInfo
			if opened, err = f.root.Stat("."); err != nil || !os.SameFile(info, opened) {
				err = errors.Join(changed("/"), f.root.Close())
			}
		}
		if above != f.disk.root {
			_ = above.Close() // nothing was written through it
		}
		if f.root == nil || err != nil {
			if errors.Is(err, fs.ErrNotExist) {
				err = nil
			}
			return err
		}
	}
	return nil
}

// status describes a node that is not a special file.
func status(info fs.FileInfo) Status {
	s := Status{Modified: uint64(max(info.ModTime().UnixMilli(), 0)), Mode: uint32(info.Mode().Perm())}
	switch {
	case info.IsDir():
		s.Kind = KindDirectory
	case info.Mode()&fs.ModeSymlink != 0:
		s.Kind = KindLink
	default:
		s.Size = uint64(info.Size())
	}
	return s
}

// special reports whether a file is neither a regular file nor a directory nor a link.
func special(mode fs.FileMode) bool { return mode.Type()&^(fs.ModeDir|fs.ModeSymlink) != 0 }

// name is a path in the form of os.Root.
func name(path string) string {
	if path == "" {
		return "."
	}
	return path[1:]
}

func (f *folder) lookup(path string) (*node, error) {
	if f.root == nil {
		if path == "" {
			return directoryNode(), nil
		}
		return nil, nil
	}
	info, err := f.root.Lstat(name(path))
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return nil, nil
	}
	if err != nil {
		return nil, diskError(path, err)
	}
	if special(info.Mode()) {
		return nil, invalid(path, "is neither a file nor a directory nor a link")
	}
	n := &node{status: status(info), file: info}
	if n.is(KindLink) {
		if n.target, err = f.root.Readlink(name(path)); err != nil {
			return nil, diskError(path, err)
		}
	}
	return n, nil
}

func (f *folder) reach(place string, names []string) (n *node, taken int, err error) {
	for i, name := range names {
		place += "/" + name
		if n, err = f.lookup(place); n == nil || err != nil {
			return nil, len(names), err
		}
		if n.is(KindLink) {
			return n, i + 1, nil
		}
	}
	return n, len(names), nil
}

func (f *folder) entries(path, after string, limit int) ([]dirent, error) {
	if f.root == nil {
		return nil, nil
	}
	directory, err := f.root.OpenRoot(name(path))
	if err != nil {
		return nil, diskError(path, err)
	}
	defer func() { _ = directory.Close() }() // only read
	l := f.taken(path, after)
	again := l != nil // so there will be more pages
	if !again {
		l = &listed{path: path, after: after, more: true}
	}
	var all []dirent
	handle := Directory{exact: true}
	for len(all) < limit { // some entries are not shown
		if len(l.names) == 0 {
			if !l.more {
				return all, nil
			}
			most := max(limit-len(all), leastNames)
			if again {
				most = max(most, cmp.Or(f.ahead, aheadNames))
			}
			if l.names, err = f.list(directory, l.after, most); err != nil {
				return nil, diskError(path, err)
			}
			l.more = len(l.names) == most
			continue
		}
		name := l.names[0]
		l.after, l.names = name, l.names[1:]
		if normal, err := handle.resolve("", name); err != nil || normal != "/"+name {
			continue
		}
		info, err := directory.Lstat(name)
		if errors.Is(err, fs.ErrNotExist) { // gone meanwhile
			continue
		}
		if err != nil {
			return nil, diskError(path, err)
		}
		if !special(info.Mode()) {
			all = append(all, dirent{Entry: Entry{Name: name, Status: status(info)}})
		}
	}
	f.keep(l)
	return all, nil
}

// leastNames is how many names are taken from a directory at least each time that it is read: all of it is read each time. aheadNames is
// how many are kept for later pages of a directory, and of those on the way to it.
const leastNames, aheadNames = 4096, 64 << 10

// taken returns the names kept for a directory whose last page ended after a name, if there are any, and forgets them.
func (f *folder) taken(path, after string) *listed {
	i := slices.IndexFunc(f.listed, func(l *listed) bool { return l.path == path })
	if i < 0 {
		return nil
	}
	l := f.listed[i]
	f.listed = slices.Delete(f.listed, i, i+1)
	if l.after != after {
		return nil
	}
	return l
}

// keep keeps the names that a page left over. If there are too many,
// it drops those of the directories that were read the longest ago.
func (f *folder) keep(l *listed) {
	f.listed = append(f.listed, l)
	kept := 0
	for _, l := range slices.Backward(f.listed) {
		if kept += len(l.names); kept > cmp.Or(f.ahead, aheadNames) {
			kept -= len(l.names)
			l.names, l.more = nil, true
		}
	}
}

// list returns the first names in a directory after a given one, sorted. It holds only slightly more than twice as many names as it
// returns, however many there are.
func (f *folder) list(directory *os.Root, after string, most int) ([]string, error) {
	file, err := directory.Open(".")
	if err != nil {
		return nil, err
	}
	defer file.Close()
	var all []string
	first := func() {
		slices.Sort(all)
		all = all[:min(most, len(all))]
	}
	for {
		if err := f.ctx.Err(); err != nil {
			return nil, err
		}
		some, err := file.Readdirnames(1024)
		f.read += len(some)
		for _, name := range some {
			if name > after {
				all = append(all, name)
			}
		}
		if errors.Is(err, io.EOF) {
			first()
			return slices.Clip(all), nil
		}
		if err != nil {
			return nil, err
		}
		if len(all) >= 2*most+1024 {
			first()
			clear(all[len(all):cap(all)])
		}
	}
}

// contents adds none: the system reads ahead.
func (*folder) contents([]*node, map[int64][]byte) error { return nil }

// each visits the entries of a directory in pages.
func (f *folder) each(path string, visit func(Entry) error) error {
	for after, more := "", true; more; {
		size := nextPage(f.held)
		page, err := f.entries(path, after, size)
		if err != nil {
			return err
		}
		f.held += len(page)
		for _, e := range page {
			if err := f.ctx.Err(); err != nil {
				return err
			}
			if err := visit(e.Entry); err != nil {
				return err
			}
			after = e.Name
		}
		f.held -= len(page)
		more = len(page) == size
	}
	return nil
}

// open opens a file that was looked up, and makes sure that it is the same file. A pipe in its place does not block.
func (f *folder) open(path string, n *node, flag int) (*os.File, error) {
	file, err := f.root.OpenFile(name(path), flag|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, diskError(path, err)
	}
	info, err := file.Stat()
	if err == nil && !os.SameFile(info, n.file.(fs.FileInfo)) {
		err = changed(path)
	}
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
}

func (f *folder) content(path string, n *node, offset int64) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		if offset > int64(n.status.Size) {
			return
		}
		file, err := f.open(path, n, os.O_RDONLY)
		if err != nil {
			yield(nil, err)
			return
		}
		defer file.Close()
		buffer := make([]byte, chunkSize)
		for {
			if err := f.ctx.Err(); err != nil {
				yield(nil, err)
				return
			}
			size, err := file.ReadAt(buffer, offset)
			offset += int64(size)
			if size > 0 && !yield(buffer[:size], nil) || errors.Is(err, io.EOF) {
				return
			}
			if err != nil {
				yield(nil, diskError(path, err))
				return
			}
		}
	}
}

func (f *folder) ensure() (made int, err error) {
	if f.root != nil {
		return 0, nil
	}
	if err := f.disk.root.MkdirAll(name(f.base), directoryMode); err != nil {
		return 0, diskError("", err)
	}
	if err := f.descend(); err != nil {
		return 0, err
	}
	if f.root == nil { // the machine moved what was just made
		return 0, changed("/")
	}
	return 0, nil // no transaction waits while files are made on disk
}

// within runs change in the directory of a path, with the last name, and syncs the result to the disk.
func (f *folder) within(path string, change func(directory *os.Root, name string) error) error {
	parent, last := split(path)
	directory, err := f.root.OpenRoot(name(parent))
	if err != nil {
		return diskError(path, err)
	}
	defer func() { _ = directory.Close() }() // what was written is synced below
	if err := change(directory, last); err != nil {
		return diskError(path, err)
	}
	if f.unsynced {
		return nil
	}
	return diskError(path, syncDirectory(directory))
}

func syncDirectory(directory *os.Root) error {
	file, err := directory.Open(".")
	if err != nil {
		return err
	}
	return errors.Join(file.Sync(), file.Close())
}

// inOneStep fills a temporary file and then renames it, so that the path has all of it or nothing.
func inOneStep(directory *os.Root, last string, fill func(name string) error) error {
	name := temporary + rand.Text()
	err := fill(name)
	if err == nil {
		err = directory.Rename(name, last)
	}
	if err != nil {
		_ = directory.RemoveAll(name) // the first error says more
	}
	return err
}

func (f *folder) put(path string, n *node, size int64, content io.Reader) error {
	mode := fs.FileMode(fileMode)
	if n != nil {
		mode = fs.FileMode(n.status.Mode)
	}
	return f.within(path, func(directory *os.Root, last string) error {
		return inOneStep(directory, last, func(name string) error {
			return f.fill(directory, name, mode, n != nil, io.LimitReader(content, size))
		})
	})
}

// fill makes a file. exact sets its mode whatever the process's mask is.
func (f *folder) fill(directory *os.Root, name string, mode fs.FileMode, exact bool, content io.Reader) error {
	file, err := directory.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	for err == nil {
		if err = f.ctx.Err(); err == nil {
			_, err = io.CopyN(file, content, 1<<20)
		}
	}
	if errors.Is(err, io.EOF) {
		err = nil
	}
	if err == nil && exact {
		err = file.Chmod(mode)
	}
	if err == nil && !f.unsynced {
		err = file.Sync()
	}
	return errors.Join(err, file.Close())
}

func (f *folder) extend(path string, n *node, data []byte) error {
	if links(n.file.(fs.FileInfo)) > 1 { // the other names keep the old content
		var old bytes.Buffer
		for piece, err := range f.content(path, n, 0) {
			if err != nil {
				return err
			}
			if old.Write(piece); old.Len() > abi.MaxText {
				return &abi.Error{Code: abi.CodeTooLarge, Size: n.status.Size}
			}
		}
		old.Write(data)
		return f.put(path, n, int64(old.Len()), &old)
	}
	file, err := f.open(path, n, os.O_WRONLY|os.O_APPEND)
	if err != nil {
		return err
	}
	size := int64(n.status.Size)
	_, err = file.Write(data)
	if err == nil {
		err = file.Sync()
	}
	if err != nil {
		_ = file.Truncate(size) // all or nothing, as far as the disk allows
	}
	return diskError(path, errors.Join(err, file.Close()))
}

func links(info fs.FileInfo) uint64 {
	if s, ok := info.Sys().(*syscall.Stat_t); ok {
		return uint64(s.Nlink) // its type differs between systems
	}
	return 1
}

func (f *folder) makeDirectory(path string) error {
	return f.within(path, func(directory *os.Root, last string) error { return directory.Mkdir(last, directoryMode) })
}

func (f *folder) makeLink(path, target string) error {
	return f.within(path, func(directory *os.Root, last string) error { return directory.Symlink(target, last) })
}

func (f *folder) setMode(path string, n *node, mode uint32) error {
	if n.is(KindFile) && links(n.file.(fs.FileInfo)) > 1 { // the other names keep the old content
		file, err := f.open(path, n, os.O_RDONLY)
		if err != nil {
			return err
		}
		defer file.Close()
		own := &node{status: Status{Mode: mode}}
		return f.put(path, own, int64(n.status.Size), file)
	}
	return f.within(path, func(directory *os.Root, last string) error { return directory.Chmod(last, fs.FileMode(mode)) })
}

func (f *folder) move(n *node, source, target string) error {
	if n.is(KindDirectory) {
		if err := f.shallow(source, len(f.base)+len(target)); err != nil {
			return err
		}
	}
	if err := f.root.Rename(name(source), name(target)); err != nil {
		return diskError(target, err)
	}
	nothing := func(*os.Root, string) error { return nil }
	return errors.Join(f.within(source, nothing), f.within(target, nothing))
}

// tooDeep is the error of an operation that would make a path of this many bytes below its target.
func tooDeep(size int) error {
	return abi.Errorf(abi.CodeInvalid, "a path below the target would have %d bytes; at most %d", size, maxPath)
}

// shallow makes sure that no path below a directory gets too long if the directory's own path has this many bytes.
func (f *folder) shallow(path string, size int) error {
	return f.each(path, func(e Entry) error {
		longer := size + 1 + len(e.Name)
		if longer > maxPath {
			return tooDeep(longer)
		}
		if e.Status.Kind != KindDirectory {
			return nil
		}
		return f.shallow(path+"/"+e.Name, longer)
	})
}

func (f *folder) copy(n *node, source, target string) error {
	if n.is(KindDirectory) {
		if err := f.shallow(source, len(f.base)+len(target)); err != nil {
			return err
		}
	}
	return f.within(target, func(directory *os.Root, last string) error {
		return inOneStep(directory, last, func(name string) error { return f.duplicate(n, source, directory, name) })
	})
}

// duplicate copies a node with everything below it into a directory.
func (f *folder) duplicate(n *node, source string, directory *os.Root, name string) error {
	if err := f.ctx.Err(); err != nil {
		return err
	}
	switch n.status.Kind {
	case KindLink:
		return directory.Symlink(n.target, name)
	case KindDirectory:
		if err := directory.Mkdir(name, fs.FileMode(n.status.Mode)|0o700); err != nil {
			return err
		}
		below, err := directory.OpenRoot(name)
		if err != nil {
			return err
		}
		defer func() { _ = below.Close() }() // what was written is synced below
		if err := f.each(source, func(e Entry) error {
			at := source + "/" + e.Name
			n, err := f.lookup(at)
			if err != nil || n == nil {
				return err
			}
			return f.duplicate(n, at, below, e.Name)
		}); err != nil {
			return err
		}
		if err := directory.Chmod(name, fs.FileMode(n.status.Mode)); err != nil {
			return err
		}
		return syncDirectory(below)
	default:
		file, err := f.open(source, n, os.O_RDONLY)
		if err != nil {
			return err
		}
		defer file.Close()
		return f.fill(directory, name, fs.FileMode(n.status.Mode), true, file)
	}
}

func (f *folder) remove(n *node, path string, recursive bool) error {
	return f.within(path, func(directory *os.Root, last string) error {
		if !n.is(KindDirectory) || !recursive {
			return directory.Remove(last) // the system also sees entries that no path can name
		}
		// In one step for other programs, which may be reading it.
		name := temporary + rand.Text()
		if err := directory.Rename(last, name); err != nil {
			return err
		}
		return directory.RemoveAll(name)
	})
}
