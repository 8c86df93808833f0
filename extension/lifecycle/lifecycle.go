// Package lifecycle manages extensions. It takes an author's draft through every stage to a callable tool, and asks a person
// before an extension gets more authority than the policy allows. It keeps versions within limits of disk space, and calls the tools. Its state is in
// one SQLite file, which several processes may use at once. A decision in one process applies in all of them to each call and
// list that begins after the decision returned. Running calls of a revoked extension end within a tenth of a second.
package lifecycle

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"maps"
	"path/filepath"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stilehost/stile/capabilities"
	"github.com/stilehost/stile/capabilities/code"
	"github.com/stilehost/stile/capability"
	"github.com/stilehost/stile/extension"
	"github.com/stilehost/stile/extension/evaluate"
	"github.com/stilehost/stile/extension/policy"
	"github.com/stilehost/stile/extension/typecheck"
	"github.com/stilehost/stile/host"
	"github.com/stilehost/stile/internal/sqlite"
	"github.com/stilehost/stile/internal/stamp"
	"github.com/stilehost/stile/toolchain"
	"github.com/stilehost/stile/toolchain/npm"
)

// Options configure a Manager. Dir, Host, Toolchain and State are required.
type Options struct {
	// Dir is the folder of the store, which must exist and be writable by its owner only.
	Dir  string
	Host *host.Host
	// Toolchain returns the toolchain, which may take seconds the first time. It is called only if something is built.
	Toolchain func(context.Context) (*toolchain.Toolchain, error)
	// Kinds are the kinds of capability that manifests can ask for. The policy must be read with the same. Default: [capabilities.Builtin].
	Kinds capability.Set
	// State makes capabilities from bindings. Open configures it to run the code of bindings of the kind code with Toolchain.
	State *extension.State
	// Policy is the operator's policy, until SetPolicy. Default: policy.Default().
	Policy *policy.Policy
	// Follow is called before each call, each list of tools and each decision, and ten times a second. If there is a new policy, it
	// calls set and returns when that applies. It must be safe for concurrent use, and take about a microsecond if nothing changed.
	// Default: the policy does not change.
	Follow func(set func(*policy.Policy))
	// Packages resolves npm packages. Default: an extension that imports any is refused.
	Packages *npm.Client
	// Bundler is as in toolchain.Options: a separate process finds the imports of large sources. Default: in this process.
	Bundler []string
	// Types checks the types of drafts that ask for it. Default: types are not checked, and [Written.Unchecked] says so.
	Types *typecheck.Checker
	// Recorder takes recordings of calls. Default: nothing is recorded.
	Recorder Recorder
	// Runs are where durable calls write down the calls of tools that they make. Default: these end with the process.
	Runs Runs
	// Loaded is how many components stay loaded; beyond it, the least recently called one is unloaded. Default 512.
	Loaded int
	// LoadedBytes is how much memory loaded components take, by estimate. Beyond it, those that no call uses are unloaded in the same order, and a
	// call that would need more fails with a *host.LimitError. The calls of one agent use at most a quarter of it at a time, unless they
	// all use one component. Default 1 GiB.
	LoadedBytes int64
	// Now is the time. Default: time.Now.
	Now func() time.Time
	// Logger receives events that no caller sees. Default: nothing is logged.
	Logger *slog.Logger

	step func(name string) // called at each step of changes and calls, for tests that stop there
	poll time.Duration     // pollInterval, unless a test waits for nothing
}

// Recorder takes recordings of calls and keeps the components that they ran in, as *recording.Store does.
type Recorder interface {
	host.Recorder
	Keep(ctx context.Context, wasm []byte) error
}

// ErrClosed is the error of calls and tests after Close.
var ErrClosed = errors.New("the manager of extensions is closed")

// pollInterval is the longest time until running calls see what another process changed.
const pollInterval = 100 * time.Millisecond

// Manager keeps extensions. It is safe for concurrent use. Its creator closes it, before the host and the state.
type Manager struct {
	options Options
	db      *sqlite.DB
	ledger  *ledger
	stamp   *stamp.File   // names the generation of the store
	old     chan struct{} // reports that stamp does not

	setting sync.Mutex // held while the policy is set, so that two policies never mix
	policy  atomic.Pointer[policy.Policy]
	// setPolicy is SetPolicy, made once.
	setPolicy func(*policy.Policy)
	stop      context.CancelFunc
	wait      sync.WaitGroup
	loaded    *loadedSet
	loading   loading

	calls     sync.WaitGroup // under way
	reloading sync.Mutex     // held while releases are read

	mu         sync.RWMutex
	closed     bool
	generation int64
	releases   map[int64]*active                    // by number
	offers     map[extension.Scope]map[string]offer // by the full name of the tool
	superseded []*active                            // still have running calls
	children   map[*started]context.CancelCauseFunc // durable calls that are awake and that others made
	changed    chan struct{}                        // closed when releases change

	questions    questions // wait for a person
	codePackages resolutions
	codeAllows   allowedPackages // by persons, for code that is no extension
	codeRuns     codeRuns

	climbing sync.Mutex          // held while ladders are looked up or made
	ladders  map[string]*rungsOf // by the name of an agent
}

// Kinds are the kinds of capability that manifests can ask for.
func (m *Manager) Kinds() capability.Set { return m.options.Kinds }

// Open opens or creates the store in o.Dir. It builds and loads nothing: a component is loaded for the first call of a tool.
func Open(ctx context.Context, o Options) (*Manager, error) {
	if o.Dir == "" || o.Host == nil || o.Toolchain == nil || o.State == nil {
		return nil, errors.New("lifecycle: Dir, Host, Toolchain and State are needed")
	}
	if len(o.Kinds.All()) == 0 {
		o.Kinds = capabilities.Builtin
	}
	o.Loaded = cmp.Or(o.Loaded, 512)
	o.LoadedBytes = cmp.Or(o.LoadedBytes, 1<<30)
	o.Logger = cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Follow == nil {
		o.Follow = func(func(*policy.Policy)) {}
	}
	o.poll = cmp.Or(o.poll, pollInterval)
	if o.step == nil {
		o.step = func(string) {}
	}
	db, err := o.reserve().Open(ctx, filepath.Join(o.Dir, File), schema)
	if err != nil {
		return nil, err
	}
	m := &Manager{
		options: o, db: db, stamp: stamp.New(filepath.Join(o.Dir, stampFile)), old: make(chan struct{}, 1), changed: make(chan struct{}), loaded: newLoadedSet(o.Loaded, o.LoadedBytes), loading: newLoading(), ladders: map[string]*rungsOf{},
	}
	m.ledger, m.setPolicy = newLedger(m), m.SetPolicy
	o.State.Configure(code.Kind, code.Evaluator(evaluate.New(evaluate.Options{Toolchain: o.Toolchain, Recorder: o.Recorder, Logger: o.Logger}).Run))
	m.SetPolicy(cmp.Or(o.Policy, policy.Default()))
	if db.Migrated() { // processes of the version before must ask the store, which they cannot use any more
		err = db.Update(ctx, func(c *sqlite.Conn) error { return m.change(ctx, c) })
	}
	if err == nil {
		err = m.reload(ctx)
	}
	if err != nil {
		m.stamp.Close()
		return nil, errors.Join(err, db.Close())
	}
	if err := o.reserve().Fill(); err != nil {
		o.Logger.WarnContext(ctx, "hold room for revocations", "error", err)
	}
	watching, stop := context.WithCancel(context.WithoutCancel(ctx))
	m.stop = stop
	m.wait.Go(func() { m.watch(watching) })
	m.wait.Go(func() { m.settleOld(watching) })
	m.wait.Go(func() { m.ledger.write(watching) })
	return m, nil
}

// Close waits for running calls, writes their statistics, and closes the store. To avoid waiting, end the contexts of the
// calls. It is idempotent.
func (m *Manager) Close() error {
	m.mu.Lock()
	m.closed = true
	m.mu.Unlock()
	m.calls.Wait()
	m.endLadders(nil, nil)
	err := m.loaded.closeAll()
	m.stop()
	m.wait.Wait()
	m.stamp.Close()
	err = errors.Join(err, m.db.Close())
	_ = m.options.reserve().Fill() // takes back what an open store takes on a full disk; the next process warns of what is missing
	return err
}

// Changed returns a channel that is closed when the tools or their authority change, in this process or another.
func (m *Manager) Changed() <-chan struct{} {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.changed
}

// Policy returns the operator's current policy.
func (m *Manager) Policy() *policy.Policy {
	m.options.Follow(m.setPolicy)
	return m.policy.Load()
}

// SetPolicy replaces the operator's policy. It applies to everything that is decided or called from now on. In running calls,
// including those of superseded versions, it revokes the handles of releases whose rights change. Active releases stay active.
func (m *Manager) SetPolicy(p *policy.Policy) {
	m.setting.Lock()
	defer m.setting.Unlock()
	before := m.policy.Swap(p)
	if !reflect.DeepEqual(before, p) {
		m.codeAllows.clear()
	}
	m.endCodeRuns()
	m.options.State.SetHosts(p.Hosts)
	m.endLadders(before, p) // a ladder that is opened from now on has the new hosts
	m.options.State.SetRoom(capability.Room{Owner: p.Limits.KeptPerScope, All: p.Limits.Kept})
	m.mu.RLock()
	releases := slices.AppendSeq(slices.Clone(m.superseded), maps.Values(m.releases))
	m.mu.RUnlock()
	for _, a := range releases {
		was, _ := before.Limit(a.manifest.Bindings)
		is, _ := p.Limit(a.manifest.Bindings)
		sends := slices.ContainsFunc(is, extension.Binding.Hosts)
		if !reflect.DeepEqual(was, is) || sends && !maps.EqualFunc(before.Hosts, p.Hosts, slices.Equal) {
			m.renew(a)
		}
	}
	m.endUnlinked()
}

// renew makes the next call of a release create its capabilities again, and revokes those of its running calls.
func (m *Manager) renew(a *active) {
	a.making.Lock()
	defer a.making.Unlock()
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, g := range a.grants {
		g.Revoke("the operator's policy has changed")
	}
	if err := m.options.State.Release(a.made); err != nil {
		m.options.Logger.Warn("let go of what an extension used", "extension", a.manifest.Name, "error", err)
	}
	a.renewed++
	a.grants, a.env, a.made = nil, nil, nil
}

// watch looks for changes by other processes that concern running calls.
func (m *Manager) watch(ctx context.Context) {
	tick := time.NewTicker(m.options.poll)
	defer tick.Stop()
	failed := ""
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		m.options.Follow(m.setPolicy)
		said := ""
		if err := m.look(ctx); err != nil && ctx.Err() == nil {
			if said = err.Error(); said != failed {
				m.options.Logger.Warn("look for changes of extensions", "error", err)
			}
		}
		failed = said
		m.endCodeRuns()
	}
}
