package http

import (
	"context"
	"io"
	"runtime"

	"github.com/stilehost/stile/internal/turns"
)

// processors are for work on bodies beside guests: to decompress them and to look for credentials. Half of the processors
// are left to guests. Users take turns.
var processors = turns.New(max(1, runtime.GOMAXPROCS(0)/2))

// turn is that of one body. It is not safe for concurrent use.
type turn struct {
	ctx   context.Context
	taken bool
}

func (t *turn) take() error {
	if t.taken {
		return nil
	}
	err := processors.Take(t.ctx)
	t.taken = err == nil
	return err
}

func (t *turn) give() {
	if t.taken {
		t.taken = false
		processors.Give()
	}
}

// waitingReader reads without the turn, because that waits for the server. It sits below what works on the body.
type waitingReader struct {
	turn *turn
	r    io.Reader
}

func (w waitingReader) Read(p []byte) (int, error) {
	w.turn.give()
	n, err := w.r.Read(p)
	if refused := w.turn.take(); refused != nil {
		return 0, refused
	}
	return n, err
}

// turnReader reads with the turn. It sits above what works on the body. Others come between any two pieces, of which a few bytes of a
// server can make many.
type turnReader struct {
	turn *turn
	r    io.Reader
}

func (t turnReader) Read(p []byte) (int, error) {
	if err := t.turn.take(); err != nil {
		return 0, err
	}
	defer t.turn.give()
	return t.r.Read(p)
}
