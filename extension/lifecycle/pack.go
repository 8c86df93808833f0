package lifecycle

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"

	"github.com/stilehost/stile/extension/pack"
	"github.com/stilehost/stile/host"
	"github.com/stilehost/stile/internal/sqlite"
	"github.com/stilehost/stile/toolchain"
	"github.com/stilehost/stile/toolchain/npm"
)

// Export returns a version as a pack for other stores.
func (m *Manager) Export(ctx context.Context, digest string) (p *pack.Pack, err error) {
	v, err := m.Version(ctx, digest)
	if err != nil {
		return nil, err
	}
	p = &pack.Pack{Manifest: v.manifest, Files: maps.Clone(v.Files), Entry: v.Entry, Lock: v.Lock}
	err = m.db.View(ctx, func(c *sqlite.Conn) (err error) { p.Component, err = v.component(ctx, c); return err })
	if err != nil {
		return nil, err
	}
	var component *host.Component
	if component, p.Component, err = m.component(ctx, v, p.Component); err != nil {
		return nil, err
	}
	defer func() {
		if err = errors.Join(err, component.Close()); err != nil {
			p = nil
		}
	}()
	var meta toolchain.Meta
	if section := component.Section(toolchain.MetaSection); section != nil && v.HasSource() { // of another toolchain, it says nothing
		if err := json.Unmarshal(section, &meta); err != nil {
			return nil, fmt.Errorf("read what the component says of itself: %w", err)
		}
	}
	p.Engine = meta.Engine
	if p.Definitions, err = json.Marshal(v.Tools); err != nil {
		return nil, fmt.Errorf("encode the tools: %w", err)
	}
	if !v.HasSource() { // what it is made of is not known
		return p, nil
	}
	p.SBOM, err = npm.SBOM(v.Manifest.Name, v.Manifest.Version, v.Packages, v.Lock)
	return p, err
}

// Import takes a pack through all stages, as Write does with a draft. d has everything but manifest and files. Import does not trust
// the component in a pack with source: it builds one from the source. Without source, the component is the version.
func (m *Manager) Import(ctx context.Context, p *pack.Pack, d Draft) (*Written, error) {
	d.Component, d.packed, d.NoTypes = nil, true, true
	if !p.HasSource() {
		d.Component = p.Component
	}
	d.Manifest, d.Files, d.Entry, d.lock = p.Manifest, p.Files, p.Entry, p.Lock
	return m.Write(ctx, d)
}
