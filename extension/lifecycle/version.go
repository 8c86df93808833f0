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

	"github.com/dustin/go-humanize"
	"github.com/dustin/go-humanize/english"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/capability"
	"github.com/stilehost/stile/extension"
	"github.com/stilehost/stile/extension/inspect"
	"github.com/stilehost/stile/internal/printable"
	"github.com/stilehost/stile/internal/sha256hex"
	"github.com/stilehost/stile/internal/sqlite"
	"github.com/stilehost/stile/toolchain/npm"
)

// Version is what an author wrote. It never changes, and callers must not modify it.
type Version struct {
	// Digest names the version: the SHA-256, in hex, of manifest, files, entry, lockfile and tools, or of manifest, component and tools if
	// there is no source.
	Digest   string
	Manifest *extension.Manifest
	// Tools are the tools as the code describes them. Calls keep to these definitions.
	Tools []abi.Definition
	// Files is the source. It is empty for a component that came without source.
	Files map[string][]byte
	Entry string
	// Lock is the package-lock.json of its packages. It is empty without packages.
	Lock     []byte
	Packages []npm.Package
	Report   inspect.Report
	// Component is the SHA-256, in hex, of the component that was built from it. It is empty if the store dropped the component to make
	// room; it is then built again when it is needed.
	Component string
	Created   time.Time
	Author    string

	manifest []byte // as written
	given    string // the digest of the component that the author gave in place of a source
}

// MinDigest is how many characters of a digest must be given to name a version, and DigestSize how many there are.
const (
	MinDigest  = 6
	DigestSize = 2 * sha256.Size
)

// ShortDigest returns enough of a digest to tell versions apart at a glance. No approval relies on it.
func ShortDigest(digest string) string { return digest[:min(12, len(digest))] }

// record is how a version is stored; large parts are objects.
type record struct {
	Manifest string            `json:"manifest"` // as it was written, an object
	Files    map[string]string `json:"files"`    // digests of objects by path
	Entry    string            `json:"entry"`
	Lock     string            `json:"lock,omitempty"`
	// Component is the digest of the component that came in place of a source.
	Component string           `json:"component,omitempty"`
	Tools     []abi.Definition `json:"tools"`
	Packages  []npm.Package    `json:"packages,omitempty"`
	Report    inspect.Report   `json:"report"`
	Created   int64            `json:"created"`
	Author    string           `json:"author"`
}

// digest returns the digest of a stored version. It covers everything that the author wrote, and the code's description of its tools,
// but not the report and the registry's answers. Each part is preceded by its length, so that no two versions have the same text.
func (r record) digest() (string, error) {
	tools, err := json.Marshal(r.Tools)
	if err != nil {
		return "", fmt.Errorf("encode the tools: %w", err)
	}
	h := sha256.New()
	part := func(text string) { _, _ = fmt.Fprintf(h, "%d:%s", len(text), text) }
	if r.Component == "" {
		part("stile extension 1")
	} else {
		part("stile component 1")
		part(r.Component)
	}
	part(r.Manifest)
	part(r.Entry)
	part(r.Lock)
	part(string(tools))
	for _, name := range slices.Sorted(maps.Keys(r.Files)) {
		part(name)
		part(r.Files[name])
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// record is how the version is stored.
func (v *Version) record() record {
	r := record{
		Manifest: sha256hex.Of(v.manifest), Entry: v.Entry, Component: v.given, Files: make(map[string]string, len(v.Files)),
		Tools: v.Tools, Packages: v.Packages, Report: v.Report, Created: v.Created.UnixMilli(), Author: v.Author,
	}
	for name, data := range v.Files {
		r.Files[name] = sha256hex.Of(data)
	}
	if len(v.Lock) > 0 {
		r.Lock = sha256hex.Of(v.Lock)
	}
	return r
}

// Warnings returns the warnings about its packages, one a line.
func (v *Version) Warnings() (lines []string) {
	for _, p := range v.Packages {
		for _, warning := range p.Warnings {
			lines = append(lines, printable.Line(fmt.Sprintf("package %s %s: %s", p.Name, p.Version, warning)))
		}
	}
	return lines
}

// Unasked returns the bindings that the code of a version uses and its manifest does not ask for, one a line. A call that uses one fails.
func (m *Manager) Unasked(v *Version) (lines []string) {
	defaults := extension.Defaults(m.options.Kinds)
	for _, use := range v.Report.UndeclaredBindings {
		if !slices.ContainsFunc(defaults, func(b extension.Binding) bool { return b.Name == use.Name }) {
			text := "%s uses env.%s, which the manifest does not ask for"
			if !v.HasSource() {
				text = "%s: the manifest has no binding of the kind %s"
			}
			lines = append(lines, printable.Line(fmt.Sprintf(text, use.Places[0], use.Name)))
		}
	}
	return lines
}

// PackageLines describes its packages, one a line, with what a person should know before any of their code runs.
func (v *Version) PackageLines() (lines []string) {
	for _, p := range v.Packages {
		lines = append(lines, printable.Line(fmt.Sprintf("%s %s, %s, %s, %s", p.Name, p.Version, p.LicenseText(), humanize.IBytes(uint64(max(0, p.Size))), p.Integrity)))
	}
	return lines
}

// Computes says what it may do without bindings: "only compute, with code of 2 npm packages".
func (v *Version) Computes() string {
	if !v.HasSource() {
		return "only compute, with code that nobody can read"
	}
	if len(v.Packages) == 0 {
		return "only compute"
	}
	return "only compute, with code of " + english.Plural(len(v.Packages), "npm package", "")
}

// Source returns the tree of the version's files.
func (v *Version) Source() fstest.MapFS {
	tree := fstest.MapFS{}
	for name, data := range v.Files {
		tree[name] = &fstest.MapFile{Data: data}
	}
	return tree
}

// ManifestText returns the manifest as its author wrote it.
func (v *Version) ManifestText() []byte { return bytes.Clone(v.manifest) }

// put stores a version, as text, and its component, whose objects may have been written before. An existing one has the same digest.
// put repairs damaged parts of it.
func (v *Version) put(ctx context.Context, c *sqlite.Conn, text []byte, objects []stored, before bool) error {
	if err := putObjects(ctx, c, objects, before); err != nil {
		return err
	}
	if err := shed(ctx, c, v.Digest, otherComponent, v.Component); err != nil {
		return err
	}
	_, err := c.Exec(ctx, "INSERT INTO version VALUES (?, ?, ?, ?) ON CONFLICT DO UPDATE SET component = excluded.component, record = excluded.record", v.Digest, v.Manifest.Name, v.Component, string(text))
	if err != nil {
		return err
	}
	source, component := v.footprint(text, objects)
	const content = `INSERT INTO content (version, author, ran, source, component) VALUES (?, ?, 0, ?, ?)
		ON CONFLICT DO UPDATE SET author = excluded.author, source = excluded.source, component = excluded.component`
	if _, err = c.Exec(ctx, content, v.Digest, v.Author, source, component); err != nil {
		return err
	}
	return addParts(ctx, c, v.Digest, objects)
}

// component reads the component of the version. It is nil if the store dropped it.
func (v *Version) component(ctx context.Context, c *sqlite.Conn) ([]byte, error) {
	now, err := v.still(ctx, c)
	if err == nil {
		err = now.checkGiven()
	}
	if err != nil || now.Component == "" {
		return nil, err
	}
	return object(ctx, c, now.Component)
}

// still returns the version, which was read earlier, with what the store has of it now.
func (v *Version) still(ctx context.Context, c *sqlite.Conn) (*Version, error) {
	var source bool
	now := *v
	if err := c.Row(ctx, "SELECT component, octet_length(record) > 0 FROM version WHERE digest = ?", v.Digest).Scan(&now.Component, &source); err != nil {
		return nil, err
	}
	if !source {
		return nil, &DroppedError{v.Digest}
	}
	return &now, nil
}

// text is the record as it is stored.
func (r record) text() ([]byte, error) {
	text, err := json.Marshal(r)
	if err != nil {
		return nil, fmt.Errorf("encode a version: %w", err)
	}
	return text, nil
}

// first returns the version as already stored. It is nil if that is missing or damaged.
func (v *Version) first(ctx context.Context, c *sqlite.Conn, load func(digest string) (*Version, error)) (*Version, error) {
	var there bool
	if err := c.Row(ctx, "SELECT EXISTS (SELECT 1 FROM version WHERE digest = ? AND octet_length(record) > 0)", v.Digest).Scan(&there); err != nil || !there {
		return nil, err
	}
	first, err := load(v.Digest)
	if damaged := (*DamagedError)(nil); errors.As(err, &damaged) {
		r, _, err := loadRecord(ctx, c, v.Digest)
		if err != nil {
			return nil, nil
		}
		return &Version{Author: r.Author, Created: time.UnixMilli(r.Created)}, nil
	}
	return first, err
}

// objects are the parts of a version.
func (v *Version) objects(component []byte) []stored {
	parts := slices.AppendSeq([][]byte{component, v.manifest}, maps.Values(v.Files))
	if len(v.Lock) > 0 {
		parts = append(parts, v.Lock)
	}
	all := make([]stored, len(parts))
	for i, data := range parts {
		all[i] = stored{sha256hex.Of(data), data}
	}
	return all
}

// loadRecord reads enough of a version to list it, without its source, and checks that it belongs to the version with this digest.
func loadRecord(ctx context.Context, c *sqlite.Conn, digest string) (r record, component string, err error) {
	var text string
	switch err := c.Row(ctx, "SELECT component, record FROM version WHERE digest = ?", digest).Scan(&component, &text); {
	case errors.Is(err, sql.ErrNoRows):
		return r, "", &DamagedError{digest, "it is missing"}
	case err != nil:
		return r, "", err
	case text == "":
		return r, "", &DroppedError{digest}
	}
	if err := json.Unmarshal([]byte(text), &r); err != nil {
		return r, "", &DamagedError{digest, cut(err.Error())}
	}
	if is, err := r.digest(); err != nil || is != digest {
		return r, "", &DamagedError{digest, "its record has another digest"}
	}
	return r, component, nil
}

// manifest reads the manifest of a record, and its text.
func (r record) manifest(ctx context.Context, c *sqlite.Conn, kinds capability.Set) (*extension.Manifest, []byte, error) {
	text, err := object(ctx, c, r.Manifest)
	if err != nil {
		return nil, nil, err
	}
	manifest, err := extension.ParseWith(kinds, text)
	if err != nil {
		return nil, nil, &DamagedError{cut(r.Manifest), cut(err.Error())}
	}
	return manifest, text, nil
}

// loadVersion reads a version and checks everything that its digest covers.
func loadVersion(ctx context.Context, c *sqlite.Conn, kinds capability.Set, digest string) (*Version, error) {
	r, component, err := loadRecord(ctx, c, digest)
	if err != nil {
		return nil, err
	}
	v := &Version{Digest: digest, Files: map[string][]byte{}, Component: component, given: r.Component}
	v.Entry, v.Tools, v.Packages, v.Report, v.Created, v.Author = r.Entry, r.Tools, r.Packages, r.Report, time.UnixMilli(r.Created), r.Author
	if v.Manifest, v.manifest, err = r.manifest(ctx, c, kinds); err != nil {
		return nil, err
	}
	if err := v.checkGiven(); err != nil {
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
	return v, nil
}
