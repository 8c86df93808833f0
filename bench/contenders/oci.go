package contenders

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"

	"github.com/stilehost/stile/bench"
)

// oci is a low-level runtime, through the command line that all of them share.
type oci struct {
	*site
	args []string
}

// openOCI prepares a runtime that is called with these arguments.
func openOCI(ctx context.Context, w *bench.Workbench, task bench.Task, name string, args ...string) (bench.Runner, error) {
	return openContainers(ctx, w, task, name, func(s *site) (engine, error) {
		return &oci{s, append(args, "--root", filepath.Join(s.dir, "state"))}, nil
	})
}

func (o *oci) command(ctx context.Context, args ...string) *exec.Cmd {
	return o.w.Command(ctx, o.dir, o.args[0], append(slices.Clip(o.args[1:]), args...)...)
}

func (o *oci) run(ctx context.Context, name string, input []byte) (bench.Answer, error) {
	bundle, err := o.writeBundle(name, o.once())
	if err != nil {
		return bench.Answer{}, err
	}
	answer, err := bench.Pipe(o.command(ctx, "run", "--bundle", bundle, name), input)
	return answer, errors.Join(err, os.RemoveAll(bundle))
}

// hold gives the container none of our pipes, which it would keep open. The runtime's output goes to a file.
func (o *oci) hold(ctx context.Context, name string) error {
	bundle, err := o.writeBundle(name, o.held())
	if err != nil {
		return err
	}
	said, err := os.Create(filepath.Join(bundle, "said"))
	if err != nil {
		return err
	}
	defer said.Close()
	cmd := o.command(ctx, "run", "--detach", "--bundle", bundle, name)
	cmd.Stderr = said
	if err := cmd.Run(); err != nil {
		message, _ := os.ReadFile(said.Name())
		return fmt.Errorf("%s: %w: %s", o.args[0], err, message)
	}
	return nil
}

func (o *oci) remove(ctx context.Context, name string) error {
	return errors.Join(bench.Do(o.command(ctx, "delete", "--force", name)), os.RemoveAll(filepath.Join(o.dir, "bundles", name)))
}

func (*oci) daemons() []int { return nil }
func (*oci) stop() error    { return nil }
