package sandbox

import (
	"errors"
	"io"
	"io/fs"
	"path"
	"slices"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/capabilities/internal/trees"
)

// pull carries changes of the sandbox to the directory.
func pull(c *copier) error {
	changed, err := c.surveyInside()
	if err != nil || len(changed) == 0 {
		return err
	}
	if err := c.lookOutside(changed); err != nil {
		return err
	}
	guard := newGuard(c, changed)
	// Only where something changed in the sandbox does it matter what the directory has.
	var doubtful []string
	for _, p := range changed {
		was, out := c.history.at(p), find(c.out, p)
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
	if len(all) == 0 {
		return nil
	}
	outcomes, version, err := c.outside.Apply(c.ctx, c.history.version, all)
	c.history.version = version
	for i, outcome := range outcomes {
		c.pulled(all[i], outcome)
	}
	return err
}

// decidePull returns the change of the directory for a path that changed in the sandbox, or nil.
func (c *copier) decidePull(p string, digests map[string]digest, guard *guard) (*trees.Change, error) {
	was, in, out := c.history.at(p), find(c.in, p), find(c.out, p)
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
		if s := c.history.states[p]; s != nil && s.inside != nil {
			s.inside = in
			delete(c.history.touched, p)
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
