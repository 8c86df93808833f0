package clock

import (
	"errors"
	"math"
	"reflect"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/capabilities/internal/captest"
	"github.com/stilehost/stile/capability/double"
	"github.com/stilehost/stile/wit"
)

var _ abi.Opener = (*Clock)(nil)

func open(t *testing.T, c *Clock) *Running {
	t.Helper()
	v, err := c.Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	r := v.(*Running)
	t.Cleanup(func() { _ = r.Close() })
	return r
}

func subscribe(t *testing.T, r *Running, d time.Duration) *abi.Pollable {
	t.Helper()
	p, err := r.Subscribe(t.Context(), uint64(d))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestMatchesWIT(t *testing.T) {
	captest.Implements(t, wit.Capability(), Interface, nil, reflect.TypeFor[*Running]())
}

func TestSystem(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := open(t, System())
		if got, want := r.Now(t.Context()), uint64(time.Now().UnixMilli()); got != want {
			t.Errorf("now: got %d, want %d", got, want)
		}
		second, minute := subscribe(t, r, time.Second), subscribe(t, r, time.Minute)
		if !subscribe(t, r, 0).IsReady() {
			t.Error("a wait of 0 is not over")
		}
		if second.IsReady() || minute.IsReady() {
			t.Error("ready too early")
		}
		<-second.Done()
		if got, want := r.Monotonic(t.Context()), uint64(time.Second); got != want {
			t.Errorf("monotonic: got %d, want %d", got, want)
		}
		if minute.IsReady() {
			t.Error("ready too early")
		}
		if got := open(t, System()).Monotonic(t.Context()); got != 0 {
			t.Errorf("monotonic of a second call starts at %d", got)
		}
	})
}

func TestCloseStopsTimers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := open(t, System())
		p := subscribe(t, r, time.Second)
		if err := errors.Join(r.Close(), r.Close()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Hour) // the bubble's time, not ours
		if p.IsReady() {
			t.Error("a timer fired after Close")
		}
		if _, err := r.Subscribe(t.Context(), 1); !errors.Is(err, abi.ErrRevoked) {
			t.Errorf("subscribe after Close: %v", err)
		}
	})
}

func TestTimersAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := open(t, System())
		for range 2 * double.MaxWaits { // a guest can drop them
			if err := subscribe(t, r, time.Hour).Close(); err != nil {
				t.Fatal(err)
			}
		}
		for range double.MaxWaits {
			subscribe(t, r, time.Hour)
		}
		if _, err := r.Subscribe(t.Context(), uint64(time.Hour)); !errors.Is(err, abi.ErrExhausted) {
			t.Fatalf("one timer too many: %v", err)
		}
		for _, free := range []uint64{0, math.MaxUint64, math.MaxInt64 + 1} { // these need no timer
			if _, err := r.Subscribe(t.Context(), free); err != nil {
				t.Error(err)
			}
		}
		time.Sleep(2 * time.Hour)
		if !subscribe(t, r, 0).IsReady() || subscribe(t, r, math.MaxInt64).IsReady() {
			t.Error("timers that fired are still counted")
		}
	})
}

func TestFixed(t *testing.T) {
	for _, tt := range []struct {
		at   time.Time
		want uint64
	}{
		{time.Date(2026, 1, 2, 3, 4, 5, 6e6, time.UTC), 1767323045006},
		{time.Unix(0, 0), 0},
		{time.Date(1900, 1, 1, 0, 0, 0, 0, time.UTC), 0},
	} {
		r := open(t, Fixed(tt.at))
		if got := r.Now(t.Context()); got != tt.want {
			t.Errorf("%v: now %d, want %d", tt.at, got, tt.want)
		}
		if !subscribe(t, r, 1000*time.Hour).IsReady() || r.Monotonic(t.Context()) != 0 {
			t.Errorf("%v: a fixed clock moved or waits", tt.at)
		}
	}
}

func TestConcurrentUse(t *testing.T) {
	r := open(t, System())
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for i := range 100 {
				p, err := r.Subscribe(t.Context(), uint64(i)*1000)
				if err != nil {
					return
				}
				<-p.Done()
			}
		})
	}
	wg.Wait()
}
