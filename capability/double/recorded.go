package double

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/stilehost/stile/abi"
)

// MaxRecorded is how many bytes a test that is made of a recording may have: a part of what a manifest may.
const MaxRecorded = 128 << 10

// Recording is a recorded call of which a test is made.
type Recording struct {
	// Time is what the clocks of the call showed; nil as long as it asked none.
	Time *time.Time
}

// Learner stands for a handle of a recorded call, and learns from the operations on it what a test has to answer.
type Learner interface {
	// Learn is given an operation. If its value is a handle, made stands for it. An error says why no test can answer the
	// operation.
	Learn(o Operation) (made Learner, err error)
}

// Answerer is the Learner of a binding. All handles that a call got from one binding have the same.
type Answerer interface {
	Learner
	// Answers are what a test says of the binding, to encode as JSON; nil for nothing. An error is a *[StepError] if it is
	// about one operation.
	Answers() (any, error)
}

// Operation is an operation of a recorded call.
type Operation struct {
	// At is its place among the operations of the call.
	At int
	// Method is the WIT name without that of the resource: "compare-and-set".
	Method string
	// Args are those after self.
	Args []abi.Value
	// Value is what it gave. Instead, Failed is the case of an error that is a variant, such as `error`, or else "error".
	Value  abi.Value
	Failed string
}

// StepError is an error of an earlier operation.
type StepError struct {
	At  int
	Err error
}

// Error implements error.
func (e *StepError) Error() string { return e.Err.Error() }

// Unwrap returns Err.
func (e *StepError) Unwrap() error { return e.Err }

// ErrUnanswered is of what a test has no answers for.
var ErrUnanswered = errors.New("a test cannot give the answer that was recorded")

// Indifferent is the Learner of a binding whose answers follow from what the call does, so that a test needs none.
var Indifferent Answerer = indifferent{}

type indifferent struct{}

func (i indifferent) Learn(Operation) (Learner, error) { return i, nil }
func (indifferent) Answers() (any, error)              { return nil, nil }

// NewIndifferent returns [Indifferent] for a binding.
func NewIndifferent(*Recording, string) Answerer { return Indifferent }

// Entries are what a store held, by keys or paths: at first, as far as the call saw it, and now.
type Entries struct {
	binding string
	first   map[string]string
	now     map[string]Entry
	// partly are the operations that depended on an entry of which the call saw nothing whole so far.
	partly map[string]int
}

// Entry is what is known of an entry: that it is absent, its text, or, after it was changed in place, only that it is there.
type Entry struct {
	Absent, Changed bool
	Text            string
}

// NewEntries returns the store of a binding, of which nothing is known.
func NewEntries(binding string) *Entries {
	return &Entries{binding: binding, first: map[string]string{}, now: map[string]Entry{}, partly: map[string]int{}}
}

var (
	// ErrPartly is of an entry that was changed before all of it was read.
	ErrPartly = errors.New("the call depended on content that it did not read completely before it wrote")
	// ErrOther is of an entry that is not what the call left.
	ErrOther = errors.New("it differs from what the call wrote: something else changed it in the meantime")
)

// Now is what is known of an entry; seen is false for nothing.
func (s *Entries) Now(name string) (e Entry, seen bool) {
	e, seen = s.now[name]
	return e, seen
}

// Put is what the call made of an entry.
func (s *Entries) Put(name string, e Entry) { s.now[name] = e }

// See learns what an entry holds, nil for none.
func (s *Entries) See(name string, text *string) error {
	e := Entry{Absent: text == nil}
	if text != nil {
		e.Text = *text
	}
	before, seen := s.now[name]
	switch {
	case !seen:
		if text != nil {
			s.first[name] = *text
		}
		delete(s.partly, name)
	case before.Changed && text != nil:
	case before != e:
		return ErrOther
	}
	s.now[name] = e
	return nil
}

// Depend notes that an operation depended on an entry.
func (s *Entries) Depend(at int, name string) {
	if _, seen := s.now[name]; !seen {
		s.partly[name] = at
	}
}

// Remove learns that an entry was there and is not any more. Its text does not matter, because nobody saw it.
func (s *Entries) Remove(name string) error {
	before, seen := s.now[name]
	if before.Absent {
		return ErrOther
	}
	if !seen {
		s.first[name] = ""
	}
	s.now[name] = Entry{Absent: true}
	return nil
}

// Answers are the entries that the call found.
func (s *Entries) Answers() (any, error) {
	for _, at := range slices.Sorted(maps.Values(s.partly)) {
		return nil, &StepError{at, ErrPartly}
	}
	if len(s.first) > MaxAnswers {
		return nil, fmt.Errorf("the call read %d entries of %s, and a test gives at most %d", len(s.first), Quoted(s.binding), MaxAnswers)
	}
	return s.first, nil
}
