package sandbox

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"
	"syscall"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/capabilities/internal/trees"
)

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
	was, in := c.history.at(p).inside, find(c.in, p)
	switch {
	case !alike(in, was) || !sameMode(in, was):
		return false, nil
	case in == nil || in.Kind != trees.File || trees.Equal(in, was) && !was.Recent:
		return true, nil
	}
	d, err := c.digestInside(*in)
	return d == c.history.at(p).digest, err
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
	was, in := c.history.at(p), find(c.in, p)
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
