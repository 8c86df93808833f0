package examples_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/stilehost/stile/capabilities/clock"
	"github.com/stilehost/stile/capabilities/kv"
	"github.com/stilehost/stile/capabilities/signals"
	"github.com/stilehost/stile/durable"
	"github.com/stilehost/stile/host"
	"github.com/stilehost/stile/internal/cache/cachetest"
	"github.com/stilehost/stile/toolchain"
)

// The test binary starts itself to work on runs, on a day of the test's clock, so that it can be killed.
const workerDay = "STILE_TEST_DAY"

func TestMain(m *testing.M) {
	if day := os.Getenv(workerDay); day != "" {
		if err := work(day); err != nil {
			fmt.Fprintln(os.Stderr, "worker:", err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// shop is what a process has: the runs, and the bucket of the orders.
type shop struct {
	host   *host.Host
	store  *kv.Store
	runs   *durable.Runs
	orders *kv.Bucket
}

// open opens the shop in a folder, days after the present.
func open(ctx context.Context, dir, cacheDir, keyDir string, days int) (*shop, error) {
	now := func() time.Time { return time.Now().Add(time.Duration(days) * 24 * time.Hour) }
	h, err := host.New(ctx, host.Options{CacheDir: cacheDir, KeyDir: keyDir})
	if err != nil {
		return nil, err
	}
	store, err := kv.Open(ctx, filepath.Join(dir, "kv.db"), kv.Options{})
	if err != nil {
		return nil, err
	}
	s := &shop{host: h, store: store, orders: store.Bucket("orders")}
	s.runs, err = durable.Open(ctx, durable.Options{
		Dir: dir, Key: bytes.Repeat([]byte{1}, durable.KeySize), Host: h, Idle: 20 * time.Millisecond, Now: now,
		Request: func(context.Context, durable.Info) (durable.Authority, error) {
			return durable.Authority{Request: host.Request{Env: host.Env{"orders": s.orders, "mail": &signals.Mailboxes{Now: now}, "clock": clock.By(now)}}}, nil
		},
	})
	return s, err
}

func (s *shop) close() error {
	for _, c := range []io.Closer{s.runs, s.store, s.host} {
		if err := c.Close(); err != nil {
			return err
		}
	}
	return nil
}

// work works on all runs until the standard input ends.
func work(day string) error {
	days, err := strconv.Atoi(day)
	if err != nil {
		return err
	}
	s, err := open(context.Background(), os.Getenv("STILE_TEST_DIR"), os.Getenv("STILE_TEST_CACHE"), os.Getenv("STILE_TEST_KEY"), days)
	if err != nil {
		return err
	}
	s.runs.Work()
	fmt.Println("works")
	_, _ = io.Copy(io.Discard, os.Stdin)
	return s.close()
}

// TestOrder runs the tool of examples/durable. It waits for a person and for the warehouse, a week by its clock, and the process that works on it is killed
// five times meanwhile. Each effect comes about once.
func TestOrder(t *testing.T) {
	dir := t.TempDir()
	cacheDir, keyDir := cachetest.Dirs(t)
	s, err := open(t.Context(), dir, cacheDir, keyDir, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.close(); err != nil {
			t.Error(err)
		}
	})
	run, _, err := s.runs.Start(t.Context(), build(t, s.host, cacheDir, keyDir))
	if err != nil {
		t.Fatal(err)
	}
	asleep := func() durable.Result {
		t.Helper()
		for {
			r, err := s.runs.Result(t.Context(), run.Name)
			if err != nil || r.State.Final() {
				t.Fatalf("it is %s: %s %v, %v", r.State, r.Reason, r.Err(), err)
			}
			if r.State == durable.Asleep {
				return r
			}
			<-time.After(5 * time.Millisecond)
		}
	}
	for day := range 5 {
		kill := worker(t, dir, cacheDir, keyDir, day)
		if r := asleep(); len(r.Mailboxes) != 1 || r.Mailboxes[0] != "approved" {
			t.Errorf("on day %d it waits for %v", day, r.Mailboxes)
		}
		if day == 4 { // a person approves, while nobody works on the run; the other message is the same, sent again
			kill()
			for range 2 {
				if _, err := s.runs.Signal(t.Context(), run.Name, "approved", durable.Message{Data: []byte(`{"by": "ada"}`), Key: "approval", From: "a person"}); err != nil {
					t.Fatal(err)
				}
			}
			kill = worker(t, dir, cacheDir, keyDir, day)
			for r := asleep(); len(r.Mailboxes) > 0; r = asleep() {
				<-time.After(5 * time.Millisecond)
			}
		}
		kill()
	}
	defer worker(t, dir, cacheDir, keyDir, 6)()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	r, err := s.runs.Wait(ctx, run.Name)
	if err != nil || string(r.Output) != `{"article":"a1","reserved":2,"shipped":2,"by":"ada"}` {
		t.Errorf("got %s %s %v, %v", r.State, r.Output, r.Err(), err)
	}
	for _, key := range []string{"reserved/a1", "shipped/a1"} {
		if n, err := s.orders.Get(ctx, key); err != nil || n == nil || *n != "2" {
			t.Errorf("%s: %v, %v", key, n, err)
		}
	}
}

// build builds the tool.
func build(t *testing.T, h *host.Host, cacheDir, keyDir string) durable.Spec {
	t.Helper()
	chain, err := toolchain.New(t.Context(), h, toolchain.Options{CacheDir: cacheDir, KeyDir: keyDir})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = chain.Close() }()
	wasm, err := chain.Assemble(t.Context(), toolchain.Source{FS: os.DirFS("durable"), Entry: "order.ts"}, false)
	if err != nil {
		t.Fatal(err)
	}
	name, engine := chain.Engine()
	module, err := engine(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return durable.Spec{Component: durable.CodeOf(wasm), Modules: durable.Modules{name: durable.CodeOf(module).Read}, Tool: "order", Input: []byte(`{"article": "a1", "count": 2}`)}
}

// worker starts another process that works on runs.
func worker(t *testing.T, dir, cacheDir, keyDir string, day int) (kill func()) {
	t.Helper()
	c := exec.CommandContext(context.WithoutCancel(t.Context()), os.Args[0])
	c.Env = append(os.Environ(), workerDay+"="+strconv.Itoa(day), "STILE_TEST_DIR="+dir, "STILE_TEST_CACHE="+cacheDir, "STILE_TEST_KEY="+keyDir)
	c.Stderr = os.Stderr
	in, err := c.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		t.Fatal(line, err)
	}
	return func() {
		_ = c.Process.Kill()
		_ = in.Close()
		_ = c.Wait()
	}
}
