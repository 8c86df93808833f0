// Command stile-bench measures Stile beside containers and other isolates. `stile bench` starts it.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/alecthomas/kong"
	"golang.org/x/term"

	"github.com/stilehost/stile/bench"
	"github.com/stilehost/stile/bench/contenders"
	"github.com/stilehost/stile/conformance/protocol"
	"github.com/stilehost/stile/internal/printable"
)

func main() {
	os.Exit(run(os.Args[1:], &streams{os.Stdin, os.Stdout, os.Stderr}))
}

// cli is the command line. Users type `stile bench`.
type cli struct {
	Run     runCommand     `cmd:"" help:"Measure what is installed here."`
	Report  reportCommand  `cmd:"" help:"Write tables and plots of what a run measured."`
	Compare compareCommand `cmd:"" help:"Say what changed from one run to another."`
	Hold    holdCommand    `cmd:"" hidden:"" help:"Keep instances until stdin ends."`
	Agents  agentsCommand  `cmd:"" hidden:"" help:"Have agents until stdin ends."`
}

// streams are a command's input and output.
type streams struct {
	in  io.Reader
	out io.Writer
	err io.Writer
}

// say prints a line for people. If stderr cannot be written to, nobody can be told.
func (s *streams) say(format string, args ...any) { _, _ = fmt.Fprintf(s.err, format+"\n", args...) }

// interactive reports whether stderr is a terminal.
func (s *streams) interactive() bool {
	f, ok := s.err.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// run executes one command line and returns the exit code.
func run(args []string, s *streams) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	defer context.AfterFunc(ctx, stop)() // a second signal ends the process at once

	parser, err := kong.New(&cli{}, kong.Name("stile bench"), kong.Description("Measure Stile beside containers and other isolates."), kong.Writers(s.out, s.err), kong.Bind(s),
		kong.Vars{"measurements": strings.Join(bench.Measurements, ", ")}, kong.BindTo(ctx, (*context.Context)(nil)), kong.ConfigureHelp(kong.HelpOptions{WrapUpperBound: 100}))
	if err != nil {
		return s.report(err)
	}
	command, err := parser.Parse(args)
	if err != nil {
		return s.report(misuse(err))
	}
	err = command.Run()
	if err != nil && ctx.Err() != nil {
		s.say(`{"error":{"kind":"interrupted","message":"interrupted"}}`)
		return 130
	}
	return s.report(err)
}

// misuse says what is wrong with a command line, and which help to read.
func misuse(err error) error {
	command := "stile bench"
	if wrong, ok := errors.AsType[*kong.ParseError](err); ok && wrong.Context != nil && wrong.Context.Selected() != nil {
		command = wrong.Context.Selected().FullPath()
	}
	return &usageError{fmt.Errorf("%w; see %s --help", err, command)}
}

// usageError reports a command line, or a file named on it, that cannot be used.
type usageError struct{ error }

func (e *usageError) Unwrap() error { return e.error }

// report prints an error as stile does, for people and then for programs, and returns the exit code.
func (s *streams) report(err error) int {
	if err == nil {
		return 0
	}
	kind, code := "host", 5
	switch {
	case is[*usageError](err):
		kind, code = "usage", 2
	case is[*protocol.HostError](err), is[*contenders.WrongHostError](err):
		kind, code = "failed", 1
	}
	message := printable.Text(err.Error())
	s.say("stile bench: %s", message)
	line, err := json.Marshal(map[string]map[string]string{"error": {"kind": kind, "message": message}})
	if err != nil {
		line = []byte(err.Error())
	}
	s.say("%s", line)
	return code
}

func is[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}

// place is what is measured, according to the environment: `stile`, a folder for what can be rebuilt, and the engine. `stile bench`
// sets it.
type place struct{ stile, cache, engine string }

func findPlace() (p place, err error) {
	self, err := os.Executable()
	if err != nil {
		return p, err
	}
	p.stile = filepath.Join(filepath.Dir(self), "stile")
	if _, err := os.Stat(p.stile); err != nil {
		if p.stile, err = exec.LookPath("stile"); err != nil {
			return p, errors.New("the program stile is neither beside stile-bench nor in PATH: build both with make build")
		}
	}
	if p.cache = os.Getenv("STILE_CACHE"); p.cache == "" {
		if p.cache, err = os.UserCacheDir(); err != nil {
			return p, err
		}
		p.cache = filepath.Join(p.cache, "stile")
	}
	if p.cache, err = filepath.Abs(p.cache); err != nil {
		return p, err
	}
	if p.engine = os.Getenv("STILE_ENGINE"); p.engine != "" {
		p.engine, err = filepath.Abs(p.engine)
	}
	return p, err
}
