// Package host runs components that can only compute until a call hands them capabilities. A [Host] holds the engine, and a
// [Component] is loaded code. A call of a tool runs in a fresh instance with the handles of its [Env], within [Limits].
// Errors of the tool, denials, limits, and faults of the host have different types.
package host

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/host/internal/schema"
	"github.com/stilehost/stile/host/internal/wasmtime"
	"github.com/stilehost/stile/internal/cache"
	"github.com/stilehost/stile/internal/fair"
	"github.com/stilehost/stile/internal/printable"
	"github.com/stilehost/stile/internal/sha256hex"
	"github.com/stilehost/stile/wit"
)

// Options configure a [Host]. The zero value works.
type Options struct {
	// Limits are the defaults of every call's limits. Zero fields have the defaults that Limits documents.
	Limits Limits
	// Instances is how many calls may be live. Further calls wait until one ends or their context does. A call that is made in steps
	// and has waited for about 50 ms, or 5 ms while others want to begin, is not live until it continues. Default 1,000.
	Instances int
	// WarmInstances is how many unused instance slots stay with the component that used them last, which makes its starts three
	// times faster. Set it to the number of components in use. Every used slot keeps up to 4 MiB of the memory that calls wrote to,
	// until another component takes it. Default 128.
	WarmInstances int
	// Running is how many guests may execute at once; more guests take turns of 5 ms, fairly among users. It bounds the memory that the host
	// needs to convert what guests pass, up to 230 MiB each. Default twice GOMAXPROCS, at least 4.
	Running int
	// WholeCalls makes every call in one piece. Otherwise, calls of components that export stile:extension/stepwise are made in
	// steps, and take no thread while they wait.
	WholeCalls bool
	// PackedMemory bounds the memory of calls that wait without an instance, in bytes: what differs from a fresh instance, compressed,
	// and 16 KiB for each, with 512 bytes for each handle, 256 for each name in its envs, and what is recorded of it. When it is used
	// up, waiting calls keep their instances. Default 2 GiB.
	PackedMemory int64
	// MaxMemory caps Limits.Memory. Default 64 MiB.
	MaxMemory int64
	// MaxComponent is the largest component that Load accepts, in bytes. Default 64 MiB.
	MaxComponent int
	// CacheDir keeps compiled code between processes. KeyDir holds the key that authenticates it, and only its owner may
	// have write access. If either is empty, no compiled code is kept.
	CacheDir, KeyDir string
	// Compiler is the command line of a program that only calls [Compile]. Such a process compiles components that take 0.1 s
	// or more by estimate, under limits that end it at twice the estimate. Default: they compile in this process, where nothing can
	// stop them.
	Compiler []string
	// WIT is the text of the embedder's own capability interfaces, one package each. An interface that declares a resource but no
	// `get` receives `get` and `put`. A list in it may have as many elements as fit in 52 MiB of the host's memory during
	// conversion. A capability that accepts fewer refuses longer lists itself.
	WIT []string
	// Wants says which grant a call lacks when its env has no binding of a WIT interface, so that the denial names a remedy.
	// The method Wants of a capability.Set is such a function. Default: the denial names none.
	Wants func(iface string) abi.Wants
	// Recorder receives a recording of every call. Default: nothing is recorded, at no cost.
	Recorder Recorder
	// Redact, if not nil, returns texts and bytes without the secrets in them. Everything in a recording passes through it: one
	// argument, answer or field at a time. In a replay, it is applied too, for comparison. It must be safe for concurrent use and
	// must not change its argument. Values of headers that carry credentials are never kept.
	Redact func([]byte) []byte
	// RecordBytes bounds the operations and output of a recording together, and separately its input. Default 4 MiB. A
	// recording.Store keeps no recording of more than 64 MiB.
	RecordBytes int
	// RecordMemory bounds the recordings of all live calls together, in addition to 64 KiB for each. Those of one Request.User have at
	// most half of what others leave. Default 256 MiB.
	RecordMemory int64
	// Logger receives events that are not reported to any caller, such as a damaged cache entry. Default: nothing is logged.
	Logger *slog.Logger
}

// Host runs components. It is safe for concurrent use. Its creator closes it.
type Host struct {
	options    Options
	engine     *wasmtime.Engine
	known      *abi.Resolve
	env        *abi.Resource
	pollable   *abi.Resource
	cache      *cache.Cache // nil if nothing is kept
	slots      *slots
	compiling  lanes
	validating schema.Room
	recording  *fair.Budget // bytes that recordings hold
	poll       *operation
	wasi       map[string]*operation // of bindings that WASI uses
	patience   time.Duration         // how long a call waits with its slot
	packing    chan struct{}         // has an element for each goroutine that packs
	packed     *fair.Budget          // bytes of packed calls
	codecs     *fair.Budget          // bytes of open codecs
	workers    *workers
	pristine   sync.Mutex // held by who uses the engine's last slot
	log        *slog.Logger

	implementations sync.Map // maps implementationKey to implementation
	codes           shares[*wasmtime.Component]
	images          shares[*wasmtime.Module]

	close sync.Once
	fault error // error of closing

	users   users // of the engine
	closing context.Context
	cancel  context.CancelCauseFunc

	mu      sync.Mutex
	modules map[string]*wasmtime.Module
	loaded  map[*Component]struct{}
}

// Each instance reserves 4 GiB of the 128 TiB of address space that a process has.
const (
	maxInstances = 16_000
	// A live instance needs eight maps, for its memory and for the stacks of the thread that waits with it. If a map cannot be
	// made, the engine ends the process.
	mapsOfInstance, mapsOfProcess = 8, 5000
)

// keepResident is how much of a slot is reset in place when its instance ends. Images of ordinary extensions are smaller. A larger
// image costs 300 microseconds of page faults per call.
const keepResident = 4 * mib

// New returns a host. Close it.
func New(_ context.Context, o Options) (*Host, error) {
	o.Limits = o.Limits.or(defaults)
	fill(&o.Instances, 1000)
	fill(&o.WarmInstances, 128)
	fill(&o.Running, max(4, 2*runtime.GOMAXPROCS(0)))
	fill(&o.MaxMemory, defaults.Memory)
	fill(&o.MaxComponent, 64*mib)
	fill(&o.RecordBytes, 4*mib)
	fill(&o.RecordMemory, 256*mib)
	fill(&o.PackedMemory, 2*gib)
	o.Limits.Memory = min(o.Limits.Memory, o.MaxMemory)
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.MaxMemory > MaxMemory || o.Instances > maxInstances {
		return nil, fmt.Errorf("host options: MaxMemory is at most %s and Instances %d: the address space has no room for more", printable.Size(MaxMemory), maxInstances)
	}
	if has, wants := wasmtime.Maps(), mapsOfProcess+mapsOfInstance*o.Instances; has > 0 && wants > has {
		return nil, fmt.Errorf("host options: %d Instances need %d memory maps, and the kernel allows a process %d; raise the limit: sysctl -w vm.max_map_count=%d",
			o.Instances, wants, has, wants)
	}
	debug.SetMaxThreads(max(debug.SetMaxThreads(maxInstances), 2*o.Instances+1000)) // a call that waits keeps its thread
	known, err := abi.ParseCapability(append([]string{wit.Capability(), wit.Extension()}, o.WIT...)...)
	if err != nil {
		return nil, fmt.Errorf("read WIT: %w", err)
	}
	h := &Host{
		options: o, known: known, log: o.Logger,
		env:       known.Interface(abi.EnvInterface).Resources[0],
		pollable:  known.Interface(abi.PollInterface).Resources[0],
		slots:     newSlots(o.Instances),
		compiling: newLanes(), validating: schema.NewRoom(),
		recording: fair.NewBudget(o.RecordMemory),
		patience:  patience, packing: make(chan struct{}, runtime.GOMAXPROCS(0)), packed: fair.NewBudget(o.PackedMemory),
		codecs:  fair.NewBudget(allCodecs),
		modules: map[string]*wasmtime.Module{}, loaded: map[*Component]struct{}{},
	}
	poll := funcNamed(known.Interface(abi.PollInterface), "poll")
	h.poll = &operation{fn: poll, outside: true, polls: true, bounds: bounds(poll, maxLists), execute: pollOperations[poll.Name]}
	if h.wasi, err = h.worldOperations(); err != nil { //nolint:contextcheck // operations have the context of their call
		return nil, fmt.Errorf("read WIT: %w", err)
	}
	if o.CacheDir != "" && o.KeyDir != "" {
		if h.cache, err = cache.Open(o.CacheDir, o.KeyDir, o.Logger); err != nil {
			return nil, fmt.Errorf("open cache: %w", err)
		}
	}
	h.closing, h.cancel = context.WithCancelCause(context.Background())
	h.workers = newWorkers(h.closing.Done())
	h.engine, err = wasmtime.NewEngine(wasmtime.Pool{
		Instances: o.Instances + MaxNesting + 1, WarmSlots: min(o.WarmInstances, o.Instances), MaxMemory: min(o.MaxMemory+int64(o.MaxComponent), MaxMemory),
		KeepResident: keepResident, Running: o.Running,
	})
	if err != nil {
		err = fmt.Errorf("host options: %d Instances need %w; allow this process more (ulimit -v unlimited), or fewer Instances", o.Instances, err)
		if h.cache != nil {
			err = errors.Join(err, h.cache.Close())
		}
		return nil, err
	}
	return h, nil
}

// Close ends running calls, which return [ErrClosed], waits for them, and frees everything that was loaded. It is idempotent: every
// call of Close returns only when all of that is done.
func (h *Host) Close() error {
	h.close.Do(func() {
		h.users.close()
		h.cancel(ErrClosed)
		h.users.count.Wait()
		h.workers.all.Wait()
		h.mu.Lock()
		loaded := h.loaded
		h.loaded = nil
		h.mu.Unlock()
		for c := range loaded {
			c.free()
		}
		for _, m := range h.modules {
			m.Close()
		}
		h.engine.Close()
		if h.cache != nil {
			h.fault = h.cache.Close()
		}
	})
	return h.fault
}

// WIT returns the interfaces this host knows: those of stile:capability and stile:extension, and the embedder's.
func (h *Host) WIT() *abi.Resolve { return h.known }

// AddModule makes a core module available to components that import it by the returned name, its [ModuleName]. Adding the same module again is cheap.
func (h *Host) AddModule(ctx context.Context, wasm []byte) (name string, err error) {
	name = ModuleName(wasm)
	return name, h.AddModuleNamed(ctx, name, func(context.Context) ([]byte, error) { return wasm, nil })
}

// ModuleName is the name by which components import a core module: "engine-x" and the SHA-256 of the module in hex.
func ModuleName(wasm []byte) string { return modulePrefix + sha256hex.Of(wasm) }

const modulePrefix = "engine-x"

// ModuleDigest returns the SHA-256 in the name of a module. ok is false if [ModuleName] gives no such name.
func ModuleDigest(name string) (digest string, ok bool) { return strings.CutPrefix(name, modulePrefix) }

// AddModuleNamed is AddModule for a module whose [ModuleName] is known. It calls wasm only if the module's compiled code is not in
// the cache, and returns an error of wasm unchanged.
func (h *Host) AddModuleNamed(ctx context.Context, name string, wasm func(ctx context.Context) ([]byte, error)) error {
	end, err := h.users.begin()
	if err != nil {
		return err
	}
	defer end()
	key, ok := ModuleDigest(name)
	if !ok {
		return &LoadError{Name: name, Reason: "the name of a module begins with " + modulePrefix}
	}
	h.mu.Lock()
	_, ok = h.modules[name]
	h.mu.Unlock()
	if ok {
		return nil
	}
	var missing error
	m, err := compiled(ctx, h, "module", key, h.engine.MapModule, func() (*wasmtime.Module, error) {
		var module []byte
		if module, missing = wasm(ctx); missing != nil {
			return nil, missing
		}
		if ModuleName(module) != name {
			return nil, errors.New("the module's digest does not match its name")
		}
		return h.engine.CompileModule(module)
	})
	if system, ok := errors.AsType[*wasmtime.SystemError](err); ok {
		return refusedBySystem(system)
	} else if missing != nil {
		return missing
	} else if err != nil {
		return &LoadError{Name: name, Reason: err.Error()}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.modules[name] != nil {
		m.Close()
	} else {
		h.modules[name] = m
	}
	return nil
}

// engineVersion separates compiled code of one engine and configuration from that of another.
const engineVersion = "wasmtime-44.0.0-9"

// compiled maps code from the cache, or compiles it and puts it there. Two processes compile the same code only once. If the cache
// fails, the call takes longer but still succeeds.
func compiled[T interface{ Serialize() ([]byte, error) }](ctx context.Context, h *Host, kind, key string,
	mapped func(fd uintptr) (T, error), compile func() (T, error),
) (T, error) {
	if h.cache == nil {
		return compile()
	}
	key = engineVersion + "-" + key
	fromCache := func() (T, bool) {
		var none T
		file, ok, err := h.cache.File(kind, key)
		if err != nil || !ok {
			return none, false
		}
		defer file.Close()
		t, err := mapped(file.Fd())
		if err != nil {
			h.log.Warn("cached code cannot be mapped", "kind", kind, "key", key, "error", err)
		}
		return t, err == nil
	}
	if t, ok := fromCache(); ok {
		return t, nil
	}
	var fresh *T
	_, err := h.cache.DoBehind(ctx, kind, key, func() ([]byte, error) {
		t, err := compile()
		if err != nil {
			return nil, &compileError{err}
		}
		fresh = &t
		return t.Serialize()
	})
	var refused *compileError
	switch {
	case fresh != nil:
		if err != nil {
			h.log.Warn("compiled code is not kept", "error", err)
		}
		return *fresh, nil
	case errors.As(err, &refused):
		var none T
		return none, refused.error
	case ctx.Err() != nil:
		var none T
		return none, ctx.Err()
	}
	if t, ok := fromCache(); ok { // another process has compiled it
		return t, nil
	}
	return compile()
}

// compileError marks an error of the engine, to distinguish it from a failure of the cache.
type compileError struct{ error }
