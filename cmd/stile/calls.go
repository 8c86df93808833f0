package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"time"

	"github.com/stilehost/stile/host"
	"github.com/stilehost/stile/host/recording"
	"github.com/stilehost/stile/internal/printable"
)

// callsFile is where recordings are, in STILE_HOME.
const callsFile = "calls.db"

type callsCommand struct {
	List   callsListCommand   `cmd:"" default:"withargs" help:"List recorded calls, the newest first."`
	Show   callsShowCommand   `cmd:"" help:"Show everything in a recording."`
	Replay callsReplayCommand `cmd:"" help:"Run a recorded call again from its recording, and report differences."`
	Test   callsTestCommand   `cmd:"" help:"Print a test for a manifest, made from a recorded call."`
}

// Help implements kong.HelpProvider.
func (*callsCommand) Help() string {
	return `stile run records its calls in STILE_HOME. stile calls without a command lists them; stile calls list --help has its flags.

Examples:

    stile calls --failed --since 24h
    stile calls list --tool open_issue --limit 10 --json
    stile calls show 12
    stile calls replay 12
    stile calls replay 12 --with github.ts --live-http=deny
    stile calls test 12`
}

// retention reads from the environment which recordings to keep.
type retention struct {
	off     bool
	options recording.Options
}

// parseRetention reads "off", or limits like "age=720h,calls=10000,bytes=256MiB".
func parseRetention(text string) (r retention, err error) {
	if text == "off" {
		return retention{off: true}, nil
	}
	for pair := range strings.SplitSeq(text, ",") {
		name, value, _ := strings.Cut(pair, "=")
		switch name {
		case "":
		case "age":
			r.options.MaxAge, err = parseDuration(value)
		case "calls":
			r.options.MaxCalls, err = parseCount(value)
		case "bytes":
			r.options.MaxBytes, err = printable.ParseSize(value)
		default:
			err = fmt.Errorf("%q is not off, age, calls or bytes", name)
		}
		if err != nil {
			return retention{}, err
		}
	}
	return r, nil
}

// recorder is where one call is recorded. A call that cannot be recorded is made all the same, with a warning.
type recorder struct {
	recorder host.Recorder // nil if the recordings cannot be opened
	close    func()
}

// recorder opens the recordings for calls in one component.
func (n *session) recorder(ctx context.Context, s *streams, wasm []byte) recorder {
	r, store := n.openRecorder(ctx, s)
	if store != nil {
		s.tell("the component could not be kept, so a replay needs its file", store.Keep(ctx, wasm))
	}
	return r
}

// openRecorder opens the recordings. It returns no store if that fails.
func (n *session) openRecorder(ctx context.Context, s *streams) (recorder, *recording.Store) {
	o := n.record.options
	o.Logger = n.logger
	var store *recording.Store
	err := n.secrets.redactAll(ctx, n.home)
	if err == nil {
		store, err = recording.Open(ctx, filepath.Join(n.home, callsFile), o)
	}
	if err != nil {
		s.tell("this call is not recorded", err)
		return recorder{close: func() {}}, nil
	}
	return recorder{store, func() { s.tell("close the recordings", store.Close()) }}, store
}

// tell reports a problem in addition to the result.
func (s *streams) tell(what string, err error) {
	if err != nil {
		s.say("stile: %s: %s", what, printable.Text(err.Error()))
	}
}

// openCalls opens the recordings for reading.
func openCalls(ctx context.Context) (settings, *recording.Store, error) {
	where, err := readSettings()
	if err != nil {
		return settings{}, nil, err
	}
	if err := makeFolder("STILE_HOME", where.home); err != nil {
		return settings{}, nil, err
	}
	store, err := recording.Open(ctx, filepath.Join(where.home, callsFile), where.record.options)
	return where, store, err
}

// recorded returns one recording.
func recorded(ctx context.Context, id int64) (r *host.Recording, store *recording.Store, err error) {
	_, store, err = openCalls(ctx)
	if err != nil {
		return nil, nil, err
	}
	r, err = store.Get(ctx, id)
	if errors.Is(err, recording.ErrNotFound) {
		err = usagef("there is no recording %d; stile calls lists them", id)
	}
	if err != nil {
		return nil, nil, errors.Join(err, store.Close())
	}
	return r, store, nil
}

type callsListCommand struct {
	Tool   string `complete:"recorded" placeholder:"NAME" help:"List only calls of this tool."`
	Since  string `placeholder:"TIME" help:"List only calls since then: a duration like 24h, a date like 2026-01-31, or a time like 2026-01-31T12:00:00Z."`
	Failed bool   `help:"List only calls that did not end well."`
	Limit  int    `placeholder:"N" default:"100" help:"Maximum number of entries to list. Default: ${default}."`
	asJSON
}

// Help implements kong.HelpProvider.
func (*callsListCommand) Help() string {
	return `The extension is the name in the manifest, or the file that stile run ran without one. Recordings of earlier versions have none.

Examples:

    stile calls list --tool open_issue --limit 10 --json
    stile calls list --failed --since 24h`
}

// listedCall is one line of the list.
type listedCall struct {
	ID         int64     `json:"id"`
	Started    time.Time `json:"started"`
	Seconds    float64   `json:"seconds"`
	Tool       string    `json:"tool"`
	Extension  string    `json:"extension,omitempty"`
	Outcome    string    `json:"outcome"`
	Operations int       `json:"operations"`
	Component  string    `json:"component"`
	// Cut says why the recording is incomplete.
	Cut string `json:"cut,omitempty"`
}

// Run implements the command.
func (c *callsListCommand) Run(ctx context.Context, s *streams) (err error) {
	f := recording.Filter{Tool: c.Tool, Failed: c.Failed, Limit: c.Limit}
	if f.Since, err = parseTime("--since", c.Since, time.Now()); err != nil {
		return err
	}
	_, store, err := openCalls(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	all, lost, err := store.List(ctx, f)
	if err != nil {
		return err
	}
	calls := make([]listedCall, len(all))
	for i, one := range all {
		calls[i] = listedCall{
			one.ID, one.Started.UTC(), one.Duration.Seconds(), printable.Text(one.Tool), printable.Text(one.Extension), printable.Text(one.Outcome), one.Operations,
			"sha256:" + printable.Text(one.Component), printable.Text(one.Cut),
		}
	}
	if c.JSON {
		return printJSON(s.out, struct {
			Calls []listedCall `json:"calls"`
			// NotRecorded is how many calls of that time could not be recorded.
			NotRecorded int64 `json:"notRecorded"`
		}{calls, lost})
	}
	if lost > 0 {
		s.say("stile: %s from that time could not be recorded", counted(lost, "call"))
	}
	rows := [][]string{{"ID", "STARTED", "EXTENSION", "TOOL", "OUTCOME", "OPERATIONS", "TOOK"}}
	for _, one := range calls {
		outcome := one.Outcome
		if one.Cut != "" {
			outcome += ", incomplete"
		}
		rows = append(rows, []string{
			fmt.Sprint(one.ID), when(one.Started), cell(one.Extension), cell(one.Tool), cell(outcome), fmt.Sprint(one.Operations),
			seconds(one.Seconds).String(),
		})
	}
	_, err = io.WriteString(s.out, table("", rows))
	return err
}

// cell makes text one cell of a table.
func cell(text string) string { return strings.Join(strings.Fields(text), " ") }

// parseTime returns the zero time for an empty text.
func parseTime(flag, text string, now time.Time) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	if d, err := time.ParseDuration(text); err == nil && d >= 0 {
		return now.Add(-d), nil
	}
	for _, layout := range []string{time.RFC3339, time.DateOnly} {
		if at, err := time.ParseInLocation(layout, text, time.Local); err == nil {
			return at, nil
		}
	}
	return time.Time{}, usagef("%s %s: write a duration like 24h, a date like 2026-01-31, or a time like 2026-01-31T12:00:00Z", flag, text)
}
