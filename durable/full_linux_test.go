package durable_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stilehost/stile/durable"
	"github.com/stilehost/stile/internal/cache/cachetest"
	"github.com/stilehost/stile/internal/disktest"
)

// TestFullDisk fills the disk of the store while runs are in the middle of their logs, and of their sleep. They go on when there is room, and each of their effects comes about
// once.
func TestFullDisk(t *testing.T) {
	if !disktest.Mounts(t) {
		return
	}
	failed := &failures{}
	s := &stored{dir: t.TempDir(), options: []func(*durable.Options){func(o *durable.Options) { o.Logger = slog.New(failed) }}}
	s.cacheDir, s.keyDir = cachetest.Dirs(t)
	disktest.Mount(t, s.dir, "size=64m")
	elsewhere := filepath.Join(t.TempDir(), "kv.db") // the disk of the bucket has room
	if err := errors.Join(os.WriteFile(elsewhere, nil, 0o600), os.Symlink(elsewhere, filepath.Join(s.dir, "kv.db"))); err != nil {
		t.Fatal(err)
	}
	s.reopen(t)
	t.Cleanup(func() {
		if err := s.close(); err != nil {
			t.Error(err)
		}
	})
	spec := program(t, s.shop, s.cacheDir, s.keyDir, `
		let last = 0;
		for (let i = 0; i < 200; i++) {
			last = await env.store.increment("n", 1);
			if (i % 10 == 9) await env.clock.sleep(40);
		}
		return last;`)
	const runs = 8
	var names []string
	for i := range runs {
		spec.Target = string(rune('a' + i))
		info, _, err := s.runs.Start(t.Context(), spec)
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, info.Name)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	sum := func() (n int) {
		for i := range runs {
			v, err := s.bucket.Bucket(string(rune('a'+i))).Get(ctx, "n")
			if err != nil {
				t.Fatal(err)
			}
			if v != nil {
				var one int
				for _, d := range *v {
					one = one*10 + int(d-'0')
				}
				n += one
			}
		}
		return n
	}
	s.runs.Work()
	stopped := 0
	for _, at := range []int{100, 300, 700} {
		for sum() < at {
			<-time.After(time.Millisecond)
		}
		disktest.Fill(t, s.dir)
		for failed.forget(); s.runs.Active() > 0 || !failed.heard(); { // until nothing goes on, and nothing can be taken
			if sum() == 200*runs {
				break
			}
			<-time.After(time.Millisecond)
		}
		if sum() < 200*runs {
			stopped++
		}
		if err := os.Remove(filepath.Join(s.dir, "ballast")); err != nil {
			t.Fatal(err)
		}
	}
	if stopped == 0 {
		t.Error("the full disk stopped nothing")
	}
	for _, name := range names {
		if r, err := s.runs.Wait(ctx, name); err != nil || r.State != durable.Done || string(r.Output) != "200" {
			t.Errorf("%s %s %s %v, %v", r.State, r.Output, r.Reason, r.Outcome, err)
		}
	}
	if n := sum(); n != 200*runs {
		t.Errorf("the counters have %d, want %d", n, 200*runs)
	}
}

// TestFullDiskLetsPeopleIn fills the disk while no process has the store open. Then a person can look at runs, and cancel and remove them, which makes room.
func TestFullDiskLetsPeopleIn(t *testing.T) {
	if !disktest.Mounts(t) {
		return
	}
	dir := t.TempDir()
	disktest.Mount(t, dir, "size=12m")
	open := func() *durable.Runs {
		t.Helper()
		runs, err := durable.Open(t.Context(), durable.Options{Dir: dir, Key: bytes.Repeat([]byte{7}, durable.KeySize)})
		if err != nil {
			t.Fatal(err)
		}
		return runs
	}
	closed := func(runs *durable.Runs) {
		t.Helper()
		if err := runs.Close(); err != nil {
			t.Fatal(err)
		}
	}
	runs := open()
	noise := make([]byte, durable.MaxMessage/2)
	_, _ = rand.Read(noise)
	message := durable.Message{Data: []byte(`"` + hex.EncodeToString(noise[:len(noise)-1]) + `"`)}
	var names []string
	for range 3 {
		info, _, err := runs.Start(t.Context(), durable.Spec{Function: "waits"})
		if err != nil {
			t.Fatal(err)
		}
		for range 40 {
			if _, err := runs.Signal(t.Context(), info.Name, "mail", message); err != nil {
				t.Fatal(err)
			}
		}
		names = append(names, info.Name)
	}
	closed(runs)
	for i, name := range names {
		disktest.Fill(t, dir)
		runs = open()
		if list, err := runs.List(t.Context(), "", 10); err != nil || len(list) != len(names)-i {
			t.Fatal(list, err)
		}
		if s, err := runs.Show(t.Context(), name); err != nil || len(s.Messages) != 40 {
			t.Fatal(len(s.Messages), err)
		}
		closed(runs)
		disktest.Fill(t, dir)
		runs = open()
		if did, err := runs.Cancel(t.Context(), name); err != nil || !did {
			t.Fatal(did, err)
		}
		closed(runs)
		disktest.Fill(t, dir)
		runs = open()
		if did, err := runs.Remove(t.Context(), name); err != nil || !did {
			t.Fatal(did, err)
		}
		closed(runs)
		var room syscall.Statfs_t
		if err := syscall.Statfs(dir, &room); err != nil {
			t.Fatal(err)
		}
		if back := int64(room.Bavail) * room.Bsize; back < 1<<19 {
			t.Errorf("to remove a run gave %d bytes back", back)
		}
		if info, err := os.Stat(filepath.Join(dir, "runs.reserve")); err != nil || info.Size() != 1<<20 {
			t.Fatalf("what is reserved for the next time: %v, %v", info, err)
		}
	}
	runs = open()
	defer closed(runs)
	if _, _, err := runs.Start(t.Context(), durable.Spec{Function: "waits"}); err != nil {
		t.Errorf("once there is room: %v", err)
	}
}

// failures is a log that knows whether the process failed to write down that it works on runs, or to take some, since it forgot.
type failures struct{ any atomic.Bool }

func (f *failures) forget() { f.any.Store(false) }

func (f *failures) heard() bool { return f.any.Load() }

func (*failures) Enabled(context.Context, slog.Level) bool { return true }

func (f *failures) Handle(_ context.Context, r slog.Record) error {
	if r.Message == "runs are not kept" || r.Message == "runs cannot be taken" {
		f.any.Store(true)
	}
	return nil
}

func (f *failures) WithAttrs([]slog.Attr) slog.Handler { return f }

func (f *failures) WithGroup(string) slog.Handler { return f }
