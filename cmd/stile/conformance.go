package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/stilehost/stile/conformance"
	"github.com/stilehost/stile/conformance/adapter"
)

type conformanceCommand struct {
	Host    string   `placeholder:"COMMAND" help:"Program to test and its arguments, with spaces between them. Default: this host."`
	Section string   `placeholder:"NAME" help:"Run the cases of one section: denial, values, handles, lifecycle, limits, http, workspace, browser, isolation or determinism."`
	Case    []string `placeholder:"TEXT" help:"Run the cases whose names contain this text. Can be repeated."`
	asJSON
}

// Help implements kong.HelpProvider.
func (*conformanceCommand) Help() string {
	return `The command tests a host of stile:extension. It starts the host program, sends it calls as JSON lines on stdin, and compares what it answers, and what arrived at servers and in folders of the command, with what each case expects. conformance/README.md describes the protocol.

The table shows the cases that did not pass, and the score of each section. The exit code is 1 if a case failed, or passed although the host is expected to fail it, or if the host program died, hung or broke the protocol.

Examples:

    stile conformance
    stile conformance --section denial
    stile conformance --host 'node conformance/jco/host.mjs' --json
    stile conformance --case redirect --case rebinding`
}

// nonconformingError reports a host that failed cases.
type nonconformingError struct {
	host string
	n    int
}

func (e *nonconformingError) Error() string {
	return fmt.Sprintf("the host %s failed %s", e.host, counted(e.n, "case"))
}

// Run implements the command.
func (c *conformanceCommand) Run(ctx context.Context, s *streams) (err error) {
	command := strings.Fields(c.Host)
	if len(command) == 0 {
		if command = itself("conformance-host"); command == nil {
			return errors.New("the system does not say which program this is; name it with --host")
		}
	}
	n, err := openSession(ctx, s, sessionOptions{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, n.Close()) }()
	tools, err := n.toolchain(ctx)
	if err != nil {
		return err
	}
	folder := filepath.Join(n.cache, "conformance")
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return err
	}
	o := conformance.Options{Host: command, Section: c.Section, Toolchain: tools, Folder: folder}
	if len(c.Case) > 0 {
		o.Match = func(name string) bool {
			for _, text := range c.Case {
				if strings.Contains(name, text) {
					return true
				}
			}
			return false
		}
	}
	if c.Section != "" {
		if err := conformance.CheckSection(c.Section); err != nil {
			return usagef("--section: %w", err)
		}
	}
	last := time.Now()
	o.Progress = func(done, of int, name string) {
		if s.interactive() && time.Since(last) > time.Second {
			last = time.Now()
			s.say("%d of %d: %s", done, of, name)
		}
	}
	report, err := conformance.Run(ctx, o)
	if err != nil {
		return err
	}
	if len(report.Cases) == 0 {
		return usagef("no case has such a name")
	}
	if c.JSON {
		err = printJSON(s.out, report)
	} else {
		_, err = io.WriteString(s.out, report.Table())
	}
	if wrong := report.Wrong(); err == nil && wrong > 0 {
		err = &nonconformingError{report.Host, wrong}
	}
	return err
}

// conformanceHostCommand is this host as the suite tests it. Stile starts itself for it.
type conformanceHostCommand struct {
	Without []string `help:"Kinds of capability that this host does not have."`
}

// Run implements the command.
func (c *conformanceHostCommand) Run(ctx context.Context, s *streams) (err error) {
	n, err := openSession(ctx, s, sessionOptions{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, n.Close()) }()
	folder, err := os.MkdirTemp("", "stile-conformance-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	return adapter.Serve(ctx, s.in, s.out, adapter.Options{Host: n.host, Folder: folder, Version: readVersions().Stile, Browser: n.browser, Without: c.Without})
}
