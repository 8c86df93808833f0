package durable_test

import (
	"cmp"
	"context"
	"os"
	"os/exec"
	"strconv"
	"testing"
	"time"

	"github.com/stilehost/stile/durable"
)

// crashesEnv is [durable.Options.Crashes] in a process that works on runs.
const crashesEnv = "STILE_TEST_CRASHES"

// crashes is that of this process.
func crashes() (int, error) { return strconv.Atoi(cmp.Or(os.Getenv(crashesEnv), "1000")) }

// poison ends its process.
func poison(ctx context.Context, _ struct{}) (struct{}, error) {
	return durable.Step(ctx, "crash", func(context.Context) (s struct{}, err error) {
		self, err := os.FindProcess(os.Getpid())
		if err == nil {
			err = self.Kill()
		}
		<-ctx.Done()
		return s, err
	}, durable.Repeatable)
}

// innocent is awake for a while.
func innocent(ctx context.Context, _ struct{}) (struct{}, error) {
	return durable.Step(ctx, "work", func(context.Context) (s struct{}, err error) {
		<-time.After(200 * time.Millisecond)
		return s, nil
	}, durable.Repeatable)
}

// TestBesidePoison has runs that are awake whenever another one ends the process. Only that one is parked.
func TestBesidePoison(t *testing.T) {
	s := newStored(t)
	t.Setenv(crashesEnv, "5")
	want := map[string]durable.State{}
	for _, function := range []string{"innocent", "innocent", "poison", "innocent", "innocent"} {
		run, _, err := s.runs.Start(t.Context(), durable.Spec{Function: function})
		if err != nil {
			t.Fatal(err)
		}
		if want[run.Name] = durable.Done; function == "poison" {
			want[run.Name] = durable.Parked
		}
	}
	for left, processes := len(want), 0; left > 0; processes++ {
		if processes == 12 {
			t.Fatalf("%d runs go on after %d processes", left, processes)
		}
		ctx, stop := context.WithTimeout(t.Context(), time.Minute)
		c := exec.CommandContext(ctx, os.Args[0])
		c.Env, c.Stderr = append(os.Environ(), workerEnv+"="+s.dir, "STILE_TEST_CACHE="+s.cacheDir, "STILE_TEST_KEY="+s.keyDir), os.Stderr
		in, err := c.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		ended := make(chan struct{})
		go func() {
			_ = c.Wait()
			close(ended)
		}()
		for over := false; !over; {
			left = 0
			for name := range want {
				run, err := s.runs.Get(t.Context(), name)
				if err != nil {
					t.Fatal(err)
				}
				if !run.State.Final() {
					left++
				}
			}
			if left == 0 {
				_ = in.Close()
				<-ended
			}
			select {
			case <-ended:
				over = true
			case <-time.After(5 * time.Millisecond):
			}
		}
		stop()
	}
	for name, state := range want {
		if run, err := s.runs.Get(t.Context(), name); err != nil || run.State != state {
			t.Errorf("a run that should be %s is %s: %s; %v", state, run.State, run.Reason, err)
		}
	}
}
