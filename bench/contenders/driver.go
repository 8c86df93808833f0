package contenders

import (
	"context"
	"embed"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"sync"
	"time"

	"github.com/stilehost/stile/bench"
)

//go:embed drivers
var drivers embed.FS

// driver is our own process, which starts isolates within itself. A trial's time includes two pipes, under 100 microseconds.
//
// A request is four 32-bit numbers in little-endian order: its id, 1 if the isolate is kept, and the lengths of source and input,
// which follow. An answer is the id, a length and that many bytes. A length of zero says that the isolate is gone, or kept.
type driver struct {
	cmd   *exec.Cmd
	in    io.WriteCloser
	ended chan struct{} // closed when the process stops writing

	mu      sync.Mutex
	n       uint32
	waiting map[uint32]chan []byte
}

// startDriver starts a process that outlives the context of the preparation, until Close.
func startDriver(w *bench.Workbench, cmd *exec.Cmd) (*driver, error) {
	d := &driver{cmd: cmd, ended: make(chan struct{}), waiting: map[uint32]chan []byte{}}
	d.cmd.Stderr = w.Log
	out, err := d.cmd.StdoutPipe()
	if err == nil {
		d.in, err = d.cmd.StdinPipe()
	}
	if err == nil {
		err = d.cmd.Start()
	}
	if err != nil {
		return nil, err
	}
	go d.read(out)
	return d, nil
}

func (d *driver) read(out io.Reader) {
	defer close(d.ended)
	for {
		var head [2]uint32
		if binary.Read(out, binary.LittleEndian, &head) != nil {
			return
		}
		body := make([]byte, head[1])
		if _, err := io.ReadFull(out, body); err != nil {
			return
		}
		d.mu.Lock()
		c := d.waiting[head[0]]
		d.mu.Unlock()
		c <- body // it has room for both
	}
}

func (d *driver) request(ctx context.Context, t bench.Trial, keep uint32) (a bench.Answer, err error) {
	c := make(chan []byte, 2)
	d.mu.Lock()
	d.n++
	id := d.n
	d.waiting[id] = c
	frame, _ := binary.Append(nil, binary.LittleEndian, [4]uint32{id, keep, uint32(len(t.Source)), uint32(len(t.Input))}) // of numbers
	_, err = d.in.Write(append(append(frame, t.Source...), t.Input...))
	d.mu.Unlock()
	for err == nil {
		select {
		case body := <-c:
			if len(body) == 0 {
				d.mu.Lock()
				delete(d.waiting, id)
				d.mu.Unlock()
				return a, nil
			}
			a = bench.Answer{Output: body, At: time.Now()}
		case <-d.ended:
			err = errors.New("it has ended")
		case <-ctx.Done():
			err = ctx.Err()
		}
	}
	return a, fmt.Errorf("the process with the isolates: %w", err)
}

func (d *driver) Run(ctx context.Context, t bench.Trial) (bench.Answer, error) {
	return d.request(ctx, t, 0)
}
