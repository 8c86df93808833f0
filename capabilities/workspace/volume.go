package workspace

import (
	"context"
	"io"
	"io/fs"
	"iter"
	"os"
	"slices"
	"strings"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/capabilities/blob"
)

// volume keeps files: a workspace of a [Store], or a directory of a [Disk]. The base of an operation is the directory
// that its handle names.
type volume interface {
	view(ctx context.Context, base string, f func(files) error) error
	update(ctx context.Context, base string, f func(files) error) error
	// blobs says how blobs of its files are kept.
	blobs() blob.Options
}

// files are those below one base during one operation. Paths are relative to the base, "" for itself, else "/a/b", and have
// no link in them except where it says so. What a method is told of a node, it is told by the same files.
type files interface {
	// lookup returns what has a path, nil when nothing has. A link is not followed. The base itself is always there.
	lookup(path string) (*node, error)
	// direct is lookup for a path that may have links on its way. known is false when that would have to be found out.
	direct(path string) (n *node, known bool, err error)
	// entries returns at most limit entries of a directory whose names come after a name, in byte order.
	entries(path, after string, limit int) ([]Entry, error)
	// content yields the bytes of a file from an offset on. A piece is good until the next one is asked for.
	content(path string, n *node, offset int64) iter.Seq2[[]byte, error]

	// ensure makes the base if it is missing. The methods below expect it, and the directory above a path, to be there.
	ensure() error
	// put makes a file, or replaces the content of n.
	put(path string, n *node, size int64, content io.Reader) error
	extend(path string, n *node, data []byte) error
	makeDirectory(path string) error
	makeLink(path, target string) error
	setMode(path string, n *node, mode uint32) error
	// move and copy take a node with all that is below it to a path that is free.
	move(n *node, source, target string) error
	copy(n *node, source, target string) error
	// remove deletes a node, and if recursive is set all that is below it.
	remove(n *node, path string, recursive bool) error
}

// node is a file, a directory or a link.
type node struct {
	status Status
	target string // of a link
	id     int64  // in a database
	bytes  int64  // likewise: where the content of a file is
	file   any    // on disk: an fs.FileInfo
}

func (n *node) is(kind EntryKind) bool { return n.status.Kind == kind }

// holds reports whether a file has the content that it, or another, had when it was looked up before. On disk that is what the
// system says of the file.
func (n *node) holds(before *node) bool {
	now, disk := n.file.(fs.FileInfo)
	if !disk {
		return n.bytes == before.bytes
	}
	then := before.file.(fs.FileInfo)
	return os.SameFile(now, then) && now.Size() == then.Size() && now.ModTime().Equal(then.ModTime())
}

// maxLinks is how many links one path may lead through.
const maxLinks = 40

// op is one operation through one handle.
type op struct {
	files
	ctx  context.Context
	name string // as denials name it, e.g. "read"
	base int    // bytes of the handle's own path
}

func (d *Directory) view(ctx context.Context, name string, f func(*op) error) error {
	return d.volume.view(ctx, d.base, func(all files) error { return f(&op{all, ctx, name, len(d.base)}) })
}

// update is view for an operation that changes something; either all of that happens, or nothing.
func (d *Directory) update(ctx context.Context, name string, f func(*op) error) error {
	return d.volume.update(ctx, d.base, func(all files) error { return f(&op{all, ctx, name, len(d.base)}) })
}

// shown is a path as the guest would write it.
func shown(path string) string {
	if path == "" {
		return "/"
	}
	return path
}

func notFound(path string) error { return abi.Errorf(abi.CodeNotFound, "%s", shown(path)) }

func invalid(path, problem string) error {
	return abi.Errorf(abi.CodeInvalid, "%s %s", shown(path), problem)
}

// mismatch says what a path is, where something else was wanted.
func mismatch(path string, n *node, wanted string) error {
	if wanted != "" {
		wanted = ", not a " + wanted
	}
	return invalid(path, "is a "+n.status.Kind.String()+wanted)
}

// locate finds what has a path. It follows links on the way and, if last is set, at the end; none leads out of the base.
// place is where the node is, or would be made.
func (o *op) locate(path string, last bool) (place string, n *node, err error) {
	n, known, err := o.direct(path)
	if err != nil {
		return "", nil, err
	}
	if known && (n == nil || !last || !n.is(KindLink)) {
		return path, n, nil
	}
	todo := names(path)
	missing := false // what is above is not there, so nothing below can be
	n, err = o.lookup("")
	for links := 0; len(todo) > 0 && err == nil; {
		name := todo[0]
		todo = todo[1:]
		if name == ".." { // of a link
			if place == "" {
				return "", nil, o.outside(path)
			}
			place, _ = split(place)
			n, err = o.lookup(place)
			missing = n == nil
			continue
		}
		at := place + "/" + name
		if o.base+len(at) > maxPath {
			return "", nil, abi.Errorf(abi.CodeInvalid, "path: links make it longer than %d bytes", maxPath)
		}
		if n = nil; !missing {
			n, err = o.lookup(at)
		}
		missing = n == nil
		if missing || !n.is(KindLink) || len(todo) == 0 && !last {
			place = at
			continue
		}
		if links++; links > maxLinks {
			return "", nil, invalid(path, "leads through too many links")
		}
		if strings.HasPrefix(n.target, "/") {
			return "", nil, o.outside(path)
		}
		todo = append(names(n.target), todo...)
		n, err = o.lookup(place) // should the target be nothing but "."
	}
	if err != nil {
		return "", nil, err
	}
	return place, n, nil
}

// outside is the denial of a link.
func (o *op) outside(path string) error {
	return abi.Deny(abi.Denial{
		Operation: o.name + " " + shown(path),
		Reason:    "a link leads out of the directory that was granted",
	})
}

// get is locate for what must be there.
func (o *op) get(path string, last bool) (place string, n *node, err error) {
	place, n, err = o.locate(path, last)
	if err == nil && n == nil {
		err = notFound(path)
	}
	return place, n, err
}

func (o *op) file(path string) (place string, n *node, err error) {
	place, n, err = o.get(path, true)
	if err == nil && !n.is(KindFile) {
		err = mismatch(path, n, "")
	}
	return place, n, err
}

func (o *op) directory(path string) (place string, err error) {
	place, n, err := o.get(path, true)
	if err == nil && !n.is(KindDirectory) {
		err = mismatch(path, n, "directory")
	}
	return place, err
}

// makeDirectories makes a directory and those above it, as far as they are missing.
func (o *op) makeDirectories(place string) error {
	var missing []string
	at := place
	for ; at != ""; at, _ = split(at) {
		n, err := o.lookup(at)
		if err != nil {
			return err
		}
		if n != nil && !n.is(KindDirectory) {
			return mismatch(at, n, "directory")
		}
		if n != nil {
			break
		}
		missing = append(missing, at)
	}
	if at == "" {
		if err := o.ensure(); err != nil {
			return err
		}
	}
	for _, path := range slices.Backward(missing) {
		if err := o.makeDirectory(path); err != nil {
			return err
		}
	}
	return nil
}

// absent finds a place for something new and makes the directories above it.
func (o *op) absent(path string) (place string, err error) {
	place, n, err := o.locate(path, false)
	switch {
	case err != nil:
		return "", err
	case n != nil:
		return "", abi.Errorf(abi.CodeAlreadyExists, "%s", shown(path))
	}
	parent, _ := split(place)
	return place, o.makeDirectories(parent)
}

// names are those of a path, without empty ones and ".".
func names(path string) []string {
	var all []string
	for name := range strings.SplitSeq(path, "/") {
		if name != "" && name != "." {
			all = append(all, name)
		}
	}
	return all
}
