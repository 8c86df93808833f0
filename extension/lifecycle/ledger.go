package lifecycle

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/stilehost/stile/extension"
	"github.com/stilehost/stile/extension/policy"
	"github.com/stilehost/stile/host"
	"github.com/stilehost/stile/internal/printable"
	"github.com/stilehost/stile/internal/sqlite"
)

const (
	ledgerQueue = 1024
	// ledgerBatch is how many calls one transaction writes: some 20 ms.
	ledgerBatch = 256
	// ledgerPause is how long calls are collected before one transaction writes them. A kill -9 can lose the calls of that time.
	ledgerPause = 50 * time.Millisecond
	// keptCalls is how many calls of each tool are kept to compute its percentiles.
	keptCalls = 1000
	// keptOfScope is how many calls of all tools of a scope are kept for that, and countedOfScope how many of its tools have counts:
	// those called last. Nobody can push out what another scope has.
	keptOfScope, countedOfScope = 100_000, 25_600
	// forgottenCalls is how many calls one transaction deletes at most: four for each that it writes.
	forgottenCalls = 4 * ledgerBatch
)

// used is one call that is over.
type used struct {
	scope, extension, tool, digest string
	started                        time.Time
	took                           time.Duration
	outcome, message               string
	by, via                        string
}

// ledger records calls in the background, many in one transaction.
type ledger struct {
	m     *Manager
	queue chan used
}

func newLedger(m *Manager) *ledger { return &ledger{m, make(chan used, ledgerQueue)} }

// add hands over a call. If the queue is full, it waits until ctx ends.
func (l *ledger) add(ctx context.Context, u used) {
	select {
	case l.queue <- u:
	default:
		select {
		case l.queue <- u:
		case <-ctx.Done():
			l.m.options.Logger.Warn("a call is not written down", "tool", u.tool)
		}
	}
}

// write writes what comes, until ctx ends and nothing is left.
func (l *ledger) write(ctx context.Context) {
	for {
		var batch []used
		select {
		case u := <-l.queue:
			batch = append(batch, u)
			pause := time.NewTimer(ledgerPause)
			select {
			case <-pause.C:
			case <-ctx.Done():
				pause.Stop()
			}
		case <-ctx.Done():
		}
		for more := true; more && len(batch) < ledgerBatch; {
			select {
			case u := <-l.queue:
				batch = append(batch, u)
			default:
				more = false
			}
		}
		if len(batch) == 0 && ctx.Err() != nil {
			return
		}
		if err := l.m.writeCalls(context.WithoutCancel(ctx), batch); err != nil {
			l.m.options.Logger.Warn("calls are not written down", "calls", len(batch), "error", err)
		}
		if err := l.trim(context.WithoutCancel(ctx)); err != nil {
			l.m.options.Logger.Warn("drop old calls from the audit log", "error", err)
		}
	}
}

// trim keeps the calls in the audit log within the policy's limit. After each batch, it deletes more calls than the batch has.
func (l *ledger) trim(ctx context.Context) error {
	if err := l.m.trimAudit(ctx); err != nil {
		return err
	}
	_, err := l.m.sweepCalls(ctx)
	return err
}

func (m *Manager) writeCalls(ctx context.Context, batch []used) error {
	return m.db.Update(ctx, func(c *sqlite.Conn) error {
		entries := make([]Entry, len(batch))
		forgettable := int64(forgottenCalls)
		for i, u := range batch {
			const insert = "INSERT INTO call (scope, extension, tool, duration) VALUES (?, ?, ?, ?)"
			if _, err := c.Exec(ctx, insert, u.scope, u.extension, u.tool, u.took.Microseconds()); err != nil {
				return err
			}
			failed, message := 0, ""
			if toolFailed(u.outcome) {
				failed, message = 1, u.message
			}
			const count = `INSERT INTO usage VALUES (?1, ?2, ?3, 1, ?4, ?5, ?6) ON CONFLICT DO UPDATE SET
				calls = calls + 1, failures = failures + ?4, last_used = max(last_used, ?5), last_error = CASE ?6 WHEN '' THEN last_error ELSE ?6 END`
			if _, err := c.Exec(ctx, count, u.scope, u.extension, u.tool, failed, u.started.UnixMilli(), message); err != nil {
				return err
			}
			// Now and then is enough. The choice is random, so nobody can time a tool's calls to avoid it.
			if forgettable > 0 && rand.IntN(64) == 0 {
				n, err := forgetCalls(ctx, c, u, forgettable)
				if err != nil {
					return err
				}
				forgettable -= n
			}
			entries[i] = Entry{Kind: callKind, By: u.by, Via: u.via, Scope: u.scope, Extension: u.extension, Digest: u.digest, Tool: u.tool, Outcome: u.outcome}
		}
		return audit(ctx, c, m.options.Now(), entries...)
	})
}

// forgetCalls deletes at most so many of the oldest calls and counts beyond what is kept of a call's tool and scope.
func forgetCalls(ctx context.Context, c *sqlite.Conn, u used, most int64) (forgotten int64, err error) {
	for _, f := range []struct {
		query string
		kept  int
	}{
		{`DELETE FROM call WHERE id IN (SELECT id FROM call WHERE scope = ?1 AND extension = ?2 AND tool = ?3 AND id <=
			(SELECT id FROM call WHERE scope = ?1 AND extension = ?2 AND tool = ?3 ORDER BY id DESC LIMIT 1 OFFSET ?4) ORDER BY id LIMIT ?5)`, keptCalls},
		{`DELETE FROM call WHERE id IN (SELECT id FROM call WHERE scope = ?1 AND id <= (SELECT id FROM call WHERE scope = ?1 ORDER BY id DESC LIMIT 1 OFFSET ?4)
			ORDER BY id LIMIT ?5)`, keptOfScope},
		{`DELETE FROM usage WHERE scope = ?1 AND (extension, tool) IN (SELECT extension, tool FROM usage WHERE scope = ?1 AND last_used <=
			(SELECT last_used FROM usage WHERE scope = ?1 ORDER BY last_used DESC LIMIT 1 OFFSET ?4) ORDER BY last_used LIMIT ?5)`, countedOfScope},
	} {
		result, err := c.Exec(ctx, f.query, u.scope, u.extension, u.tool, f.kept, most-forgotten)
		if err != nil {
			return forgotten, err
		}
		n, err := result.RowsAffected()
		if err != nil {
			return forgotten, err
		}
		forgotten += n
	}
	return forgotten, nil
}

// String names the viewer as authors are named.
func (v Viewer) String() string {
	switch {
	case v.Agent != "":
		return extension.Scope{Kind: extension.Agent, Owner: v.Agent}.String()
	case v.User != "":
		return extension.Scope{Kind: extension.User, Owner: v.User}.String()
	default:
		return ""
	}
}

// outcome says in one word how a call ended.
func outcome(err error) string {
	if errors.As(err, new(*RevokedError)) {
		return "revoked"
	}
	switch kind := host.OutcomeOf(err).Kind; kind {
	case "grant":
		return "revoked"
	case "unknown-tool", "load", "code", "closed":
		return "fault"
	default:
		return kind
	}
}

// toolFailed reports whether an outcome counts against the tool. Bad input, cancellations, revocations and faults of the host do
// not.
func toolFailed(outcome string) bool {
	switch outcome {
	case "failed", "denied", "limit", "trap", "definition":
		return true
	default:
		return false
	}
}

// message returns the stored form of an error, in one short line.
func message(err error) string {
	if err == nil {
		return ""
	}
	return cut(err.Error())
}

// broken is the key of a breaker: a tool and one of its callers. That caller's input may be the cause of the failures, so other
// callers are not affected.
type broken struct {
	tool    string
	by      Viewer
	through string // the extension that calls it for the viewer, if any
}

// breaker pauses a tool that fails again and again.
type breaker struct {
	mu       sync.Mutex
	failures int
	until    time.Time
}

func (a *active) breaker(b broken) *breaker {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.breakers[b] == nil {
		a.breakers[b] = &breaker{}
	}
	return a.breakers[b]
}

func (b *breaker) check(now time.Time, tool string) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if now.Before(b.until) {
		return &BrokenError{printable.Text(tool), b.failures, b.until}
	}
	return nil
}

// count counts failures in a row: the tool's failures, not its caller's. After a pause, one more failure suffices.
func (b *breaker) count(now time.Time, limits policy.Limits, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch how := outcome(err); {
	case how == "ok":
		b.failures = 0
	case toolFailed(how):
		if b.failures++; b.failures >= limits.FailuresBeforeBreak {
			b.until = now.Add(limits.BreakFor)
		}
	}
}
