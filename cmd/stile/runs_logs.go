package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/stilehost/stile/durable"
	"github.com/stilehost/stile/internal/printable"
)

type runsLogs struct {
	runArg
	All    bool `help:"Show all operations that are kept. Default: the last 100."`
	Follow bool `short:"f" help:"Show further operations as they come, until the run ends."`
	asJSON
}

// Help implements kong.HelpProvider.
func (*runsLogs) Help() string {
	return `An operation is a use of a binding, with a number in its attempt, the time, what was called, and what came back. Long texts are cut, and secrets are left out. When a run sleeps or ends, its log is cut: of the operations before that, the last 100 are kept, as they are shown here.

With --json, it prints a line of JSON for each operation.

Examples:

    stile runs logs 5x7kq2n4m3aaq2ci
    stile runs logs 5x7kq2n4m3aaq2ci --all --json
    stile runs logs 5x7kq2n4m3aaq2ci --follow`
}

// followTime is how often --follow looks.
const followTime = 300 * time.Millisecond

// Run implements the command.
func (c *runsLogs) Run(ctx context.Context, s *streams) error {
	return withRuns(ctx, s, func(runs *durable.Runs) error {
		l := &runLog{out: s.out, json: c.JSON}
		if !c.All {
			latest, err := runs.Latest(ctx, c.Name)
			for i, o := range latest {
				if c.Follow && i == len(latest)-1 && o.State == durable.Pending {
					break
				}
				l.operation(o)
			}
			if err != nil || !c.Follow {
				return l.end(ctx, runs, c.Name, err)
			}
		}
		for {
			run, err := runs.Get(ctx, c.Name)
			if err != nil {
				return err
			}
			over := run.State.Final() || !c.Follow
			for o, err := range runs.Operations(ctx, c.Name, l.last) {
				if err != nil {
					return l.end(ctx, runs, c.Name, err)
				}
				if o.State == durable.Pending && !over {
					break
				}
				if l.operation(o); l.err != nil {
					return l.err
				}
			}
			if over {
				return l.end(ctx, runs, c.Name, nil)
			}
			timer := time.NewTimer(followTime)
			select {
			case <-timer.C:
			case <-ctx.Done():
				timer.Stop()
				return errInterrupted
			}
		}
	})
}

// runLog prints operations.
type runLog struct {
	out  io.Writer
	json bool
	last durable.Operation
	err  error
}

func (l *runLog) print(format string, args ...any) {
	if l.err == nil {
		_, l.err = fmt.Fprintf(l.out, format, args...)
	}
}

func (l *runLog) operation(o durable.Operation) {
	before := l.last
	l.last = o
	if l.json {
		text, err := json.Marshal(o)
		if err != nil {
			l.err = err
		}
		l.print("%s\n", text)
		return
	}
	if o.Attempt != before.Attempt {
		if o.Attempt > 1 {
			l.print("attempt %d\n", o.Attempt)
		}
		before.Number = 0
	}
	if gap := missingOperations(before, o); gap != "" {
		l.print("%s\n", gap)
	}
	l.print("%6d  %s  %s\n", o.Number, o.Time.Local().Format(time.DateTime), operationText(o))
}

// missingOperations says which operations between two of an attempt are not shown. before has number 0 if there is none.
func missingOperations(before, o durable.Operation) string {
	switch missing := int64(o.Number) - int64(before.Number) - 1; {
	case missing <= 0:
		return ""
	case missing == 1:
		return fmt.Sprintf("operation %d is not shown: it came before the last %d, or is not kept", o.Number-1, durable.KeptOperations)
	default:
		return fmt.Sprintf("operations %d to %d are not shown: they came before the last %d, or are not kept since the run slept or ended", before.Number+1, o.Number-1, durable.KeptOperations)
	}
}

// operationText is an operation in one line.
func operationText(o durable.Operation) string {
	text := printable.OneLine(o.Call())
	switch {
	case o.State == durable.Pending:
		text += ": no answer yet"
	case o.State == durable.Uncertain:
		text += " may have happened"
	case o.State == durable.Refused:
		text += " failed: " + printable.OneLine(strings.TrimSuffix(o.Code+": "+o.Answer, ": "))
	case o.Answer != "":
		text += " = " + printable.OneLine(o.Answer)
	}
	return text
}

// end says where the run is.
func (l *runLog) end(ctx context.Context, runs *durable.Runs, name string, err error) error {
	if err != nil || l.json {
		return cmp.Or(err, l.err)
	}
	r, err := runs.Result(ctx, name)
	if err != nil {
		return err
	}
	l.print("%s\n", whereItIs(runs.RedactResult(r)))
	return l.err
}

// whereItIs says in one line where a run is.
func whereItIs(r durable.Result) string {
	text := "the run is " + string(r.State) + " since " + r.Changed.Local().Format(time.DateTime)
	if r.State == durable.Running {
		text = "the run goes on"
	}
	if r.Blocked != nil {
		return text + "; " + blockedBy(r.Blocked)
	}
	if r.State == durable.Running {
		return text
	}
	if !r.Wake.IsZero() {
		text += ", until " + r.Wake.Local().Format(time.DateTime)
	}
	if waits := r.WaitsFor(); waits != "" {
		text += ", and waits for " + line(waits, 1100)
	}
	return text
}
