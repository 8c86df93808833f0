package host

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/host/internal/wasmtime"
	"github.com/stilehost/stile/internal/errkind"
	"github.com/stilehost/stile/internal/printable"
)

// world is the part of WASI that is more than empty, for one call: text, time and randomness. Where the call has a binding of
// console, clock or random, it is used through the gate, as if the guest had used it. Nothing else is outside the call, so a replay
// answers the same.
type world struct {
	held    map[string]abi.Rep // handles of bindings, by interface
	time    uint64             // of the monotonic clock, when it was last read
	seeded  [2]*rand.ChaCha8
	streams [2]textStream
	tail    []byte  // of what the guest wrote
	denied  string  // what a binding of WASI denied last
	bytes   int     // of fields and bodies of requests
	client  abi.Rep // the handle of the binding that serves http; 0 until it is needed
	// listings counts the directories that it reads.
	listings int
}

// The interfaces whose bindings WASI uses.
const (
	consoleInterface = abi.CapabilityPackage + "console" + abi.ContractVersion
	clockInterface   = abi.CapabilityPackage + "clock" + abi.ContractVersion
	randomInterface  = abi.CapabilityPackage + "random" + abi.ContractVersion

	// Those that only serve WASI if the call says so.
	workspaceInterface = abi.WorkspaceInterface
	httpInterface      = abi.HTTPInterface
	blobInterface      = abi.CapabilityPackage + "blob" + abi.ContractVersion
)

const (
	// worldStart is what the monotonic clock says first, because some runtimes refuse 0.
	worldStart = 1_000_000_000
	// worldTick is how much it advances when it is read, if nothing else moves it.
	worldTick = 10_000
	// maxWorldRandom is how many random bytes one function returns at most.
	maxWorldRandom = mib
	// maxWorldLine is how many bytes of one line are kept until it ends.
	maxWorldLine = 4 * kib
	// maxOutput is how much of what the guest wrote at last is part of a failure's text, in bytes.
	maxOutput = 16 * kib
	// worldPermit is how much output check-write permits.
	worldPermit = 64 * kib
)

// Numbers of handles that do not come from the table's own sequence: the env for WASI, and before it the handles of WASI.
const ownEnv = ^abi.Rep(0)

// worldFunc is a function of WASI that is more than empty.
type worldFunc struct {
	shape  string // its type: see shape
	says   string
	answer func(c *call, f *abi.Func, args []abi.Value) (abi.Value, error)
	// through, if not nil, replaces the gate's call of answer, which is gated. It may use bindings, each through the gate.
	through func(c *call, gated answer, f *abi.Func, args []abi.Value) (abi.Value, error)
	uses    string // the interface whose binding through uses
}

const (
	saysText   = "takes text: for the binding of console, if the call has one, and for the text of a failure"
	saysClock  = "answers by the binding of clock; without one, from 1 s on, 10 us later each time"
	saysWait   = "waits by the binding of clock; without one, it is that time at once"
	saysRandom = "answers by the binding of random; without one, before the call's env arrives, from a fixed seed, and then it ends the call"
	saysSeed   = "answers from a fixed seed"
)

var worldFuncs = sync.OnceValue(func() map[string]worldFunc {
	all := harmlessFuncs()
	streamFuncs(all)
	filesystemFuncs(all)
	httpFuncs(all)
	return all
})

// harmlessFuncs are those that need no binding, or take any of its kind.
func harmlessFuncs() map[string]worldFunc {
	return map[string]worldFunc{
		"wasi:cli/exit#exit":                             {shape: "func(result)", says: "ends the call", answer: exitGuest},
		"wasi:cli/exit#exit-with-code":                   {shape: "func(u8)", says: "ends the call", answer: exitGuest},
		"wasi:cli/stdout#get-stdout":                     {shape: "func() -> own<output-stream>", says: saysText, answer: textHandle(0)},
		"wasi:cli/stderr#get-stderr":                     {shape: "func() -> own<output-stream>", says: saysText, answer: textHandle(1)},
		streamFunc + "check-write":                       {shape: "func(borrow<output-stream>) -> result<u64,variant>", says: "permits 64 KiB to stdout and stderr; closed for others", answer: ofText(checkWrite)},
		streamFunc + "write":                             {shape: writes, says: saysText + "; closed for others", answer: ofText(writeText), through: thenTell, uses: consoleInterface},
		streamFunc + "blocking-write-and-flush":          {shape: writes, says: saysText + "; closed for others", answer: ofText(writeText), through: thenTell, uses: consoleInterface},
		streamFunc + "flush":                             {shape: flushes, says: "does nothing; closed for others than stdout and stderr", answer: ofText(flushText)},
		streamFunc + "blocking-flush":                    {shape: flushes, says: "does nothing; closed for others than stdout and stderr", answer: ofText(flushText)},
		streamFunc + "subscribe":                         {shape: "func(borrow<output-stream>) -> own<pollable>", says: "is ready", answer: readyHandle},
		"wasi:io/streams#[method]input-stream.subscribe": {shape: "func(borrow<input-stream>) -> own<pollable>", says: "is ready", answer: readyHandle},
		"wasi:io/poll#[method]pollable.ready":            {shape: "func(borrow<pollable>) -> bool", says: saysClock, answer: pollableReady, through: throughClock(pollableReady), uses: clockInterface},
		"wasi:io/poll#[method]pollable.block":            {shape: "func(borrow<pollable>)", says: saysWait, answer: pollableBlock, through: throughClock(pollableBlock), uses: clockInterface},
		"wasi:io/poll#poll":                              {shape: "func(list<borrow<pollable>>) -> list<u32>", says: saysWait, answer: pollList, through: throughClock(pollList), uses: clockInterface},
		"wasi:clocks/monotonic-clock#now":                {shape: "func() -> u64", says: saysClock, answer: monotonicNow, through: throughClock(monotonicNow), uses: clockInterface},
		"wasi:clocks/monotonic-clock#resolution":         {shape: "func() -> u64", says: "answers 10 us", answer: monotonicResolution},
		"wasi:clocks/monotonic-clock#subscribe-instant":  {shape: "func(u64) -> own<pollable>", says: saysWait, answer: subscribeInstant, through: throughClock(subscribeInstant), uses: clockInterface},
		"wasi:clocks/monotonic-clock#subscribe-duration": {shape: "func(u64) -> own<pollable>", says: saysWait, answer: subscribeDuration, through: throughClock(subscribeDuration), uses: clockInterface},
		"wasi:clocks/wall-clock#now":                     {shape: "func() -> record<u64,u32>", says: "answers by the binding of clock; without one, it is 1970, and later each time", answer: wallNow, through: throughClock(wallNow), uses: clockInterface},
		"wasi:clocks/wall-clock#resolution":              {shape: "func() -> record<u64,u32>", says: "answers 1 ms", answer: wallResolution},
		"wasi:random/random#get-random-bytes":            {shape: "func(u64) -> list<u8>", says: saysRandom, answer: secureWithout, through: throughRandom, uses: randomInterface},
		"wasi:random/random#get-random-u64":              {shape: "func() -> u64", says: saysRandom, answer: secureWithout, through: throughRandom, uses: randomInterface},
		"wasi:random/insecure#get-insecure-random-bytes": {shape: "func(u64) -> list<u8>", says: saysSeed, answer: insecure},
		"wasi:random/insecure#get-insecure-random-u64":   {shape: "func() -> u64", says: saysSeed, answer: insecure},
		"wasi:random/insecure-seed#insecure-seed":        {shape: "func() -> tuple<u64,u64>", says: saysSeed, answer: insecure},
	}
}

const (
	streamFunc = "wasi:io/streams#[method]output-stream."
	writes     = "func(borrow<output-stream>,list<u8>) -> result<_,variant>"
	flushes    = "func(borrow<output-stream>) -> result<_,variant>"
)

// shape is a function's type in short: without the names of fields, and of variants only that.
func shape(f *abi.Func) string {
	params := make([]string, len(f.Params))
	for i, p := range f.Params {
		params[i] = typeShape(p.Type)
	}
	text := "func(" + strings.Join(params, ",") + ")"
	if f.Result != nil {
		text += " -> " + typeShape(f.Result)
	}
	return text
}

func typeShape(t *abi.Type) string {
	if t == nil {
		return "_"
	}
	inner := func(types ...*abi.Type) string {
		texts := make([]string, len(types))
		for i, t := range types {
			texts[i] = typeShape(t)
		}
		return t.Kind.String() + "<" + strings.Join(texts, ",") + ">"
	}
	switch t.Kind {
	case abi.KindOwn, abi.KindBorrow:
		return t.Kind.String() + "<" + t.Resource.Name + ">"
	case abi.KindList, abi.KindOption:
		return inner(t.Elem)
	case abi.KindResult:
		if t.Ok == nil && t.Err == nil {
			return t.Kind.String()
		}
		return inner(t.Ok, t.Err)
	case abi.KindRecord, abi.KindTuple:
		types := make([]*abi.Type, len(t.Fields))
		for i, f := range t.Fields {
			types[i] = f.Type
		}
		return inner(types...)
	default:
		return t.Kind.String()
	}
}

// usesOfWorld are the operations of bindings that WASI uses.
var usesOfWorld = map[string][]string{
	consoleInterface:  {"get", "[method]console.log"},
	clockInterface:    {"get", "[method]clock.now", "[method]clock.monotonic", "[method]clock.subscribe"},
	randomInterface:   {"get", "[method]random.bytes", "[method]random.u64"},
	abi.PollInterface: {"[method]pollable.ready"},
	workspaceInterface: {
		"get", "[method]directory.read-bytes", "[method]directory.read-blob", "[method]directory.write-bytes", "[method]directory.write-blob", "[method]directory.replace",
		"[method]directory.append-bytes", "[method]directory.list", "[method]directory.stat", "[method]directory.make-link", "[method]directory.read-link",
		"[method]directory.make-directory", "[method]directory.move", "[method]directory.remove", "[method]directory.subdirectory",
	},
	httpInterface: {"get", "[method]client.start", "[method]exchange.subscribe", "[method]exchange.head", "[method]exchange.blob"},
	blobInterface: {"[method]blob.bytes"},
}

// worldOperations makes the gate's entries for them.
func (h *Host) worldOperations() (map[string]*operation, error) {
	all := map[string]*operation{}
	for iface, names := range usesOfWorld {
		for _, name := range names {
			op, err := h.operation(funcNamed(h.known.Interface(iface), name))
			if err != nil {
				return nil, fmt.Errorf("%s#%s: %w", iface, name, err)
			}
			all[iface+"#"+name] = op
		}
	}
	return all, nil
}

func (c *call) wasi() *world {
	if c.world == nil {
		c.world = &world{held: map[string]abi.Rep{}}
		for i := range c.world.seeded {
			c.world.seeded[i] = rand.NewChaCha8([32]byte{0: 's', 1: 't', 2: 'i', 3: 'l', 4: 'e', 31: byte(i)})
		}
	}
	return c.world
}

// bindingOf is the name of the call's binding of an interface for WASI: the one that is named as the interface, or else the first by
// name. What the guest puts into an env does not count.
func (c *call) bindingOf(iface string) (name string, ok bool) {
	consider := func(binding, of string) {
		if of == iface && (!ok || binding == kindOf(iface) || binding < name && name != kindOf(iface)) {
			name, ok = binding, true
		}
	}
	if c.replay != nil {
		for binding, of := range c.replay.recording.Bindings {
			consider(binding, of)
		}
		return name, ok
	}
	for binding, given := range c.request.Env {
		if inside, _, err := unwrap(given); err == nil {
			consider(binding, inside.Interface())
		}
	}
	return name, ok
}

// kindOf is the name of an interface in the package of capabilities.
func kindOf(iface string) string {
	return strings.TrimSuffix(strings.TrimPrefix(iface, abi.CapabilityPackage), abi.ContractVersion)
}

// holds returns a handle of the call's binding of an interface. It is 0 if the call has none.
func (c *call) holds(iface string) (abi.Rep, error) {
	w := c.wasi()
	if rep, known := w.held[iface]; known {
		return rep, nil
	}
	name, ok := c.bindingOf(iface)
	if !ok {
		w.held[iface] = 0
		return 0, nil
	}
	if err := c.openEnv(); err != nil {
		return 0, err
	}
	op := c.host.wasi[iface+"#get"]
	v, err := c.gate(op, []abi.Value{ownEnv, name})
	if err != nil {
		return 0, err
	}
	outcome := v.(abi.Variant)
	if outcome.Case != 0 {
		return 0, failedUse(op.fn, outcome.Value)
	}
	rep := outcome.Value.(abi.Rep)
	w.held[iface] = rep
	return rep, nil
}

// openEnv gives WASI a handle of the call's env.
func (c *call) openEnv() error {
	if c.handles.open[ownEnv] != nil {
		return nil
	}
	env, err := c.given()
	if err != nil {
		return err
	}
	h := &handle{resource: c.host.env, value: env}
	if c.replay != nil {
		h.value = replayed(ownEnv)
	}
	c.handles.open[ownEnv] = h
	return nil
}

// use calls a method of the call's binding of an interface, which it has.
func (c *call) use(iface, method string, args ...abi.Value) (abi.Value, error) {
	rep, err := c.holds(iface)
	if err != nil {
		return nil, err
	}
	op := c.host.wasi[iface+"#[method]"+kindOf(iface)+"."+method]
	v, err := c.gate(op, append([]abi.Value{rep}, args...))
	if err != nil || op.fn.Result == nil || op.fn.Result.Kind != abi.KindResult {
		return v, err
	}
	outcome := v.(abi.Variant)
	if outcome.Case != 0 {
		return nil, failedUse(op.fn, outcome.Value)
	}
	return outcome.Value, nil
}

// failedUse ends a call with the error of a binding, where WASI's function has none.
func failedUse(f *abi.Func, v abi.Value) error {
	var e *abi.Error
	if err := abi.Decode(f.Result.Err, v, &e, nil); err != nil {
		return fmt.Errorf("decode the error of %s: %w", f.Name, err)
	}
	if e.Denial != nil {
		return &DeniedError{*e.Denial}
	}
	return &TrapError{Reason: "WASI: " + printable.Short(e.Error(), 4*kib)}
}

// given is the env of the call.
func (c *call) given() (_ environment, err error) {
	if c.env == nil {
		c.env, err = newEnvironment(c.request.Env)
	}
	return c.env, err
}

// textStream is stdout or stderr of a call.
type textStream struct {
	level uint32 // of console
	line  []byte // that has not ended
}

// textOf returns the stream behind a handle. It is nil for those that are closed.
func (c *call) textOf(f *abi.Func, rep abi.Value) (*textStream, error) {
	h, err := c.handles.find(rep.(abi.Rep), f.Params[0].Type.Resource)
	if err != nil {
		return nil, err
	}
	s, _ := h.value.(*textStream)
	return s, nil
}

func textHandle(n int) func(c *call, f *abi.Func, _ []abi.Value) (abi.Value, error) {
	return func(c *call, f *abi.Func, _ []abi.Value) (abi.Value, error) {
		const levelInfo, levelWarn = 2, 3
		s := &c.wasi().streams[n]
		s.level = [...]uint32{levelInfo, levelWarn}[n]
		return c.handles.addForeign(&handle{resource: f.Result.Resource, value: s})
	}
}

// ofText is do for stdout and stderr. Other streams are closed.
func ofText(do func(w *world, s *textStream, args []abi.Value) abi.Value) func(c *call, f *abi.Func, args []abi.Value) (abi.Value, error) {
	return func(c *call, f *abi.Func, args []abi.Value) (abi.Value, error) {
		s, err := c.textOf(f, args[0])
		if err != nil {
			return nil, err
		}
		if s == nil {
			if v, ok := refuse(f.Result); ok {
				return v, nil
			}
			return nil, &TrapError{Reason: f.Name + " of a closed stream"}
		}
		return okResult(do(c.wasi(), s, args)), nil
	}
}

func checkWrite(*world, *textStream, []abi.Value) abi.Value { return uint64(worldPermit) }

func flushText(*world, *textStream, []abi.Value) abi.Value { return nil }

func writeText(w *world, _ *textStream, args []abi.Value) abi.Value {
	w.keep(args[1].([]byte))
	return nil
}

// noteDenial keeps a denial with the text of the guest, because WASI's errors have none: a program only learns that it may not.
func (w *world) noteDenial(d abi.Denial) {
	text := d.Text()
	if d.Remedy != "" {
		text += "; in the manifest: " + d.Remedy
	}
	w.note(text)
}

// note keeps what a binding said.
func (w *world) note(text string) {
	w.denied = text
	w.keep([]byte(text + "\n"))
}

// explained adds a denial to the text of a failure, which may come of it.
func explained(message, denied string) string {
	if denied == "" || strings.Contains(message, denied) {
		return message
	}
	return message + "; " + printable.Short(denied, 4*kib)
}

// keep adds to the text that is kept for a failure.
func (w *world) keep(text []byte) {
	w.tail = append(w.tail, text[max(0, len(text)-maxOutput):]...)
	if len(w.tail) > 2*maxOutput {
		w.tail = append(w.tail[:0], w.tail[len(w.tail)-maxOutput:]...)
	}
}

// thenTell is a write, after which the console gets the lines that have ended.
func thenTell(c *call, gated answer, f *abi.Func, args []abi.Value) (abi.Value, error) {
	v, err := gated(c, args)
	if err != nil {
		return nil, err
	}
	if s, _ := c.textOf(f, args[0]); s != nil {
		err = c.tell(s, args[1].([]byte))
	}
	return v, err
}

// tell logs the lines of a stream that have ended, many at once. A long line is logged in parts.
func (c *call) tell(s *textStream, text []byte) error {
	has, err := c.holds(consoleInterface)
	if errkind.Is[*DeniedError](err) || errkind.Is[*TrapError](err) { // its grant does not allow it, or has ended
		c.world.held[consoleInterface], has, err = 0, 0, nil // text is not worth ending a call
	}
	if err != nil || has == 0 {
		return err
	}
	for len(text) > 0 {
		n := min(len(text), maxWorldLine-len(s.line))
		s.line, text = append(s.line, text[:n]...), text[n:]
		end, next := bytes.LastIndexByte(s.line, '\n'), 0
		if next = end + 1; end < 0 {
			if len(s.line) < maxWorldLine {
				break
			}
			end = wholeCharacters(s.line)
			next = end
		}
		if err := c.log(s, s.line[:end]); err != nil {
			return err
		}
		s.line = append(s.line[:0], s.line[next:]...)
	}
	return nil
}

// log hands text to the binding of console, without the end of its last line.
func (c *call) log(s *textStream, text []byte) error {
	_, err := c.use(consoleInterface, "log", abi.Variant{Case: s.level}, strings.ToValidUTF8(string(bytes.TrimSuffix(text, []byte("\r"))), "\uFFFD"))
	return err
}

// wholeCharacters is how many bytes of b do not end inside a character.
func wholeCharacters(b []byte) int {
	for back := 1; back < utf8.UTFMax; back++ {
		if utf8.RuneStart(b[len(b)-back]) {
			if utf8.FullRune(b[len(b)-back:]) {
				break
			}
			return len(b) - back
		}
	}
	return len(b)
}

// finishText logs what the guest wrote without ending the line, when its call has returned or trapped.
func (c *call) finishText(returned error) error {
	_, trapped := errors.AsType[*wasmtime.TrapError](returned)
	if c.world == nil || returned != nil && !trapped || c.ctx.Err() != nil {
		return nil
	}
	for i := range c.world.streams {
		s := &c.world.streams[i]
		if len(s.line) == 0 {
			continue
		}
		line := s.line
		s.line = nil
		if err := c.log(s, line); err != nil {
			return err
		}
	}
	return nil
}

// output is what the guest wrote at last, safe to show. It is empty if it wrote nothing.
func (c *call) output() string {
	if c.world == nil {
		return ""
	}
	tail := bytes.TrimRight(c.world.tail, "\r\n")
	text := printable.Text(string(tail[max(0, len(tail)-maxOutput):]))
	if len(tail) <= maxOutput && len(text) <= maxOutput {
		return text
	}
	text = text[max(0, len(text)-maxOutput):]
	for len(text) > 0 && !utf8.RuneStart(text[0]) {
		text = text[1:]
	}
	return "..." + text
}

// wrote adds what the guest wrote to the text of a failure.
func wrote(reason, output string) string {
	switch {
	case output == "":
		return reason
	case strings.Contains(output, "\n"):
		return reason + "; it wrote:\n" + output
	}
	return reason + "; it wrote: " + output
}

// explainOutput adds what the guest wrote to a trap, also to one that a replay repeats.
func (c *call) explainOutput(err error) error {
	if trap, ok := errors.AsType[*TrapError](err); ok {
		told := *trap
		told.Output = c.output()
		return &told
	}
	if again, ok := errors.AsType[*recordedError](err); ok && again.Kind == kindTrap {
		told := *again
		told.Message = wrote(again.Message, c.output())
		return &told
	}
	return err
}

func exitGuest(c *call, _ *abi.Func, args []abi.Value) (abi.Value, error) {
	status := "status 0"
	switch v := args[0].(type) {
	case abi.Variant:
		if v.Case != 0 {
			status = "an error"
		}
	case uint8:
		status = fmt.Sprintf("status %d", v)
	}
	return nil, &GuestError{abi.Failure{Name: "Exit", Message: wrote("the guest called wasi:cli/exit with "+status, c.output())}}
}

// insecure answers the functions of wasi:random/insecure and insecure-seed.
func insecure(c *call, f *abi.Func, args []abi.Value) (abi.Value, error) {
	return fromSeed(c.wasi().seeded[0], f, args)
}

func fromSeed(r *rand.ChaCha8, f *abi.Func, args []abi.Value) (abi.Value, error) {
	switch f.Result.Kind {
	case abi.KindU64:
		return r.Uint64(), nil
	case abi.KindTuple:
		return []abi.Value{r.Uint64(), r.Uint64()}, nil
	default:
		n, err := randomLength(args)
		if err != nil {
			return nil, err
		}
		b := make([]byte, n)
		_, _ = r.Read(b) // it never fails
		return b, nil
	}
}

func randomLength(args []abi.Value) (int, error) {
	n := args[0].(uint64)
	if n > maxWorldRandom {
		return 0, &LimitError{Limit: "bytes", Value: printable.Size(maxWorldRandom), Detail: fmt.Sprintf("%d random bytes at once", n)}
	}
	return int(n), nil
}

// secureWithout answers wasi:random/random in a call without a binding of random: while the guest starts, before the env has arrived,
// from a seed that everybody knows. Later it ends the call, because a guest that asks then may make secrets of it.
func secureWithout(c *call, f *abi.Func, args []abi.Value) (abi.Value, error) {
	if !c.arrived {
		return fromSeed(c.wasi().seeded[1], f, args)
	}
	name := kindOf(randomInterface)
	d := c.host.unbound(randomInterface)
	d.Operation = f.Interface.Name + "#" + f.Name
	d.Reason = "WASI gets it from a binding of " + name + ", and the call has none"
	denied, _ := errors.AsType[*abi.Error](c.denied(name, abi.Deny(d)))
	return nil, &DeniedError{*denied.Denial}
}

func throughRandom(c *call, gated answer, f *abi.Func, args []abi.Value) (abi.Value, error) {
	has, err := c.holds(randomInterface)
	if err != nil {
		return nil, err
	}
	if has == 0 {
		return gated(c, args)
	}
	if f.Result.Kind == abi.KindU64 {
		return c.use(randomInterface, "u64")
	}
	n, err := randomLength(args)
	if err != nil {
		return nil, err
	}
	const atOnce = 64 * kib // of the binding
	all := make([]byte, 0, n)
	for len(all) < n {
		v, err := c.use(randomInterface, "bytes", uint32(min(n-len(all), atOnce)))
		if err != nil {
			return nil, err
		}
		some := v.([]byte)
		if len(some) == 0 {
			return nil, &TrapError{Reason: "WASI: the binding of random gives no bytes"}
		}
		all = append(all, some...)
	}
	return all[:n], nil
}

// throughClock is do without the gate if the call has a binding of clock, or one that serves http, whose operations pass the gate themselves.
func throughClock(do func(c *call, f *abi.Func, args []abi.Value) (abi.Value, error)) func(c *call, gated answer, f *abi.Func, args []abi.Value) (abi.Value, error) {
	return func(c *call, gated answer, f *abi.Func, args []abi.Value) (abi.Value, error) {
		has, err := c.holds(clockInterface)
		if err != nil {
			return nil, err
		}
		if has == 0 && c.served().HTTP == "" {
			return gated(c, args)
		}
		return do(c, f, args)
	}
}

// hasClock reports whether the call has a binding of clock. Its handle is known by then.
func (c *call) hasClock() bool { return c.wasi().held[clockInterface] != 0 }

// now reads the monotonic clock. It never stands: a guest that waits for it to move does not wait for ever.
func (c *call) now() (uint64, error) {
	w, at := c.wasi(), uint64(worldStart)
	if c.hasClock() {
		v, err := c.use(clockInterface, "monotonic")
		if err != nil {
			return 0, err
		}
		at += v.(uint64)
	}
	if at > w.time {
		w.time = at
	} else {
		w.time += worldTick
	}
	return w.time, nil
}

func monotonicNow(c *call, _ *abi.Func, _ []abi.Value) (abi.Value, error) { return c.now() }

func monotonicResolution(*call, *abi.Func, []abi.Value) (abi.Value, error) {
	return uint64(worldTick), nil
}

func wallNow(c *call, _ *abi.Func, _ []abi.Value) (abi.Value, error) {
	const inSecond, inMillisecond = 1_000_000_000, 1_000_000
	if c.hasClock() {
		v, err := c.use(clockInterface, "now")
		if err != nil {
			return nil, err
		}
		ms := v.(uint64)
		return []abi.Value{ms / 1000, uint32(ms%1000) * inMillisecond}, nil
	}
	at, err := c.now()
	return []abi.Value{at / inSecond, uint32(at % inSecond)}, err
}

func wallResolution(*call, *abi.Func, []abi.Value) (abi.Value, error) {
	return []abi.Value{uint64(0), uint32(1_000_000)}, nil
}

// worldPollable is ready at a time of the monotonic clock. A zero one always is.
type worldPollable struct {
	call *call
	at   uint64
	rep  abi.Rep // the handle of the binding's pollable; 0 if there is none
	of   awaited // what it waits for, if that is not a time
}

// Close drops the binding's pollable.
func (p *worldPollable) Close() error {
	if p.rep == 0 || p.call.handles.open[p.rep] == nil {
		return nil
	}
	return p.call.handles.remove(p.rep).close()
}

func readyHandle(c *call, f *abi.Func, _ []abi.Value) (abi.Value, error) {
	return c.handles.addForeign(&handle{resource: f.Result.Resource, value: &worldPollable{}})
}

func subscribeDuration(c *call, f *abi.Func, args []abi.Value) (abi.Value, error) {
	at, err := c.now()
	if err != nil {
		return nil, err
	}
	return c.subscribe(f, at, args[0].(uint64))
}

func subscribeInstant(c *call, f *abi.Func, args []abi.Value) (abi.Value, error) {
	at, err := c.now()
	if err != nil {
		return nil, err
	}
	until := args[0].(uint64)
	return c.subscribe(f, at, max(until, at)-at)
}

// subscribe makes a pollable that is ready some nanoseconds after a time.
func (c *call) subscribe(f *abi.Func, at, nanoseconds uint64) (abi.Value, error) {
	p := &worldPollable{call: c, at: at + nanoseconds}
	if p.at < at {
		p.at = never
	}
	if c.hasClock() {
		v, err := c.use(clockInterface, "subscribe", nanoseconds)
		if err != nil {
			return nil, err
		}
		p.rep = v.(abi.Rep)
	}
	rep, err := c.handles.addForeign(&handle{resource: f.Result.Resource, value: p})
	if err != nil {
		_ = p.Close() // of a pollable, which does not fail
	}
	return rep, err
}

// waitsFor returns the pollable behind a handle. It is nil for one that is ready.
func (c *call) waitsFor(t *abi.Type, rep abi.Value) (*worldPollable, error) {
	h, err := c.handles.find(rep.(abi.Rep), t.Resource)
	if err != nil {
		return nil, err
	}
	p, _ := h.value.(*worldPollable)
	if p == nil || p.at == 0 {
		return nil, nil
	}
	if p.of != nil && p.rep == 0 {
		var ready bool
		if p.rep, ready, err = p.of.waits(c); err != nil {
			return nil, err
		}
		if ready {
			p.at, p.of = 0, nil
			return nil, nil
		}
	}
	return p, nil
}

// never is a time that does not come.
const never = math.MaxUint64

// passed notes that it is at least this time.
func (w *world) passed(at uint64) {
	if at != never {
		w.time = max(w.time, at)
	}
}

// isReady asks whether a pollable is ready.
func (c *call) isReady(p *worldPollable) (bool, error) {
	switch {
	case p == nil:
		return true, nil
	case p.rep == 0 && p.at == never:
		return false, nil
	case p.rep == 0:
		at, err := c.now()
		return at >= p.at, err
	}
	v, err := c.gate(c.host.wasi[abi.PollInterface+"#[method]pollable.ready"], []abi.Value{p.rep})
	if err != nil {
		return false, err
	}
	if v.(bool) {
		c.wasi().passed(p.at)
	}
	return v.(bool), nil
}

// awaitWorld waits until one of several pollables is ready. Without a binding of clock, nothing else can happen meanwhile, so that it
// is the time of the first at once.
func (c *call) awaitWorld(pollables []*worldPollable) ([]abi.Value, error) {
	w, ready := c.wasi(), []abi.Value{}
	if slices.Contains(pollables, nil) {
		for i, p := range pollables {
			if is, err := c.isReady(p); err != nil {
				return nil, err
			} else if is {
				ready = append(ready, uint32(i))
			}
		}
		return ready, nil
	}
	var list []abi.Value
	var places []int
	for i, p := range pollables {
		if p.rep != 0 {
			list, places = append(list, p.rep), append(places, i)
		}
	}
	if list != nil { // times without a clock do not pass while something can really happen
		v, err := c.gate(c.host.poll, []abi.Value{list})
		if err != nil {
			return nil, err
		}
		for _, i := range v.([]abi.Value) {
			at := places[i.(uint32)]
			w.passed(pollables[at].at)
			ready = append(ready, uint32(at))
		}
		return ready, nil
	}
	first := slices.MinFunc(pollables, func(a, b *worldPollable) int { return cmp.Compare(a.at, b.at) })
	if first.at == never {
		return nil, &TrapError{Reason: "the guest waits for a time that never comes, or for the answer to a request whose body has not ended"}
	}
	w.passed(first.at)
	for i, p := range pollables {
		if p.at <= w.time {
			ready = append(ready, uint32(i))
		}
	}
	return ready, nil
}

func pollableReady(c *call, f *abi.Func, args []abi.Value) (abi.Value, error) {
	p, err := c.waitsFor(f.Params[0].Type, args[0])
	if err != nil {
		return nil, err
	}
	return c.isReady(p)
}

func pollableBlock(c *call, f *abi.Func, args []abi.Value) (abi.Value, error) {
	p, err := c.waitsFor(f.Params[0].Type, args[0])
	if err == nil {
		_, err = c.awaitWorld([]*worldPollable{p})
	}
	return nil, err
}

func pollList(c *call, f *abi.Func, args []abi.Value) (abi.Value, error) {
	list := args[0].([]abi.Value)
	if len(list) == 0 {
		return nil, &TrapError{Reason: "poll of an empty list"}
	}
	if len(list) > c.limits.Handles {
		return nil, c.crowded()
	}
	pollables := make([]*worldPollable, len(list))
	for i, rep := range list {
		var err error
		if pollables[i], err = c.waitsFor(f.Params[0].Type.Elem, rep); err != nil {
			return nil, err
		}
	}
	return c.awaitWorld(pollables)
}
