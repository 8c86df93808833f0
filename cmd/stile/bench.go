package main

import (
	"context"
	"errors"
	"os"
	"os/exec"
)

// benchCommand starts stile-bench, which is separate because its plots and fonts would be a tenth of this program.
type benchCommand struct {
	Args []string `arg:"" optional:"" passthrough:"" placeholder:"run|report|compare ..." help:"What to do; stile bench --help says more."`
}

// Help implements kong.HelpProvider.
func (*benchCommand) Help() string {
	return `Examples:

    stile bench run --quick --out /tmp/bench
    stile bench run --only hosts --host 'node conformance/jco/host.mjs' --out /tmp/bench
    stile bench report /tmp/bench
    stile bench compare /tmp/before /tmp/after`
}

// Run implements the command.
func (c *benchCommand) Run(ctx context.Context, s *streams) error {
	program, err := findHelper(benchHelper)
	if err != nil {
		return err
	}
	set, err := readSettings()
	if err != nil {
		return err
	}
	cmd := helper(ctx, program, c.Args...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = s.in, s.out, s.err
	cmd.Env = append(os.Environ(), "STILE_CACHE="+set.cache, "STILE_ENGINE="+set.engine)
	err = cmd.Run()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok && exit.ExitCode() > 0 {
		return &saidError{exit.ExitCode()}
	}
	return err
}

// saidError reports a failure that a helper program has already reported to the user.
type saidError struct{ code int }

func (*saidError) Error() string { return "a helper program failed" }
