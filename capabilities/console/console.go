// Package console lets a guest write log lines: the capability stile:capability/console. It makes a guest's lines safe for a
// terminal with [printable.Text], and bounds them for each call.
package console

import (
	"context"
	"fmt"
	"math"
	"strconv"
	"sync"
	"time"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/capability"
	"github.com/stilehost/stile/internal/printable"
)

// Interface is the WIT interface that this package implements, in wit/deps/capability/console.wit.
const Interface = "stile:capability/console@0.1.0"

// DefaultLimit is how many bytes one call may log, together with the calls that it starts.
const DefaultLimit = 64 << 10

// Level is the severity of a message: the enum `level` of stile:capability/console.
type Level = capability.Level

// The levels, least important first.
const (
	Trace = capability.Trace
	Debug = capability.Debug
	Info  = capability.Info
	Warn  = capability.Warn
	Error = capability.Error
)

// Console is the right to log. It is immutable and safe for concurrent use.
type Console struct {
	log      func(level Level, message string)
	progress func(Progress) // nil if nobody is told
	limit    int
}

// Progress is how far a guest says it is.
type Progress = capability.Progress

// WithProgress returns the same console, which hands what guests say of their progress to tell, unless that is nil: at most ten updates a second
// of each call, with messages of at most 200 bytes. tell must be safe for concurrent use.
func (c *Console) WithProgress(tell func(Progress)) *Console {
	with := *c
	with.progress = tell
	return &with
}

// To returns a console that makes each message printable and hands it to log, without adding a line feed. One call logs at
// most [DefaultLimit] bytes. Several calls may log at once, so log must be safe for concurrent use.
func To(log func(level Level, message string)) *Console {
	return &Console{log: log, limit: DefaultLimit}
}

// WithLimit returns the same console with another limit in bytes per call. 0 or less drops everything.
func (c *Console) WithLimit(limit int) *Console {
	with := *c
	with.limit = limit
	return &with
}

// Interface implements [abi.Capability].
func (c *Console) Interface() string { return Interface }

// Quick implements [abi.Quick].
func (*Console) Quick() []string { return []string{"get"} }

// Open implements [abi.Opener]; the value is a [*Log].
func (c *Console) Open(ctx context.Context) (any, error) {
	l := limit(c.limit)
	return &Log{console: c, left: abi.OfCall(ctx, l, l.left)}, nil
}

// Reopen implements [abi.Reopener]: what the call has used counts toward the limit of today.
func (c *Console) Reopen(ctx context.Context, state []byte) (any, error) {
	used, err := strconv.Atoi(string(state))
	if err != nil {
		return nil, fmt.Errorf("read what a call has used of its console: %w", err)
	}
	opened, err := c.Open(ctx)
	if err != nil {
		return nil, err
	}
	l := opened.(*Log).left
	l.mu.Lock()
	defer l.mu.Unlock()
	l.bytes = min(l.bytes, c.limit-used)
	return opened, nil
}

// Save implements [abi.Lasting]: it returns how many bytes the call has used.
func (l *Log) Save() (state []byte, ok bool) {
	l.left.mu.Lock()
	defer l.left.mu.Unlock()
	return []byte(strconv.Itoa(l.console.limit - l.left.bytes)), true
}

// limit is the limit of a console. Consoles of a call with equal limits share the rest of one.
type limit int

func (l limit) left() *left { return &left{bytes: int(l)} }

// left is the rest of a limit.
type left struct {
	mu    sync.Mutex
	bytes int
	said  bool // some log has reported that text was dropped

	told time.Time // when progress was passed on last
}

// tells reports whether progress is passed on now.
func (l *left) tells() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	if now.Sub(l.told) < progressPause {
		return false
	}
	l.told = now
	return true
}

const (
	progressPause   = 100 * time.Millisecond
	maxProgressText = 200 // bytes
)

// take cuts text to the bytes that are left, and takes these and one more.
func (l *left) take(text string) (kept string, took bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.bytes <= 0 {
		return "", false
	}
	kept = printable.Cut(text, l.bytes)
	l.bytes -= len(kept) + 1
	return kept, true
}

// most returns how many bytes are left at most.
func (l *left) most() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return max(l.bytes, 0)
}

// say reports whether the caller should report that text was dropped. It returns true once.
func (l *left) say() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	said := l.said
	l.said = true
	return !said
}

// Log is the log of one call. It is safe for concurrent use. The caller of Open closes it.
type Log struct {
	console *Console
	left    *left

	mu      sync.Mutex
	dropped uint64 // bytes
	closed  bool
}

// Repeat implements [abi.Repeatable]. A line may be written again where a run goes on.
func (*Log) Repeat(string, []abi.Value) abi.Repeat { return abi.Reads }

// Quick implements [abi.Quick].
func (*Log) Quick() []string { return []string{"console.log", "console.progress"} }

// Log logs message, or the part of it that the limit still allows. Each message also costs one byte, so that empty ones are limited
// too.
func (l *Log) Log(_ context.Context, level Level, message string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return
	}
	head := printable.Cut(message, l.left.most()) // before cleaning, so that the limit bounds the work too
	text := printable.Text(head)
	kept, took := l.left.take(text)
	l.dropped += uint64(len(message) - len(head) + len(text) - len(kept))
	if !took {
		l.dropped++
		return
	}
	l.console.log(level, kept)
}

// Progress passes on how much of the call's work is done, of a total if there is one. It drops updates that come within 100 ms of the one
// before, and those that are no numbers.
func (l *Log) Progress(_ context.Context, done float64, total *float64, message string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	finite := func(n float64) bool { return n >= 0 && !math.IsInf(n, 0) }
	if l.closed || l.console.progress == nil || !finite(done) || !l.left.tells() {
		return
	}
	p := Progress{Done: done, Message: printable.OneLine(printable.Short(message, maxProgressText))}
	if total != nil && finite(*total) {
		p.Total = *total
	}
	l.console.progress(p)
}

// Close ends the log. If text was dropped, it logs one last line that says so,
// unless another log that shares the limit already has. It always returns nil.
func (l *Log) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.dropped > 0 && !l.closed && l.left.say() {
		l.console.log(Warn, fmt.Sprintf("log limit of %d bytes reached: %d bytes were dropped", l.console.limit, l.dropped))
	}
	l.closed = true
	return nil
}
