package workspace

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/capabilities/internal/trees"
)

// A sandbox copies a directory in and out with the methods below. It declares them as an interface of its own.

const (
	// appliedFiles and appliedBytes are how much one transaction of Apply writes, as other writers wait for it. One large file can be
	// more.
	appliedFiles = 256
	appliedBytes = 2 << 20
	// syncedApart is how many changes on disk are synced one by one. More of them are synced together, at the end.
	syncedApart = 32
)

// Place names the directory: two handles of one directory have the same place, as long as the process runs.
func (d *Directory) Place() string {
	if v, ok := d.volume.(*stored); ok {
		return fmt.Sprintf("%p/%q%s", v.store, v.name, d.base)
	}
	return fmt.Sprintf("%p%s", d.volume, d.base)
}

// OnDisk reports whether the directory is one of the machine, where other programs act on files by their names.
func (d *Directory) OnDisk() bool { return d.exact }

// Writable returns the denial of an operation, such as "pull /work", if this handle can only read.
func (d *Directory) Writable(operation string) error { return d.writable(operation) }

// Admits returns an error if nothing can have this path, relative to the directory, or if the directory would change its spelling.
func (d *Directory) Admits(path string) error {
	normal, err := d.resolve("write", path)
	if err == nil && normal != "/"+path {
		err = abi.Errorf(abi.CodeInvalid, "path %q: the workspace would spell it differently", path)
	}
	return err
}

// Survey visits everything below the directory, a directory before its content, and returns the version of the workspace. If the version is
// known, it visits nothing. A directory on disk has no version, which is "".
func (d *Directory) Survey(ctx context.Context, known string, visit func(trees.Entry) error) (version string, err error) {
	err = d.view(ctx, "read", func(o *op) error {
		t, stored := o.files.(*tree)
		if !stored {
			return o.files.(*folder).survey("", visit)
		}
		now, err := t.usage()
		if err != nil {
			return err
		}
		if version = versionText(now.version); version == known {
			return nil
		}
		return t.survey(visit)
	})
	return version, err
}

func versionText(version int64) string { return strconv.FormatInt(version, 10) }

// Look visits what is at some paths.
func (d *Directory) Look(ctx context.Context, paths []string, visit func(trees.Entry) error) error {
	return d.view(ctx, "read", func(o *op) error {
		for _, path := range paths {
			if err := ctx.Err(); err != nil {
				return err
			}
			n, err := o.lookup("/" + path)
			if refused, err := refusal(err); err != nil || refused != nil || n == nil {
				if err != nil {
					return err
				}
				continue
			}
			if err := visit(*n.entry(path)); err != nil {
				return err
			}
		}
		return nil
	})
}

func (t *tree) survey(visit func(trees.Entry) error) error {
	skip := len(t.base) + 1
	for row, err := range t.conn.Rows(t.ctx, `SELECT parent, name, kind, size, mode, coalesce(content, 0), target FROM node
		WHERE workspace = ?1 AND (parent = ?2 OR parent >= ?2 || '/' AND parent < ?2 || '0') ORDER BY parent, name`, t.workspace, t.base) {
		if err != nil {
			return err
		}
		var parent, name string
		var n node
		if err := row.Scan(&parent, &name, &n.status.Kind, &n.status.Size, &n.status.Mode, &n.bytes, &n.target); err != nil {
			return err
		}
		if err := visit(*n.entry((parent + "/" + name)[skip:])); err != nil {
			return err
		}
	}
	return nil
}

func (f *folder) survey(path string, visit func(trees.Entry) error) error {
	return f.each(path, func(e Entry) error {
		at := path + "/" + e.Name
		n, err := f.lookup(at)
		if err != nil || n == nil { // gone meanwhile, or it became something special
			return f.ctx.Err()
		}
		if err := visit(*n.entry(at[1:])); err != nil || !n.is(KindDirectory) {
			return err
		}
		return f.survey(at, visit)
	})
}

// entry describes a node.
func (n *node) entry(path string) *trees.Entry {
	e := &trees.Entry{Path: path, Kind: trees.Kind(n.status.Kind), Mode: n.status.Mode, Target: n.target}
	if !n.is(KindFile) {
		return e
	}
	e.Size = int64(n.status.Size)
	if info, disk := n.file.(fs.FileInfo); disk {
		e.Stamp = trees.Stamp(info.ModTime().UnixNano(), int64(identity(info)))
		e.Changed = info.ModTime().UnixNano()
		e.Settle(time.Now())
	} else {
		e.Stamp = trees.Stamp(n.bytes) // no content has the number of an earlier one
	}
	return e
}

// identity is the number of a file on its disk. It differs after the file was replaced.
func identity(info fs.FileInfo) uint64 {
	if s, ok := info.Sys().(*syscall.Stat_t); ok {
		return s.Ino
	}
	return 0
}

// Load reads files. It stops at an error of use. A path at which there is no file any more is left out.
func (d *Directory) Load(ctx context.Context, paths []string, use func(path string, size int64, content io.Reader) error) error {
	for some := range slices.Chunk(paths, appliedFiles) {
		if err := d.view(ctx, "read", func(o *op) error {
			for _, path := range some {
				if err := ctx.Err(); err != nil {
					return err
				}
				n, err := o.lookup("/" + path)
				if err != nil || n == nil || !n.is(KindFile) {
					continue
				}
				if err := abi.Charge(ctx, int(n.status.Size)); err != nil {
					return err
				}
				r := &contentReader{}
				next, stop := pull(o, "/"+path, n)
				r.next = next
				err = use(path, int64(n.status.Size), r)
				stop()
				if err != nil {
					return err
				}
			}
			return nil
		}); err != nil {
			return err
		}
	}
	return nil
}

// Apply makes changes, in their order, in transactions of some changes each. A directory must come before what is in it, and after
// what is removed from it. The errors say for each change why it was not made: abi.ErrConflict if there was something other than
// expected. After an error of Apply itself, later changes were not made. version is that of the workspace afterwards, as Survey returns it. It
// is "" if somebody else has changed the workspace since it had the version known.
func (d *Directory) Apply(ctx context.Context, known string, changes []trees.Change) (outcomes []error, version string, err error) {
	outcomes, version = make([]error, len(changes)), known
	if len(changes) == 0 {
		return nil, known, nil
	}
	if err := d.writable("write /" + changes[0].Path); err != nil {
		return nil, "", err
	}
	together := len(changes) > syncedApart
	for from := 0; from < len(changes); {
		to, size := from, int64(0)
		for to < len(changes) && to-from < appliedFiles && (to == from || size < appliedBytes) {
			if c := changes[to]; c.After != nil && c.Open != nil {
				size += c.After.Size
			}
			to++
		}
		if err := abi.Charge(ctx, int(size)); err != nil {
			return outcomes[:from], "", err
		}
		var next string
		err := d.update(ctx, "write", func(o *op) (err error) {
			if f, ok := o.files.(*folder); ok {
				f.unsynced = together
			}
			next = ""
			if t, ok := o.files.(*tree); ok && versionText(t.before.version) == version {
				next = versionText(t.before.version + 1) // each transaction counts
			}
			if _, err := o.ensure(); err != nil {
				return err
			}
			for i, c := range changes[from:to] {
				if err := ctx.Err(); err != nil {
					return err
				}
				if outcomes[from+i], err = d.apply(o, c); err != nil {
					return err
				}
				if outcomes[from+i] != nil || c.After == nil {
					continue
				}
				n, err := o.lookup("/" + c.Path)
				if err != nil || n == nil {
					return errors.Join(err, changed("/"+c.Path))
				}
				*c.After = *n.entry(c.Path)
			}
			return nil
		})
		if err != nil {
			return outcomes[:from], "", err
		}
		from, version = to, next
	}
	if disk, ok := d.volume.(*Disk); ok && together {
		return outcomes, "", diskError("", syncAll(disk.root))
	}
	return outcomes, version, nil
}

// apply makes one change. refused says why it was not made.
func (d *Directory) apply(o *op, c trees.Change) (refused, err error) {
	if err := d.Admits(c.Path); err != nil {
		return err, nil
	}
	place := "/" + c.Path
	parent, _ := split(place)
	above, err := o.lookup(parent)
	if err != nil {
		return nil, err
	}
	n, err := o.lookup(place)
	if err != nil {
		return refusal(err)
	}
	var now *trees.Entry
	if n != nil {
		now = n.entry(c.Path)
	}
	switch {
	case !trees.Equal(now, c.Before), c.After != nil && (above == nil || !above.is(KindDirectory)):
		return changed(place), nil
	case n != nil && (c.After == nil || EntryKind(c.After.Kind) != n.status.Kind || n.is(KindLink)):
		if refused, err := d.discard(o, place, n); refused != nil || err != nil {
			return refused, err
		}
		n = nil
	}
	if c.After == nil {
		return nil, nil
	}
	mode := uint32(fileMode)
	switch c.After.Kind {
	case trees.Link:
		if strings.HasPrefix(c.After.Target, "/") || c.After.Target == "" {
			return abi.Errorf(abi.CodeInvalid, "%s: the target of the link is not relative", place), nil
		}
		if _, err := d.resolve("make-link "+place+" to", parent+"/"+c.After.Target); err != nil {
			return err, nil
		}
		return nil, o.makeLink(place, d.normal(c.After.Target))
	case trees.Directory:
		mode = directoryMode
		if n == nil {
			if err := o.makeDirectory(place); err != nil {
				return nil, err
			}
		}
	default:
		if c.Open != nil {
			if refused, err := d.fill(o, place, n, c); refused != nil || err != nil {
				return refused, err
			}
		}
	}
	if n != nil {
		mode = n.status.Mode
	}
	if mode == c.After.Mode && (!d.exact || n != nil) { // on disk the process's mask may have changed it
		return nil, nil
	}
	if n, err = o.lookup(place); err != nil || n == nil {
		return nil, errors.Join(err, changed(place))
	}
	return nil, o.setMode(place, n, c.After.Mode)
}

// fill writes the content of a file.
func (d *Directory) fill(o *op, place string, n *node, c trees.Change) (refused, err error) {
	content, err := c.Open()
	if err != nil {
		return err, nil // the other side no longer has what it announced
	}
	err = o.put(place, n, c.After.Size, content)
	if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
		err = abi.Errorf(abi.CodeConflict, "%s became shorter meanwhile", place)
	}
	return nil, errors.Join(err, content.Close())
}

// discard removes a node, but no directory with something in it.
func (d *Directory) discard(o *op, place string, n *node) (refused, err error) {
	if !n.is(KindDirectory) {
		return nil, o.remove(n, place, false)
	}
	below, err := o.entries(place, "", 1)
	if err != nil {
		return nil, err
	}
	if len(below) > 0 {
		return abi.Errorf(abi.CodeConflict, "%s has content of its own", place), nil
	}
	if t, ok := o.files.(*tree); ok { // remove would begin a task, of which a transaction has one
		_, err := t.execNodes(`DELETE FROM node WHERE id = ?`, n.id)
		return nil, err
	}
	return refusal(o.remove(n, place, false)) // the system also sees entries that no path can name
}

// refusal separates errors of one path from those of the disk.
func refusal(err error) (refused, failed error) {
	if known, ok := errors.AsType[*abi.Error](err); ok && known.Code != abi.CodeUnavailable && known.Code != abi.CodeExhausted {
		return err, nil
	}
	return nil, err
}
