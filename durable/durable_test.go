package durable_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"sync/atomic"
	"testing"
	"testing/fstest"
	"time"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/capabilities/clock"
	httpcap "github.com/stilehost/stile/capabilities/http"
	"github.com/stilehost/stile/capabilities/kv"
	"github.com/stilehost/stile/capabilities/runs"
	"github.com/stilehost/stile/capabilities/signals"
	"github.com/stilehost/stile/capabilities/tools"
	"github.com/stilehost/stile/capabilities/workspace"
	"github.com/stilehost/stile/durable"
	"github.com/stilehost/stile/host"
	"github.com/stilehost/stile/internal/cache/cachetest"
	"github.com/stilehost/stile/toolchain"
)

// The test binary starts itself to work on a store, so that it can be killed.
const workerEnv = "STILE_TEST_WORKER"

func TestMain(m *testing.M) {
	if dir := os.Getenv(workerEnv); dir != "" {
		if err := workHere(dir); err != nil {
			fmt.Fprintln(os.Stderr, "worker:", err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

var key = bytes.Repeat([]byte{7}, durable.KeySize)

// shop is what a process has: the host, a bucket, and the runs.
type shop struct {
	host    *host.Host
	bucket  *kv.Store
	runs    *durable.Runs
	mail    *mail
	box     *tools.Toolbox
	starter runs.Starter
	files   *workspace.Store // with serverEnv
	ahead   atomic.Int64     // how far the wall clock is set forward
}

func open(ctx context.Context, dir, cacheDir, keyDir string, change ...func(*durable.Options)) (*shop, error) {
	h, err := host.New(ctx, host.Options{CacheDir: cacheDir, KeyDir: keyDir})
	if err != nil {
		return nil, err
	}
	bucket, err := kv.Open(ctx, filepath.Join(dir, "kv.db"), kv.Options{})
	if err != nil {
		return nil, err
	}
	s := &shop{host: h, bucket: bucket, mail: &mail{}}
	var web *httpcap.Grant
	if server := os.Getenv(serverEnv); server != "" {
		if web, err = webOf(server); err != nil {
			return nil, err
		}
		if s.files, err = workspace.Open(ctx, filepath.Join(dir, "files.db"), workspace.Options{}); err != nil {
			return nil, err
		}
	}
	most, err := crashes()
	if err != nil {
		return nil, err
	}
	options := durable.Options{
		Dir: dir, Key: key, Host: h, Now: s.now, URL: "https://signals.example/", Functions: map[string]durable.Function{"lines": durable.Func(lines), "poison": durable.Func(poison), "innocent": durable.Func(innocent)}, Idle: 20 * time.Millisecond, Crashes: most, Logger: slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn})),
		Request: func(_ context.Context, run durable.Info) (durable.Authority, error) {
			env := host.Env{"clock": clock.By(s.now), "store": bucket.Bucket(run.Target), "mail": s.mail, "signals": &signals.Mailboxes{Now: s.now, Reachable: true}, "signed": &signals.Mailboxes{Now: s.now, Reachable: true, Verify: abi.Verify{Secret: "hook", As: "github"}}, "runs": &runs.Control{Starter: s.starter}}
			if s.box != nil {
				env["tools"] = s.box
			}
			if web != nil {
				env["web"], env["files"] = web, s.files.Workspace(run.Target)
			}
			return durable.Authority{Request: host.Request{Env: env, Limits: host.Limits{Pending: 200}}}, nil
		},
	}
	for _, c := range change {
		c(&options)
	}
	s.runs, err = durable.Open(ctx, options)
	if err != nil {
		return nil, err
	}
	return s, s.haveFamily(dir)
}

// now is the wall clock.
func (s *shop) now() time.Time { return time.Now().Add(time.Duration(s.ahead.Load())) }

// set sets the wall clock to what it would be, and so much more.
func (s *shop) set(ahead time.Duration) { s.ahead.Store(int64(ahead)) }

func (s *shop) close() error {
	if err := s.runs.Close(); err != nil {
		return err
	}
	if err := s.bucket.Close(); err != nil {
		return err
	}
	if s.files != nil {
		if err := s.files.Close(); err != nil {
			return err
		}
	}
	return s.host.Close()
}

// workHere works on a store until the standard input ends.
func workHere(dir string) error {
	s, err := open(context.Background(), dir, os.Getenv("STILE_TEST_CACHE"), os.Getenv("STILE_TEST_KEY"))
	if err != nil {
		return err
	}
	s.runs.Work()
	fmt.Println("works")
	_, _ = io.Copy(io.Discard, os.Stdin)
	return s.close()
}

// worker is another process that works on a store.
func worker(t *testing.T, dir, cacheDir, keyDir string) (kill func()) {
	t.Helper()
	_, kill = workerProcess(t, dir, cacheDir, keyDir)
	return kill
}

func workerProcess(t *testing.T, dir, cacheDir, keyDir string) (p *os.Process, kill func()) {
	t.Helper()
	c := exec.CommandContext(context.WithoutCancel(t.Context()), os.Args[0])
	c.Env = append(os.Environ(), workerEnv+"="+dir, "STILE_TEST_CACHE="+cacheDir, "STILE_TEST_KEY="+keyDir)
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
	return c.Process, func() {
		_ = c.Process.Kill()
		_ = in.Close()
		_ = c.Wait()
	}
}

// program builds a tool.
func program(t *testing.T, s *shop, cacheDir, keyDir, body string) durable.Spec {
	t.Helper()
	chain, err := toolchain.New(t.Context(), s.host, toolchain.Options{CacheDir: cacheDir, KeyDir: keyDir})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = chain.Close() }()
	text := `import { extension } from "stile";
export default extension({ tools: { t: { description: "test", input: { type: "object" }, run: async (input: any, env: any) => {` + body + `} } } });`
	wasm, err := chain.Assemble(t.Context(), toolchain.Source{FS: fstest.MapFS{"tool.ts": {Data: []byte(text)}}, Entry: "tool.ts"}, false)
	if err != nil {
		t.Fatal(err)
	}
	name, engine := chain.Engine()
	module, err := engine(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return durable.Spec{Component: durable.CodeOf(wasm), Modules: durable.Modules{name: durable.CodeOf(module).Read}, Tool: "t"}
}

func bytesOf(t *testing.T, read func(context.Context) ([]byte, error)) []byte {
	t.Helper()
	wasm, err := read(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return wasm
}

// TestKilled kills the process that works on runs again and again. Every run ends, and every increment comes about once.
func TestKilled(t *testing.T) {
	dir := t.TempDir()
	cacheDir, keyDir := cachetest.Dirs(t)
	s, err := open(t.Context(), dir, cacheDir, keyDir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.close(); err != nil {
			t.Error(err)
		}
	})
	spec := program(t, s, cacheDir, keyDir, `
		const sums = [];
		for (let i = 0; i < 100; i++) {
			sums.push(await env.store.increment("n", 1));
			if (i % 25 == 24) await env.clock.sleep(60);
		}
		return { last: sums.at(-1), distinct: new Set(sums).size };`)
	const runs = 20
	var names []string
	for i := range runs {
		spec.Target = fmt.Sprint("bucket", i)
		info, _, err := s.runs.Start(t.Context(), spec)
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, info.Name)
	}
	kills, next := 0, names[0]
	for ended := 0; ended < runs; kills++ {
		kill := worker(t, dir, cacheDir, keyDir)
		ctx, cancel := context.WithTimeout(t.Context(), time.Duration(rand.IntN(200+20*kills))*time.Millisecond)
		_, _ = s.runs.Wait(ctx, next)
		cancel()
		kill()
		ended = 0
		for _, name := range names {
			r, err := s.runs.Get(t.Context(), name)
			if err != nil {
				t.Fatal(err)
			}
			if r.State.Final() {
				ended++
			} else {
				next = name
			}
		}
		if kills > 400 {
			t.Fatalf("%d of %d have ended", ended, runs)
		}
	}
	t.Logf("killed %d times", kills)
	worker(t, dir, cacheDir, keyDir)() // its file stays until somebody opens the store
	again, err := open(t.Context(), dir, cacheDir, keyDir)
	if err != nil {
		t.Fatal(err)
	}
	if left, err := filepath.Glob(filepath.Join(dir, "holder-*")); err != nil || len(left) != 2 {
		t.Errorf("two processes have the files %q, %v", left, err)
	}
	if err := again.close(); err != nil {
		t.Error(err)
	}
	for i, name := range names {
		r, err := s.runs.Result(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		value, err := s.bucket.Bucket(fmt.Sprint("bucket", i)).Get(t.Context(), "n")
		if r.State != durable.Done || string(r.Output) != `{"last":100,"distinct":100}` || err != nil || *value != "100" {
			t.Errorf("run %s: %s %s %+v %s; the counter is %v, %v", name, r.State, r.Output, r.Outcome, r.Reason, *value, err)
		}
	}
}
