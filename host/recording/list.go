package recording

import (
	"context"
	"time"

	"github.com/stilehost/stile/host"
	"github.com/stilehost/stile/internal/sqlite"
)

// Summary is one line in a list of recordings. Its texts come from the component: make them printable before you show them.
type Summary struct {
	ID         int64
	Started    time.Time
	Duration   time.Duration
	Component  string
	Tool       string
	Extension  string // host.Recording.Extension; empty for recordings that are older than that field
	Outcome    string // host.Outcome.Kind
	Operations int
	Cut        string
}

// Filter chooses recordings. Its zero value chooses the newest 100.
type Filter struct {
	Tool  string    // only of this tool; empty for all
	Since time.Time // started at this time or later
	// Failed selects calls whose outcome is not ok.
	Failed bool
	// Limit is how many are returned at most, the newest first. Default 100.
	Limit int
}

const columns = `id, started, duration, component, tool, extension, outcome, operations, cut`

func (s *Summary) scan(row interface{ Scan(...any) error }, more ...any) error {
	var started int64
	if err := row.Scan(append([]any{&s.ID, &started, &s.Duration, &s.Component, &s.Tool, &s.Extension, &s.Outcome, &s.Operations, &s.Cut}, more...)...); err != nil {
		return err
	}
	s.Started = time.UnixMilli(started)
	return nil
}

func summary(r *host.Recording, id int64) Summary {
	return Summary{id, time.UnixMilli(r.Started.UnixMilli()), r.Duration, r.Component, r.Tool, r.Extension, r.Outcome.Kind, r.Usage.Operations, r.Cut}
}

// List returns recordings, the newest first, and how many calls of the same period could not be recorded.
func (s *Store) List(ctx context.Context, f Filter) (list []Summary, dropped int64, err error) {
	if f.Limit <= 0 {
		f.Limit = 100
	}
	since := int64(0)
	if !f.Since.IsZero() {
		since = f.Since.UnixMilli()
	}
	err = s.db.View(ctx, func(c *sqlite.Conn) error {
		if err := c.Row(ctx, `SELECT coalesce(sum(calls), 0) FROM dropped WHERE at >= ?`, since).Scan(&dropped); err != nil {
			return err
		}
		// Another program may have written texts of any size.
		for row, err := range c.Rows(ctx, `SELECT id, started, duration, substr(component, 1, 1000), substr(tool, 1, 1000), substr(extension, 1, 1000), substr(outcome, 1, 1000), operations, substr(cut, 1, 1000) FROM call
			WHERE (?1 = '' OR tool = ?1) AND started >= ?2 AND (NOT ?3 OR outcome <> 'ok') ORDER BY id DESC LIMIT ?4`,
			f.Tool, since, f.Failed, f.Limit) {
			if err != nil {
				return err
			}
			var one Summary
			if err := one.scan(row); err != nil {
				return err
			}
			list = append(list, one)
		}
		return nil
	})
	return list, dropped, err
}
