package durable

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/netresearch/go-cron"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/internal/printable"
	"github.com/stilehost/stile/internal/sqlite"
)

// Schedule starts runs at times.
type Schedule struct {
	// Name names it: 1 to 64 letters, digits, -, _ and .
	Name string `json:"schedule"`
	// Cron says when, as five fields: minute, hour, day of the month, month, and day of the week; or @hourly, @daily, @weekly, @monthly or @yearly.
	Cron string `json:"cron"`
	// Zone is the time zone of Cron, such as "Europe/Berlin". Default: "UTC".
	Zone string `json:"zone"`
	// Missed says what becomes of times that more than a minute ago passed while no process worked on runs: "once", the default, starts one run for all, "skip"
	// starts none, and "all" one for each of the last [MaxMissed].
	Missed string `json:"missed"`
	// Overlap says what happens at a time at which the last run has not ended: "skip", the default, starts none, and "allow" starts another.
	Overlap string `json:"overlap"`
	// Spec is what it starts. It has no key: that of a run names the schedule and the time.
	Spec Spec `json:"-"`
}

// ScheduleInfo is what is known of a schedule.
type ScheduleInfo struct {
	Schedule
	// Tool and Function are what it starts.
	Tool     string `json:"tool,omitempty"`
	Function string `json:"function,omitempty"`
	Paused   bool   `json:"paused"`
	// Next is when it starts the next run. It is zero if it starts none.
	Next time.Time `json:"next,omitzero"`
	// Last is the last time for which it started a run or skipped it, and Run the last run that it started.
	Last time.Time `json:"last,omitzero"`
	Run  string    `json:"run,omitempty"`
	// Reason says why it starts none although it is not paused.
	Reason string `json:"reason,omitempty"`
}

// The limits of schedules.
const (
	// MaxSchedules is how many there may be.
	MaxSchedules = 1000
	// MaxMissed is how many missed times start a run each, with "all".
	MaxMissed = 100
	// maxCron is the longest expression in bytes.
	maxCron = 256
	// onTime is how late a run may start for a time that is not missed.
	onTime = time.Minute
)

// ScheduleError reports a schedule that cannot be.
type ScheduleError struct{ Reason string }

func (e *ScheduleError) Error() string { return e.Reason }

// UnknownScheduleError reports a schedule that is not in the store.
type UnknownScheduleError struct{ Name string }

func (e *UnknownScheduleError) Error() string {
	return fmt.Sprintf("there is no schedule %q; stile runs schedule list shows those that there are", printable.Short(e.Name, 64))
}

// times are the times of a schedule, with its defaults.
func (s *Schedule) times() (*cron.SpecSchedule, error) {
	s.Zone, s.Missed, s.Overlap = cmp.Or(s.Zone, "UTC"), cmp.Or(s.Missed, "once"), cmp.Or(s.Overlap, "skip")
	wrong := func(format string, args ...any) (*cron.SpecSchedule, error) {
		return nil, &ScheduleError{fmt.Sprintf(format, args...)}
	}
	switch {
	case !abi.IsMailbox(s.Name):
		return wrong("%q cannot name a schedule; use 1 to 64 letters, digits, -, _ and .", printable.Short(s.Name, 100))
	case !slices.Contains([]string{"once", "skip", "all"}, s.Missed):
		return wrong("missed: %q is not once, skip or all", printable.Short(s.Missed, 64))
	case s.Overlap != "skip" && s.Overlap != "allow":
		return wrong("overlap: %q is not skip or allow", printable.Short(s.Overlap, 64))
	case len(s.Cron) > maxCron:
		return wrong("the cron expression has %d bytes; %d are allowed", len(s.Cron), maxCron)
	case strings.Contains(s.Cron, "="):
		return wrong("%q names a time zone; say it apart from the expression", printable.Text(s.Cron))
	}
	zone, err := time.LoadLocation(s.Zone)
	if err != nil || s.Zone == "Local" {
		return wrong("%q is no time zone that this machine knows; write one such as Europe/Berlin or UTC", printable.Short(s.Zone, 64))
	}
	parsed, err := cron.MustNewParser(cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow | cron.Descriptor | cron.DowOrDom).WithMaxSearchYears(30).Parse(s.Cron)
	if err != nil {
		return wrong("the cron expression %q: %s", printable.Text(s.Cron), printable.Short(err.Error(), 200))
	}
	times, ok := parsed.(*cron.SpecSchedule)
	if !ok {
		return wrong("the cron expression %q is an interval; write the minutes or hours, as in */5 * * * *", printable.Text(s.Cron))
	}
	times.Location = zone
	return times, nil
}

// scheduled is what is sealed of a schedule.
type scheduled struct {
	Schedule
	What     spec          `json:"what"`
	Deadline time.Duration `json:"deadline"`
}

// AddSchedule writes a schedule down. Whichever process works on all runs of the store starts its runs: one for each time, however many processes do. A schedule of this name that is the same
// is left as it is. Another is a *[ScheduleError], as is one that cannot be.
func (r *Runs) AddSchedule(ctx context.Context, s Schedule) (info ScheduleInfo, err error) {
	times, err := s.times()
	if err != nil {
		return info, err
	}
	now := r.now()
	next := times.Next(now)
	if next.IsZero() {
		return info, &ScheduleError{fmt.Sprintf("the cron expression %q has no time within 30 years", printable.Text(s.Cron))}
	}
	if s.Spec.Key != "" {
		return info, &ScheduleError{"the runs of a schedule have keys of their own"}
	}
	if s.Spec.Whose != "" {
		return info, &ScheduleError{"a schedule starts runs for nobody in particular"}
	}
	w, err := r.written(s.Spec)
	if err != nil {
		return info, err
	}
	text, err := json.Marshal(scheduled{s, w.spec, w.deadline})
	if err != nil {
		return info, fmt.Errorf("write a schedule down: %w", err)
	}
	if err := r.updateWith(ctx, w, func(c *sqlite.Conn) error {
		var n int
		if err := c.Row(ctx, `SELECT count(*) FROM schedule`).Scan(&n); err != nil {
			return err
		}
		was, err := r.schedules(ctx, c, s.Name)
		switch {
		case err != nil:
			return err
		case len(was) == 1 && was[0].code == w.code && string(was[0].text) == string(text):
			return nil
		case len(was) == 1:
			return &ScheduleError{fmt.Sprintf("there is another schedule %q; remove it first, or use another name", s.Name)}
		case n >= MaxSchedules:
			return &ScheduleError{fmt.Sprintf("there are %d schedules; remove one first", n)}
		}
		if err := w.keep(ctx, c); err != nil {
			return err
		}
		_, err = c.Exec(ctx, `INSERT INTO schedule (name, next, looked, code, body) VALUES (?, ?, ?, ?, ?)`, s.Name, next.UnixMilli(), now.UnixMilli(), w.code, r.sealer.seal(place{run: s.Name, kind: "schedule", after: []byte(w.code)}, text))
		return err
	}); err != nil {
		return info, err
	}
	r.wake()
	return r.Schedule(ctx, s.Name)
}

// scheduleRow is a schedule in the file.
type scheduleRow struct {
	name         string
	next         sql.NullInt64
	last         sql.NullInt64
	looked       int64
	paused       bool
	run          sql.NullString
	code, reason string
	text         []byte
	scheduled    scheduled
}

// schedules reads schedules: that of a name, or all.
func (r *Runs) schedules(ctx context.Context, c *sqlite.Conn, name string) (all []scheduleRow, err error) {
	const query = `SELECT name, next, last, looked, paused, run, code, reason, body FROM schedule WHERE name = ?1 OR ?1 = '' ORDER BY name`
	for one, err := range c.Rows(ctx, query, name) {
		if err != nil {
			return nil, err
		}
		var s scheduleRow
		var body []byte
		if err := one.Scan(&s.name, &s.next, &s.last, &s.looked, &s.paused, &s.run, &s.code, &s.reason, &body); err != nil {
			return nil, err
		}
		s.text, err = r.sealer.open(place{run: s.name, kind: "schedule", after: []byte(s.code)}, body)
		if err == nil {
			err = json.Unmarshal(s.text, &s.scheduled)
		}
		if err != nil {
			s.reason = fmt.Sprintf("it cannot be read: %v", err)
		}
		all = append(all, s)
	}
	return all, nil
}

func (s scheduleRow) info() ScheduleInfo {
	i := ScheduleInfo{Schedule: s.scheduled.Schedule, Tool: s.scheduled.What.Tool, Function: s.scheduled.What.Function, Paused: s.paused, Run: s.run.String, Reason: s.reason}
	i.Name = s.name
	if s.next.Valid {
		i.Next = timeOf(s.next.Int64)
	}
	if s.last.Valid {
		i.Last = timeOf(s.last.Int64)
	}
	return i
}

// Schedules returns all schedules, by name.
func (r *Runs) Schedules(ctx context.Context) ([]ScheduleInfo, error) {
	return r.scheduleInfos(ctx, "")
}

// Schedule returns what is known of a schedule. It fails with an *[UnknownScheduleError] if there is none of that name.
func (r *Runs) Schedule(ctx context.Context, name string) (ScheduleInfo, error) {
	all, err := r.scheduleInfos(ctx, name)
	if err == nil && (len(all) == 0 || name == "") {
		err = &UnknownScheduleError{name}
	}
	if err != nil {
		return ScheduleInfo{}, err
	}
	return all[0], nil
}

func (r *Runs) scheduleInfos(ctx context.Context, name string) ([]ScheduleInfo, error) {
	infos := []ScheduleInfo{}
	err := r.db.Read(ctx, func(c *sqlite.Conn) error {
		all, err := r.schedules(ctx, c, name)
		for _, s := range all {
			infos = append(infos, s.info())
		}
		return err
	})
	return infos, err
}

// PauseSchedule has a schedule start no runs, or go on with the next time from now. It reports false if that was so already.
func (r *Runs) PauseSchedule(ctx context.Context, name string, pause bool) (changed bool, err error) {
	err = r.db.Update(ctx, func(c *sqlite.Conn) error {
		all, err := r.schedules(ctx, c, name)
		if err != nil {
			return err
		}
		if len(all) != 1 || name == "" {
			return &UnknownScheduleError{name}
		}
		if changed = all[0].paused != pause || !pause && all[0].reason != ""; !changed {
			return nil
		}
		var next sql.NullInt64
		if !pause {
			if next, err = all[0].nextAfter(r.now()); err != nil {
				return err
			}
		}
		_, err = c.Exec(ctx, `UPDATE schedule SET paused = ?, next = ?, looked = ?, reason = '' WHERE name = ?`, pause, next, r.now().UnixMilli(), name)
		return err
	})
	r.wake()
	return changed, err
}

// RemoveSchedule deletes a schedule. The runs that it started stay. It fails with an *[UnknownScheduleError] if there is none of that name.
func (r *Runs) RemoveSchedule(ctx context.Context, name string) error {
	return r.db.Update(ctx, func(c *sqlite.Conn) error {
		result, err := c.Exec(ctx, `DELETE FROM schedule WHERE name = ?`, name)
		if err != nil {
			return err
		}
		if n, err := result.RowsAffected(); err != nil || n == 0 {
			return errors.Join(err, &UnknownScheduleError{name})
		}
		if _, err := c.Exec(ctx, `UPDATE run SET schedule = NULL WHERE schedule = ?`, name); err != nil {
			return err
		}
		return dropCode(ctx, c)
	})
}

// nextAfter is the time after another.
func (s scheduleRow) nextAfter(now time.Time) (next sql.NullInt64, err error) {
	if s.text == nil {
		return next, &ScheduleError{"it cannot be read"}
	}
	times, err := s.scheduled.times()
	if err != nil {
		return next, err
	}
	at := times.Next(now)
	return sql.NullInt64{Int64: at.UnixMilli(), Valid: !at.IsZero()}, nil
}

// due returns the times from one on until now for which a run is to start, in order.
func (s *Schedule) due(from, now time.Time) (due []time.Time, err error) {
	times, err := s.times()
	if err != nil {
		return nil, err
	}
	most := 1
	if s.Missed == "all" {
		most = MaxMissed
	}
	for at := now.Add(time.Second); len(due) < most; { // Prev looks before its argument
		at = times.Prev(at)
		if at.IsZero() || at.Before(from) {
			break
		}
		if at.After(now) {
			continue
		}
		if s.Missed == "skip" && now.Sub(at) > onTime {
			break
		}
		due = append(due, at)
	}
	slices.Reverse(due)
	return due, nil
}

// fire starts the runs of schedules whose time has come, and returns when the next one's comes. If somebody has set the clock back, it looks again for the next time; a run that was
// started already is found by its key.
func (r *Runs) fire(ctx context.Context, now time.Time) (wait time.Duration, err error) {
	wait = time.Hour
	const ripe = `next IS NOT NULL AND (next <= ?1 OR looked > ?1)`
	var names []string
	var next sql.NullInt64
	if err := r.db.Read(ctx, func(c *sqlite.Conn) error {
		for one, err := range c.Rows(ctx, `SELECT name FROM schedule WHERE `+ripe, now.UnixMilli()) {
			if err != nil {
				return err
			}
			var name string
			if err := one.Scan(&name); err != nil {
				return err
			}
			names = append(names, name)
		}
		return c.Row(ctx, `SELECT min(next) FROM schedule`).Scan(&next)
	}); err != nil {
		return wait, err
	}
	for _, name := range names {
		if err := r.db.Update(ctx, func(c *sqlite.Conn) error {
			var due bool
			if err := c.Row(ctx, `SELECT EXISTS (SELECT 1 FROM schedule WHERE name = ?2 AND `+ripe+`)`, now.UnixMilli(), name).Scan(&due); err != nil || !due {
				return err
			}
			all, err := r.schedules(ctx, c, name)
			if err != nil {
				return err
			}
			return r.fireOne(ctx, c, all[0], now)
		}); err != nil {
			return wait, err
		}
		wait = 0
	}
	if next.Valid && len(names) == 0 {
		wait = max(0, timeOf(next.Int64).Sub(now))
	}
	return wait, nil
}

func (r *Runs) fireOne(ctx context.Context, c *sqlite.Conn, s scheduleRow, now time.Time) error {
	after, err := s.nextAfter(now)
	var due []time.Time
	if err == nil && s.next.Int64 <= now.UnixMilli() {
		due, err = s.scheduled.due(timeOf(s.next.Int64), now)
	}
	if err != nil { // its time zone is not known any more, or it was altered
		_, err = c.Exec(ctx, `UPDATE schedule SET next = NULL, reason = ? WHERE name = ?`, printable.Short(err.Error(), 1<<10), s.name)
		return err
	}
	for _, at := range due {
		goes := false
		if s.scheduled.Overlap == "skip" {
			if err := c.Row(ctx, `SELECT EXISTS (SELECT 1 FROM run WHERE schedule = ? AND state IN ('ready', 'running', 'asleep'))`, s.name).Scan(&goes); err != nil {
				return err
			}
		}
		s.last = sql.NullInt64{Int64: at.UnixMilli(), Valid: true}
		if goes {
			continue
		}
		w := writtenRun{spec: s.scheduled.What, code: s.code, deadline: s.scheduled.Deadline, schedule: s.name, key: fmt.Sprintf("schedule:%s:%s", s.name, at.UTC().Format("2006-01-02T15:04Z"))}
		run, _, err := r.insert(ctx, c, w, nil)
		if err != nil {
			return err
		}
		s.run = sql.NullString{String: run.name, Valid: true}
	}
	_, err = c.Exec(ctx, `UPDATE schedule SET next = ?, looked = ?, last = ?, run = ? WHERE name = ?`, after, now.UnixMilli(), s.last, s.run, s.name)
	return err
}
