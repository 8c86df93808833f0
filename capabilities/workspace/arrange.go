package workspace

import (
	"context"
	"strings"

	"github.com/stilehost/stile/abi"
)

// MakeDirectory makes a directory and its missing parents. The error is [abi.ErrAlreadyExists] if something else has the name.
func (d *Directory) MakeDirectory(ctx context.Context, path string) error {
	return d.change(ctx, d.resolve, "make-directory", path, func(o *op, path string) error {
		place, n, err := o.locate(path, true)
		if err == nil && n != nil && !n.is(KindDirectory) {
			err = abi.Errorf(abi.CodeAlreadyExists, "%s, as a %s", shown(path), n.status.Kind)
		}
		if err != nil {
			return err
		}
		return o.makeDirectories(place)
	})
}

// MakeLink makes a symbolic link and its missing parent directories. The target is relative to the directory of the link and need
// not exist. A target outside d gives [abi.ErrDenied]. The target is checked again whenever the link is followed. The error is
// [abi.ErrAlreadyExists] if something has the path.
func (d *Directory) MakeLink(ctx context.Context, path, target string) error {
	if len(target) > maxPath {
		return abi.Errorf(abi.CodeInvalid, "target: %d bytes; at most %d", len(target), maxPath)
	}
	return d.change(ctx, d.resolveEntry, "make-link", path, func(o *op, path string) error {
		if strings.HasPrefix(target, "/") {
			return abi.Errorf(abi.CodeInvalid, "target %q: a link's target is relative to the directory of the link", target)
		}
		place, err := o.absent(path)
		if err != nil {
			return err
		}
		parent, _ := split(place)
		if _, err := d.resolve("make-link "+shown(path)+" to", parent+"/"+target); err != nil {
			return err
		}
		if target == "" {
			return abi.Errorf(abi.CodeInvalid, "a link needs a target")
		}
		return o.makeLink(place, d.normal(target))
	})
}

// ReadLink returns the target of a link.
func (d *Directory) ReadLink(ctx context.Context, path string) (string, error) {
	var target string
	err := d.inspect(ctx, d.resolve, "read-link", path, func(o *op, path string) error {
		_, n, err := o.get(path, false)
		if err == nil && !n.is(KindLink) {
			err = mismatch(path, n, "link")
		}
		if err == nil {
			target = n.target
		}
		return err
	})
	return target, err
}

// SetMode sets the permission bits of a file or directory, at most 0o777. In a workspace they are only stored. On disk they are
// those of the system.
func (d *Directory) SetMode(ctx context.Context, path string, mode uint32) error {
	return d.change(ctx, d.resolveEntry, "set-mode", path, func(o *op, path string) error {
		if mode > 0o777 {
			return abi.Errorf(abi.CodeInvalid, "mode %#o: permission bits are at most 0o777", mode)
		}
		place, n, err := o.get(path, true)
		if err == nil && place == "" {
			err = abi.Errorf(abi.CodeInvalid, "set-mode %s: this is the directory itself; name something in it", path)
		}
		if err != nil {
			return err
		}
		return o.setMode(place, n, mode)
	})
}

// Move gives a file, a link, or a directory with everything in it, another path, and makes missing parent directories. The error is
// [abi.ErrAlreadyExists] if something has that path, and [abi.ErrInvalid] if it is inside source.
func (d *Directory) Move(ctx context.Context, source, target string) error {
	return d.transfer(ctx, "move", source, target, files.move)
}

// Copy is Move, but leaves the source where it is. The copies count as modified now.
func (d *Directory) Copy(ctx context.Context, source, target string) error {
	return d.transfer(ctx, "copy", source, target, files.copy)
}

func (d *Directory) transfer(
	ctx context.Context, operation, source, target string, f func(all files, n *node, source, target string) error,
) error {
	source, err := d.resolveEntry(operation, source)
	if err != nil {
		return err
	}
	target, err = d.resolveEntry(operation, target)
	if err != nil {
		return err
	}
	if err := d.writable(operation + " " + source + " to " + target); err != nil {
		return err
	}
	return d.update(ctx, operation, func(o *op) error {
		from, n, err := o.get(source, false)
		if err != nil {
			return err
		}
		to, there, err := o.locate(target, false)
		switch {
		case err != nil:
			return err
		case to == from || inside(to, from):
			return abi.Errorf(abi.CodeInvalid, "cannot %s %s into itself", operation, source)
		case from == "":
			return abi.Errorf(abi.CodeInvalid, "cannot %s the directory itself", operation)
		}
		if err := o.prepare(to, there, target); err != nil {
			return err
		}
		return f(o.files, n, from, to)
	})
}

// Remove deletes a file, a link or a directory. A directory that is not empty needs recursive; otherwise the error is
// [abi.ErrInvalid].
func (d *Directory) Remove(ctx context.Context, path string, recursive bool) error {
	return d.change(ctx, d.resolveEntry, "remove", path, func(o *op, path string) error {
		place, n, err := o.get(path, false)
		if err != nil {
			return err
		}
		if n.is(KindDirectory) && !recursive {
			below, err := o.entries(place, "", 1)
			if err != nil {
				return err
			}
			if len(below) > 0 {
				return invalid(path, "is a directory that is not empty; remove it recursively")
			}
		}
		return o.remove(n, place, recursive)
	})
}
