package durable

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stilehost/stile/host"
	"github.com/stilehost/stile/internal/sqlite"
)

// hands is a clock that a test sets.
type hands struct{ at atomic.Int64 }

func newHands(t *testing.T, at string) *hands {
	t.Helper()
	h := &hands{}
	h.set(t, at)
	return h
}

func (h *hands) set(t *testing.T, at string) {
	t.Helper()
	when, err := time.Parse(time.RFC3339, at)
	if err != nil {
		t.Fatal(err)
	}
	h.at.Store(when.UnixMilli())
}

func (h *hands) now() time.Time { return time.UnixMilli(h.at.Load()) }

// scheduling opens a store with such a clock. Its function "f" waits for gate, if there is one.
func scheduling(t *testing.T, dir string, h *hands, gate chan struct{}) *Runs {
	t.Helper()
	r, err := Open(t.Context(), Options{Dir: dir, Key: bytes.Repeat([]byte{7}, KeySize), Functions: map[string]Function{"f": Func(func(ctx context.Context, _ struct{}) (string, error) {
		if gate != nil {
			select {
			case <-gate:
			case <-ctx.Done():
			}
		}
		return "", nil
	})}})
	if err != nil {
		t.Fatal(err)
	}
	r.now = h.now
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	})
	return r
}

func add(t *testing.T, r *Runs, s Schedule) {
	t.Helper()
	s.Spec.Function = "f"
	if _, err := r.AddSchedule(t.Context(), s); err != nil {
		t.Fatal(err)
	}
}

// fires looks at the schedules, and returns the keys of the runs that there are, from the first.
func fires(t *testing.T, r *Runs) (keys []string) {
	t.Helper()
	if _, err := r.fire(t.Context(), r.now()); err != nil {
		t.Fatal(err)
	}
	all, err := r.List(t.Context(), "", 10_000)
	if err != nil {
		t.Fatal(err)
	}
	for _, run := range slices.Backward(all) {
		keys = append(keys, run.Key)
	}
	return keys
}

func same(t *testing.T, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("there are %s, not %s", got, want)
	}
}

// TestScheduleZones has times that a change of the clock skips or repeats.
func TestScheduleZones(t *testing.T) {
	for _, c := range []struct {
		cron, zone, from string
		want             []string
	}{
		{"30 9 * * 1-5", "Europe/Berlin", "2026-03-27T12:00:00Z", []string{"2026-03-30T07:30:00Z", "2026-03-31T07:30:00Z"}},                                                              // of CET and CEST
		{"30 2 * * *", "Europe/Berlin", "2026-03-28T12:00:00Z", []string{"2026-03-29T01:30:00Z", "2026-03-30T00:30:00Z"}},                                                                // 02:30 does not exist: it is at 03:30
		{"30 2 * * *", "Europe/Berlin", "2026-10-24T12:00:00Z", []string{"2026-10-25T00:30:00Z", "2026-10-25T01:30:00Z", "2026-10-26T01:30:00Z"}},                                        // 02:30 comes twice
		{"0 * * * *", "America/New_York", "2026-03-08T05:30:00Z", []string{"2026-03-08T06:00:00Z", "2026-03-08T07:00:00Z", "2026-03-08T08:00:00Z"}},                                      // each hour that there is
		{"0 0 * * *", "America/Santiago", "2026-09-05T12:00:00Z", []string{"2026-09-07T03:00:00Z", "2026-09-08T03:00:00Z"}},                                                              // midnight does not exist: it is left out
		{"0 2 * * *", "Australia/Lord_Howe", "2026-10-03T00:00:00Z", []string{"2026-10-04T15:00:00Z", "2026-10-05T15:00:00Z"}},                                                           // 02:00 does not exist, by half an hour
		{"0 12 13 * 5", "UTC", "2026-11-01T00:00:00Z", []string{"2026-11-06T12:00:00Z", "2026-11-13T12:00:00Z", "2026-11-20T12:00:00Z", "2026-11-27T12:00:00Z", "2026-12-04T12:00:00Z"}}, // as cron does: either
		{"0 0 29 2 *", "UTC", "2026-01-01T00:00:00Z", []string{"2028-02-29T00:00:00Z", "2032-02-29T00:00:00Z"}},
		{"@weekly", "", "2026-11-26T00:00:00Z", []string{"2026-11-29T00:00:00Z", "2026-12-06T00:00:00Z"}},
	} {
		s := Schedule{Name: "s", Cron: c.cron, Zone: c.zone}
		times, err := s.times()
		if err != nil {
			t.Fatal(err)
		}
		at, err := time.Parse(time.RFC3339, c.from)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for range c.want {
			at = times.Next(at)
			got = append(got, at.UTC().Format(time.RFC3339))
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s in %s: got %s, not %s", c.cron, c.zone, got, c.want)
		}
	}
}

// TestScheduleRefused has schedules that cannot be. None takes long to refuse.
func TestScheduleRefused(t *testing.T) {
	r := scheduling(t, t.TempDir(), newHands(t, "2026-01-01T00:00:00Z"), nil)
	ok := Schedule{Name: "ok", Cron: "0 9 * * *", Spec: Spec{Function: "f"}}
	for _, change := range []func(*Schedule){
		func(s *Schedule) { s.Name = "" },
		func(s *Schedule) { s.Name = "a/b" },
		func(s *Schedule) { s.Name = strings.Repeat("a", 65) },
		func(s *Schedule) { s.Cron = "" },
		func(s *Schedule) { s.Cron = "* * * * * *" },
		func(s *Schedule) { s.Cron = "@every 1s" },
		func(s *Schedule) { s.Cron = "@reboot" },
		func(s *Schedule) { s.Cron = "TZ=UTC 0 9 * * *" },
		func(s *Schedule) { s.Cron = "CRON_TZ=UTC 0 9 * * *" },
		func(s *Schedule) { s.Cron = "60 * * * *" },
		func(s *Schedule) { s.Cron = "0 0 30 2 *" }, // never
		func(s *Schedule) { s.Cron = "0 0 31 2,4,6,9,11 *" },
		func(s *Schedule) { s.Cron = "*/0 * * * *" },
		func(s *Schedule) { s.Cron = "1-99999999999999999999 * * * *" },
		func(s *Schedule) { s.Cron = strings.Repeat("1,", 200) + "1 * * * *" },
		func(s *Schedule) { s.Cron = strings.Repeat("*", 300) },
		func(s *Schedule) { s.Cron = "H * * * *" },
		func(s *Schedule) { s.Zone = "Mars/Phobos" },
		func(s *Schedule) { s.Zone = "../../etc/passwd" },
		func(s *Schedule) { s.Zone = "Local" },
		func(s *Schedule) { s.Missed = "never" },
		func(s *Schedule) { s.Overlap = "queue" },
		func(s *Schedule) { s.Spec.Key = "k" },
		func(s *Schedule) { s.Spec.Whose = "somebody" },
	} {
		s := ok
		change(&s)
		started := time.Now()
		if _, err := r.AddSchedule(t.Context(), s); !errors.As(err, new(*ScheduleError)) {
			t.Errorf("%+v: got %v", s, err)
		}
		if took := time.Since(started); took > time.Second {
			t.Errorf("%+v: it took %v", s, took)
		}
	}
	if _, _, err := r.Start(t.Context(), Spec{Function: "f", Key: "schedule:ok:2026-01-01T09:00Z"}); err == nil {
		t.Error("a run can take the key of a schedule")
	}
	add(t, r, ok)
	add(t, r, ok) // the same
	other := ok
	other.Cron = "0 10 * * *"
	if _, err := r.AddSchedule(t.Context(), other); !errors.As(err, new(*ScheduleError)) {
		t.Errorf("another of that name: got %v", err)
	}
	for i := range MaxSchedules - 1 {
		s := ok
		s.Name = fmt.Sprint("s", i)
		add(t, r, s)
	}
	other.Name = "more"
	if _, err := r.AddSchedule(t.Context(), other); !errors.As(err, new(*ScheduleError)) {
		t.Errorf("one more: got %v", err)
	}
}

// TestMissedTimes has times that passed while no process worked on runs.
func TestMissedTimes(t *testing.T) {
	h := newHands(t, "2026-01-01T00:00:30Z")
	r := scheduling(t, t.TempDir(), h, nil)
	for _, missed := range []string{"once", "skip", "all"} {
		add(t, r, Schedule{Name: missed, Cron: "0 * * * *", Missed: missed, Overlap: "allow"})
	}
	h.set(t, "2026-01-01T03:30:00Z")
	same(t, fires(t, r), "schedule:all:2026-01-01T01:00Z", "schedule:all:2026-01-01T02:00Z", "schedule:all:2026-01-01T03:00Z", "schedule:once:2026-01-01T03:00Z")
	h.set(t, "2026-01-01T04:00:59Z") // that is on time
	if got := fires(t, r)[4:]; len(got) != 3 {
		t.Errorf("got %s", got)
	}
	h.set(t, "2036-01-01T04:00:59Z") // after ten years
	started := time.Now()
	if got := len(fires(t, r)) - 7; got != MaxMissed+2 {
		t.Errorf("got %d", got)
	}
	if took := time.Since(started); took > 5*time.Second {
		t.Errorf("it took %v", took)
	}
}

// TestScheduleClock sets the clock back and forth. Each time has one run.
func TestScheduleClock(t *testing.T) {
	h := newHands(t, "2026-01-01T00:00:30Z")
	r := scheduling(t, t.TempDir(), h, nil)
	add(t, r, Schedule{Name: "s", Cron: "0 * * * *", Overlap: "allow"})
	h.set(t, "2026-01-05T00:00:01Z") // by mistake
	same(t, fires(t, r), "schedule:s:2026-01-05T00:00Z")
	h.set(t, "2026-01-01T00:59:00Z")
	same(t, fires(t, r), "schedule:s:2026-01-05T00:00Z")
	h.set(t, "2026-01-01T01:00:00Z")
	same(t, fires(t, r), "schedule:s:2026-01-05T00:00Z", "schedule:s:2026-01-01T01:00Z")
	h.set(t, "2026-01-05T00:00:02Z")
	same(t, fires(t, r), "schedule:s:2026-01-05T00:00Z", "schedule:s:2026-01-01T01:00Z")
	h.set(t, "2026-01-05T01:00:02Z")
	same(t, fires(t, r), "schedule:s:2026-01-05T00:00Z", "schedule:s:2026-01-01T01:00Z", "schedule:s:2026-01-05T01:00Z")
}

// TestScheduleProcesses has several processes fire at once, and another after them.
func TestScheduleProcesses(t *testing.T) {
	dir, h, gate := t.TempDir(), newHands(t, "2026-01-01T00:00:30Z"), make(chan struct{})
	var all []*Runs
	for range 4 {
		all = append(all, scheduling(t, dir, h, gate))
	}
	add(t, all[0], Schedule{Name: "allow", Cron: "0 * * * *", Overlap: "allow"})
	add(t, all[0], Schedule{Name: "skip", Cron: "0 * * * *"})
	for _, at := range []string{"2026-01-01T01:00:00Z", "2026-01-01T02:00:01Z"} {
		h.set(t, at)
		var done sync.WaitGroup
		for _, r := range all {
			done.Go(func() {
				if _, err := r.fire(t.Context(), r.now()); err != nil {
					t.Error(err)
				}
			})
		}
		done.Wait()
	}
	same(t, fires(t, scheduling(t, dir, h, gate)), "schedule:allow:2026-01-01T01:00Z", "schedule:skip:2026-01-01T01:00Z", "schedule:allow:2026-01-01T02:00Z")
	info, err := all[0].Schedule(t.Context(), "skip")
	if err != nil || info.Last.Hour() != 2 || info.Run == "" || info.Next.Hour() != 3 {
		t.Errorf("got %+v, %v", info, err)
	}
	for _, r := range all { // now they work, and find the next time by themselves
		r.Work()
	}
	close(gate)
	if result, err := all[1].Wait(t.Context(), info.Run); err != nil || result.State != Done {
		t.Errorf("got %s, %v", result.State, err)
	}
	h.set(t, "2026-01-01T03:00:00Z")
	for {
		again, err := all[0].Schedule(t.Context(), "skip")
		if err != nil {
			t.Fatal(err)
		}
		if again.Run != info.Run {
			break
		}
		<-time.After(time.Millisecond)
	}
}

// TestPausedSchedule pauses, resumes and removes a schedule, and alters another.
func TestPausedSchedule(t *testing.T) {
	h := newHands(t, "2026-01-01T00:00:30Z")
	r := scheduling(t, t.TempDir(), h, nil)
	add(t, r, Schedule{Name: "s", Cron: "0 * * * *", Missed: "all", Overlap: "allow"})
	change := func(name string, pause, want bool) {
		t.Helper()
		if changed, err := r.PauseSchedule(t.Context(), name, pause); err != nil || changed != want {
			t.Errorf("got %v, %v", changed, err)
		}
	}
	change("s", false, false)
	change("s", true, true)
	change("s", true, false)
	h.set(t, "2026-01-01T03:30:00Z")
	same(t, fires(t, r))
	change("s", false, true)
	same(t, fires(t, r))
	h.set(t, "2026-01-01T04:00:00Z")
	same(t, fires(t, r), "schedule:s:2026-01-01T04:00Z")
	if err := r.RemoveSchedule(t.Context(), "s"); err != nil {
		t.Error(err)
	}
	for _, err := range []error{r.RemoveSchedule(t.Context(), "s"), second(r.PauseSchedule(t.Context(), "s", true)), second(r.PauseSchedule(t.Context(), "", true)), second(r.Schedule(t.Context(), "s")), second(r.Schedule(t.Context(), ""))} {
		if !errors.As(err, new(*UnknownScheduleError)) {
			t.Errorf("got %v", err)
		}
	}
	h.set(t, "2026-01-01T05:30:00Z")
	same(t, fires(t, r), "schedule:s:2026-01-01T04:00Z")

	for _, statement := range []string{`UPDATE schedule SET body = zeroblob(100)`, `UPDATE schedule SET code = 'another'`, `UPDATE schedule SET name = 'another'`} {
		add(t, r, Schedule{Name: "a", Cron: "0 * * * *"})
		if err := r.db.Update(t.Context(), func(c *sqlite.Conn) error {
			_, err := c.Exec(t.Context(), statement+`, next = 0`)
			return err
		}); err != nil {
			t.Fatal(err)
		}
		same(t, fires(t, r), "schedule:s:2026-01-01T04:00Z")
		all, err := r.Schedules(t.Context())
		if err != nil || len(all) != 1 || !all[0].Next.IsZero() || !strings.Contains(all[0].Reason, "cannot be read") {
			t.Errorf("got %+v, %v", all, err)
		}
		if err := r.RemoveSchedule(t.Context(), all[0].Name); err != nil {
			t.Error(err)
		}
	}
}

func second[T any](_ T, err error) error { return err }

// TestScheduleCode removes the runs of a schedule. It still has their code.
func TestScheduleCode(t *testing.T) {
	h := newHands(t, "2026-01-01T00:00:30Z")
	r := scheduling(t, t.TempDir(), h, nil)
	spec := Spec{Component: CodeOf([]byte("no component")), Modules: Modules{host.ModuleName([]byte("no module")): CodeOf([]byte("no module")).Read}, Tool: "t"}
	if _, err := r.AddSchedule(t.Context(), Schedule{Name: "s", Cron: "* * * * *", Overlap: "allow", Spec: spec}); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		h.at.Add(time.Minute.Milliseconds())
		if n := len(fires(t, r)); n != 1 {
			t.Errorf("there are %d runs", n)
		}
		all, err := r.List(t.Context(), "", 1)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := r.Cancel(t.Context(), all[0].Name); err != nil {
			t.Error(err)
		}
		if _, err := r.Remove(t.Context(), all[0].Name); err != nil {
			t.Error(err)
		}
	}
	for want := range 2 {
		var n int
		if err := r.db.Read(t.Context(), func(c *sqlite.Conn) error { return c.Row(t.Context(), `SELECT count(*) FROM code`).Scan(&n) }); err != nil || n != 2-2*want {
			t.Errorf("there are %d parts of code, %v", n, err)
		}
		if want == 0 {
			if err := r.RemoveSchedule(t.Context(), "s"); err != nil {
				t.Error(err)
			}
		}
	}
}
