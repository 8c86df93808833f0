// Package images keeps the root file systems of sandboxes: each in a folder of its name, with a description beside it. An image never
// changes once it is there; importing one again under its name replaces it. The image [Host] is always there: the programs of this
// machine.
package images

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/gofrs/flock"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/capabilities/sandbox/internal/box"
	"github.com/stilehost/stile/internal/lazyregexp"
)

// Host names the programs of this machine: its /usr, and the few files of /etc that programs need.
const Host = "host"

var nameForm = lazyregexp.New(`^[a-z0-9][a-z0-9._-]{0,63}$`)

// IsName reports whether an image can have this name.
func IsName(name string) bool { return nameForm.MatchString(name) }

// Image describes an image.
type Image struct {
	Name string `json:"name"`
	// Digest is "sha256:" and a digest of where the image came from, in hexadecimal: of the manifest of an OCI image, or of what was asked
	// of debootstrap. It is empty for programs of this machine.
	Digest string `json:"digest,omitempty"`
	// Source says where it came from, for people.
	Source string    `json:"source"`
	Made   time.Time `json:"made"`
	// Bytes of its files together.
	Bytes int64 `json:"bytes,omitempty"`
	// Paths are folders of this machine that are shown besides its programs. Such an image has no files of its own.
	Paths []string `json:"paths,omitempty"`
	// Env are variables that its commands have, NAME=VALUE.
	Env []string `json:"env,omitempty"`

	// Root is the folder with its root file system. It is empty for programs of this machine.
	Root string `json:"-"`
}

const description = "image.json"

// Source has the documents and layers of OCI images. What it returns need not be trusted: sizes and digests are checked.
type Source interface {
	// Blob opens the content of a descriptor. The caller closes it, and reads at most one byte more than the descriptor's size.
	Blob(ctx context.Context, d v1.Descriptor) (io.ReadCloser, error)
}

// Origin says what [Import] makes an image of.
type Origin struct {
	// Source has what Roots describe: manifests, or indexes of manifests.
	Source Source
	Roots  []v1.Descriptor
	// Tag selects one of several roots. It is empty for the only one.
	Tag string
	// Name says where the image came from, for people.
	Name string
	// Progress is told how far the import is: once for each layer, and at most once a second besides. Default: nobody.
	Progress func(Progress)
}

// Progress is how far an import is.
type Progress struct {
	Layer, Layers int
	Bytes, Total  int64 // of the layers as the source has them
}

// Bounds of images.
const (
	// MaxDocument is the largest index, manifest or configuration, in bytes.
	MaxDocument = 4 << 20
	// MaxPacked is how many bytes all layers of an image may have as the source has them.
	MaxPacked = 32 << 30
)

// Open returns an image for a sandbox, which calls release when it ends: until then the image is not removed. private are folders of
// this machine that no image may show.
func Open(dir, name string, private []string) (_ Image, release func(), err error) {
	if name == Host {
		return Image{Name: Host}, func() {}, nil
	}
	i, err := read(dir, name)
	if errors.Is(err, fs.ErrNotExist) {
		return Image{}, nil, abi.Errorf(abi.CodeNotFound, "the sandbox image %.100q; stile sandbox image ls lists those that are there", name)
	}
	if err != nil {
		return Image{}, nil, err
	}
	for _, p := range i.Paths {
		if err := box.CheckPath(p, private); err != nil {
			return Image{}, nil, abi.Errorf(abi.CodeUnavailable, "the sandbox image %q shows a folder that it must not show", name)
		}
	}
	return i, func() {}, nil
}

func read(dir, name string) (Image, error) {
	var i Image
	if !IsName(name) {
		return i, fs.ErrNotExist
	}
	text, err := os.ReadFile(filepath.Join(dir, name, description))
	if err != nil {
		return i, err
	}
	if err := json.Unmarshal(text, &i); err != nil {
		return i, fmt.Errorf("image %s: %w", name, err)
	}
	i.Name = name
	if i.Paths == nil {
		i.Root = filepath.Join(dir, name, "root")
	}
	return i, nil
}

// List returns the images of a folder by name, without [Host].
func List(dir string) ([]Image, error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var all []Image
	for _, e := range entries {
		i, err := read(dir, e.Name())
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		all = append(all, i)
	}
	return all, nil
}

// Remove deletes an image. Sandboxes that use it keep their files as far as they have opened them.
func Remove(dir, name string) error {
	if _, err := read(dir, name); err != nil {
		return fmt.Errorf("image %q: %w", name, err)
	}
	return scratch(dir, func(work string) error {
		return locked(dir, func() error { return os.Rename(filepath.Join(dir, name), filepath.Join(work, name)) })
	})
}

// FromHost makes an image of the programs of this machine and more folders of it, whose subfolders bin are in PATH.
func FromHost(dir, name string, paths, private []string) (Image, error) {
	i := Image{Source: "programs of this machine, and " + strings.Join(paths, ", "), Paths: slices.Clone(paths)}
	if len(paths) == 0 {
		return i, errors.New("no folder is named; the image host has the programs alone")
	}
	search := "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
	for _, p := range paths {
		if err := box.CheckPath(p, private); err != nil {
			return i, fmt.Errorf("%s: %w", p, err)
		}
		if info, err := os.Stat(filepath.Join(p, "bin")); err == nil && info.IsDir() {
			search = filepath.Join(p, "bin") + ":" + search
		}
	}
	i.Env = []string{"PATH=" + search}
	return keep(dir, name, i, func(string) error { return nil })
}

// keep makes an image under a name: fill makes its root file system in an empty folder.
func keep(dir, name string, i Image, fill func(root string) error) (Image, error) {
	if !IsName(name) || name == Host {
		return i, fmt.Errorf("%q cannot name an image: lower-case letters, digits, and . _ - between them, but not host", name)
	}
	err := scratch(dir, func(work string) error {
		made := filepath.Join(work, name)
		root := filepath.Join(made, "root")
		if err := os.MkdirAll(root, 0o755); err != nil {
			return err
		}
		if err := fill(root); err != nil {
			return err
		}
		if i.Paths == nil {
			var err error
			if i.Bytes, err = settle(root); err != nil {
				return err
			}
		}
		i.Name, i.Made = name, time.Now().UTC().Truncate(time.Second)
		text, err := json.MarshalIndent(i, "", "  ")
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(made, description), append(text, '\n'), 0o600); err != nil {
			return err
		}
		return locked(dir, func() error {
			final := filepath.Join(dir, name)
			if _, err := os.Lstat(final); errors.Is(err, fs.ErrNotExist) {
				return os.Rename(made, final)
			}
			return exchange(made, final) // what was there goes with the scratch folder
		})
	})
	return i, err
}

// locked runs f while no other process does so for the same folder.
func locked(dir string, f func() error) (err error) {
	lock := flock.New(filepath.Join(dir, ".lock"))
	if err := lock.Lock(); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lock.Close()) }()
	return f()
}

// Names of folders that are no images: of those that are in use, which are locked, and of those that can go.
const making, gone = ".making-", ".gone-"

// scratch runs f with an empty folder, which it removes with all that f leaves there. It also removes those of processes that died.
func scratch(dir string, f func(work string) error) (err error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	var work string
	var own *flock.Flock
	leave := func(work string) error {
		return os.Rename(work, filepath.Join(dir, gone+strings.TrimPrefix(filepath.Base(work), making)))
	}
	err = locked(dir, func() error {
		entries, err := os.ReadDir(dir)
		if err != nil {
			return err
		}
		for _, e := range entries {
			at := filepath.Join(dir, e.Name())
			if !strings.HasPrefix(e.Name(), making) {
				continue
			}
			lock := flock.New(filepath.Join(at, "lock"))
			if free, err := lock.TryLock(); err == nil && free {
				if err := errors.Join(lock.Close(), leave(at)); err != nil {
					return err
				}
			}
		}
		if work, err = os.MkdirTemp(dir, making); err != nil {
			return err
		}
		own = flock.New(filepath.Join(work, "lock"))
		return own.Lock()
	})
	if own != nil {
		defer func() {
			err = errors.Join(err, locked(dir, func() error { return errors.Join(own.Close(), leave(work)) }), sweep(dir))
		}()
	}
	if err != nil {
		return err
	}
	if err := sweep(dir); err != nil {
		return err
	}
	return f(work)
}

// sweep removes the folders that can go. Several processes may do so at once.
func sweep(dir string) error {
	left, err := filepath.Glob(filepath.Join(dir, gone+"*"))
	for _, one := range left {
		err = errors.Join(err, os.RemoveAll(one))
	}
	return err
}

// settle makes a root file system fit for sandboxes, in which nobody owns its files: what its owner may read, everybody may. No file has
// setuid or setgid bits, and the folders are there on which a sandbox puts its own. It returns the size of all files.
func settle(root string) (size int64, err error) {
	top, err := os.OpenRoot(root)
	if err != nil {
		return 0, err
	}
	defer func() { _ = top.Close() }() // only names and modes were changed
	for _, p := range box.Points {
		at := ""
		for name := range strings.SplitSeq(p, "/") {
			at = filepath.Join(at, name)
			if info, err := top.Lstat(at); err == nil && info.IsDir() {
				continue
			} else if err == nil {
				if err := top.RemoveAll(at); err != nil {
					return 0, err
				}
			}
			if err := top.Mkdir(at, 0o755); err != nil {
				return 0, err
			}
		}
	}
	err = filepath.WalkDir(root, func(at string, e fs.DirEntry, err error) error {
		if err != nil || e.Type()&fs.ModeSymlink != 0 {
			return err
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		if !info.IsDir() && !info.Mode().IsRegular() {
			return os.Remove(at)
		}
		if info.Mode().IsRegular() {
			size += info.Size()
		}
		mode := info.Mode().Perm()
		mode |= mode >> 6 & 0o5
		if info.IsDir() {
			mode |= 0o755
		}
		if info.Mode()&(fs.ModeSetuid|fs.ModeSetgid|fs.ModeSticky) != 0 || mode != info.Mode().Perm() {
			return os.Chmod(at, mode)
		}
		return nil
	})
	return size, err
}
