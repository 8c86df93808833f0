// Package images keeps the root file systems of sandboxes: each in a folder of its name, with a description beside it. An image never
// changes once it is there; importing one again under its name replaces it. The image [Host] is always there: the programs of this
// machine.
package images

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

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

// Open returns an image for a sandbox, which calls release when it ends: until then the image is not removed. private are folders of
// this machine that no image may show.
func Open(dir, name string, private []string) (_ Image, release func(), err error) {
	if name == Host {
		return Image{Name: Host}, func() {}, nil
	}
	i, err := read(dir, name)
	if errors.Is(err, fs.ErrNotExist) {
		return Image{}, nil, abi.Errorf(abi.CodeNotFound, "the sandbox image %.100q; stile sandbox image list shows those that are there", name)
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
	gone, err := os.MkdirTemp(dir, ".removed-")
	if err != nil {
		return err
	}
	if err := os.Rename(filepath.Join(dir, name), filepath.Join(gone, name)); err != nil {
		return errors.Join(err, os.RemoveAll(gone))
	}
	return os.RemoveAll(gone)
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
func keep(dir, name string, i Image, fill func(root string) error) (_ Image, err error) {
	if !IsName(name) || name == Host {
		return i, fmt.Errorf("%q cannot name an image: lower-case letters, digits, and . _ - between them, but not host", name)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return i, err
	}
	work, err := os.MkdirTemp(dir, ".making-")
	if err != nil {
		return i, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(work)) }()
	made := filepath.Join(work, name)
	root := filepath.Join(made, "root")
	if err := os.MkdirAll(root, 0o755); err != nil {
		return i, err
	}
	if err := fill(root); err != nil {
		return i, err
	}
	if i.Paths == nil {
		if i.Bytes, err = settle(root); err != nil {
			return i, err
		}
	}
	i.Name, i.Made = name, time.Now().UTC().Truncate(time.Second)
	text, err := json.MarshalIndent(i, "", "  ")
	if err != nil {
		return i, err
	}
	if err := os.WriteFile(filepath.Join(made, description), append(text, '\n'), 0o600); err != nil {
		return i, err
	}
	final := filepath.Join(dir, name)
	if err := os.Rename(final, filepath.Join(work, "old")); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return i, err
	}
	return i, os.Rename(made, final)
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
