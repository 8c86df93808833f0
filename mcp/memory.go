package mcp

import (
	"context"
	"errors"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/stilehost/stile/internal/jsonform"
)

// Bounds on the memory for messages in this process, for all agents, sessions and connections together.
const (
	maxAllBodies = 64 << 20  // bytes of requests under way, beyond the first of each
	maxAllFirst  = 16 << 20  // bytes of these first parts
	maxFirst     = 16 << 10  // bytes of one
	maxParsing   = 32 << 20  // bytes of bodies being parsed, which takes several copies
	maxDecoded   = 64 << 20  // bytes of the arguments that are decoded here
	freeDecoded  = 64 << 10  // bytes of one message that do not count
	maxWriting   = 64 << 20  // bytes of large answers that are being written, each of which takes several copies
	freeWriting  = 256 << 10 // bytes of one answer that do not count
	roomTime     = 10 * time.Second
)

var (
	allBodies = semaphore.NewWeighted(maxAllBodies)
	allFirst  = semaphore.NewWeighted(maxAllFirst) // so that small requests never wait for large ones
	parsing   = semaphore.NewWeighted(maxParsing)
	decoding  = semaphore.NewWeighted(maxDecoded)
	writing   = semaphore.NewWeighted(maxWriting)
)

// errBusy says that there is no room for a message.
var errBusy = errors.New("the messages of all agents take too much memory together; try again in a moment")

// rooms are what one agent may have of the room for parsing, decoding and writing: half, so that others need not wait for all that it sends
// and for answers that it does not read.
type rooms struct{ parsing, decoding, writing *semaphore.Weighted }

func newRooms() rooms {
	return rooms{semaphore.NewWeighted(maxParsing / 2), semaphore.NewWeighted(maxDecoded / 2), semaphore.NewWeighted(maxWriting / 2)}
}

// body is the share of one request in all bodies, and of its large answer in all of these.
type body struct {
	first, rest, parsing, writing int64
}

// grow reports whether the process has room for n more bytes of a request. It does not wait, because the request already takes room that
// others wait for.
func (b *body) grow(n int64) bool {
	first := min(n, maxFirst-b.first)
	if !allFirst.TryAcquire(first) {
		return false
	}
	b.first += first
	rest := min(n-first, maxAllBodies-b.rest)
	if !allBodies.TryAcquire(rest) {
		return false
	}
	b.rest += rest
	return true
}

// sharing is held by a line that grows or gives its share back, so that one line's end makes room for the next, and lines that grow
// together do not all find none.
var sharing sync.Mutex

// growOrGiveBack is grow, and gives the whole share back if there is no room.
func (b *body) growOrGiveBack(n int64) bool {
	sharing.Lock()
	defer sharing.Unlock()
	ok := b.grow(n)
	if !ok {
		b.giveBack()
	}
	return ok
}

// growSoon is grow for a request whose first part is taken, and waits for the rest.
func (b *body) growSoon(ctx context.Context, n int64) bool {
	rest := min(n, maxAllBodies-b.rest)
	if acquire(ctx, allBodies, rest) != nil {
		return false
	}
	b.rest += rest
	return true
}

// parse waits until the request may be parsed. A small one does not wait.
func (b *body) parse(ctx context.Context) error {
	n := min(b.rest, maxParsing)
	if err := acquire(ctx, parsing, n); err != nil {
		return err
	}
	b.parsing = n
	return nil
}

// parsed releases what parse took.
func (b *body) parsed() {
	parsing.Release(b.parsing)
	b.parsing = 0
}

// add takes over what another share holds.
func (b *body) add(other *body) {
	b.first += other.first
	b.rest += other.rest
	b.parsing += other.parsing
	b.writing += other.writing
	*other = body{}
}

func (b *body) giveBack() {
	b.parsed()
	allFirst.Release(b.first)
	allBodies.Release(b.rest)
	writing.Release(b.writing)
	*b = body{}
}

// decode runs a function that decodes JSON once the process and the agent have room for the result.
func (r *rooms) decode(ctx context.Context, text []byte, do func() error) error {
	if takes := min(jsonform.DecodedSize(text), maxDecoded); takes > freeDecoded {
		own := min(takes, maxDecoded/2)
		if err := acquireBoth(ctx, r.decoding, own, decoding, takes); err != nil {
			return err
		}
		defer r.decoding.Release(own)
		defer decoding.Release(takes)
	}
	return do()
}

// acquireBoth acquires an agent's own room, and then that of all.
func acquireBoth(ctx context.Context, own *semaphore.Weighted, part int64, all *semaphore.Weighted, n int64) error {
	if err := acquire(ctx, own, part); err != nil {
		return err
	}
	err := acquire(ctx, all, n)
	if err != nil {
		own.Release(part)
	}
	return err
}

func acquire(ctx context.Context, room *semaphore.Weighted, n int64) error {
	if n == 0 || room.TryAcquire(n) {
		return nil
	}
	waiting, cancel := context.WithTimeout(ctx, roomTime)
	defer cancel()
	if err := room.Acquire(waiting, n); err != nil {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		return errBusy
	}
	return nil
}
