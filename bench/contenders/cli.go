package contenders

import (
	"context"
	"os/exec"
	"slices"
	"strconv"

	"github.com/stilehost/stile/bench"
)

// cli runs containers with a command like Docker's.
type cli struct {
	*site
	args []string // arguments of every call, the command first
	env  []string
	own  []string // arguments of every `run`
}

func (c *cli) command(ctx context.Context, args ...string) *exec.Cmd {
	cmd := c.w.Command(ctx, c.dir, c.args[0], append(slices.Clip(c.args[1:]), args...)...)
	cmd.Env = append(append(cmd.Env, "TMPDIR="+c.dir), c.env...)
	return cmd
}

// start is a command that starts a container, with the limits that users set.
func (c *cli) start(ctx context.Context, name, image string, p plan, more ...string) *exec.Cmd {
	args := append([]string{
		"run", "--name", name, "--network", "none", "--read-only", "--cap-drop", "ALL", "--security-opt", "no-new-privileges",
		"--memory", strconv.Itoa(containerMemory), "--pids-limit", strconv.Itoa(containerPIDs), "--cgroup-parent", "/" + c.mark(),
	}, c.own...)
	if p.files != "" {
		args = append(args, "--volume", p.files+":"+filesDir)
	}
	args = append(append(args, more...), image)
	return c.command(ctx, append(args, p.command...)...)
}

// run passes the input as an argument, because attaching stdin costs more.
func (c *cli) run(ctx context.Context, name string, input []byte) (bench.Answer, error) {
	p := c.once()
	p.command = append(slices.Clip(p.command), string(input))
	return bench.Pipe(c.start(ctx, name, imageName, p, "--rm"), nil)
}

func (c *cli) hold(ctx context.Context, name string) error {
	return bench.Do(c.start(ctx, name, imageName, c.held(), "--detach"))
}

func (c *cli) remove(ctx context.Context, name string) error {
	return bench.Do(c.command(ctx, "rm", "--force", name))
}

func (*cli) daemons() []int { return nil }
func (*cli) stop() error    { return nil }
