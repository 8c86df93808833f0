package host

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/internal/printable"
)

// journal is the log of a durable call, and how far the call has come in it.
type journal struct {
	*Durable
	// rest are the entries that the call has yet to come to. Until then, operations are answered from them.
	rest     [][]byte
	sequence uint64 // of the next operation
	once     abi.Once
}

// newJournal returns the journal of a call that goes on, or begins, and what its log says that bindings have used.
func newJournal(d *Durable) (j *journal, used map[string][]byte, err error) {
	j, used = &journal{Durable: d, sequence: d.First}, map[string][]byte{}
	for _, b := range d.Log {
		if len(b) == 0 || b[0] != entryUsed {
			j.rest = append(j.rest, b)
			continue
		}
		e, err := readLogged(b)
		if err != nil {
			return nil, nil, err
		}
		used[e.name] = e.answer
	}
	return j, used, nil
}

// The kinds of entries. An operation without an effect has one, with its answer. Of one that has an effect, the first says that it begins.
const (
	entryWhole = iota
	entryBegun
	entryAnswer
	entryRepeats // it begins, and may be made again
	entryUsed    // what a binding has used of its limits, after the operation before it

	// entryNamed is added to the kind if the entry says which binding the operation goes through, for people: see [LogReader].
	entryNamed = 8
)

// maxEntry bounds an entry. An answer passes through the guest's memory, of which it takes a part.
const maxEntry = 64 * mib

// derivation says how the value behind a handle is made again: from a binding, by calling functions that have no effect.
type derivation struct {
	of      *derivation // nil for the binding itself
	binding string      // in the env that the call began with, if of is nil
	fn      *abi.Func
	args    []byte // of fn, without its first; encoded
	result  int    // which of the handles in the result it is
}

// repeated is an operation whose result ended with its process, and which may be made again.
type repeated struct {
	op      *operation
	binding string
	args    []abi.Value
	once    abi.Once
}

// entry is an entry of the log.
type entry struct {
	kind    int
	binding string // that the operation goes through; empty if the entry does not say it
	name    string // of the interface and the function
	args    []byte // with their kind, as in a recording
	answer  []byte
	states  [][]byte // of the handles in the answer; nil where there is none
	// repeats is set if the operation could be made again when it began. Whether it could today says nothing about what it did then.
	repeats bool
}

// newEntry begins an entry.
func newEntry(kind int) *encoder {
	e := &encoder{max: maxEntry, plain: true}
	e.byte(byte(kind))
	return e
}

func operationName(f *abi.Func) string { return f.Interface.Name + "#" + f.Name }

// of says of which kind an entry is that says what an operation is called with.
func (e *encoder) of(kind byte) { e.buf[0] = kind | entryNamed }

// called writes what an operation is called with.
func (e *encoder) called(op *operation, binding string, args []abi.Value) {
	e.text(binding)
	e.text(operationName(op.fn))
	e.arguments(op.fn.Params, args)
}

// journaled executes an operation of a durable call, or answers it from the log.
func (c *call) journaled(op *operation, binding string, args []abi.Value) (abi.Value, error) {
	j := c.journal
	if len(j.rest) == 0 { // a dead value says what may be repeated once it is made again
		if _, err := c.dead(op, args); err != nil {
			return nil, err
		}
	}
	repeat := c.repeat(op, args)
	e := newEntry(entryBegun | entryNamed)
	if repeat == abi.Repeats {
		e.of(entryRepeats)
	}
	e.called(op, binding, args)
	if e.full {
		return nil, exceeded("bytes", printable.Size(maxEntry))
	}
	j.once = abi.Once{Run: j.Run, Sequence: j.sequence, Secret: j.Secret}
	begun := false
	if len(j.rest) > 0 {
		logged, err := j.next(e.buf)
		if err != nil {
			return nil, err
		}
		if logged.kind != entryBegun && logged.kind != entryRepeats {
			return c.answered(op, repeat, binding, args, logged)
		}
		begun = true
		if logged.kind == entryBegun && repeat == abi.Repeats {
			repeat = abi.Interrupts
		}
	}
	j.sequence++
	switch {
	case begun && repeat != abi.Repeats:
		c.charge(op, binding, args)
		why := abi.Errorf(abi.CodeInterrupted, "%s: the process ended meanwhile, so it may have happened", strings.TrimPrefix(op.fn.Name, "[method]"))
		return c.answer(newEntry(entryAnswer), op, repeat, args, func() (abi.Value, error) { return c.refuse(op, binding, args, why) })
	case begun:
		switch came, err := c.remembers(op, args); {
		case err != nil:
			return nil, err
		case came:
			c.charge(op, binding, args)
			return c.answer(newEntry(entryAnswer), op, repeat, args, func() (abi.Value, error) {
				c.consume(op, args)
				return okResult(nil), nil
			})
		}
	case repeat == abi.Reads || repeat == abi.Derives:
		e.of(entryWhole)
		return c.answer(e, op, repeat, args, func() (abi.Value, error) { return c.admitted(op, binding, args) })
	}
	if !begun {
		if err := j.Journal.Append(e.buf); err != nil {
			return nil, err
		}
		var failed error
		cancelled := c.store.Blocking(func() { failed = j.Journal.Commit(c.ctx) })
		if err := cmp.Or(failed, cancelled); err != nil {
			return nil, err
		}
	}
	return c.answer(newEntry(entryAnswer), op, repeat, args, func() (abi.Value, error) { return c.admitted(op, binding, args) })
}

// remembers reports whether an operation that began before has come about, as the value says whose operation it is.
func (c *call) remembers(op *operation, args []abi.Value) (came bool, err error) {
	self := c.handles.open[args[0].(abi.Rep)]
	if self == nil || op.fn.Result == nil || op.fn.Result.Kind != abi.KindResult || op.fn.Result.Ok != nil {
		return false, nil
	}
	r, ok := self.value.(abi.Rememberer)
	if !ok {
		return false, nil
	}
	ctx := abi.WithOnce(c.under(c.lease), c.journal.once)
	cancelled := c.store.Blocking(func() { came, err = r.Remembers(ctx) })
	return came, cmp.Or(err, cancelled)
}

// answer executes an operation and logs its answer, at the end of an entry. An operation that ends the call is not logged: that is the result of the run, or the process
// ends.
func (c *call) answer(e *encoder, op *operation, repeat abi.Repeat, args []abi.Value, execute func() (abi.Value, error)) (abi.Value, error) {
	made := c.derives(op, repeat, args)
	v, err := execute()
	if err != nil {
		return v, err
	}
	e.sized(func() { e.value(op.fn.Result, v) })
	n := 0
	_ = eachHandle(op.fn.Result, v, func(t *abi.Type, rep abi.Rep) error {
		h := c.handles.open[rep]
		if made != nil {
			d := *made
			d.result = n
			h.made = &d
		}
		n++
		var state []byte
		if repeat != abi.Derives {
			state, _ = c.saveValue(h)
		}
		e.bytes(state)
		return nil
	})
	if e.full {
		return nil, exceeded("bytes", printable.Size(maxEntry)+" of an answer in the log")
	}
	if err := c.journal.Journal.Append(e.buf); err != nil {
		return nil, err
	}
	return v, c.logUsed()
}

// logUsed logs what bindings have used of their limits, where that has changed.
func (c *call) logUsed() error {
	note := func(name string, state []byte) error {
		e := newEntry(entryUsed)
		e.text(name)
		e.bytes(state)
		return c.journal.Journal.Append(e.buf)
	}
	if awake := time.Since(c.clock.last) + c.awake; awake >= c.noted+time.Second {
		c.noted = awake
		if err := note(awakeName, binary.AppendUvarint(nil, uint64(awake))); err != nil {
			return err
		}
	}
	return c.changed(note)
}

// awakeName is how a log says how long the call was awake; no binding has such a name. A state says it by itself.
const awakeName = "\x00awake"

// resume has the wall clock go on where the log, or the state, says that it was.
func (r *running) resume() error {
	in := r.in
	if noted := in.opened[awakeName]; noted != nil {
		awake, n := binary.Uvarint(noted)
		if n != len(noted) || awake > math.MaxInt64 {
			return &StateError{"how long it was awake is malformed"}
		}
		in.awake = max(in.awake, time.Duration(awake))
		delete(in.opened, awakeName)
	}
	in.noted = in.awake
	if in.awake > 0 {
		wall := time.AfterFunc(r.limits.Wall-in.awake, func() { r.cancel(errWall) })
		in.ends = append(in.ends, func() { wall.Stop() })
	}
	return nil
}

// used is what a binding of the call's own env keeps for the length of the call, such as what it has used of its limits. It is nil if there is nothing. ok is false if the call
// cannot sleep with it.
func (b *binding) used() (state []byte, ok bool) {
	lasting, keeps := b.value.(abi.Lasting)
	if !keeps || b.given == nil {
		return nil, true
	}
	return lasting.Save()
}

// openKept opens the bindings that keep something for the length of the call. So that counts whoever uses it, the code and the tools that the call passes a binding on to included. The guest
// sees errors when it uses a binding.
func (c *call) openKept() error {
	env, err := c.given()
	if err != nil {
		return err
	}
	if err := c.keepGrants(env); err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(env)) {
		if _, keeps := env[name].capability.(abi.Reopener); keeps {
			_, _, _ = c.root(name)
		}
	}
	return nil
}

// repeat says what may be done with an operation when the call goes on in another process.
func (c *call) repeat(op *operation, args []abi.Value) abi.Repeat {
	f := op.fn
	switch {
	case f.Interface.Name == abi.EnvInterface, f.Resource == nil && (f.Name == "get" || f.Name == "put"):
		return abi.Derives
	case op.polls:
		return abi.Reads
	}
	h, err := c.handles.find(args[0].(abi.Rep), f.Resource)
	if err != nil {
		return abi.Interrupts
	}
	if r, ok := h.value.(abi.Repeatable); ok {
		return r.Repeat(strings.TrimPrefix(f.Name, "[method]"), args[1:])
	}
	return abi.Interrupts
}

// derives returns how the handles in the result of an operation are made again, or nil.
func (c *call) derives(op *operation, repeat abi.Repeat, args []abi.Value) *derivation {
	if repeat != abi.Derives || !op.gives || !strings.HasPrefix(op.fn.Name, "[method]") || op.fn.Interface.Name == abi.EnvInterface {
		return nil
	}
	self := c.handles.open[args[0].(abi.Rep)]
	if self == nil || self.made == nil || slices.ContainsFunc(paramTypes(op.fn)[1:], holdsHandles) {
		return nil
	}
	e := &encoder{max: maxArgument, plain: true}
	for i, p := range op.fn.Params[1:] {
		e.value(p.Type, args[i+1])
	}
	if e.full {
		return nil
	}
	return &derivation{of: self.made, fn: op.fn, args: e.buf}
}

// next takes the entries of the next operation from the log. called is what the call does, as an entry that begins.
func (j *journal) next(called []byte) (entry, error) {
	e, err := readLogged(j.rest[0])
	if err != nil {
		return e, err
	}
	if e.kind == entryAnswer || e.kind == entryUsed || !bytes.HasPrefix(unnamed(j.rest[0]), unnamed(called)) {
		got, _ := readLogged(called)
		return e, &PartedError{Operation: j.sequence + 1 - j.First, Expected: e.text(), Got: got.text()}
	}
	j.rest = j.rest[1:]
	e.repeats = e.kind == entryRepeats
	if (e.kind == entryBegun || e.repeats) && len(j.rest) > 0 {
		answer, err := readLogged(j.rest[0])
		if err != nil {
			return e, err
		}
		if answer.kind != entryAnswer {
			return e, &StateError{"its log lacks the answer of an operation"}
		}
		j.rest = j.rest[1:]
		e.kind, e.answer, e.states = entryAnswer, answer.answer, answer.states
	}
	return e, nil
}

// unnamed is what follows the kind and the binding of an entry that was read.
func unnamed(b []byte) []byte {
	d := &decoder{rest: b[1:]}
	if b[0]&entryNamed != 0 {
		d.bytes()
	}
	return d.rest
}

func (e entry) text() string {
	if e.kind == entryAnswer {
		return "an answer"
	}
	return e.name
}

// readLogged reads an entry. Its parts point into it.
func readLogged(b []byte) (e entry, err error) {
	d := &decoder{rest: b}
	e.kind = int(d.number(entryUsed | entryNamed))
	if e.kind&entryNamed != 0 {
		e.kind -= entryNamed
		e.binding = lineOf(d.text(), maxName)
	}
	switch {
	case e.kind > entryUsed:
		d.fail(errMalformed)
	case e.kind == entryUsed:
		e.name, e.answer = d.text(), d.bytes()
	case e.kind != entryAnswer:
		e.name = lineOf(d.text(), 2*maxName)
		kind := d.number(argsDigest)
		e.args = append([]byte{byte(kind)}, d.sized()...)
	}
	if e.kind == entryWhole || e.kind == entryAnswer {
		e.answer = d.sized()
		for len(d.rest) > 0 {
			e.states = append(e.states, d.bytes())
		}
	}
	if d.end() != nil {
		return entry{}, &StateError{"an entry of its log is malformed"}
	}
	return e, nil
}

// answered gives an operation the answer of the log, with handles that are of use where that is possible.
func (c *call) answered(op *operation, repeat abi.Repeat, binding string, args []abi.Value, logged entry) (abi.Value, error) {
	j := c.journal
	j.sequence++
	d := &decoder{rest: logged.answer}
	answer := d.value(op.fn.Result)
	if d.end() != nil {
		return nil, &StateError{"an answer of its log is malformed"}
	}
	var reps []abi.Rep
	var resources []*abi.Resource
	_ = eachHandle(op.fn.Result, answer, func(t *abi.Type, rep abi.Rep) error {
		reps, resources = append(reps, rep), append(resources, t.Resource)
		return nil
	})
	if len(reps) != len(logged.states) {
		return nil, &StateError{"an entry of its log has another number of handles"}
	}
	for _, rep := range reps {
		if rep >= math.MaxUint32/2 || c.handles.open[rep] != nil {
			return nil, &StateError{"a handle in its log has a number that is in use"}
		}
	}
	if repeat == abi.Derives && (len(reps) > 0 || op.fn.Name == "put") {
		return answer, c.derive(op, repeat, binding, args, answer, reps, resources)
	}
	lease := c.lease
	var again *repeated
	if logged.repeats && repeat == abi.Repeats {
		again = c.repeats(op, binding, args)
	}
	c.touch(op, args)
	c.consume(op, args)
	for i, rep := range reps {
		if err := c.restoreAt(rep, resources[i], binding, lease, logged.states[i]); err != nil {
			return nil, err
		}
		if h := c.handles.open[rep]; h.dead != nil && len(reps) == 1 {
			h.again = again
		}
	}
	if op.fn.Result != nil {
		c.denyAgain(op.fn.Result, answer)
	}
	return answer, nil
}

// repeats returns an operation that may be made again for the handle that it returned, or nil.
func (c *call) repeats(op *operation, binding string, args []abi.Value) *repeated {
	if op.takes && op.hasOwn(args) {
		return nil
	}
	return &repeated{op, binding, args, c.journal.once}
}

// eachArgument visits the handles among arguments, until visit fails.
func (op *operation) eachArgument(args []abi.Value, visit func(*abi.Type, abi.Rep) error) error {
	for i, p := range op.fn.Params {
		if err := eachHandle(p.Type, args[i], visit); err != nil {
			return err
		}
	}
	return nil
}

func (op *operation) hasOwn(args []abi.Value) (has bool) {
	_ = op.eachArgument(args, func(t *abi.Type, _ abi.Rep) error {
		has = has || t.Kind == abi.KindOwn
		return nil
	})
	return has
}

// touch notes that the guest has got something from a dead value, so that it cannot be made again. To wait for it is nothing.
func (c *call) touch(op *operation, args []abi.Value) {
	if op.polls || op.fn.Result != nil && op.fn.Result.Kind == abi.KindOwn && op.fn.Result.Resource == c.host.pollable {
		return
	}
	_ = op.eachArgument(args, func(_ *abi.Type, rep abi.Rep) error {
		if h := c.handles.open[rep]; h != nil {
			h.again = nil
		}
		return nil
	})
}

// makeLate makes the dead value of a handle, if it can be made again.
func (c *call) makeLate(h *handle) error {
	r := h.again
	h.again = nil
	if self := c.handles.open[r.args[0].(abi.Rep)]; self == nil || self == h || self.dead != nil {
		return nil
	}
	was, once := c.lease, c.journal.once
	defer func() { c.lease, c.journal.once = was, once }()
	c.journal.once = r.once
	var err error
	if _, c.lease, err = c.authorise(r.op, r.args); err != nil {
		return err
	}
	v, err := c.admitted(r.op, r.binding, r.args)
	if err != nil {
		return err
	}
	var made *handle
	_ = eachHandle(r.op.fn.Result, v, func(_ *abi.Type, rep abi.Rep) error {
		made = c.handles.remove(rep)
		return nil
	})
	switch {
	case made == nil:
		h.dead = c.errorOf(r.op.fn.Result, v)
	case made.resource != h.resource:
		made.discard(c)
	default:
		h.value, h.implementation, h.lease, h.dead = made.value, made.implementation, made.lease, nil
		c.handles.sizes += sizeOf(h.value)
		was, err = c.mix(was, h.lease)
	}
	return err
}

// consume drops the own handles among arguments.
func (c *call) consume(op *operation, args []abi.Value) {
	_ = op.eachArgument(args, func(t *abi.Type, rep abi.Rep) error {
		if t.Kind == abi.KindOwn && c.handles.open[rep] != nil {
			c.faults = append(c.faults, c.handles.remove(rep).close())
		}
		return nil
	})
}

// derive executes an operation that makes handles again, so that they get the numbers that they had.
func (c *call) derive(op *operation, repeat abi.Repeat, binding string, args []abi.Value, logged abi.Value, reps []abi.Rep, resources []*abi.Resource) error {
	defer c.free()()
	made := c.derives(op, repeat, args)
	if len(reps) > 0 {
		c.handles.next = max(c.handles.next, reps[0]-1)
	}
	v, err := c.admitted(op, binding, args)
	if err != nil {
		return err
	}
	var got []abi.Rep
	_ = eachHandle(op.fn.Result, v, func(_ *abi.Type, rep abi.Rep) error {
		got = append(got, rep)
		return nil
	})
	if slices.Equal(got, reps) {
		for i, rep := range reps {
			if made != nil {
				d := *made
				d.result = i
				c.handles.open[rep].made = &d
			}
		}
		return nil
	}
	for _, rep := range got {
		c.faults = append(c.faults, c.handles.remove(rep).close())
	}
	for i, rep := range reps {
		if err := c.bury(rep, resources[i], binding, c.errorOf(op.fn.Result, v)); err != nil {
			return err
		}
	}
	return nil
}

// errorOf is the error that a result holds.
func (c *call) errorOf(t *abi.Type, v abi.Value) *abi.Error {
	if r, ok := v.(abi.Variant); ok && t.Kind == abi.KindResult && r.Case == 1 && t.Err != nil && t.Err.Name == "error" {
		var e *abi.Error
		if abi.Decode(t.Err, r.Value, &e, nil) == nil {
			return e
		}
	}
	return abi.Errorf(abi.CodeRevoked, "what it was made of is not there any more")
}

// interrupted is the answer of a handle whose value ended with its process.
func interrupted(r *abi.Resource) *abi.Error {
	return abi.Errorf(abi.CodeInterrupted, "the process ended, and with it this %s", r.Name)
}

// bury gives the guest a handle that answers everything with an error.
func (c *call) bury(rep abi.Rep, r *abi.Resource, binding string, why *abi.Error) error {
	h := &handle{resource: r, binding: binding, dead: why}
	switch r {
	case c.host.pollable:
		h.value = abi.Ready()
	case c.host.env:
		h.value, h.dead = environment{}, nil
	}
	return c.placeAt(rep, h)
}

// placeAt adds a handle with a number that it had.
func (c *call) placeAt(rep abi.Rep, h *handle) error {
	c.handles.next = max(c.handles.next, rep)
	return c.handles.put(rep, h)
}

// dead returns why a handle among the arguments cannot be used.
func (c *call) dead(op *operation, args []abi.Value) (why *abi.Error, err error) {
	if op.polls {
		return nil, nil
	}
	err = op.eachArgument(args, func(_ *abi.Type, rep abi.Rep) error {
		h := c.handles.open[rep]
		if h == nil || h.dead == nil || why != nil {
			return nil
		}
		if h.again != nil {
			if err := c.makeLate(h); err != nil {
				return err
			}
		}
		why = h.dead
		return nil
	})
	return why, err
}
