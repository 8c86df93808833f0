package lifecycle

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/stilehost/stile/capabilities/tools"
	"github.com/stilehost/stile/extension"
	"github.com/stilehost/stile/internal/printable"
	"github.com/stilehost/stile/internal/toolsearch"
)

// Found is a search result.
type Found struct {
	Name, Description string
	// Tags are those of its extension, in byte order.
	Tags      []string
	Extension string
	Scope     extension.Scope
	// Rank is how well it fits: higher is better.
	Rank float64
	// Words is how many different words of the query it has, by their stems. Words that mean the same do not count.
	Words int
}

// Words returns the first words of a text, in lower case, as [Manager.Search] reads them. A negative number means all.
func Words(text string, most int) []string { return toolsearch.Words(text, most) }

// searched is how many bytes of the descriptions of an extension's tools are indexed for search.
const searched = 256 << 10

// words returns the words of a release's tools. They are looked up once for all searches of all viewers, when the first one needs them.
func (a *active) words() *toolsearch.Index {
	a.indexing.Do(func() {
		about := slices.Concat(a.manifest.Tags, []string{a.manifest.Description})
		all := make([]toolsearch.Tool, len(a.tools))
		for i, t := range a.tools {
			all[i] = toolsearch.Tool{
				Name: extension.ToolName(a.manifest.Name, t.Name), Description: printable.Cut(t.Description, searched/len(a.tools)), Words: about, Schema: t.InputSchema,
			}
		}
		a.index = toolsearch.New(a.manifest.Name, all)
	})
	return a.index
}

// visible returns the releases whose tools a viewer can call, the narrowest scope first, and a function that reports which of their tools
// it cannot: those that a narrower scope shadows.
func (m *Manager) visible(v Viewer) (releases []*active, hidden func(release, tool int) bool) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	scopes := v.scopes()
	offers := make([]map[string]offer, len(scopes))
	for i, scope := range scopes {
		offers[i] = m.offers[scope]
	}
	for _, a := range m.releases {
		if slices.Contains(scopes, a.scope) && a.quarantined() == "" {
			releases = append(releases, a)
		}
	}
	slices.SortFunc(releases, func(a, b *active) int {
		return cmp.Or(cmp.Compare(slices.Index(scopes, a.scope), slices.Index(scopes, b.scope)), strings.Compare(a.manifest.Name, b.manifest.Name))
	})
	return releases, func(release, tool int) bool {
		a := releases[release]
		name := extension.ToolName(a.manifest.Name, a.tools[tool].Name)
		for i, scope := range scopes {
			if scope == a.scope {
				return false
			}
			if _, ok := offers[i][name]; ok {
				return true
			}
		}
		return false
	}
}

// Search finds tools that a viewer can call by the words of a query, in names, tags, descriptions and the names of inputs. It returns at
// most limit, the best first, without tools that a narrower scope shadows.
func (m *Manager) Search(ctx context.Context, v Viewer, query string, limit int) (found []Found, err error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if err := m.Refresh(ctx); err != nil {
		return nil, err
	}
	releases, hits := m.search(v, query, limit)
	for _, f := range hits {
		a := releases[f.Index]
		t := a.tools[f.Tool]
		found = append(found, Found{
			Name: extension.ToolName(a.manifest.Name, t.Name), Description: t.Description + "\n" + a.manifest.Description, Tags: a.manifest.Tags,
			Extension: a.manifest.Name, Scope: a.scope, Rank: f.Rank, Words: f.Words,
		})
	}
	return found, nil
}

func (m *Manager) search(v Viewer, query string, limit int) ([]*active, []toolsearch.Found) {
	releases, hidden := m.visible(v)
	indexes := make([]*toolsearch.Index, len(releases))
	for i, a := range releases {
		indexes[i] = a.words()
	}
	return releases, toolsearch.Search(indexes, query, limit, hidden)
}

// Finder finds the tools that a viewer can call at the moment, for toolboxes and for agents.
func (m *Manager) Finder(v Viewer) tools.Finder { return finder{m, v} }

type finder struct {
	*Manager
	viewer Viewer
}

// Search implements [tools.Finder].
func (f finder) Search(query string, limit int) (found []tools.Description) {
	if strings.TrimSpace(query) == "" {
		offered, err := f.Tools(context.Background(), f.viewer)
		if err != nil {
			f.options.Logger.Warn("list the tools for a call", "error", err)
		}
		for _, t := range offered[:min(max(limit, 0), len(offered))] {
			found = append(found, described(t.Name, t.Definition.Description, t.Definition.InputSchema))
		}
		return found
	}
	f.refresh()
	releases, hits := f.search(f.viewer, query, limit)
	for _, hit := range hits {
		a := releases[hit.Index]
		t := a.tools[hit.Tool]
		found = append(found, described(extension.ToolName(a.manifest.Name, t.Name), t.Description, t.InputSchema))
	}
	return found
}

// Find implements [tools.Finder].
func (f finder) Find(name string) (tools.Description, bool) {
	f.refresh()
	f.mu.RLock()
	defer f.mu.RUnlock()
	o, ok := f.find(f.viewer, name)
	if !ok || o.release.quarantined() != "" {
		return tools.Description{}, false
	}
	return described(name, o.tool.Description, o.tool.InputSchema), true
}

// refresh brings what is found up to date. If the store cannot be read, the last state is searched: a call would fail for the same reason.
func (f finder) refresh() {
	if err := f.Refresh(context.Background()); err != nil {
		f.options.Logger.Warn("look for changes of extensions", "error", err)
	}
}

func described(name, description, schema string) tools.Description {
	return tools.Description{Name: name, Description: printable.Text(description), InputSchema: schema}
}
