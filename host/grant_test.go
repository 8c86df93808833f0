package host_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/host"
)

// fakeClock stands still until a test advances it.
type fakeClock struct {
	mu     sync.Mutex
	now    time.Time
	timers map[*fakeTimer]struct{}
}

type fakeTimer struct {
	at time.Time
	f  func()
}

func newFakeClock() *fakeClock {
	return &fakeClock{now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), timers: map[*fakeTimer]struct{}{}}
}

func (c *fakeClock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *fakeClock) AfterFunc(d time.Duration, f func()) (stop func() bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	t := &fakeTimer{c.now.Add(d), f}
	c.timers[t] = struct{}{}
	return func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		_, pending := c.timers[t]
		delete(c.timers, t)
		return pending
	}
}

func (c *fakeClock) advance(d time.Duration) {
	c.mu.Lock()
	c.now = c.now.Add(d)
	var due []func()
	for t := range c.timers {
		if !t.at.After(c.now) {
			due = append(due, t.f)
			delete(c.timers, t)
		}
	}
	c.mu.Unlock()
	for _, f := range due {
		f()
	}
}

// granted is a box that is bound through a grant and reports its operations.
type granted struct {
	box
	puts, bytes atomic.Int64
	// inside receives a value whenever an operation begins to wait.
	inside chan struct{}
	// panics runs in Panic, which serves as a signal here.
	panics func()
	mu     sync.Mutex
	closed int // of the parts that were split off
}

func newGranted() *granted { return &granted{inside: make(chan struct{}, 1000), panics: func() {}} }

func (g *granted) Put(ctx context.Context, p []byte) error {
	if err := abi.Charge(ctx, len(p)); err != nil {
		return err
	}
	g.puts.Add(1)
	g.bytes.Add(int64(len(p)))
	return nil
}

// Get waits until its context ends.
func (g *granted) Get(ctx context.Context) (string, error) {
	g.inside <- struct{}{}
	<-ctx.Done()
	return "", fmt.Errorf("wait: %w", ctx.Err())
}

func (g *granted) Never(context.Context) *abi.Pollable {
	g.inside <- struct{}{}
	return new(abi.Pollable)
}

func (g *granted) Panic(context.Context)              { g.panics() }
func (g *granted) Split(context.Context) *grantedPart { return &grantedPart{granted: g} }

type grantedPart struct {
	box
	granted *granted
}

func (p *grantedPart) Split(context.Context) *grantedPart { return &grantedPart{granted: p.granted} }

func (p *grantedPart) Close() error {
	p.granted.mu.Lock()
	defer p.granted.mu.Unlock()
	p.granted.closed++
	return nil
}

const (
	put4 = `(call $put (local.get $box) (i32.const 1024) (i32.const 4) (i32.const 256)) `
	// code returns the case of the error at 256, and "-" if there is none.
	code = `(if (i32.load8_u (i32.const 256))
			(then (i32.store8 (i32.const 3000) (i32.add (i32.const 48) (i32.load8_u (i32.const 264)))))
			(else (i32.store8 (i32.const 3000) (i32.const 57))))
		(call $ok (i32.const 3000) (i32.const 1))`
	untilRefused = `(loop $l ` + put4 + `(br_if $l (i32.eqz (i32.load8_u (i32.const 256))))) ` + code

	isRevoked, isExpired, isExhausted, isFine = "1", "2", "3", "9"
)

// TestRevokeWhileCallsRun revokes a grant that 200 calls use as fast as they can.
func TestRevokeWhileCallsRun(t *testing.T) {
	h := newHost(t, host.Options{Limits: host.Limits{CPU: time.Minute}})
	c := guest{uses: "open put panic", call: `(call $panic (local.get $box)) ` + untilRefused}.load(t, h)
	shared := newGranted()
	var begun, ended sync.WaitGroup
	begun.Add(200)
	shared.panics = begun.Done
	g := host.NewGrant(shared, host.GrantOptions{})
	for range 200 {
		ended.Go(func() {
			if out, err := c.Call(t.Context(), "t", nil, host.Env{"box": g}); err != nil || string(out) != isRevoked {
				t.Errorf("got %s, %v", out, err)
			}
		})
	}
	begun.Wait()
	g.Revoke("the test is over")
	used := g.Usage()
	ended.Wait()
	if after := g.Usage(); after.Operations != used.Operations || !errors.Is(after.Ended, abi.ErrRevoked) {
		t.Errorf("%+v when it was revoked, %+v after", used, after)
	}
	if _, err := c.Call(t.Context(), "t", nil, host.Env{"box": g}); err == nil {
		t.Error("a revoked grant was opened")
	}
}

// TestGrantEndsWhatWaits ends grants in each way while a call waits in an operation or for a pollable.
func TestGrantEndsWhatWaits(t *testing.T) {
	h := newHost(t, host.Options{})
	waits := map[string]*host.Component{
		"operation": guest{uses: "open get", call: `(call $get (local.get $box) (i32.const 256)) ` + code}.load(t, h),
		"block":     guest{uses: "open never block put", call: `(call $block (call $never (local.get $box))) ` + put4 + code}.load(t, h),
		"poll": guest{uses: "open never poll put", call: `(i32.store (i32.const 2100) (call $never (local.get $box)))
			(call $poll (i32.const 2100) (i32.const 1) (i32.const 256)) ` + put4 + code}.load(t, h),
	}
	for _, way := range []struct {
		name    string
		options host.GrantOptions
		end     func(*host.Grant, *fakeClock)
		want    string
	}{
		{"revoked", host.GrantOptions{}, func(g *host.Grant, _ *fakeClock) { g.Revoke("enough") }, isRevoked},
		{"expired", host.GrantOptions{Expires: newFakeClock().now.Add(time.Hour)}, func(_ *host.Grant, c *fakeClock) { c.advance(time.Hour) }, isExpired},
		{"out of time", host.GrantOptions{Time: 10 * time.Second}, func(g *host.Grant, c *fakeClock) {
			for g.Usage().Ended == nil { // time counts from when they wait
				c.advance(4 * time.Second)
			}
		}, isExhausted},
	} {
		for name, c := range waits {
			t.Run(way.name+"/"+name, func(t *testing.T) {
				shared, clock := newGranted(), newFakeClock()
				way.options.Clock = clock
				g := host.NewGrant(shared, way.options)
				var ended sync.WaitGroup
				for range 2 {
					ended.Go(func() {
						if out, err := c.Call(t.Context(), "t", nil, host.Env{"box": g}); err != nil || string(out) != way.want {
							t.Errorf("got %s, %v", out, err)
						}
					})
				}
				<-shared.inside
				<-shared.inside
				way.end(g, clock)
				ended.Wait()
				if used := g.Usage(); way.options.Time > 0 && used.Time > way.options.Time || used.Ended == nil {
					t.Errorf("used %+v", used)
				}
				if len(clock.timers) > 0 {
					t.Error("a timer is left")
				}
				g.Revoke("too late")
				if out, err := c.Call(t.Context(), "t", nil, host.Env{"box": g}); err == nil {
					t.Errorf("it works again: %s", out)
				}
			})
		}
	}
}

// TestBudgetsAreExact has 200 calls compete for a grant's budget, directly and through a grant inside it.
func TestBudgetsAreExact(t *testing.T) {
	h := newHost(t, host.Options{Limits: host.Limits{CPU: time.Minute}})
	c := guest{uses: "open put", call: untilRefused}.load(t, h)
	for _, budget := range []struct {
		options      host.GrantOptions
		puts, bytes  int64
		outer, inner int64 // operations of the outer and the inner grant; 0 is no bound
	}{
		{host.GrantOptions{Operations: 5000}, 5000, 20_000, 0, 0},
		{host.GrantOptions{Bytes: 4003}, 1000, 4000, 0, 0},
		{host.GrantOptions{}, 700, 2800, 700, 1000},
		{host.GrantOptions{Bytes: 40_000}, 700, 2800, 1000, 700},
	} {
		shared := newGranted()
		inner := host.NewGrant(shared, host.GrantOptions{Operations: budget.inner})
		g := host.NewGrant(inner, budget.options)
		outer := host.NewGrant(g, host.GrantOptions{Operations: budget.outer})
		var ended sync.WaitGroup
		for range 200 {
			ended.Go(func() {
				out, err := c.Call(t.Context(), "t", nil, host.Env{"box": outer})
				if err != nil || string(out) != isExhausted {
					t.Errorf("got %s, %v", out, err)
				}
			})
		}
		ended.Wait()
		if shared.puts.Load() != budget.puts || shared.bytes.Load() != budget.bytes {
			t.Errorf("%+v: %d puts of %d bytes", budget, shared.puts.Load(), shared.bytes.Load())
		}
		used := g.Usage()
		if used.Bytes != budget.bytes || used.Operations < budget.puts || used.Ended != nil || budget.options.Operations > 0 && used.Operations != budget.puts {
			t.Errorf("%+v: used %+v", budget, used)
		}
		if o := outer.Usage().Operations; o != inner.Usage().Operations || o != used.Operations {
			t.Errorf("%+v: grants of grants differ in what was used", budget)
		}
	}
}

// TestNothingEscapesAGrant has guests derive handles from a grant, pass them on, and use them after it was revoked. The
// function `panic` revokes it.
func TestNothingEscapesAGrant(t *testing.T) {
	h := newHost(t, host.Options{})
	split := `(local.set $box (call $split (local.get $box))) `
	revoke := `(call $panic (local.get $i)) `
	begin := `(local.set $i (local.get $box)) `
	// give puts $box under "two" into an empty subset, and opens it again as $box.
	give := `(call $subset (local.get $env) (i32.const 0) (i32.const 0) (i32.const 256))
		(local.set $env (i32.load (i32.const 260)))
		(call $give (local.get $env) (i32.const 2048) (i32.const 3) (local.get $box) (i32.const 256)) `
	take := `(call $open (local.get $env) (i32.const 2048) (i32.const 3) (i32.const 256)) `
	got := `(local.set $box (i32.load (i32.const 264))) `
	for _, c := range []struct {
		name string
		call string
		want string // what the call returns, or a part of its error
		like any
	}{
		{"a derived handle", split + split + revoke + put4 + code, isRevoked, nil},
		{"a derived handle before", split + split + put4 + code, isFine, nil},
		{"a handle in another env", split + give + take + got + revoke + put4 + code, isRevoked, nil},
		{"a handle in another env before", split + give + take + got + put4 + code, isFine, nil},
		{"to take it out of another env", split + give + revoke + take + code, isRevoked, nil},
		{"to put it into another env", split + revoke + give + code, isRevoked, nil},
		{"to get it again", revoke + `(call $open (local.get $env) (i32.const 1032) (i32.const 3) (i32.const 256)) ` + code, isRevoked, nil},
		{"to get it out of a subset", `(i32.store (i32.const 2056) (i32.const 1032)) (i32.store (i32.const 2060) (i32.const 3))
			(call $subset (local.get $env) (i32.const 2056) (i32.const 1) (i32.const 256)) (local.set $env (i32.load (i32.const 260))) ` +
			revoke + `(call $open (local.get $env) (i32.const 1032) (i32.const 3) (i32.const 256)) ` + code, isRevoked, nil},
		{"a pollable made before", `(local.set $box (call $never (local.get $box))) ` + revoke + `(call $block (local.get $box)) ` + returns, `"ok"`, nil},
		{"a pollable made after", revoke + `(call $block (call $never (local.get $box))) ` + returns, `"ok"`, nil},
		{"what returns nothing", revoke + revoke + returns, `"ok"`, nil},
		{"what cannot say it", revoke + `(call $fetch (local.get $box) (i32.const 4) (i32.const 256)) ` + returns, `[method]box.fetch through "box": revoked: by the test`, new(*host.GrantError)},
		{"to derive from it", revoke + split + returns, "[method]box.split", new(*host.GrantError)},
	} {
		t.Run(c.name, func(t *testing.T) {
			shared := newGranted()
			g := host.NewGrant(shared, host.GrantOptions{})
			revoked := 0
			shared.panics = func() { revoked++; g.Revoke("by the test") }
			out, err := guest{uses: "open put split give subset never block panic fetch", data: "two", call: begin + c.call}.load(t, h).
				Call(t.Context(), "t", nil, host.Env{"box": g})
			switch {
			case c.like != nil:
				if !errors.As(err, c.like) || !errors.Is(err, abi.ErrRevoked) || !strings.Contains(err.Error(), c.want) {
					t.Errorf("got %v, want %q", err, c.want)
				}
			case err != nil || string(out) != c.want:
				t.Errorf("got %s, %v, want %s", out, err, c.want)
			}
			if revoked > 1 {
				t.Error("an operation was executed after the grant was revoked")
			}
		})
	}
}

// TestGrantClosesWhatIsOpen checks that derived values are closed when the next operation begins, and only once.
func TestGrantClosesWhatIsOpen(t *testing.T) {
	h := newHost(t, host.Options{})
	shared := newGranted()
	g := host.NewGrant(shared, host.GrantOptions{})
	shared.panics = func() { g.Revoke("") }
	c := guest{uses: "open split panic put drop", call: `(local.set $i (call $split (local.get $box))) (drop (call $split (local.get $box)))
		(call $panic (local.get $box)) ` + put4 + `(call $drop (local.get $i)) ` + put4 + returns}.load(t, h)
	seen := ""
	_, err := c.Do(t.Context(), host.Request{Tool: "t", Env: host.Env{"box": g}, Observe: func(o host.Operation) {
		shared.mu.Lock()
		defer shared.mu.Unlock()
		seen += fmt.Sprint(shared.closed)
	}})
	if err != nil || seen != "000022" || shared.closed != 2 {
		t.Errorf("%v; closed %s, %d in the end", err, seen, shared.closed)
	}
}

// TestGrantClosesWhileCallWaits revokes a grant while a call waits for something else: in poll, between two steps, and without an instance.
// What is open closes then, and the call waits on.
func TestGrantClosesWhileCallWaits(t *testing.T) {
	const opens = `(drop (call $split (local.get $box)))
		(call $open (local.get $env) (i32.const 2048) (i32.const 5) (i32.const 256))
		(i32.store (i32.const 512) (call $never (i32.load (i32.const 264)))) `
	const parks = opens + `(if (call $park (i32.const 512) (i32.const 1)) (then (return (call $none)))) (call $some)`
	for name, g := range map[string]guest{
		"in poll":             {uses: "open split never block", call: opens + `(call $block (i32.load (i32.const 512))) ` + returns},
		"between steps":       {uses: "open split never park", start: parks},
		"without an instance": {uses: "open split never park drop-env drop-poll drop", start: parks, more: remembers(nil)},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHost(t, host.Options{Instances: 1, Limits: host.Limits{Wall: time.Hour}})
			g.data = "other"
			shared, other := newGranted(), &promised{ready: new(abi.Pollable)}
			grant := host.NewGrant(shared, host.GrantOptions{})
			env := host.Env{"box": grant, "other": other}
			var ended <-chan error
			if c := g.load(t, h); g.more != "" {
				ended = packs(t, h, c, env)
			} else {
				call := make(chan error, 1)
				go func() {
					_, err := c.Call(t.Context(), "t", nil, env)
					call <- err
				}()
				ended = call
			}
			closed := func() int {
				shared.mu.Lock()
				defer shared.mu.Unlock()
				return shared.closed
			}
			for grant.Usage().Operations == 0 {
				runtime.Gosched()
			}
			grant.Revoke("enough")
			for deadline := time.Now().Add(time.Minute); closed() == 0; runtime.Gosched() {
				if time.Now().After(deadline) {
					t.Fatal("it is still open")
				}
			}
			select {
			case err := <-ended:
				t.Fatalf("the call has ended: %v", err)
			default:
			}
			other.ready.SetReady()
			if err := <-ended; err != nil || closed() != 1 {
				t.Errorf("%v; closed %d times", err, closed())
			}
		})
	}
}

// TestExpiredBeforeTheTimer checks that a grant refuses after its expiry, even if no timer has fired.
func TestExpiredBeforeTheTimer(t *testing.T) {
	h := newHost(t, host.Options{})
	shared, clock := newGranted(), newFakeClock()
	g := host.NewGrant(shared, host.GrantOptions{Expires: clock.now.Add(time.Hour), Clock: clock})
	shared.panics = func() {
		clock.mu.Lock()
		defer clock.mu.Unlock()
		clock.now = clock.now.Add(time.Hour)
	}
	out, err := guest{uses: "open put panic", call: `(call $panic (local.get $box)) ` + put4 + code}.load(t, h).Call(t.Context(), "t", nil, host.Env{"box": g})
	if err != nil || string(out) != isExpired {
		t.Errorf("got %s, %v", out, err)
	}
	// Turning the clock back does not revive it.
	clock.advance(-time.Hour)
	if used := g.Usage(); !errors.Is(used.Ended, abi.ErrExpired) {
		t.Errorf("used %+v", used)
	}
}

// TestGrantOfNothing refuses a grant without a capability.
func TestGrantOfNothing(t *testing.T) {
	for _, o := range []host.Options{{}, {Recorder: &kept{}}} {
		_, err := (guest{}).load(t, newHost(t, o)).Call(t.Context(), "t", nil, host.Env{"box": host.NewGrant(nil, host.GrantOptions{})})
		if err == nil {
			t.Error("it was bound")
		}
	}
}
