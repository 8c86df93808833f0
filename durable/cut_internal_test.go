package durable

import (
	"context"
	"encoding/binary"
	"fmt"
	"testing"

	"github.com/stilehost/stile/host"
	"github.com/stilehost/stile/internal/sqlite"
)

// functions is a store of runs of a function that nobody works on.
func functions(t *testing.T) *Runs {
	t.Helper()
	r, err := Open(t.Context(), Options{Dir: t.TempDir(), Key: make([]byte, KeySize), Functions: map[string]Function{"f": nil}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	})
	return r
}

// add writes a batch of steps into the log of a run, as the process would that works on it.
func (r *Runs) add(ctx context.Context, t *testing.T, c *sqlite.Conn, name string, first, steps int) {
	t.Helper()
	w, err := findRun(ctx, c, name)
	if err != nil {
		t.Fatal(err)
	}
	var entries []byte
	for n := first; n < first+steps; n++ {
		for _, e := range []string{fmt.Sprintf(`{"n":%d,"kind":"step","name":"a step of many"}`, n), fmt.Sprintf(`{"n":%d,"kind":"answer","value":%q}`, n, "its value")} {
			entries = append(binary.AppendUvarint(entries, uint64(len(e))), e...)
		}
	}
	var last []byte
	if err := c.Row(ctx, `SELECT ifnull((SELECT body FROM log WHERE run = ?1 ORDER BY n DESC LIMIT 1), (SELECT spec FROM run WHERE id = ?1))`, w.id).Scan(&last); err != nil {
		t.Fatal(err)
	}
	n := w.batches + 1
	body := r.sealer.seal(place{run: name, kind: "log", n: n, after: tag(last)}, timed(r.now(), entries))
	end := r.sealer.seal(place{run: name, kind: "head", n: n, after: tag(body)}, head{1, uint64(first + steps - 1)}.text())
	if _, err := c.Exec(ctx, `INSERT INTO log VALUES (?, ?, ?)`, w.id, n, body); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Exec(ctx, `UPDATE run SET batches = ?, head = ? WHERE id = ?`, n, end, w.id); err != nil {
		t.Fatal(err)
	}
}

// addAll writes batches of steps into the log of a run.
func (r *Runs) addAll(ctx context.Context, t *testing.T, name string, first, batches, steps int) {
	t.Helper()
	if err := r.db.Update(ctx, func(c *sqlite.Conn) error {
		for i := range batches {
			r.add(ctx, t, c, name, first+i*steps, steps)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
}

func (r *Runs) started(t *testing.T) Info {
	t.Helper()
	run, _, err := r.Start(t.Context(), Spec{Function: "f"})
	if err != nil {
		t.Fatal(err)
	}
	return run
}

// TestLogGoesOn has a log go on between the time when what is kept of it is read, and the transaction that cuts it.
func TestLogGoesOn(t *testing.T) {
	r := functions(t)
	run := r.started(t)
	r.addAll(t.Context(), t, run.Name, 1, 2, 10)
	tried := 0
	if err := r.updateCut(t.Context(), func(ctx context.Context, write func(*sqlite.Conn) error) error {
		if tried++; tried == 1 {
			r.addAll(ctx, t, run.Name, 21, 1, 1)
		}
		return r.db.Update(ctx, write)
	}, 1, nil, func(c *sqlite.Conn, k cuts) error {
		return r.finish(t.Context(), c, run.Name, Cancelled, ended{Outcome: host.Outcome{Kind: "cancelled"}}, k)
	}); err != nil {
		t.Fatal(err)
	}
	list, err := r.Latest(t.Context(), run.Name)
	if err != nil || tried != 2 || len(list) != 21 || list[20].Number != 21 {
		t.Errorf("after %d transactions, %d operations are kept: %v", tried, len(list), err)
	}
}

// TestChildLogIsKept cancels a run whose child has a log.
func TestChildLogIsKept(t *testing.T) {
	r := functions(t)
	parent, child := r.started(t), r.started(t)
	r.addAll(t.Context(), t, child.Name, 1, 3, 10)
	if err := r.db.Update(t.Context(), func(c *sqlite.Conn) error {
		_, err := c.Exec(t.Context(), `UPDATE run SET parent = (SELECT id FROM run WHERE name = ?) WHERE name = ?`, parent.Name, child.Name)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	if ok, err := r.Cancel(t.Context(), parent.Name); err != nil || !ok {
		t.Fatal(ok, err)
	}
	if now, err := r.Get(t.Context(), child.Name); err != nil || now.State != Cancelled {
		t.Fatal(now.State, err)
	}
	if list, err := r.Latest(t.Context(), child.Name); err != nil || len(list) != 30 {
		t.Errorf("%d operations are kept: %v", len(list), err)
	}
}

// TestLogOfManyOperations reads a log that takes little room in the file and has very many operations. Few are held at once.
func TestLogOfManyOperations(t *testing.T) {
	const batches, steps = 40, 2500
	r := functions(t)
	run := r.started(t)
	r.addAll(t.Context(), t, run.Name, 1, batches, steps)
	n, held := 0, 0
	p := &pages{runs: r, run: run.Name, at: -1, yield: func(o Operation, err error) bool {
		if n++; err != nil || o.Number != uint64(n) || o.State != Answered {
			t.Errorf("operation %d is %+v, %v", n, o, err)
		}
		return !t.Failed()
	}}
	for more := true; more; held = max(held, p.scan.cost.held) {
		var err error
		if more, err = p.read(t.Context()); err != nil {
			t.Fatal(err)
		}
		p.give(more)
	}
	if n != batches*steps || held > 1 {
		t.Errorf("%d operations were read, and %d held at once", n, held)
	}
	n = 0
	for _, err := range r.Operations(t.Context(), run.Name, Operation{}) {
		if n++; n == 10 || err != nil {
			break
		}
	}
	if n != 10 {
		t.Errorf("it ended after %d operations", n)
	}
	took, list, err := r.latestOf(t.Context(), run.Name)
	if err != nil || len(list) != KeptOperations || list[KeptOperations-1].Number != batches*steps || took.read != KeptOperations || took.unpacked > tailBytes {
		t.Errorf("the last are %d operations: it took %+v; %v", len(list), took, err)
	}
}
