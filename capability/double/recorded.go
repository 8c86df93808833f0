package double

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/stilehost/stile/abi"
)

// MaxRecorded is the largest size, in bytes, of a test that is made from a recording: a part of a manifest's.
const MaxRecorded = 128 << 10

// Recording is a recorded call that is turned into a test.
type Recording struct {
	// Time is the first time that the call read from a clock. It is nil if the call read none.
	Time *time.Time
}

// Learner represents a handle of a recorded call. It learns from the operations on the handle what a test has to answer.
type Learner interface {
	// Learn learns from an operation. If the operation's value is a handle, made represents it. An error says why no test can
	// answer the operation.
	Learn(o Operation) (made Learner, err error)
}

// Answerer is the Learner of a binding. All handles that a call got from one binding share it.
type Answerer interface {
	Learner
	// Answers returns the test's answers for the binding, to encode as JSON, or nil for none. An error is a *[StepError] if it
	// concerns one operation.
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
	// Value is its result. If it failed, Failed is set instead: to the case
	// of the error if that is a variant, such as `error`, or else to "error".
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

// ErrUnanswered is the error for an operation that a test cannot answer.
var ErrUnanswered = errors.New("a test cannot give the answer that was recorded")

// Indifferent is the Learner of a binding whose answers follow from what the call does, so that a test needs none.
var Indifferent Answerer = indifferent{}

type indifferent struct{}

func (i indifferent) Learn(Operation) (Learner, error) { return i, nil }
func (indifferent) Answers() (any, error)              { return nil, nil }

// NewIndifferent returns [Indifferent] for a binding.
func NewIndifferent(*Recording, string) Answerer { return Indifferent }

// Entries are the contents of a store by keys or paths: at first, as far as the call saw them, and now.
type Entries struct {
	binding string
	first   map[string]string
	now     map[string]Entry
	// partly holds the operations that depended on an entry before the call saw all of it.
	partly map[string]int
}

// Entry is what is known about an entry: that it is absent, its text, or, after a change in place, only that it exists.
type Entry struct {
	Absent, Changed bool
	Text            string
}

// NewEntries returns the entries of a binding's store, with nothing known about them.
func NewEntries(binding string) *Entries {
	return &Entries{binding: binding, first: map[string]string{}, now: map[string]Entry{}, partly: map[string]int{}}
}

var (
	// ErrPartly is the error for an entry that was changed before all of it was read.
	ErrPartly = errors.New("the call depended on content that it did not read completely before it wrote")
	// ErrOther is the error for an entry that something else changed after the call wrote it.
	ErrOther = errors.New("it differs from what the call wrote: something else changed it in the meantime")
)

// Now returns what is known about an entry. seen is false if nothing is.
func (s *Entries) Now(name string) (e Entry, seen bool) {
	e, seen = s.now[name]
	return e, seen
}

// Put records the new state of an entry that the call changed.
func (s *Entries) Put(name string, e Entry) { s.now[name] = e }

// See records the content of an entry, or nil if there is no entry.
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

// Depend records that an operation depended on an entry.
func (s *Entries) Depend(at int, name string) {
	if _, seen := s.now[name]; !seen {
		s.partly[name] = at
	}
}

// Remove records that an existing entry was removed. Its text does not matter, because the call did not see it.
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

// Answers returns the entries that the call found.
func (s *Entries) Answers() (any, error) {
	for _, at := range slices.Sorted(maps.Values(s.partly)) {
		return nil, &StepError{at, ErrPartly}
	}
	if len(s.first) > MaxAnswers {
		return nil, fmt.Errorf("the call read %d entries of %s, and a test gives at most %d", len(s.first), Quoted(s.binding), MaxAnswers)
	}
	return s.first, nil
}
