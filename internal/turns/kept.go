package turns

import (
	"context"
	"slices"
	"sync"
)

// Kept are places whose holders keep them while they do nothing, as long as nobody else wants one. It is safe for concurrent use.
//
// When users wait, holders that are idle end. Of those, the user with the most places gives up the one that has been idle for the longest
// time. Users take turns to wait, as for [Places].
type Kept struct {
	places *Places

	mu      sync.Mutex
	free    int
	waiting int            // requests for a place
	ending  int            // holders that were told to end, and still have a place
	held    map[string]int // places of each user
	idle    []*Seat        // the one that has been idle for the longest time first
}

// NewKept returns n places.
func NewKept(n int) *Kept { return &Kept{places: New(n), free: n, held: map[string]int{}} }

// Seat is a place that somebody holds. Its methods do nothing without one. It is safe for concurrent use.
type Seat struct {
	of    *Kept
	user  string
	end   func() bool // while it is idle
	state seatState   // guarded by of.mu
	again bool        // it is idle once more if end, which was called, reports false
}

type seatState int

const (
	seatBusy seatState = iota
	seatIdle
	seatEnding // end was called
	seatGiven
)

// Take waits for a place, for the user of ctx. If ctx ends first, Take returns its cause.
func (k *Kept) Take(ctx context.Context) (*Seat, error) {
	k.mu.Lock()
	k.waiting++
	k.ask()
	k.mu.Unlock()
	err := k.places.Take(ctx)
	k.mu.Lock()
	defer k.mu.Unlock()
	k.waiting--
	if err != nil {
		return nil, err
	}
	k.free--
	s := &Seat{of: k, user: User(ctx)}
	k.held[s.user]++
	return s, nil
}

// Idle says that the holder does nothing from now on. If somebody wants the place, end is called on a goroutine of its own. It either reports
// true, and then the place is given back, or false, if the holder is at work again.
func (s *Seat) Idle(end func() bool) {
	if s == nil {
		return
	}
	k := s.of
	k.mu.Lock()
	defer k.mu.Unlock()
	switch s.state {
	case seatBusy:
		k.rest(s, end)
		k.ask()
	case seatEnding:
		s.end, s.again = end, true
	case seatIdle, seatGiven:
	}
}

// Busy says that the holder is at work again. It reports false if the holder was told to end before.
func (s *Seat) Busy() bool {
	if s == nil {
		return true
	}
	s.of.mu.Lock()
	defer s.of.mu.Unlock()
	s.again = false
	if s.state == seatIdle {
		s.of.rouse(s)
		s.state = seatBusy
	}
	return s.state == seatBusy
}

// Give gives the place back. Giving it again does nothing.
func (s *Seat) Give() {
	if s == nil {
		return
	}
	k := s.of
	k.mu.Lock()
	defer k.mu.Unlock()
	switch s.state {
	case seatGiven:
		return
	case seatIdle:
		k.rouse(s)
	case seatEnding:
		k.ending--
	case seatBusy:
	}
	s.state = seatGiven
	k.free++
	if k.held[s.user]--; k.held[s.user] == 0 {
		delete(k.held, s.user)
	}
	k.places.Give()
}

// rest adds a holder to those that are idle. The caller holds k.mu.
func (k *Kept) rest(s *Seat, end func() bool) {
	s.state, s.end, s.again = seatIdle, end, false
	k.idle = append(k.idle, s)
}

// rouse takes a holder out of those that are idle. The caller holds k.mu.
func (k *Kept) rouse(s *Seat) {
	k.idle = slices.DeleteFunc(k.idle, func(other *Seat) bool { return other == s })
}

// ask has as many idle holders end as are wanted. The caller holds k.mu.
func (k *Kept) ask() {
	for k.waiting > k.free+k.ending && len(k.idle) > 0 {
		s := k.idle[0]
		for _, other := range k.idle[1:] {
			if k.held[other.user] > k.held[s.user] {
				s = other
			}
		}
		k.rouse(s)
		s.state = seatEnding
		k.ending++
		go func(end func() bool) {
			if end() {
				return
			}
			k.mu.Lock()
			defer k.mu.Unlock()
			if s.state == seatEnding {
				s.state = seatBusy
				k.ending--
				if s.again {
					k.rest(s, s.end)
				}
				k.ask()
			}
		}(s.end)
	}
}
