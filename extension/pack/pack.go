// Package pack makes one file, or one artifact in a registry, from a version of an extension: component, manifest and
// source, if it has one, with everything that another host needs to inspect it, build it again, and see who signed it. A pack is named by
// the digest of its parts, independent of its container. A pack comes from a stranger until its digest or a signature says
// more, so everything read is bounded, checked before use, and kept in memory.
package pack

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"path"
	"strings"

	"github.com/opencontainers/go-digest"

	"github.com/stilehost/stile/internal/printable"
)

// Pack is one version of an extension. Do not change it once its digest is known. Package pack does not look into the parts, so do
// not trust the manifest. Goroutines may read a pack concurrently.
type Pack struct {
	// Manifest is the extension's manifest, as its author wrote it.
	Manifest []byte
	// Files are the source tree: slash-separated paths, as [fs.ValidPath] has them, and contents. A pack without Files and without Entry
	// holds a component that came without source.
	Files map[string][]byte
	// Entry is the path among Files of the module that exports the extension.
	Entry string
	// Component is the WebAssembly component: built from the rest, or all there is of the code if there is no source.
	Component []byte
	// Engine names the engine that Component imports. It is empty if Component imports none.
	Engine string
	// Lock is the lockfile of its packages, SBOM the bill of materials, and Definitions the tools' descriptions. Each may be empty,
	// which is the same as absent.
	Lock, SBOM, Definitions []byte
}

// HasSource reports whether the pack has the source of its component.
func (p *Pack) HasSource() bool { return len(p.Files) > 0 || p.Entry != "" }

// part is a part of a pack that consists of bytes: one layer of the artifact.
type part struct {
	name      string // in descriptions and errors
	mediaType string
	required  bool
	bytes     func(*Pack) *[]byte
	limit     func(Limits) int64
}

// parts are in the order of the layers. The source, a tar archive, is the layer before them.
var parts = []part{
	{"manifest", "application/vnd.stile.extension.manifest.v1+json", true, func(p *Pack) *[]byte { return &p.Manifest }, partLimit},
	{"component", "application/wasm", true, func(p *Pack) *[]byte { return &p.Component }, func(l Limits) int64 { return l.Component }},
	{"lock", "application/vnd.stile.extension.lock.v1+json", false, func(p *Pack) *[]byte { return &p.Lock }, partLimit},
	{"sbom", "application/vnd.cyclonedx+json", false, func(p *Pack) *[]byte { return &p.SBOM }, partLimit},
	{"definitions", "application/vnd.stile.extension.definitions.v1+json", false, func(p *Pack) *[]byte { return &p.Definitions }, partLimit},
}

func partLimit(l Limits) int64 { return l.Part }

// description is the JSON that the digest of a pack covers, and the config of its artifact.
type description struct {
	Type   string                   `json:"type"` // ArtifactType
	Entry  string                   `json:"entry"`
	Engine string                   `json:"engine,omitempty"`
	Parts  map[string]digest.Digest `json:"parts"` // by name, without empty parts
	Files  map[string]digest.Digest `json:"files"`
}

// Digest names the pack: "sha256:" and the SHA-256, in hexadecimal, of the description of its parts. The description is
// JSON without spaces, its fields in this order and the names in an object in byte order:
//
//	{"type":"application/vnd.stile.extension.v1","entry":"tool.ts","engine":"...",
//	 "parts":{"component":"sha256:...","definitions":"sha256:...","lock":"sha256:...","manifest":"sha256:...","sbom":"sha256:..."},
//	 "files":{"tool.ts":"sha256:..."}}
//
// Empty parts and an empty engine are left out. Without source, entry is "" and files is {}. In text, <, > and & are written as \u003c, \u003e and \u0026.
// An error is a *[PartError] that says what a pack may not contain.
func (p *Pack) Digest() (string, error) {
	b, err := p.describe()
	if err != nil {
		return "", err
	}
	return digest.FromBytes(b).String(), nil
}

func (p *Pack) describe() ([]byte, error) {
	if err := p.check(); err != nil {
		return nil, err
	}
	d := description{
		Type: ArtifactType, Entry: p.Entry, Engine: p.Engine,
		Parts: map[string]digest.Digest{}, Files: make(map[string]digest.Digest, len(p.Files)),
	}
	for _, part := range parts {
		if b := *part.bytes(p); len(b) > 0 {
			d.Parts[part.name] = digest.FromBytes(b)
		}
	}
	for name, b := range p.Files {
		d.Files[name] = digest.FromBytes(b)
	}
	return json.Marshal(d)
}

const (
	maxPath   = 512 // bytes
	maxEngine = 256 // bytes
)

// check refuses contents for which two packs would have the same description, and trees that no folder can hold.
func (p *Pack) check() error {
	for _, part := range parts {
		if part.required && len(*part.bytes(p)) == 0 {
			return &PartError{part.name, ErrMissing}
		}
	}
	for name := range p.Files {
		if err := checkPath(name); err != nil {
			return &PartError{"file " + quote(name), err}
		}
		for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
			if _, ok := p.Files[dir]; ok {
				return &PartError{"file " + quote(dir), fmt.Errorf("%w: it is a folder too", ErrName)}
			}
		}
	}
	if _, ok := p.Files[p.Entry]; !ok && p.HasSource() {
		return &PartError{"entry", fmt.Errorf("%w: there is no file %s", ErrMissing, quote(p.Entry))}
	}
	if len(p.Engine) > maxEngine || !plain(p.Engine) {
		return &PartError{"engine", fmt.Errorf("%w: %s", ErrName, quote(p.Engine))}
	}
	return nil
}

// checkPath accepts only paths that mean the same on every system and have no deceptive characters.
func checkPath(name string) error {
	switch {
	case len(name) > maxPath:
		return fmt.Errorf("%w: it has %d bytes, and %d are allowed", ErrName, len(name), maxPath)
	case !fs.ValidPath(name) || name == "." || strings.ContainsAny(name, `\:`) || !plain(name):
		return fmt.Errorf("%w: write a path with slashes, without . and .. and without characters that cannot be seen", ErrName)
	default:
		return nil
	}
}

// plain reports whether s is UTF-8 without hidden or deceptive characters.
func plain(s string) bool {
	_, unclear := printable.Unclear(s)
	return !unclear
}
