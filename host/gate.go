package host

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/stilehost/stile/abi"
)

// effect says what an operation does to the world outside its call. Policies, budgets and replay go by it.
type effect uint8

const (
	effectNone   effect = iota + 1 // works on the call's own handles only
	effectRead                     // reads state that outlives the call, or the world: the clock, randomness
	effectWrite                    // changes state that outlives the call
	effectEgress                   // leaves the machine
	effectWait                     // waits; gives up the guest's turn meanwhile
)

// effects has an entry for every function of stile:capability. A function without one cannot be linked, and a test fails.
var effects = map[string]effect{
	"env#[method]env.names":                      effectNone,
	"env#[method]env.subset":                     effectNone,
	"poll#[method]pollable.ready":                effectNone,
	"poll#[method]pollable.block":                effectWait,
	"poll#poll":                                  effectWait,
	"blob#get":                                   effectNone,
	"blob#put":                                   effectNone,
	"blob#[method]blob.size":                     effectNone,
	"blob#[method]blob.media-type":               effectNone,
	"blob#[method]blob.digest":                   effectNone,
	"blob#[method]blob.text":                     effectRead,
	"blob#[method]blob.bytes":                    effectRead,
	"blob#[method]writer.append":                 effectWrite,
	"blob#[method]writer.append-text":            effectWrite,
	"blob#[method]writer.append-blob":            effectWrite,
	"blob#[method]store.create":                  effectWrite,
	"blob#[method]store.finish":                  effectWrite,
	"http#get":                                   effectNone,
	"http#put":                                   effectNone,
	"http#[method]client.start":                  effectEgress,
	"http#[method]client.narrow":                 effectNone,
	"http#[method]client.rules":                  effectNone,
	"http#[method]exchange.subscribe":            effectNone,
	"http#[method]exchange.head":                 effectRead,
	"http#[method]exchange.text":                 effectRead,
	"http#[method]exchange.blob":                 effectRead,
	"clock#get":                                  effectNone,
	"clock#put":                                  effectNone,
	"clock#[method]clock.now":                    effectRead,
	"clock#[method]clock.monotonic":              effectRead,
	"clock#[method]clock.subscribe":              effectNone,
	"random#get":                                 effectNone,
	"random#put":                                 effectNone,
	"random#[method]random.u64":                  effectRead,
	"random#[method]random.bytes":                effectRead,
	"console#get":                                effectNone,
	"console#put":                                effectNone,
	"console#[method]console.log":                effectWrite,
	"kv#get":                                     effectNone,
	"kv#put":                                     effectNone,
	"kv#[method]bucket.get":                      effectRead,
	"kv#[method]bucket.set":                      effectWrite,
	"kv#[method]bucket.delete":                   effectWrite,
	"kv#[method]bucket.list":                     effectRead,
	"kv#[method]bucket.increment":                effectWrite,
	"kv#[method]bucket.compare-and-set":          effectWrite,
	"workspace#get":                              effectNone,
	"workspace#put":                              effectNone,
	"workspace#[method]directory.read":           effectRead,
	"workspace#[method]directory.read-lines":     effectRead,
	"workspace#[method]directory.read-bytes":     effectRead,
	"workspace#[method]directory.read-blob":      effectRead,
	"workspace#[method]directory.write":          effectWrite,
	"workspace#[method]directory.write-bytes":    effectWrite,
	"workspace#[method]directory.write-blob":     effectWrite,
	"workspace#[method]directory.append":         effectWrite,
	"workspace#[method]directory.append-bytes":   effectWrite,
	"workspace#[method]directory.edit":           effectWrite,
	"workspace#[method]directory.list":           effectRead,
	"workspace#[method]directory.stat":           effectRead,
	"workspace#[method]directory.make-directory": effectWrite,
	"workspace#[method]directory.move":           effectWrite,
	"workspace#[method]directory.copy":           effectWrite,
	"workspace#[method]directory.remove":         effectWrite,
	"workspace#[method]directory.subdirectory":   effectNone,
	"workspace#[method]directory.read-only":      effectNone,
	"tools#get":                                  effectNone,
	"tools#put":                                  effectNone,
	"tools#[method]toolbox.search":               effectRead,
	"tools#[method]toolbox.start":                effectEgress,
	"tools#[method]pending.subscribe":            effectNone,
	"tools#[method]pending.take":                 effectRead,
}

const capabilityPackage = "stile:capability/"

// operation is one function that guests can import, as the gate sees it.
type operation struct {
	fn     *abi.Func
	effect effect
	// execute does it, once the gate has let it pass.
	execute func(c *call, args []abi.Value) (abi.Value, error)
}

// operation makes the gate's entry for a function. Functions of an embedder's interface count as writing.
func (h *Host) operation(f *abi.Func) (*operation, error) {
	op := &operation{fn: f, effect: effectWrite}
	if name, ok := strings.CutPrefix(f.Interface.Name, capabilityPackage); ok {
		name, _, _ = strings.Cut(name, "@")
		if op.effect, ok = effects[name+"#"+f.Name]; !ok {
			return nil, errors.New("the gate has no entry for it")
		}
	}
	switch {
	case f.Interface.Name == envInterface:
		op.execute = envOperations[f.Name]
	case f.Interface.Name == pollInterface:
		op.execute = pollOperations[f.Name]
	case f.Name == "get" && f.Resource == nil:
		op.execute = func(c *call, args []abi.Value) (abi.Value, error) { return c.getBinding(f, args) }
	case f.Name == "put" && f.Resource == nil:
		op.execute = func(c *call, args []abi.Value) (abi.Value, error) { return c.putBinding(f, args) }
	case strings.HasPrefix(f.Name, "[method]"):
		op.execute = func(c *call, args []abi.Value) (abi.Value, error) { return c.method(f, args) }
	}
	if op.execute == nil {
		return nil, errors.New("only get, put and methods can be called")
	}
	return op, nil
}

// Operation is one use of a capability, as a call's observer sees it.
type Operation struct {
	// Interface and Func name it: "stile:capability/kv@0.1.0", "[method]bucket.get".
	Interface, Func string
	// Binding is the name in the env that the handle came from; empty for env and poll.
	Binding string
	// Args and Result are WIT values. They must not be changed.
	Args   []abi.Value
	Result abi.Value
	// Err is set when the operation ended the call.
	Err error
	// Duration is the time spent in the host.
	Duration time.Duration
}

// gate is the one way from a guest to a capability: it authorises the operation, meters it, shows it to the recorder
// before and after, and executes it. A denial is a value for the guest; an error ends the call.
func (c *call) gate(op *operation, args []abi.Value) (abi.Value, error) {
	if err := context.Cause(c.ctx); err != nil {
		return nil, err
	}
	// Authorise: the engine has checked that handles are the guest's own; here they must still be open and of the right kind.
	binding, err := c.authorise(op, args)
	if err != nil {
		return nil, err
	}
	// Meter.
	c.usage.Operations++
	for i, a := range args {
		if b, ok := a.([]byte); ok && len(b) > maxListBytes {
			return nil, &LimitError{"bytes", fmt.Sprintf("%s in %s of one call; use a blob", size(maxListBytes), op.fn.Params[i].Name)}
		}
	}
	var started time.Time
	if c.observe != nil {
		started = time.Now()
	}
	var result abi.Value
	if op.effect == effectWait {
		c.store.Blocking(func() { result, err = op.execute(c, args) })
	} else {
		result, err = op.execute(c, args)
	}
	if b, ok := payload(result).([]byte); ok && len(b) > maxListBytes {
		err = fmt.Errorf("%s returned %d bytes, more than %d", op.fn.Name, len(b), maxListBytes)
	}
	if c.observe != nil {
		c.observe(Operation{
			Interface: op.fn.Interface.Name, Func: op.fn.Name, Binding: binding, Args: args, Result: result, Err: err,
			Duration: time.Since(started),
		})
	}
	return result, err
}

// authorise checks that every handle among the arguments is open, and returns the binding of the first.
func (c *call) authorise(op *operation, args []abi.Value) (binding string, err error) {
	check := func(t *abi.Type, v abi.Value) error {
		if t.Kind != abi.KindOwn && t.Kind != abi.KindBorrow {
			return nil
		}
		h, err := c.handles.find(v.(abi.Rep), t.Resource)
		if err != nil {
			return fmt.Errorf("%s: %w", op.fn.Name, err)
		}
		if binding == "" {
			binding = h.binding
		}
		return nil
	}
	for i, p := range op.fn.Params {
		if p.Type.Kind != abi.KindList {
			err = check(p.Type, args[i])
		} else if list, ok := args[i].([]abi.Value); ok {
			for _, v := range list {
				if err = check(p.Type.Elem, v); err != nil {
					break
				}
			}
		}
		if err != nil {
			return "", err
		}
	}
	return binding, nil
}

// payload is what a result carries, or the value itself.
func payload(v abi.Value) abi.Value {
	if c, ok := v.(abi.Variant); ok {
		return c.Value
	}
	return v
}

// method calls the Go method behind a capability's method.
func (c *call) method(f *abi.Func, args []abi.Value) (abi.Value, error) {
	self, err := c.handles.find(args[0].(abi.Rep), f.Resource)
	if err != nil {
		return nil, err
	}
	m := self.implementation.Method(f.Name)
	if m == nil {
		return nil, fmt.Errorf("%T does not implement %s", self.value, f.Name)
	}
	scope := scoped{c, self.binding}
	result, err := m.Call(c.ctx, self.value, args[1:], scope)
	err = c.denied(self.binding, err)
	return m.Encode(result, err, scope)
}

// denied completes a denial with what only the host knows, and keeps it as this call's record of it.
func (c *call) denied(binding string, err error) error {
	var e *abi.Error
	if !errors.As(err, &e) || e.Denial == nil {
		return err
	}
	d := *e.Denial
	d.Binding = binding
	if d.Remedy == "" && d.Grant != "" {
		d.Remedy = fmt.Sprintf(`"bindings": { %q: %s }`, binding, d.Grant)
	}
	c.denials = append(c.denials, d)
	return abi.Deny(d)
}
