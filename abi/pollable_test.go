package abi_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stilehost/stile/abi"
)

func TestPollable(t *testing.T) {
	var p abi.Pollable
	var told, stopped, late int
	p.OnReady(func() { told++ })
	p.OnReady(func() { told++ })
	stop := p.OnReady(func() { stopped++ })
	equal(t, true, stop())
	equal(t, false, stop())
	equal(t, false, p.IsReady())
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	equal(t, context.Canceled, p.Wait(ctx))
	select {
	case <-p.Done():
		t.Fatal("done before it was ready")
	default:
	}
	p.SetReady()
	p.SetReady()
	equal(t, nil, p.Wait(t.Context()))
	stop = p.OnReady(func() { late++ })
	equal(t, false, stop())
	equal(t, []int{2, 0, 1}, []int{told, stopped, late})
	equal(t, true, p.IsReady())
	<-abi.Ready().Done()
}

// TestPollableInRaces has many wait, give up and make a pollable ready at once: each is told once, or was in time to give up.
func TestPollableInRaces(t *testing.T) {
	for range 200 {
		var p abi.Pollable
		var all sync.WaitGroup
		for i := range 8 {
			all.Go(func() {
				var told atomic.Int32
				stop := p.OnReady(func() { told.Add(1) })
				if i%2 == 0 {
					p.SetReady()
				}
				inTime := i%2 != 0 && stop()
				if !inTime {
					<-p.Done()
				}
				if n := told.Load(); inTime && n != 0 || n > 1 {
					t.Errorf("told %d times; in time: %v", n, inTime)
				}
			})
		}
		all.Wait()
	}
}
