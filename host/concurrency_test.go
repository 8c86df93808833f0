package host_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/sync/errgroup"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/capabilities/workspace"
	"github.com/stilehost/stile/host"
	"github.com/stilehost/stile/internal/sqlite"
	"github.com/stilehost/stile/internal/turns"
	"github.com/stilehost/stile/internal/usagetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var (
	waiter  = guest{uses: "open never block", call: `(call $block (call $never (local.get $box))) ` + returns}
	spinner = guest{call: `(loop $l (br $l)) unreachable`}
)

// TestManyAtOnce runs 200 calls at once, some spinning and some waiting, and cancels half of them.
func TestManyAtOnce(t *testing.T) {
	h := newHost(t, host.Options{Limits: host.Limits{CPU: time.Minute}})
	guests := []*host.Component{guest{}.load(t, h), waiter.load(t, h), spinner.load(t, h)}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var started, ended sync.WaitGroup
	for n := range 200 {
		kind := n % 4 // 0 and 3 end by themselves
		component := guests[kind%3]
		started.Add(1)
		ended.Go(func() {
			started.Done()
			_, err := component.Call(ctx, "t", nil, host.Env{"box": &box{}})
			if ends := kind%3 == 0; ends && err != nil && !errors.Is(err, context.Canceled) || !ends && !errors.Is(err, context.Canceled) {
				t.Errorf("call %d: %v", n, err)
			}
		})
	}
	started.Wait()
	// The host serves others while guests spin for two turns.
	if out, err := guests[0].Call(t.Context(), "t", nil, nil); err != nil || string(out) != `"ok"` {
		t.Errorf("a call meanwhile: %s, %v", out, err)
	}
	cancel()
	ended.Wait()
}

// TestInstancesAreBounded cancels a call that waits for a slot.
func TestInstancesAreBounded(t *testing.T) {
	h := newHost(t, host.Options{Instances: 1})
	c := waiter.load(t, h)
	if _, err := c.Tools(t.Context()); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	inside := make(chan struct{})
	var once sync.Once
	var ended sync.WaitGroup
	ended.Go(func() {
		_, err := c.Do(ctx, host.Request{Tool: "t", Env: host.Env{"box": &box{}}, Observe: func(host.Operation) { once.Do(func() { close(inside) }) }})
		if !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
	})
	<-inside
	var limit *host.LimitError
	_, err := c.Do(t.Context(), host.Request{Tool: "t", Env: host.Env{"box": &box{}}, Limits: host.Limits{Wall: 50 * time.Millisecond}})
	if !errors.As(err, &limit) || limit.Limit != "wall" {
		t.Errorf("got %v", err)
	}
	cancel()
	ended.Wait()
}

// TestUsersShareInstances has one user begin more calls than there are instances. Another user's call does not wait for them.
func TestUsersShareInstances(t *testing.T) {
	h := newHost(t, host.Options{Instances: 4})
	c := guest{call: `(i32.const 128)`}.load(t, h)
	begun, end := make(chan struct{}, 20), make(chan struct{})
	var ended sync.WaitGroup
	for range 20 {
		ended.Go(func() {
			if _, err := c.Do(t.Context(), host.Request{Tool: "t", User: "greedy", Begin: func(context.Context) error {
				begun <- struct{}{}
				<-end
				return errors.New("enough")
			}}); err == nil || err.Error() != "enough" {
				t.Error(err)
			}
		})
	}
	for range 3 {
		<-begun
	}
	errEnough := errors.New("enough")
	for _, user := range []string{"other", ""} {
		if _, err := c.Do(t.Context(), host.Request{Tool: "t", User: user, Begin: func(context.Context) error { return errEnough }}); !errors.Is(err, errEnough) {
			t.Errorf("%q: got %v", user, err)
		}
	}
	if len(begun) > 0 {
		t.Error("one user has all instances")
	}
	close(end)
	ended.Wait()
}

// counted counts the guests that ask for its text.
type counted struct {
	box
	begun atomic.Int32
}

func (*counted) Quick() []string { return []string{"get", "box.get"} }

func (c *counted) Get(context.Context) (string, error) {
	c.begun.Add(1)
	return "", nil
}

// TestUsersShareProcessors has a user start many calls that compute for ever. Another user's call does not wait until each of them has
// had its turns.
func TestUsersShareProcessors(t *testing.T) {
	h := newHost(t, host.Options{Running: 1, Limits: host.Limits{CPU: time.Minute, Wall: time.Hour}})
	computes := guest{uses: "open get", call: `(call $get (local.get $box) (i32.const 256)) (loop $l (br $l)) unreachable`}.load(t, h)
	other := guest{}.load(t, h)
	for _, c := range []*host.Component{computes, other} {
		if _, err := c.Tools(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	const many = 100
	counts := &counted{}
	var ended sync.WaitGroup
	var live atomic.Int32
	for range many {
		ended.Go(func() {
			_, _ = computes.Do(ctx, host.Request{Tool: "t", User: "greedy", Env: host.Env{"box": counts}, Begin: func(context.Context) error { live.Add(1); return nil }})
		})
	}
	for live.Load() < many || counts.begun.Load() == 0 {
		runtime.Gosched()
	}
	if _, err := other.Do(t.Context(), host.Request{Tool: "t", User: "other"}); err != nil {
		t.Error(err)
	}
	if begun := counts.begun.Load(); begun > many/2 {
		t.Errorf("the other user's call came after %d of %d", begun, many)
	}
	cancel()
	ended.Wait()
}

// TestReadersGiveUpTheirTurn has a guest read a workspace while a large change of it is under way. Others execute meanwhile.
func TestReadersGiveUpTheirTurn(t *testing.T) {
	store, err := workspace.Open(t.Context(), filepath.Join(t.TempDir(), "ws.db"), workspace.Options{})
	if err != nil {
		t.Fatal(err)
	}
	d := store.Workspace("w")
	for i := range 1200 { // more than are moved at a time
		if err := d.Write(t.Context(), fmt.Sprint("many/", i), ""); err != nil {
			t.Fatal(err)
		}
	}
	h := newHost(t, host.Options{Running: 1, Limits: host.Limits{CPU: time.Minute, Wall: time.Hour}})
	reads := guest{uses: "open get directory stat", data: "dir", call: `(call $directory (local.get $env) (i32.const 2048) (i32.const 3) (i32.const 256))
		(if (i32.load8_u (i32.const 256)) (then unreachable))
		(local.set $i (i32.load (i32.const 264)))
		(call $get (local.get $box) (i32.const 256))
		(call $stat (local.get $i) (i32.const 2048) (i32.const 3) (i32.const 256))` + returns}.load(t, h)
	other := guest{}.load(t, h)
	for _, c := range []*host.Component{reads, other} {
		if _, err := c.Tools(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	held, release := make(chan struct{}), make(chan struct{})
	changes := 0
	observed := sqlite.Observe(t.Context(), func() func(sqlite.Work) {
		if changes++; changes == 4 { // by then, the move has begun
			close(held)
			<-release
		}
		return func(sqlite.Work) {}
	})
	var all sync.WaitGroup
	all.Go(func() {
		if err := d.Move(observed, "many", "moved"); err != nil {
			t.Error(err)
		}
	})
	<-held
	counts := &counted{}
	all.Go(func() {
		if _, err := reads.Do(t.Context(), host.Request{Tool: "t", User: "greedy", Env: host.Env{"box": counts, "dir": d}}); err != nil {
			t.Error(err)
		}
	})
	for counts.begun.Load() == 0 {
		runtime.Gosched()
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if _, err := other.Do(ctx, host.Request{Tool: "t", User: "other"}); err != nil {
		t.Errorf("the other call: %v", err)
	}
	close(release)
	all.Wait()
	if err := store.Close(); err != nil {
		t.Error(err)
	}
}

// asked is a capability that tells whose call uses it.
type asked struct {
	box
	user string
}

func (a *asked) Get(ctx context.Context) (string, error) {
	a.user = turns.User(ctx)
	return "", nil
}

// TestUsersInCapabilities has the user of a call take turns in capabilities too, whatever user the caller's context is for.
func TestUsersInCapabilities(t *testing.T) {
	c := guest{uses: "open get", call: `(call $get (local.get $box) (i32.const 256))` + returns}.load(t, newHost(t, host.Options{}))
	for _, test := range []struct{ context, request, want string }{{"", "", ""}, {"", "a", "a"}, {"a", "", "a"}, {"a", "a", "a"}, {"b", "a", "a"}} {
		a := &asked{user: "nobody"}
		_, err := c.Do(turns.For(t.Context(), test.context), host.Request{Tool: "t", User: test.request, Env: host.Env{"box": a}})
		if err != nil || a.user != test.want {
			t.Errorf("%+v: got %q, %v", test, a.user, err)
		}
	}
}

func TestCloseWhileCallsRun(t *testing.T) {
	h, err := host.New(t.Context(), host.Options{WIT: []string{testWIT}, Limits: host.Limits{CPU: time.Minute}})
	if err != nil {
		t.Fatal(err)
	}
	wasm := [][]byte{componentize(t, waiter.core()), componentize(t, spinner.core())}
	var ended sync.WaitGroup
	running := make(chan struct{}, 20)
	for n := range 20 {
		c, err := h.Load(t.Context(), wasm[n%2])
		if err != nil {
			t.Fatal(err)
		}
		ended.Go(func() {
			running <- struct{}{}
			if _, err := c.Call(t.Context(), "t", nil, host.Env{"box": &box{}}); !errors.Is(err, host.ErrClosed) {
				t.Errorf("call %d: %v", n, err)
			}
		})
	}
	for range 20 {
		<-running
	}
	if err := h.Close(); err != nil {
		t.Error(err)
	}
	ended.Wait()
	if _, err := h.Load(t.Context(), wasm[0]); !errors.Is(err, host.ErrClosed) {
		t.Errorf("load after close: %v", err)
	}
}

// TestCloseTogether closes a host and its components at once, while others load and call them.
func TestCloseTogether(t *testing.T) {
	wasm := componentize(t, guest{}.core())
	for range 5 {
		h, err := host.New(t.Context(), host.Options{WIT: []string{testWIT}, Instances: 8})
		if err != nil {
			t.Fatal(err)
		}
		var ended sync.WaitGroup
		for range 8 {
			c, err := h.Load(t.Context(), wasm)
			if err != nil {
				t.Fatal(err)
			}
			ended.Go(func() {
				if _, err := c.Call(t.Context(), "t", nil, nil); err != nil && !errors.Is(err, host.ErrClosed) {
					t.Error(err)
				}
			})
			for range 2 {
				ended.Go(func() {
					if err := c.Close(); err != nil {
						t.Error(err)
					}
				})
			}
		}
		ended.Go(func() {
			if _, err := h.Load(t.Context(), wasm); err != nil && !errors.Is(err, host.ErrClosed) {
				t.Error(err)
			}
		})
		for range 2 {
			ended.Go(func() {
				if err := h.Close(); err != nil {
					t.Error(err)
				}
			})
		}
		ended.Wait()
	}
}

// stuck is a box whose methods wait until they are released, even after their call has ended.
type stuck struct {
	box
	inside, release chan struct{}
}

func newStuck() *stuck { return &stuck{inside: make(chan struct{}), release: make(chan struct{})} }

func (s *stuck) Get(context.Context) (string, error) {
	close(s.inside)
	<-s.release
	return "", nil
}

func (s *stuck) Put(context.Context, []byte) error {
	close(s.inside)
	<-s.release
	return nil
}

var (
	getter = guest{uses: "open get", call: `(call $get (local.get $box) (i32.const 256)) (loop $l (br $l)) unreachable`}
	putter = guest{uses: "open put", call: `(call $put (local.get $box) (i32.const 0) (i32.const 20000) (i32.const 256)) ` + returns}
)

// TestSecondCloseWaits closes a host twice while a call delays the first Close.
func TestSecondCloseWaits(t *testing.T) {
	h, err := host.New(t.Context(), host.Options{WIT: []string{testWIT}})
	if err != nil {
		t.Fatal(err)
	}
	c, held := getter.load(t, h), newStuck()
	var ended sync.WaitGroup
	ended.Go(func() {
		if _, err := c.Call(t.Context(), "t", nil, host.Env{"box": held}); !errors.Is(err, host.ErrClosed) {
			t.Error(err)
		}
	})
	<-held.inside
	closed := make(chan error, 2)
	for range 2 {
		ended.Go(func() { closed <- h.Close() })
	}
	select {
	case err := <-closed:
		t.Errorf("closed while a call was running: %v", err)
	case <-time.After(20 * time.Millisecond):
	}
	close(held.release)
	ended.Wait()
}

// TestTurns lets one guest at a time run. A guest that waits for a capability lets others run, even if it passed large values. A guest
// that is cancelled while another has the turn ends.
func TestTurns(t *testing.T) {
	h := newHost(t, host.Options{Running: 1, Limits: host.Limits{CPU: time.Minute}})
	waits, large, neighbour := getter.load(t, h), putter.load(t, h), guest{}.load(t, h)
	for _, c := range []*host.Component{waits, large, neighbour} {
		if _, err := c.Tools(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	first, second := newStuck(), newStuck()
	ctx, cancel := context.WithCancel(t.Context())
	cancelled := make(chan error)
	go func() {
		_, err := waits.Call(ctx, "t", nil, host.Env{"box": first})
		cancelled <- err
	}()
	<-first.inside
	if _, err := neighbour.Do(t.Context(), host.Request{Tool: "t", Limits: host.Limits{Wall: 2 * time.Minute}}); err != nil {
		t.Errorf("beside a guest that waits: %v", err)
	}
	var ended sync.WaitGroup
	ended.Go(func() {
		if _, err := large.Call(t.Context(), "t", nil, host.Env{"box": second}); err != nil {
			t.Error(err)
		}
	})
	<-second.inside
	if _, err := neighbour.Do(t.Context(), host.Request{Tool: "t", Limits: host.Limits{Wall: 2 * time.Minute}}); err != nil {
		t.Errorf("beside a guest that passed much: %v", err)
	}
	cancel()
	close(first.release)
	if err := <-cancelled; !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	close(second.release)
	ended.Wait()
}

// quick is a box that marks some of its functions as quick, although they are not.
type quick struct {
	*stuck
	names []string
}

func (q quick) Quick() []string { return q.names }

// opening waits in Open until it is released, even after the call has ended.
type opening struct{ quick }

func (o opening) Open(context.Context) (any, error) {
	close(o.inside)
	<-o.release
	return &box{}, nil
}

// TestQuick checks that a guest keeps its turn only in functions that a Go value marks as quick.
func TestQuick(t *testing.T) {
	for name, test := range map[string]struct {
		quick []string
		open  bool
		keeps bool
	}{
		"a method":                   {},
		"a quick method":             {quick: []string{"box.get"}, keeps: true},
		"a method beside a quick":    {quick: []string{"box.put", "get", "[method]box.get", "Box.get", ""}},
		"opening":                    {open: true},
		"quick opening":              {open: true, quick: []string{"get"}, keeps: true},
		"opening with quick methods": {open: true, quick: []string{"box.get"}},
	} {
		t.Run(name, func(t *testing.T) {
			held := newStuck()
			var c abi.Capability = quick{held, test.quick}
			if test.open {
				c = opening{quick{held, test.quick}}
			}
			h := newHost(t, host.Options{Running: 1, Limits: host.Limits{CPU: time.Minute}})
			waits, neighbour := guest{uses: "open get", call: `(call $get (local.get $box) (i32.const 256)) unreachable`}.load(t, h), guest{}.load(t, h)
			for _, c := range []*host.Component{waits, neighbour} {
				if _, err := c.Tools(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			var ended sync.WaitGroup
			ended.Go(func() { _, _ = waits.Call(t.Context(), "t", nil, host.Env{"box": c}) })
			<-held.inside
			wall := 2 * time.Minute
			if test.keeps {
				wall = 20 * time.Millisecond
			}
			_, err := neighbour.Do(t.Context(), host.Request{Tool: "t", Limits: host.Limits{Wall: wall}})
			limit, ok := errors.AsType[*host.LimitError](err)
			if kept := ok && limit.Limit == "wall"; kept != test.keeps || !kept && err != nil {
				t.Errorf("the turn was kept: %t, want %t (%v)", kept, test.keeps, err)
			}
			close(held.release)
			ended.Wait()
		})
	}
}

// counting is an Opener whose values count their Close calls.
type counting struct {
	box
	mu             sync.Mutex
	opened, closed int
}

func (c *counting) Open(context.Context) (any, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.opened++
	return &opened{parent: c}, nil
}

type opened struct {
	box
	parent *counting
}

func (o *opened) Split(context.Context) *opened {
	o.parent.mu.Lock()
	defer o.parent.mu.Unlock()
	o.parent.opened++
	return &opened{parent: o.parent}
}

func (o *opened) Close() error {
	o.parent.mu.Lock()
	defer o.parent.mu.Unlock()
	o.parent.closed++
	return nil
}

// TestNothingIsLeft has calls end in every way and checks that the values they opened were closed.
func TestNothingIsLeft(t *testing.T) {
	h := newHost(t, host.Options{Limits: host.Limits{CPU: 20 * time.Millisecond, Handles: 5}})
	for _, g := range []guest{
		{uses: "open", call: returns},
		{uses: "open drop", call: `(call $drop (local.get $box)) ` + returns},
		{uses: "open", call: `unreachable`},
		{uses: "open", call: `(loop $l (br $l)) unreachable`},
		{uses: "open", call: `(loop $l (call $open (local.get $env) (i32.const 1032) (i32.const 3) (i32.const 256)) (br $l)) unreachable`},
		{uses: "open panic", call: `(call $panic (local.get $box)) ` + returns},
		{uses: "open give", call: `(call $give (local.get $env) (i32.const 1032) (i32.const 3) (local.get $box) (i32.const 256)) ` + returns},
	} {
		c := g.load(t, h)
		counter := &counting{}
		for range 3 {
			_, _ = c.Call(t.Context(), "t", nil, host.Env{"box": counter})
		}
		if counter.opened != 3 || counter.closed != 3 {
			t.Errorf("%s: opened %d, closed %d", g.call, counter.opened, counter.closed)
		}
	}
}

// fragile is an Opener whose value panics in Close.
type fragile struct{ box }

func (*fragile) Open(context.Context) (any, error) { return &broken{}, nil }

type broken struct{ box }

func (*broken) Split(context.Context) *broken { return &broken{} }
func (*broken) Close() error                  { panic("cannot be closed") }

// TestPanicInClose checks that the other values are closed after one panics in Close, and that the panic is reported.
func TestPanicInClose(t *testing.T) {
	h := newHost(t, host.Options{})
	counter := &counting{}
	c := guest{uses: "open split", data: "two", call: `(drop (call $split (local.get $box)))
		(call $open (local.get $env) (i32.const 2048) (i32.const 3) (i32.const 256)) ` + returns}.load(t, h)
	_, err := c.Call(t.Context(), "t", nil, host.Env{"box": &fragile{}, "two": counter})
	if err == nil || strings.Count(err.Error(), "cannot be closed") != 2 {
		t.Errorf("got %v", err)
	}
	if counter.opened != 1 || counter.closed != 1 {
		t.Errorf("opened %d, closed %d", counter.opened, counter.closed)
	}
}

// TestNothingIsLostAtLimits has guests reach the handle limit with a value that a capability has just returned.
func TestNothingIsLostAtLimits(t *testing.T) {
	h := newHost(t, host.Options{Limits: host.Limits{Handles: 5}})
	for _, g := range []guest{
		{uses: "open split", call: `(loop $l (drop (call $split (local.get $box))) (br $l)) unreachable`},
		{uses: "open split give", call: `(call $give (local.get $env) (i32.const 1032) (i32.const 2) (call $split (local.get $box)) (i32.const 256)) unreachable`},
		// Each value goes into an env that is then dropped.
		{uses: "open split give subset drop-env", call: `(loop $l (call $subset (local.get $env) (i32.const 0) (i32.const 0) (i32.const 256))
			(local.set $i (i32.load (i32.const 260)))
			(call $give (local.get $i) (i32.const 1032) (i32.const 2) (call $split (local.get $box)) (i32.const 256))
			(call $drop-env (local.get $i)) (br $l)) unreachable`},
	} {
		counter := &counting{}
		env := host.Env{"box": counter, "2": &box{}, "3": &box{}, "4": &box{}, "5": &box{}}
		_, err := g.load(t, h).Call(t.Context(), "t", nil, env)
		if limit, ok := errors.AsType[*host.LimitError](err); !ok || limit.Limit != "handles" || limit.Value != "5" {
			t.Errorf("%s: got %v", g.call, err)
		}
		if counter.opened < 2 || counter.opened != counter.closed {
			t.Errorf("%s: opened %d, closed %d", g.call, counter.opened, counter.closed)
		}
	}
}

// TestExpensiveCallsLeaveNothing makes 1,000 calls and 100 that end at a limit, and compares the size of the process before
// and after.
func TestExpensiveCallsLeaveNothing(t *testing.T) {
	h := newHost(t, host.Options{Limits: host.Limits{Memory: 4 << 20, CPU: 10 * time.Millisecond, Handles: 100}, MaxMemory: 16 << 20, WarmInstances: 4})
	expensive := []*host.Component{
		guest{call: `(drop (memory.grow (i32.const 60))) (memory.fill (i32.const 65536) (i32.const 1) (i32.const 0x300000)) unreachable`}.load(t, h),
		spinner.load(t, h),
		guest{uses: "open", call: `(loop $l (call $open (local.get $env) (i32.const 1032) (i32.const 3) (i32.const 256)) (br $l)) unreachable`}.load(t, h),
		guest{uses: "open put", call: `(drop (memory.grow (i32.const 50))) (call $put (local.get $box) (i32.const 0) (i32.const 1000000) (i32.const 256)) ` + returns}.load(t, h),
		guest{call: `(drop (memory.grow (i32.const 50))) (call $ok (i32.const 0) (i32.const 3000000))`}.load(t, h),
	}
	cheap := guest{uses: "open get", call: `(call $get (local.get $box) (i32.const 256)) ` + returns}.load(t, h)
	round := func(many, few int) {
		var calls errgroup.Group
		calls.SetLimit(16)
		for k := range many + few {
			calls.Go(func() error {
				if k%((many+few)/few) == 0 {
					if _, err := expensive[k%len(expensive)].Call(t.Context(), "t", nil, host.Env{"box": &box{}}); err == nil {
						return errors.New("an expensive call was let through")
					}
					return nil
				}
				_, err := cheap.Do(t.Context(), host.Request{Tool: "t", Env: host.Env{"box": &box{}}, Limits: host.Limits{CPU: time.Minute}})
				return err
			})
		}
		if err := calls.Wait(); err != nil {
			t.Error(err)
		}
	}
	// The pool's slots and the threads' stacks stay, and it takes a few rounds until all are in use. A leak occurs in
	// every round.
	var sizes []int
	for range 5 {
		round(1000, 100)
		sizes = append(sizes, usagetest.Resident())
		if n := len(sizes); n > 2 && sizes[n-1] <= sizes[n-2]+sizes[n-2]/10 {
			return
		}
	}
	t.Errorf("the process grew by more than a tenth in each round, in KiB: %d", sizes)
}

// TestManyBytesAtOnce passes as many bytes as a call may, both ways, from 64 callers at once. Converting a byte takes the host 70
// bytes, so converting all at once would take 2.2 GB.
func TestManyBytesAtOnce(t *testing.T) {
	h := newHost(t, host.Options{Limits: host.Limits{CPU: time.Minute}})
	c := guest{uses: "open put fetch", call: `(drop (memory.grow (i32.const 8)))
		(call $put (local.get $box) (i32.const 0) (i32.const 262144) (i32.const 256))
		(call $fetch (local.get $box) (i32.const 262144) (i32.const 256)) ` + returns}.load(t, h)
	before := usagetest.Resident()
	var ended sync.WaitGroup
	for range 64 {
		ended.Go(func() {
			if _, err := c.Call(t.Context(), "t", nil, host.Env{"box": &box{}}); err != nil {
				t.Error(err)
			}
		})
	}
	ended.Wait()
	if peak := usagetest.Peak() - before; peak > 1<<20 {
		t.Errorf("the process grew by %d KiB", peak)
	}
}

// TestCheckTools compares a component's tools with the approved ones.
func TestCheckTools(t *testing.T) {
	h := newHost(t, host.Options{})
	c := guest{}.load(t, h)
	tools, err := c.Tools(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := c.CheckTools(t.Context(), tools); err != nil {
		t.Error(err)
	}
	changed := append([]abi.Definition{}, tools...)
	changed[0].Description = "harmless"
	var difference *host.DefinitionError
	for _, approved := range [][]abi.Definition{changed, nil, append(tools, abi.Definition{Name: "more", InputSchema: "{}"})} {
		if err := c.CheckTools(t.Context(), approved); !errors.As(err, &difference) {
			t.Errorf("approved %v: %v", approved, err)
		}
	}
	// Only approved tools can be called, with the approved schema.
	strict := append([]abi.Definition{}, tools...)
	strict[0].InputSchema = `{"required":["a"]}`
	var input *host.InputError
	if _, err := c.Do(t.Context(), host.Request{Tool: "t", Approved: strict}); !errors.As(err, &input) {
		t.Errorf("got %v", err)
	}
	var unknown *host.UnknownToolError
	if _, err := c.Do(t.Context(), host.Request{Tool: "t", Approved: []abi.Definition{}}); !errors.As(err, &unknown) {
		t.Errorf("got %v", err)
	}
}

// TestFreshInstance has a guest count its calls in its memory. The count never exceeds one.
func TestFreshInstance(t *testing.T) {
	h := newHost(t, host.Options{})
	c := guest{data: "0", call: `(i32.store8 (i32.const 2048) (i32.add (i32.load8_u (i32.const 2048)) (i32.const 1))) (call $ok (i32.const 2048) (i32.const 1))`}.load(t, h)
	for range 3 {
		if out, err := c.Call(t.Context(), "t", nil, nil); err != nil || string(out) != "1" {
			t.Errorf("got %s, %v", out, err)
		}
	}
}

// TestInstancesNeedMaps requests more live calls than the kernel has room for.
func TestInstancesNeedMaps(t *testing.T) {
	text, err := os.ReadFile("/proc/sys/vm/max_map_count")
	if err != nil {
		t.Skip("this kernel does not tell its limit")
	}
	var maps int
	if _, err := fmt.Sscan(string(text), &maps); err != nil {
		t.Fatal(err)
	}
	instances := maps/8 + 1
	if instances > 16_000 {
		t.Skip("its limit is above that of the address space")
	}
	if _, err := host.New(t.Context(), host.Options{Instances: instances}); err == nil || !strings.Contains(err.Error(), "sysctl -w vm.max_map_count=") {
		t.Errorf("%d instances: %v", instances, err)
	}
}
