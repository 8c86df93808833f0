package registry

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync/atomic"
	"time"
)

// ErrSlow is the error of an exchange whose registry sends and takes nothing for half a minute, or too little over the whole time.
var ErrSlow = errors.New("the registry is too slow")

// A registry has graceTime for each push or pull, and a second more for each minRate bytes, of at most the largest content and as much again. After each patience, some bytes must have passed.
const (
	graceTime = 2 * time.Minute
	patience  = 30 * time.Second
	minRate   = 16 << 10
)

// pace counts the bytes of a push or a pull, and ends it when they are too few.
type pace struct{ moved atomic.Int64 }

// Watch returns a context that ends with [ErrSlow] when the registry sends nothing for half a minute, or less than 16 KiB a second after two
// minutes. largest is how many bytes there are at most. stop ends the watch.
func (p *pace) Watch(ctx context.Context, largest int64) (_ context.Context, stop func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	tick := time.NewTicker(patience)
	go func() {
		defer tick.Stop()
		start, before := time.Now(), int64(0)
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			moved := p.moved.Load()
			took := time.Since(start)
			switch allowed := graceTime + time.Duration(min(moved, 2*largest)/minRate)*time.Second; {
			case moved == before:
				cancel(fmt.Errorf("%w: nothing passed for %v", ErrSlow, patience))
			case took > allowed:
				cancel(fmt.Errorf("%w: %d bytes took %v", ErrSlow, moved, took.Round(time.Second)))
			}
			before = moved
		}
	}()
	return ctx, func() { cancel(nil) }
}

// Slow returns [ErrSlow] in place of the error of a request that Watch has ended.
func Slow(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); err != nil && errors.Is(cause, ErrSlow) {
		return cause
	}
	return err
}

// counted counts what passes. An answer counts even if it has no body.
func (p *pace) counted(r *http.Request, do func(*http.Request) (*http.Response, error)) (*http.Response, error) {
	if r.Body != nil && r.Body != http.NoBody {
		r = r.Clone(r.Context())
		r.Body = &countedBody{r.Body, p}
	}
	response, err := do(r)
	if err == nil {
		p.moved.Add(1)
		response.Body = &countedBody{response.Body, p}
	}
	return response, err
}

type countedBody struct {
	io.ReadCloser
	pace *pace
}

// Read implements io.Reader.
func (b *countedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.pace.moved.Add(int64(n))
	return n, err
}
