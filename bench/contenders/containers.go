package contenders

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/stilehost/stile/bench"
)

// containerised are the contenders that are containers or isolate more strongly.
var containerised = []*bench.Contender{bwrapNode, crunNode, runcNode, gvisor, podman, containerd, docker, dockerBuild}

// engine runs containers by name. Every process that serves a container has the folder of the site in its command line or its
// cgroup.
type engine interface {
	// run runs the tool to its end. hold starts one that stays; it may return before the tool has begun.
	run(ctx context.Context, name string, input []byte) (bench.Answer, error)
	hold(ctx context.Context, name string) error
	// remove ends a container, if there is one.
	remove(ctx context.Context, name string) error
	// daemons are the processes that serve any number of containers. stop ends them.
	daemons() []int
	stop() error
}

// containers is a Holder over an engine.
type containers struct {
	engine
	*site
	named atomic.Int64
}

// name returns a new name. All have the same length, because gVisor confuses a name with a longer one that begins with it.
func (c *containers) name() string { return fmt.Sprintf("%s-%06d", c.mark(), c.named.Add(1)) }

// Run runs a container.
func (c *containers) Run(ctx context.Context, t bench.Trial) (bench.Answer, error) {
	name := c.name()
	answer, err := c.run(ctx, name, t.Input)
	if err != nil {
		_ = c.removeAll(ctx, name) // it may have gone already; Close checks
	}
	return answer, err
}

const atOnce = 4

// Hold starts a few containers at a time.
func (c *containers) Hold(ctx context.Context, n int) (held bench.Held, err error) {
	var names []string
	group, starting := errgroup.WithContext(ctx)
	group.SetLimit(atOnce)
	for range n {
		name := c.name()
		names = append(names, name)
		group.Go(func() error { return c.hold(starting, name) })
	}
	if err = group.Wait(); err == nil {
		err = c.answered(ctx, n)
	}
	release := func() error {
		return errors.Join(c.removeAll(ctx, names...), os.RemoveAll(c.held().files), os.Mkdir(c.held().files, 0o755))
	}
	if err != nil {
		return held, errors.Join(err, release())
	}
	daemons := c.daemons()
	pids := slices.DeleteFunc(processesOf(c.mark()), func(pid int) bool { return slices.Contains(daemons, pid) })
	return bench.Held{Processes: distinct(pids), Daemons: daemons, Release: release}, nil
}

// answered waits until all containers have written an answer.
func (c *containers) answered(ctx context.Context, n int) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for {
		answers, err := filepath.Glob(filepath.Join(c.held().files, "answer-*"))
		if err != nil || len(answers) == n {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%d of %d containers have answered: %w", len(answers), n, ctx.Err())
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// removeAll continues after an error.
func (c *containers) removeAll(ctx context.Context, names ...string) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Minute)
	defer cancel()
	var group errgroup.Group
	group.SetLimit(atOnce)
	for _, name := range names {
		group.Go(func() error { return c.remove(ctx, name) })
	}
	return group.Wait()
}

// Close stops the engine and cleans its site.
func (c *containers) Close() error {
	var err error
	if c.engine != nil {
		err = c.stop()
	}
	return errors.Join(err, clean(c.mark(), c.dir, c.sockets()))
}
