package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/stilehost/stile/extension/trial"
)

type callsTestCommand struct {
	ID int64 `arg:"" help:"Number of the recording."`
}

// Help implements kong.HelpProvider.
func (*callsTestCommand) Help() string {
	return `What is printed is one entry for "tests" of the manifest: input, result, and as answers what http, kv and workspace bindings gave. Read it before it goes into a manifest: it has what the call read. With the same extension it passes: stile ext add runs it before activation, and stile ext test again.

What a test cannot answer is an error, and named: other tools, random numbers, what is not text, answers that the call did not read to their end, and what is too long to be recorded.

Examples:

    stile calls --tool open_issue
    stile calls test 12 > test.json    # goes into "tests": [ ... ] of manifest.json
    stile ext add ./github`
}

// Run implements the command.
func (c *callsTestCommand) Run(ctx context.Context, s *streams) (err error) {
	r, store, err := recorded(ctx, c.ID)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	test, err := trial.FromRecording(r)
	if err != nil {
		return fmt.Errorf("recording %d: %w", c.ID, err)
	}
	return printJSON(s.out, test)
}
