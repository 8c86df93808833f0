package durable_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stilehost/stile/durable"
)

// pausing is a server that stops the process which sends it the first request for "pause", before it answers.
type pausing struct {
	mu      sync.Mutex
	process *os.Process
	paused  chan struct{}
	seen    []string // path, body and key of each request
}

func (p *pausing) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.seen = append(p.seen, fmt.Sprint(r.URL.Path, " ", string(body), " ", r.Header.Get("Idempotency-Key")))
	if string(body) == "pause" && p.process != nil {
		if err := p.process.Signal(syscall.SIGSTOP); err == nil {
			var status syscall.WaitStatus // it stops at some time after the signal
			if _, err := syscall.Wait4(p.process.Pid, &status, syscall.WUNTRACED, nil); err == nil && status.Stopped() {
				close(p.paused)
			}
		}
		p.process = nil
	}
	_, _ = fmt.Fprint(w, string(body))
}

// requests returns the requests with a body, as the server saw them.
func (p *pausing) requests(body string) (found []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, one := range p.seen {
		if body == "" || strings.Contains(one, " "+body+" ") {
			found = append(found, one)
		}
	}
	return found
}

// TestPaused stops a process while a request of its run is on its way, and lets it go on when another process has carried the run to its end. It then does nothing more. The request
// that was on its way is the only one that the server may see twice, with the key that it had; without a key, the run was told that it may have happened.
func TestPaused(t *testing.T) {
	for _, path := range []string{"/keyed", "/plain"} {
		t.Run(path, func(t *testing.T) {
			p := &pausing{paused: make(chan struct{})}
			server := httptest.NewServer(p)
			t.Cleanup(server.Close)
			t.Setenv(serverEnv, server.URL)
			s := newStored(t)
			spec := program(t, s.shop, s.cacheDir, s.keyDir, `
				const post = async (path: string, body: string) => (await env.web.fetch(input.url + path, { method: "POST", body })).text();
				const got = [];
				for (const body of ["before", "pause", "keyed", "plain", "last"]) {
					try { got.push(await post(body === "plain" ? "/plain" : body === "pause" ? input.path : "/keyed", body)); } catch (e: any) { got.push(e.code); }
					await env.store.increment("n", 1);
				}
				return got.join(" ");`)
			spec.Input = fmt.Appendf(nil, `{"url":%q,"path":%q}`, server.URL, path)
			process, end := workerProcess(t, s.dir, s.cacheDir, s.keyDir)
			defer end()
			p.mu.Lock()
			p.process = process
			p.mu.Unlock()
			run, _, err := s.runs.Start(t.Context(), spec)
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
			defer cancel()
			select {
			case <-p.paused:
			case <-ctx.Done():
				t.Fatal("the run does not come to the request")
			}
			s.runs.Work()
			r, err := s.runs.Wait(ctx, run.Name)
			want, arrived := `"before pause keyed plain last"`, 2
			if path == "/plain" {
				want, arrived = `"before interrupted keyed plain last"`, 1
			}
			if err != nil || string(r.Output) != want {
				t.Errorf("got %s %s %v, %v", r.State, r.Output, r.Err(), err)
			}
			made, err := s.runs.Latest(ctx, run.Name)
			if err != nil {
				t.Fatal(err)
			}
			uncertain := slices.DeleteFunc(made, func(o durable.Operation) bool { return o.State != durable.Uncertain })
			if told := path == "/plain"; told != (len(uncertain) == 1) || told && !strings.Contains(uncertain[0].Arguments, "/plain") {
				t.Errorf("operations that may have happened: %+v", uncertain)
			}
			before := len(p.requests(""))
			if err := process.Signal(syscall.SIGCONT); err != nil {
				t.Fatal(err)
			}
			second := program(t, s.shop, s.cacheDir, s.keyDir, `return await env.store.increment("m", 1);`)
			s.stop(t) // so that the process that went on takes it, and has looked at its runs before
			other, _, err := s.runs.Start(ctx, second)
			if err != nil {
				t.Fatal(err)
			}
			if r, err := s.runs.Wait(ctx, other.Name); err != nil || r.State != durable.Done {
				t.Fatalf("got %s %v, %v", r.State, r.Err(), err)
			}
			if after := len(p.requests("")); after != before {
				t.Errorf("the process that went on sent %d requests", after-before)
			}
			if got := p.requests("pause"); len(got) != arrived || got[0] != got[len(got)-1] {
				t.Errorf("the server saw %q", got)
			}
			for _, body := range []string{"before", "keyed", "plain", "last"} {
				if got := p.requests(body); len(got) != 1 {
					t.Errorf("the server saw %q", got)
				}
			}
			if n, err := s.bucket.Bucket("").Get(ctx, "n"); err != nil || *n != "5" {
				t.Errorf("the counter is %v, %v", *n, err)
			}
		})
	}
}

// stop has this process work on no runs.
func (s *stored) stop(t *testing.T) {
	t.Helper()
	if err := s.close(); err != nil {
		t.Fatal(err)
	}
	s.reopen(t)
}
