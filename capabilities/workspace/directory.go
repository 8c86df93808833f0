package workspace

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/internal/sqlite"
)

// Interface is the WIT interface this package implements.
const Interface = "stile:capability/workspace@0.1.0"

// Directory is the right to read, and unless it is read-only to change, one directory of a workspace and all below it.
// It is immutable, safe for concurrent use, and lives as long as its store. The directory need not exist: until
// something is written it is empty.
//
// Paths are relative to the directory, with "/" between names and an optional one in front; they are compared by bytes
// after Unicode normalisation (NFC). A path that leads out of the directory is answered with [abi.ErrDenied]; one that
// is not UTF-8, has a control character or a backslash, a name over 255 bytes, with a space at its beginning or end or a
// dot at its end, or over 4,096 bytes in all, with [abi.ErrInvalid]. The other errors that every method can have are
// [abi.ErrNotFound], [abi.ErrUnavailable] for a fault of the disk, and the error of ctx. A method that changes something
// answers [abi.ErrDenied] on a read-only handle and [abi.ErrExhausted] when a limit of the workspace would be passed.
type Directory struct {
	store     *Store
	workspace string
	base      string // a path from the root: "" or "/notes"
	readOnly  bool
}

// Interface implements [abi.Capability].
func (d *Directory) Interface() string { return Interface }

// Sub returns a handle on a directory below this one, whether it exists or not, with the same right to change it.
func (d *Directory) Sub(path string) (*Directory, error) {
	full, err := d.resolve("open", path)
	if err != nil {
		return nil, err
	}
	sub := *d
	sub.base = full
	return &sub, nil
}

// AsReadOnly returns a handle on the same directory without the right to change it. Handles made from that one have no
// such right either.
func (d *Directory) AsReadOnly() *Directory {
	same := *d
	same.readOnly = true
	return &same
}

// Subdirectory returns a handle on an existing directory below this one, with the same right to change it.
func (d *Directory) Subdirectory(ctx context.Context, path string) (*Directory, error) {
	sub, err := d.Sub(path)
	if err != nil {
		return nil, err
	}
	err = d.view(ctx, func(t *tree) error {
		_, err := t.directory(sub.base)
		return err
	})
	if err != nil {
		return nil, err
	}
	return sub, nil
}

// ReadOnly is the method `read-only`: see [Directory.AsReadOnly]. It does not fail.
func (d *Directory) ReadOnly(context.Context) (*Directory, error) { return d.AsReadOnly(), nil }

// writable returns the denial of an operation, e.g. "write /a.md", on a handle that cannot change anything. The operation
// names paths as the guest sees them; only the grant, which is private then, has the directory's own.
func (d *Directory) writable(operation string) error {
	if !d.readOnly {
		return nil
	}
	var grant struct {
		Workspace struct {
			Path   string `json:"path"`
			Access string `json:"access"`
		} `json:"workspace"`
	}
	grant.Workspace.Path, grant.Workspace.Access = cmp.Or(d.base, "/"), "read-write"
	var line bytes.Buffer
	e := json.NewEncoder(&line)
	e.SetEscapeHTML(false)
	if err := e.Encode(grant); err != nil {
		return err
	}
	return abi.Deny(abi.Denial{
		Operation: operation,
		Reason:    "this handle can only read",
		Grant:     string(bytes.TrimSpace(line.Bytes())),
		Private:   d.base != "",
	})
}

// view runs f over one state of the workspace.
func (d *Directory) view(ctx context.Context, f func(*tree) error) error {
	return d.store.db.View(ctx, func(c *sqlite.Conn) error {
		return f(&tree{ctx: ctx, conn: c, handle: d})
	})
}

// update runs f in one writing transaction and holds the workspace to its limits. One that is over a limit already,
// because the limit was lowered, can still shrink.
func (d *Directory) update(ctx context.Context, f func(*tree) error) error {
	return d.store.db.Update(ctx, func(c *sqlite.Conn) error {
		t := &tree{ctx: ctx, conn: c, handle: d}
		var err error
		if t.before, err = t.usage(); err != nil {
			return err
		}
		if err := f(t); err != nil {
			return err
		}
		return t.checkLimits()
	})
}
