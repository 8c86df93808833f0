package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"

	"github.com/stilehost/stile/bench"
)

type reportCommand struct {
	Dir string `arg:"" help:"Folder that a run has written to." placeholder:"DIR"`
}

// Help implements kong's help provider.
func (reportCommand) Help() string {
	return `It writes report.md and plots into the folder, of what a run has written there, and prints the path of report.md. A run does so when it ends; this draws them again, also while one goes on.

Examples:

  stile bench report /tmp/bench`
}

// Run implements the command.
func (c *reportCommand) Run(s *streams) error { return writeReport(s, c.Dir) }

func writeReport(s *streams, dir string) error {
	path, err := bench.Report(dir)
	if err != nil {
		return unreadable(err)
	}
	_, err = fmt.Fprintln(s.out, path)
	return err
}

// unreadable reports that the output of a run cannot be used.
func unreadable(err error) error {
	if _, wrong := errors.AsType[*bench.LineError](err); wrong || errors.Is(err, fs.ErrNotExist) {
		return &usageError{err}
	}
	return err
}

type compareCommand struct {
	A    string `arg:"" help:"Folder of a run." placeholder:"A"`
	B    string `arg:"" help:"Folder of a later one." placeholder:"B"`
	JSON bool   `name:"json" help:"Print all figures as JSON."`
}

// Help implements kong's help provider.
func (compareCommand) Help() string {
	return `A figure has changed when its ratio is beyond noise: by a bootstrap over the rounds of both runs and by more than 3%, or by more than 10% where there are no rounds. Run both on the same machine, with nothing else on it.

Examples:

  stile bench compare /tmp/before /tmp/after
  stile bench compare /tmp/before /tmp/after --json | jq '.changes[] | select(.changed)'`
}

// Run implements the command.
func (c *compareCommand) Run(s *streams) error {
	comparison, err := bench.Compare(c.A, c.B)
	if err != nil {
		return unreadable(err)
	}
	if c.JSON {
		e := json.NewEncoder(s.out)
		e.SetEscapeHTML(false)
		e.SetIndent("", "  ")
		return e.Encode(comparison)
	}
	_, err = io.WriteString(s.out, comparison.String())
	return err
}
