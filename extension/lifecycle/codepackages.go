package lifecycle

import (
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/dustin/go-humanize/english"

	"github.com/stilehost/stile/extension"
	"github.com/stilehost/stile/extension/policy"
	"github.com/stilehost/stile/internal/printable"
	"github.com/stilehost/stile/toolchain/npm"
)

// CodePackages resolves npm packages for code that is not an extension. It follows the policy that extensions have: a package needs a person
// unless the policy names it, or the manifest of an active extension that the viewer can call names it. It is safe for concurrent use.
type CodePackages struct {
	// Progress receives how far npm is, as [npm.Request] says. Set it before Resolve is called. Default: nobody is told.
	Progress func(npm.Progress)

	manager *Manager
	viewer  Viewer
	ask     func(ctx context.Context, question string, done func(approved bool, err error)) error

	mu       sync.Mutex
	resolved []npm.Package // what the code imports itself
}

// PackagesError reports packages that nobody has allowed.
type PackagesError struct {
	// Names are the packages.
	Names  []string
	Reason string
}

// Error implements error.
func (e *PackagesError) Error() string {
	return fmt.Sprintf("%s cannot be imported: %s", strings.Join(e.Names, ", "), e.Reason)
}

// CodePackages returns the packages for a viewer's code. ask asks a person, as [Manager.Ask] does. If it is nil, no person is asked.
func (m *Manager) CodePackages(v Viewer, ask func(ctx context.Context, question string, done func(approved bool, err error)) error) *CodePackages {
	return &CodePackages{manager: m, viewer: v, ask: ask}
}

// Within returns a context for a run of code. It ends when the code may no longer have the packages that it has resolved: because of a new
// policy, or because no active extension declares them any more. The cause is a *[PackagesError]. Call done after the run.
func (p *CodePackages) Within(ctx context.Context) (run context.Context, done func()) {
	run, cancel := context.WithCancelCause(ctx)
	runs := &p.manager.codeRuns
	runs.mu.Lock()
	defer runs.mu.Unlock()
	if runs.all == nil {
		runs.all = map[*CodePackages]context.CancelCauseFunc{}
	}
	runs.all[p] = cancel
	return run, func() {
		runs.mu.Lock()
		delete(runs.all, p)
		runs.mu.Unlock()
		cancel(nil)
	}
}

// codeRuns are the runs of code under way.
type codeRuns struct {
	mu  sync.Mutex
	all map[*CodePackages]context.CancelCauseFunc
}

// endCodeRuns ends runs of code that may no longer have their packages.
func (m *Manager) endCodeRuns() {
	m.codeRuns.mu.Lock()
	defer m.codeRuns.mu.Unlock()
	for p, cancel := range m.codeRuns.all {
		p.mu.Lock()
		packages := p.resolved
		p.mu.Unlock()
		if gone := p.unnamed(m.policy.Load(), packages); len(gone) > 0 {
			cancel(&PackagesError{gone, "it was allowed when the code began, and is not any more"})
		}
	}
}

// unnamed are the packages that neither the policy, nor an extension, nor a person allows.
func (p *CodePackages) unnamed(by *policy.Policy, packages []npm.Package) []string {
	if len(packages) == 0 {
		return nil
	}
	keys := map[string]string{}
	var names []string
	for _, d := range packages {
		keys[d.Name] = p.key(d)
		names = append(names, d.Name)
	}
	return slices.DeleteFunc(by.Unnamed(names, p.manager.declaredFor(p.viewer)), func(name string) bool { return p.manager.codeAllows.has(keys[name]) })
}

func (p *CodePackages) key(d npm.Package) string {
	return strings.Join([]string{p.viewer.String(), d.Name, d.Version, d.Integrity}, "\n")
}

// Count counts a build of packages for code towards the limit of builds in the agent's scope, or in that of a user without an agent. The error
// is a *[BudgetError] if there were too many.
func (p *CodePackages) Count(ctx context.Context) error {
	scope := extension.Scope{Kind: extension.Agent, Owner: p.viewer.Agent}
	if p.viewer.Agent == "" {
		scope = extension.Scope{Kind: extension.User, Owner: p.viewer.User}
	}
	_, err := p.manager.count(ctx, scope)
	return err
}

// allowedPackages are what persons have allowed the code of agents, by viewer, name, version and integrity, until the policy changes or the
// process ends.
type allowedPackages struct {
	mu      sync.Mutex
	all     map[string]bool
	cleared int
}

// personTime is how long code waits for a person to allow packages.
const personTime = 10 * time.Minute

const maxAllowed = 10_000 // entries, after which the set begins anew

func (a *allowedPackages) has(key string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.all[key]
}

// round counts how often the set was cleared.
func (a *allowedPackages) round() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.cleared
}

// add adds an entry, unless the set was cleared since the round.
func (a *allowedPackages) add(round int, key string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.cleared != round {
		return false
	}
	if a.all == nil || len(a.all) >= maxAllowed {
		a.all = map[string]bool{}
	}
	a.all[key] = true
	return true
}

func (a *allowedPackages) clear() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.all, a.cleared = nil, a.cleared+1
}

// resolutions are what code has imported lately, so that code which imports the same again waits for nothing.
type resolutions struct {
	mu     sync.Mutex
	recent []resolution // the newest is the last
}

type resolution struct {
	key   string
	until time.Time
	found *npm.Resolution
}

const (
	maxResolutions  = 8
	resolutionsLast = time.Hour
)

func (r *resolutions) resolve(ctx context.Context, client *npm.Client, now time.Time, imports []string, progress func(npm.Progress)) (*npm.Resolution, error) {
	key := strings.Join(slices.Sorted(slices.Values(imports)), "\n")
	r.mu.Lock()
	r.recent = slices.DeleteFunc(r.recent, func(one resolution) bool { return now.After(one.until) })
	i := slices.IndexFunc(r.recent, func(one resolution) bool { return one.key == key })
	if i >= 0 {
		found := r.recent[i].found
		r.mu.Unlock()
		return found, nil
	}
	r.mu.Unlock()
	found, err := client.Resolve(ctx, npm.Request{Imports: imports, Recall: true, Progress: progress})
	if err != nil {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.recent = append(r.recent, resolution{key, now.Add(resolutionsLast), found})
	r.recent = r.recent[max(0, len(r.recent)-maxResolutions):]
	return found, nil
}

// Resolve returns the packages. The error is a *[PackagesError] if a person is needed and has not allowed them.
func (p *CodePackages) Resolve(ctx context.Context, imports []string) (packages fs.FS, lock []byte, err error) {
	m := p.manager
	if m.options.Packages == nil {
		return nil, nil, &PackagesError{imports, "there are no npm packages here"}
	}
	found, err := m.codePackages.resolve(ctx, m.options.Packages, m.options.Now(), imports, p.Progress)
	if err != nil {
		return nil, nil, err
	}
	direct := map[string]npm.Package{}
	for _, d := range found.Packages {
		if d.Direct {
			direct[d.Name] = d
		}
	}
	defer func() {
		if err == nil { // from now on, the run ends when they are withdrawn
			p.mu.Lock()
			p.resolved = append(p.resolved, slices.Collect(maps.Values(direct))...)
			p.mu.Unlock()
			m.endCodeRuns()
		}
	}()
	now := m.Policy() // asked before the answer of a person counts, so that none outlasts a policy
	round := m.codeAllows.round()
	unnamed := p.unnamed(now, slices.Collect(maps.Values(direct)))
	if len(unnamed) == 0 {
		return found.FS, found.Lock, nil
	}
	if p.ask == nil {
		line, err := json.Marshal(unnamed)
		if err != nil {
			return nil, nil, err
		}
		return nil, nil, &PackagesError{unnamed, fmt.Sprintf(`not approved, and there is no person to ask; in policy.json, "packages": %s would allow it`, line)}
	}
	var question strings.Builder
	fmt.Fprintf(&question, "May code of %s import %s?", p.viewer, english.Plural(len(unnamed), "npm package", ""))
	for _, name := range unnamed {
		d := direct[name]
		fmt.Fprintf(&question, "\n%s %s, %s, %s, %s", printable.Line(name), printable.Line(d.Version), printable.Line(d.LicenseText()), printable.Size(d.Size), d.Integrity)
		for _, w := range d.Warnings {
			question.WriteString("\n  " + printable.Line(w))
		}
	}
	if more := len(found.Packages) - len(direct); more > 0 {
		fmt.Fprintf(&question, "\nand %s that they depend on", english.Plural(more, "package", ""))
	}
	ctx, cancel := context.WithTimeoutCause(ctx, personTime, &PackagesError{unnamed, fmt.Sprintf("no person has answered within %s", personTime)})
	defer cancel()
	type answer struct {
		approved bool
		err      error
	}
	answered := make(chan answer, 1)
	if err := p.ask(ctx, question.String(), func(approved bool, err error) { answered <- answer{approved, err} }); err != nil {
		return nil, nil, &PackagesError{unnamed, err.Error()}
	}
	a := <-answered // ask answers when ctx ends, too
	switch {
	case a.err != nil:
		return nil, nil, a.err
	case !a.approved:
		return nil, nil, &PackagesError{unnamed, "a person said no"}
	}
	for _, name := range unnamed {
		if !m.codeAllows.add(round, p.key(direct[name])) {
			return nil, nil, &PackagesError{unnamed, "the operator's policy has changed while a person was asked; run the code again"}
		}
	}
	return found.FS, found.Lock, nil
}

// declaredFor returns the names of the packages in the manifests of active extensions that a viewer can call. A person, or the policy, has
// approved those manifests.
func (m *Manager) declaredFor(v Viewer) []string {
	m.mu.RLock()
	defer m.mu.RUnlock()
	var names []string
	scopes := v.scopes()
	for _, a := range m.releases {
		if slices.Contains(scopes, a.scope) {
			names = slices.AppendSeq(names, maps.Keys(a.manifest.Dependencies))
		}
	}
	return names
}
