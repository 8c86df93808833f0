package contenders

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing/fstest"
	"time"

	"github.com/stilehost/stile/bench"
	"github.com/stilehost/stile/bench/internal/measure"
	"github.com/stilehost/stile/conformance/protocol"
	"github.com/stilehost/stile/toolchain"
)

// patience is how long a host of the protocol may take to answer. The first call of a component compiles it.
const patience = 2 * time.Minute

// spoken is the extension that hosts of the protocol run: the tool of [bench.Compute], a request, and a call that waits.
const spoken = `import { extension } from "stile";
%s
const input = { type: "object" };
export default extension({
  tools: {
    tool: { description: "Works", input, run: tool },
    fetch: { description: "Makes a request", input, run: async ({ url }, { net }) => (await net.fetch(url)).text() },
    hold: { description: "Works, makes a request and waits", input, run: async ({ url, of }, { net, clock }) => { tool(of); await net.fetch(url); await clock.sleep(6e5); } },
  },
});
`

// measureHosts puts hosts of the conformance suite's protocol beside this one. Each is a process that gets the same components and
// requests, in turns.
func measureHosts(ctx context.Context, s *bench.Suite) (err error) {
	if len(s.Hosts) == 0 {
		return nil
	}
	m, err := openHosts(ctx, s)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, m.close()) }()
	for round := range s.Size.Rounds {
		m.round = round
		for i, at := range m.Perm(len(m.all)) {
			h := m.all[at]
			s.Tell("hosts: "+h.name, round*len(m.all)+i, s.Size.Rounds*len(m.all))
			if err := h.measure(ctx, m); err != nil {
				return fmt.Errorf("%s: %w", h.name, err)
			}
		}
	}
	for _, h := range m.all {
		s.Tell("hosts: calls that wait in "+h.name, 0, 1)
		if err := h.waiting(ctx, m); err != nil {
			return fmt.Errorf("%s: calls that wait: %w", h.name, err)
		}
	}
	return nil
}

// WrongHostError reports a host of the protocol that does something else than it must.
type WrongHostError struct{ Reason string }

// Error implements error.
func (e *WrongHostError) Error() string { return e.Reason }

func wrong(format string, args ...any) error { return &WrongHostError{fmt.Sprintf(format, args...)} }

// hosts are hosts of the protocol and what they share.
type hosts struct {
	*bench.Suite
	tools  *ours
	site   *loopback
	dir    string
	stored string // a component
	all    []*spokenHost
	round  int
	n      int // of components
}

// spokenHost is a host of the protocol.
type spokenHost struct {
	name    string
	command []string
	env     []string
	*protocol.Host
	typical time.Duration
}

func openHosts(ctx context.Context, s *bench.Suite) (m *hosts, err error) {
	m = &hosts{Suite: s}
	defer func() {
		if err != nil {
			err, m = errors.Join(err, m.close()), nil
		}
	}()
	if m.dir, err = s.Workbench.Folder("hosts"); err != nil {
		return m, err
	}
	if m.tools, err = openOurs(ctx, &s.Workbench, bench.Compute, 0); err != nil {
		return m, err
	}
	if m.site, err = openLoopback(ctx); err != nil {
		return m, err
	}
	if m.stored, err = m.component(ctx, bench.StoredID); err != nil {
		return m, err
	}
	// Nobody's settings take part. To look for a browser would take most of the start. Each host may find what its own earlier processes
	// compiled.
	own := &spokenHost{command: []string{s.Workbench.Stile, "conformance-host", "--without", "browser"}, env: append(bench.Environment(),
		"STILE_HOME="+filepath.Join(m.dir, "home"), "STILE_CACHE="+filepath.Join(m.dir, "cache"), "STILE_ENGINE="+s.Workbench.Engine, "STILE_KEYRING=off")}
	m.all = append(m.all, own)
	for _, command := range s.Hosts {
		m.all = append(m.all, &spokenHost{command: command, env: bench.Environment()})
	}
	for i, h := range m.all {
		h.name = strings.Join(h.command, " ")
		if err := h.open(ctx); err != nil {
			return m, fmt.Errorf("%s: %w", h.name, err)
		}
		h.name = strings.TrimSpace(h.Hello().Name + " " + h.Hello().Version)
		if slices.ContainsFunc(m.all[:i], func(other *spokenHost) bool { return other.name == h.name }) {
			h.name += fmt.Sprintf(", number %d", i+1)
		}
		m.Tell("hosts: "+h.name+" begins", i, len(m.all))
		for range 3 { // the first one loads the component
			if h.typical, err = h.compute(ctx, m.stored, bench.StoredID, 1); err != nil {
				return m, fmt.Errorf("%s: %w", h.name, err)
			}
		}
	}
	return m, nil
}

func (m *hosts) close() (err error) {
	for _, h := range m.all {
		if h.Host != nil {
			h.Close()
		}
	}
	if m.site != nil {
		err = m.site.close()
	}
	return errors.Join(err, m.tools.Close())
}

// component makes a component that stands alone, as the file that hosts are given.
func (m *hosts) component(ctx context.Context, id string) (string, error) {
	wasm, err := m.tools.tools.Assemble(ctx, toolchain.Source{
		FS: fstest.MapFS{"tool.ts": {Data: fmt.Appendf(nil, spoken, bench.Source(bench.Compute, id))}}, Entry: "tool.ts",
		Imports: []string{"stile:capability/clock@0.1.0", "stile:capability/http@0.1.0"},
	}, true)
	if err != nil {
		return "", err
	}
	m.n++
	file := filepath.Join(m.dir, strconv.Itoa(m.n)+".wasm")
	return file, os.WriteFile(file, wasm, 0o600)
}

// write writes figures of this round.
func (m *hosts) write(h *spokenHost, what bench.HostFigure, values ...float64) error {
	return m.Write(bench.Line{Host: &bench.HostRound{Host: h.name, Own: h == m.all[0], What: what, Round: m.round, Values: values}})
}

// open starts the host.
func (h *spokenHost) open(ctx context.Context) (err error) {
	h.Host, err = protocol.Start(ctx, h.command, h.env, patience)
	return err
}

// call makes a call, which must end as it should.
func (h *spokenHost) call(ctx context.Context, c *protocol.Call, want []byte) (took time.Duration, err error) {
	start := time.Now()
	r, err := h.Ask(ctx, protocol.Request{Op: "call", Call: c}, patience)
	took = time.Since(start)
	switch {
	case err != nil:
		return took, h.explain(err)
	case r.Error != "":
		return took, wrong("it cannot make the call: %s", r.Error)
	case r.Result == nil:
		return took, wrong("it answers a call without a result")
	case r.Result.Outcome != protocol.OK:
		return took, wrong("the call ended as %q: %.300s", r.Result.Outcome, r.Result.Message)
	case !bench.SameJSON([]byte(r.Result.Output), want):
		return took, wrong("a wrong answer: %.200q instead of %.200q", r.Result.Output, want)
	}
	return took, nil
}

// explain adds the last words of a host that broke the protocol.
func (h *spokenHost) explain(err error) error {
	if broken, ok := errors.AsType[*protocol.HostError](err); ok {
		h.Kill()
		broken.Stderr = h.Stderr()
		h.Host = nil
	}
	return err
}

func (h *spokenHost) compute(ctx context.Context, component, id string, n int) (time.Duration, error) {
	t, want := bench.ComputeTrial(id, n)
	return h.call(ctx, &protocol.Call{Component: component, Tool: "tool", Input: string(t.Input)}, want)
}

// measure makes a round of everything but waiting calls.
func (h *spokenHost) measure(ctx context.Context, m *hosts) error {
	if err := h.fresh(ctx, m); err != nil {
		return err
	}
	trials := m.Trials(h.typical)
	var hello, calls, fetches []float64
	for range trials {
		start := time.Now()
		if r, err := h.Ask(ctx, protocol.Request{Op: "hello", Protocol: protocol.Version}, patience); err != nil {
			return h.explain(err)
		} else if r.Error != "" {
			return wrong("it does not say what it is again: %s", r.Error)
		}
		hello = append(hello, us(time.Since(start)))
	}
	for n := range trials {
		took, err := h.compute(ctx, m.stored, bench.StoredID, n)
		if err != nil {
			return err
		}
		calls = append(calls, us(took))
	}
	if h.has("http") {
		for range trials {
			took, err := h.call(ctx, m.site.ask(m.stored, "fetch", "/", nil), []byte(`"`+page+`"`))
			if err != nil {
				return fmt.Errorf("a request: %w", err)
			}
			fetches = append(fetches, us(took))
		}
	}
	if err := errors.Join(m.write(h, bench.HostMessage, hello...), m.write(h, bench.HostCall, calls...), m.write(h, bench.HostFetch, fetches...)); err != nil {
		return err
	}
	for _, many := range []struct {
		callers int
		what    bench.HostFigure
	}{{1, bench.HostRate1}, {4, bench.HostRate4}, {16, bench.HostRate16}} {
		rate, err := h.rate(ctx, m, many.callers)
		if err != nil {
			return fmt.Errorf("%d callers: %w", many.callers, err)
		}
		if err := m.write(h, many.what, rate); err != nil {
			return err
		}
	}
	private, err := h.private()
	if err != nil {
		return err
	}
	return m.write(h, bench.HostPrivate, private)
}

func (h *spokenHost) has(kinds ...string) bool {
	return !slices.ContainsFunc(kinds, func(kind string) bool { return !slices.Contains(h.Hello().Kinds, kind) })
}

// fresh starts another process of the host, which makes the first call of a component that no process has seen.
func (h *spokenHost) fresh(ctx context.Context, m *hosts) error {
	id := fmt.Sprintf("%d-%d", m.n, time.Now().UnixNano())
	component, err := m.component(ctx, id)
	if err != nil {
		return err
	}
	other := &spokenHost{name: h.name, command: h.command, env: h.env}
	start := time.Now()
	if err := other.open(ctx); err != nil {
		return err
	}
	defer func() {
		if other.Host != nil {
			other.Close()
		}
	}()
	started := us(time.Since(start))
	private, err := other.private()
	if err != nil {
		return err
	}
	first, err := other.compute(ctx, component, id, 1)
	if err != nil {
		return fmt.Errorf("the first call: %w", err)
	}
	return errors.Join(m.write(h, bench.HostStart, started), m.write(h, bench.HostPrivateNew, private), m.write(h, bench.HostFirst, us(first)))
}

// rate is how many calls a second some callers make, each after the other.
func (h *spokenHost) rate(ctx context.Context, m *hosts, callers int) (float64, error) {
	window := max(m.Size.Window/10, 2*h.typical)
	var mu sync.Mutex
	var failed error
	var n int
	var running sync.WaitGroup
	start := time.Now()
	for caller := range callers {
		running.Go(func() {
			for made := 0; time.Since(start) < window; made++ {
				_, err := h.compute(ctx, m.stored, bench.StoredID, caller)
				mu.Lock()
				n, failed = n+1, errors.Join(failed, err)
				stop := failed != nil
				mu.Unlock()
				if stop {
					return
				}
			}
		})
	}
	running.Wait()
	return float64(n) / time.Since(start).Seconds(), failed
}

// private is the memory that the host's processes alone have, in KiB.
func (h *spokenHost) private() (kib float64, err error) {
	pids, err := measure.Family(h.PID())
	if err != nil {
		return 0, err
	}
	for _, pid := range pids {
		memory, err := measure.Memory(pid)
		if err != nil && pid == h.PID() {
			return 0, err
		}
		kib += memory.Private // of one that ended meanwhile: 0
	}
	return kib, nil
}

// waiting holds calls that have worked and now wait, a few and then more, and cancels them.
func (h *spokenHost) waiting(ctx context.Context, m *hosts) error {
	if !h.has("http", "clock") {
		return nil
	}
	few, many := 5, 10
	if m.Size.Live > 100 {
		few, many = 10, 60
	}
	type held struct {
		id     int
		answer <-chan protocol.Response
	}
	var all []held
	var first float64
	for len(all) < many {
		hold := m.site.ask(m.stored, "hold", "/arrived", bench.HoldInput())
		hold.Env["clock"] = protocol.Binding{Kind: "clock"}
		id, answer, err := h.Send(protocol.Request{Op: "call", Call: hold})
		if err != nil {
			return h.explain(err)
		}
		all = append(all, held{id, answer})
		select {
		case <-m.site.arrived:
		case r, ok := <-answer:
			if !ok {
				_, err := h.Await(ctx, answer, patience) // says what happened
				return h.explain(err)
			}
			return wrong("a call did not wait: %.300s", fmt.Sprint(r.Error, r.Result))
		case <-time.After(patience):
			return wrong("a call did not begin to wait within %v", patience)
		case <-ctx.Done():
			return ctx.Err()
		}
		if len(all) != few && len(all) != many {
			continue
		}
		private, err := h.private()
		if err != nil {
			return err
		}
		if len(all) == few {
			first = private
		} else if err := m.write(h, bench.HostWaiting, (private-first)/float64(many-few)); err != nil {
			return err
		}
	}
	for _, one := range all {
		if r, err := h.Ask(ctx, protocol.Request{Op: "cancel", Of: one.id}, patience); err != nil {
			return h.explain(err)
		} else if r.Error != "" {
			return wrong("it does not cancel: %s", r.Error)
		}
	}
	for _, one := range all {
		r, err := h.Await(ctx, one.answer, patience)
		if err != nil {
			return h.explain(err)
		}
		if r.Result == nil || r.Result.Outcome != protocol.Cancelled {
			return wrong("a cancelled call ended as %.300s", fmt.Sprint(r.Error, r.Result))
		}
	}
	return nil
}

const page = "a short page"

// loopback is a web server on this machine for the hosts' requests.
type loopback struct {
	server  *http.Server
	port    uint16
	arrived chan struct{}
}

func openLoopback(ctx context.Context) (*loopback, error) {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp4", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	s := &loopback{port: listener.Addr().(*net.TCPAddr).AddrPort().Port(), arrived: make(chan struct{}, 1)}
	s.server = &http.Server{ReadHeaderTimeout: 10 * time.Second, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/plain")
		_, _ = io.WriteString(w, page) // a host that misses it answers wrongly
		if r.URL.Path == "/arrived" {
			s.arrived <- struct{}{}
		}
	})}
	go func() { _ = s.server.Serve(listener) }() // it ends with close
	return s, nil
}

func (s *loopback) close() error { return s.server.Close() }

// ask is a call of a tool that makes a request.
func (s *loopback) ask(component, tool, path string, of []byte) *protocol.Call {
	if of == nil {
		of = []byte("null")
	}
	return &protocol.Call{
		Component: component, Tool: tool, Input: fmt.Sprintf(`{"url":"http://127.0.0.1:%d%s","of":%s}`, s.port, path, of),
		Env:    map[string]protocol.Binding{"net": {Kind: "http", Rules: []protocol.Rule{{Scheme: "http", Host: "127.0.0.1", Port: s.port, Addresses: []string{"127.0.0.0/8"}}}}},
		Limits: protocol.Limits{Wall: time.Hour.Milliseconds()},
	}
}
