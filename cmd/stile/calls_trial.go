package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/stilehost/stile/extension/trial"
)

type callsTestCommand struct {
	ID int64 `arg:"" complete:"call" help:"Number of the recording."`
	alwaysJSON
}

// Help implements kong.HelpProvider.
func (*callsTestCommand) Help() string {
	return `The output is one entry for "tests" of the manifest: the input, the result, and the answers of the bindings. Read it before you add it to a manifest, because it contains what the call read. It passes with the same extension: stile ext add runs it before activation, and stile ext test runs it again.

The command fails, and says why, if the call used something that a test cannot answer: other tools, more than 64 KiB of random numbers, binary data, answers that the call did not read to the end, and answers too long to record.

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
