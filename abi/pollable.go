package abi

import (
	"container/list"
	"context"
	"sync"
)

// Pollable is the Go value of the resource `pollable` of stile:capability/poll: something that a guest can wait for. It becomes ready
// once, and stays ready. The zero value is not ready. It is safe for concurrent use. The host closes those that guests got.
type Pollable struct {
	mu      sync.Mutex
	ready   bool
	done    chan struct{} // nil until Done
	notify  list.List     // of func(), to call; not used once ready
	dropped func()        // nil once called
	wait    *Wait
}

// IsPollable reports whether t is a handle of a pollable, of the version that the host implements.
func (t *Type) IsPollable() bool {
	return t.Resource != nil && t.Resource.Name == "pollable" && t.Resource.Interface.Name == PollInterface
}

// Ready returns a pollable that is ready from the start.
func Ready() *Pollable { return &Pollable{ready: true} }

// NewPollable returns a pollable that is not ready and that nobody else gets. dropped is called once, when the guest drops its handle or
// its call ends.
func NewPollable(dropped func()) *Pollable { return &Pollable{dropped: dropped} }

// Lasts sets what makes the pollable ready, so that a durable call that waits for it can sleep. It returns the pollable, and comes before anybody
// else has it.
func (p *Pollable) Lasts(w Wait) *Pollable {
	p.wait = &w
	return p
}

// Lasting returns what Lasts was given. It reports false without it.
func (p *Pollable) Lasting() (w Wait, ok bool) {
	if p.wait == nil {
		return Wait{}, false
	}
	return *p.wait, true
}

// Close says that nobody can wait for the pollable any more. It always returns nil.
func (p *Pollable) Close() error {
	p.mu.Lock()
	dropped := p.dropped
	p.dropped = nil
	p.mu.Unlock()
	if dropped != nil {
		dropped()
	}
	return nil
}

// SetReady makes the pollable ready. Doing it again does nothing.
func (p *Pollable) SetReady() {
	p.mu.Lock()
	was := p.ready
	if !was && p.done != nil {
		close(p.done)
	}
	p.ready = true
	p.mu.Unlock()
	if was {
		return
	}
	for e := p.notify.Front(); e != nil; e = e.Next() {
		e.Value.(func())()
	}
	p.notify = list.List{}
}

// IsReady reports whether the pollable is ready.
func (p *Pollable) IsReady() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.ready
}

// OnReady calls f once, when the pollable is or becomes ready, on the goroutine that makes it ready. f must return soon. stop ends
// this, and reports whether it was in time: whether f has not been called and will not be.
func (p *Pollable) OnReady(f func()) (stop func() bool) {
	p.mu.Lock()
	var at *list.Element
	if !p.ready {
		at = p.notify.PushBack(f)
	}
	p.mu.Unlock()
	if at == nil {
		f()
	}
	return func() bool {
		p.mu.Lock()
		defer p.mu.Unlock()
		if at == nil || p.ready {
			return false
		}
		p.notify.Remove(at)
		at = nil
		return true
	}
}

// Wait returns when the pollable is ready, or with ctx's error if ctx ends first.
func (p *Pollable) Wait(ctx context.Context) error {
	select {
	case <-p.Done():
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Done returns a channel that is closed when the pollable is ready.
func (p *Pollable) Done() <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.done == nil {
		p.done = make(chan struct{})
		if p.ready {
			close(p.done)
		}
	}
	return p.done
}
