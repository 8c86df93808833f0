package tools

import (
	"fmt"
	"slices"
	"strings"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/capability"
	"github.com/stilehost/stile/internal/jsonform"
	"github.com/stilehost/stile/internal/printable"
)

// Limits of what one binding of a manifest may call.
const (
	// MaxPatterns is how many patterns it has.
	MaxPatterns = 32
	// MaxCallees is how many extensions it may reach, those through others included, and MaxCalled how many of their tools.
	MaxCallees = 64
	MaxCalled  = 500
	// maxPattern is the longest name of a tool, in bytes.
	maxPattern = 64
)

// Calls are rights to call the tools of other extensions, which a manifest names. They are a [capability.ToolCaller]: the program that
// keeps the extensions opens them.
type Calls struct {
	// Patterns are full names of tools, in byte order. One "*" in each may stand for any characters.
	Patterns []string

	callees []capability.Callee
}

// examplePatterns is what problems of a manifest show.
const examplePatterns = `["github_*"]`

func parse(r *jsonform.Reader, n *jsonform.Node) capability.Grant { return ParseCalls(r, n) }

// ParseCalls reads the patterns of a manifest.
func ParseCalls(r *jsonform.Reader, n *jsonform.Node) Calls {
	var g Calls
	for _, item := range r.Items(n, MaxPatterns, examplePatterns) {
		pattern := r.Text(item, `"github_*"`)
		switch {
		case r.Err != nil:
		case len(pattern) > maxPattern:
			r.Fail(item, fmt.Sprintf("at most %d bytes", maxPattern), "%s has %d bytes", jsonform.Quote(pattern), len(pattern))
		case !isPattern(pattern):
			r.Fail(item, `the full name of a tool, EXTENSION_TOOL, in which one "*" may stand, like "github_*"`, "%s names no tools", jsonform.Quote(pattern))
		case slices.Contains(g.Patterns, pattern):
			r.Fail(item, "each pattern once", "%s is here twice", jsonform.Quote(pattern))
		}
		g.Patterns = append(g.Patterns, pattern)
		r.Next()
	}
	slices.Sort(g.Patterns)
	return g
}

// isPattern reports whether a text is a name of a-z, 0-9 and "_" with at most one "*".
func isPattern(s string) bool {
	return s != "" && strings.Count(s, "*") <= 1 && strings.Trim(s, "abcdefghijklmnopqrstuvwxyz0123456789_*") == ""
}

// fits reports whether a pattern admits a name. It admits the names of another pattern if it admits that pattern as a name, because
// no name has a "*".
func fits(pattern, name string) bool {
	before, after, wild := strings.Cut(pattern, "*")
	if !wild {
		return pattern == name
	}
	return len(name) >= len(before)+len(after) && strings.HasPrefix(name, before) && strings.HasSuffix(name, after)
}

// Names implements [capability.ToolCaller].
func (g Calls) Names(name string) bool {
	return slices.ContainsFunc(g.Patterns, func(p string) bool { return fits(p, name) })
}

// Unmatched implements [capability.ToolCaller].
func (g Calls) Unmatched(tools []string) (patterns []string) {
	for _, p := range g.Patterns {
		if !slices.ContainsFunc(tools, func(name string) bool { return fits(p, name) }) {
			patterns = append(patterns, p)
		}
	}
	return patterns
}

// Unnamed implements [capability.ToolCaller].
func (g Calls) Unnamed(name string) error {
	d := abi.Denial{Operation: "call " + printable.Short(name, maxPattern), Reason: "no pattern of the binding names this tool"}
	if len(g.Patterns) < MaxPatterns && len(name) <= maxPattern && isPattern(name) && !strings.Contains(name, "*") {
		more := append(slices.Clone(g.Patterns), name)
		slices.Sort(more)
		d.Wants = capability.Wanted{Grant: Calls{Patterns: more}}
	}
	return abi.Deny(d)
}

// Callees implements [capability.ToolCaller].
func (g Calls) Callees() []capability.Callee { return g.callees }

// WithCallees implements [capability.ToolCaller].
func (g Calls) WithCallees(callees []capability.Callee) capability.ToolCaller {
	g.callees = callees
	return g
}

// Kind implements [capability.Grant].
func (Calls) Kind() *capability.Kind { return Kind }

// Interface implements [capability.Grant].
func (Calls) Interface() string { return Interface }

// Document implements [capability.Grant].
func (g Calls) Document() any { return g.Patterns }

// Describe implements [capability.Grant].
func (g Calls) Describe() []string {
	return g.DescribeAs("call the tools", "call")
}

// DescribeAs is Describe of a grant that does something else with the tools: all says so of its patterns, such as "call the tools", and each of tools, such as "call".
func (g Calls) DescribeAs(all, each string) []string {
	if g.callees == nil {
		return []string{"may " + all + " " + list(g.Patterns) + " of other extensions"}
	}
	var lines, called []string
	for _, c := range g.callees {
		if len(c.Tools) > 0 {
			lines = append(lines, "may "+each+" "+list(c.Tools)+" of "+of(c))
		}
		if len(c.Inner) > 0 {
			lines = append(lines, "makes other callees call "+list(c.Inner)+" of "+of(c))
		}
		called = append(called, c.Tools...)
		before := len(lines)
		for _, grant := range c.All() {
			for _, line := range grant.Describe() {
				lines = append(lines, "makes "+of(c)+" act, which "+line)
			}
		}
		if len(lines) == before {
			lines = append(lines, "makes "+of(c)+" act, which may only compute")
		}
	}
	for _, p := range g.Unmatched(called) {
		lines = append(lines, "may "+each+" no tool that fits "+printable.Line(p)+", because there is none here")
	}
	return lines
}

func of(c capability.Callee) string { return printable.Line(c.Extension + " in " + c.Scope) }

func list(names []string) string { return printable.Line(strings.Join(names, ", ")) }

// Authority implements [capability.Grant].
func (g Calls) Authority() (lines []string) {
	if g.callees == nil {
		for _, p := range g.Patterns {
			lines = append(lines, printable.Line("tools "+p))
		}
		return lines
	}
	for _, c := range g.callees {
		for _, name := range c.Tools {
			lines = append(lines, printable.Line("tools "+name+" of "+of(c)))
		}
		for _, name := range c.Inner {
			lines = append(lines, printable.Line("tools "+name+" of "+of(c)+", through others"))
		}
		for _, grant := range c.All() {
			for _, line := range grant.Authority() {
				lines = append(lines, of(c)+": "+line)
			}
		}
	}
	return lines
}

// Covers implements [capability.Grant]. What patterns mean is covered by patterns that admit the names of all tools that the binding
// may call itself: who writes such patterns into a policy allows whatever those tools may do. It is covered by callees that may do
// everything that its callees may do.
func (g Calls) Covers(asked capability.Grant) bool {
	a, ok := asked.(Calls)
	switch {
	case !ok:
		return false
	case g.callees != nil:
		return a.callees != nil && !slices.ContainsFunc(a.callees, func(c capability.Callee) bool { return !g.covers(c) })
	case a.callees != nil:
		return !slices.ContainsFunc(a.callees, func(c capability.Callee) bool {
			return slices.ContainsFunc(c.Tools, func(name string) bool { return !g.Names(name) })
		})
	default:
		return !slices.ContainsFunc(a.Patterns, func(p string) bool { return !g.Names(p) })
	}
}

// covers reports whether a callee may do no more than the one of its name.
func (g Calls) covers(c capability.Callee) bool {
	i := slices.IndexFunc(g.callees, func(by capability.Callee) bool { return by.Scope == c.Scope && by.Extension == c.Extension })
	if i < 0 {
		return false
	}
	by := g.callees[i]
	reached := slices.Concat(by.Tools, by.Inner)
	return contains(by.Tools, c.Tools) && contains(reached, c.Inner) && capability.CoversAll(by.All(), c.All())
}

func contains(names, all []string) bool {
	return !slices.ContainsFunc(all, func(name string) bool { return !slices.Contains(names, name) })
}

// Size implements [capability.Sizer].
func (g Calls) Size() (rules, work int) {
	for _, c := range g.callees {
		r, w := capability.SizeOf(c.All())
		rules, work = rules+r, work+w
	}
	return rules, work
}

// Reach implements [capability.Reacher]: tools reach what their extensions reach.
func (g Calls) Reach() (changes, open bool) {
	if g.callees == nil {
		return true, true
	}
	for _, c := range g.callees {
		for _, grant := range c.Grants {
			moves, out := capability.Reaches(grant)
			changes, open = changes || moves, open || out
		}
	}
	return changes, open
}
