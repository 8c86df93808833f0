// Package adapter makes a host of this module answer the protocol of the conformance suite. Serve reads requests from one stream and
// writes answers to another, and runs calls at the same time. It obtains nothing from the network but what the bindings of calls allow.
package adapter

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/capabilities/browser"
	"github.com/stilehost/stile/conformance/protocol"
	"github.com/stilehost/stile/host"
	"github.com/stilehost/stile/internal/bounded"
)

// maxComponent is the largest component in bytes that is read.
const maxComponent = 64 << 20

// Options configure Serve.
type Options struct {
	// Host makes the calls. Serve does not close it.
	Host *host.Host
	// Folder is where buckets are kept. Serve makes files in it.
	Folder  string
	Version string
	// Browser is how browsers start. Without one on this machine, the host has no such kind.
	Browser browser.EngineOptions
	// Without are kinds that the host says it has not.
	Without []string

	// Alter, if not nil, changes each call before it is made, and Replace each capability. Tests of the suite make wrong hosts with them.
	Alter   func(*protocol.Call)
	Replace func(*Binding) (abi.Capability, error)
}

// server is what one Serve holds.
type server struct {
	Options
	binder

	write sync.Mutex
	out   io.Writer

	known func() []string // kinds

	mu         sync.Mutex
	components map[string]*host.Component
	running    map[int]*call
}

// call is a call under way.
type call struct {
	cancel context.CancelFunc
	grants map[string]*host.Grant
}

// Serve answers requests until in ends or ctx does, and waits for the calls under way, which end then.
func Serve(ctx context.Context, in io.Reader, out io.Writer, o Options) (err error) {
	ctx, cancel := context.WithCancel(ctx)
	s := &server{Options: o, binder: binder{folder: o.Folder, replace: o.Replace, browser: o.Browser}, out: out, components: map[string]*host.Component{}, running: map[int]*call{}}
	s.known = sync.OnceValue(func() []string { return s.kinds(ctx) })
	var calls sync.WaitGroup
	defer func() {
		cancel()
		calls.Wait()
		for _, c := range s.components {
			err = errors.Join(err, c.Close())
		}
		err = errors.Join(err, s.close())
	}()
	requests := protocol.NewReader(in)
	for ctx.Err() == nil {
		var r protocol.Request
		if err := requests.Read(&r); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		switch {
		case r.Op == "hello" && r.Protocol != protocol.Version:
			s.answer(protocol.Response{ID: r.ID, Error: fmt.Sprintf("this host speaks version %d of the protocol", protocol.Version)})
		case r.Op == "hello":
			s.answer(protocol.Response{ID: r.ID, Hello: &protocol.Hello{Protocol: protocol.Version, Name: "stile", Version: o.Version, Kinds: s.known()}})
		case r.Op == "call" && r.Call != nil:
			ctx, cancel := context.WithCancel(ctx)
			running := &call{cancel: cancel, grants: map[string]*host.Grant{}}
			if o.Alter != nil {
				o.Alter(r.Call)
			}
			env, err := s.bind(ctx, r.Call, running.grants)
			if err != nil {
				cancel()
				s.answer(protocol.Response{ID: r.ID, Error: err.Error()})
				continue
			}
			s.mu.Lock()
			s.running[r.ID] = running
			s.mu.Unlock()
			calls.Go(func() {
				defer cancel()
				s.call(ctx, r.ID, r.Call, env)
			})
		case r.Op == "cancel", r.Op == "revoke":
			s.end(r)
		default:
			s.answer(protocol.Response{ID: r.ID, Error: fmt.Sprintf("there is no op %q", r.Op)})
		}
	}
	return ctx.Err()
}

// end cancels a call, or revokes one of its bindings.
func (s *server) end(r protocol.Request) {
	s.mu.Lock()
	running := s.running[r.Of]
	s.mu.Unlock()
	answer := protocol.Response{ID: r.ID}
	switch {
	case running == nil:
		answer.Error = fmt.Sprintf("call %d is not under way", r.Of)
	case r.Op == "cancel":
		running.cancel()
	case running.grants[r.Binding] == nil:
		answer.Error = fmt.Sprintf("call %d has no binding %q that can be revoked", r.Of, r.Binding)
	default:
		running.grants[r.Binding].Revoke(r.Reason)
	}
	s.answer(answer)
}

// answer writes a response, or says that it is too long for a line. If the write fails, the runner is gone, and so are its requests.
func (s *server) answer(r protocol.Response) {
	s.write.Lock()
	defer s.write.Unlock()
	if err := protocol.Write(s.out, r); errors.Is(err, protocol.ErrLine) {
		_ = protocol.Write(s.out, protocol.Response{ID: r.ID, Error: err.Error()}) // nobody is left to hear that this failed
	}
}

func (s *server) call(ctx context.Context, id int, c *protocol.Call, env host.Env) {
	result := &protocol.Result{}
	component, err := s.load(ctx, c.Component)
	if err == nil {
		var out host.Result
		out, err = component.Do(ctx, host.Request{
			Tool: c.Tool, Input: []byte(c.Input), Env: env,
			Limits: host.Limits{
				Memory: c.Limits.Memory, CPU: milliseconds(c.Limits.CPU), Wall: milliseconds(c.Limits.Wall),
				Input: c.Limits.Input, Output: c.Limits.Output, Handles: c.Limits.Handles, Pending: c.Limits.Pending,
			},
			Observe: func(op host.Operation) {
				if o, ok := s.operation(op); ok {
					result.Operations = append(result.Operations, o)
				}
			},
		})
		result.Output = string(out.Output)
	}
	finish(ctx, result, err)
	s.mu.Lock()
	delete(s.running, id)
	s.mu.Unlock()
	s.answer(protocol.Response{ID: id, Result: result})
}

func milliseconds(n int64) time.Duration { return time.Duration(n) * time.Millisecond }

// load loads a component once.
func (s *server) load(ctx context.Context, file string) (*host.Component, error) {
	s.mu.Lock()
	c := s.components[file]
	s.mu.Unlock()
	if c != nil {
		return c, nil
	}
	f, err := os.Open(filepath.Clean(file))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	wasm, err := bounded.Read(f, maxComponent)
	if err != nil {
		return nil, err
	}
	if c, err = s.Host.Load(ctx, wasm); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if other := s.components[file]; other != nil {
		return other, c.Close()
	}
	s.components[file] = c
	return c, nil
}

// operation is an operation as the protocol has it. ok is false for those that need no binding.
func (s *server) operation(op host.Operation) (_ protocol.Operation, ok bool) {
	name, ok := strings.CutPrefix(op.Func, "[method]")
	if !ok || op.Binding == "" || strings.HasSuffix(name, ".subscribe") {
		return protocol.Operation{}, false
	}
	o := protocol.Operation{Binding: op.Binding, Func: name}
	if known, ok := errors.AsType[*abi.Error](op.Err); ok {
		o.Error = codes[known.Code]
		return o, true
	}
	iface := s.Host.WIT().Interface(op.Interface)
	i := slices.IndexFunc(iface.Funcs, func(f *abi.Func) bool { return f.Name == op.Func })
	if t := iface.Funcs[i].Result; t != nil && t.Kind == abi.KindResult && t.Err != nil && t.Err.Kind == abi.KindVariant {
		if v, _ := op.Result.(abi.Variant); v.Case == 1 {
			code, _ := v.Value.(abi.Variant)
			o.Error = t.Err.Cases[code.Case].Name
		}
	}
	return o, true
}

// codes are the cases of the variant `error`.
var codes = []string{"denied", "revoked", "expired", "exhausted", "timed-out", "too-large", "not-found", "already-exists", "conflict", "invalid", "unavailable", "interrupted"}

// finish says how a call ended.
func finish(ctx context.Context, r *protocol.Result, err error) {
	var (
		denied     *host.DeniedError
		limit      *host.LimitError
		guest      *host.GuestError
		trap       *host.TrapError
		ended      *host.GrantError
		definition *host.DefinitionError
		refused    *host.LoadError
		unknown    *host.UnknownToolError
		input      *host.InputError
	)
	r.Outcome = protocol.OK
	if err == nil {
		return
	}
	r.Message = err.Error()
	switch {
	case errors.As(err, &denied):
		d := denied.Denial
		r.Outcome, r.Denial = protocol.Denied, &protocol.Denial{Binding: d.Binding, Operation: d.Operation, Reason: d.Reason, Remedy: d.Remedy}
	case errors.As(err, &limit):
		r.Outcome, r.Limit = protocol.Limit, limit.Limit
	case errors.As(err, &guest):
		r.Outcome, r.Message = protocol.Failed, guest.Failure.Message
	case errors.As(err, &trap):
		r.Outcome = protocol.Trapped
	case errors.As(err, &ended):
		r.Outcome = protocol.Ended
	case errors.As(err, &definition), errors.As(err, &refused):
		r.Outcome = protocol.Refused
	case errors.As(err, &unknown):
		r.Outcome = protocol.UnknownTool
	case errors.As(err, &input):
		r.Outcome = protocol.InvalidInput
	case ctx.Err() != nil:
		r.Outcome = protocol.Cancelled
	default:
		r.Outcome = protocol.Fault
	}
}

// kinds are the kinds of capability that this host has. To look for a browser starts one.
func (s *server) kinds(ctx context.Context) []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(openers)), func(kind string) bool {
		return slices.Contains(s.Without, kind) || kind == "browser" && len(browser.Probe(ctx, s.Browser).Lacks) > 0
	})
}
