package host

import (
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/stilehost/stile/abi"
)

// Env is the authority of one call: its capabilities by name. A nil Env is none at all.
type Env map[string]abi.Capability

// binding is one name of a call's env. Its value is opened when the guest first gets it, and closed with the call.
type binding struct {
	name           string
	interfaceName  string
	capability     abi.Capability // nil when the guest put a handle there
	value          any
	implementation *abi.Implementation
}

// environment is the value behind an env handle.
type environment map[string]*binding

func newEnvironment(env Env) (environment, error) {
	e := make(environment, len(env))
	for name, c := range env {
		if c == nil {
			return nil, fmt.Errorf("binding %q is nil", name)
		}
		e[name] = &binding{name: name, interfaceName: c.Interface(), capability: c}
	}
	return e, nil
}

// open makes the value of a binding ready.
func (c *call) open(b *binding, resource *abi.Resource) error {
	if b.implementation != nil {
		return nil
	}
	b.value = b.capability
	if o, ok := b.capability.(abi.Opener); ok {
		v, err := o.Open(c.ctx)
		if err != nil {
			return fmt.Errorf("open binding %q: %w", b.name, err)
		}
		b.value = v
		c.own(v)
	}
	var err error
	b.implementation, err = c.host.implementation(resource, b.value)
	return err
}

// The results of get, put and subset, whose types differ only in what they carry.
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
		return c.errResult(f.Result, c.denied(abi.PrintableCut(name, 256), abi.Deny(unbound(f.Interface.Name))))
	}
	if b.interfaceName != f.Interface.Name {
		return c.errResult(f.Result, c.denied(name, abi.Deny(abi.Denial{
			Operation: "use as " + f.Interface.Name, Reason: "the binding is of " + b.interfaceName,
		})))
	}
	resource := f.Result.Ok.Resource
	if err := c.open(b, resource); err != nil {
		return nil, err
	}
	rep, err := c.handles.add(&handle{resource: resource, value: b.value, implementation: b.implementation, binding: name, shared: true})
	if err != nil {
		return nil, err
	}
	return okResult(rep), nil
}

// unbound is the denial of a binding that the call does not have.
func unbound(iface string) abi.Denial {
	grant := fmt.Sprintf(`{ %q: {} }`, iface)
	if kind, ok := strings.CutPrefix(iface, capabilityPackage); ok {
		kind, _, _ = strings.Cut(kind, "@")
		value := "true"
		switch kind {
		case "http":
			value = `[ { "host": "..." } ]`
		case "workspace":
			value = `{ "path": "/", "access": "read" }`
		}
		grant = fmt.Sprintf(`{ %q: %s }`, kind, value)
	}
	return abi.Denial{Operation: "use " + iface, Reason: "the call has no binding of that name", Grant: grant}
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
	// What was put is closed at the end of the call, also when the env it was put into is dropped before.
	if max(len(e), len(c.owned)) >= c.limits.Handles {
		return nil, exceeded("handles", strconv.Itoa(c.limits.Handles))
	}
	c.handles.remove(args[2].(abi.Rep))
	var refused error
	if e[name] != nil {
		refused = abi.Errorf(abi.CodeAlreadyExists, "binding %q", abi.Printable(name))
	}
	if !bindable(name) {
		refused = abi.Errorf(abi.CodeInvalid, "the name of a binding is 1 to %d printable ASCII characters", maxBindingName)
	}
	if refused != nil {
		if err := h.close(); err != nil {
			return nil, err
		}
		return c.errResult(f.Result, refused)
	}
	if !h.shared {
		c.own(h.value)
	}
	e[name] = &binding{name: h.binding, interfaceName: f.Interface.Name, value: h.value, implementation: h.implementation}
	return okResult(nil), nil
}

// maxBindingName is the longest name that a guest can give a binding.
const maxBindingName = 64

func bindable(name string) bool {
	return name != "" && len(name) <= maxBindingName && !strings.ContainsFunc(name, func(r rune) bool { return r < ' ' || r > '~' })
}

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
				return abi.Variant{Case: 1, Value: fmt.Sprintf("no binding named %q", abi.PrintableCut(name, 256))}, nil
			}
			sub[name] = b
		}
		rep, err := c.handles.add(&handle{resource: c.host.env, value: sub})
		if err != nil {
			return nil, err
		}
		return okResult(rep), nil
	},
}

// pollOperations implement stile:capability/poll.
var pollOperations = map[string]func(c *call, args []abi.Value) (abi.Value, error){
	"[method]pollable.ready": func(c *call, args []abi.Value) (abi.Value, error) {
		p, err := c.pollable(args[0])
		if err != nil {
			return nil, err
		}
		select {
		case <-p:
			return true, nil
		default:
			return false, nil
		}
	},
	"[method]pollable.block": func(c *call, args []abi.Value) (abi.Value, error) {
		p, err := c.pollable(args[0])
		if err != nil {
			return nil, err
		}
		_, err = wait(c.ctx, []abi.Pollable{p})
		return nil, err
	},
	"poll": func(c *call, args []abi.Value) (abi.Value, error) {
		list := args[0].([]abi.Value)
		if len(list) == 0 {
			return nil, &TrapError{Reason: "poll of an empty list"}
		}
		if len(list) > c.limits.Pending {
			return nil, exceeded("pending", strconv.Itoa(c.limits.Pending))
		}
		pollables := make([]abi.Pollable, len(list))
		for i, v := range list {
			var err error
			if pollables[i], err = c.pollable(v); err != nil {
				return nil, err
			}
		}
		ready, err := wait(c.ctx, pollables)
		if err != nil {
			return nil, err
		}
		return ready, nil
	},
}

func (c *call) pollable(rep abi.Value) (abi.Pollable, error) {
	h, err := c.handles.find(rep.(abi.Rep), c.host.pollable)
	if err != nil {
		return nil, err
	}
	return h.value.(abi.Pollable), nil
}

// wait returns the indices of those that are ready, once at least one is.
func wait(ctx context.Context, pollables []abi.Pollable) ([]abi.Value, error) {
	cases := make([]reflect.SelectCase, len(pollables)+1)
	for i, p := range pollables {
		cases[i] = reflect.SelectCase{Dir: reflect.SelectRecv, Chan: reflect.ValueOf((<-chan struct{})(p))}
	}
	cases[len(pollables)] = reflect.SelectCase{Dir: reflect.SelectRecv, Chan: reflect.ValueOf(ctx.Done())}
	if chosen, _, _ := reflect.Select(cases); chosen == len(pollables) {
		return nil, context.Cause(ctx)
	}
	ready := []abi.Value{}
	for i, p := range pollables {
		select {
		case <-p:
			ready = append(ready, uint32(i))
		default:
		}
	}
	return ready, nil
}
