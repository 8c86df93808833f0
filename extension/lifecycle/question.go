package lifecycle

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/stilehost/stile/internal/printable"
	"github.com/stilehost/stile/internal/sqlite"
)

const (
	// MaxQuestion is how many bytes a question may have.
	MaxQuestion = 4 << 10
	// maxQuestions and maxAgentQuestions are how many questions wait at a time, of all agents and of one.
	maxQuestions, maxAgentQuestions = 256, 16
)

// Question is something that a person decides while a call waits. It is in memory: if the call or the process ends, so does the question.
type Question struct {
	ID int64
	// Of is who asks, in the form of a scope.
	Of string
	// Text is what code of that agent says, printable. Nobody has approved it.
	Text string
	// Asked is when.
	Asked time.Time
}

// QuestionError reports a question that cannot be asked, or an answer to none.
type QuestionError struct{ Reason string }

// Error implements error.
func (e *QuestionError) Error() string { return e.Reason }

// questions wait for a person.
type questions struct {
	mu      sync.Mutex
	last    int64
	open    map[int64]*asked
	clients map[string]int // how many an agent's clients ask their person
	changed chan struct{}  // closed when open changes; nil if nobody waits for that
}

// change is called with mu held.
func (q *questions) change() {
	if q.changed != nil {
		close(q.changed)
		q.changed = nil
	}
}

type asked struct {
	Question
	once sync.Once
	done func(approved bool, err error)
	stop func() bool // stops the end of the call from ending the question
}

func (a *asked) end(approved bool, err error) {
	a.once.Do(func() { a.done(approved, err) })
}

// Ask asks a person whether a call may go on, and calls done once with the answer, or with the cause of the end of ctx. Nothing but memory
// waits with the question. [Manager.Answer] answers it. The error is a *[QuestionError] if the question cannot be asked.
func (m *Manager) Ask(ctx context.Context, v Viewer, text string, done func(approved bool, err error)) error {
	switch {
	case text == "":
		return &QuestionError{"the question is empty"}
	case len(text) > MaxQuestion:
		return &QuestionError{fmt.Sprintf("the question has %d bytes; at most %d", len(text), MaxQuestion)}
	case !utf8.ValidString(text):
		return &QuestionError{"the question is not UTF-8"}
	}
	q := &m.questions
	q.mu.Lock()
	defer q.mu.Unlock()
	if err := q.room(v.String()); err != nil {
		return err
	}
	q.last++
	a := &asked{Question: Question{q.last, v.String(), printable.Text(text), m.options.Now()}, done: done}
	if q.open == nil {
		q.open = map[int64]*asked{}
	}
	q.open[a.ID] = a
	q.change()
	a.stop = context.AfterFunc(ctx, func() {
		q.take(a.ID)
		a.end(false, context.Cause(ctx))
	})
	return nil
}

// room returns an error if an agent can ask no more. It is called with mu held.
func (q *questions) room(of string) error {
	own, all := q.clients[of], len(q.open)
	for _, a := range q.open {
		if a.Of == of {
			own++
		}
	}
	for _, n := range q.clients {
		all += n
	}
	if own >= maxAgentQuestions || all >= maxQuestions {
		return &QuestionError{fmt.Sprintf("too many questions wait for a person: an agent can have %d at once, and all have %d", maxAgentQuestions, maxQuestions)}
	}
	return nil
}

// Asking counts a question that the client of an agent asks, so that it has no more at once than with [Manager.Ask]. answered ends that. The
// error is a *[QuestionError].
func (m *Manager) Asking(v Viewer) (answered func(), err error) {
	q, of := &m.questions, v.String()
	q.mu.Lock()
	defer q.mu.Unlock()
	if err := q.room(of); err != nil {
		return nil, err
	}
	if q.clients == nil {
		q.clients = map[string]int{}
	}
	q.clients[of]++
	return func() {
		q.mu.Lock()
		defer q.mu.Unlock()
		if q.clients[of]--; q.clients[of] == 0 {
			delete(q.clients, of)
		}
	}, nil
}

// take removes a question. It is nil if there is none.
func (q *questions) take(id int64) *asked {
	q.mu.Lock()
	defer q.mu.Unlock()
	a := q.open[id]
	if a != nil {
		delete(q.open, id)
		q.change()
	}
	return a
}

// Questions returns the questions that wait, the oldest first, and a channel that is closed when there are others.
func (m *Manager) Questions() ([]Question, <-chan struct{}) {
	q := &m.questions
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.changed == nil {
		q.changed = make(chan struct{})
	}
	all := make([]Question, 0, len(q.open))
	for _, id := range slices.Sorted(maps.Keys(q.open)) {
		all = append(all, q.open[id].Question)
	}
	return all, q.changed
}

// Answer answers a question for a person, and writes the answer into the audit log first. by and via are as in [Decision]. The error is a
// *[QuestionError] if the question does not wait any more.
func (m *Manager) Answer(ctx context.Context, id int64, approved bool, by, via string) error {
	a := m.questions.take(id)
	if a == nil || !a.stop() {
		return &QuestionError{fmt.Sprintf("question %d does not wait any more", id)}
	}
	outcome := "no"
	if approved {
		outcome = "yes"
	}
	err := m.db.Update(ctx, func(c *sqlite.Conn) error {
		return audit(ctx, c, m.options.Now(), Entry{Kind: "answer", By: by, Via: via, Scope: a.Of, Outcome: outcome, Reason: a.Text})
	})
	if err != nil { // nobody goes on with what is not written down
		err = fmt.Errorf("write down the answer: %w", err)
	}
	a.end(approved && err == nil, err)
	return err
}

// Gave writes into the audit log that a person gave what a call of a tool lacked, by the names of properties: not what it was, because
// recordings keep that. Of d, By, Via and Digest count.
func (m *Manager) Gave(ctx context.Context, v Viewer, tool string, names []string, d Decision) error {
	err := m.db.Update(ctx, func(c *sqlite.Conn) error {
		return audit(ctx, c, m.options.Now(), Entry{Kind: "input", By: d.By, Via: d.Via, Scope: v.String(), Tool: tool, Digest: d.Digest, Reason: strings.Join(names, ", ")})
	})
	if err != nil { // nobody goes on with what is not written down
		return fmt.Errorf("write down the answer: %w", err)
	}
	return nil
}
