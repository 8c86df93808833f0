package extension

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/capabilities/blob"
	"github.com/stilehost/stile/capabilities/clock"
	"github.com/stilehost/stile/capabilities/console"
	"github.com/stilehost/stile/capabilities/http"
	"github.com/stilehost/stile/capabilities/kv"
	"github.com/stilehost/stile/capabilities/random"
	"github.com/stilehost/stile/capabilities/workspace"
	"github.com/stilehost/stile/host"
	"github.com/stilehost/stile/internal/jsonform"
)

// Defaults are the bindings that commands for people add unasked, each under the name of its kind: console, clock and
// random. The host library adds none.
func Defaults() []Binding {
	return []Binding{{"clock", Clock{}}, {"console", Console{}}, {"random", Random{}}}
}

// Merge joins lists of bindings, in byte order of their names. Where a name is in several lists, the first list wins.
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

// Known gives the WIT interface of each binding by name, as a toolchain is told of them.
func Known(bindings []Binding) map[string]string {
	known := make(map[string]string, len(bindings))
	for _, b := range bindings {
		known[b.Name] = b.Grant.Interface()
	}
	return known
}

// Own returns the manifest's bindings with the stores that are the extension's own in a scope: the workspace of its name, and
// for each kv binding a bucket of its own, which no binding of a command line can name. The stores of two scopes are never
// the same, but for those of [Shared] and of the [Local] user, which have the plain name.
func (m *Manifest) Own(scope Scope) []Binding {
	own, store := slices.Clone(m.Bindings), scope.store()+m.Name
	for i, b := range own {
		switch g := b.Grant.(type) {
		case Workspace:
			g.Store = store
			own[i].Grant = g
		case KV:
			own[i].Grant = KV{Store: store + "/" + b.Name}
		}
	}
	return own
}

// ToolsError says that the tools a manifest names and those the code exports are not the same set.
type ToolsError struct {
	// Missing are named by the manifest and not exported; Extra the other way round. Both are in byte order.
	Missing, Extra []string
}

// Error implements error.
func (e *ToolsError) Error() string {
	var b strings.Builder
	b.WriteString("the tools of the manifest and of the code differ")
	for _, name := range e.Missing {
		fmt.Fprintf(&b, "; %s is in the manifest and not in the code", jsonform.Quote(name))
	}
	for _, name := range e.Extra {
		fmt.Fprintf(&b, "; %s is in the code and not in the manifest", jsonform.Quote(name))
	}
	return b.String()
}

// CheckTools compares the names of the tools that the code exports with the manifest's. A difference is a *[ToolsError].
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

// The files of a [State] in its folder.
const (
	KVFile        = "kv.db"
	WorkspaceFile = "workspace.db"
)

// State turns bindings into capabilities and keeps what durable ones store in one folder. A file is opened when the first
// binding needs it. It is safe for concurrent use; whoever made it closes it, after the calls that use its capabilities.
type State struct {
	// HTTP is what all http bindings have in common beyond their rules: credentials, listeners, limits. It is set before
	// the first Env.
	HTTP    http.Options
	dir     string
	private []string
	log     func(console.Level, string)

	mu         sync.Mutex
	hosts      Hosts
	held       map[abi.Capability]func() error // what lets go of a capability that holds more than memory
	closers    []func() error                  // of the files
	kv         *kv.Store
	workspaces *workspace.Store
}

// NewState returns a state in dir, which must exist and be writable by its owner only. log receives what console bindings
// log; it must be safe for concurrent use. private are folders that, like dir, no [Dir] may be, hold or lie in.
func NewState(dir string, log func(level console.Level, message string), private ...string) *State {
	return &State{dir: dir, log: log, private: append([]string{dir}, private...), held: map[abi.Capability]func() error{}}
}

// SetHosts gives hosts addresses, in place of those it gave before: in what Env makes from now on, rules that name such a host exactly
// may dial its addresses, public or not.
func (s *State) SetHosts(h Hosts) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hosts = h
}

// Env makes the capabilities of a call. ctx bounds the opening of files only. A [Custom] grant fails: its capability is
// made by the program that embeds the host.
func (s *State) Env(ctx context.Context, bindings []Binding) (host.Env, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	env := make(host.Env, len(bindings))
	for _, b := range bindings {
		var err error
		switch g := b.Grant.(type) {
		case HTTP:
			env[b.Name], err = s.http(g)
		case Workspace:
			env[b.Name], err = s.workspace(ctx, g)
		case Dir:
			env[b.Name], err = s.directory(g)
		case KV:
			env[b.Name], err = s.bucket(ctx, g)
		case Clock:
			env[b.Name] = clock.System()
		case Random:
			env[b.Name] = random.System()
		case Console:
			env[b.Name] = console.To(s.log)
		case Blob:
			env[b.Name] = blob.NewStore(blob.StoreOptions{})
		default:
			err = &UnboundError{b.Name, b.Grant.Interface()}
		}
		if err != nil {
			delete(env, b.Name)
			return nil, errors.Join(fmt.Errorf("bind %s: %w", b.Name, err), s.release(env))
		}
	}
	return env, nil
}

// Release lets go of what an env that Env made holds beside memory: connections, and directories that are open. Calls that still use
// it fail. Close does the same for every env.
func (s *State) Release(env host.Env) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.release(env)
}

func (s *State) release(env host.Env) error {
	var errs []error
	for _, capability := range env {
		switch capability.(type) {
		case *http.Grant, *workspace.Directory: // others may be no keys of a map
			if letGo := s.held[capability]; letGo != nil {
				errs = append(errs, letGo())
				delete(s.held, capability)
			}
		}
	}
	return errors.Join(errs...)
}

// UnboundError is a binding of an interface that only a program which embeds the host can provide.
type UnboundError struct{ Binding, Interface string }

// Error implements error.
func (e *UnboundError) Error() string {
	return fmt.Sprintf("%s is a capability of the program that embeds the host; this one has none of that name", e.Interface)
}

func (s *State) http(g HTTP) (*http.Grant, error) {
	options := s.HTTP
	options.Resolver = s.hosts.resolver(options.Resolver)
	options.Rules, options.Within = s.hosts.allow(g.Rules), slices.Clone(options.Within)
	for _, set := range g.Within {
		options.Within = append(options.Within, s.hosts.allow(set))
	}
	grant, err := http.New(options)
	if err != nil {
		return nil, err
	}
	s.held[grant] = func() error { grant.CloseIdleConnections(); return nil }
	return grant, nil
}

func (s *State) workspace(ctx context.Context, g Workspace) (*workspace.Directory, error) {
	if s.workspaces == nil {
		store, err := workspace.Open(ctx, filepath.Join(s.dir, WorkspaceFile), workspace.Options{})
		if err != nil {
			return nil, err
		}
		s.workspaces = store
		s.closers = append(s.closers, store.Close)
	}
	d, err := s.workspaces.Workspace(g.Store).Sub(g.Path)
	if err == nil && g.Access != ReadWrite {
		d = d.AsReadOnly()
	}
	return d, err
}

func (s *State) directory(g Dir) (*workspace.Directory, error) {
	disk, err := workspace.OpenDisk(g.Path, workspace.DiskOptions{Refuse: s.private})
	if err != nil {
		return nil, err
	}
	d := disk.Directory()
	if g.Access != ReadWrite {
		d = d.AsReadOnly()
	}
	s.held[d] = disk.Close
	return d, nil
}

func (s *State) bucket(ctx context.Context, g KV) (*kv.Bucket, error) {
	if s.kv == nil {
		store, err := kv.Open(ctx, filepath.Join(s.dir, KVFile), kv.Options{})
		if err != nil {
			return nil, err
		}
		s.kv = store
		s.closers = append(s.closers, store.Close)
	}
	return s.kv.Bucket(g.Store), nil
}

// Close closes the files and the idle connections. It is idempotent.
func (s *State) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var errs []error
	for _, closeOne := range slices.AppendSeq(s.closers, maps.Values(s.held)) {
		errs = append(errs, closeOne())
	}
	clear(s.held)
	s.closers, s.kv, s.workspaces = nil, nil, nil
	return errors.Join(errs...)
}
