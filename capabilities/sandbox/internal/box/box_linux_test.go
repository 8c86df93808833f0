package box

import (
	"bytes"
	"context"
	"errors"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stilehost/stile/capabilities/sandbox/internal/dockerd"
)

var testLimits = Limits{Memory: 512 << 20, Disk: 512 << 20, Files: 100_000, Processes: 128, CPU: 1}

// docker is a docker of these tests, which the first that needs it starts.
var docker = sync.OnceValues(func() (*dockerd.Server, error) { return dockerd.Start(context.Background(), true, nil) })

// useDocker has this process use the docker of these tests.
func useDocker(t *testing.T) {
	t.Helper()
	s, err := docker()
	if err != nil {
		t.Fatal(err)
	}
	dockerStarted = true
	t.Setenv("DOCKER_HOST", s.Host)
}

var dockerStarted bool

// each runs a test over every runtime.
func each(t *testing.T, test func(t *testing.T, o Options)) {
	t.Helper()
	for _, runtime := range []string{"crun", "runc", "podman", "docker"} {
		t.Run(runtime, func(t *testing.T) {
			if runtime == "docker" {
				useDocker(t)
			}
			test(t, Options{Runtime: runtime})
		})
	}
}

// start makes a box with the programs of this machine.
func start(t *testing.T, o Options, r Root, l Limits) *Box {
	t.Helper()
	if o.Dir == "" {
		o.Dir = t.TempDir()
	}
	b, err := Start(t.Context(), o, r, l)
	if err != nil {
		t.Fatalf("this test needs root, cgroups, user namespaces, and crun, runc, podman and docker.io of Debian: %v", err)
	}
	t.Cleanup(func() {
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	})
	return b
}

type outcome struct {
	Exit
	out, err string
}

func run(t *testing.T, b *Box, args ...string) outcome {
	t.Helper()
	o, err := try(t.Context(), b, "", args...)
	if err != nil {
		t.Fatalf("%q: %v", args, err)
	}
	return o
}

func try(ctx context.Context, b *Box, stdin string, args ...string) (outcome, error) {
	var out, errs bytes.Buffer
	p := Process{Args: args, Output: func(s Stream, part []byte) {
		if s == Stdout {
			out.Write(part)
		} else {
			errs.Write(part)
		}
	}}
	if stdin != "" {
		p.Stdin = strings.NewReader(stdin)
	}
	exit, err := b.Run(ctx, p)
	return outcome{exit, out.String(), errs.String()}, err
}

func sh(t *testing.T, b *Box, script string) outcome {
	t.Helper()
	return run(t, b, "/bin/sh", "-c", script)
}

// TestRun runs commands and ends them, and boxes with them.
func TestRun(t *testing.T) {
	each(t, func(t *testing.T, o Options) {
		for _, o.Storage = range []string{inMemory, onDisk} {
			t.Run(o.Storage, func(t *testing.T) {
				lap := time.Now()
				took := func(what string) {
					t.Logf("%s: %v", what, time.Since(lap))
					lap = time.Now()
				}
				b := start(t, o, Root{}, testLimits)
				took("start")
				t.Log(b.Runtime(), b.Verified())
				for _, c := range b.Verified() {
					if !c.OK {
						t.Errorf("%+v", c)
					}
				}
				lap = time.Now()
				if got := sh(t, b, "echo out; echo err >&2; exit 3"); got.out != "out\n" || got.err != "err\n" || got.Code != 3 {
					t.Errorf("got %+v", got)
				}
				took("a command")
				if got := sh(t, b, "sleep 100 & echo hi"); got.out != "hi\n" || time.Since(lap) > 50*time.Second {
					t.Errorf("got %+v after %v", got, time.Since(lap))
				}
				took("a command that leaves another")
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				killed, err := b.Run(ctx, Process{
					Args:   []string{"/bin/sh", "-c", "trap '' TERM; setsid sh -c 'sleep 100 & sleep 100' & echo x; sleep 100"},
					Output: func(Stream, []byte) { cancel() },
				})
				if err != nil || !killed.Killed || time.Since(lap) > 50*time.Second {
					t.Errorf("got %+v %v after %v", killed, err, time.Since(lap))
				}
				took("a command that is killed")
				if got := sh(t, b, "ps -e -o comm= | grep -c sleep; true"); got.out != "0\n" {
					t.Errorf("%s processes are left", strings.TrimSpace(got.out))
				}
				if o, err := try(t.Context(), b, strings.Repeat("input", 100_000), "cat"); err != nil || o.out != strings.Repeat("input", 100_000) {
					t.Errorf("got %d bytes, %v", len(o.out), err)
				}
				if got := sh(t, b, "exec 2>&1; kill -9 $$"); got.Code != 137 {
					t.Errorf("a signal: %+v", got)
				}
				for problem, p := range map[string]Process{
					noProgram:     {Args: []string{"nosuch"}},
					notExecutable: {Args: []string{"/etc/passwd"}},
					noFolder:      {Args: []string{"true"}, Dir: "/work/nosuch"},
				} {
					p.Output = func(Stream, []byte) {} // of the runtime, perhaps
					failed := (*StartError)(nil)
					if _, err := b.Run(t.Context(), p); !errors.As(err, &failed) || failed.Problem != problem {
						t.Errorf("%v: %v, want %s", p.Args, err, problem)
					}
				}
				var env strings.Builder
				exit, err := b.Run(t.Context(), Process{
					Args: []string{"/usr/bin/env"}, Env: []string{"A=a\nb", "HOME=/work"}, Output: func(_ Stream, part []byte) { env.Write(part) },
				})
				if err != nil || exit.Code != 0 || !strings.Contains(env.String(), "A=a\nb\n") || !strings.Contains(env.String(), "HOME=/work\n") {
					t.Errorf("%+v, %v: %q", exit, err, env.String())
				}
				lap = time.Now()
				if err := b.Close(); err != nil {
					t.Error(err)
				}
				took("close")
			})
		}
	})
}

// TestFreeze has commands stand still, and one that is started meanwhile begin afterwards.
func TestFreeze(t *testing.T) {
	each(t, func(t *testing.T, o Options) {
		b := start(t, o, Root{}, testLimits)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 2)
		begun := make(chan struct{})
		first := sync.OnceFunc(func() { close(begun) })
		go func() {
			_, err := b.Run(ctx, Process{
				Args: []string{"/bin/sh", "-c", "echo; while :; do echo x >> /work/grows; done"}, Output: func(Stream, []byte) { first() },
			})
			done <- err
		}()
		<-begun
		for range 3 {
			if err := b.Freeze(); err != nil {
				t.Fatal(err)
			}
			go func() {
				_, err := try(ctx, b, "", "/bin/sh", "-c", "echo x > /work/later")
				done <- err
			}()
			size := func() int64 {
				st, err := b.Tree().Stat("grows")
				if err != nil || st == nil {
					return 0
				}
				return st.Size
			}
			before := size()
			for range 20 {
				if now := size(); now != before {
					t.Fatalf("the file grows from %d to %d bytes while the box stands still", before, now)
				}
				if st, err := b.Tree().Stat("later"); err != nil || st != nil {
					t.Fatalf("a command began while the box stands still: %+v, %v", st, err)
				}
				runtime.Gosched()
			}
			if err := b.Thaw(); err != nil {
				t.Fatal(err)
			}
			if err := <-done; err != nil {
				t.Fatal(err)
			}
			if st, err := b.Tree().Stat("later"); err != nil || st == nil {
				t.Fatalf("the command did not begin afterwards: %v", err)
			}
			if err := b.Tree().Remove("later"); err != nil {
				t.Fatal(err)
			}
		}
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}
