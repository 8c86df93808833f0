package mcp

import (
	"crypto/rand"
	"slices"
	"sync"
	"time"
)

const (
	// keepFor is how long outputs and questions are kept.
	keepFor    = 10 * time.Minute
	maxKept    = 32 << 20  // bytes of outputs in all sessions of an agent
	maxAllKept = 128 << 20 // bytes of outputs of all agents
	maxAsking  = 16        // questions of a session
)

// shelf keeps the latest items under names that nobody can guess: as many as fit, and none for longer than keepFor.
type shelf[T any] struct {
	room    int
	cabinet *cabinet[T]

	items []item[T] // the oldest first
	used  int
}

// cabinet is what several shelves have room for together. When it is full, the fullest shelf loses its oldest items.
type cabinet[T any] struct {
	room int

	mu      sync.Mutex
	used    int
	shelves []*shelf[T]
}

func newCabinet[T any](room int) *cabinet[T] { return &cabinet[T]{room: room} }

// shelf returns a new shelf.
func (c *cabinet[T]) shelf(room int) *shelf[T] {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := &shelf[T]{room: room, cabinet: c}
	c.shelves = append(c.shelves, s)
	return s
}

// fullest returns the shelf with the most in it.
func (c *cabinet[T]) fullest() *shelf[T] {
	return slices.MaxFunc(c.shelves, func(a, b *shelf[T]) int { return a.used - b.used })
}

type item[T any] struct {
	name  string
	value T
	size  int
	until time.Time
}

// newShelf returns a shelf in a cabinet of its own.
func newShelf[T any](room int) *shelf[T] { return newCabinet[T](room).shelf(room) }

// put stores an item and returns its name, or "" if the item is larger than the shelf.
func (s *shelf[T]) put(value T, size int) string {
	if size > s.room {
		return ""
	}
	s.cabinet.mu.Lock()
	defer s.cabinet.mu.Unlock()
	now := time.Now()
	for len(s.items) > 0 && (s.used+size > s.room || now.After(s.items[0].until)) {
		s.drop(0)
	}
	for s.cabinet.used+size > s.cabinet.room {
		s.cabinet.fullest().drop(0)
	}
	name := rand.Text()
	s.items = append(s.items, item[T]{name, value, size, now.Add(keepFor)})
	s.used += size
	s.cabinet.used += size
	return name
}

// drop removes an item.
func (s *shelf[T]) drop(i int) {
	s.used -= s.items[i].size
	s.cabinet.used -= s.items[i].size
	s.items = slices.Delete(s.items, i, i+1)
}

// get returns the item of this name. With take, it also removes it.
func (s *shelf[T]) get(name string, take bool) (value T, ok bool) {
	s.cabinet.mu.Lock()
	defer s.cabinet.mu.Unlock()
	for i, found := range s.items {
		if found.name != name {
			continue
		}
		if time.Now().After(found.until) {
			return value, false
		}
		if take {
			s.drop(i)
		}
		return found.value, true
	}
	return value, false
}
