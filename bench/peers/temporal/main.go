// Command temporal keeps runs with Temporal, for the benchmark of durable runs. It starts the server that TEMPORAL names, with its state in SQLite,
// on the loopback ports PORT and PORT+1.
package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/stilehost/stile/bench/peers/protocol"
)

const queue = "bench"

type peer struct {
	client client.Client
	dir    string
}

func step(context.Context) (int64, error) { return protocol.Step(), nil }

func work(ctx workflow.Context, w protocol.Work) (int, error) {
	ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{StartToCloseTimeout: time.Minute})
	made := 0
	steps := func(n int) error {
		for range n {
			if err := workflow.ExecuteActivity(ctx, step).Get(ctx, nil); err != nil {
				return err
			}
			made++
		}
		return nil
	}
	if err := steps(w.Before); err != nil {
		return 0, err
	}
	if w.Wait > 0 {
		if err := workflow.Sleep(ctx, time.Duration(w.Wait)*time.Millisecond); err != nil {
			return 0, err
		}
	}
	err := steps(w.After)
	return made, err
}

// Start implements [protocol.Peer].
func (p *peer) Start(ctx context.Context, id string, w protocol.Work) error {
	_, err := p.client.ExecuteWorkflow(ctx, client.StartWorkflowOptions{ID: id, TaskQueue: queue}, work, w)
	return err
}

// End implements [protocol.Peer].
func (p *peer) End(ctx context.Context, id string, _ protocol.Work) (n int, err error) {
	err = p.client.GetWorkflow(ctx, id, "").Get(ctx, &n)
	return n, err
}

// Size implements [protocol.Peer].
func (p *peer) Size(context.Context) (int64, error) { return protocol.Folder(p.dir) }

// silent logs nothing.
type silent struct{}

func (silent) Debug(string, ...any) {}
func (silent) Info(string, ...any)  {}
func (silent) Warn(string, ...any)  {}
func (silent) Error(string, ...any) {}

func main() {
	protocol.Serve(func(ctx context.Context, dir string) (protocol.Peer, error) {
		port, err := strconv.Atoi(os.Getenv("PORT"))
		if err != nil {
			return nil, err
		}
		server := exec.CommandContext(ctx, os.Getenv("TEMPORAL"), "server", "start-dev", "--headless", "--ip", "127.0.0.1", "--port", strconv.Itoa(port), "--http-port", strconv.Itoa(port+1), //nolint:gosec // of this benchmark
			"--db-filename", filepath.Join(dir, "temporal.db"), "--log-level", "never", "--sqlite-pragma", "journal_mode=wal", "--sqlite-pragma", "synchronous=full")
		server.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
		if err := server.Start(); err != nil {
			return nil, err
		}
		var c client.Client
		for range 600 {
			if c, err = client.Dial(client.Options{HostPort: fmt.Sprintf("127.0.0.1:%d", port), Logger: silent{}}); err == nil {
				break
			}
			time.Sleep(50 * time.Millisecond)
		}
		if err != nil {
			return nil, err
		}
		w := worker.New(c, queue, worker.Options{MaxConcurrentWorkflowTaskPollers: 8, MaxConcurrentActivityTaskPollers: 8})
		w.RegisterWorkflow(work)
		w.RegisterActivity(step)
		if err := w.Start(); err != nil {
			return nil, err
		}
		return &peer{c, dir}, nil
	})
}
