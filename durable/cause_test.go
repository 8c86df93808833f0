package durable_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stilehost/stile/capabilities/kv"
	"github.com/stilehost/stile/durable"
)

// stuck is a bucket whose reads end with their context.
type stuck struct {
	*kv.Bucket
	begun chan struct{}
	ended chan error
}

func (s stuck) Get(ctx context.Context, _ string) (*string, error) {
	s.begun <- struct{}{}
	<-ctx.Done()
	s.ended <- context.Cause(ctx)
	return nil, ctx.Err()
}

// TestCauseOfCapability ends runs while Go code of a capability works for them. It hears why.
func TestCauseOfCapability(t *testing.T) {
	for name, want := range map[string]error{"cancelled": durable.ErrCancelled, "late": durable.ErrLate} {
		t.Run(name, func(t *testing.T) {
			b := stuck{begun: make(chan struct{}, 1), ended: make(chan error, 1)}
			s := newStored(t, func(o *durable.Options) {
				request := o.Request
				o.Request = func(ctx context.Context, run durable.Info) (durable.Authority, error) {
					a, err := request(ctx, run)
					a.Request.Env["store"] = b
					return a, err
				}
			})
			b.Bucket = s.bucket.Bucket("b")
			spec := program(t, s.shop, s.cacheDir, s.keyDir, `return await env.store.get("n");`)
			spec.Deadline = time.Hour
			run, _, err := s.runs.Start(t.Context(), spec)
			if err != nil {
				t.Fatal(err)
			}
			s.runs.Work()
			<-b.begun
			if errors.Is(want, durable.ErrLate) {
				s.set(2 * time.Hour)
			} else if _, err := s.runs.Cancel(t.Context(), run.Name); err != nil {
				t.Fatal(err)
			}
			if err := <-b.ended; !errors.Is(err, want) {
				t.Errorf("its context ended with %v", err)
			}
			if r, err := s.runs.Wait(t.Context(), run.Name); err != nil || !r.State.Final() {
				t.Error(r.State, err)
			}
		})
	}
}
