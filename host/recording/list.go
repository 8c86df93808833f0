package recording

import (
	"context"
	"time"

	"github.com/stilehost/stile/host"
	"github.com/stilehost/stile/internal/sqlite"
)

// Summary is what a list says of a recording. Texts are the component's word: make them printable before they are shown.
type Summary struct {
	ID         int64
	Started    time.Time
	Duration   time.Duration
	Component  string
	Tool       string
	Outcome    string // host.Outcome.Kind
	Operations int
	Cut        string
}

// Filter chooses recordings. Its zero value chooses the newest 100.
type Filter struct {
	Tool  string    // of this tool only; empty for all
	Since time.Time // begun at this time or later
	// Failed chooses calls whose outcome is not ok.
	Failed bool
	// Limit is the most that are returned, the newest first. Default 100.
	Limit int
}

const columns = `id, started, duration, component, tool, outcome, operations, cut`

func (s *Summary) scan(row interface{ Scan(...any) error }, more ...any) error {
	var started int64
	if err := row.Scan(append([]any{&s.ID, &started, &s.Duration, &s.Component, &s.Tool, &s.Outcome, &s.Operations, &s.Cut}, more...)...); err != nil {
		return err
	}
	s.Started = time.UnixMilli(started)
	return nil
}

func summary(r *host.Recording, id int64) Summary {
	return Summary{id, time.UnixMilli(r.Started.UnixMilli()), r.Duration, r.Component, r.Tool, r.Outcome.Kind, r.Usage.Operations, r.Cut}
}

// List returns recordings, the newest first, and how many calls of the same time could not be recorded.
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
		for row, err := range c.Rows(ctx, `SELECT `+columns+` FROM call
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
