package turns

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/gofrs/flock"

	"github.com/stilehost/stile/internal/private"
)

var folder atomic.Pointer[string]

// Share makes this process share its places of [NewNamed] with all other processes that name the same folder, from now on.
func Share(dir string) { folder.Store(&dir) }

// NewNamed returns n places. After [Share], all processes together have n places of this name. The processes queue in no particular
// order, but none gets a second place ahead of one that waits for its first. Places of a process that was killed are free.
func NewNamed(name string, n int) *Places {
	p := New(n)
	p.name, p.size = name, n
	return p
}

// share takes a place of those that all processes share.
func (p *Places) share(ctx context.Context) error {
	dir := folder.Load()
	if p.name == "" || dir == nil {
		return nil
	}
	lock := func(what string) (*flock.Flock, func() (bool, error)) {
		l := flock.New(filepath.Join(*dir, p.name+what), flock.SetPermissions(0o600))
		return l, func() (bool, error) {
			if err := private.ClearLock(l.Path()); err != nil {
				return false, err
			}
			return l.TryLock()
		}
	}
	// Only the holder of this lock looks for a place. So a process that gives one back cannot take it again before the holder looks.
	next, try := lock(".next")
	if err := until(ctx, try); err != nil {
		return err
	}
	var place *flock.Flock
	err := until(ctx, func() (ok bool, err error) {
		for i := 0; i < p.size && !ok && err == nil; i++ {
			place, try = lock(fmt.Sprintf(".place%d", i))
			ok, err = try()
		}
		return ok, err
	})
	if err = errors.Join(err, next.Close()); err != nil {
		return errors.Join(err, place.Close())
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.shared = append(p.shared, place)
	return nil
}

// The system can say when a lock is free, but such a wait would not end with a context.
const (
	minPause = time.Millisecond
	maxPause = 50 * time.Millisecond
)

// until waits until try succeeds. What it waits longer than necessary is a part of the time waited, so short work stays short.
func until(ctx context.Context, try func() (bool, error)) error {
	began := time.Now()
	for {
		if ok, err := try(); ok || err != nil {
			return err
		}
		pause := time.NewTimer(min(max(time.Since(began)/8, minPause), maxPause))
		select {
		case <-pause.C:
		case <-ctx.Done():
			pause.Stop()
			return context.Cause(ctx)
		}
	}
}
