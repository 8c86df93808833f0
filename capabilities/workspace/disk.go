package workspace

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"syscall"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/capabilities/blob"
	"github.com/stilehost/stile/internal/errkind"
	"github.com/stilehost/stile/internal/turns"
)

// DiskOptions configures a [Disk]. The zero value of a field means its default.
type DiskOptions struct {
	// Refuse are directories that must neither contain the opened one nor lie in it, such as those with keys of the host.
	Refuse []string
	// BlobBytes is how much all open blobs read from the directory may hold together. Default 1 GiB.
	BlobBytes int64
	// BlobDir is where blobs over 1 MiB are kept while they are open. Default os.TempDir.
	BlobDir string
}

// Disk is a directory of the machine. It is safe for concurrent use, and for use next to other programs. A file is replaced in one
// step, so that no program sees half of it, and is on the disk before the operation ends. A guest's operations stay inside the
// directory, whatever is renamed or linked meanwhile. A Disk has only the features of the system: there are no limits, history or
// snapshots, an operation on many files can stop in the middle, and an edit of a file that another program changes at that moment
// can undo the change. The caller of OpenDisk closes it.
//
// It leaves out devices, pipes and sockets, names that a path could not have, and names that begin with ".stile-". A file with other
// names on the disk (hard links) can be read. A change gives the directory its own copy of the file.
type Disk struct {
	root   *os.Root
	blob   blob.Options
	write  *turns.Places // one, for the operation that changes something
	search *turns.Places
}

// temporary begins the names of unfinished files.
const temporary = ".stile-"

// OpenDisk opens an existing directory.
func OpenDisk(directory string, options DiskOptions) (*Disk, error) {
	root, err := os.OpenRoot(directory)
	if err != nil {
		return nil, &RefusedError{directory, err}
	}
	for _, refused := range options.Refuse {
		if err = apart(root, directory, refused); err != nil {
			return nil, errors.Join(err, root.Close())
		}
	}
	quota := blob.NewQuota("blobs of the directory", cmp.Or(options.BlobBytes, 1<<30))
	return &Disk{root: root, blob: blob.Options{Dir: options.BlobDir, Quota: quota, Lasts: true}, write: turns.New(1), search: turns.New(2 * runtime.GOMAXPROCS(0))}, nil
}

// Close closes the directory. Later operations fail. Blobs read before stay valid.
func (v *Disk) Close() error { return v.root.Close() }

// Directory returns the whole directory, with the right to change it.
func (v *Disk) Directory() *Directory { return &Directory{volume: v, exact: true} }

// RefusedError reports a directory that cannot be granted, and why.
type RefusedError struct {
	Directory string
	Err       error
}

// Error implements error.
func (e *RefusedError) Error() string { return fmt.Sprintf("directory %s: %v", e.Directory, e.Err) }

// Unwrap returns the reason.
func (e *RefusedError) Unwrap() error { return e.Err }

// apart makes sure that an open directory is not a refused one, and neither contains nor lies in one, under whatever name.
func apart(root *os.Root, directory, refused string) error {
	opened, err := root.Stat(".")
	if err != nil {
		return err
	}
	holds, err := above(refused, opened)
	if err != nil {
		return err
	}
	if holds {
		return &RefusedError{directory, fmt.Errorf("it is or contains %s, which no guest may reach", refused)}
	}
	info, err := os.Stat(refused)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	lies, err := above(directory, info)
	if err == nil && lies {
		err = &RefusedError{directory, fmt.Errorf("it is in %s, which no guest may reach", refused)}
	}
	return err
}

// above reports whether a directory is the path or contains it. For a path that does not exist, it looks at the part that does.
func above(path string, directory fs.FileInfo) (bool, error) {
	path, err := filepath.Abs(path)
	for err == nil {
		var real string
		if real, err = filepath.EvalSymlinks(path); err == nil {
			path = real
			break
		}
		if !errors.Is(err, fs.ErrNotExist) || path == filepath.Dir(path) {
			break
		}
		path, err = filepath.Dir(path), nil
	}
	for err == nil {
		var info fs.FileInfo
		if info, err = os.Stat(path); err == nil && os.SameFile(info, directory) {
			return true, nil
		}
		if path == filepath.Dir(path) {
			break
		}
		path = filepath.Dir(path)
	}
	return false, err
}

func (v *Disk) blobs() blob.Options { return v.blob }

func (v *Disk) searching() *turns.Places { return v.search }

func (v *Disk) view(ctx context.Context, base string, f func(files) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	all := &folder{ctx: ctx, disk: v, base: base}
	if err := all.descend(); err != nil {
		return err
	}
	err := f(all)
	if all.root != nil && all.root != v.root {
		err = errors.Join(err, all.root.Close())
	}
	return err
}

func (v *Disk) update(ctx context.Context, base string, f func(files) error) error {
	if v.write.Take(ctx) != nil {
		return ctx.Err()
	}
	defer v.write.Give()
	return v.view(ctx, base, f)
}

// diskError converts a fault of the disk into an error for a guest, without names of the machine.
func diskError(path string, err error) error {
	if err == nil {
		return nil
	}
	var number syscall.Errno
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return notFound(path)
	case errors.Is(err, syscall.ENOTDIR), errors.Is(err, syscall.ENOTEMPTY), errors.Is(err, syscall.ENAMETOOLONG),
		errors.Is(err, syscall.EISDIR), errors.Is(err, syscall.ELOOP):
		errors.As(err, &number)
		return invalid(path, "cannot be used: "+number.Error())
	case errors.Is(err, fs.ErrExist): // Go also reports a directory that is not empty as this
		return abi.Errorf(abi.CodeAlreadyExists, "%s", shown(path))
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT), errors.Is(err, syscall.EFBIG):
		errors.As(err, &number)
		return abi.Errorf(abi.CodeExhausted, "%s: %s", shown(path), number.Error())
	case errors.As(err, &number):
		return abi.Errorf(abi.CodeUnavailable, "%s: %s", shown(path), number.Error())
	case errkind.Is[*fs.PathError](err), errkind.Is[*os.LinkError](err): // os.Root: the path now leads out, so it has changed since it was checked
		return changed(shown(path))
	default:
		return err
	}
}

// changed is the error of a path that something else changed during the operation.
func changed(path string) error { return abi.Errorf(abi.CodeConflict, "%s changed meanwhile", path) }
