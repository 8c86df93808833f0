package host

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/internal/printable"
)

// GrantOptions bound a [Grant]. A zero field sets no bound.
type GrantOptions struct {
	// Expires is when the grant ends.
	Expires time.Time
	// Operations is how many operations are allowed: calls of methods, on the capability and on what is derived from it. Getting,
	// passing on, dropping and waiting for a handle do not count. Failed operations count.
	Operations int64
	// Bytes is how much content operations may move, as capabilities count it with [abi.Charge].
	Bytes int64
	// Time is how long operations may take together, including waiting. Two at once use it twice as fast.
	Time time.Duration
	// Clock tells the time. Default: the machine's.
	Clock Clock
}

// Clock tells a [Grant] the time. It is safe for concurrent use.
type Clock interface {
	Now() time.Time
	// AfterFunc calls f on its own goroutine after d, unless stop is called first.
	AfterFunc(d time.Duration, f func()) (stop func() bool)
}

type systemClock struct{}

func (systemClock) Now() time.Time { return time.Now() }

func (systemClock) AfterFunc(d time.Duration, f func()) (stop func() bool) {
	return time.AfterFunc(d, f).Stop
}

// Grant is a capability that can be revoked while calls use it, can expire, and can have a budget. All calls that receive it share
// it. It covers everything derived from it: narrowed clients, subdirectories, exchanges, blobs, pollables, handles put into another
// env, and the env of a called tool. When a grant wraps another, both apply. The grants of all handles that an operation touches
// apply to it and to its results.
//
// After a grant ends, the next operation fails with abi.ErrRevoked, abi.ErrExpired or abi.ErrExhausted. Running operations are
// cancelled, pollables become ready, and open resources are closed. The grant never works again.
//
// Some operations have no place for an error in their WIT result. One without a result, like `log`, does nothing. One that returns a
// pollable, like `subscribe`, returns a ready one. Any other, like `now` or `size`, ends the call with a [GrantError], because every
// value would be untrue.
//
// A durable call also counts on its own what it uses of a grant among its bindings, and writes that down, with the grant's end. So when it goes on, with this grant or another, neither its sleep nor the end of the
// process has refilled the budget, and the grant ends no later. An operation that the end of the process cut off counts with the text and bytes of its arguments. The bounds are those of the grant that it gets then. What other calls use is not written down: see [Grant.Usage].
//
// A Grant is safe for concurrent use and needs no closing.
type Grant struct {
	capability abi.Capability
	options    GrantOptions
	id         uint64 // grants are locked in this order

	mu     sync.Mutex
	ended  *abi.Error // why it is over
	leases map[*lease]struct{}
	used   GrantUsage
	// used.Time includes the running operations' time up to since.
	running int64
	since   time.Time
	stop    func() bool // stops the timer; nil if there is none
	free    bool        // operations and bytes take nothing: see [call.free]
}

// GrantUsage is what all calls together have used of a grant. It never exceeds the bounds.
type GrantUsage struct {
	Operations, Bytes int64
	Time              time.Duration
	// Ended is why the grant ended: abi.ErrRevoked, abi.ErrExpired, or abi.ErrExhausted for its time. It is nil while operations are
	// possible. It is also nil if only the budget of operations or bytes is used up.
	Ended error
}

// GrantError reports a call that ended because a grant ended during an operation whose result has no place for an error. It
// wraps abi.ErrRevoked, abi.ErrExpired or abi.ErrExhausted.
type GrantError struct {
	Binding, Func string
	Err           error
}

func (e *GrantError) Error() string {
	return fmt.Sprintf("%s through %q: %v", e.Func, e.Binding, e.Err)
}

// Unwrap returns why the grant ended.
func (e *GrantError) Unwrap() error { return e.Err }

var lastGrant atomic.Uint64

// NewGrant returns a grant of a capability, or of another grant.
func NewGrant(capability abi.Capability, o GrantOptions) *Grant {
	if o.Clock == nil {
		o.Clock = systemClock{}
	}
	return &Grant{capability: capability, options: o, id: lastGrant.Add(1), leases: map[*lease]struct{}{}}
}

// Interface implements [abi.Capability].
func (g *Grant) Interface() string { return g.capability.Interface() }

// Revoke ends the grant. Once it returns, no operation begins, and running ones are cancelled. Guests see the reason.
// Revoking an ended grant does nothing.
func (g *Grant) Revoke(reason string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.look(g.options.Clock.Now())
	g.end(&abi.Error{Code: abi.CodeRevoked, Detail: printable.Short(reason, kib)})
}

// Usage returns what the grant has used so far.
func (g *Grant) Usage() GrantUsage {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.look(g.options.Clock.Now())
	used := g.used
	if g.ended != nil {
		used.Ended = g.ended
	}
	return used
}

// end ends the grant, unless it has ended. The caller holds mu.
func (g *Grant) end(why *abi.Error) {
	if g.ended != nil {
		return
	}
	g.ended = why
	for l := range g.leases {
		l.cancel(why)
	}
	g.arm()
}

// look counts time, and ends the grant if it is due. The caller holds mu.
func (g *Grant) look(now time.Time) {
	if g.running > 0 && g.ended == nil {
		g.used.Time += time.Duration(g.running) * max(0, now.Sub(g.since))
	}
	g.since = now
	switch o := g.options; {
	case o.Time > 0 && g.used.Time >= o.Time:
		g.used.Time = o.Time
		g.end(abi.Errorf(abi.CodeExhausted, "time: %v", o.Time))
	case !o.Expires.IsZero() && !now.Before(o.Expires):
		g.end(abi.ErrExpired)
	}
}

// arm sets the timer for the time when the grant may be due, as long as calls use it. The caller holds mu.
func (g *Grant) arm() {
	if g.stop != nil {
		g.stop()
		g.stop = nil
	}
	var due []time.Duration
	if !g.options.Expires.IsZero() {
		due = append(due, g.options.Expires.Sub(g.since))
	}
	if n := time.Duration(g.running); g.options.Time > 0 && n > 0 {
		due = append(due, (g.options.Time-g.used.Time+n-1)/n)
	}
	if g.ended != nil || len(g.leases) == 0 || due == nil {
		return
	}
	g.stop = g.options.Clock.AfterFunc(slices.Min(due), func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.look(g.options.Clock.Now())
		g.arm()
	})
}

// cost is what an operation takes from a grant.
type cost struct {
	operations, bytes int64
	running           int64 // 1 for an operation that begins
}

// refuses says why the grant cannot pay a cost. The caller holds mu.
func (g *Grant) refuses(c cost) *abi.Error {
	g.look(g.options.Clock.Now())
	switch o := g.options; {
	case g.ended != nil:
		return g.ended
	case g.free:
		return nil
	case o.Operations > 0 && c.operations > o.Operations-g.used.Operations:
		return abi.Errorf(abi.CodeExhausted, "operations: %d", o.Operations)
	case o.Bytes > 0 && c.bytes > o.Bytes-g.used.Bytes:
		return abi.Errorf(abi.CodeExhausted, "bytes: %d", o.Bytes)
	}
	return nil
}

// spend takes a cost from all of these grants, or from none if one refuses. They are in the order of their locks.
func spend(grants []*Grant, c cost) *abi.Error {
	for _, g := range grants {
		g.mu.Lock()
		defer g.mu.Unlock()
	}
	for _, g := range grants {
		if refused := g.refuses(c); refused != nil {
			return refused
		}
	}
	for _, g := range grants {
		if !g.free {
			g.used.Operations += c.operations
			g.used.Bytes += c.bytes
		}
		if g.running += c.running; c.running != 0 && g.options.Time > 0 {
			g.arm()
		}
	}
	return nil
}

// leave ends the time of an operation that began.
func leave(grants []*Grant) {
	for _, g := range grants {
		g.mu.Lock()
		g.look(g.options.Clock.Now())
		if g.running--; g.options.Time > 0 {
			g.arm()
		}
		g.mu.Unlock()
	}
}

// union joins lists of grants, in the order of their locks.
func union(lists ...[]*Grant) []*Grant {
	if !slices.ContainsFunc(lists, func(l []*Grant) bool { return len(l) > 0 }) {
		return nil
	}
	all := slices.SortedFunc(slices.Values(slices.Concat(lists...)), func(a, b *Grant) int { return cmp.Compare(a.id, b.id) })
	return slices.Compact(all)
}

// lease is a call's use of some grants, shared by the handles that depend on them. A nil lease depends on no grants.
type lease struct {
	grants []*Grant
	// metered are charged for bytes: the grants, and those of the operation that started this call.
	metered []*Grant
	// ctx ends with the call, or with a grant. Operations get it.
	ctx    context.Context
	cancel context.CancelCauseFunc
	swept  bool // its open values are closed
}

// Charge implements [abi.Meter].
func (l *lease) Charge(bytes int64) error {
	if refused := spend(l.metered, cost{bytes: bytes}); refused != nil {
		return refused
	}
	return nil
}

func (l *lease) granted() []*Grant {
	if l == nil {
		return nil
	}
	return l.grants
}

// over returns why operations under the lease are refused. It is nil while they are allowed.
func (l *lease) over() *abi.Error {
	if l == nil {
		return nil
	}
	return spend(l.grants, cost{})
}

// under returns the context for operations under a lease.
func (c *call) under(l *lease) context.Context {
	if l == nil {
		return c.ctx
	}
	return l.ctx
}

// leaseOf returns the call's lease of these grants. There are at most as many leases as handles, so that a guest that combines its
// handles cannot make them without end.
func (c *call) leaseOf(grants []*Grant) (*lease, error) {
	for _, l := range c.leases {
		if slices.Equal(l.grants, grants) {
			return l, nil
		}
	}
	if len(c.leases) >= c.limits.Handles {
		return nil, exceeded("handles", fmt.Sprint(c.limits.Handles))
	}
	l := &lease{grants: grants, metered: grants}
	if outer, ok := abi.MeterOf(c.ctx).(*lease); ok {
		l.metered = union(grants, outer.metered)
	}
	l.ctx, l.cancel = context.WithCancelCause(c.ctx)
	l.ctx = abi.WithMeter(l.ctx, l)
	c.leases = append(c.leases, l)
	for _, g := range grants {
		g.mu.Lock()
		g.leases[l] = struct{}{}
		g.look(g.options.Clock.Now())
		if g.ended != nil {
			l.cancel(g.ended)
		}
		g.arm()
		g.mu.Unlock()
	}
	return l, nil
}

// mix returns the lease for using handles of two leases together.
func (c *call) mix(a, b *lease) (*lease, error) {
	switch {
	case a == nil || a == b:
		return b, nil
	case b == nil:
		return a, nil
	}
	return c.leaseOf(union(a.grants, b.grants))
}

// release ends the leases with their call.
func (c *call) release() {
	for _, l := range c.leases {
		for _, g := range l.grants {
			g.mu.Lock()
			delete(g.leases, l)
			if len(g.leases) == 0 {
				g.arm()
			}
			g.mu.Unlock()
		}
		l.cancel(errDone)
	}
}

// closeOver closes the values whose grants have ended: before each operation, and when a grant ends while the call waits. Values are always
// closed on the goroutine of the call. A guest that spins without an operation keeps them open, although their contexts have ended.
func (c *call) closeOver() {
	for _, l := range c.leases {
		if l.swept || l.ctx.Err() == nil {
			continue
		}
		l.swept = true
		for _, h := range c.handles.open {
			if h.lease == l {
				c.faults = append(c.faults, h.close())
			}
		}
		c.owned = slices.DeleteFunc(c.owned, func(o owned) bool {
			if o.lease == l {
				c.faults = append(c.faults, closeValue(o.Closer))
			}
			return o.lease == l
		})
	}
}

// mustClose reports whether closeOver closes anything.
func (c *call) mustClose() bool {
	return slices.ContainsFunc(c.leases, func(l *lease) bool { return !l.swept && l.ctx.Err() != nil })
}

// refuse answers an operation whose grant has ended, as [Grant] says, and drops the handles that came with it.
func (c *call) refuse(op *operation, binding string, args []abi.Value, why *abi.Error) (abi.Value, error) {
	c.consume(op, args)
	if why.Code == abi.CodeInterrupted {
		c.usage.Interrupted++
	}
	switch r := op.fn.Result; {
	case r == nil:
		return nil, nil
	case r.Kind == abi.KindOwn && r.Resource == c.host.pollable:
		return scoped{c, binding, nil}.Add(r.Resource, abi.Ready())
	case r.Kind == abi.KindResult && r.Err == nil:
		return abi.Variant{Case: 1}, nil
	case r.Kind == abi.KindResult && r.Err.Kind == abi.KindString:
		return abi.Variant{Case: 1, Value: why.Error()}, nil
	case r.Kind == abi.KindResult:
		if v, err := c.errResult(r, why); err == nil {
			return v, nil
		}
	}
	return nil, &GrantError{binding, op.fn.Name, why}
}

// unwrap returns the capability inside grants, and the grants.
func unwrap(capability abi.Capability) (abi.Capability, []*Grant, error) {
	var grants []*Grant
	for {
		g, ok := capability.(*Grant)
		if !ok {
			break
		}
		grants, capability = append(grants, g), g.capability
	}
	switch d, ok := capability.(*delegated); {
	case capability == nil:
		return nil, nil, errors.New("is nil")
	case ok:
		grants = append(grants, d.grants...)
	}
	return capability, union(grants), nil
}
