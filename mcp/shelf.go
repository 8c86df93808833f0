package mcp

import (
	"crypto/rand"
	"sync"
	"time"
)

const (
	// keepFor is how long outputs and questions are kept.
	keepFor   = 10 * time.Minute
	maxKept   = 32 << 20 // bytes of outputs in all sessions of an agent
	maxAsking = 16       // questions of a session
)

// shelf keeps the latest items under names that nobody can guess: as many as fit, and none for longer than keepFor.
type shelf[T any] struct {
	room int

	mu    sync.Mutex
	items []item[T] // the oldest first
	used  int
}

type item[T any] struct {
	name  string
	value T
	size  int
	until time.Time
}

func newShelf[T any](room int) *shelf[T] { return &shelf[T]{room: room} }

// put stores an item and returns its name, or "" if the item is larger than the shelf.
func (s *shelf[T]) put(value T, size int) string {
	if size > s.room {
		return ""
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	for len(s.items) > 0 && (s.used+size > s.room || now.After(s.items[0].until)) {
		s.used -= s.items[0].size
		s.items[0] = item[T]{} // so that it can be collected
		s.items = s.items[1:]
	}
	name := rand.Text()
	s.items = append(s.items, item[T]{name, value, size, now.Add(keepFor)})
	s.used += size
	return name
}

// get returns the item of this name. With take, it also removes it.
func (s *shelf[T]) get(name string, take bool) (value T, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, found := range s.items {
		if found.name != name {
			continue
		}
		if time.Now().After(found.until) {
			return value, false
		}
		if take {
			s.used -= found.size
			s.items = append(s.items[:i], s.items[i+1:]...)
		}
		return found.value, true
	}
	return value, false
}
