package host

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/stilehost/stile/abi"
)

// savedCall is a call that sleeps, besides what its memory differs in from a fresh instance.
type savedCall struct {
	// Component and Base are the digests of the component and of the memory of a fresh instance.
	Component string `json:"component"`
	Base      string `json:"base"`
	// Size is that of the memory. Slots and Free are the engine's table of handles.
	Size  uint32    `json:"size"`
	Slots []abi.Rep `json:"slots"`
	Free  []uint32  `json:"free,omitempty"`
	// Handles are the open ones, and Next the number of the last.
	Handles []savedHandle `json:"handles"`
	Next    abi.Rep       `json:"next"`
	// Opened are the states of bindings that keep something for the length of a call, by their names.
	Opened map[string][]byte `json:"opened,omitempty"`
	Parked []abi.Rep         `json:"parked"`

	Sequence   uint64        `json:"sequence"`
	Operations int           `json:"operations"`
	CPU        time.Duration `json:"cpu"`
	Awake      time.Duration `json:"awake"`
	Denials    []abi.Denial  `json:"denials,omitempty"`
	Dropped    int           `json:"dropped,omitempty"`

	Interrupted int `json:"interrupted,omitempty"`
}

// savedHandle is a handle, or with a name a binding of an env.
type savedHandle struct {
	Rep      abi.Rep `json:"rep,omitempty"`
	Name     string  `json:"name,omitempty"`
	Resource string  `json:"resource"` // as "interface#name"; of a binding, the interface
	Binding  string  `json:"binding,omitempty"`
	// Whole is set for the env that the call began with. Env are the bindings of another env, or those that the guest put into this one.
	Whole bool          `json:"whole,omitempty"`
	Env   []savedHandle `json:"env,omitempty"`
	// Otherwise one of these says how the value is made again.
	Made  *savedDerivation `json:"made,omitempty"`
	State []byte           `json:"state,omitempty"`
	Ready bool             `json:"ready,omitempty"`
	Dead  *savedError      `json:"dead,omitempty"`
}

type savedDerivation struct {
	Of      *savedDerivation `json:"of,omitempty"`
	Binding string           `json:"binding,omitempty"`
	Func    string           `json:"func,omitempty"`
	Args    []byte           `json:"args,omitempty"`
	Result  int              `json:"result,omitempty"`
}

type savedError struct {
	Code   abi.Code `json:"code"`
	Detail string   `json:"detail,omitempty"`
}

// maxDerivations is how many functions one value is derived with, one after the other, before it cannot be saved.
const maxDerivations = 64

// awakeError says why a call cannot sleep now.
type awakeError struct{ reason string }

func (e *awakeError) Error() string { return "the call stays awake: " + e.reason }

// saveValue returns the state of a handle's value for the log, if it has one.
func (c *call) saveValue(h *handle) (state []byte, ok bool) {
	switch v := h.value.(type) {
	case *abi.Pollable:
		if w, lasts := v.Lasting(); lasts {
			return w.State, true
		}
	case abi.Lasting:
		return v.Save()
	}
	return nil, false
}

func resourceName(r *abi.Resource) string { return r.Interface.Name + "#" + r.Name }

func saveDerivation(d *derivation) *savedDerivation {
	if d == nil {
		return nil
	}
	s := &savedDerivation{Of: saveDerivation(d.of), Binding: d.binding, Args: d.args, Result: d.result}
	if d.fn != nil {
		s.Func = operationName(d.fn)
	}
	return s
}

func (d *derivation) depth() (n int) {
	for ; d != nil; d = d.of {
		n++
	}
	return n
}

// saveHandle writes down a handle. It fails with an *awakeError if that is impossible now.
func (c *call) saveHandle(rep abi.Rep, h *handle) (s savedHandle, err error) {
	s = savedHandle{Rep: rep, Resource: resourceName(h.resource), Binding: h.binding}
	switch v := h.value.(type) {
	case environment:
		s.Whole = rep == abi.Rep(recordedEnv)
		for name, b := range v {
			if s.Whole && b.given != nil && b.name == name {
				continue // it comes with the call
			}
			one, err := b.save(name)
			if err != nil {
				return s, err
			}
			s.Env = append(s.Env, one)
		}
		slices.SortFunc(s.Env, func(a, b savedHandle) int { return strings.Compare(a.Name, b.Name) })
		return s, nil
	case *abi.Pollable:
		if s.Ready = h.ready(); s.Ready {
			return s, nil
		}
	}
	if h.again != nil { // as it was before its process ended
		return s, &awakeError{fmt.Sprintf("a %s of %q has not been used since it was made", h.resource.Name, h.binding)}
	}
	if h.dead != nil {
		s.Dead = &savedError{h.dead.Code, h.dead.Detail}
		return s, nil
	}
	if h.made != nil && h.made.depth() <= maxDerivations {
		s.Made = saveDerivation(h.made)
		return s, nil
	}
	var lasts bool
	if s.State, lasts = c.saveValue(h); !lasts {
		return s, &awakeError{fmt.Sprintf("a %s of %q cannot be written down", h.resource.Name, h.binding)}
	}
	return s, nil
}

func (b *binding) save(name string) (savedHandle, error) {
	s := savedHandle{Name: name, Resource: b.interfaceName, Binding: b.name, Made: saveDerivation(b.derivation())}
	switch {
	case b.dead != nil:
		s.Dead = &savedError{b.dead.Code, b.dead.Detail}
	case s.Made == nil:
		return s, &awakeError{fmt.Sprintf("what is bound to %q cannot be written down", name)}
	}
	return s, nil
}

// saveHandles writes down the handles of a call. It fails with an *awakeError if the call cannot sleep now.
func (c *call) saveHandles() (saved []savedHandle, err error) {
	switch {
	case c.world != nil:
		return nil, &awakeError{"it uses WASI"}
	case c.codecs != 0:
		return nil, &awakeError{"it compresses"}
	case errors.Join(c.faults...) != nil: // nil ones are of what was closed
		return nil, &awakeError{"a value could not be closed"}
	case c.frame.outer != nil:
		return nil, &awakeError{"another call waits for it"}
	case len(c.journal.rest) > 0:
		return nil, &awakeError{"it has not come to the end of its log"}
	}
	for _, h := range c.parked {
		if w, lasts := h.value.(*abi.Pollable).Lasting(); !lasts || w.At.IsZero() && w.Event == "" {
			return nil, &awakeError{fmt.Sprintf("it waits for something of %q that ends with the process", h.binding)}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(c.env)) {
		if _, ok := c.env[name].used(); !ok {
			return nil, &awakeError{fmt.Sprintf("the binding %q is in use", name)}
		}
	}
	bytes := 0
	for _, rep := range slices.Sorted(maps.Keys(c.handles.open)) {
		h, err := c.saveHandle(rep, c.handles.open[rep])
		if err != nil {
			return nil, err
		}
		if c.handles.open[rep].resource != c.host.pollable {
			bytes += len(h.State)
		}
		if bytes > abi.MaxSaved {
			return nil, &awakeError{fmt.Sprintf("what it holds has more than %d bytes", abi.MaxSaved)}
		}
		saved = append(saved, h)
	}
	return saved, nil
}

// sleep returns what a call that is packed becomes.
func (c *call) sleep(of *Component) (*AsleepError, error) {
	handles, err := c.saveHandles()
	if err != nil {
		return nil, err
	}
	p, m := c.packed, of.memory
	s := savedCall{
		Handles:   handles,
		Component: of.digest, Base: m.digest, Size: p.size, Slots: p.table.slots, Free: p.table.free, Next: c.handles.next,
		Sequence: c.journal.sequence, Operations: c.usage.Operations, CPU: c.frame.budget.Used(),
		Awake:   c.awake + c.began.Sub(c.clock.last), // without the wait that becomes the sleep: with it, a call could sleep only so often
		Dropped: c.usage.DenialsDropped, Interrupted: c.usage.Interrupted,
		Opened: maps.Clone(c.opened), // of a binding that is not there today as well
	}
	for _, d := range c.usage.Denials {
		d.Wants = nil
		s.Denials = append(s.Denials, d)
	}
	if err := c.changed(func(name string, state []byte) error {
		s.Opened[name] = state
		return nil
	}); err != nil {
		return nil, err
	}
	asleep := &AsleepError{}
	for _, h := range c.parked {
		w, _ := h.value.(*abi.Pollable).Lasting()
		asleep.Waits = append(asleep.Waits, w)
	}
	for _, v := range c.list {
		s.Parked = append(s.Parked, v.(abi.Rep))
	}
	text, err := json.Marshal(s)
	if err != nil {
		return nil, fmt.Errorf("write a call down: %w", err)
	}
	asleep.State = append(binary.AppendUvarint([]byte{stateVersion}, uint64(len(text))), text...)
	for _, part := range p.parts {
		runs, err := p.runs(nil, part)
		if err != nil {
			return nil, err
		}
		asleep.State = append(asleep.State, runs...)
	}
	return asleep, nil
}

// stateVersion is the first byte of a state.
const stateVersion = 1

// readState reads a state. The runs point into it.
func readState(state []byte) (s savedCall, runs []byte, err error) {
	malformed := &StateError{"its state is malformed"}
	if len(state) == 0 || state[0] != stateVersion {
		return s, nil, &StateError{"its state has another version"}
	}
	length, n := binary.Uvarint(state[1:])
	if n <= 0 || length > uint64(len(state)-1-n) {
		return s, nil, malformed
	}
	text := state[1+n:][:length]
	if json.Unmarshal(text, &s) != nil {
		return s, nil, malformed
	}
	runs = state[1+n+int(length):]
	for rest := runs; len(rest) > 0; {
		if len(rest) < 8 {
			return s, nil, malformed
		}
		at, length := binary.LittleEndian.Uint32(rest), binary.LittleEndian.Uint32(rest[4:])
		if length == 0 || length > block || length%8 != 0 || uint64(at)+uint64(length) > uint64(s.Size) || int(length) > len(rest)-8 {
			return s, nil, malformed
		}
		rest = rest[8+length:]
	}
	return s, runs, nil
}

// revive makes the call what it was when it fell asleep, without an instance.
func (c *call) revive(of *Component) error {
	s, runs, err := readState(c.journal.State)
	switch {
	case err != nil:
		return err
	case s.Component != of.digest:
		return &StateError{"it began with component " + s.Component + ", and this is component " + of.digest}
	case of.memory == nil:
		return &StateError{"its component does not let its instances go"}
	}
	known, err := of.memory.prepared()
	if !known {
		c.host.workers.run(func() { err = of.memory.prepare(c, of, true) })
	}
	switch {
	case errors.Is(err, errKept):
		return fmt.Errorf("there is no memory to wake a call: %w", err)
	case err != nil:
		return err
	case of.memory.digest != s.Base:
		return &StateError{"the memory of a fresh instance is another than it was"}
	}
	c.journal.sequence = s.Sequence
	c.usage.Operations, c.usage.Denials, c.usage.DenialsDropped = s.Operations, s.Denials, s.Dropped
	c.usage.Interrupted = s.Interrupted
	c.awake = s.Awake
	if err := c.frame.work(s.CPU); err != nil {
		return err
	}
	env, err := c.given()
	if err != nil {
		return err
	}
	for name, state := range s.Opened {
		if c.opened[name] == nil { // or the log has a later one
			c.opened[name] = state
		}
	}
	if err := c.openKept(); err != nil {
		return err
	}
	c.handles.names = -len(env)
	c.arrived = true
	for _, h := range s.Handles {
		if err := c.restore(h); err != nil {
			return err
		}
	}
	c.handles.next = s.Next
	p := &packed{plain: true, size: s.Size, table: table{kept: true, slots: s.Slots, free: s.Free}}
	for _, rep := range s.Slots {
		if rep != 0 && c.handles.open[rep] == nil {
			return &StateError{"its state lacks a handle"}
		}
	}
	for _, rep := range s.Parked {
		h, err := c.handles.find(rep, c.host.pollable)
		if err != nil {
			return &StateError{"its state lacks what it waits for"}
		}
		c.parked, c.list = append(c.parked, h), append(c.list, rep)
	}
	if len(c.parked) == 0 {
		return &StateError{"its state waits for nothing"}
	}
	for len(runs) > 0 {
		n := 0
		for n < len(runs) && n < packBytes {
			n += 8 + int(binary.LittleEndian.Uint32(runs[n+4:]))
		}
		p.parts = append(p.parts, runs[:n])
		runs = runs[n:]
	}
	c.packed = p
	return nil
}

// restore makes a handle again.
func (c *call) restore(s savedHandle) error {
	iface, name, _ := strings.Cut(s.Resource, "#")
	known := c.host.known.Interface(iface)
	if known == nil {
		return &StateError{"the interface " + iface + " is not known any more"}
	}
	r := resourceNamed(known, name)
	if r == nil || s.Rep == 0 || c.handles.open[s.Rep] != nil {
		return &StateError{"its state has a handle that cannot be"}
	}
	switch {
	case r == c.host.env:
		e := environment{}
		if s.Whole {
			e = c.env
		}
		for _, b := range s.Env {
			if e[b.Name] != nil {
				continue
			}
			if err := c.restoreBinding(e, b); err != nil {
				return err
			}
		}
		return c.placeAt(s.Rep, &handle{resource: r, value: e})
	case s.Dead != nil:
		return c.bury(s.Rep, r, s.Binding, &abi.Error{Code: s.Dead.Code, Detail: s.Dead.Detail})
	case s.Ready && r == c.host.pollable:
		return c.placeAt(s.Rep, &handle{resource: r, binding: s.Binding, value: abi.Ready()})
	case s.Made != nil:
		h, why, err := c.makeAgain(s.Made, 0)
		switch {
		case err != nil:
			return err
		case why != nil:
			return c.bury(s.Rep, r, s.Binding, why)
		case h.resource != r:
			h.discard(c)
			return &StateError{"its state makes another kind of handle"}
		}
		return c.placeAt(s.Rep, h)
	}
	return c.restoreAt(s.Rep, r, s.Binding, nil, s.State)
}

func (h *handle) discard(c *call) { c.faults = append(c.faults, h.close()) }

// restoreBinding puts a binding into an env that the guest made.
func (c *call) restoreBinding(e environment, s savedHandle) error {
	if s.Dead != nil {
		e[s.Name] = &binding{name: s.Binding, interfaceName: s.Resource, dead: &abi.Error{Code: s.Dead.Code, Detail: s.Dead.Detail}}
		return nil
	}
	if s.Made == nil {
		return &StateError{"its state has a binding of nothing"}
	}
	if s.Made.Of == nil { // the binding itself, which is opened once it is needed
		b := c.env[s.Made.Binding]
		if b == nil {
			return nil // it is not there any more: the guest is told when it asks
		}
		e[s.Name] = b
		return nil
	}
	h, why, err := c.makeAgain(s.Made, 0)
	switch {
	case err != nil:
		return err
	case why != nil:
		e[s.Name] = &binding{name: s.Binding, interfaceName: s.Resource, dead: why}
		return nil
	}
	c.own(h.value, h.lease)
	e[s.Name] = &binding{name: h.binding, interfaceName: s.Resource, value: h.value, implementation: h.implementation, lease: h.lease, made: h.made}
	return nil
}

// root opens a binding of the call's env. why says why the guest cannot have it.
func (c *call) root(name string) (_ *binding, why *abi.Error, err error) {
	b := c.env[name]
	if b == nil {
		return nil, abi.Errorf(abi.CodeRevoked, "the run has no binding %q any more", name), nil
	}
	known := c.host.known.Interface(b.interfaceName)
	if known == nil {
		return nil, nil, &StateError{"the interface " + b.interfaceName + " is not known"}
	}
	get := funcNamed(known, "get")
	if get == nil || get.Result == nil || get.Result.Ok == nil {
		return nil, nil, &StateError{"the interface " + b.interfaceName + " has no get"}
	}
	over, err := c.openLeased(b, get.Result.Ok.Resource)
	if over != nil {
		return nil, over, nil
	}
	if e, ok := errors.AsType[*abi.Error](err); ok {
		return nil, e, nil
	}
	if err != nil {
		return nil, nil, err
	}
	return b, nil, nil
}

// makeAgain follows a derivation. why says why the guest cannot have it.
func (c *call) makeAgain(s *savedDerivation, depth int) (_ *handle, why *abi.Error, err error) {
	if depth > maxDerivations {
		return nil, nil, &StateError{"its state has a handle that is derived too often"}
	}
	if s.Of == nil {
		b, why, err := c.root(s.Binding)
		if b == nil {
			return nil, why, err
		}
		r := funcNamed(c.host.known.Interface(b.interfaceName), "get").Result.Ok.Resource
		return &handle{resource: r, value: b.value, implementation: b.implementation, binding: b.name, shared: true, lease: b.lease, made: b.derivation()}, nil, nil
	}
	self, why, err := c.makeAgain(s.Of, depth+1)
	if self == nil {
		return nil, why, err
	}
	defer self.discard(c)
	iface, name, _ := strings.Cut(s.Func, "#")
	known := c.host.known.Interface(iface)
	if known == nil {
		return nil, nil, &StateError{"the interface " + iface + " is not known any more"}
	}
	f := funcNamed(known, name)
	if f == nil || f.Resource != self.resource || len(f.Params) == 0 || slices.ContainsFunc(paramTypes(f)[1:], holdsHandles) {
		return nil, nil, &StateError{"its state calls a function that cannot be"}
	}
	m, ok := self.implementation[f.Name]
	if !ok {
		return nil, nil, &StateError{"its state calls a function that is not there"}
	}
	d, args := &decoder{rest: s.Args}, []abi.Value{}
	for _, p := range f.Params[1:] {
		args = append(args, d.value(p.Type))
	}
	if d.end() != nil {
		return nil, nil, &StateError{"the arguments of a function in its state are malformed"}
	}
	result, failed := m.Call(c.under(self.lease), self.value, args, scoped{c, self.binding, self.lease})
	failed = c.denied(self.binding, failed)
	v, err := m.Encode(result, failed, scoped{c, self.binding, self.lease})
	if err != nil {
		return nil, nil, err
	}
	var made []*handle
	_ = eachHandle(f.Result, v, func(_ *abi.Type, rep abi.Rep) error {
		made = append(made, c.handles.remove(rep))
		return nil
	})
	if s.Result < 0 || s.Result >= len(made) {
		for _, h := range made {
			h.discard(c)
		}
		return nil, c.errorOf(f.Result, v), nil
	}
	for i, h := range made {
		if i != s.Result {
			h.discard(c)
		}
	}
	h := made[s.Result]
	h.made = &derivation{of: self.made, fn: f, args: s.Args, result: s.Result}
	return h, nil, nil
}

// restoreAt makes a value of a state, for the handle with this number. Without a state, the value ended with its process.
func (c *call) restoreAt(rep abi.Rep, r *abi.Resource, binding string, l *lease, state []byte) error {
	if len(state) == 0 {
		return c.bury(rep, r, binding, interrupted(r))
	}
	b, why, err := c.root(binding)
	switch {
	case err != nil:
		return err
	case why != nil:
		return c.bury(rep, r, binding, why)
	}
	restorer, ok := abi.RestorerOf(b.value)
	if !ok {
		return c.bury(rep, r, binding, interrupted(r))
	}
	if l == nil {
		l = b.lease
	}
	v, err := restorer.Restore(c.under(l), r.Name, state)
	if err != nil {
		var e *abi.Error
		if !errors.As(err, &e) {
			return err
		}
		return c.bury(rep, r, binding, e)
	}
	h := &handle{resource: r, value: v, binding: binding, lease: l}
	if r == c.host.pollable {
		if _, ok := v.(*abi.Pollable); !ok {
			return &StateError{fmt.Sprintf("the binding %q restores a %T where a pollable was", binding, v)}
		}
	} else if h.implementation, err = c.host.implementation(r, v); err != nil {
		return err
	}
	return c.placeAt(rep, h)
}
