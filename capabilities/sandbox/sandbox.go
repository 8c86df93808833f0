// Package sandbox runs real programs, such as git, compilers and package managers, in a container: it implements the interface
// stile:capability/sandbox in Go. The boundary is the operating system's kernel, and not WebAssembly. A [Sandbox] is a container of one
// call, with a working tree that is copied from and to directories.
package sandbox

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/capabilities/blob"
	"github.com/stilehost/stile/capabilities/sandbox/internal/box"
	"github.com/stilehost/stile/internal/turns"
)

// Interface is the WIT interface that this package implements, in wit/deps/capability/sandbox.wit.
const Interface = "stile:capability/sandbox@0.1.0"

// Limits bound one sandbox. The zero value of a field means its default.
type Limits struct {
	// Memory is for all processes together, in bytes. Default 1 GiB.
	Memory int64
	// Disk is for all files together: the working tree, HOME, and temporary ones. Bytes, default 2 GiB.
	Disk int64
	// CPU is how many processors it may keep busy. Default 1.
	CPU float64
	// Processes is how many there may be at once. Default 256.
	Processes int64
	// Time is how long one command may take. Default 10 minutes.
	Time time.Duration
	// Traffic is how many bytes the commands of one call may send to and get from servers. Default 1 GiB.
	Traffic int64
}

// Defaults and the most that a grant can ask for.
var (
	defaults = Limits{1 << 30, 2 << 30, 1, 256, 10 * time.Minute, 1 << 30}
	most     = Limits{64 << 30, 256 << 30, 64, 8192, 24 * time.Hour, 1 << 40}
)

func (l Limits) withDefaults() Limits {
	return Limits{
		cmp.Or(l.Memory, defaults.Memory), cmp.Or(l.Disk, defaults.Disk), cmp.Or(l.CPU, defaults.CPU),
		cmp.Or(l.Processes, defaults.Processes), cmp.Or(l.Time, defaults.Time),
		cmp.Or(l.Traffic, defaults.Traffic),
	}
}

const (
	// maxSandboxes is how many sandboxes a site runs at once unless Options say otherwise, and maxProcesses how many commands one runs.
	maxSandboxes = 8
	maxProcesses = 16
	// bytesPerFile is how large files are on average where a disk has no room for more names.
	bytesPerFile = 8 << 10

	maxArgv, maxArgvBytes = 1000, 128 << 10
	maxEnv                = 100
	maxInput              = 16 << 20
)

// machine is where a sandbox's commands run: a container, or the answers of a test.
type machine interface {
	// run runs a process until it ends, or until ctx ends and the process was killed.
	run(ctx context.Context, p box.Process) (box.Exit, error)
	tree() tree
	// still runs f while no process runs.
	still(f func() error) error
	verified() []box.Check
	// network names its network namespace.
	network() (string, error)
	// name says what it is.
	name() string
	close() error
}

// Grant is the right to run sandboxes. It is an [abi.Opener]: each call has a sandbox of its own. It is immutable and safe for
// concurrent use.
type Grant struct {
	limits  Limits
	allowed []string                                                // paths that may be copied to directories on disk although programs act on them
	make    func(ctx context.Context) (machine, *turns.Seat, error) // with its place among the sandboxes of the site
	log     *slog.Logger
	// lasting is the container of all calls, if it lasts.
	lasting *held
}

// held is a container with what is known of its tree: that of one call, or the one that lasts.
type held struct {
	starting sync.Mutex // held while the container starts
	machine  machine
	failed   error
	ended    bool // no container starts any more
	// gone says why the container ended while nobody used it, until an operation was told.
	gone string

	copying sync.Mutex // held while a copy is made
	synced  map[place]*history

	mu       sync.Mutex
	users    int         // calls that have it
	idle     *time.Timer // runs while there are none
	seat     *turns.Seat // of the container
	commands int         // that run
	unsaved  bool        // a command has run since the last pull
}

func newHeld() *held { return &held{synced: map[place]*history{}} }

// close ends the container, if it has started. none starts later.
func (h *held) close() error {
	h.starting.Lock()
	defer h.starting.Unlock()
	h.ended = true
	return h.drop()
}

// closeIdle ends the container unless a call uses it, and reports whether it did. The next operation is told why.
func (h *held) closeIdle(why string) (bool, error) {
	h.starting.Lock() // a call that begins now waits for this, and gets another container
	defer h.starting.Unlock()
	h.mu.Lock()
	used := h.users > 0
	h.mu.Unlock()
	if used || h.machine == nil {
		return false, nil
	}
	h.gone = why
	return true, h.drop()
}

// drop ends the container. The caller holds starting.
func (h *held) drop() error {
	h.failed = nil
	m := h.machine
	if m == nil {
		return nil
	}
	h.machine = nil
	h.copying.Lock() // nothing of the tree is left
	clear(h.synced)
	h.copying.Unlock()
	h.mu.Lock()
	h.seat = nil
	h.mu.Unlock()
	return m.close()
}

// told returns the error of the first operation after the container has ended while nobody used it. A push needs none of what was there,
// so it is told only if something was lost. The caller holds starting.
func (h *held) told(push bool) error {
	why := h.gone
	h.gone = ""
	h.mu.Lock()
	lost := h.unsaved
	h.unsaved = false
	h.mu.Unlock()
	switch {
	case why == "" || push && !lost:
		return nil
	case lost:
		return abi.Errorf(abi.CodeUnavailable, "the sandbox has ended, because %s; what its commands changed after the last pull is lost: push again, and run them again", why)
	default:
		return abi.Errorf(abi.CodeUnavailable, "the sandbox has ended, because %s; its files are gone: push again", why)
	}
}

// run counts a command, or with -1 its end.
func (h *held) run(commands int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.commands += commands
	h.unsaved = true
}

// saved says that changes below a folder were pulled. A command that runs may make others, and earlier ones may have made some elsewhere.
func (h *held) saved(folder string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if folder == "" {
		h.unsaved = h.commands > 0
	}
}

// idleTime is how long a container lasts that nobody uses, because it takes memory.
const idleTime = 10 * time.Minute

// Why a container has ended.
const (
	wasIdle     = "nobody used it for ten minutes"
	wasInTheWay = "nobody used it while others waited for a place"
)

// use counts a call of a container that lasts.
func (h *held) use(log *slog.Logger, users int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.users += users
	if h.idle != nil {
		h.idle.Stop()
	}
	if h.users > 0 {
		h.seat.Busy() // if it is ending, closeIdle sees whether it is used, or the call gets another container
		return
	}
	end := func(why string) bool {
		ended, err := h.closeIdle(why)
		if err != nil {
			log.Warn("end an idle sandbox", "error", err)
		}
		return ended
	}
	h.seat.Idle(func() bool { return end(wasInTheWay) })
	h.idle = time.AfterFunc(idleTime, func() { end(wasIdle) })
}

// Lasting returns a grant whose calls share one container, which goes on between them, for at most ten minutes without a call, and less if
// others wait for a place. Its working tree stays, so that only what has changed is copied. After a container has ended so, the next operation
// fails and says so, unless it is a push and nothing was lost. The caller closes the grant.
func (g *Grant) Lasting() *Grant {
	same := *g
	same.lasting = newHeld()
	return &same
}

// Close ends the container of a lasting grant. It is idempotent, and does nothing for another grant. Calls must have ended.
func (g *Grant) Close() error {
	if g.lasting == nil {
		return nil
	}
	g.lasting.mu.Lock()
	if g.lasting.idle != nil {
		g.lasting.idle.Stop()
	}
	g.lasting.mu.Unlock()
	return g.lasting.close()
}

// Interface implements [abi.Capability].
func (*Grant) Interface() string { return Interface }

// Quick implements [abi.Quick].
func (*Grant) Quick() []string { return []string{"get"} }

// Open implements [abi.Opener]. The container starts when it is first used.
func (g *Grant) Open(ctx context.Context) (any, error) {
	ctx, cancel := context.WithCancel(ctx)
	s := &Sandbox{grant: g, ctx: ctx, cancel: cancel, held: g.lasting, output: outputOf(ctx), traffic: trafficOf(ctx, g.limits.Traffic)}
	if s.held == nil {
		s.held = newHeld()
	} else {
		s.held.use(g.log, 1)
	}
	return s, nil
}

// Save implements [abi.Lasting]: it returns how many bytes the programs of the call have sent and received. A call that has used its container stays awake, because the container ends with
// its process.
func (s *Sandbox) Save() (state []byte, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strconv.AppendInt(nil, s.traffic.bytes.Load(), 10), !s.used
}

// Reopen implements [abi.Reopener]: the limit of the call's traffic goes on as it was.
func (g *Grant) Reopen(ctx context.Context, state []byte) (any, error) {
	bytes, err := strconv.ParseInt(string(state), 10, 64)
	if err != nil {
		return nil, fmt.Errorf("read what a call has sent from its sandbox: %w", err)
	}
	opened, err := g.Open(ctx)
	if err != nil {
		return nil, err
	}
	t := opened.(*Sandbox).traffic // shared by bindings, each of which comes here
	for n := t.bytes.Load(); n < bytes && !t.bytes.CompareAndSwap(n, bytes); n = t.bytes.Load() {
	}
	return opened, nil
}

// Sandbox is the container of a call: the resource `container`. It is safe for concurrent use.
type Sandbox struct {
	grant  *Grant
	ctx    context.Context //nolint:containedctx // ends when the sandbox is closed; what was started outlives the operation that started it
	cancel context.CancelFunc

	held    *held
	output  *blob.Quota
	traffic *traffic

	mu      sync.Mutex
	used    bool
	running int
	closed  bool
	work    sync.WaitGroup
}

// Quick implements [abi.Quick].
func (*Sandbox) Quick() []string {
	return []string{"container.start", "container.push", "container.pull"}
}

// Lists implements [abi.Bounded].
func (*Sandbox) Lists() map[string]int {
	return map[string]int{
		"container.start.command.argv": maxArgv,
		"container.start.command.env":  maxEnv,
		"container.limits.result":      32,
	}
}

// open returns the machine, which it starts if necessary. push is set for an operation that needs none of what was there. Its error is for the
// guest.
func (s *Sandbox) open(ctx context.Context, push bool) (machine, error) {
	s.mu.Lock()
	s.used = true
	s.mu.Unlock()
	h := s.held
	h.starting.Lock()
	defer h.starting.Unlock()
	if h.ended {
		return nil, abi.Errorf(abi.CodeUnavailable, "the sandbox is closed")
	}
	if h.machine != nil || h.failed != nil {
		return h.machine, h.failed
	}
	if err := h.told(push); err != nil {
		return nil, err
	}
	m, seat, err := s.grant.make(ctx)
	if err != nil {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if known, ok := errors.AsType[*abi.Error](err); ok {
			return nil, known
		}
		s.grant.log.Error("a sandbox does not start", "error", err)
		h.failed = abi.Errorf(abi.CodeUnavailable, "the sandbox does not start on this machine; stile doctor says what it lacks")
		return nil, h.failed
	}
	h.machine = m
	h.mu.Lock()
	h.seat = seat
	h.mu.Unlock()
	return m, nil
}

// begin counts something that runs in the background, so that Close waits for it. processes is 1 for a command.
func (s *Sandbox) begin(processes int) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closed:
		return abi.Errorf(abi.CodeInvalid, "the sandbox is closed")
	case s.running+processes > maxProcesses:
		return abi.Errorf(abi.CodeExhausted, "commands of one sandbox: limit %d at once", maxProcesses)
	}
	s.running += processes
	s.work.Add(1)
	return nil
}

func (s *Sandbox) end(processes int) {
	s.mu.Lock()
	s.running -= processes
	s.mu.Unlock()
	s.work.Done()
}

// Note is the record `note`.
type Note struct{ Path, Reason string }

// Limits implements the method `limits`: it starts the container if necessary.
func (s *Sandbox) Limits(ctx context.Context) ([]Note, error) {
	m, err := s.open(ctx, false)
	if err != nil {
		return nil, err
	}
	var notes []Note
	for _, c := range m.verified() {
		state := "holds: "
		if !c.OK {
			state = "could not be verified: "
		}
		notes = append(notes, Note{c.Name, state + c.Detail})
	}
	return notes, nil
}

// Close ends all processes and removes the container with its files. It returns when nothing is left. Closing again does nothing.
func (s *Sandbox) Close() error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil
	}
	s.closed = true
	s.mu.Unlock()
	s.cancel()
	s.work.Wait()
	if s.grant.lasting != nil {
		s.held.use(s.grant.log, -1)
		return nil
	}
	return s.held.close()
}

// Stream is the enum `stream`.
type Stream uint8

// Command is the record `command`.
type Command struct {
	Argv    []string
	Folder  string
	Env     []Variable
	Stdin   Input
	Timeout *uint32
}

// Variable is the record `variable`.
type Variable struct{ Name, Value string }

// InputCase is a case of [Input].
type InputCase uint8

// The cases of the variant `input`.
const (
	InputNone InputCase = iota
	InputText
	InputBlob
)

// Input is the variant `input`. Start owns the blob.
type Input struct {
	Case InputCase
	Text *string
	Blob *blob.Blob
}

// close closes the blob.
func (i Input) close() {
	if i.Blob != nil {
		_ = i.Blob.Close() // it was only read
	}
}

func (c Command) size() (n int) {
	for _, a := range c.Argv {
		n += len(a) + 1
	}
	for _, v := range c.Env {
		n += len(v.Name) + len(v.Value) + 2
	}
	return n
}

func (c Command) check() error {
	if len(c.Argv) == 0 || c.Argv[0] == "" {
		return abi.Errorf(abi.CodeInvalid, "the command names no program")
	}
	if n := c.size(); n > maxArgvBytes {
		return abi.Errorf(abi.CodeInvalid, "arguments and variables of %d bytes; at most %d", n, maxArgvBytes)
	}
	if slices.ContainsFunc(c.Argv, hasNUL) || hasNUL(c.Folder) {
		return abi.Errorf(abi.CodeInvalid, "the command has a zero byte")
	}
	for _, v := range c.Env {
		if !variableName.MatchString(v.Name) || hasNUL(v.Value) {
			return abi.Errorf(abi.CodeInvalid, "the variable %.100q cannot be set", v.Name)
		}
	}
	return nil
}

// duration is how long a command may take.
func (c Command) duration(most time.Duration) time.Duration {
	if c.Timeout == nil {
		return most
	}
	return min(most, time.Duration(*c.Timeout)*time.Millisecond)
}

// startError makes errors of a machine understandable for a guest.
func startError(err error) error {
	if failed, ok := errors.AsType[*box.StartError](err); ok {
		return abi.Errorf(abi.CodeInvalid, "%.200q cannot be started: %s", failed.Program, failed.Problem)
	}
	return err
}

// String is the name of the stream.
func (s Stream) String() string { return [...]string{"stdout", "stderr"}[s] }
