package lifecycle

import (
	"context"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/dustin/go-humanize/english"

	"github.com/stilehost/stile/internal/printable"
	"github.com/stilehost/stile/toolchain/npm"
)

// CodePackages resolves npm packages for code that is not an extension. It follows the policy that extensions have: a package needs a person
// unless the policy names it, or the manifest of an active extension that the viewer can call names it. It is safe for concurrent use.
type CodePackages struct {
	manager *Manager
	viewer  Viewer
	ask     func(ctx context.Context, question string, done func(approved bool, err error)) error
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
	return &CodePackages{m, v, ask}
}

// allowedPackages are what persons have allowed the code of agents, by viewer, name, version and integrity, until the process ends.
type allowedPackages struct {
	mu  sync.Mutex
	all map[string]bool
}

// personTime is how long code waits for a person to allow packages.
const personTime = 10 * time.Minute

const maxAllowed = 10_000 // entries, after which the set begins anew

func (a *allowedPackages) has(key string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.all[key]
}

func (a *allowedPackages) add(key string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.all == nil || len(a.all) >= maxAllowed {
		a.all = map[string]bool{}
	}
	a.all[key] = true
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

func (r *resolutions) resolve(ctx context.Context, client *npm.Client, now time.Time, imports []string) (*npm.Resolution, error) {
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
	found, err := client.Resolve(ctx, npm.Request{Imports: imports, Recall: true})
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
	found, err := m.codePackages.resolve(ctx, m.options.Packages, m.options.Now(), imports)
	if err != nil {
		return nil, nil, err
	}
	direct := map[string]npm.Package{}
	var names []string
	for _, d := range found.Packages {
		if d.Direct {
			direct[d.Name] = d
			names = append(names, d.Name)
		}
	}
	key := func(name string) string {
		d := direct[name]
		return strings.Join([]string{p.viewer.String(), name, d.Version, d.Integrity}, "\n")
	}
	unnamed := slices.DeleteFunc(m.Policy().Unnamed(names, m.declaredFor(p.viewer)), func(name string) bool { return m.codeAllows.has(key(name)) })
	if len(unnamed) == 0 {
		return found.FS, found.Lock, nil
	}
	if p.ask == nil {
		return nil, nil, &PackagesError{unnamed, `nobody has approved it: an operator can name it in policy.json, "packages"`}
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
		m.codeAllows.add(key(name))
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
