package lifecycle

import (
	"bytes"
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing/fstest"
	"time"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/extension"
	"github.com/stilehost/stile/extension/inspect"
	"github.com/stilehost/stile/extension/npm"
	"github.com/stilehost/stile/internal/sqlite"
)

// Version is what was written once, and never changes. Nothing of it may be changed.
type Version struct {
	// Digest names the version: SHA-256, in hex, of manifest, files, entry and lockfile.
	Digest   string
	Manifest *extension.Manifest
	// Tools are what the code says of its tools. Calls keep to these definitions.
	Tools []abi.Definition
	// Files is the source.
	Files map[string][]byte
	Entry string
	// Lock is the package-lock.json of its packages; empty without packages.
	Lock     []byte
	Packages []npm.Package
	Report   inspect.Report
	// Component is the SHA-256 of the component it was built to, in hex.
	Component string
	Created   time.Time
	Author    string

	manifest []byte // as it was written
}

// record is how a version is stored; large parts are objects.
type record struct {
	Manifest string            `json:"manifest"` // as it was written, an object
	Files    map[string]string `json:"files"`    // digests of objects by path
	Entry    string            `json:"entry"`
	Lock     string            `json:"lock,omitempty"`
	Tools    []abi.Definition  `json:"tools"`
	Packages []npm.Package     `json:"packages,omitempty"`
	Report   inspect.Report    `json:"report"`
	Created  int64             `json:"created"`
	Author   string            `json:"author"`
}

// identify gives a version its digest. A part is preceded by its length, so that no two versions have the same text.
func (v *Version) identify() {
	h := sha256.New()
	part := func(data []byte) { _, _ = fmt.Fprintf(h, "%d:%s", len(data), data) }
	part([]byte("stile extension 1"))
	part(v.manifest)
	part([]byte(v.Entry))
	for _, name := range slices.Sorted(maps.Keys(v.Files)) {
		part([]byte(name))
		part(v.Files[name])
	}
	part(v.Lock)
	v.Digest = hex.EncodeToString(h.Sum(nil))
}

// Source is the tree of the version's files.
func (v *Version) Source() fstest.MapFS {
	tree := fstest.MapFS{}
	for name, data := range v.Files {
		tree[name] = &fstest.MapFile{Data: data}
	}
	return tree
}

// ManifestText is the manifest as its author wrote it.
func (v *Version) ManifestText() []byte { return bytes.Clone(v.manifest) }

// put stores a version and its component. One that is there already has the same digest; what of it is damaged is whole again.
func (v *Version) put(ctx context.Context, c *sqlite.Conn, component []byte) error {
	if _, err := putObject(ctx, c, component); err != nil {
		return err
	}
	r := record{Entry: v.Entry, Tools: v.Tools, Packages: v.Packages, Report: v.Report, Created: v.Created.UnixMilli(), Author: v.Author, Files: map[string]string{}}
	var err error
	if r.Manifest, err = putObject(ctx, c, v.manifest); err != nil {
		return err
	}
	for name, data := range v.Files {
		if r.Files[name], err = putObject(ctx, c, data); err != nil {
			return err
		}
	}
	if len(v.Lock) > 0 {
		if r.Lock, err = putObject(ctx, c, v.Lock); err != nil {
			return err
		}
	}
	text, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("encode a version: %w", err)
	}
	_, err = c.Exec(ctx, "INSERT INTO version VALUES (?, ?, ?, ?) ON CONFLICT DO UPDATE SET component = excluded.component, record = excluded.record", v.Digest, v.Manifest.Name, v.Component, string(text))
	return err
}

// loadRecord reads what of a version is enough to list it: not its source.
func loadRecord(ctx context.Context, c *sqlite.Conn, digest string) (r record, component string, err error) {
	var text string
	switch err := c.Row(ctx, "SELECT component, record FROM version WHERE digest = ?", digest).Scan(&component, &text); {
	case errors.Is(err, sql.ErrNoRows):
		return r, "", &DamagedError{digest, "it is missing"}
	case err != nil:
		return r, "", err
	}
	if err := json.Unmarshal([]byte(text), &r); err != nil {
		return r, "", &DamagedError{digest, cut(err.Error())}
	}
	return r, component, nil
}

// manifest reads the manifest of a record, and its text.
func (r record) manifest(ctx context.Context, c *sqlite.Conn) (*extension.Manifest, []byte, error) {
	text, err := object(ctx, c, r.Manifest)
	if err != nil {
		return nil, nil, err
	}
	manifest, err := extension.Parse(text)
	if err != nil {
		return nil, nil, &DamagedError{cut(r.Manifest), cut(err.Error())}
	}
	return manifest, text, nil
}

// loadVersion reads a version and checks that it is the one that has this digest.
func loadVersion(ctx context.Context, c *sqlite.Conn, digest string) (*Version, error) {
	r, component, err := loadRecord(ctx, c, digest)
	if err != nil {
		return nil, err
	}
	v := &Version{Files: map[string][]byte{}, Component: component}
	v.Entry, v.Tools, v.Packages, v.Report, v.Created, v.Author = r.Entry, r.Tools, r.Packages, r.Report, time.UnixMilli(r.Created), r.Author
	if v.Manifest, v.manifest, err = r.manifest(ctx, c); err != nil {
		return nil, err
	}
	for name, digest := range r.Files {
		if v.Files[name], err = object(ctx, c, digest); err != nil {
			return nil, err
		}
	}
	if r.Lock != "" {
		if v.Lock, err = object(ctx, c, r.Lock); err != nil {
			return nil, err
		}
	}
	if v.identify(); v.Digest != digest {
		return nil, &DamagedError{digest, "its content has another digest"}
	}
	return v, nil
}
