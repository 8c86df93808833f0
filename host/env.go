package host

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/internal/printable"
)

// Env is the authority of one call: its capabilities by name. A nil Env grants nothing.
type Env map[string]abi.Capability

// binding is one name of a call's env. Its value is opened when the guest first gets it, and closed with the call.
type binding struct {
	name           string // in the env that the call began with
	interfaceName  string
	given          abi.Capability // the capability given to the call; nil if the guest put a handle there
	capability     abi.Capability // inside the grants of given
	grants         []*Grant
	lease          *lease // a lease of the grants, once it was requested
	value          any
	implementation implementation
	// made and dead are as in handle.
	made *derivation
	dead *abi.Error
}

// size returns how many bytes a value takes that the guest put into an env. What has to be closed counts with the call, which keeps it even
// if the env is dropped.
func (b *binding) size() int {
	if _, owned := b.value.(io.Closer); owned || b.given != nil {
		return 0
	}
	return sizeOf(b.value)
}

// environment is the value behind an env handle.
type environment map[string]*binding

func newEnvironment(env Env) (environment, error) {
	e := make(environment, len(env))
	for name, c := range env {
		capability, grants, err := unwrap(c)
		if err != nil {
			return nil, fmt.Errorf("binding %q %w", name, err)
		}
		e[name] = &binding{name: name, interfaceName: capability.Interface(), given: c, capability: capability, grants: grants}
	}
	return e, nil
}

// open makes the value of a binding ready.
func (c *call) open(b *binding, resource *abi.Resource) error {
	if b.implementation != nil {
		return nil
	}
	b.value = b.capability
	if d, ok := b.capability.(*delegated); ok {
		b.value = d.value
	} else if o, ok := b.capability.(abi.Opener); ok {
		var err, cancelled error
		open := o.Open
		if state, ok := c.opened[b.name]; ok {
			if r, ok := o.(abi.Reopener); ok {
				open = func(ctx context.Context) (any, error) { return r.Reopen(ctx, state) }
			}
		}
		if isQuick(o, "get") || c.store == nil {
			b.value, err = open(c.under(b.lease))
		} else {
			cancelled = c.store.Blocking(func() { b.value, err = open(c.under(b.lease)) })
		}
		if err != nil {
			return fmt.Errorf("open binding %q: %w", b.name, err)
		}
		c.own(b.value, b.lease)
		if cancelled != nil {
			return cancelled
		}
	}
	var err error
	b.implementation, err = c.host.implementation(resource, b.value)
	return err
}

// openLeased is open for a binding that may have grants. over says which of them has ended.
func (c *call) openLeased(b *binding, resource *abi.Resource) (over *abi.Error, err error) {
	if b.lease == nil && b.grants != nil {
		if b.lease, err = c.leaseOf(b.grants); err != nil {
			return nil, err
		}
	}
	if over = b.lease.over(); over == nil {
		if err = c.open(b, resource); err != nil {
			over = b.lease.over()
		}
	}
	return over, err
}

// The results of get, put and subset, whose types differ only in their payloads.
func okResult(v abi.Value) abi.Value { return abi.Variant{Case: 0, Value: v} }

func (c *call) errResult(t *abi.Type, err error) (abi.Value, error) {
	v, err := abi.Encode(t.Err, err, nil)
	return abi.Variant{Case: 1, Value: v}, err
}

// getBinding is the function `get` of every capability interface.
func (c *call) getBinding(f *abi.Func, args []abi.Value) (abi.Value, error) {
	e, err := c.environment(args[0])
	if err != nil {
		return nil, err
	}
	name := args[1].(string)
	b := e[name]
	if b == nil {
		return c.errResult(f.Result, c.denied(printable.Short(name, 256), abi.Deny(c.host.unbound(f.Interface.Name))))
	}
	if b.interfaceName != f.Interface.Name {
		return c.errResult(f.Result, c.denied(name, abi.Deny(abi.Denial{
			Operation: "use as " + f.Interface.Name, Reason: "the binding is of " + b.interfaceName,
		})))
	}
	if b.dead != nil {
		return c.errResult(f.Result, b.dead)
	}
	resource := f.Result.Ok.Resource
	over, err := c.openLeased(b, resource)
	switch {
	case over != nil:
		return c.errResult(f.Result, over)
	case errors.Is(err, abi.ErrDenied):
		return c.errResult(f.Result, c.denied(name, err))
	case err != nil:
		return nil, err
	}
	rep, err := c.handles.add(&handle{resource: resource, value: b.value, implementation: b.implementation, binding: b.name, shared: true, lease: b.lease, made: b.derivation()})
	if err != nil {
		return nil, err
	}
	return okResult(rep), nil
}

// derivation says how the binding's value is made again.
func (b *binding) derivation() *derivation {
	if b.given != nil {
		return &derivation{binding: b.name}
	}
	return b.made
}

// unbound is the denial of a binding that the call does not have.
func (h *Host) unbound(iface string) abi.Denial {
	d := abi.Denial{Operation: "use " + iface, Reason: "the call has no binding of that name"}
	if h.options.Wants != nil {
		d.Wants = h.options.Wants(iface)
	}
	return d
}

// putBinding is the function `put`: it moves a handle into an env under a name.
func (c *call) putBinding(f *abi.Func, args []abi.Value) (abi.Value, error) {
	e, err := c.environment(args[0])
	if err != nil {
		return nil, err
	}
	name := args[1].(string)
	h, err := c.handles.find(args[2].(abi.Rep), f.Params[2].Type.Resource)
	if err != nil {
		return nil, err
	}
	// The value is closed at the end of the call, even if its env is dropped earlier.
	if max(len(e), len(c.owned)) >= c.limits.Handles {
		return nil, exceeded("handles", strconv.Itoa(c.limits.Handles))
	}
	c.handles.remove(args[2].(abi.Rep))
	var refused error
	if fixed, ok := h.value.(abi.Fixed); ok {
		refused = abi.Errorf(abi.CodeInvalid, "%s", stays(h.binding, fixed))
	}
	if e[name] != nil {
		refused = abi.Errorf(abi.CodeAlreadyExists, "binding %q", printable.Text(name))
	}
	if !bindable(name) {
		refused = abi.Errorf(abi.CodeInvalid, "the name of a binding must have 1 to %d printable ASCII characters", maxBindingName)
	}
	if refused != nil {
		if err := h.close(); err != nil {
			return nil, err
		}
		return c.errResult(f.Result, refused)
	}
	if !h.shared {
		c.own(h.value, h.lease)
	}
	if err := c.handles.name(1); err != nil {
		return nil, err
	}
	e[name] = &binding{name: h.binding, interfaceName: f.Interface.Name, value: h.value, implementation: h.implementation, lease: h.lease, made: h.made}
	c.handles.sizes += e[name].size()
	return okResult(nil), nil
}

// maxBindingName is the longest name that a guest can give a binding.
const maxBindingName = 64

func bindable(name string) bool {
	return name != "" && len(name) <= maxBindingName && !strings.ContainsFunc(name, func(r rune) bool { return r < ' ' || r > '~' })
}

// stays says that a binding cannot be passed on.
func stays(name string, f abi.Fixed) string {
	return fmt.Sprintf("%q cannot be passed on, because %s", printable.Short(name, 256), f.Fixed())
}

// fixed returns what says why the binding cannot be passed on. It is nil if it can.
func (b *binding) fixed() abi.Fixed {
	f, _ := b.capability.(abi.Fixed)
	return f
}

// Origin implements [abi.Env].
func (e environment) Origin(name string) string {
	if b := e[name]; b != nil {
		return b.name
	}
	return ""
}

// Capabilities implements [abi.Env].
func (e environment) Capabilities() map[string]abi.Capability {
	all := make(map[string]abi.Capability, len(e))
	for name, b := range e {
		if b.fixed() != nil || b.dead != nil {
			continue
		}
		all[name] = b.given
		if b.given == nil {
			all[name] = &delegated{interfaceName: b.interfaceName, value: b.value, grants: b.lease.granted()}
		}
	}
	return all
}

// delegated is a value that the guest of another call put into an env. That call closes it.
type delegated struct {
	interfaceName string
	value         any
	grants        []*Grant
}

// Interface implements [abi.Capability].
func (d *delegated) Interface() string { return d.interfaceName }

// Size implements [abi.Sized].
func (d *delegated) Size() int { return sizeOf(d.value) }

func (c *call) environment(rep abi.Value) (environment, error) {
	h, err := c.handles.find(rep.(abi.Rep), c.host.env)
	if err != nil {
		return nil, err
	}
	return h.value.(environment), nil
}

// envOperations implement stile:capability/env.
var envOperations = map[string]func(c *call, args []abi.Value) (abi.Value, error){
	"[method]env.names": func(c *call, args []abi.Value) (abi.Value, error) {
		e, err := c.environment(args[0])
		if err != nil {
			return nil, err
		}
		list := []abi.Value{}
		for _, name := range slices.Sorted(maps.Keys(e)) {
			list = append(list, []abi.Value{name, e[name].interfaceName})
		}
		return list, nil
	},
	"[method]env.subset": func(c *call, args []abi.Value) (abi.Value, error) {
		e, err := c.environment(args[0])
		if err != nil {
			return nil, err
		}
		sub := environment{}
		for _, v := range args[1].([]abi.Value) {
			name := v.(string)
			b := e[name]
			if b == nil {
				return abi.Variant{Case: 1, Value: fmt.Sprintf("no binding named %q", printable.Short(name, 256))}, nil
			}
			if f := b.fixed(); f != nil {
				return abi.Variant{Case: 1, Value: stays(name, f)}, nil
			}
			sub[name] = b
		}
		rep, err := c.handles.add(&handle{resource: c.host.env, value: sub})
		if err != nil {
			return nil, err
		}
		return okResult(rep), nil
	},
	"[method]env.vars": func(c *call, args []abi.Value) (abi.Value, error) {
		if _, err := c.environment(args[0]); err != nil {
			return nil, err
		}
		return c.request.vars(), nil
	},
}

// pollOperations implement stile:capability/poll.
var pollOperations = map[string]func(c *call, args []abi.Value) (abi.Value, error){
	"[method]pollable.ready": func(c *call, args []abi.Value) (abi.Value, error) {
		h, err := c.pollable(args[0])
		if err != nil {
			return nil, err
		}
		return h.ready(), nil
	},
	"[method]pollable.block": func(c *call, args []abi.Value) (abi.Value, error) {
		h, err := c.pollable(args[0])
		if err != nil {
			return nil, err
		}
		_, err = c.wait([]*handle{h})
		return nil, err
	},
	"park": func(c *call, args []abi.Value) (abi.Value, error) { return c.park(args) },
	"poll": func(c *call, args []abi.Value) (abi.Value, error) {
		pollables, err := c.pollables(args[0].([]abi.Value))
		if err != nil {
			return nil, err
		}
		ready, err := c.wait(pollables)
		if err != nil {
			return nil, err
		}
		return ready, nil
	},
}

// pollables finds the handles of a list to wait for.
func (c *call) pollables(list []abi.Value) ([]*handle, error) {
	if len(list) == 0 {
		return nil, &TrapError{Reason: "poll of an empty list"}
	}
	if len(list) > c.limits.Pending {
		return nil, c.crowded()
	}
	pollables := make([]*handle, len(list))
	for i, v := range list {
		var err error
		if pollables[i], err = c.pollable(v); err != nil {
			return nil, err
		}
	}
	return pollables, nil
}

// crowded is the error for a call that waits for too many operations.
func (c *call) crowded() *LimitError {
	return &LimitError{Limit: "pending", Value: strconv.Itoa(c.limits.Pending), Detail: "operations that one call may wait for at a time"}
}

func (c *call) pollable(rep abi.Value) (*handle, error) {
	return c.handles.find(rep.(abi.Rep), c.host.pollable)
}

// ready reports whether a pollable is ready. It is also ready if its grant has ended, because nothing else will happen.
func (h *handle) ready() bool {
	return h.value.(*abi.Pollable).IsReady() || h.lease.over() != nil
}

// readyOf returns the indices of those that are ready.
func readyOf(pollables []*handle) []abi.Value {
	ready := []abi.Value{}
	for i, h := range pollables {
		if h.ready() {
			ready = append(ready, uint32(i))
		}
	}
	return ready
}
