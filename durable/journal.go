package durable

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/stilehost/stile/host"
	"github.com/stilehost/stile/internal/printable"
	"github.com/stilehost/stile/internal/sqlite"
)

// LostError ends a call whose run belongs to another process now.
type LostError struct{ Run string }

func (e *LostError) Error() string {
	return fmt.Sprintf("run %s belongs to another process now", e.Run)
}

// journal is the log of an active run: a [host.Journal]. Its entries are written together with those of other runs, in one transaction.
type journal struct {
	writer *writer
	run    *active

	// The writer's lock guards these.
	pending    bytes.Buffer // entries, each after its length
	round      *round       // in which they will be written; nil if there are none
	fault      error        // ends the call
	operations uint64       // of the attempt, those that are pending included
}

// head is where the run is with what is pending, once nobody adds to its log any more.
func (j *journal) head() head { return head{j.run.attempt, j.operations} }

// maxPending is how much of a log may wait to be written.
const maxPending = 1 << 20

// Append implements [host.Journal].
func (j *journal) Append(entry []byte) error { return j.append(entry, host.BeginsOperation(entry)) }

// append is Append for an entry that begins an operation or not.
func (j *journal) append(entry []byte, begins bool) error {
	w := j.writer
	w.mu.Lock()
	if err := w.add(j); err != nil {
		w.mu.Unlock()
		return err
	}
	if begins {
		j.operations++
	}
	j.pending.Write(binary.AppendUvarint(nil, uint64(len(entry))))
	j.pending.Write(entry)
	large := j.pending.Len() > maxPending
	if w.later == nil {
		w.later = time.AfterFunc(gather, func() {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.later = nil
			w.begin()
		})
	}
	w.mu.Unlock()
	if large {
		return j.Commit(w.runs.ctx)
	}
	return nil
}

// Commit implements [host.Journal].
func (j *journal) Commit(ctx context.Context) error {
	w := j.writer
	w.mu.Lock()
	if err := w.add(j); err != nil {
		w.mu.Unlock()
		return err
	}
	j.round.sync = true
	written := j.round.done
	w.begin()
	w.mu.Unlock()
	select {
	case <-written:
	case <-ctx.Done():
		return ctx.Err()
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return j.fault
}

// errStopped is the fault of a journal whose call is over.
var errStopped = errors.New("the call is over")

// fail has an error end the call, and returns it.
func (j *journal) fail(err error) error {
	w := j.writer
	w.mu.Lock()
	defer w.mu.Unlock()
	if j.fault == nil {
		j.fault = err
	}
	return err
}

// stop ends a log, and returns once nothing of it is on its way to the disk. It returns the entries that were not written, or why the log failed.
func (j *journal) stop() (rest []byte, fault error) {
	w := j.writer
	w.mu.Lock()
	if fault = j.fault; fault == nil {
		j.fault = errStopped
		rest = bytes.Clone(j.pending.Bytes())
	}
	j.pending.Reset()
	if j.round != nil {
		j.round.list = slices.DeleteFunc(j.round.list, func(o *journal) bool { return o == j })
		j.round = nil
	}
	var stored chan struct{}
	if w.storing != nil && slices.Contains(w.storing.list, j) {
		stored = w.storing.done
	}
	w.mu.Unlock()
	if stored != nil {
		<-stored
	}
	return rest, fault
}

// writer writes the logs of all active runs, some at a time. While one transaction is on its way to the disk, the next gather.
type writer struct {
	runs *Runs

	mu      sync.Mutex
	waiting []*round    // in the order in which they are written
	asked   int         // how many of these somebody asked for
	later   *time.Timer // asks for that
	writing bool
	closed  bool   // no run is active any more
	storing *round // which is on its way to the disk
	all     sync.WaitGroup
}

// round are logs that are written in one transaction.
type round struct {
	list []*journal
	sync bool          // somebody waits until it is on the disk
	done chan struct{} // closed when it is written: with sync, to the disk
}

// most is how many logs are written in one transaction. With more, all runs would wait for the writer, and then it for all runs.
const most = 64

// gather is how long an entry may wait to be written, if nobody waits for that. A process that ends repeats what it lost of its log.
const gather = 20 * time.Millisecond

// add has a log among those that are written next, unless it has failed. The caller holds mu.
func (w *writer) add(j *journal) error {
	if j.fault != nil || j.round != nil {
		return j.fault
	}
	if n := len(w.waiting); n == 0 || len(w.waiting[n-1].list) >= most {
		w.waiting = append(w.waiting, &round{done: make(chan struct{})})
	}
	j.round = w.waiting[len(w.waiting)-1]
	j.round.list = append(j.round.list, j)
	return nil
}

// close returns when nothing is on its way. No run is active any more.
func (w *writer) close() {
	w.mu.Lock()
	w.closed = true
	w.mu.Unlock()
	w.all.Wait()
}

// begin asks for what waits to be written. The caller holds mu.
func (w *writer) begin() {
	w.asked = len(w.waiting)
	if !w.writing && !w.closed {
		w.writing = true
		w.all.Go(w.write)
	}
}

// write writes what somebody asked for.
func (w *writer) write() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for w.asked > 0 {
		o := w.waiting[0]
		w.asked, w.waiting, w.storing = w.asked-1, w.waiting[1:], o
		update := w.runs.db.UpdateSoon
		if o.sync {
			update = w.runs.db.Update
		}
		if w.later != nil && len(w.waiting) == 0 {
			w.later.Stop() // one that has fired meanwhile begins nothing
			w.later = nil
		}
		batches := make([]batch, len(o.list))
		for i, j := range o.list {
			batches[i] = batch{bytes.Clone(j.pending.Bytes()), j.operations}
			j.pending.Reset()
			j.round = nil
		}
		w.mu.Unlock()
		faults := w.store(update, o.list, batches)
		w.mu.Lock()
		for i, j := range o.list {
			if faults[i] != nil && j.fault == nil {
				j.fault = faults[i]
			}
		}
		w.storing = nil
		close(o.done)
	}
	w.writing = false
}

// batch are entries that are written together. operations are those of the attempt up to here.
type batch struct {
	entries    []byte
	operations uint64
}

// store writes a batch for each of these runs, which still must belong to this process.
func (w *writer) store(update func(context.Context, func(*sqlite.Conn) error) error, list []*journal, batches []batch) []error {
	r := w.runs
	ctx := r.base
	faults, tags, sizes := make([]error, len(list)), make([][]byte, len(list)), make([]int64, len(list))
	err := update(ctx, func(c *sqlite.Conn) error {
		for i, j := range list {
			a := j.run
			n := a.batches
			body, after := []byte(nil), a.tag
			if len(batches[i].entries) > 0 {
				n++
				body = r.sealer.seal(place{run: a.name, kind: "log", n: n, after: a.tag}, timed(r.now(), batches[i].entries))
				after = tag(body)
				if a.logged+int64(len(body)) > r.o.MaxLogBytes {
					faults[i] = &host.LimitError{Limit: "disk", Value: printable.Size(r.o.MaxLogBytes), Detail: "what the run did since it last slept does not fit into its log; let it sleep between parts of its work"}
					continue
				}
			}
			end := r.sealer.seal(place{run: a.name, kind: "head", n: n, after: after}, head{a.attempt, batches[i].operations}.text())
			switch held, err := a.hold(ctx, c, `UPDATE run SET batches = ?, head = ? WHERE id = ? AND owner = ? AND fence = ?`, n, end); {
			case err != nil:
				return err
			case !held:
				faults[i] = &LostError{a.name}
				continue
			}
			if body != nil {
				if _, err := c.Exec(ctx, `INSERT INTO log VALUES (?, ?, ?)`, a.id, n, body); err != nil {
					return err
				}
				tags[i], sizes[i] = after, int64(len(body))
			}
		}
		return nil
	})
	for i, j := range list {
		switch {
		case err != nil:
			faults[i] = fmt.Errorf("write the log of run %s: %w", j.run.name, err)
		case tags[i] != nil:
			j.run.batches, j.run.tag = j.run.batches+1, tags[i]
			j.run.logged += sizes[i]
		}
	}
	return faults
}

// readBatch reads the entries of a batch.
func readBatch(batch []byte) (entries [][]byte, err error) {
	for len(batch) > 0 {
		length, n := binary.Uvarint(batch)
		if n <= 0 || length > uint64(len(batch)-n) {
			return nil, errors.New("a part of its log is malformed")
		}
		entries = append(entries, batch[n:][:length])
		batch = batch[n+int(length):]
	}
	return entries, nil
}

// timed puts the time before a batch, behind what would be the length of an empty entry. It is that of all its entries: they were gathered for some milliseconds.
func timed(at time.Time, batch []byte) []byte {
	return append(binary.AppendUvarint([]byte{0}, uint64(max(0, at.UnixMilli()))), batch...)
}

// batchTime returns the time of a batch, and its entries. Older batches have none.
func batchTime(batch []byte) (at time.Time, entries []byte) {
	if len(batch) == 0 || batch[0] != 0 {
		return at, batch
	}
	ms, n := binary.Uvarint(batch[1:])
	if n <= 0 || ms > math.MaxInt64 {
		return at, batch
	}
	return timeOf(int64(ms)), batch[1+n:]
}

// begins counts the entries that begin operations.
func begins(function bool, entries [][]byte) (n uint64) {
	for _, e := range entries {
		if beginsOperation(function, e) {
			n++
		}
	}
	return n
}

func beginsOperation(function bool, entry []byte) bool {
	return function && !isAnswer(entry) || !function && host.BeginsOperation(entry)
}
