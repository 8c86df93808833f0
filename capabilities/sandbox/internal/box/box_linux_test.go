package box

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"
	"time"
)

var testLimits = Limits{Memory: 512 << 20, Disk: 512 << 20, Files: 100_000, Processes: 128, CPU: 1}

// start makes a box with the programs of this machine.
func start(t *testing.T, o Options, r Root, l Limits) *Box {
	t.Helper()
	if o.Dir == "" {
		o.Dir = t.TempDir()
	}
	b, err := Start(t.Context(), o, r, l)
	if err != nil {
		t.Fatalf("this test needs root, runc or crun, cgroups, and user namespaces: %v", err)
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

func TestRun(t *testing.T) {
	for _, runtime := range []string{"crun", "runc"} {
		for _, storage := range []string{"memory", "disk"} {
			t.Run(runtime+" "+storage, func(t *testing.T) {
				began := time.Now()
				b := start(t, Options{Runtime: runtime, Storage: storage}, Root{}, testLimits)
				t.Logf("start: %v", time.Since(began))
				t.Log(b.Verified())
				began = time.Now()
				got := sh(t, b, "echo out; echo err >&2; exit 3")
				t.Logf("exec: %v", time.Since(began))
				if got.out != "out\n" || got.err != "err\n" || got.Code != 3 {
					t.Errorf("got %+v", got)
				}
				began = time.Now()
				got = sh(t, b, "sleep 100 & echo hi")
				if got.out != "hi\n" || time.Since(began) > 5*time.Second {
					t.Errorf("got %+v after %v", got, time.Since(began))
				}
				ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
				defer cancel()
				began = time.Now()
				o, err := try(ctx, b, "", "/bin/sh", "-c", "trap '' TERM; setsid sh -c 'sleep 100 & sleep 100' & echo x; sleep 100")
				if err != nil || !o.Killed || time.Since(began) > 5*time.Second {
					t.Errorf("got %+v %v after %v", o, err, time.Since(began))
				}
				if o, err := try(t.Context(), b, "input", "cat"); err != nil || o.out != "input" {
					t.Errorf("got %+v, %v", o, err)
				}
				if _, err := try(t.Context(), b, "", "nosuch"); err == nil || !strings.Contains(err.Error(), "no such program") {
					t.Errorf("got %v", err)
				}
				fmt.Println(sh(t, b, "cat /proc/self/cgroup"))
				began = time.Now()
				if err := b.Close(); err != nil {
					t.Error(err)
				}
				t.Logf("close: %v", time.Since(began))
			})
		}
	}
}
