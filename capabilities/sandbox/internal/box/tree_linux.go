package box

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/stilehost/stile/capabilities/internal/trees"
)

// Tree is the working tree of a box. Processes of the box may change it at any time, so nothing that was found is believed later: every
// path is opened from the top, and no link is followed, wherever it leads. It is safe for concurrent use.
type Tree struct {
	box   *Box
	top   *os.File
	owner int
}

// Tree returns the working tree.
func (b *Box) Tree() *Tree { return &Tree{box: b, top: b.work, owner: int(b.first)} }

const (
	maxDepth = 128  // of folders
	maxName  = 4096 // bytes of a path
)

// open opens what is at a path, which no link may be on the way to.
func (t *Tree) open(at string, flags uint64) (*os.File, error) {
	if at == "" {
		at = "."
	}
	how := unix.OpenHow{
		Flags:   flags | unix.O_CLOEXEC | unix.O_NOFOLLOW,
		Resolve: unix.RESOLVE_IN_ROOT | unix.RESOLVE_NO_MAGICLINKS | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_XDEV,
	}
	for range 32 { // it is interrupted when something is renamed meanwhile
		fd, err := unix.Openat2(int(t.top.Fd()), at, &how)
		if err == nil {
			return os.NewFile(uintptr(fd), at), nil
		}
		if !errors.Is(err, unix.EAGAIN) && !errors.Is(err, unix.EINTR) {
			return nil, &fs.PathError{Op: "open", Path: at, Err: err}
		}
	}
	return nil, &fs.PathError{Op: "open", Path: at, Err: unix.EAGAIN}
}

// Survey visits everything in a folder of the tree. A directory comes before what is in it. skip is told what has no place in another
// tree, and why.
func (t *Tree) Survey(at string, visit func(trees.Entry) error, skip func(path, reason string)) error {
	folder, err := t.open(at, unix.O_RDONLY|unix.O_DIRECTORY)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.ELOOP) {
		return nil
	}
	if err != nil {
		return err
	}
	return t.survey(folder, "", 0, visit, skip)
}

// survey visits what is in an open folder, and closes it.
func (t *Tree) survey(folder *os.File, at string, depth int, visit func(trees.Entry) error, skip func(path, reason string)) error {
	defer folder.Close()
	if depth > maxDepth {
		skip(at, fmt.Sprintf("more than %d folders deep", maxDepth))
		return nil
	}
	for {
		names, err := folder.Readdirnames(1024)
		for _, name := range names {
			below := name
			if at != "" {
				below = at + "/" + name
			}
			if err := t.one(folder, below, name, depth, visit, skip); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

func (t *Tree) one(folder *os.File, at, name string, depth int, visit func(trees.Entry) error, skip func(path, reason string)) error {
	var s unix.Stat_t
	fd := int(folder.Fd())
	if err := unix.Fstatat(fd, name, &s, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		if errors.Is(err, unix.ENOENT) {
			return nil
		}
		return &fs.PathError{Op: "stat", Path: at, Err: err}
	}
	if len(at) > maxName {
		skip(at, "its path is too long")
		return nil
	}
	e := trees.Entry{Path: at, Mode: s.Mode & 0o777}
	switch s.Mode & unix.S_IFMT {
	case unix.S_IFREG:
		e.Size, e.Linked = s.Size, s.Nlink > 1
		e.Stamp = trees.Stamp(s.Mtim.Nano(), s.Ctim.Nano(), int64(s.Ino))
		e.Changed = s.Ctim.Nano()
		e.Settle(time.Now())
	case unix.S_IFDIR:
		e.Kind = trees.Directory
	case unix.S_IFLNK:
		e.Kind = trees.Link
		buffer := make([]byte, maxName+1)
		n, err := unix.Readlinkat(fd, name, buffer)
		if err != nil || n > maxName {
			skip(at, "its target cannot be read")
			return nil
		}
		e.Target = string(buffer[:n])
	case unix.S_IFIFO:
		skip(at, "a pipe")
		return nil
	case unix.S_IFSOCK:
		skip(at, "a socket")
		return nil
	default:
		skip(at, "a device")
		return nil
	}
	if s.Mode&(unix.S_ISUID|unix.S_ISGID) != 0 && e.Kind == trees.File {
		skip(at, "its setuid and setgid bits; the file itself is copied")
	}
	if err := visit(e); err != nil || e.Kind != trees.Directory {
		return err
	}
	below, err := unix.Openat(fd, name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.ELOOP) { // it was replaced meanwhile
			return nil
		}
		return &fs.PathError{Op: "open", Path: at, Err: err}
	}
	return t.survey(os.NewFile(uintptr(below), at), at, depth+1, visit, skip)
}

// Open opens a file. The error is fs.ErrNotExist if there is none any more.
func (t *Tree) Open(at string) (io.ReadCloser, error) {
	return t.file(at)
}

func (t *Tree) file(at string) (*os.File, error) {
	file, err := t.open(at, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_NOCTTY)
	if err != nil {
		return nil, err
	}
	info, err := file.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = &fs.PathError{Op: "open", Path: at, Err: fs.ErrNotExist}
	}
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
}

// Stat describes what is at a path. It is nil if there is nothing that another tree can have.
func (t *Tree) Stat(at string) (*trees.Entry, error) {
	parent, name := path.Split(at)
	folder, err := t.open(strings.TrimSuffix(parent, "/"), unix.O_RDONLY|unix.O_DIRECTORY)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			err = nil
		}
		return nil, err
	}
	defer folder.Close()
	var found *trees.Entry
	err = t.one(folder, at, name, 0, func(e trees.Entry) error { found = &e; return errFound }, func(string, string) {})
	if errors.Is(err, errFound) {
		err = nil
	}
	return found, err
}

// errFound ends a search.
var errFound = errors.New("found")

// Look is a survey of a folder that looks at one path in it, and if below is set at what is below that.
func (t *Tree) Look(folder, at string, below bool, visit func(trees.Entry) error, skip func(path, reason string)) error {
	parent, name := path.Split(path.Join(folder, at))
	above, err := t.open(strings.TrimSuffix(parent, "/"), unix.O_RDONLY|unix.O_DIRECTORY)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.ELOOP) {
		return nil
	}
	if err != nil {
		return err
	}
	defer above.Close()
	err = t.one(above, at, name, strings.Count(at, "/"), func(e trees.Entry) error {
		if err := visit(e); err != nil || below {
			return err
		}
		return errFound
	}, skip)
	if errors.Is(err, errFound) {
		err = nil
	}
	return err
}

// within runs change in the folder of a path.
func (t *Tree) within(at string, change func(folder int, name string) error) error {
	parent, name := path.Split(at)
	folder, err := t.open(strings.TrimSuffix(parent, "/"), unix.O_RDONLY|unix.O_DIRECTORY)
	if err != nil {
		return err
	}
	defer folder.Close()
	if err := change(int(folder.Fd()), name); err != nil {
		return &fs.PathError{Op: "change", Path: at, Err: err}
	}
	return nil
}

// Remove removes a file, a link or an empty folder.
func (t *Tree) Remove(at string) error {
	return t.within(at, func(folder int, name string) error {
		err := unix.Unlinkat(folder, name, 0)
		if errors.Is(err, unix.EISDIR) {
			err = unix.Unlinkat(folder, name, unix.AT_REMOVEDIR)
		}
		return err
	})
}

// Rename gives something another name in its folder. Nothing may have that name.
func (t *Tree) Rename(at, name string) error {
	return t.within(at, func(folder int, old string) error {
		return unix.Renameat2(folder, old, folder, name, unix.RENAME_NOREPLACE)
	})
}

// MakeDirectory makes a folder, or changes its mode if there is one. A box's own processes can always use it.
func (t *Tree) MakeDirectory(at string, mode uint32) error {
	return t.within(at, func(folder int, name string) error {
		err := unix.Mkdirat(folder, name, 0o700)
		if err != nil && !errors.Is(err, unix.EEXIST) {
			return err
		}
		fd, err := unix.Openat(folder, name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
		if err != nil {
			return err
		}
		defer func() { _ = unix.Close(fd) }()
		return errors.Join(unix.Fchown(fd, t.owner, t.owner), unix.Fchmod(fd, mode|0o700))
	})
}

// MakeLink makes a link, which is not followed here.
func (t *Tree) MakeLink(at, target string) error {
	return t.within(at, func(folder int, name string) error {
		return errors.Join(unix.Symlinkat(target, folder, name), unix.Fchownat(folder, name, t.owner, t.owner, unix.AT_SYMLINK_NOFOLLOW))
	})
}

// Chmod changes the mode of a file.
func (t *Tree) Chmod(at string, mode uint32) error {
	file, err := t.file(at)
	if err != nil {
		return err
	}
	defer file.Close()
	return unix.Fchmod(int(file.Fd()), mode|0o400)
}

// Write makes or replaces a file. A process of the box sees all of it or none.
func (t *Tree) Write(at string, mode uint32, content io.Reader) error {
	return t.within(at, func(folder int, name string) error {
		fd, err := unix.Openat(folder, ".", unix.O_WRONLY|unix.O_TMPFILE|unix.O_CLOEXEC, 0o600)
		if err != nil {
			return err
		}
		file := os.NewFile(uintptr(fd), name)
		defer file.Close()
		if _, err := io.Copy(file, content); err != nil {
			return err
		}
		if err := errors.Join(unix.Fchown(fd, t.owner, t.owner), unix.Fchmod(fd, mode|0o400)); err != nil {
			return err
		}
		// A link to the file, which has no name yet. It replaces nothing, so what was there goes first.
		link := func() error {
			return unix.Linkat(unix.AT_FDCWD, fmt.Sprintf("/proc/self/fd/%d", fd), folder, name, unix.AT_SYMLINK_FOLLOW)
		}
		if err = link(); errors.Is(err, unix.EEXIST) {
			if err = unix.Unlinkat(folder, name, 0); err == nil || errors.Is(err, unix.ENOENT) {
				err = link()
			}
		}
		return err
	})
}
