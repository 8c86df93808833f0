package host

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/internal/errkind"
	"github.com/stilehost/stile/internal/printable"
	"github.com/stilehost/stile/internal/sha256hex"
)

// ReplayOptions say what a replay accepts.
type ReplayOptions struct {
	// OtherComponent accepts a component other than the recorded one, such as its next version.
	OtherComponent bool
	// Deny continues after a difference: recorded operations are answered in any order, each once, and everything else is
	// denied. Without it, a replay ends at the first difference.
	Deny bool
	// Limits that are not zero override the recorded ones, each of which is at most that of Options.Limits. Approved is as in [Request].
	Limits   Limits
	Approved []abi.Definition
}

// Comparison is the result of a replay.
type Comparison struct {
	// Same is set if the replay made the recorded operations with the same arguments and ended in the same way, with the same output
	// byte for byte. The order must be the same too, unless ReplayOptions.Deny is set.
	Same bool
	// Recorded is how many operations the recording has, and Answered how many of them the replay made.
	Recorded, Answered int
	// Cut is set if the replay ended at the end of an incomplete recording.
	Cut bool
	// Timed is set if a clock or a caller ended the recorded call, so the two ends are not compared.
	Timed bool
	// Differences are at most 100, in the order in which they were found. DifferencesDropped counts the others.
	Differences        []Difference
	DifferencesDropped int
	// Output and Outcome are the replay's. Only replays have the outcomes "parted", if the replay ended at the first difference, and
	// "cut", if Cut is set.
	Output  []byte
	Outcome Outcome
}

// Difference is a place where a replay differs from its recording.
type Difference struct {
	// Operation is its number, counted from 1: the number in the replay if the replay has the operation, otherwise in the recording.
	// It is 0 if the outcome or the output differs.
	Operation int
	// Expected is the recorded operation and Got the replayed one, as text for people. Either may be empty if there is none.
	Expected, Got string
}

// ReplayError reports a recording that cannot be replayed at all.
type ReplayError struct{ Reason string }

func (e *ReplayError) Error() string { return "the recording cannot be replayed: " + e.Reason }

// maxDifferences is how many differences a comparison holds.
const maxDifferences = 100

// replayed is the value of a handle in a replay: its number in the recording.
type replayed abi.Rep

// recordedEnv is the number of the call's env, which is the first of its handles.
const recordedEnv = replayed(1)

// player answers the operations of a replay from a recording. It is the only source, because a replay has no capabilities.
type player struct {
	options   ReplayOptions
	recording *Recording
	redact    func([]byte) []byte
	list      []recordedOperation
	used      []bool           // entries of list
	at        int              // position in list of the next expected operation
	made      int              // operations so far
	byKey     map[string][]int // unused operations, if options.Deny is set
	ready     map[abi.Rep]bool // pollables that were ready at some time, by their numbers
	damaged   error
	found     Comparison
	shown     decoder // counts the values of all operations that are shown
}

// errParted ends a replay at its first difference. errCut ends it at the end of an incomplete recording.
var (
	errParted = errors.New("the replay differs from its recording")
	errCut    = errors.New("the recording is incomplete")
)

// Replay runs a recorded call again, in a fresh instance, with the recorded answers. It neither opens nor calls any capability. Its
// errors are a *[ReplayError] or *[DamagedError] for a recording that cannot be used, the end of ctx, and [ErrClosed].
func (c *Component) Replay(ctx context.Context, r *Recording, o ReplayOptions) (Comparison, error) {
	switch {
	case r.Component != c.digest && !o.OtherComponent:
		return Comparison{}, &ReplayError{fmt.Sprintf("it was recorded with component %s, and this is component %s", printable.Short(r.Component, 64), c.digest)}
	case r.Input == nil:
		return Comparison{}, &ReplayError{"its input was too large to record"}
	}
	list, err := r.parse(c.host.known)
	if err != nil {
		return Comparison{}, err
	}
	p := &player{options: o, recording: r, redact: c.host.options.Redact, list: list, used: make([]bool, len(list))}
	if o.Deny {
		p.index()
	}
	var code *Code
	if r.Code != "" && c.evaluate.index != nil { // otherwise the component was rebuilt with the code
		code = &Code{r.Code, func() []byte { return r.SourceMap }}
	}
	result, err := c.Do(ctx, Request{Tool: r.Tool, Code: code, Input: r.Input, Limits: o.Limits.or(r.Limits.within(c.host.options.Limits)), Approved: o.Approved, replay: p})
	switch {
	case ctx.Err() != nil:
		return Comparison{}, ctx.Err()
	case p.damaged != nil:
		return Comparison{}, p.damaged
	case c.host.closing.Err() != nil:
		return Comparison{}, ErrClosed
	}
	return p.compare(ctx, result, err), nil
}

// index finds operations by what they do, and the pollables that were ready.
func (p *player) index() {
	p.byKey, p.ready = map[string][]int{}, map[abi.Rep]bool{}
	for i, o := range p.list {
		p.byKey[o.key()] = append(p.byKey[o.key()], i)
		if o.iface != abi.PollInterface || o.fn == nil || o.outcome != nil || o.args[0] != argsWhole {
			continue
		}
		args, answer := &decoder{rest: o.args[1:]}, &decoder{rest: o.answer}
		given, answered := args.value(o.fn.Params[0].Type), answer.value(o.fn.Result)
		if args.err != nil || answer.err != nil {
			continue
		}
		switch given := given.(type) {
		case []abi.Value: // poll, or park in a recording that somebody forged
			answered, _ := answered.([]abi.Value)
			for _, at := range answered {
				if int(at.(uint32)) < len(given) {
					p.ready[given[at.(uint32)].(abi.Rep)] = true
				}
			}
		case abi.Rep:
			if was, is := answered.(bool); !is || was { // ready, or block
				p.ready[given] = true
			}
		}
	}
}

// number is the number that the recording gives to a handle of the replay.
func (p *player) number(c *call, rep abi.Rep) abi.Rep {
	if h := c.handles.open[rep]; h != nil {
		if n, ok := h.value.(replayed); ok {
			return abi.Rep(n)
		}
	}
	return 0
}

// answer is the gate's answer in a replay.
func (p *player) answer(c *call, op *operation, binding string, args []abi.Value) (abi.Value, error) {
	p.made++
	var owned []abi.Rep
	e := encoder{max: math.MaxInt, redact: p.redact, handle: func(t *abi.Type, rep abi.Rep) abi.Rep {
		if t.Kind == abi.KindOwn {
			owned = append(owned, rep)
		}
		return p.number(c, rep)
	}}
	e.arguments(op.fn.Params, args)
	got := recordedOperation{iface: op.fn.Interface.Name, name: op.fn.Name, fn: op.fn, args: append(e.buf[:1:1], e.buf[5:]...)}
	i := p.find(got)
	if i < 0 {
		return p.unrecorded(c, got, binding, args)
	}
	p.used[i], p.at = true, i+1
	p.found.Answered++
	// Handles that were passed on no longer belong to the guest, whatever the answer is.
	for _, rep := range owned {
		if c.handles.open[rep] != nil {
			c.handles.remove(rep)
		}
	}
	o := p.list[i]
	if o.outcome != nil {
		return nil, o.outcome.err()
	}
	if op.fn.Resource == nil && op.fn.Name == "get" {
		binding = args[1].(string)
	}
	d := &decoder{rest: o.answer, handle: func(t *abi.Type, n abi.Rep) (abi.Rep, error) {
		return c.handles.add(&handle{resource: t.Resource, value: replayed(n), binding: binding})
	}}
	answer := d.value(op.fn.Result)
	if d.err == nil && len(d.rest) > 0 {
		d.err = errMalformed
	}
	if d.err != nil {
		if !errkind.Is[*LimitError](d.err) {
			p.damaged = &DamagedError{i + 1, d.err.Error()}
		}
		return nil, d.err
	}
	c.denyAgain(op.fn.Result, answer)
	return answer, nil
}

// find returns the index of the recorded operation that answers this one, or -1.
func (p *player) find(got recordedOperation) int {
	key := got.key()
	if !p.options.Deny {
		if p.at < len(p.list) && p.list[p.at].key() == key {
			return p.at
		}
		return -1
	}
	left := p.byKey[key]
	if len(left) == 0 {
		return -1
	}
	p.byKey[key] = left[1:]
	return left[0]
}

// denyAgain adds a repeated denial or interruption to this call's record, as the gate does.
func (c *call) denyAgain(t *abi.Type, answer abi.Value) {
	v, ok := answer.(abi.Variant)
	if !ok || t.Kind != abi.KindResult || v.Case == 0 || t.Err == nil {
		return
	}
	var e *abi.Error
	if abi.Decode(t.Err, v.Value, &e, nil) != nil {
		return
	}
	if e.Denial != nil {
		c.usage.record(*e.Denial)
	}
	if e.Code == abi.CodeInterrupted {
		c.usage.Interrupted++
	}
}

// unrecorded answers an operation without a recorded answer.
func (p *player) unrecorded(c *call, got recordedOperation, binding string, args []abi.Value) (abi.Value, error) {
	waits := got.iface == abi.PollInterface
	switch {
	case p.recording.Cut != "" && (p.options.Deny || p.at == len(p.list)):
		p.found.Cut = true
		return nil, errCut
	case p.options.Deny && waits:
		return p.wait(c, got.fn, args[0]), nil
	case p.options.Deny:
		p.differ(Difference{Operation: p.made, Got: p.call(got)})
		return c.deny(got.fn, binding)
	case p.at < len(p.list):
		p.differ(Difference{Operation: p.at + 1, Expected: p.call(p.list[p.at]), Got: p.call(got)})
		return nil, errParted
	case p.recording.Outcome.timed():
		return nil, p.recording.Outcome.err()
	default:
		p.differ(Difference{Operation: p.made, Got: p.call(got)})
		return nil, errParted
	}
}

// wait answers a wait that was not recorded. Pollables that were once ready are ready. If there are none, all pollables are ready,
// because nothing will change.
func (p *player) wait(c *call, f *abi.Func, arg abi.Value) abi.Value {
	list, isPoll := arg.([]abi.Value)
	if !isPoll {
		if f.Result == nil {
			return nil
		}
		return p.ready[p.number(c, arg.(abi.Rep))]
	}
	all, ready := []abi.Value{}, []abi.Value{}
	for i, rep := range list {
		all = append(all, uint32(i))
		if p.ready[p.number(c, rep.(abi.Rep))] {
			ready = append(ready, uint32(i))
		}
	}
	if len(ready) == 0 {
		return all
	}
	return ready
}

// deny refuses an operation that is not recorded, with an error of its type if it has one. Otherwise the call ends, unless the
// operation has no result.
func (c *call) deny(f *abi.Func, binding string) (abi.Value, error) {
	d := abi.Denial{Binding: binding, Operation: f.Interface.Name + "#" + f.Name, Reason: "the recording has no such operation"}
	switch t := f.Result; {
	case t == nil:
		return nil, nil
	case t.Kind != abi.KindResult:
	case t.Err == nil:
		return abi.Variant{Case: 1}, nil
	case t.Err.Kind == abi.KindString:
		return abi.Variant{Case: 1, Value: "denied: " + d.Reason}, nil
	default:
		if v, err := c.errResult(t, abi.Deny(d)); err == nil {
			c.usage.record(d)
			return v, nil
		}
	}
	c.usage.record(d)
	return nil, &DeniedError{d}
}

func (p *player) differ(d Difference) {
	if !p.drops() {
		p.found.Differences = append(p.found.Differences, d)
	}
}

// drops reports whether there are as many differences as a comparison holds, and counts one more.
func (p *player) drops() bool {
	if len(p.found.Differences) < maxDifferences {
		return false
	}
	p.found.DifferencesDropped++
	return true
}

// compare describes the replay, which ended with result and err.
func (p *player) compare(ctx context.Context, result Result, err error) Comparison {
	c, was := &p.found, p.recording.Outcome
	e := encoder{redact: p.redact}
	c.Recorded, c.Timed = len(p.list), was.timed()
	c.Output, c.Outcome = e.without(result.Output), e.outcome(outcome(ctx, err))
	switch {
	case errors.Is(err, errParted):
		c.Outcome = Outcome{Kind: "parted", Message: "it ended at the first difference"}
	case errors.Is(err, errCut):
		c.Outcome = Outcome{Kind: "cut", Message: "it ended where the incomplete recording ends"}
	default:
		for i, o := range p.list {
			if waits := p.options.Deny && o.iface == abi.PollInterface; !p.used[i] && !waits && !c.Outcome.timed() && !p.drops() {
				p.differ(Difference{Operation: i + 1, Expected: p.call(o)})
			}
		}
		switch same := bytes.Equal(c.Output, p.recording.Output); {
		case c.Timed:
		case c.Outcome != was:
			p.differ(Difference{Expected: was.String(), Got: c.Outcome.String()})
		case p.recording.OutputDigest != "" && sha256hex.Of(c.Output) != p.recording.OutputDigest:
			p.differ(Difference{Expected: "an output of SHA-256 " + printable.Short(p.recording.OutputDigest, 64), Got: "one of SHA-256 " + sha256hex.Of(c.Output)})
		case p.recording.OutputDigest == "" && !same:
			p.differ(Difference{Expected: printable.Short(string(p.recording.Output), kib), Got: printable.Short(string(c.Output), kib)})
		}
	}
	c.Same = len(c.Differences) == 0 && !c.Cut
	return *c
}

// String is the outcome as text for people.
func (o Outcome) String() string {
	if o.Message == "" {
		return printable.Short(o.Kind, 64)
	}
	return printable.Short(o.Kind+": "+strings.TrimPrefix(o.Message, o.Kind+": "), 4*kib)
}

// call is an operation without its answer.
func (p *player) call(o recordedOperation) string {
	s := o.shown(&p.shown)
	return s.Interface + "#" + s.Func + "(" + s.Args + ")"
}
