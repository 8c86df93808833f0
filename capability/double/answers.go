package double

import (
	"bytes"
	"errors"
	"slices"
	"sync"
)

// Answers are given in order to successive operations of one name. A single answer is given to all. In JSON they are a list, or one answer.
type Answers[A any] struct {
	List   []A
	always bool
}

// UnmarshalJSON implements [json.Unmarshaler].
func (a *Answers[A]) UnmarshalJSON(raw []byte) error {
	if bytes.HasPrefix(raw, []byte("[")) {
		var list []*A
		err := Strict(raw, &list)
		if err == nil && slices.Contains(list, nil) {
			return errors.New("null, which is not an answer")
		}
		for _, one := range list {
			if one != nil {
				a.List = append(a.List, *one)
			}
		}
		return err
	}
	*a = Answers[A]{make([]A, 1), true}
	return Strict(raw, &a.List[0])
}

// Script gives the answers of a test to operations, by their names. It is safe for concurrent use.
type Script[A any] struct {
	answers map[string]Answers[A]

	mu   sync.Mutex
	used map[string]int
}

// NewScript returns a script, which keeps the map.
func NewScript[A any](answers map[string]Answers[A]) *Script[A] {
	return &Script[A]{answers: answers, used: map[string]int{}}
}

// Next returns the answer to the next operation of this name. If there is none, ok is false, and n is the number of the operation, or 0 if
// no operation of this name has answers.
func (s *Script[A]) Next(name string) (answer A, n int, ok bool) {
	of := s.answers[name]
	if len(of.List) > 0 && !of.always { // so that other names, of which there can be thousands, are not kept
		s.mu.Lock()
		n = s.used[name]
		s.used[name]++
		s.mu.Unlock()
	}
	if n < len(of.List) {
		return of.List[n], 0, true
	}
	if len(of.List) > 0 {
		n++
	}
	return answer, n, false
}
