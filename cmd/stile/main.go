// Command stile runs unreviewed tools as WebAssembly components that can do only what their bindings allow. It has flags, wiring and
// printing; the packages it imports do the work.
package main

//go:generate go test -run ^TestReference$|^TestPicture$ . -update

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log"
	"os"
	"os/signal"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/alecthomas/kong"
	"golang.org/x/term"

	"github.com/stilehost/stile/capabilities/workspace"
	"github.com/stilehost/stile/extension/generate"
	"github.com/stilehost/stile/extension/lifecycle"
	"github.com/stilehost/stile/host"
	"github.com/stilehost/stile/internal/errkind"
	"github.com/stilehost/stile/internal/lazyregexp"
	"github.com/stilehost/stile/model"
)

func main() {
	if os.Getenv("GOGC") == "" {
		host.CollectLater()
	}
	log.SetOutput(io.Discard) // net/http logs each odd frame that a server sends
	os.Exit(run(os.Args[1:], &streams{in: os.Stdin, out: os.Stdout, err: os.Stderr}))
}

// cli is the command line.
type cli struct {
	Run             runCommand             `cmd:"" help:"Run a tool of an extension, or list its tools."`
	Code            codeCommand            `cmd:"" help:"Run code that can call the tools of extensions."`
	Ladder          ladderCommand          `cmd:"" help:"Use the tools that agents get, up to a rung: files, code, packages, a browser, a container."`
	Dev             devCommand             `cmd:"" help:"Run a tool again after each change of its source."`
	New             newCommand             `cmd:"" help:"Make a project for a new extension, in Rust, Go, C, Python, JavaScript or TypeScript."`
	Build           buildCommand           `cmd:"" help:"Build a component from TypeScript or JavaScript."`
	Componentize    componentizeCommand    `cmd:"" help:"Turn a core module, built from Rust, Go, C or another language, into a component."`
	Inspect         inspectCommand         `cmd:"" help:"Show what a component imports, exports and offers, and prove that it has no authority."`
	Ext             extCommand             `cmd:"" help:"Add, approve, call and revoke extensions."`
	MCP             mcpCommand             `cmd:"" name:"mcp" help:"Serve an agent over stdin and stdout."`
	Serve           serveCommand           `cmd:"" help:"Serve agents over HTTP, with web pages where a person decides."`
	Audit           auditCommand           `cmd:"" help:"List builds, decisions and calls, and check that nobody changed the log."`
	Runs            runsCommand            `cmd:"" help:"List, show and carry on durable calls, which outlive their process."`
	Calls           callsCommand           `cmd:"" help:"List, show and replay recorded calls."`
	Types           typesCommand           `cmd:"" help:"Write TypeScript types for a manifest's bindings."`
	Secret          secretCommand          `cmd:"" help:"Keep credentials that tools use and never see."`
	KV              kvCommand              `cmd:"" name:"kv" help:"Show, change and remove buckets of kv."`
	WS              wsCommand              `cmd:"" name:"ws" help:"Read, search, change and restore files in workspaces."`
	Sandbox         sandboxCommand         `cmd:"" help:"Make the images of sandboxes, list and remove them."`
	Bench           benchCommand           `cmd:"" passthrough:"" help:"Benchmark this host against containers and other isolates."`
	Wit             witCommand             `cmd:"" name:"wit" help:"Write the WIT packages of the contract, or push them to a registry."`
	Conformance     conformanceCommand     `cmd:"" help:"Test a host of stile:extension, this one or another, against the conformance suite."`
	ConformanceHost conformanceHostCommand `cmd:"" hidden:"" name:"conformance-host" help:"Be the host that the conformance suite tests."`
	Compile         compileCommand         `cmd:"" hidden:"" name:"compile-component" help:"Compile a component from stdin to stdout, within limits."`
	Bundle          bundleCommand          `cmd:"" hidden:"" name:"bundle-source" help:"Bundle a source that another process sends, within limits."`
	Doctor          doctorCommand          `cmd:"" help:"Check what this machine has, and say how to get what it lacks."`
	Completion      completionCommand      `cmd:"" help:"Print a script that completes command lines in bash, zsh or fish."`
	Complete        completeCommand        `cmd:"" hidden:"" passthrough:"" help:"List the words that may come next."`
	Man             manCommand             `cmd:"" help:"Write pages of the manual, for man."`
	Version         versionCommand         `cmd:"" help:"Print the version."`
	Global          globalFlags            `embed:""`
}

const description = `Run unreviewed tools as WebAssembly components that can do only what their bindings allow.

A command prints its result on stdout and everything else on stderr. If it fails, the exit code says why. Commands that list or report take --json, which prints the result as JSON. If stderr is not a terminal, or with --json, the last line of stderr is the error as a JSON object: {"error": {"kind": ..., "message": ...}}.

The exit codes are:

0 success, 1 the tool failed, a replay differs, a log was altered, a path is missing or in the way, a tested host is wrong, a request is decided already, a run was cancelled, or you answered no, 2 wrong usage, a name that does not exist, bad input or a source that does not build, 3 a denial by bindings, policy, revocation or a signature, 4 a limit, 5 a fault of this program or of the machine, 130 interrupted.

STILE_HOME is the folder for state (default: stile in the XDG data folder). STILE_CACHE is the folder for files that can be rebuilt (default: stile in the XDG cache folder). STILE_ENGINE names a folder or zip file with the JavaScript engine, for machines without npm. STILE_USER is your name in scopes and in the audit log (default: your operating system user). With STILE_KEYRING=off, stile does not use the keyring of the desktop session. STILE_BROWSER=unconfined starts the browser of a grant also where it cannot be confined; its proxy alone then keeps it from other hosts. STILE_SANDBOX names what makes the containers of sandboxes: crun, runc, podman, docker, or a path (default: the first of these that is installed); with ,without-user-namespace they may run without one, and root in them is then root of this machine without capabilities. STILE_RECORD=off records no calls; STILE_RECORD=age=720h,calls=10000,bytes=256MiB, or any part of it, sets how many to keep. STILE_RUNS=ended=10000,bytes=256MiB sets how many durable runs to keep that have ended, and asleep=1GiB how much room the sleeping runs of one agent may take. STILE_SIGNALS=https://hooks.example.com is what reaches stile runs work --listen from outside, for the addresses of signals. A terminal gets colour; NO_COLOR, CLICOLOR=0 and TERM=dumb turn it off, CLICOLOR_FORCE=1 turns it on everywhere, and --color overrides them.`

// streams are a command's input and output.
type streams struct {
	in    io.Reader
	out   io.Writer
	err   io.Writer
	color string // of --color
}

// say prints a line for people. It ignores errors, because there is no other place to report them.
func (s *streams) say(format string, args ...any) {
	text := fmt.Sprintf(format, args...) + "\n"
	if s.colored(s.err) {
		first, rest, _ := strings.Cut(text, "\n")
		text = tint(first, messageMarks, false) + "\n" + rest
	}
	_, _ = io.WriteString(s.err, text)
}

// columns is the width of the terminal on stdout. It is 0 if stdout is not a terminal.
func (s *streams) columns() int {
	if f, ok := s.out.(*os.File); ok {
		if columns, _, err := term.GetSize(int(f.Fd())); err == nil {
			return columns
		}
	}
	return 0
}

// interactive reports whether stderr is a terminal.
func (s *streams) interactive() bool {
	_, ok := terminal(s.err)
	return ok
}

// terminal returns the terminal that a stream is, if it is one.
func terminal(stream any) (*os.File, bool) {
	f, ok := stream.(*os.File)
	return f, ok && term.IsTerminal(int(f.Fd()))
}

// run executes one command line and returns the exit code.
func run(args []string, s *streams) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	defer context.AfterFunc(ctx, stop)() // a second signal ends the process at once

	args = habits(args)
	s.color = colorFlag(args)
	json := slices.Contains(args, "--json")
	parser, err := parserOf(ctx, s, grammar(args))
	if err != nil {
		return s.report(err, json)
	}
	command, err := parser.Parse(args)
	if err != nil {
		return s.report(misuse(err), json)
	}
	err = command.Run()
	if err != nil && ctx.Err() != nil && !errkind.Is[*saidError](err) && !errors.Is(err, errInterrupted) {
		err = errInterrupted
	}
	return s.report(err, json)
}

// newParser reads every command line.
func newParser(ctx context.Context, s *streams) (*kong.Kong, error) { return parserOf(ctx, s, &cli{}) }

func parserOf(ctx context.Context, s *streams, grammar any) (*kong.Kong, error) {
	return kong.New(grammar, kong.Name("stile"), kong.Description(description), kong.Writers(s.out, s.err), kong.Bind(s), kong.BindTo(ctx, (*context.Context)(nil)), kong.ConfigureHelp(kong.HelpOptions{NoExpandSubcommands: true, WrapUpperBound: 100}), kong.Help(help), numbers())
}

// numbers are the numbers of other packages that help states.
func numbers() kong.Vars {
	return kong.Vars{
		"unused":        hours(lifecycle.DefaultUnused),
		"archiveAge":    hours(archiveAge),
		"minArchiveAge": hours(lifecycle.MinArchiveAge),
		"archiveDays":   strconv.Itoa(int(archiveAge / (24 * time.Hour))),
		"minDigest":     strconv.Itoa(lifecycle.MinDigest),
		"maxContext":    strconv.Itoa(workspace.MaxContext),
		"rounds":        strconv.Itoa(generate.DefaultRounds),
		"tokens":        strconv.Itoa(generate.DefaultTokens),
		"temperature":   fmt.Sprint(model.DefaultTemperature),
		"maxTokens":     strconv.Itoa(model.DefaultMaxTokens),
		"timeout":       fmt.Sprintf("%dm", model.DefaultTimeout/time.Minute),
	}
}

func hours(d time.Duration) string { return fmt.Sprintf("%dh", d/time.Hour) }

// grammar returns the part of cli that a command line needs, because parsing all of cli takes longer than most commands.
func grammar(args []string) any {
	global, _ := reflect.TypeFor[cli]().FieldByName("Global")
	for command := range reflect.TypeFor[cli]().Fields() {
		if name := cmp.Or(command.Tag.Get("name"), strings.ToLower(command.Name)); len(args) > 0 && args[0] == name {
			return reflect.New(reflect.StructOf([]reflect.StructField{command, global})).Interface()
		}
	}
	return &cli{}
}

// help prints help without hidden arguments, which kong would show.
func help(o kong.HelpOptions, ctx *kong.Context) error {
	for _, n := range ctx.Model.Leaves(false) {
		n.Positional = slices.DeleteFunc(n.Positional, func(p *kong.Positional) bool { return p.Tag.Hidden })
	}
	return kong.DefaultHelpPrinter(o, ctx)
}

// habits translates what people know from other programs: no command, "help COMMAND", "-V" and "--version".
func habits(args []string) []string {
	switch {
	case len(args) == 0:
		return []string{"--help"}
	case len(args) > 0 && args[0] == "help":
		return append(slices.Clone(args[1:]), "--help")
	case len(args) == 1 && (args[0] == "--version" || args[0] == "-V"):
		return []string{"version"}
	default:
		return args
	}
}

// misuse says what is wrong with a command line. It replaces the parser's messages about itself by our own words.
func misuse(err error) error {
	if errkind.Is[*fs.PathError](err) { // help could not be written
		return err
	}
	command, text := closest(err), err.Error()
	text = strings.Replace(text, `expected string value but got "EOL" (<EOL>)`, "a value is missing", 1)
	text = strings.Replace(text, `missing value, expecting "<arg>"`, "a value is missing", 1)
	text = badNumber.ReplaceAllString(text, "$1 is not a whole number")
	if name, ok := strings.CutPrefix(text, "unexpected argument "); ok && command == "stile" {
		text = "there is no command " + name
	} else if ok && command == "stile ext call" {
		text += "; the tool is one word, EXTENSION_TOOL"
	}
	return usagef("%s; see %s --help", text, command)
}

// badNumber matches the parser's message about a number that it cannot read.
var badNumber = lazyregexp.New(`expected a valid \d+ bit u?int but got (".*")`)

// closest returns the command that a command line names, as far as the line parses.
func closest(err error) string {
	var wrong *kong.ParseError
	if errors.As(err, &wrong) && wrong.Context != nil && wrong.Context.Selected() != nil {
		return wrong.Context.Selected().FullPath()
	}
	return "stile"
}
