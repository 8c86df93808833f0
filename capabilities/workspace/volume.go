package workspace

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"slices"
	"strings"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/capabilities/blob"
	"github.com/stilehost/stile/internal/turns"
)

// volume keeps files: a workspace of a [Store], or a directory of a [Disk]. The base of an operation is the directory that its
// handle names.
type volume interface {
	view(ctx context.Context, base string, f func(files) error) error
	update(ctx context.Context, base string, f func(files) error) error
	// blobs configures how blobs of its files are kept.
	blobs() blob.Options
	// searching are the places for views that take long.
	searching() *turns.Places
}

// files are those below one base during one operation. Paths are relative to the base: "" for itself, else "/a/b". They contain no
// links unless noted. Methods get only nodes that came from the same files.
type files interface {
	// lookup returns the node at a path, or nil. It does not follow a link. The base itself always exists.
	lookup(path string) (*node, error)
	// reach walks from a directory through names, as long as they are directories, and one further. It returns the node there, or
	// nil, and how many names that took: all, unless it is a link.
	reach(place string, names []string) (n *node, taken int, err error)
	// entries returns at most limit entries of a directory whose names come after a name, in byte order.
	entries(path, after string, limit int) ([]dirent, error)
	// contents adds what files of at most chunkSize hold, by the identifiers of their contents. On disk it adds nothing.
	contents(all []*node, to map[int64][]byte) error
	// content yields the bytes of a file from an offset on. A piece is valid until the next one is requested.
	content(path string, n *node, offset int64) iter.Seq2[[]byte, error]

	// ensure makes the base if it is missing, and returns how many directories it made. The methods below expect that it and the directory above a path exist.
	ensure() (made int, err error)
	// put makes a file, or replaces the content of n.
	put(path string, n *node, size int64, content io.Reader) error
	extend(path string, n *node, data []byte) error
	makeDirectory(path string) error
	makeLink(path, target string) error
	setMode(path string, n *node, mode uint32) error
	// move and copy take a node with everything below it to a free path.
	move(n *node, source, target string) error
	copy(n *node, source, target string) error
	// remove deletes a node. If recursive is set, it also deletes everything below.
	remove(n *node, path string, recursive bool) error
}

// node is a file, a directory or a link.
type node struct {
	status Status
	target string // of a link
	id     int64  // in a database
	bytes  int64  // likewise: the identifier of the content
	file   any    // on disk: an fs.FileInfo
}

// dirent is an entry of a directory. On disk it has no node, because it has to be looked up when it is opened.
type dirent struct {
	Entry
	node *node
}

func (n *node) is(kind EntryKind) bool { return n.status.Kind == kind }

// holds reports whether a file still has the content that it, or another, had when it was looked up. On disk, the system's metadata
// decide.
func (n *node) holds(before *node) bool {
	now, disk := n.file.(fs.FileInfo)
	if !disk {
		return n.bytes == before.bytes
	}
	then := before.file.(fs.FileInfo)
	return os.SameFile(now, then) && now.Size() == then.Size() && now.ModTime().Equal(then.ModTime())
}

const (
	// maxLinks is how many links one path may lead through.
	maxLinks = 40
	// maxFollowed is how many names the targets of these links may have together, because a writer looks up each while other writers
	// wait.
	maxFollowed = 500
	// maxMade is how many parent directories one operation may make. Each takes up to 0.1 ms.
	maxMade = 256
)

// op is one operation through one handle.
type op struct {
	files
	ctx  context.Context
	name string // as in denials, e.g. "read"
	base int    // length of the handle's own path in bytes
}

func (d *Directory) view(ctx context.Context, name string, f func(*op) error) error {
	return d.volume.view(ctx, d.base, func(all files) error { return f(&op{all, ctx, name, len(d.base)}) })
}

// search is view for one that takes long. There are so few at a time that others find a connection and a processor. Users take turns.
func (d *Directory) search(ctx context.Context, name string, f func(*op) error) error {
	places := d.volume.searching()
	if places.Take(ctx) != nil {
		return ctx.Err()
	}
	defer places.Give()
	return d.view(ctx, name, f)
}

// update is view for an operation that changes something. Either all of it happens, or nothing.
func (d *Directory) update(ctx context.Context, name string, f func(*op) error) error {
	return d.volume.update(ctx, d.base, func(all files) error { return f(&op{all, ctx, name, len(d.base)}) })
}

// shown returns a path as the guest would write it.
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

// mismatch returns the error for a path of another kind than expected.
func mismatch(path string, n *node, wanted string) error {
	if wanted != "" {
		wanted = ", not a " + wanted
	}
	return invalid(path, "is a "+n.status.Kind.String()+wanted)
}

// locate finds the node at a path. It follows links on the way and, if last is set, at the end. No link leads out of the base. place
// is where the node is, or would be made.
func (o *op) locate(path string, last bool) (place string, n *node, err error) {
	todo := names(path)
	missing := false // a parent is missing, so nothing below it can exist
	n, err = o.lookup("")
	for links, followed := 0, 0; len(todo) > 0 && err == nil; {
		if todo[0] == ".." { // from a link
			todo = todo[1:]
			if place == "" {
				return "", nil, o.outside(path)
			}
			place, _ = split(place)
			n, err = o.lookup(place)
			missing = n == nil
			continue
		}
		on := len(todo)
		if up := slices.Index(todo, ".."); up >= 0 {
			on = up
		}
		n = nil
		if !missing {
			n, on, err = o.reach(place, todo[:on])
		}
		place += "/" + strings.Join(todo[:on], "/")
		todo = todo[on:]
		missing = n == nil
		if o.base+len(place) > maxPath {
			return "", nil, abi.Errorf(abi.CodeInvalid, "path: links make it longer than %d bytes", maxPath)
		}
		if err != nil || missing || !n.is(KindLink) || len(todo) == 0 && !last {
			continue
		}
		if links++; links > maxLinks {
			return "", nil, invalid(path, "leads through too many links")
		}
		if strings.HasPrefix(n.target, "/") {
			return "", nil, o.outside(path)
		}
		target := names(n.target)
		if followed += len(target); followed > maxFollowed {
			return "", nil, invalid(path, fmt.Sprintf("leads through links with more than %d names in their targets", maxFollowed))
		}
		todo = append(target, todo...)
		if place, _ = split(place); len(todo) == 0 { // the target consists only of "."
			n, err = o.lookup(place)
		}
	}
	if err != nil {
		return "", nil, err
	}
	return place, n, nil
}

// outside returns the denial of a link that leads out of the directory.
func (o *op) outside(path string) error {
	return abi.Deny(abi.Denial{
		Operation: o.name + " " + shown(path),
		Reason:    "a link leads out of the directory that was granted",
	})
}

// get is locate for something that must exist.
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

// makeDirectories makes a directory and its missing parents.
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
		if missing = append(missing, at); len(missing) > maxMade {
			return tooMany(place)
		}
	}
	if at == "" {
		made, err := o.ensure()
		if err != nil {
			return err
		}
		if made+len(missing) > maxMade {
			return tooMany(place)
		}
	}
	for _, path := range slices.Backward(missing) {
		if err := o.makeDirectory(path); err != nil {
			return err
		}
	}
	return nil
}

func tooMany(place string) error {
	return invalid(place, fmt.Sprintf("needs more than %d missing directories; make some of them first", maxMade))
}

// absent finds a place for something new and makes its missing parents.
func (o *op) absent(path string) (place string, err error) {
	place, n, err := o.locate(path, false)
	if err != nil {
		return "", err
	}
	return place, o.prepare(place, n, path)
}

// prepare makes the missing parents of a free place.
func (o *op) prepare(place string, n *node, path string) error {
	if n != nil {
		return abi.Errorf(abi.CodeAlreadyExists, "%s", shown(path))
	}
	parent, _ := split(place)
	return o.makeDirectories(parent)
}

// names returns the names in a path, without empty ones and ".".
func names(path string) []string {
	var all []string
	for name := range strings.SplitSeq(path, "/") {
		if name != "" && name != "." {
			all = append(all, name)
		}
	}
	return all
}
