package sandbox

import (
	"context"
	"crypto/sha256"
	"errors"
	"io"
	"maps"
	"path"
	"slices"
	"strings"
	"syscall"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/capabilities/internal/trees"
)

// Directory is what a sandbox needs of a directory that is copied from and to. The directories of stile:capability/workspace have it.
// Paths are relative to the directory, with "/" between names.
type Directory interface {
	// Place names the directory, as long as the process runs.
	Place() string
	// OnDisk reports whether other programs act on the files by their names.
	OnDisk() bool
	// Writable returns the denial of an operation if the handle can only read.
	Writable(operation string) error
	// Admits returns an error if nothing can have this path.
	Admits(path string) error
	// Survey visits everything, a directory before what is in it, and returns the version. If known is the version and not "", it visits
	// nothing. A directory without versions returns "".
	Survey(ctx context.Context, known string, visit func(trees.Entry) error) (version string, err error)
	// Look visits what is at these paths.
	Look(ctx context.Context, paths []string, visit func(trees.Entry) error) error
	// Load reads files. It leaves out those that are gone.
	Load(ctx context.Context, paths []string, use func(path string, size int64, content io.Reader) error) error
	// Apply makes changes in their order, and says for each why it was not made. It updates what is there After it. version is that of the
	// directory, if nothing else has changed it since it had the version known; otherwise "".
	Apply(ctx context.Context, known string, changes []trees.Change) (outcomes []error, version string, err error)
}

// tree is the working tree of a machine. Its paths are relative to the top. No operation follows a link.
type tree interface {
	Survey(at string, visit func(trees.Entry) error, skip func(path, reason string)) error
	Stat(at string) (*trees.Entry, error)
	Open(at string) (io.ReadCloser, error)
	Write(at string, mode uint32, content io.Reader) error
	MakeDirectory(at string, mode uint32) error
	MakeLink(at, target string) error
	Chmod(at string, mode uint32) error
	Rename(at, name string) error
	Remove(at string) error
}

// followed is a tree that knows what changes in it.
type followed interface {
	tree
	// Touched returns the paths at which something may have changed since it was last asked, with true for those below which everything may
	// have. known is false if it cannot say. own is set if only the caller has changed the tree since then.
	Touched(own bool) (paths map[string]bool, known bool)
	// Look is a Survey that looks at one path, and if below is set at what is below that.
	Look(folder, at string, below bool, visit func(trees.Entry) error, skip func(path, reason string)) error
}

// below is a folder of a tree.
type below struct {
	tree
	folder string
}

func (b below) at(p string) string { return path.Join(b.folder, p) }

// place is a directory and the folder that it was copied to or from.
type place struct{ directory, folder string }

// history is what two trees had in common after their last copy.
type history struct {
	states map[string]*state
	// version is that of the directory at its last survey, with what pulls have changed since. undone are the paths that had changed then and
	// were not copied.
	version string
	undone  map[string]bool
	// round counts surveys.
	round int
	// known is set if touched are the paths inside at which something may differ from what the last survey of everything found, or from what
	// was copied since then. It is true for those below which everything may.
	known   bool
	touched map[string]bool
	// size is at least what the sizes of all files inside are together, in bytes.
	size int64
}

// maxTouched is how many paths are looked at one by one. If more may have changed, everything is looked at, which is quicker.
const maxTouched = 4096

// touch adds paths of the tree at which something may have changed, or forgets what is known.
func (h *history) touch(folder string, paths map[string]bool, known bool) {
	for p, below := range paths {
		if p == folder || strings.HasPrefix(folder, p+"/") {
			known = false // the folder itself
		}
		if folder != "" {
			var in bool
			if p, in = strings.CutPrefix(p, folder+"/"); !in {
				continue
			}
		}
		if h.known && known {
			h.touched[p] = h.touched[p] || below
		}
	}
	if !known || len(h.touched) > maxTouched {
		h.known, h.touched = false, nil
	}
}

// at is the state of a path, which may be new.
func (h *history) at(p string) state {
	if s := h.states[p]; s != nil {
		return *s
	}
	return state{}
}

type digest [sha256.Size]byte

// state is one path after the last copy: what both trees have there, which is the same but for modes. Either may be nil.
type state struct {
	inside, outside *trees.Entry
	digest          digest // of a file
	// seenInside and seenOutside are the last surveys that saw it.
	seenInside, seenOutside int
}

// What the host's own work costs, for each path that it looks at and each byte that it reads and hashes.
const (
	perPath = 4 * time.Microsecond
	perByte = 3 * time.Nanosecond
)

// copier makes one copy.
//
// A path has changed on a side if it is not what it was after the last copy, by its content. If it has changed on one side only, the copy
// carries that over, in its own direction. If it has changed on both sides and differs, the directory's file stays, and that of the
// sandbox is kept beside it.
type copier struct {
	ctx     context.Context //nolint:containedctx // it lives as long as one copy
	outside Directory
	inside  below
	history *history
	changes *Changes
	allowed []string
	most    int64 // bytes of files together, as their sizes say: files can have holes

	in, out map[string]trees.Entry // of what changed, or was looked at
	hashed  map[string]digest      // of files inside, this time
	// repositories are folders inside that git would take for its own.
	repositories map[string]bool
	touched      []string // paths whose state was remembered
	// ignored are paths inside with something that has no place in the directory. That does not mean that they were removed.
	ignored map[string]bool
}

// surveyInside returns the paths in the sandbox that changed, in order. It looks where something may have changed, or at everything if it does
// not know where that is.
func (c *copier) surveyInside() ([]string, error) {
	c.in, c.hashed, c.ignored, c.repositories = map[string]trees.Entry{}, map[string]digest{}, map[string]bool{}, map[string]bool{}
	h := c.history
	h.round++
	skip := func(path, reason string) {
		c.ignored[path] = true
		c.changes.note(&c.changes.Skipped, path, reason)
	}
	count, linked := 0, false
	visit := func(e trees.Entry) error {
		count++
		if err := c.ctx.Err(); err != nil {
			return err
		}
		if e.Kind == trees.File {
			if h.size += e.Size; h.size > c.most {
				h.size -= e.Size
				if h.known {
					return errSize
				}
				skip(e.Path, "the sizes of all files together exceed the sandbox's disk: it has holes")
				return nil
			}
			linked = linked || e.Linked
		}
		delete(c.ignored, e.Path)
		noteRepository(c.repositories, e.Path)
		was := h.states[e.Path]
		if was != nil {
			was.seenInside = h.round
		}
		if was == nil || changedSince(was.inside, &e) {
			c.in[e.Path] = e
		}
		return nil
	}
	gone := func(p string, s *state) bool { return s.inside != nil && s.seenInside != h.round && !c.isIgnored(p) }
	follower, follows := c.inside.tree.(followed)
	var changed []string
	var err error
	if h.known {
		changed, err = c.lookAgain(follower, visit, skip, gone)
		if errors.Is(err, errSize) {
			h.known, h.touched = false, nil
			c.changes.Skipped, c.changes.Omitted = nil, 0
			return c.surveyInside()
		}
	} else {
		h.size = 0
		if err = c.inside.Survey(c.inside.folder, visit, skip); err == nil {
			changed = c.changed(c.in, gone)
		}
	}
	if err != nil {
		return nil, err
	}
	// What is not settled by this copy is looked at by the next one.
	h.known, h.touched = follows && !linked && len(changed)+len(c.ignored) <= maxTouched, map[string]bool{}
	for _, p := range changed {
		h.touched[p] = false
	}
	fit := changed[:0]
	for _, p := range changed {
		if e, is := c.in[p]; is {
			if reason := c.unfit(e); reason != "" {
				delete(c.in, p)
				skip(p, reason)
				continue
			}
		}
		fit = append(fit, p)
	}
	return fit, abi.Work(c.ctx, time.Duration(count)*perPath)
}

// errSize reports that files that changed may be too large together with all others.
var errSize = errors.New("the sizes of files are not known")

// lookAgain looks where something may have changed since everything was looked at.
func (c *copier) lookAgain(t followed, visit func(trees.Entry) error, skip func(path, reason string), gone func(string, *state) bool) ([]string, error) {
	h := c.history
	walked := maps.Clone(h.touched) // true for folders below which everything is looked at
	folders := map[string]bool{}    // below which files may be gone
	all := false                    // there is such a folder
	for p, below := range h.touched {
		if within(walked, path.Dir(p)) {
			continue
		}
		if err := t.Look(c.inside.folder, p, below, visit, skip); err != nil {
			return nil, err
		}
		if s := h.states[p]; s != nil && s.inside != nil && s.inside.Kind == trees.Directory {
			now, is := c.in[p]
			folders[p] = below || s.seenInside != h.round || is && now.Kind != trees.Directory
			all = all || folders[p]
		}
	}
	changed := slices.Collect(maps.Keys(c.in))
	add := func(p string, s *state) {
		if _, is := c.in[p]; !is && s != nil && gone(p, s) {
			changed = append(changed, p)
		}
	}
	if all {
		for p, s := range h.states {
			if _, is := h.touched[p]; is || within(folders, p) {
				add(p, s)
			}
		}
	} else {
		for p := range h.touched {
			add(p, h.states[p])
		}
	}
	slices.Sort(changed)
	return changed, nil
}

// within reports whether a path, or a folder above it, is in a set.
func within(set map[string]bool, p string) bool {
	for ; len(set) > 0 && p != "" && p != "."; p = path.Dir(p) {
		if set[p] {
			return true
		}
	}
	return false
}

// surveyOutside returns the paths of the directory that changed, in order. It looks at everything, unless the directory has the version of
// the last time.
func (c *copier) surveyOutside() ([]string, error) {
	c.out = map[string]trees.Entry{}
	h := c.history
	h.round++
	count := 0
	version, err := c.outside.Survey(c.ctx, h.version, func(e trees.Entry) error {
		count++
		was := h.states[e.Path]
		if was == nil || changedSince(was.outside, &e) {
			c.out[e.Path] = e
		}
		if was != nil {
			was.seenOutside = h.round
		}
		return c.ctx.Err()
	})
	if err != nil {
		return nil, err
	}
	if err := abi.Work(c.ctx, time.Duration(count)*perPath); err != nil {
		return nil, err
	}
	if version != "" && version == h.version {
		changed := slices.Sorted(maps.Keys(h.undone))
		return changed, c.lookOutsideAt(changed)
	}
	changed := c.changed(c.out, func(p string, s *state) bool { return s.outside != nil && s.seenOutside != h.round })
	h.version, h.undone = version, make(map[string]bool, len(changed))
	for _, p := range changed {
		h.undone[p] = true
	}
	return changed, nil
}

// changedSince reports whether an entry may differ from what was there after the last copy.
func changedSince(was, is *trees.Entry) bool {
	return was == nil || was.Recent || !trees.Equal(was, is)
}

func (c *copier) addOutside(e trees.Entry) error {
	c.out[e.Path] = e
	return c.ctx.Err()
}

// lookInside looks at some paths of the sandbox.
func (c *copier) lookInside(paths []string) error {
	c.in, c.hashed = map[string]trees.Entry{}, map[string]digest{}
	for _, p := range paths {
		e, err := c.inside.Stat(c.inside.at(p))
		if err = errors.Join(err, c.ctx.Err()); err != nil {
			return err
		}
		if e != nil {
			e.Path = p
			c.in[p] = *e
		}
	}
	return abi.Work(c.ctx, time.Duration(len(paths))*perPath)
}

// lookOutside looks at some paths of the directory, and at those where a conflict would keep the sandbox's version.
func (c *copier) lookOutside(paths []string) error {
	c.out = map[string]trees.Entry{}
	both := make([]string, 0, 2*len(paths))
	for _, p := range paths {
		both = append(both, p, beside(p))
	}
	return c.lookOutsideAt(both)
}

func (c *copier) lookOutsideAt(paths []string) error {
	if err := c.outside.Look(c.ctx, paths, c.addOutside); err != nil {
		return err
	}
	return abi.Work(c.ctx, time.Duration(len(paths))*perPath)
}

// unfit says why something in the sandbox has no place in a directory.
func (c *copier) unfit(e trees.Entry) string {
	if !utf8.ValidString(e.Path) || strings.ContainsFunc(e.Path, unicode.IsControl) {
		return "its name is not UTF-8, or has control characters"
	}
	if err := c.outside.Admits(e.Path); err != nil {
		return "the directory cannot have this name"
	}
	return ""
}

// changed are the paths of a side that are new or differ from those after the last copy, and those that are gone, in order.
func (c *copier) changed(side map[string]trees.Entry, gone func(string, *state) bool) []string {
	changed := slices.Collect(maps.Keys(side))
	for p, s := range c.history.states {
		if _, is := side[p]; !is && gone(p, s) {
			changed = append(changed, p)
		}
	}
	slices.Sort(changed)
	return changed
}

// isIgnored reports whether a path, or a folder above it, is ignored.
func (c *copier) isIgnored(p string) bool { return within(c.ignored, p) }

// find returns the entry of a path, or nil.
func find(side map[string]trees.Entry, path string) *trees.Entry {
	if e, ok := side[path]; ok {
		return &e
	}
	return nil
}

// digestInside hashes a file of the sandbox.
func (c *copier) digestInside(e trees.Entry) (digest, error) {
	if d, ok := c.hashed[e.Path]; ok {
		return d, nil
	}
	file, err := c.inside.Open(c.inside.at(e.Path))
	if err != nil {
		return digest{}, err
	}
	defer func() { _ = file.Close() }() // only read
	d, err := c.hash(io.LimitReader(file, e.Size))
	if err == nil {
		c.hashed[e.Path] = d
	}
	return d, err
}

func (c *copier) hash(r io.Reader) (d digest, err error) {
	h := sha256.New()
	buffer := make([]byte, 64<<10)
	for {
		n, err := r.Read(buffer)
		_, _ = h.Write(buffer[:n]) // it never fails
		if err := errors.Join(c.ctx.Err(), abi.Work(c.ctx, time.Duration(n)*perByte)); err != nil {
			return d, err
		}
		if errors.Is(err, io.EOF) {
			return digest(h.Sum(nil)), nil
		}
		if err != nil {
			return d, err
		}
	}
}

// digestsOutside hashes files of the directory.
func (c *copier) digestsOutside(paths []string) (map[string]digest, error) {
	all := map[string]digest{}
	err := c.outside.Load(c.ctx, paths, func(path string, _ int64, content io.Reader) (err error) {
		all[path], err = c.hash(content)
		return err
	})
	return all, err
}

// alike reports whether two entries of two trees are the same but for modes.
func alike(a, b *trees.Entry) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.Kind == b.Kind && a.Target == b.Target && (a.Kind != trees.File || a.Size == b.Size)
}

// sameMode compares modes. Those of links mean nothing, and folders of a sandbox always allow their owner everything.
func sameMode(a, b *trees.Entry) bool {
	switch {
	case a == nil || b == nil || a.Kind == trees.Link:
		return true
	case a.Kind == trees.Directory:
		return a.Mode|0o700 == b.Mode|0o700
	default:
		return a.Mode|0o400 == b.Mode|0o400
	}
}

// remember keeps what both sides have at a path now.
func (c *copier) remember(path string, in, out *trees.Entry, d digest) {
	h := c.history
	if h.states == nil {
		h.states = map[string]*state{}
	}
	delete(h.undone, path)
	if !h.touched[path] {
		delete(h.touched, path)
	}
	if in == nil && out == nil {
		delete(h.states, path)
		return
	}
	h.states[path] = &state{inside: in, outside: out, digest: d}
	c.touched = append(c.touched, path)
}

// settle ends a copy: processes of the sandbox still stand, so what was written a while ago has not changed since.
func (c *copier) settle() {
	if h := c.history; h.known {
		for p := range c.ignored { // each copy says what it leaves out
			if _, is := h.touched[p]; !is {
				h.touched[p] = false
			}
		}
	}
	now := time.Now()
	for _, p := range c.touched {
		c.history.at(p).inside.Settle(now)
	}
}

// full reports whether a disk is full.
func full(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
}

// validText makes a name from a sandbox into text.
func validText(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }

// charging charges the time that reading and hashing takes.
type charging struct {
	ctx context.Context //nolint:containedctx // of one copy
	r   io.Reader
}

// Read implements io.Reader.
func (c *charging) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	if over := abi.Work(c.ctx, time.Duration(n)*perByte); over != nil {
		return n, over
	}
	return n, err
}
