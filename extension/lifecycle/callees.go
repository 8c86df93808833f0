package lifecycle

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/capabilities/runs"
	"github.com/stilehost/stile/capabilities/tools"
	"github.com/stilehost/stile/capability"
	"github.com/stilehost/stile/extension"
	"github.com/stilehost/stile/internal/jsonform"
	"github.com/stilehost/stile/internal/printable"
	"github.com/stilehost/stile/internal/sqlite"
)

// What a release may call of other extensions is decided with the release: the patterns in its manifest are resolved to tools of extensions
// that are active at that time, and what those may do is kept beside the release. A call is compared with that.

const (
	// maxCallees is the largest record of what a release may call, in bytes.
	maxCallees = 64 << 10
	// maxNamed is how many tools a problem names.
	maxNamed = 20
	// maxUnmatched is how many patterns without a tool have a problem of their own, and maxNear for how many a similar name is looked for,
	// which takes time for each tool there is.
	maxUnmatched, maxNear = 16, 4
)

// resolved is what the bindings of a manifest to other tools mean.
type resolved struct {
	// bindings are all bindings of the manifest, with callees.
	bindings []extension.Binding
	// tools are the definitions of the tools that each binding may call, by their full names.
	tools map[string]map[string]abi.Definition
	// unmatched are problems of patterns that no tool fits, and problems are the others.
	unmatched, problems []extension.Problem
	open                map[string]bool // bindings with a problem: what else they would call is not known
	unfit               []unfitPattern  // says of which patterns the first of unmatched are
}

// unfitPattern is a pattern that no tool fits, with the grant that has it.
type unfitPattern struct {
	grant   capability.ToolCaller
	pattern string
}

// all are all problems.
func (r resolved) all() []extension.Problem { return slices.Concat(r.problems, r.unmatched) }

// patternsOf returns the rights of a binding to other tools by patterns.
func patternsOf(b extension.Binding) (capability.ToolCaller, bool) {
	g, ok := b.Grant.(capability.ToolCaller)
	return g, ok
}

func callsTools(bindings []extension.Binding) bool {
	return slices.ContainsFunc(bindings, func(b extension.Binding) bool { _, ok := patternsOf(b); return ok })
}

// resolveTools says what the patterns of a manifest mean in a scope: the tools that are active there or shared now, without those of the
// extension itself. text is the manifest as written, to give problems their places.
func (m *Manager) resolveTools(scope extension.Scope, manifest *extension.Manifest, text []byte) (r resolved) {
	r.bindings = slices.Clone(manifest.Bindings)
	if !callsTools(r.bindings) {
		return r
	}
	r.tools, r.open = map[string]map[string]abi.Definition{}, map[string]bool{}
	there := map[string]offer{}
	m.mu.RLock()
	for _, from := range []extension.Scope{scope, {Kind: extension.Shared}} {
		for name := range m.offers[from] {
			if o, ok := m.callable(scope, manifest.Name, name); ok {
				there[name] = o
			}
		}
	}
	m.mu.RUnlock()
	names := slices.Sorted(maps.Keys(there))
	places := sync.OnceValue(func() *extension.Places { return extension.PlacesIn(text) })
	size := 0
	for i, b := range r.bindings {
		g, ok := patternsOf(b)
		if !ok {
			continue
		}
		problem := func(pattern, fix, format string, args ...any) extension.Problem {
			r.open[b.Name] = true
			p := extension.Problem{File: extension.ManifestFile, Text: fmt.Sprintf("bindings.%s: %s", b.Name, fmt.Sprintf(format, args...)), Fix: fix}
			if p.Line, p.Column = placeOf(text, pattern); p.Line == 0 {
				p.Line, p.Column = places().OfBinding(b.Name)
			}
			return p
		}
		unmatched := g.Unmatched(names)
		for j, p := range unmatched {
			if len(r.unmatched) == maxUnmatched {
				r.unmatched = append(r.unmatched, problem(p, "patterns of tools that are there", "no tool in %s fits %s, nor %d patterns after it", visibleFrom(scope), jsonform.Quote(p), len(unmatched)-j-1))
			}
			if len(r.unmatched) > maxUnmatched {
				break // one says enough of the others, also of other bindings
			}
			near := ""
			if len(r.unmatched) < maxNear {
				near = jsonform.Nearest(strings.ReplaceAll(p, "*", ""), names)
			}
			r.unmatched = append(r.unmatched, problem(p, someOf(names, near), "no tool in %s fits %s", visibleFrom(scope), jsonform.Quote(p)))
			r.unfit = append(r.unfit, unfitPattern{g, p})
		}
		fit := slices.DeleteFunc(slices.Clone(names), func(name string) bool { return !g.Names(name) })
		if len(fit) > tools.MaxCalled {
			r.problems = append(r.problems, problem("", "narrower patterns", "its patterns fit %d tools; %d are allowed", len(fit), tools.MaxCalled))
			fit = nil
		}
		c, defined := collected{}, map[string]abi.Definition{}
		for _, name := range fit {
			o := there[name]
			if len(c) <= tools.MaxCallees { // of more, there is no need to know
				c.add(o.release, name)
			}
			defined[name] = o.tool
		}
		g = g.WithCallees(c.callees())
		if c.has(scope.String(), manifest.Name) {
			r.problems = append(r.problems, problem("", "patterns without the extensions that call this one", "these tools call %s in turn", manifest.Name))
		}
		if len(g.Callees()) > tools.MaxCallees {
			r.problems = append(r.problems, problem("", "narrower patterns", "these tools reach more than %d extensions", tools.MaxCallees))
		}
		r.bindings[i].Grant = g
		if _, starts := g.(runs.Starts); !starts { // its object has no methods of tools
			r.tools[b.Name] = defined
		}
		if size += len(calleesText(r.bindings[i : i+1])); size > maxCallees {
			r.problems = append(r.problems, problem("", "narrower patterns", "what these tools may do takes more than %d KiB to write down", maxCallees>>10))
		}
	}
	return r
}

// sayWaiting has problems of patterns that no tool fits name a request with a tool that does, in a scope where the pattern would find it. An agent
// learns only of its own requests. A person learns of all, and of those of agents for their own scopes.
func (m *Manager) sayWaiting(ctx context.Context, r *resolved, scope extension.Scope, author string) error {
	if len(r.unfit) == 0 {
		return nil
	}
	const waiting = `SELECT tool.full_name, release.id, release.name, release.author, release.scope FROM tool JOIN release ON release.id = tool.release
		WHERE release.state = 'pending' AND CASE WHEN ?2 LIKE 'agent:%' THEN release.scope = ?1 AND release.author = ?2 ELSE release.scope IN (?1, 'shared') OR release.scope LIKE 'agent:%' END
		ORDER BY release.scope NOT IN (?1, 'shared'), release.id DESC LIMIT 1000`
	said := make([]bool, len(r.unfit))
	return m.db.Read(ctx, func(c *sqlite.Conn) error {
		for row, err := range c.Rows(ctx, waiting, scope.String(), author) {
			var tool, name, by, at string
			var id int64
			if err == nil {
				err = row.Scan(&tool, &id, &name, &by, &at)
			}
			if err != nil {
				return err
			}
			of := ""
			if by != author && by != "" {
				of = ", which " + printable.Line(printable.Short(by, 80)) + " wrote,"
			}
			then := ""
			if at != scope.String() && at != string(extension.Shared) {
				wider := extension.User
				if scope.Kind == extension.Shared {
					wider = extension.Shared
				}
				then = fmt.Sprintf(", then stile ext promote %s --scope %s --to %s", name, at, wider)
			}
			for i, u := range r.unfit {
				if said[i] || slices.Contains(u.grant.Unmatched([]string{tool}), u.pattern) {
					continue
				}
				said[i] = true
				p := &r.unmatched[i]
				p.Text += fmt.Sprintf(" yet, because a version of %s%s waits for approval as request %d: stile ext approve %[3]d%[4]s", name, of, id, then)
				p.Fix = ""
			}
		}
		return nil
	})
}

// placeOf finds the place of a pattern in a manifest.
func placeOf(text []byte, pattern string) (line, column int) {
	before, _, ok := strings.Cut(string(text), `"`+pattern+`"`)
	if pattern == "" || !ok {
		return 0, 0
	}
	return strings.Count(before, "\n") + 1, len([]rune(before[strings.LastIndexByte(before, '\n')+1:])) + 1
}

// visibleFrom says in which scopes an extension of a scope finds tools.
func visibleFrom(scope extension.Scope) string {
	if scope.Kind == extension.Shared {
		return scope.String()
	}
	return scope.String() + " or shared"
}

// someOf names tools that exist. near is the first, if any.
func someOf(names []string, near string) string {
	if len(names) == 0 {
		return "no binding to other tools: there are none yet"
	}
	some := names[:min(len(names), maxNamed)]
	text := "one of " + strings.Join(some, ", ")
	if len(names) > len(some) {
		text = fmt.Sprintf("one of the %d tools there, such as %s", len(names), strings.Join(some, ", "))
	}
	if near != "" && len(names) > 1 {
		text = near + ", or " + text
	}
	return text
}

// callable returns a tool that an extension of a scope can be allowed to call, by its full name: one of its scope, or a shared one.
// As for a viewer, a tool hides one of its name in the wider scope, also if it is in quarantine or of the extension itself. The caller
// holds m.mu.
func (m *Manager) callable(scope extension.Scope, caller, name string) (offer, bool) {
	for _, from := range []extension.Scope{scope, {Kind: extension.Shared}} {
		if o, ok := m.offers[from][name]; ok {
			return o, o.release.manifest.Name != caller && o.release.quarantined() == ""
		}
	}
	return offer{}, false
}

// collected are callees by scope and name.
type collected map[[2]string]*capability.Callee

func (c collected) has(scope, name string) bool { return c[[2]string{scope, name}] != nil }

func (c collected) of(scope, name string) *capability.Callee {
	key := [2]string{scope, name}
	if c[key] == nil {
		c[key] = &capability.Callee{Scope: scope, Extension: name, Grants: map[string]capability.Grant{}}
	}
	return c[key]
}

// add adds tools of a release that are called directly, with everything that the release reaches: what was approved for it.
func (c collected) add(a *active, names ...string) {
	callee := c.of(a.scope.String(), a.manifest.Name)
	known := len(callee.Tools) > 0
	callee.Tools = append(callee.Tools, names...)
	if known {
		return // with the first of its tools came the rest
	}
	for _, b := range a.manifest.Bindings {
		g, ok := patternsOf(b)
		if !ok {
			if !b.Harmless() {
				may(callee, b.Name, b.Grant)
			}
			continue
		}
		if s, ok := g.(runs.Starts); ok { // what it may do with its own run, and that what it starts outlives it
			may(callee, b.Name, s.Named())
		}
		for _, inner := range g.Callees() {
			of := c.of(inner.Scope, inner.Extension)
			of.Inner = append(append(of.Inner, inner.Tools...), inner.Inner...)
			for _, name := range slices.Sorted(maps.Keys(inner.Grants)) {
				may(of, name, inner.Grants[name])
			}
		}
	}
}

// may adds a grant to what a callee may do, unless it may do that anyway. A callee can be reached with what it may do now, and with what it
// might do when one that calls it was approved.
func may(c *capability.Callee, name string, g capability.Grant) {
	free := name
	for n := 2; c.Grants[free] != nil; n++ {
		if capability.CoversAll([]capability.Grant{c.Grants[free]}, []capability.Grant{g}) {
			return
		}
		free = fmt.Sprintf("%.50s_%d", name, n)
	}
	c.Grants[free] = g
}

// callees returns them in order.
func (c collected) callees() []capability.Callee {
	all := make([]capability.Callee, 0, len(c))
	for _, callee := range c {
		tidy := func(names []string) []string { slices.Sort(names); return slices.Compact(names) }
		callee.Tools, callee.Inner = tidy(callee.Tools), tidy(callee.Inner)
		all = append(all, *callee)
	}
	slices.SortFunc(all, capability.Callee.Compare)
	return all
}

// calleeRecord is how a callee is stored.
type calleeRecord struct {
	Scope     string                     `json:"scope"`
	Extension string                     `json:"extension"`
	Tools     []string                   `json:"tools,omitempty"`
	Inner     []string                   `json:"inner,omitempty"`
	May       map[string]json.RawMessage `json:"may,omitempty"` // bindings of a manifest
}

// calleesText returns what bindings may call as it is stored. It is empty if they call no tools.
func calleesText(bindings []extension.Binding) string {
	all := map[string][]calleeRecord{}
	for _, b := range bindings {
		g, ok := patternsOf(b)
		if !ok {
			continue
		}
		records := []calleeRecord{}
		for _, c := range g.Callees() {
			r := calleeRecord{Scope: c.Scope, Extension: c.Extension, Tools: c.Tools, Inner: c.Inner, May: map[string]json.RawMessage{}}
			for name, grant := range c.Grants {
				r.May[name], _ = extension.Binding{Grant: grant}.MarshalJSON() // it never fails
			}
			records = append(records, r)
		}
		all[b.Name] = records
	}
	if len(all) == 0 {
		return ""
	}
	return string(capability.JSON(all))
}

// withCallees returns the bindings with what a record says about their callees. A binding that the record does not have may call nothing.
func withCallees(kinds capability.Set, bindings []extension.Binding, text string) ([]extension.Binding, error) {
	all := map[string][]calleeRecord{}
	if text != "" {
		if err := json.Unmarshal([]byte(text), &all); err != nil {
			return nil, err
		}
	}
	bindings = slices.Clone(bindings)
	for i, b := range bindings {
		g, ok := patternsOf(b)
		if !ok {
			continue
		}
		callees := make([]capability.Callee, 0, len(all[b.Name]))
		for _, record := range all[b.Name] {
			c := capability.Callee{Scope: record.Scope, Extension: record.Extension, Tools: record.Tools, Inner: record.Inner, Grants: map[string]capability.Grant{}}
			for name, may := range record.May { // one by one: they can be more than a manifest has
				r := jsonform.New("callees", capability.JSON(map[string]json.RawMessage{name: may}))
				read := extension.ReadBindings(r, kinds, nil, r.Parse())
				if r.Err != nil {
					return nil, errors.New(r.Err.In("callees"))
				}
				c.Grants[name] = read[0].Grant
			}
			callees = append(callees, c)
		}
		bindings[i].Grant = g.WithCallees(callees)
	}
	return bindings, nil
}

// bindingsOf returns the bindings of a release, with what it may call of other extensions.
func bindingsOf(ctx context.Context, c *sqlite.Conn, kinds capability.Set, release int64, manifest *extension.Manifest) ([]extension.Binding, error) {
	if !callsTools(manifest.Bindings) {
		return manifest.Bindings, nil
	}
	text, err := calleesIn(ctx, c, release)
	if err != nil {
		return nil, err
	}
	bindings, err := withCallees(kinds, manifest.Bindings, text)
	if err != nil {
		return nil, &DamagedError{fmt.Sprintf("request %d", release), cut(err.Error())}
	}
	return bindings, nil
}

// calleesIn reads what a release may call. It is empty if there is nothing.
func calleesIn(ctx context.Context, c *sqlite.Conn, release int64) (text string, err error) {
	err = c.Row(ctx, "SELECT callees FROM callee WHERE release = ?", release).Scan(&text)
	if errors.Is(err, sql.ErrNoRows) {
		err = nil
	}
	return text, err
}

// keptCallees is how many replaced releases of an extension keep what they may call, for a rollback.
const keptCallees = 20

// putCallees stores what a release may call.
func putCallees(ctx context.Context, c *sqlite.Conn, release int64, text string) error {
	if text == "" {
		return nil
	}
	_, err := c.Exec(ctx, "INSERT INTO callee VALUES (?, ?)", release, text)
	return err
}

// dropCallees forgets what releases might call that were replaced long ago.
func dropCallees(ctx context.Context, c *sqlite.Conn, scope, name string) error {
	const old = `DELETE FROM callee WHERE release IN (SELECT id FROM release INDEXED BY release_ended
		WHERE scope = ? AND name = ? AND state IN ('superseded', 'revoked') ORDER BY id DESC LIMIT -1 OFFSET ?)`
	_, err := c.Exec(ctx, old, scope, name, keptCallees)
	return err
}

// toolTypes are the types of bindings to other tools, in TypeScript.
func (r resolved) toolTypes() map[string]string {
	types := make(map[string]string, len(r.tools))
	for binding, defined := range r.tools {
		all := make([]tools.Typed, 0, len(defined))
		for _, name := range slices.Sorted(maps.Keys(defined)) {
			d := defined[name]
			t := tools.Typed{Description: described(name, d.Description, d.InputSchema)}
			if d.OutputSchema != nil {
				t.OutputSchema = *d.OutputSchema
			}
			all = append(all, t)
		}
		types[binding] = tools.Types(all)
	}
	return types
}

// ToolTypes returns the types in TypeScript of a manifest's bindings to other tools, by their names, as its extension would find them in a
// scope. text is the manifest as written, to give problems their places. An error is an *[extension.ProblemsError] about patterns.
func (m *Manager) ToolTypes(ctx context.Context, scope extension.Scope, manifest *extension.Manifest, text []byte) (map[string]string, error) {
	if err := m.Refresh(ctx); err != nil {
		return nil, err
	}
	r := m.resolveTools(scope, manifest, text)
	if err := m.sayWaiting(ctx, &r, scope, ""); err != nil {
		return nil, err
	}
	if problems := r.all(); len(problems) > 0 {
		return nil, &extension.ProblemsError{Stage: extension.StageValidate, Problems: problems}
	}
	return r.toolTypes(), nil
}
