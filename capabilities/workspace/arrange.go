package workspace

import (
	"context"

	"github.com/stilehost/stile/abi"
)

// MakeDirectory makes a directory and those above it, as far as they are missing. The error is [abi.ErrAlreadyExists]
// when a file has the name.
func (d *Directory) MakeDirectory(ctx context.Context, path string) error {
	return d.change(ctx, d.resolve, "make-directory", path, func(t *tree, full string) error {
		n, err := t.find(full)
		if err == nil && n != nil && !n.isDirectory() {
			err = abi.Errorf(abi.CodeAlreadyExists, "%s, as a file", d.shown(full))
		}
		if err != nil {
			return err
		}
		return t.makeDirectories(full)
	})
}

// Move gives a file, or a directory with all that is in it, another path, and makes the directories above that. The
// error is [abi.ErrAlreadyExists] when something has that path, and [abi.ErrInvalid] when it is inside source.
func (d *Directory) Move(ctx context.Context, source, target string) error {
	return d.transfer(ctx, "move", source, target, (*tree).rename)
}

// Copy is Move, but leaves the source where it is. The copies count as modified now.
func (d *Directory) Copy(ctx context.Context, source, target string) error {
	return d.transfer(ctx, "copy", source, target, (*tree).duplicate)
}

func (d *Directory) transfer(
	ctx context.Context, operation, source, target string, f func(t *tree, n *node, source, target string) error,
) error {
	from, err := d.resolveEntry(operation, source)
	if err != nil {
		return err
	}
	to, err := d.resolveEntry(operation, target)
	if err != nil {
		return err
	}
	if err := d.writable(operation + " " + d.shown(from) + " to " + d.shown(to)); err != nil {
		return err
	}
	return d.update(ctx, func(t *tree) error {
		n, err := t.get(from)
		if err != nil {
			return err
		}
		if to == from || inside(to, from) {
			return abi.Errorf(abi.CodeInvalid, "cannot %s %s into itself", operation, d.shown(from))
		}
		if err := t.absent(to); err != nil {
			return err
		}
		parent, _ := split(to)
		if err := t.makeDirectories(parent); err != nil {
			return err
		}
		return f(t, n, from, to)
	})
}

// Remove deletes a file or a directory. A directory that is not empty needs recursive, else the error is
// [abi.ErrInvalid].
func (d *Directory) Remove(ctx context.Context, path string, recursive bool) error {
	return d.change(ctx, d.resolveEntry, "remove", path, func(t *tree, full string) error {
		n, err := t.get(full)
		if err != nil {
			return err
		}
		if n.isDirectory() && !recursive {
			var filled bool
			err := t.conn.Row(ctx, `SELECT EXISTS (SELECT 1 FROM node WHERE workspace = ? AND parent = ?)`,
				d.workspace, full).Scan(&filled)
			if err != nil {
				return err
			}
			if filled {
				return t.invalid(full, "is a directory that is not empty; it is removed only recursively")
			}
		}
		return t.remove(n, full)
	})
}
