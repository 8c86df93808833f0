package durable

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/stilehost/stile/host"
	"github.com/stilehost/stile/internal/printable"
	"github.com/stilehost/stile/internal/sqlite"
)

// Retry says when a run whose call failed begins it again, from its start: as another attempt of the same run, with its key and its deadline. The
// zero value is one attempt.
type Retry struct {
	// Attempts is how many there are in all, at most [MaxAttempts].
	Attempts int `json:"attempts,omitempty"`
	// Delay is the time between the first two, up to 30 days. Default: 1 s.
	Delay time.Duration `json:"delay,omitempty"`
	// Factor is how many times longer each further delay is, from 1 to 100. Default: 2.
	Factor float64 `json:"factor,omitempty"`
	// Maximum is the longest delay. Default: 1 h, or Delay if that is longer.
	Maximum time.Duration `json:"maximum,omitempty"`
	// On are the outcomes that are retried, of [RetryOutcomes]. Default: "failed".
	On []string `json:"on,omitempty"`
}

// MaxAttempts bounds [Retry.Attempts].
const MaxAttempts = 100

// maxRetryDelay bounds the delays of a [Retry].
const maxRetryDelay = DefaultDeadline

// RetryOutcomes returns the outcomes that can be retried: "failed" (the tool threw an error), "trap", "limit" (other than the deadline), and
// "interrupted". An attempt is interrupted if it failed after an operation of which nobody knows whether it happened: to begin again could do it twice, so it is not enough that
// it "failed". Everything else would end in the same way, or is what somebody decided.
func RetryOutcomes() []string { return []string{"failed", "interrupted", "limit", "trap"} }

// Check returns what is wrong with the policy.
func (r Retry) Check() error {
	switch {
	case r.Attempts < 0 || r.Attempts > MaxAttempts:
		return fmt.Errorf("attempts: %d is not from 1 to %d", r.Attempts, MaxAttempts)
	case r.Delay < 0 || r.Delay > maxRetryDelay:
		return fmt.Errorf("delay: %v is not from 0 to %v", r.Delay, maxRetryDelay)
	case r.Maximum < 0 || r.Maximum > maxRetryDelay:
		return fmt.Errorf("maximum: %v is not from 0 to %v", r.Maximum, maxRetryDelay)
	case r.Factor != 0 && !(r.Factor >= 1 && r.Factor <= 100): // or not a number
		return fmt.Errorf("factor: %v is not from 1 to 100", r.Factor)
	}
	for _, o := range r.On {
		if !slices.Contains(RetryOutcomes(), o) {
			return fmt.Errorf("on: %q is not retried; these can be: %s", printable.Short(o, 64), strings.Join(RetryOutcomes(), ", "))
		}
	}
	return nil
}

// after returns how long the run waits after an attempt that ended in this way, and whether there is another.
func (r Retry) after(attempt uint64, e ended) (delay time.Duration, again bool) {
	on := r.On
	if len(on) == 0 {
		on = []string{"failed"}
	}
	kind := e.Outcome.Kind
	if attempt >= uint64(max(r.Attempts, 1)) || !slices.Contains(on, kind) || e.Usage.Interrupted > 0 && !slices.Contains(on, "interrupted") {
		return 0, false
	}
	delay = cmp.Or(r.Delay, time.Second)
	longest := cmp.Or(r.Maximum, max(time.Hour, delay))
	factor := cmp.Or(r.Factor, 2)
	return time.Duration(min(float64(delay)*math.Pow(factor, float64(attempt-1)), float64(longest))), true
}

// Attempt is an earlier attempt of a run.
type Attempt struct {
	Number  int          `json:"number"` // counted from 1
	Ended   time.Time    `json:"ended"`
	Outcome host.Outcome `json:"outcome"`
}

// firstOf is the number of an attempt's first operation: no two attempts have one in common.
func firstOf(attempt uint64) uint64 { return (attempt - 1) << 32 }

// again writes down that an attempt of a run has failed, and that it begins again after the delay. An empty snapshot stands for that: what comes after it is bound to it.
func (r *Runs) again(ctx context.Context, c *sqlite.Conn, a *active, e ended, at time.Time, k cuts) error {
	if err := r.keepHistory(ctx, c, a.id, k); err != nil {
		return err
	}
	if err := r.keepAttempt(ctx, c, a.id, a.name, a.attempt, e, r.now()); err != nil {
		return err
	}
	if err := r.endChildren(ctx, c, a.id, true, nil); err != nil {
		return err
	}
	for _, query := range []string{ // the next attempt waits for other runs, if for any
		`DELETE FROM awaited WHERE waiter = ?`,
		`DELETE FROM message WHERE run = ? AND mailbox GLOB 'run:*'`,
		`UPDATE run SET listens = 0 WHERE id = ?`,
	} {
		if _, err := c.Exec(ctx, query, a.id); err != nil {
			return err
		}
	}
	a.attempt++
	a.journal.operations = 0
	a.listening.Store(false)
	return r.lay(ctx, c, a, &host.AsleepError{Waits: waitUntil(at)})
}

// keepAttempt writes down how an attempt ended.
func (r *Runs) keepAttempt(ctx context.Context, c *sqlite.Conn, id int64, name string, attempt uint64, e ended, at time.Time) error {
	e.Outcome.Message, e.Outcome.Stack = printable.Short(e.Outcome.Message, 4<<10), ""
	text, err := json.Marshal(Attempt{Number: int(attempt), Ended: at.UTC(), Outcome: e.Outcome})
	if err != nil {
		return fmt.Errorf("write an attempt down: %w", err)
	}
	_, err = c.Exec(ctx, `INSERT OR REPLACE INTO attempt VALUES (?, ?, ?)`, id, attempt, r.sealer.seal(place{run: name, kind: "attempt", n: int64(attempt)}, text))
	return err
}

// RetryError reports a run of which there can be no other attempt.
type RetryError struct{ Run, Reason string }

func (e *RetryError) Error() string {
	return fmt.Sprintf("run %s cannot begin again: %s; start the tool again", e.Run, e.Reason)
}

// anew has a run that failed or was cancelled begin another attempt.
func (r *Runs) anew(ctx context.Context, c *sqlite.Conn, w row) error {
	s, err := r.spec(w)
	if err != nil {
		return &RetryError{w.name, err.Error()}
	}
	var body []byte
	if err := c.Row(ctx, `SELECT body FROM outcome WHERE run = ?`, w.id).Scan(&body); err != nil && !errors.Is(err, sql.ErrNoRows) {
		return err
	}
	h, whole, err := r.headIn(ctx, c, w)
	if err != nil {
		return err
	}
	var e ended
	text, err := r.sealer.open(place{run: w.name, kind: "outcome"}, body)
	if err == nil {
		err = json.Unmarshal(text, &e)
	}
	if err == nil && !whole {
		err = errDamaged
	}
	switch {
	case err != nil: // without the number, operations could be taken for those of an earlier attempt
		return &RetryError{w.name, "how often it began cannot be read: " + err.Error()}
	case h.attempt >= MaxAttempts:
		return &RetryError{w.name, fmt.Sprintf("it has begun %d times", MaxAttempts)}
	}
	if err := r.keepAttempt(ctx, c, w.id, w.name, h.attempt, e, timeOf(w.changed)); err != nil {
		return err
	}
	snapshot := r.sealer.seal(place{run: w.name, kind: "snapshot", n: w.batches}, nil)
	next := r.sealer.seal(place{run: w.name, kind: "head", n: w.batches, after: tag(snapshot)}, head{attempt: h.attempt + 1}.text())
	if err := putSnapshot(ctx, c, w.id, snapshot); err != nil {
		return err
	}
	if _, err := c.Exec(ctx, `DELETE FROM outcome WHERE run = ?`, w.id); err != nil {
		return err
	}
	if err := r.endChildren(ctx, c, w.id, true, nil); err != nil {
		return err
	}
	now := r.now()
	_, err = c.Exec(ctx, `UPDATE run SET state = ?, head = ?, crashes = 0, cancel = 0, listens = 0, grace = NULL, ends = NULL, reason = '', wake = NULL, changed = ?, deadline = ? WHERE id = ?`,
		Ready, next, now.UnixMilli(), now.Add(cmp.Or(s.Lasts, DefaultDeadline)).UnixMilli(), w.id)
	return err
}

// attempts returns the earlier attempts of a run.
func (r *Runs) attempts(ctx context.Context, c *sqlite.Conn, w row) (all []Attempt, err error) {
	for one, err := range c.Rows(ctx, `SELECT n, body FROM attempt WHERE run = ? ORDER BY n LIMIT ?`, w.id, MaxAttempts) {
		if err != nil {
			return nil, err
		}
		var n int64
		var body []byte
		if err := one.Scan(&n, &body); err != nil {
			return nil, err
		}
		text, err := r.sealer.open(place{run: w.name, kind: "attempt", n: n}, body)
		var a Attempt
		if err == nil {
			err = json.Unmarshal(text, &a)
		}
		if err != nil {
			return nil, fmt.Errorf("read the attempts of run %s: %w", w.name, err)
		}
		all = append(all, a)
	}
	return all, nil
}
