package tools

import (
	"slices"
	"strings"

	"github.com/stilehost/stile/internal/printable"
	"github.com/stilehost/stile/internal/toolsearch"
)

// Finder knows the tools that a toolbox can call. It must be safe for concurrent use and quick.
type Finder interface {
	// Search returns at most limit tools, the best first. An empty query finds all tools.
	Search(query string, limit int) []Description
	// Find returns the tool of a name.
	Find(name string) (Description, bool)
}

// Catalog is a [Finder] of tools that do not change. It is immutable.
type Catalog struct {
	tools []Description
	index *toolsearch.Index
	named map[string]int
}

// NewCatalog returns a catalog of tools. Its words are looked up in an index, which is made here.
func NewCatalog(tools []Description) *Catalog {
	c := &Catalog{tools: tools, named: make(map[string]int, len(tools))}
	all := make([]toolsearch.Tool, len(tools))
	for i, t := range tools {
		all[i] = toolsearch.Tool{Name: t.Name, Description: t.Description, Schema: t.InputSchema}
		c.named[t.Name] = i
	}
	c.index = toolsearch.New("", all)
	return c
}

// Search implements [Finder].
func (c *Catalog) Search(query string, limit int) (found []Description) {
	if strings.TrimSpace(query) == "" {
		return c.tools[:min(max(limit, 0), len(c.tools))]
	}
	for _, f := range toolsearch.Search([]*toolsearch.Index{c.index}, query, limit, nil) {
		found = append(found, c.tools[f.Tool])
	}
	return found
}

// Find implements [Finder].
func (c *Catalog) Find(name string) (Description, bool) {
	i, ok := c.named[name]
	if !ok {
		return Description{}, false
	}
	return c.tools[i], true
}

// both finds the tools of two. Search puts those of the second first: the first are few, and whoever searches has them listed anyway.
type both struct{ own, more Finder }

func (b both) Search(query string, limit int) []Description {
	found := b.more.Search(query, limit)
	for _, d := range b.own.Search(query, limit) {
		if len(found) >= limit {
			break
		}
		found = append(found, d)
	}
	return slices.DeleteFunc(found, func(d Description) bool { // a name of both is that of the first
		first, ok := b.own.Find(d.Name)
		return ok && first != d
	})
}

func (b both) Find(name string) (Description, bool) {
	if d, ok := b.own.Find(name); ok {
		return d, true
	}
	return b.more.Find(name)
}

// nothing is a Finder without tools.
type nothing struct{}

func (nothing) Search(string, int) []Description { return nil }

func (nothing) Find(string) (Description, bool) { return Description{}, false }

// own are the names that a toolbox has in JavaScript besides those of extensions.
var own = []string{"call", "search", "describe", "then", "toJSON"}

// Expression is how code calls a tool by its full name: tools.github.create_pr for github_create_pr.
func Expression(name string) string {
	extension, tool, ok := strings.Cut(name, "_")
	if !ok || !identifier(extension) || !identifier(tool) {
		if identifier(name) && !reserved(name) {
			return "tools." + name
		}
		return "tools.call(" + quoted(name) + ")"
	}
	if reserved(extension) {
		return "tools.call(" + quoted(name) + ")"
	}
	return "tools." + extension + "." + tool
}

func reserved(name string) bool { return slices.Contains(own, name) }

func identifier(s string) bool {
	for i, c := range []byte(s) {
		if (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && c != '_' && (c < '0' || c > '9' || i == 0) {
			return false
		}
	}
	return s != ""
}

func quoted(s string) string {
	return `"` + printable.Line(strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(s)) + `"`
}

// fullName reads a name in any form that a caller may write: tools.github.create_pr, github.create_pr or github_create_pr.
func fullName(name string) string {
	name = strings.TrimPrefix(strings.TrimSpace(name), "tools.")
	if i := strings.IndexByte(name, '('); i >= 0 {
		name = name[:i]
	}
	return strings.ReplaceAll(name, ".", "_")
}
