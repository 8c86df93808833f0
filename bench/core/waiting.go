package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	nethttp "net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"slices"
	"sync"
	"time"

	"github.com/stilehost/stile/bench/internal/measure"
	"github.com/stilehost/stile/capabilities/clock"
	"github.com/stilehost/stile/capabilities/http"
	"github.com/stilehost/stile/host"
	"github.com/stilehost/stile/toolchain"
)

// waiter makes calls of waiting.ts in one of the two ways.
type waiter struct {
	host      *host.Host
	tools     *toolchain.Toolchain
	component *host.Component
}

func (b *bench) newWaiter(ctx context.Context, o host.Options) (w *waiter, err error) {
	w = &waiter{}
	defer func() {
		if err != nil {
			err = errors.Join(err, w.close())
		}
	}()
	o.CacheDir, o.KeyDir = b.caches()
	if w.host, err = host.New(ctx, o); err != nil {
		return w, err
	}
	if w.tools, err = toolchain.New(ctx, w.host, toolchain.Options{CacheDir: o.CacheDir, KeyDir: o.KeyDir, Engine: b.packages}); err != nil {
		return w, err
	}
	src, err := source("waiting.ts", "")
	if err != nil {
		return w, err
	}
	src.Bindings["web"] = http.Interface
	w.component, err = w.tools.Build(ctx, src)
	return w, err
}

func (w *waiter) close() error {
	var errs []error
	if w.tools != nil {
		errs = append(errs, w.tools.Close())
	}
	if w.host != nil {
		errs = append(errs, w.host.Close())
	}
	return errors.Join(errs...)
}

func (w *waiter) call(ctx context.Context, tool, input, want string, env host.Env) error {
	out, err := w.component.Call(ctx, tool, []byte(input), env)
	if err == nil && string(out) != want {
		err = fmt.Errorf("a wrong answer: %s", out)
	}
	return err
}

// measureWaiting compares calls that are made in steps with calls in one piece. The first rows are of calls in steps alone, because calls
// in one piece take a thread each.
func measureWaiting(ctx context.Context, b *bench, _ *subject) (err error) {
	narrow, err := b.newWaiter(ctx, host.Options{Instances: b.rounds(256), Limits: host.Limits{Wall: 10 * time.Minute}})
	if err != nil {
		return err
	}
	if err := errors.Join(b.manyWait(ctx, narrow), narrow.close()); err != nil {
		return err
	}
	steps, err := b.newWaiter(ctx, host.Options{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, steps.close()) }()
	pieces, err := b.newWaiter(ctx, host.Options{WholeCalls: true})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, pieces.close()) }()
	env := host.Env{"clock": clock.System()}
	for _, tool := range []struct{ name, key, what string }{
		{"none", "steps_call_ratio", "a call that never waits, in steps / in one piece"},
		{"once", "steps_wait_ratio", "a call that waits for 1 ms, in steps / in one piece"},
	} {
		var inSteps, inPieces measure.Series
		for range b.rounds(60) {
			for _, way := range []struct {
				*waiter
				into *measure.Series
			}{{steps, &inSteps}, {pieces, &inPieces}} {
				call := func() error { return way.call(ctx, tool.name, "{}", `"ended"`, env) }
				if _, err := timed(20, time.Microsecond, call); err != nil {
					return err
				}
				round, err := timed(100, time.Microsecond, call)
				if err != nil {
					return err
				}
				*way.into = append(*way.into, round)
			}
		}
		b.add(row{Key: tool.key, What: tool.what, AtMost: 1.02}.ratio(inSteps, inPieces))
	}
	return b.requests(ctx, steps, pieces)
}

// manyWait starts calls at once, which wait, and ends them together. Most have given their instance back once the last one waits, since
// there are few instances. What instances keep does not grow with the number of calls, so memory is a slope.
func (b *bench) manyWait(ctx context.Context, w *waiter) error {
	few, many, most := b.rounds(2_000), b.rounds(10_000), b.rounds(100_000)
	g := &gate{waiting: make(chan struct{}, most)}
	ended := make(chan error, most)
	hold := func(n int) (kib float64, err error) {
		for range n {
			err := w.component.Start(ctx, host.Request{Tool: "long", Env: host.Env{"clock": g}}, func(r host.Result, err error) {
				if err == nil && string(r.Output) != `"ended"` {
					err = fmt.Errorf("a wrong answer: %s", r.Output)
				}
				ended <- err
			})
			if err != nil {
				return 0, err
			}
		}
		for range n {
			select {
			case <-g.waiting:
			case err := <-ended:
				return 0, errors.Join(errors.New("a call did not wait"), err)
			}
		}
		return privateKiB()
	}
	before, err := hold(few)
	if err != nil {
		return err
	}
	after, err := hold(many - few)
	if err != nil {
		return err
	}
	all, err := hold(most - many)
	if err != nil {
		return err
	}
	threads, err := measure.KiB("/proc/self/status", "Threads")
	if err != nil {
		return err
	}
	start := time.Now()
	g.open.SetReady()
	for range most {
		if err := <-ended; err != nil {
			return err
		}
	}
	b.add(row{Key: "waiting_kib", What: fmt.Sprintf("private memory of a waiting call, %d calls wait", many), Unit: "KiB", AtMost: 12, Value: (after - before) / float64(many-few)})
	b.add(row{Key: "waiting_threads", What: fmt.Sprintf("threads of the process, %d calls wait", most), AtMost: 34, Value: threads})
	b.add(row{Key: "waiting_all_mib", What: "... private memory of the process", Unit: "MiB", AtMost: 1536, Value: all / 1024})
	b.add(row{Key: "waiting_end_s", What: "... until all have ended, once nothing keeps them", Unit: "s", AtMost: 10, Value: time.Since(start).Seconds()})
	return nil
}

// requests has 1,000 calls at once make a request each to a server in this process, in turns.
func (b *bench) requests(ctx context.Context, steps, pieces *waiter) error {
	const calls = 1000
	server := httptest.NewServer(nethttp.HandlerFunc(func(w nethttp.ResponseWriter, _ *nethttp.Request) { _, _ = io.WriteString(w, "hello") }))
	defer server.Close()
	at, err := url.Parse(server.URL)
	if err != nil {
		return err
	}
	port, err := netip.ParseAddrPort(at.Host)
	if err != nil {
		return err
	}
	web, err := http.New(http.Options{Rules: []http.Rule{{Scheme: "http", Host: port.Addr().String(), Port: port.Port()}}, Pending: calls})
	if err != nil {
		return err
	}
	env := host.Env{"web": web}
	input := fmt.Sprintf(`{"url":%q}`, server.URL+"/")
	burst := func(w *waiter) (p99, rate float64, err error) {
		took, errs := make([]float64, calls), make([]error, calls)
		start := time.Now()
		var running sync.WaitGroup
		for i := range calls {
			running.Go(func() {
				errs[i] = w.call(ctx, "get", input, `"hello"`, env)
				took[i] = milliseconds(time.Since(start))
			})
		}
		running.Wait()
		all := time.Since(start).Seconds()
		slices.Sort(took)
		return measure.Quantile(took, 0.99), calls / all, errors.Join(errs...)
	}
	var late, lateWhole, rates, ratesWhole measure.Series
	for range b.rounds(20) {
		p99, rate, err := burst(steps)
		if err != nil {
			return err
		}
		late, rates = append(late, []float64{p99}), append(rates, []float64{rate})
		if p99, rate, err = burst(pieces); err != nil {
			return err
		}
		lateWhole, ratesWhole = append(lateWhole, []float64{p99}), append(ratesWhole, []float64{rate})
	}
	b.add(row{Key: "requests_p99_ratio", What: "1,000 calls at once make a request each: p99, in steps / in one piece"}.ratio(late, lateWhole))
	b.add(row{Key: "requests_rate_ratio", What: "... calls a second, in steps / in one piece"}.ratio(rates, ratesWhole))
	b.add(row{Key: "requests_per_second", What: "... calls a second, in steps", Unit: "/s"}.of(rates))
	return nil
}
