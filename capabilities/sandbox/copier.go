package sandbox

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"io"
	"io/fs"
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
	// Survey visits everything. A directory comes before what is in it.
	Survey(ctx context.Context, visit func(trees.Entry) error) error
	// Look visits what is at these paths.
	Look(ctx context.Context, paths []string, visit func(trees.Entry) error) error
	// Load reads files. It leaves out those that are gone.
	Load(ctx context.Context, paths []string, use func(path string, size int64, content io.Reader) error) error
	// Apply makes changes in their order, and says for each why it was not made. It updates what is there After it.
	Apply(ctx context.Context, changes []trees.Change) ([]error, error)
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

// below is a folder of a tree.
type below struct {
	tree
	folder string
}

func (b below) at(p string) string { return path.Join(b.folder, p) }

// place is a directory and the folder that it was copied to or from.
type place struct{ directory, folder string }

// history is what two trees had in common after their last copy.
type history struct{ states map[string]state }

type digest [sha256.Size]byte

// state is one path after the last copy: what both trees have there, which is the same but for modes. Either may be nil.
type state struct {
	inside, outside *trees.Entry
	digest          digest // of a file
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

	in, out map[string]trees.Entry
	hashed  map[string]digest // of files inside, this time
	touched []string          // paths whose state was remembered
	// ignored are paths inside with something that has no place in the directory. That does not mean that they were removed.
	ignored map[string]bool
}

// surveyInside looks at everything in the sandbox, and returns the paths that changed, in order.
func (c *copier) surveyInside() ([]string, error) {
	c.in, c.hashed, c.ignored = map[string]trees.Entry{}, map[string]digest{}, map[string]bool{}
	skip := func(path, reason string) {
		c.ignored[path] = true
		c.changes.note(&c.changes.Skipped, path, reason)
	}
	var size int64
	err := c.inside.Survey(c.inside.folder, func(e trees.Entry) error {
		if err := c.ctx.Err(); err != nil {
			return err
		}
		if e.Kind == trees.File {
			if size += e.Size; size > c.most {
				size -= e.Size
				skip(e.Path, "the sizes of all files together exceed the sandbox's disk: it has holes")
				return nil
			}
		}
		delete(c.ignored, e.Path)
		c.in[e.Path] = e
		return nil
	}, skip)
	if err != nil {
		return nil, err
	}
	changed := c.paths(c.in, func(s state) *trees.Entry { return s.inside })
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
	return fit, abi.Work(c.ctx, time.Duration(len(c.in))*perPath)
}

// surveyOutside looks at everything in the directory, and returns the paths that changed, in order.
func (c *copier) surveyOutside() ([]string, error) {
	c.out = map[string]trees.Entry{}
	if err := c.outside.Survey(c.ctx, c.addOutside); err != nil {
		return nil, err
	}
	return c.paths(c.out, func(s state) *trees.Entry { return s.outside }), abi.Work(c.ctx, time.Duration(len(c.out))*perPath)
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
	if err := c.outside.Look(c.ctx, both, c.addOutside); err != nil {
		return err
	}
	return abi.Work(c.ctx, time.Duration(len(both))*perPath)
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

// paths are all that exist on a side, or did after the last copy, in order. Only those that changed on one side are of interest.
func (c *copier) paths(side map[string]trees.Entry, of func(state) *trees.Entry) []string {
	var changed []string
	for p, e := range side {
		if was := of(c.history.states[p]); was == nil || !trees.Equal(was, &e) || was.Recent {
			changed = append(changed, p)
		}
	}
	for p, s := range c.history.states {
		if _, is := side[p]; !is && of(s) != nil && !c.isIgnored(p) {
			changed = append(changed, p)
		}
	}
	slices.Sort(changed)
	return changed
}

// isIgnored reports whether a path, or a folder above it, is ignored.
func (c *copier) isIgnored(p string) bool {
	for ; len(c.ignored) > 0 && p != "" && p != "."; p = path.Dir(p) {
		if c.ignored[p] {
			return true
		}
	}
	return false
}

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
	if c.history.states == nil {
		c.history.states = map[string]state{}
	}
	if in == nil && out == nil {
		delete(c.history.states, path)
		return
	}
	c.history.states[path] = state{in, out, d}
	c.touched = append(c.touched, path)
}

// settle ends a copy: processes of the sandbox still stand, so what was written a while ago has not changed since.
func (c *copier) settle() {
	now := time.Now()
	for _, p := range c.touched {
		s := c.history.states[p]
		s.inside.Settle(now)
	}
}

// pull carries changes of the sandbox to the directory.
func pull(c *copier) error {
	changed, err := c.surveyInside()
	if err != nil || len(changed) == 0 {
		return err
	}
	if err := c.lookOutside(changed); err != nil {
		return err
	}
	guard := newGuard(c)
	// Only where something changed in the sandbox does it matter what the directory has.
	var doubtful []string
	for _, p := range changed {
		was, out := c.history.states[p], find(c.out, p)
		if out != nil && out.Kind == trees.File && (was.outside == nil || !trees.Equal(was.outside, out) || out.Recent) {
			doubtful = append(doubtful, p)
		}
	}
	digests, err := c.digestsOutside(doubtful)
	if err != nil {
		return err
	}
	var removals, additions []trees.Change
	for _, p := range changed {
		change, err := c.decidePull(p, digests, guard)
		if err != nil {
			return err
		}
		switch {
		case change == nil:
		case change.After == nil:
			removals = append(removals, *change)
		default:
			additions = append(additions, *change)
		}
	}
	slices.Reverse(removals) // what is in a folder goes before the folder
	all := append(removals, additions...)
	outcomes, err := c.outside.Apply(c.ctx, all)
	for i, outcome := range outcomes {
		c.pulled(all[i], outcome)
	}
	return err
}

// decidePull returns the change of the directory for a path that changed in the sandbox, or nil.
func (c *copier) decidePull(p string, digests map[string]digest, guard *guard) (*trees.Change, error) {
	was, in, out := c.history.states[p], find(c.in, p), find(c.out, p)
	var din, dout digest
	var err error
	if in != nil && in.Kind == trees.File {
		if din, err = c.digestInside(*in); err != nil {
			if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
				c.changes.note(&c.changes.Skipped, p, "it cannot be read")
				return nil, nil
			}
			return nil, err
		}
	}
	if out != nil && out.Kind == trees.File {
		var fresh bool
		if dout, fresh = digests[p]; !fresh {
			dout = was.digest
		}
	}
	same := alike(in, out) && din == dout
	insideSame := alike(in, was.inside) && sameMode(in, was.inside) && (in == nil || in.Kind != trees.File || din == was.digest)
	outsideSame := alike(out, was.outside) && (out == nil || out.Kind != trees.File || dout == was.digest)
	if was.inside == nil && was.outside == nil { // never copied
		insideSame, outsideSame = in == nil, out == nil
	}
	switch {
	case insideSame && outsideSame, same && sameMode(in, out):
		c.remember(p, in, out, din)
		return nil, nil
	case insideSame: // only its times changed
		if was.inside != nil {
			was.inside = in
			c.history.states[p] = was
		}
		return nil, nil
	}
	if reason := guard.refuses(p, in); reason != "" {
		c.changes.note(&c.changes.Skipped, p, reason)
		return nil, nil
	}
	change := &trees.Change{Path: p, Before: out}
	if in != nil {
		after := *in
		change.After = &after
		if in.Kind == trees.File && (!same || out == nil) {
			change.Open = c.opener(*in)
		}
	}
	if same || outsideSame || in != nil && out != nil && in.Kind == trees.Directory && out.Kind == trees.Directory {
		if same && was.inside == nil && was.outside != nil { // nothing to say about modes that were never copied
			c.remember(p, in, out, din)
			return nil, nil
		}
		return change, nil
	}
	return c.conflictPull(change, in, out)
}

// opener opens a file of the sandbox, as it was when it was surveyed.
func (c *copier) opener(e trees.Entry) func() (io.ReadCloser, error) {
	return func() (io.ReadCloser, error) {
		file, err := c.inside.Open(c.inside.at(e.Path))
		if err != nil {
			return nil, abi.Errorf(abi.CodeConflict, "it changed meanwhile")
		}
		return file, nil
	}
}

// beside is where the sandbox's version of a path is kept when both sides changed.
func beside(p string) string { return p + ".sandbox" }

// conflictPull keeps the directory's version at its path, and that of the sandbox beside it.
func (c *copier) conflictPull(change *trees.Change, in, out *trees.Entry) (*trees.Change, error) {
	p, kept := change.Path, beside(change.Path)
	if in == nil || in.Kind == trees.Directory || c.outside.Admits(kept) != nil {
		reason := "removed in the sandbox and changed in the directory, where it stays"
		if in != nil {
			reason = "a folder in the sandbox and something else in the directory, which stays"
		}
		c.changes.note(&c.changes.Conflicts, p, reason)
		return nil, nil
	}
	what := "changed on both sides"
	if out == nil {
		what = "changed in the sandbox and removed in the directory"
	}
	c.changes.note(&c.changes.Conflicts, p, what+"; the sandbox's version is "+path.Base(kept))
	before := find(c.out, kept)
	if before != nil && in.Kind == trees.File && before.Kind == trees.File && before.Size == in.Size { // it may be there from an earlier copy
		d, err := c.digestsOutside([]string{kept})
		if err != nil || d[kept] == c.hashed[p] {
			return nil, err
		}
	}
	if before != nil && before.Kind == trees.Directory {
		c.changes.note(&c.changes.Skipped, p, "there is a folder where the sandbox's version would be kept")
		return nil, nil
	}
	after := *in
	after.Path = kept
	change = &trees.Change{Path: kept, Before: before, After: &after}
	if in.Kind == trees.File {
		change.Open = c.opener(*in)
	}
	return change, nil
}

// pulled accounts for a change of the directory.
func (c *copier) pulled(change trees.Change, outcome error) {
	p := change.Path
	if outcome != nil {
		if errors.Is(outcome, abi.ErrConflict) {
			c.changes.note(&c.changes.Conflicts, p, "it changed in the directory meanwhile, or has content of its own there")
		} else {
			c.changes.note(&c.changes.Skipped, p, refused(outcome))
		}
		return
	}
	switch {
	case change.After == nil:
		c.changes.list(&c.changes.Removed, p)
	case change.Before == nil:
		c.changes.list(&c.changes.Added, p)
	default:
		c.changes.list(&c.changes.Changed, p)
	}
	in := find(c.in, p)
	if change.After != nil && in == nil { // kept beside a conflict
		return
	}
	c.remember(p, in, change.After, c.hashed[p])
}

// refused is why a directory did not take something.
func refused(err error) string {
	e, ok := errors.AsType[*abi.Error](err)
	switch {
	case ok && e.Code == abi.CodeDenied:
		return "its target is outside of the directory"
	case ok && e.Code == abi.CodeInvalid:
		return "its target is not relative, or cannot be in the directory"
	default:
		return "the directory did not take it"
	}
}

// full reports whether a disk is full.
func full(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
}

// validText makes a name from a sandbox into text.
func validText(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }

// push carries changes of the directory to the sandbox.
func push(c *copier) error {
	changed, err := c.surveyOutside()
	if err != nil {
		return err
	}
	if err := c.makeFolders(c.inside.folder); err != nil {
		return err
	}
	if err := c.lookInside(changed); err != nil {
		return err
	}
	removals := make([]string, 0, len(changed))
	var files []string
	for _, p := range changed {
		out := find(c.out, p)
		switch {
		case out == nil:
			removals = append(removals, p)
		case out.Kind == trees.File:
			files = append(files, p)
		}
	}
	for _, p := range slices.Backward(removals) {
		if err := c.pushRemoval(p); err != nil {
			return err
		}
	}
	for _, p := range changed { // folders before what is in them
		if out := find(c.out, p); out != nil && out.Kind != trees.File {
			if err := c.pushOther(p, *out); err != nil {
				return err
			}
		}
	}
	return c.outside.Load(c.ctx, files, func(p string, size int64, content io.Reader) error {
		if err := c.ctx.Err(); err != nil {
			return err
		}
		return c.pushFile(p, *find(c.out, p), size, content)
	})
}

// makeFolders makes a folder of the sandbox and those above it.
func (c *copier) makeFolders(folder string) error {
	if folder == "" || folder == "." {
		return nil
	}
	at := ""
	for name := range strings.SplitSeq(folder, "/") {
		at = path.Join(at, name)
		e, err := c.inside.Stat(at)
		if err == nil && e == nil {
			err = c.inside.MakeDirectory(at, 0o755)
		}
		if err == nil && e != nil && e.Kind != trees.Directory {
			err = abi.Errorf(abi.CodeInvalid, "%.200q in the sandbox is no folder", at)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// place makes something at a path, and before that the folders above it if the sandbox removed them.
func (c *copier) place(p string, made func(at string) error) error {
	at := c.inside.at(p)
	err := made(at)
	if errors.Is(err, fs.ErrNotExist) && c.makeFolders(path.Dir(at)) == nil {
		err = made(at)
	}
	return err
}

// unchanged reports whether the sandbox still has at a path what it had after the last copy.
func (c *copier) unchanged(p string) (bool, error) {
	was, in := c.history.states[p].inside, find(c.in, p)
	switch {
	case !alike(in, was) || !sameMode(in, was):
		return false, nil
	case in == nil || in.Kind != trees.File || trees.Equal(in, was) && !was.Recent:
		return true, nil
	}
	d, err := c.digestInside(*in)
	return d == c.history.states[p].digest, err
}

// giveWay makes a place for the directory's version. What the sandbox changed there is kept beside it.
func (c *copier) giveWay(p string, replace bool) (proceed bool, err error) {
	in := find(c.in, p)
	same, err := c.unchanged(p)
	if err != nil || in == nil {
		if err == nil && !same { // the sandbox removed what the directory changed: the directory's version comes back
			c.changes.note(&c.changes.Conflicts, p, "removed in the sandbox and changed in the directory, whose version is back")
		}
		return err == nil, err
	}
	if same && in.Kind != trees.Directory {
		if replace {
			return true, nil
		}
		return true, c.inside.Remove(c.inside.at(p))
	}
	if in.Kind == trees.Directory {
		err := c.inside.Remove(c.inside.at(p)) // only if it is empty
		if err == nil {
			return true, nil
		}
		if !errors.Is(err, syscall.ENOTEMPTY) && !errors.Is(err, syscall.EEXIST) {
			return false, err
		}
	}
	kept := c.freeName(p)
	if kept == "" {
		c.changes.note(&c.changes.Skipped, p, "there is no name left under which the sandbox's version could be kept")
		return false, nil
	}
	if err := c.inside.Rename(c.inside.at(p), path.Base(kept)); err != nil {
		return false, err
	}
	c.changes.note(&c.changes.Conflicts, p, "changed on both sides; the sandbox's version is "+path.Base(kept))
	return true, nil
}

// freeName is a name beside a path that nothing in the sandbox has.
func (c *copier) freeName(p string) string {
	for kept, n := beside(p), 0; n < 9; n++ {
		if e, err := c.inside.Stat(c.inside.at(kept)); err == nil && e == nil {
			return kept
		}
		kept += "~"
	}
	return ""
}

func (c *copier) pushRemoval(p string) error {
	in := find(c.in, p)
	if in == nil {
		c.remember(p, nil, nil, digest{})
		return nil
	}
	if in.Kind == trees.Directory {
		switch err := c.inside.Remove(c.inside.at(p)); {
		case err == nil:
			c.changes.list(&c.changes.Removed, p)
		case errors.Is(err, syscall.ENOTEMPTY), errors.Is(err, syscall.EEXIST): // it has files of the sandbox's own
			return nil
		case errors.Is(err, fs.ErrNotExist):
		default:
			return err
		}
		c.remember(p, nil, nil, digest{})
		return nil
	}
	ok, err := c.giveWay(p, false)
	if err != nil || !ok {
		return err
	}
	c.changes.list(&c.changes.Removed, p)
	c.remember(p, nil, nil, digest{})
	return nil
}

// pushOther copies a folder or a link.
func (c *copier) pushOther(p string, out trees.Entry) error {
	in := find(c.in, p)
	if alike(in, &out) && sameMode(in, &out) {
		c.remember(p, in, &out, digest{})
		return nil
	}
	if in != nil && (in.Kind != out.Kind || in.Kind == trees.Link) {
		if ok, err := c.giveWay(p, false); err != nil || !ok {
			return err
		}
	}
	err := c.place(p, func(at string) error {
		if out.Kind == trees.Directory {
			return c.inside.MakeDirectory(at, out.Mode)
		}
		return c.inside.MakeLink(at, out.Target)
	})
	return c.pushed(p, in, &out, digest{}, err)
}

// pushed accounts for what was written to the sandbox.
func (c *copier) pushed(p string, before, out *trees.Entry, d digest, err error) error {
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) || errors.Is(err, syscall.ELOOP) {
		c.changes.note(&c.changes.Skipped, p, "the sandbox has something else where its folder would be")
		return nil
	}
	if err != nil {
		return err
	}
	now, err := c.inside.Stat(c.inside.at(p))
	if err != nil {
		return err
	}
	if before == nil {
		c.changes.list(&c.changes.Added, p)
	} else {
		c.changes.list(&c.changes.Changed, p)
	}
	c.remember(p, now, out, d)
	return nil
}

// pushFile copies a file. If the sandbox has a file of the same size, the content is compared first.
func (c *copier) pushFile(p string, out trees.Entry, size int64, content io.Reader) error {
	was, in := c.history.states[p], find(c.in, p)
	out.Size = size
	if in != nil && in.Kind == trees.File && in.Size == size && size <= maxCompared {
		whole, err := io.ReadAll(io.LimitReader(content, maxCompared+1))
		if err != nil {
			return err
		}
		d := digest(sha256.Sum256(whole))
		have, err := c.digestInside(*in)
		if err != nil && !errors.Is(err, fs.ErrPermission) {
			return err
		}
		if err == nil && have == d {
			if !sameMode(in, &out) && (was.outside == nil || !sameMode(was.outside, &out)) {
				return c.pushed(p, in, &out, d, c.inside.Chmod(c.inside.at(p), out.Mode))
			}
			c.remember(p, in, &out, d)
			return nil
		}
		content = bytes.NewReader(whole)
	}
	if in != nil {
		if ok, err := c.giveWay(p, in.Kind == trees.File); err != nil || !ok {
			return err
		}
	} else if _, err := c.giveWay(p, false); err != nil {
		return err
	}
	h := sha256.New()
	counted := &charging{c.ctx, io.TeeReader(content, h)}
	err := c.place(p, func(at string) error { return c.inside.Write(at, out.Mode, counted) })
	return c.pushed(p, in, &out, digest(h.Sum(nil)), err)
}

// maxCompared is the largest file that is held in memory to be compared before it is written.
const maxCompared = 1 << 20

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
