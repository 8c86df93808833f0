// Package protocol is how the benchmark speaks to a program that keeps runs: lines of JSON on standard input and output. It is a module of its own,
// so that the modules of the peers need nothing of Stile.
package protocol

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"os/signal"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
)

// Work is what one run does: steps, a wait, and steps again.
type Work struct {
	Before int   `json:"before"`
	Wait   int64 `json:"wait"` // milliseconds; 0 for none
	After  int   `json:"after"`
}

// Request is one line of input. Do is "start", which answers once the runs are durable; "end", which answers once they have ended; "steps" or "size".
type Request struct {
	Do     string `json:"do"`
	Prefix string `json:"prefix,omitempty"` // the runs are called PREFIX-0 and so on
	Count  int    `json:"count,omitempty"`
	Work   Work   `json:"work"`
}

// Answer is one line of output. The first one comes when the peer works, also on the runs that it found.
type Answer struct {
	Steps int64  `json:"steps"` // that this process has executed
	Size  int64  `json:"size"`  // bytes that all runs take on disk
	Error string `json:"error,omitempty"`
}

// Peer is what keeps runs. Its methods are called from many goroutines.
type Peer interface {
	Start(ctx context.Context, id string, w Work) error
	// End returns once the run has ended, with how many steps its result counts.
	End(ctx context.Context, id string, w Work) (int, error)
	Size(ctx context.Context) (int64, error)
}

var steps atomic.Int64

// Step is what a step of a run does.
func Step() int64 { return steps.Add(1) }

// Serve answers requests until its input ends, or the process is asked to end. open opens the peer, with the folder in which it keeps what it needs.
func Serve(open func(ctx context.Context, dir string) (Peer, error)) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := serve(ctx, open)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func serve(ctx context.Context, open func(ctx context.Context, dir string) (Peer, error)) error {
	peer, err := open(ctx, os.Args[1])
	if err != nil {
		return err
	}
	out := json.NewEncoder(os.Stdout)
	if err := out.Encode(Answer{}); err != nil {
		return err
	}
	in := bufio.NewScanner(os.Stdin)
	for in.Scan() {
		var r Request
		if err := json.Unmarshal(in.Bytes(), &r); err != nil {
			return err
		}
		if err := out.Encode(answer(ctx, peer, r)); err != nil {
			return err
		}
	}
	return in.Err()
}

func answer(ctx context.Context, peer Peer, r Request) (a Answer) {
	var err error
	switch r.Do {
	case "start":
		err = each(r, func(id string) error { return peer.Start(ctx, id, r.Work) })
	case "end":
		err = each(r, func(id string) error {
			n, err := peer.End(ctx, id, r.Work)
			if want := r.Work.Before + r.Work.After; err == nil && n != want {
				err = fmt.Errorf("%s made %d steps of %d", id, n, want)
			}
			return err
		})
	case "steps":
		a.Steps = steps.Load()
	case "size":
		a.Size, err = peer.Size(ctx)
	default:
		err = fmt.Errorf("unknown request %q", r.Do)
	}
	if err != nil {
		a.Error = err.Error()
	}
	return a
}

// atOnce is how many runs are started, or waited for, at once.
const atOnce = 64

func each(r Request, do func(id string) error) (first error) {
	var all sync.WaitGroup
	var mu sync.Mutex
	room := make(chan struct{}, atOnce)
	for i := range r.Count {
		room <- struct{}{}
		all.Go(func() {
			defer func() { <-room }()
			if err := do(fmt.Sprintf("%s-%d", r.Prefix, i)); err != nil {
				mu.Lock()
				defer mu.Unlock()
				first = err
			}
		})
	}
	all.Wait()
	return first
}

// Folder is how many bytes of the disk the files of a folder take.
func Folder(dir string) (n int64, err error) {
	err = filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		info, err := d.Info()
		if err == nil {
			n += 512 * info.Sys().(*syscall.Stat_t).Blocks
		}
		return err
	})
	return n, err
}
