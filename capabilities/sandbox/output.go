package sandbox

import (
	"context"
	"sync"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/capabilities/blob"
	"github.com/stilehost/stile/capabilities/sandbox/internal/box"
	"github.com/stilehost/stile/internal/turns"
)

// maxOutput is how many bytes of output are kept for each process: the last ones. All processes of a call have a bound too, and those of all
// calls beyond the first freeOutput of each, of which each user has a share. A process that has ended counts until it is closed.
const (
	maxOutput    = 1 << 20
	callOutput   = 16 * maxOutput
	freeOutput   = 16 << 10
	maxAllOutput = 64 << 20
	perPart      = 64 // bytes that a part takes besides its own
)

var allOutput = blob.NewCommon("bytes of output of commands in all calls", maxAllOutput)

// outputOf returns what the commands of the call of ctx may keep.
func outputOf(ctx context.Context) *blob.Quota {
	return abi.OfCall(ctx, outputKey{}, func() *blob.Quota {
		return allOutput.Part(turns.User(ctx), "bytes of output of commands", callOutput, freeOutput)
	})
}

type outputKey struct{}

// output is what a process wrote, in the order in which it arrived. It is safe for concurrent use.
type output struct {
	quota *blob.Quota

	mu      sync.Mutex
	held    int64     // of the quota
	parts   []written // those before first are dropped
	first   int
	kept    int
	total   uint64 // bytes that were ever written
	dropped uint64
	ended   bool
	waiting []waiting
}

type written struct {
	at     uint64
	stream Stream
	bytes  []byte
}

type waiting struct {
	beyond uint64
	ready  *abi.Pollable
}

// add keeps a part, and drops the oldest ones beyond the limit.
func (o *output) add(stream box.Stream, part []byte) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for rest := part; len(rest) > 0; {
		last := len(o.parts) - 1
		if last < o.first || o.parts[last].stream != Stream(stream) || len(o.parts[last].bytes) >= abi.MaxBytes {
			o.parts = append(o.parts, written{at: o.total, stream: Stream(stream)})
			last++
		}
		p := &o.parts[last]
		n := min(len(rest), abi.MaxBytes-len(p.bytes))
		p.bytes = append(p.bytes, rest[:n]...)
		o.total += uint64(n)
		o.kept += n
		rest = rest[n:]
	}
	// A part takes some memory besides its bytes.
	for o.kept > maxOutput || len(o.parts)-o.first > maxOutput/256 || !o.fits() {
		oldest := &o.parts[o.first]
		n := len(oldest.bytes)
		if over := max(o.kept-maxOutput, int(o.size()-o.held)); over > 0 && over < n {
			n = over
			oldest.bytes = oldest.bytes[n:]
			oldest.at += uint64(n)
		} else {
			*oldest = written{}
			o.first++
		}
		o.kept -= n
		o.dropped += uint64(n)
	}
	o.quota.Release(o.held - o.size())
	o.held = o.size()
	if o.first > maxOutput/256 { // as many as are kept at most, so it is seldom
		o.parts, o.first = append([]written(nil), o.parts[o.first:]...), 0
	}
	o.wake()
}

// size is how many bytes are kept.
func (o *output) size() int64 { return int64(o.kept + perPart*(len(o.parts)-o.first)) }

// fits reports whether the quota has room for what is kept.
func (o *output) fits() bool {
	more := o.size() - o.held
	if more > 0 && o.quota.Reserve(more) != nil {
		return false
	}
	o.held += max(0, more)
	return true
}

// close drops what is kept.
func (o *output) close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.quota.Release(o.held)
	o.parts, o.first, o.kept, o.held = nil, 0, 0, 0
}

// end says that nothing more will come.
func (o *output) end() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.ended = true
	o.wake()
}

func (o *output) wake() {
	rest := o.waiting[:0]
	for _, w := range o.waiting {
		if o.ended || o.total > w.beyond {
			w.ready.SetReady()
		} else {
			rest = append(rest, w)
		}
	}
	clear(o.waiting[len(rest):])
	o.waiting = rest
}

// subscribe returns a pollable that is ready when more than this many bytes were written, or the process has ended.
func (o *output) subscribe(beyond uint64) *abi.Pollable {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.ended || o.total > beyond {
		return abi.Ready()
	}
	var ready *abi.Pollable
	ready = abi.NewPollable(func() {
		o.mu.Lock()
		defer o.mu.Unlock()
		for i, w := range o.waiting {
			if w.ready == ready {
				o.waiting = append(o.waiting[:i], o.waiting[i+1:]...)
				return
			}
		}
	})
	o.waiting = append(o.waiting, waiting{beyond, ready})
	return ready
}

// read returns the first kept part from an offset on, or nil.
func (o *output) read(offset uint64) *Part {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, p := range o.parts[o.first:] {
		if end := p.at + uint64(len(p.bytes)); end > offset {
			from := max(offset, p.at)
			return &Part{Offset: from, Stream: p.stream, Bytes: append([]byte(nil), p.bytes[from-p.at:]...)}
		}
	}
	return nil
}
