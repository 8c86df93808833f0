package durable

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/stilehost/stile/internal/printable"
	"github.com/stilehost/stile/internal/sha256hex"
	"github.com/stilehost/stile/internal/sqlite"
)

const (
	// tidyTime is how often a process looks whether there is more than is to be kept, if runs end meanwhile.
	tidyTime = time.Minute
	// tidyRuns is after how many runs that ended it does so earlier.
	tidyRuns = 256
	// tidyAtOnce is how many runs are removed in one transaction.
	tidyAtOnce = 256
	// shrinkPages is how many pages of the file are given back in one transaction.
	shrinkPages = 512
	// insistPages is the same when a person removes a run: what that writes has room in what is reserved, also if each page moves.
	insistPages = 64
)

// tidy has as many runs kept that have ended as the options say, from when the process begins to work on runs.
func (r *Runs) tidy() {
	tick := time.NewTicker(tidyTime)
	defer tick.Stop()
	for {
		if r.ended.Swap(0) > 0 {
			if err := r.removeOld(r.ctx); err != nil && r.ctx.Err() == nil {
				r.log.Error("runs that have ended are not removed", "error", err)
			}
		}
		select {
		case <-r.ctx.Done():
			return
		case <-tick.C:
		case <-r.untidy:
		}
	}
}

// hasEnded counts a run that has ended.
func (r *Runs) hasEnded() {
	if r.ended.Add(1) == tidyRuns {
		select {
		case r.untidy <- struct{}{}:
		default:
		}
	}
}

// removeOld removes the runs that ended first, as long as more are there than are to be kept, and gives room back that the file does not need.
func (r *Runs) removeOld(ctx context.Context) error {
	for {
		old, err := r.old(ctx)
		if err != nil || len(old) == 0 {
			return errors.Join(err, r.shrink(ctx, shrinkPages))
		}
		if err := r.removeEnded(ctx, old); err != nil {
			return err
		}
	}
}

// removeEnded removes those of these runs that have still ended: somebody can have one begin again meanwhile.
func (r *Runs) removeEnded(ctx context.Context, ids []int64) error {
	return r.db.UpdateSoon(ctx, func(c *sqlite.Conn) error {
		for _, id := range ids {
			var ended bool
			if err := c.Row(ctx, `SELECT EXISTS (SELECT 1 FROM run WHERE id = ? AND state IN ('done', 'failed', 'cancelled'))`, id).Scan(&ended); err != nil {
				return err
			}
			if !ended {
				continue
			}
			if err := forget(ctx, c, id); err != nil {
				return err
			}
		}
		return dropCode(ctx, c)
	})
}

// keptShare is which part of the runs that are kept may be of the same agent or extension: those that one has started do not drive out the others'.
const keptShare = 10

// keeping is what is kept of runs that have ended, so far.
type keeping struct {
	runs  int
	bytes int64
}

// keep counts runs, unless there are too many then.
func (k *keeping) keep(runs int, bytes int64, most keeping) bool {
	k.runs, k.bytes = k.runs+runs, k.bytes+bytes
	return k.runs <= most.runs && k.bytes <= most.bytes
}

// old finds runs to remove: with their children, about tidyAtOnce.
func (r *Runs) old(ctx context.Context) (old []int64, err error) {
	most := keeping{r.o.MaxEnded, r.o.MaxEndedBytes}
	share := keeping{max(1, most.runs/keptShare), most.bytes / keptShare}
	err = r.db.Read(ctx, func(c *sqlite.Conn) error {
		var all keeping
		removed, of := 0, map[string]*keeping{} // by who started them
		const size = `length(spec) + ifnull((SELECT length(body) FROM outcome WHERE run = id), 0) + ifnull((SELECT length(body) FROM history WHERE run = id), 0) + ifnull((SELECT length(body) FROM stash WHERE run = id), 0)`
		const query = `SELECT id, whose, 1 + (SELECT count(*) FROM run WHERE root = top.id), ` + size + ` + ifnull((SELECT sum(` + size + `) FROM run WHERE root = top.id), 0) FROM run AS top
			WHERE state IN ('done', 'failed', 'cancelled') AND parent IS NULL ORDER BY changed DESC, id DESC`
		for one, err := range c.Rows(ctx, query) {
			if err != nil {
				return err
			}
			var id, size int64
			var runs int
			var whose string
			if err := one.Scan(&id, &whose, &runs, &size); err != nil {
				return err
			}
			keep := true
			if whose != "" {
				if of[whose] == nil {
					of[whose] = &keeping{}
				}
				keep = of[whose].keep(runs, size, share)
			}
			if !keep || !all.keep(runs, size, most) {
				old = append(old, id)
				if removed += runs; removed >= tidyAtOnce {
					return nil
				}
			}
		}
		return nil
	})
	return old, err
}

// forget deletes a run, and its children.
func forget(ctx context.Context, c *sqlite.Conn, id int64) error {
	children, err := idsOf(ctx, c, `SELECT id FROM run WHERE parent = ?`, id)
	if err != nil {
		return err
	}
	for _, child := range children {
		if err := forget(ctx, c, child); err != nil {
			return err
		}
	}
	if _, err := c.Exec(ctx, `DELETE FROM message WHERE (run, mailbox) = (SELECT parent, 'child:' || replace(key, rtrim(key, '0123456789'), '') FROM run WHERE id = ? AND parent IS NOT NULL)`, id); err != nil {
		return err
	}
	if err := forgetMessages(ctx, c, id); err != nil {
		return err
	}
	if err := forgetStash(ctx, c, id); err != nil {
		return err
	}
	for _, query := range []string{`DELETE FROM run WHERE id = ?`, `DELETE FROM snapshot WHERE run = ?`, `DELETE FROM outcome WHERE run = ?`, `DELETE FROM log WHERE run = ?`, `DELETE FROM attempt WHERE run = ?`, `DELETE FROM history WHERE run = ?`, `DELETE FROM awaited WHERE run = ?`} {
		if _, err := c.Exec(ctx, query, id); err != nil {
			return err
		}
	}
	return nil
}

// errNoCode says that code is not in the store any more.
var errNoCode = errors.New("code is not in the store")

// packCode packs what is not in the store.
func (r *Runs) packCode(ctx context.Context, bodies []Code, packed map[string][]byte) error {
	for _, code := range bodies {
		known := packed[code.Digest] != nil
		if !known {
			if err := r.db.Read(ctx, func(c *sqlite.Conn) (err error) {
				known, err = hasCode(ctx, c, code.Digest)
				return err
			}); err != nil {
				return err
			}
		}
		if known {
			continue
		}
		body, err := code.Read(ctx)
		if err != nil {
			return fmt.Errorf("read the code of a run: %w", err)
		}
		if got := sha256hex.Of(body); got != code.Digest {
			return fmt.Errorf("the code of a run has the digest %s, and not %s", got, printable.Short(code.Digest, 64))
		}
		packed[code.Digest] = packer().EncodeAll(body, nil)
	}
	return nil
}

func hasCode(ctx context.Context, c *sqlite.Conn, digest string) (has bool, err error) {
	err = c.Row(ctx, `SELECT EXISTS (SELECT 1 FROM code WHERE digest = ?)`, digest).Scan(&has)
	return has, err
}

// keepCode writes down the code of a run, and which modules it imports. It fails with errNoCode if some is neither in the store nor packed.
func keepCode(ctx context.Context, c *sqlite.Conn, component string, modules map[string]string, packed map[string][]byte) error {
	keep := func(digest string) error {
		if body := packed[digest]; body != nil {
			_, err := c.Exec(ctx, `INSERT OR IGNORE INTO code VALUES (?, ?)`, digest, body)
			return err
		}
		has, err := hasCode(ctx, c, digest)
		if err == nil && !has {
			err = errNoCode
		}
		return err
	}
	if component == "" { // of a function
		return nil
	}
	if err := keep(component); err != nil {
		return err
	}
	for _, module := range modules {
		if err := keep(module); err != nil {
			return err
		}
		if _, err := c.Exec(ctx, `INSERT OR IGNORE INTO import VALUES (?, ?)`, component, module); err != nil {
			return err
		}
	}
	return nil
}

// dropCode deletes the code of runs and schedules that are not there any more.
func dropCode(ctx context.Context, c *sqlite.Conn) error {
	for _, query := range []string{
		`DELETE FROM import WHERE NOT EXISTS (SELECT 1 FROM run WHERE run.code = import.code) AND NOT EXISTS (SELECT 1 FROM schedule WHERE schedule.code = import.code)`,
		`DELETE FROM code WHERE NOT EXISTS (SELECT 1 FROM run WHERE run.code = digest) AND NOT EXISTS (SELECT 1 FROM schedule WHERE schedule.code = digest) AND NOT EXISTS (SELECT 1 FROM import WHERE module = digest)`,
	} {
		if _, err := c.Exec(ctx, query); err != nil {
			return err
		}
	}
	return nil
}

// shrink gives pages of the file back, so many in one transaction, while twice that, and more than a quarter of the file, are free.
func (r *Runs) shrink(ctx context.Context, pages int) error {
	last := int64(math.MaxInt64)
	for {
		var all, free int64
		if err := r.db.Read(ctx, func(c *sqlite.Conn) error {
			return errors.Join(c.Row(ctx, `PRAGMA page_count`).Scan(&all), c.Row(ctx, `PRAGMA freelist_count`).Scan(&free))
		}); err != nil || free < 2*int64(pages) || free < all/4 || free >= last {
			return err
		}
		last = free
		if err := r.db.Shrink(ctx, pages); err != nil {
			return err
		}
	}
}
