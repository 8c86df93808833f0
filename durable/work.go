package durable

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync/atomic"
	"time"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/host"
	"github.com/stilehost/stile/internal/lease"
	"github.com/stilehost/stile/internal/printable"
	"github.com/stilehost/stile/internal/sha256hex"
	"github.com/stilehost/stile/internal/sqlite"
)

// active is a run that belongs to this process.
type active struct {
	runs     *Runs
	id       int64
	name     string
	fence    int64
	batches  int64  // of the log; the writer's, while there is one
	attempt  uint64 // counted from 1
	tag      []byte // of the last batch, or of the snapshot or spec before it
	logged   int64  // bytes of the batches
	journal  *journal
	function bool // of Go code
	retry    Retry
	cancel   context.CancelCauseFunc
	alone    time.Time // until when no other suspect is taken; zero for what is none

	listening atomic.Bool // it is written down
}

// hold runs a statement whose last parameters are the run's id, this owner and its fence. It reports whether the run still belongs to it.
func (a *active) hold(ctx context.Context, c *sqlite.Conn, query string, args ...any) (bool, error) {
	result, err := c.Exec(ctx, query, append(args, a.id, a.runs.owner, a.fence)...)
	if err != nil {
		return false, err
	}
	n, err := result.RowsAffected()
	return n == 1, err
}

// A process that works on runs says so every beat. If it has not for leaseTime, it has lost its runs.
const (
	beat      = time.Second
	leaseTime = 3 * time.Second
)

// Work has this process work on the store's runs, until [Runs.Close]: on all, or only on these. It returns at once. Doing it again does nothing.
func (r *Runs) Work(only ...string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.working {
		return
	}
	r.working, r.only = true, only
	r.all.Go(r.work)
	r.ended.Store(1) // an earlier process may have left some
	r.all.Go(r.tidy)
}

// Drain takes no more runs, and waits until those of this process have ended or sleep, or until ctx ends. The others go on in another process, from
// their logs.
func (r *Runs) Drain(ctx context.Context) {
	for {
		r.mu.Lock()
		r.draining = true
		changed, n := r.changed, len(r.active)+len(r.seats)
		r.mu.Unlock()
		if n == 0 {
			return
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return
		}
	}
}

// ErrCancelled is the cause of the end of a run's context when somebody cancelled the run. [context.Cause] returns an error that is it: in a [Function], its steps, and Go code of a capability that
// the call of a run uses.
var ErrCancelled = errors.New("the run was cancelled")

// errGrace ends the call of a run that was told, and has not ended by itself.
var errGrace = fmt.Errorf("%w, and did not end by itself in the time that it had for that", ErrCancelled)

// ErrLate is the same for a run that has reached its deadline.
var ErrLate = errors.New("the run has reached its deadline")

func (r *Runs) work() {
	next := time.NewTimer(0)
	defer next.Stop()
	beaten := time.Time{}
	for {
		select {
		case <-r.ctx.Done():
			return
		case <-next.C:
		case <-r.poke:
		}
		if time.Since(beaten) >= beat { // by the monotonic clock
			if err := r.beat(); err != nil && r.ctx.Err() == nil {
				r.log.Error("runs are not kept", "error", err)
			} else if err == nil {
				beaten = time.Now()
			}
		}
		wait, err := r.take()
		if err != nil && r.ctx.Err() == nil {
			r.log.Error("runs cannot be taken", "error", err)
		}
		next.Reset(min(wait, pollTime))
	}
}

// beat says that this process is alive, if it has runs, and takes runs from those that are not.
func (r *Runs) beat() error {
	boot, up, err := lease.Uptime()
	if err != nil {
		return err
	}
	ctx := r.ctx
	var others []string // that have run out, or ended
	ended := map[string]bool{}
	if err := r.db.Read(ctx, func(c *sqlite.Conn) error {
		for one, err := range c.Rows(ctx, `SELECT name, boot <> ? OR until < ? FROM owner WHERE name <> ?`, boot, int64(up), r.owner) {
			if err != nil {
				return err
			}
			var name string
			var over bool
			if err := one.Scan(&name, &over); err != nil {
				return err
			}
			if ended[name] = lease.Ended(r.o.Dir, name); over || ended[name] {
				others = append(others, name)
			}
		}
		return nil
	}); err != nil {
		return err
	}
	left, err := r.left()
	if err != nil {
		return err
	}
	r.mu.Lock()
	idle := len(r.active) == 0
	r.mu.Unlock()
	if idle && len(left) == 0 && len(others) == 0 {
		return nil // to write each second would keep the disk of an idle machine awake
	}
	return r.db.Update(ctx, func(c *sqlite.Conn) error {
		for id, h := range left {
			if _, err := c.Exec(ctx, `UPDATE run SET state = 'ready', owner = NULL, ends = NULL WHERE id = ? AND owner = ? AND fence = ?`, id, r.owner, h.fence); err != nil {
				return err
			}
		}
		if err := r.live(ctx, c, boot, up); err != nil {
			return err
		}
		for _, name := range others {
			var until int64 // by now it may have said that it is alive
			err := c.Row(ctx, `DELETE FROM owner WHERE name = ? AND (boot <> ? OR until < ? OR ?) RETURNING until`, name, boot, int64(up), ended[name]).Scan(&until)
			if errors.Is(err, sql.ErrNoRows) {
				continue
			}
			if err != nil {
				return err
			}
			if _, err := c.Exec(ctx, `UPDATE run SET state = 'ready', owner = NULL, fence = fence + 1, crashes = crashes + 1, ends = NULL WHERE owner = ?`, name); err != nil {
				return err
			}
		}
		return nil
	})
}

// alive is live, unless that was written down within the last beat.
func (r *Runs) alive(ctx context.Context, c *sqlite.Conn) error {
	boot, up, err := lease.Uptime()
	if err != nil {
		return err
	}
	var until int64
	if err := c.Row(ctx, `SELECT until FROM owner WHERE name = ?`, r.owner).Scan(&until); err != nil && !errors.Is(err, sql.ErrNoRows) {
		return err
	}
	if until >= int64(up+leaseTime-beat) {
		return nil
	}
	return r.live(ctx, c, boot, up)
}

// live writes down that this process is alive.
func (r *Runs) live(ctx context.Context, c *sqlite.Conn, boot string, up time.Duration) error {
	_, err := c.Exec(ctx, `INSERT INTO owner VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET boot = excluded.boot, until = excluded.until`, r.owner, boot, int64(up+leaseTime))
	return err
}

// held is what the file says of a run that belongs to this process.
type held struct {
	fence, deadline int64
	cancel, listens bool
	ends            sql.NullInt64
}

// own returns the runs that belong to this process, by id.
func (r *Runs) own() (own map[int64]held, err error) {
	own = map[int64]held{}
	err = r.db.Read(r.ctx, func(c *sqlite.Conn) error {
		for one, err := range c.Rows(r.ctx, `SELECT id, fence, deadline, cancel, listens, ends FROM run WHERE owner = ?`, r.owner) {
			if err != nil {
				return err
			}
			var id int64
			var h held
			if err := one.Scan(&id, &h.fence, &h.deadline, &h.cancel, &h.listens, &h.ends); err != nil {
				return err
			}
			own[id] = h
		}
		return nil
	})
	return own, err
}

// left returns runs that belong to this process and that it does not work on: it could not write that down, because the disk was full.
func (r *Runs) left() (left map[int64]held, err error) {
	if left, err = r.own(); err != nil {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for id := range r.active {
		delete(left, id)
	}
	for s := range r.seats {
		delete(left, s.run)
	}
	return left, nil
}

// runnable selects the runs that this process can work on. Its parameter is [Runs.functions] as JSON.
const runnable = ` AND ifnull(function, '') IN (SELECT value FROM json_each(?))`

// take takes runs that can go on, as many as this process may have, and ends those that must not. It returns when there may be more to take.
func (r *Runs) take() (wait time.Duration, err error) {
	r.mu.Lock()
	free := r.o.Live - len(r.active) - len(r.seats)
	if r.draining {
		free = 0
	}
	var mine []*active
	for _, a := range r.active {
		mine = append(mine, a)
	}
	r.mu.Unlock()
	ctx := r.ctx
	now := r.now()
	wait = time.Hour
	fire, unfired := time.Hour, error(nil)
	if r.only == nil {
		fire, unfired = r.fire(ctx, now)
	}
	var due []int64
	if free > 0 {
		if due, wait, err = r.due(ctx, now, free); err != nil {
			return wait, err
		}
	}
	if len(due) > 0 {
		if err := r.takeDue(ctx, due, now); err != nil {
			return time.Hour, err
		}
		wait = 0 // there may be more, and nobody has looked for when the next is due
	}
	return min(wait, fire), errors.Join(unfired, r.hear(), r.look(mine, now))
}

// Of the runs that were awake when a process ended, any may have brought that about. So a process that goes on with suspects, which are halfway to being parked for it, takes one
// after the other: while one of them crashes it, the others are not there. A suspect that has not crashed it after this time has let the next one in.
const aloneTime = 30 * time.Second

// suspects says how many processes a run has outlived that may be what ends them, from the first to the last number. One that has outlived more is parked, and ends nothing.
func (r *Runs) suspects() (from, to int64) { return int64(r.o.Crashes+1) / 2, int64(r.o.Crashes) - 1 }

func (r *Runs) suspect(crashes int64) bool {
	from, to := r.suspects()
	return from <= crashes && crashes <= to
}

// takable selects the runs that can be beside those of this process. Its parameters are trying and suspects.
const takable = ` AND NOT (? AND crashes BETWEEN ? AND ?)`

// trying reports whether a suspect was taken a short time ago.
func (r *Runs) trying(now time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, a := range r.active {
		if now.Before(a.alone) {
			return true
		}
	}
	return false
}

// lead is how long before a run is due it is taken, so that its instance waits for that.
const lead = 3 * time.Millisecond

// due finds runs that can go on, and if there are none, when there may be some.
func (r *Runs) due(ctx context.Context, now time.Time, most int) (due []int64, wait time.Duration, err error) {
	wait = time.Hour
	soon := now.Add(min(lead, r.o.Idle/2))
	functions, err := json.Marshal(r.functions)
	if err != nil {
		return nil, wait, err
	}
	from, to := r.suspects()
	trying := r.trying(time.Now())
	err = r.db.Read(ctx, func(c *sqlite.Conn) (err error) {
		if r.only != nil {
			due, wait, err = r.dueOf(ctx, c, soon, trying)
			return err
		}
		const query = `SELECT id FROM run WHERE state = 'ready'` + runnable + takable + ` UNION ALL SELECT id FROM run WHERE state = 'asleep' AND wake <= ?` + runnable + takable + ` LIMIT ?`
		if due, err = idsOf(ctx, c, query, functions, trying, from, to, soon.UnixMilli(), functions, trying, from, to, most); err != nil || len(due) > 0 {
			return err
		}
		var at sql.NullInt64
		if err := c.Row(ctx, `SELECT min(wake) FROM run WHERE state = 'asleep' AND wake > ?`+runnable, soon.UnixMilli(), functions).Scan(&at); err != nil {
			return err
		}
		if at.Valid {
			wait = max(0, timeOf(at.Int64).Sub(soon))
		}
		return nil
	})
	return due, wait, err
}

// takeDue takes these runs, with what they go on with. A loss of power may undo that, because it also ends the process whose they are: before a run
// has an effect, all of this is on the disk.
func (r *Runs) takeDue(ctx context.Context, due []int64, now time.Time) error {
	var taken []row
	if err := r.db.UpdateSoon(ctx, func(c *sqlite.Conn) (err error) {
		taken, err = r.takeReady(ctx, c, due, now)
		return err
	}); err != nil {
		return err
	}
	for _, w := range taken {
		r.adopt(w) //nolint:contextcheck // it ends with the store
	}
	return nil
}

// takeReady has those of these runs belong to this process that are ready, or asleep and due.
func (r *Runs) takeReady(ctx context.Context, c *sqlite.Conn, ids []int64, now time.Time) (taken []row, err error) {
	if err := r.alive(ctx, c); err != nil {
		return nil, err
	}
	from, to := r.suspects()
	trying := r.trying(time.Now())
	for _, id := range ids {
		var w row
		err := c.Row(ctx, `UPDATE run SET state = 'running', owner = ?, fence = fence + 1, wake = NULL, ends = ifnull(ends, ? + grace)
			WHERE id = ? AND (state = 'ready' OR state = 'asleep' AND wake <= ?)`+takable+` RETURNING `+rowColumns, r.owner, r.now().UnixMilli(), id, now.Add(lead).UnixMilli(), trying, from, to).Scan(w.fields()...)
		if errors.Is(err, sql.ErrNoRows) {
			continue // another process has it, or it is a suspect and not alone
		}
		if err != nil {
			return nil, err
		}
		trying = trying || r.suspect(w.crashes)
		if w.parts, err = readParts(ctx, c, id, takenBytes); err != nil {
			return nil, err
		}
		taken = append(taken, w)
	}
	return taken, nil
}

// adopt has a run go on that belongs to this process.
func (r *Runs) adopt(w row) {
	a := &active{runs: r, id: w.id, name: w.name, fence: w.fence, batches: w.batches, function: w.function.Valid}
	a.journal = &journal{writer: &r.writer, run: a}
	if r.suspect(w.crashes) {
		a.alone = time.Now().Add(aloneTime)
	}
	r.mu.Lock()
	r.active[w.id] = a
	r.mu.Unlock()
	r.all.Go(func() { r.begin(a, w) })
}

// parts are what a run goes on with, sealed.
type parts struct {
	snapshot []byte
	batches  [][]byte
}

// takenBytes is how much of a run is read while it is taken. Others cannot write meanwhile, so what is larger is read later.
const takenBytes = 64 << 10

// readParts reads the parts of a run. It returns nil if they are larger than most.
func readParts(ctx context.Context, c *sqlite.Conn, id, most int64) (*parts, error) {
	p := &parts{}
	var all int64
	const query = `SELECT 0 AS n, length(body), iif(length(body) <= ?, body, NULL) FROM snapshot WHERE run = ? UNION ALL
		SELECT n, length(body), iif(length(body) <= ?, body, NULL) FROM log WHERE run = ? ORDER BY n`
	for one, err := range c.Rows(ctx, query, most, id, most, id) {
		if err != nil {
			return nil, err
		}
		var n, size int64
		var body []byte
		if err := one.Scan(&n, &size, &body); err != nil {
			return nil, err
		}
		switch all += size; {
		case all > most:
			return nil, nil
		case n == 0:
			p.snapshot = body
		default:
			p.batches = append(p.batches, body)
		}
	}
	return p, nil
}

// dueOf finds the runs that can go on among the only ones that this process works on, and when there may be more.
func (r *Runs) dueOf(ctx context.Context, c *sqlite.Conn, now time.Time, trying bool) (due []int64, wait time.Duration, err error) {
	wait = time.Hour
	var all []row // with all that they have called, and that these wait for
	known, roots := map[int64]bool{}, map[int64]bool{}
	for _, name := range r.only {
		w, err := findRun(ctx, c, name)
		if err != nil {
			return nil, wait, err
		}
		known[w.id] = true
		all = append(all, w)
	}
	for i := 0; i < len(all); i++ {
		w := all[i]
		if !roots[w.top()] {
			roots[w.top()] = true
			children, err := runsWhere(ctx, c, `WHERE root = ? AND id <> ? AND state IN ('ready', 'asleep')`, w.top(), w.id)
			if err != nil {
				return nil, wait, err
			}
			all = append(all, children...)
		}
		awaited, err := runsWhere(ctx, c, `WHERE id IN (SELECT run FROM awaited WHERE waiter = ?) AND state IN ('ready', 'asleep')`, w.id)
		if err != nil {
			return nil, wait, err
		}
		for _, w := range awaited {
			if !known[w.id] {
				known[w.id] = true
				all = append(all, w)
			}
		}
	}
	for _, w := range all {
		switch at := timeOf(w.wake.Int64).Sub(now); {
		case !slices.Contains(r.functions, w.function.String): // another process has it
		case trying && r.suspect(w.crashes):
		case w.state == Ready, w.state == Asleep && w.wake.Valid && at <= 0:
			due = append(due, w.id)
		case w.state == Asleep && w.wake.Valid:
			wait = min(wait, at)
		}
	}
	return due, wait, nil
}

// look ends the calls of runs that somebody cancelled, that are out of time, or that belong to another process.
func (r *Runs) look(mine []*active, now time.Time) error {
	if len(mine) == 0 {
		return nil
	}
	own, err := r.own()
	if err != nil {
		return err
	}
	for _, a := range mine {
		r.mu.Lock()
		end := a.cancel
		r.mu.Unlock()
		h, ok := own[a.id]
		switch {
		case end == nil: // it has not begun
		case !ok || h.fence != a.fence:
			end(&LostError{a.name})
		case h.cancel && !h.listens:
			end(ErrCancelled)
		case h.ends.Valid && now.After(timeOf(h.ends.Int64)):
			end(errGrace)
		case now.After(timeOf(h.deadline)):
			end(ErrLate)
		}
	}
	return nil
}

// begin has a run go on.
func (r *Runs) begin(a *active, w row) {
	ctx, cancel := context.WithCancelCause(r.ctx)
	r.mu.Lock()
	a.cancel = cancel
	r.mu.Unlock()
	var authority Authority
	done := func(result host.Result, err error) {
		cause := context.Cause(ctx)
		if under := authority.Context; cause == nil && under != nil && under.Err() != nil {
			cause = &takenError{context.Cause(under)} //nolint:contextcheck // it was made of ctx
		}
		cancel(nil)
		if authority.Release != nil {
			authority.Release()
		}
		r.end(a, w, result, err, cause, authority) //nolint:contextcheck // it is written down after the end of ctx
	}
	if w.crashes >= int64(r.o.Crashes) {
		done(host.Result{}, &parkError{fmt.Sprintf("%d processes ended while it ran; retry it once that is mended", w.crashes)})
		return
	}
	if w.cancel && !w.listens {
		cancel(ErrCancelled)
		done(host.Result{}, ErrCancelled)
		return
	}
	if w.ends.Valid && r.now().After(timeOf(w.ends.Int64)) {
		cancel(errGrace)
		done(host.Result{}, errGrace)
		return
	}
	if r.now().After(timeOf(w.deadline)) {
		cancel(ErrLate)
		done(host.Result{}, ErrLate)
		return
	}
	s, state, entries, err := r.history(ctx, a, w)
	a.retry = s.Retry
	if err == nil && s.Function != "" {
		f := r.o.Functions[s.Function]
		if f == nil {
			done(host.Result{}, &parkError{fmt.Sprintf("there is no function %q", printable.Short(s.Function, maxFunction))})
			return
		}
		done(r.execute(ctx, a, f, s.Input, entries))
		return
	}
	var component *host.Component
	if err == nil {
		component, authority, err = r.prepare(ctx, w, s)
	}
	if err == nil {
		authority.Request.Durable = &host.Durable{Run: w.name, Secret: r.secret, First: firstOf(a.attempt), Journal: a.journal, Mailboxes: mailboxes{a}, Control: control{a}, Idle: r.o.Idle, State: state, Log: entries}
		r.all.Add(1)
		under := authority.Context
		if under == nil {
			under = ctx
		}
		err = component.Start(under, authority.Request, func(result host.Result, err error) {
			defer r.all.Done()
			done(result, err)
		})
		if err != nil {
			r.all.Done()
		}
	}
	if err != nil {
		done(host.Result{}, err)
	}
}

// parkError says why a run cannot go on.
type parkError struct{ reason string }

func (e *parkError) Error() string { return e.reason }

// takenError ends the call of a run whose authority was taken away.
type takenError struct{ why error }

func (e *takenError) Error() string { return e.why.Error() }

// beginError ends a call that must not begin with the authority that was prepared for it.
type beginError struct{ why error }

func (e *beginError) Error() string { return e.why.Error() }

// history reads what a run was started with, and where it goes on.
func (r *Runs) history(ctx context.Context, a *active, w row) (s spec, state []byte, entries [][]byte, err error) {
	if s, err = r.spec(w); err != nil {
		return s, nil, nil, &parkError{err.Error()}
	}
	a.tag = tag(w.spec)
	if w.parts == nil {
		if err := r.db.Read(ctx, func(c *sqlite.Conn) error {
			w.parts, err = readParts(ctx, c, w.id, math.MaxInt64)
			return err
		}); err != nil {
			return s, nil, nil, err
		}
	}
	snapshot, batches := w.parts.snapshot, w.parts.batches
	damaged := func(what string, err error) error { return &parkError{fmt.Sprintf("%s cannot be read: %v", what, err)} }
	at := w.batches - int64(len(batches)) // the batches before belong to the snapshot
	if snapshot != nil {
		if state, err = r.sealer.open(place{run: w.name, kind: "snapshot", n: at}, snapshot); err != nil {
			return s, nil, nil, damaged("its snapshot", err)
		}
		if len(state) == 0 {
			state = nil // another attempt
		}
		a.tag = tag(snapshot)
	} else if at != 0 {
		return s, nil, nil, damaged("its log", errDamaged)
	}
	for i, body := range batches {
		n := at + int64(i) + 1
		batch, err := r.sealer.open(place{run: w.name, kind: "log", n: n, after: a.tag}, body)
		if err != nil {
			return s, nil, nil, damaged("its log", err)
		}
		_, batch = batchTime(batch)
		more, err := readBatch(batch)
		if err != nil {
			return s, nil, nil, damaged("its log", err)
		}
		entries = append(entries, more...)
		a.tag = tag(body)
		a.logged += int64(len(body))
	}
	var h head
	text, err := r.sealer.open(place{run: w.name, kind: "head", n: w.batches, after: a.tag}, w.head)
	if err == nil {
		h, err = readHead(text)
	}
	if err != nil {
		return s, nil, nil, damaged("the end of its log", err)
	}
	a.attempt, a.journal.operations = h.attempt, h.operations
	return s, state, entries, nil
}

// prepare loads the code of a run, and asks for its authority.
func (r *Runs) prepare(ctx context.Context, w row, s spec) (_ *host.Component, authority Authority, err error) {
	component, err := r.load(ctx, w.code, s.Modules)
	if err != nil {
		return nil, authority, err
	}
	authority, err = r.o.Request(ctx, w.info(s))
	if err != nil {
		if ctx.Err() == nil && !errors.As(err, new(*RefusedError)) {
			err = &parkError{err.Error()}
		}
		return nil, Authority{}, err
	}
	request := &authority.Request
	request.Tool, request.Input, request.Recorder = s.Tool, s.Input, nil
	if begin := request.Begin; begin != nil {
		request.Begin = func(ctx context.Context) error {
			if err := begin(ctx); err != nil {
				return &beginError{err}
			}
			return nil
		}
	}
	return component, authority, nil
}

// end writes down what became of a call, and tells it if the run has ended.
func (r *Runs) end(a *active, w row, result host.Result, err, cause error, authority Authority) {
	ctx := r.base
	over := false // the run
	rest, unwritten := a.journal.stop()
	defer func() {
		r.mu.Lock()
		if r.active[a.id] == a { // this process may have lost the run, and taken it again
			delete(r.active, a.id)
		}
		r.mu.Unlock()
		r.tell(a.name)
		r.wake()
	}()
	var asleep *host.AsleepError
	var wait *waitError
	var lost *LostError
	var park *parkError
	var taken *takenError
	var function *functionError
	var refused *RefusedError
	var full *host.LimitError
	called := authority.Caller != nil
	var write func(*sqlite.Conn, cuts) error
	finish := func(s State, e ended) func(*sqlite.Conn, cuts) error {
		over = true
		e.Usage = result.Usage
		return func(c *sqlite.Conn, k cuts) error { return r.finish(ctx, c, a.name, s, e, k) }
	}
	fail := func(e ended) func(*sqlite.Conn, cuts) error {
		e.Usage = result.Usage
		delay, again := a.retry.after(a.attempt, e)
		at := r.now().Add(delay)
		if !again || at.After(timeOf(w.deadline)) {
			return finish(Failed, e)
		}
		return func(c *sqlite.Conn, k cuts) error { return r.again(ctx, c, a, e, at, k) }
	}
	failed := func(err error) func(*sqlite.Conn, cuts) error {
		e := endedWith(result, err)
		if called {
			e.Caller = told(authority.Caller(err))
		}
		return fail(e)
	}
	parked := func(reason string) func(*sqlite.Conn, cuts) error {
		return func(c *sqlite.Conn, _ cuts) error {
			_, err := c.Exec(ctx, `UPDATE run SET state = ?, owner = NULL, changed = ?, reason = ? WHERE id = ?`, Parked, r.now().UnixMilli(), printable.Short(reason, 4<<10), a.id)
			return err
		}
	}
	switch {
	case errors.As(err, &lost), errors.As(cause, &lost):
		return
	case errors.As(cause, &taken) && called:
		write = finish(Failed, ended{Outcome: host.Outcome{Kind: "failed", Message: taken.Error()}, Caller: told(authority.Caller(taken.why))})
	case errors.As(err, &refused):
		write = finish(Failed, ended{Outcome: host.Outcome{Kind: "failed", Message: refused.Reason}, Caller: told(refused.Caller)})
	case errors.As(cause, &taken):
		write = parked(taken.Error())
	case err == nil:
		write = finish(Done, endedWith(result, nil))
	case errors.As(unwritten, &full):
		write = failed(full)
	case unwritten != nil && (errors.As(err, &asleep) || errors.As(err, &wait) || errors.As(err, &function)): // what is on the disk says where the run goes on
		r.release(ctx, a, unwritten)
		return
	case errors.As(err, &asleep):
		write = func(c *sqlite.Conn, k cuts) error {
			wrong := r.roomAsleep(ctx, c, a.id, len(asleep.State))
			if errors.As(wrong, &full) {
				err = full
				return failed(full)(c, k)
			}
			if wrong == nil {
				wrong = r.keepHistory(ctx, c, a.id, k)
			}
			if wrong != nil {
				return wrong
			}
			return r.lay(ctx, c, a, asleep)
		}
	case errors.As(err, &wait):
		write = func(c *sqlite.Conn, _ cuts) error { return r.sleep(ctx, c, a, []abi.Wait{wait.Wait}) }
	case errors.Is(cause, ErrCancelled):
		write = finish(Cancelled, cancelledWith(result, err, cause)) // as its row says
	case errors.Is(cause, ErrLate):
		write = finish(Failed, ended{Outcome: host.Outcome{Kind: "limit", Limit: "deadline", Value: timeOf(w.deadline).Format(time.RFC3339), Message: ErrLate.Error()}})
	case errors.As(err, &function):
		write = fail(ended{Outcome: host.Outcome{Kind: "failed", Message: function.text}})
	case errors.As(err, &park):
		write = parked(park.reason)
	case errors.As(err, new(*host.PartedError)), errors.As(err, new(*host.StateError)):
		write = parked(err.Error())
	case r.ctx.Err() != nil, errors.Is(err, host.ErrClosed), errors.As(err, new(*beginError)), unwritten != nil, errors.Is(err, context.Canceled):
		r.release(ctx, a, err)
		return
	default:
		if host.OutcomeOf(err).Kind == "fault" {
			write = parked("a fault of the host: " + err.Error())
		} else {
			write = failed(err)
		}
	}
	update := r.db.Update
	if asleep != nil { // nobody has seen a result: if that is lost, the log is still there
		update = r.db.UpdateSoon
	}
	held, cancelled, sleeps := false, false, asleep != nil || wait != nil
	transact := func(c *sqlite.Conn, k cuts) (wrong error) {
		held, wrong = a.hold(ctx, c, `UPDATE run SET crashes = 0 WHERE id = ? AND owner = ? AND fence = ?`)
		if wrong != nil || !held {
			return wrong
		}
		if !sleeps { // a run that was cancelled has no other end
			if wrong := c.Row(ctx, `SELECT cancel FROM run WHERE id = ?`, a.id).Scan(&cancelled); wrong != nil {
				return wrong
			}
		}
		if !cancelled {
			return write(c, k)
		}
		return r.finish(ctx, c, a.name, Cancelled, cancelledWith(result, err, cause), k)
	}
	var wrong error
	if wait != nil { // its log is not cut
		wrong = update(ctx, func(c *sqlite.Conn) error { return transact(c, nil) })
	} else {
		wrong = r.updateCut(ctx, update, a.id, rest, transact)
	}
	if wrong == nil && full != nil { // somebody may see how it ended
		wrong = r.db.Update(ctx, func(*sqlite.Conn) error { return nil })
	}
	switch {
	case wrong != nil:
		r.log.Error("what became of a run is not written down", "run", a.name, "error", wrong)
		r.release(ctx, a, wrong)
	case held && (over || cancelled):
		r.announceEnd(w)
		if cancelled {
			result.Output, err = nil, context.Canceled
		}
		if authority.Ended != nil {
			authority.Ended(result, err)
		}
	}
}

// cancelledWith describes the end of a run that somebody cancelled, and whose call ended with err.
func cancelledWith(result host.Result, err, cause error) ended {
	e := ended{Outcome: host.Outcome{Kind: "cancelled", Message: ErrCancelled.Error()}, Usage: result.Usage}
	guest, failed := errors.AsType[*host.GuestError](err)
	switch {
	case errors.Is(cause, ErrCancelled):
		e.Outcome.Message = cause.Error()
	case failed && guest.Failure.Name == "AbortError", err == nil:
	default:
		e.Outcome.Message += "; its clean-up ended with " + printable.Short(host.OutcomeOf(err).String(), 4<<10)
	}
	return e
}

// roomAsleep fails with a *[host.LimitError] if a run cannot sleep with a state, because those of whoever has the run take too much.
func (r *Runs) roomAsleep(ctx context.Context, c *sqlite.Conn, id int64, state int) error {
	var whose string
	var bytes int64
	const held = `SELECT whose, ifnull((SELECT bytes FROM held WHERE held.whose = run.whose), 0) - ifnull((SELECT length(body) FROM snapshot WHERE run = ?1 AND snapshot.whose = run.whose), 0)
		FROM run WHERE id = (SELECT ifnull(root, id) FROM run WHERE id = ?1)`
	if err := c.Row(ctx, held, id).Scan(&whose, &bytes); err != nil {
		return err
	}
	if whose != "" && bytes+int64(state) > r.o.MaxAsleepBytes {
		return &host.LimitError{
			Limit: "disk", Value: printable.Size(r.o.MaxAsleepBytes),
			Detail: fmt.Sprintf("the sleeping runs of the same caller have %s, and this one would add %s; hold less while you wait, or cancel some", printable.Size(bytes), printable.Size(int64(state))),
		}
	}
	return nil
}

// putSnapshot writes down what a run goes on with, in place of what it had.
func putSnapshot(ctx context.Context, c *sqlite.Conn, id int64, body []byte) error {
	if _, err := c.Exec(ctx, `DELETE FROM snapshot WHERE run = ?`, id); err != nil { // not REPLACE, which leaves the trigger out
		return err
	}
	const put = `INSERT INTO snapshot (run, body, whose) VALUES (?1, ?2, ifnull((SELECT whose FROM run WHERE id = (SELECT ifnull(root, id) FROM run WHERE id = ?1)), ''))`
	_, err := c.Exec(ctx, put, id, body)
	return err
}

// lay writes down a run that sleeps. Its log is not needed any more.
func (r *Runs) lay(ctx context.Context, c *sqlite.Conn, a *active, asleep *host.AsleepError) error {
	body := r.sealer.seal(place{run: a.name, kind: "snapshot", n: a.batches}, asleep.State)
	end := r.sealer.seal(place{run: a.name, kind: "head", n: a.batches, after: tag(body)}, a.journal.head().text())
	if err := putSnapshot(ctx, c, a.id, body); err != nil {
		return err
	}
	if err := clearLog(ctx, c, a.id); err != nil {
		return err
	}
	if _, err := c.Exec(ctx, `UPDATE run SET head = ? WHERE id = ?`, end, a.id); err != nil {
		return err
	}
	return r.sleep(ctx, c, a, asleep.Waits)
}

func waitUntil(at time.Time) []abi.Wait { return []abi.Wait{{At: at}} }

// sleep writes down what a run sleeps for. It goes on in any case when its deadline has passed, and at once if somebody has cancelled it meanwhile.
func (r *Runs) sleep(ctx context.Context, c *sqlite.Conn, a *active, waits []abi.Wait) error {
	var wake sql.NullInt64
	for _, w := range waits {
		if at := w.At.UnixMilli(); !w.At.IsZero() && (!wake.Valid || at < wake.Int64) {
			wake = sql.NullInt64{Int64: at, Valid: true}
		}
	}
	if _, err := c.Exec(ctx, `DELETE FROM waiting WHERE run = ?`, a.id); err != nil {
		return err
	}
	has, err := await(ctx, c, a.id, waits)
	if err != nil {
		return err
	}
	const query = `UPDATE run SET state = iif(? OR cancel AND NOT listens, 'ready', 'asleep'), owner = NULL, wake = min(ifnull(?, deadline + 1), deadline + 1, ifnull(ends, deadline) + 1), changed = ?
		WHERE id = ?`
	_, err = c.Exec(ctx, query, has, wake, r.now().UnixMilli(), a.id) // what it waits for may have come between its last look and now
	return err
}

// release leaves a run to the next process that has room for it: this one ends, or could not write.
func (r *Runs) release(ctx context.Context, a *active, why error) {
	r.log.Info("a run is left to be continued", "run", a.name, "error", why)
	err := r.db.Update(ctx, func(c *sqlite.Conn) error {
		_, err := a.hold(ctx, c, `UPDATE run SET state = 'ready', owner = NULL, ends = NULL WHERE id = ? AND owner = ? AND fence = ?`)
		return err
	})
	if err != nil {
		r.log.Error("a run could not be left", "run", a.name, "error", err)
	}
}

// code is a component that runs go on with.
type code struct {
	ready     chan struct{}
	component *host.Component
	err       error
}

func (c *code) close() error {
	<-c.ready
	if c.component == nil {
		return nil
	}
	return c.component.Close()
}

// load loads a component of the store, once.
func (r *Runs) load(ctx context.Context, digest string, modules map[string]string) (*host.Component, error) {
	r.mu.Lock()
	k := r.codes[digest]
	if k != nil {
		r.mu.Unlock()
		select {
		case <-k.ready:
			return k.component, k.err
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	k = &code{ready: make(chan struct{})}
	r.codes[digest] = k
	r.mu.Unlock()
	k.component, k.err = r.read(r.ctx, digest, modules) //nolint:contextcheck // others wait for it too
	if k.err != nil {
		r.mu.Lock()
		delete(r.codes, digest)
		r.mu.Unlock()
	}
	close(k.ready)
	return k.component, k.err
}

func (r *Runs) read(ctx context.Context, digest string, modules map[string]string) (*host.Component, error) {
	body := func(ctx context.Context, digest string) ([]byte, error) {
		var packed []byte
		err := r.db.Read(ctx, func(c *sqlite.Conn) error {
			return c.Row(ctx, `SELECT body FROM code WHERE digest = ?`, digest).Scan(&packed)
		})
		if errors.Is(err, sql.ErrNoRows) {
			return nil, &parkError{"its code " + digest + " is not in the store"}
		}
		if err != nil {
			return nil, err
		}
		wasm, err := unpacker().DecodeAll(packed, nil)
		if err != nil || sha256hex.Of(wasm) != digest {
			return nil, &parkError{"its code " + digest + " " + errDamaged.Error()}
		}
		return wasm, nil
	}
	for name, d := range modules {
		if err := r.o.Host.AddModuleNamed(ctx, name, func(ctx context.Context) ([]byte, error) { return body(ctx, d) }); err != nil {
			return nil, err
		}
	}
	wasm, err := body(ctx, digest)
	if err != nil {
		return nil, err
	}
	component, err := r.o.Host.Load(ctx, wasm)
	if load, ok := errors.AsType[*host.LoadError](err); ok {
		return nil, &parkError{"its code is refused: " + load.Error()}
	}
	return component, err
}
