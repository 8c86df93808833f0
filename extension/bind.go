package extension

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/capability"
	"github.com/stilehost/stile/internal/jsonform"
	"github.com/stilehost/stile/internal/lazyregexp"
	"github.com/stilehost/stile/internal/sha256hex"
)

// Defaults are the bindings that commands for people add by default, each under the name of its kind: of Stile's own kinds, console,
// clock and random. The host library adds none.
func Defaults(kinds capability.Set) []Binding {
	var all []Binding
	for _, k := range kinds.All() {
		if k.Default != nil {
			all = append(all, Binding{k.Name, k.Default})
		}
	}
	sortBindings(all)
	return all
}

// Merge joins lists of bindings, in byte order of their names. If several lists have the same name, the first list wins.
func Merge(lists ...[]Binding) []Binding {
	var all []Binding
	for _, list := range lists {
		for _, b := range list {
			if find(all, b.Name) < 0 {
				all = append(all, b)
			}
		}
	}
	sortBindings(all)
	return all
}

// Known returns the WIT interface of each binding by name, as a toolchain takes them.
func Known(bindings []Binding) map[string]string {
	known := make(map[string]string, len(bindings))
	for _, b := range bindings {
		known[b.Name] = b.Grant.Interface()
	}
	return known
}

// Own returns the manifest's bindings with the extension's own stores in a scope: the workspace of its name, and for each kv binding
// a separate bucket, which no binding of a command line can name. The stores of two scopes are never the same, and none is one that a person
// named.
func (m *Manifest) Own(scope Scope) []Binding {
	return Own(m.Name, scope, m.Bindings)
}

// Own is [Manifest.Own] for the bindings of something with a name of its own, that is no extension.
func Own(name string, scope Scope, bindings []Binding) []Binding {
	return own(scope.store()+name, bindings)
}

// OwnRun is [Manifest.Own] for a manifest that a person runs from a file, which nobody approved. Its stores depend on the file, given as an
// absolute path, and on the manifest's name: they are "run.FOLDER-DIGEST.NAME". So no name that an author chooses leads to the stores of
// another manifest, of a stored extension or of the person.
func (m *Manifest) OwnRun(file string) []Binding {
	folder := strings.Trim(notInPlaces.ReplaceAllString(strings.ToLower(filepath.Base(filepath.Dir(file))), "-"), "-")
	folder = strings.TrimLeft(folder[:min(len(folder), 32)]+"-", "-")
	return own("run."+folder+sha256hex.Of([]byte(file))[:16]+"."+m.Name, m.Bindings)
}

// notInPlaces matches what a "-" replaces in the name of a folder.
var notInPlaces = lazyregexp.New(`[^a-z0-9]+`)

func own(store string, bindings []Binding) []Binding {
	own := slices.Clone(bindings)
	for i, b := range own {
		if g, ok := b.Grant.(capability.Owner); ok {
			own[i].Grant = g.Own(store, b.Name)
		}
	}
	return own
}

// ToolsError reports that the tools in a manifest and those that the code exports differ.
type ToolsError struct {
	// Missing are in the manifest but not exported, and Extra are exported but not in the manifest. Both are in byte order.
	Missing, Extra []string
}

// Error implements error.
func (e *ToolsError) Error() string {
	var b strings.Builder
	b.WriteString("the manifest and the code have different tools")
	for _, name := range e.Missing {
		fmt.Fprintf(&b, "; %s is in the manifest but not in the code", jsonform.Quote(name))
	}
	for _, name := range e.Extra {
		fmt.Fprintf(&b, "; %s is in the code but not in the manifest", jsonform.Quote(name))
	}
	return b.String()
}

// CheckTools compares the names of the tools that the code exports with those in the manifest. A difference is a *[ToolsError].
func (m *Manifest) CheckTools(exported []string) error {
	exported = slices.Sorted(slices.Values(exported))
	e := &ToolsError{Missing: without(m.Tools, exported), Extra: without(exported, m.Tools)}
	if len(e.Missing)+len(e.Extra) == 0 {
		return nil
	}
	return e
}

func without(names, others []string) []string {
	return slices.DeleteFunc(slices.Clone(names), func(n string) bool { return slices.Contains(others, n) })
}

// State turns bindings into capabilities, at a site.
type State struct{ *capability.Site }

// NewState returns a state in dir, which must exist and be writable by its owner only. log receives what guests log; it must be safe for
// concurrent use. private are folders that, like dir, no capability may reach.
func NewState(dir string, log func(level capability.Level, message string), private ...string) *State {
	return &State{capability.NewSite(dir, log, private...)}
}

// Env makes the capabilities of a call. ctx bounds the opening of files only. A grant whose capability is made by the
// program that embeds the host fails with an *[UnboundError].
func (s *State) Env(ctx context.Context, bindings []Binding) (map[string]abi.Capability, error) {
	env := make(map[string]abi.Capability, len(bindings))
	for _, b := range bindings {
		err := capability.ErrUnbound
		if g, ok := b.Grant.(capability.Opener); ok {
			env[b.Name], err = g.Open(ctx, s.Site)
		}
		if errors.Is(err, capability.ErrUnbound) {
			err = &UnboundError{b.Name, b.Grant.Interface()}
		}
		if err != nil {
			delete(env, b.Name)
			return nil, errors.Join(fmt.Errorf("bind %s: %w", b.Name, err), s.Release(env))
		}
	}
	return env, nil
}

// Last is Env for bindings whose capabilities last from call to call, where their kind can do that.
func (s *State) Last(ctx context.Context, bindings []Binding) (map[string]abi.Capability, error) {
	lasting := slices.Clone(bindings)
	for i, b := range lasting {
		if g, ok := b.Grant.(capability.Laster); ok {
			lasting[i].Grant = opener{g}
		}
	}
	return s.Env(ctx, lasting)
}

// opener opens what lasts.
type opener struct{ capability.Laster }

// Open implements [capability.Opener].
func (o opener) Open(ctx context.Context, s *capability.Site) (abi.Capability, error) {
	return o.Last(ctx, s)
}

// UnboundError is a binding of an interface that only a program which embeds the host can provide.
type UnboundError struct{ Binding, Interface string }

// Error implements error.
func (e *UnboundError) Error() string {
	return fmt.Sprintf("%s is a capability of the program that embeds the host; this one has none of that name", e.Interface)
}
