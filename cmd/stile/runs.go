package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/stilehost/stile/durable"
	"github.com/stilehost/stile/extension/lifecycle"
	"github.com/stilehost/stile/internal/errkind"
	"github.com/stilehost/stile/internal/printable"
)

type runsCommand struct {
	List   runsList   `cmd:"" default:"withargs" help:"List durable runs, the newest first."`
	Show   runsShow   `cmd:"" help:"Show where a run is, and how it ended."`
	Logs   runsLogs   `cmd:"" help:"Show the operations of a run."`
	Resume runsResume `cmd:"" help:"Carry a run on, and print its result."`
	Work   runsWork   `cmd:"" help:"Carry all runs on, until it is interrupted."`
	Signal runsSignal `cmd:"" help:"Send a message to a run."`
	Cancel runsCancel `cmd:"" help:"End a run."`
	Retry  runsRetry  `cmd:"" help:"Have a parked run go on, or a failed one begin again."`
	Remove runsRemove `cmd:"" help:"Remove runs that have ended, with their results."`

	Schedule runsSchedule `cmd:"" help:"List, pause, resume and remove schedules."`
}

// Help implements kong.HelpProvider.
func (*runsCommand) Help() string {
	return `A durable call is a run: stile run --durable starts one. It is written down as it goes, and sleeps without memory where it waits for long. If its process ends, it goes on where it was, in any process that works on the same STILE_HOME: stile runs resume, or stile runs work. Nothing that it did is done twice: an operation during which the process ended is repeated where that is safe, and otherwise fails in the tool with the code "interrupted".

Runs are in STILE_HOME/runs.db, encrypted with the key in runs.key beside it.

Examples:

    stile run order.ts order --durable --input '{"article": "a1"}'
    stile run order.ts order --durable --detach --key order-17
    stile run order.ts order --durable --retry 5
    stile run report.ts report --durable --key morning --cron "30 9 * * 1-5" --zone Europe/Berlin
    stile runs
    stile runs show 5x7kq2n4m3aaq2ci
    stile runs logs 5x7kq2n4m3aaq2ci
    stile runs signal 5x7kq2n4m3aaq2ci approved --data '{"by": "ada"}'
    stile runs resume 5x7kq2n4m3aaq2ci
    stile runs work`
}

// withRuns opens a session and its runs, to look at them and change them.
func withRuns(ctx context.Context, s *streams, use func(*durable.Runs) error) (err error) {
	n, err := openSession(ctx, s, sessionOptions{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, n.Close()) }()
	return n.useRuns(ctx, s, nil, use)
}

// workOnRuns opens the runs with the extensions, whose calls some of them are.
func workOnRuns(ctx context.Context, s *streams, many bool, use func(*durable.Runs) error) error {
	return withOptions(ctx, s, sessionOptions{many: many}, func(e *extensions) error { return e.useRuns(ctx, s, e.Manager, use) })
}

func (n *session) useRuns(ctx context.Context, s *streams, calls *lifecycle.Manager, use func(*durable.Runs) error) (err error) {
	runs, err := n.openRuns(ctx, s, calls)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, runs.Close()) }() //nolint:contextcheck // what ended is written down after the end of ctx
	if err = use(runs); errkind.Is[*durable.UnknownError](err) || errkind.Is[*durable.UnknownScheduleError](err) {
		err = &usageError{err}
	}
	return err
}

type runsList struct {
	All   bool `help:"List the calls of tools that runs have made, too: each is a run of its own."`
	Limit int  `placeholder:"N" default:"100" help:"Maximum number of runs to list. Default: ${default}."`
	asJSON
}

// Help implements kong.HelpProvider.
func (*runsList) Help() string {
	return `Examples:

    stile runs list
    stile runs list --all
    stile runs list --limit 10 --json`
}

// Run implements the command.
func (c *runsList) Run(ctx context.Context, s *streams) error {
	return withRuns(ctx, s, func(runs *durable.Runs) error {
		list := runs.List
		if c.All {
			list = runs.ListAll
		}
		all, err := list(ctx, "", c.Limit)
		if err != nil {
			return err
		}
		for i, r := range all {
			all[i] = runs.Redact(r)
		}
		if c.JSON {
			return printJSON(s.out, map[string][]durable.Info{"runs": all})
		}
		rows := [][]string{{"RUN", "TOOL", "STATE", "STARTED", "GOES ON", "KEY"}}
		if c.All {
			rows[0][5] = "KEY OR CALLER"
		}
		for _, r := range all {
			wake := "-"
			if !r.Wake.IsZero() {
				wake = r.Wake.Local().Format(time.DateTime)
			}
			rows = append(rows, []string{r.Name, line(calledIn(r), 64), listedState(r), r.Created.Local().Format(time.DateTime), wake, line(cmp.Or(r.Parent, r.Key), 64)})
		}
		_, err = io.WriteString(s.out, table("", rows))
		return err
	})
}

// calledIn is what a run has called: its tool or its function.
func calledIn(r durable.Info) string {
	called := cmp.Or(r.Tool, r.Function)
	if called == "" && r.Unreadable != "" {
		return "unreadable"
	}
	return called
}

// listedState is the state of a run in a list.
func listedState(r durable.Info) string {
	if r.Blocked == nil {
		return string(r.State)
	}
	return fmt.Sprintf("%s: %s is parked", r.State, line(r.Blocked.Run, 64))
}

// blockedBy says what to do about a run that another one has called, and that is parked.
func blockedBy(b *durable.Blocked) string {
	run := line(b.Run, 64)
	return fmt.Sprintf("run %s, for which it waits, is parked: %s. Once that is mended, stile runs retry %s has both go on", run, line(b.Reason, 1000), run)
}

// refusedPosts says what was posted to a run in vain.
func refusedPosts(r *durable.RefusedPosts, last string) string {
	return fmt.Sprintf("%d that were not signed as they must be, the last at %s", r.Posts, last)
}

// runArg names a run.
type runArg struct {
	Name string `arg:"" name:"run" help:"Run, as stile runs lists it."`
}

// maxShownMessages is how many messages stile runs show lists.
const maxShownMessages = 20

// maxShownChildren is how many calls of tools it lists.
const maxShownChildren = 20

type runsShow struct {
	runArg
	asJSON
}

// Help implements kong.HelpProvider.
func (*runsShow) Help() string {
	return `Examples:

    stile runs show 5x7kq2n4m3aaq2ci
    stile runs show 5x7kq2n4m3aaq2ci --json`
}

// Run implements the command.
func (c *runsShow) Run(ctx context.Context, s *streams) error {
	return withRuns(ctx, s, func(runs *durable.Runs) error {
		r, err := runs.Show(ctx, c.Name)
		if err != nil {
			return err
		}
		if c.JSON {
			return printJSON(s.out, r)
		}
		messages := r.Messages
		rows := [][]string{{"run", r.Name}, {"tool", line(calledIn(r.Info), 200)}, {"state", string(r.State) + " since " + r.Changed.Local().Format(time.DateTime)}, {"started", r.Created.Local().Format(time.DateTime)}, {"deadline", r.Deadline.Local().Format(time.DateTime)}}
		if r.Unreadable != "" {
			rows = append(rows, []string{"unreadable", line(r.Unreadable, 1000)})
		}
		if t, ok := callOf(r.Info); ok {
			rows = append(rows, []string{"extension", fmt.Sprintf("%s in %s, called by %s", t.Extension, t.Scope, line(t.Viewer.String(), 100))})
		}
		if r.Parent != "" {
			rows = append(rows, []string{"called by", r.Parent})
		} else if by := starterOf(r.Info); by != "" {
			rows = append(rows, []string{"started by", line("the tool "+by, 100)})
		} else if r.Key != "" {
			rows = append(rows, []string{"key", line(r.Key, 300)})
		}
		for _, child := range r.Children[:min(len(r.Children), maxShownChildren)] {
			tool := calledIn(child)
			if t, ok := callOf(child); ok {
				tool = t.Tool
			}
			rows = append(rows, []string{"called", fmt.Sprintf("%s: %s is %s since %s", child.Name, line(tool, 64), child.State, child.Changed.Local().Format(time.DateTime))})
		}
		if more := len(r.Children) - maxShownChildren; more > 0 {
			rows = append(rows, []string{"called", fmt.Sprintf("%d more; --json has them", more)})
		}
		if !r.Wake.IsZero() {
			rows = append(rows, []string{"goes on", r.Wake.Local().Format(time.DateTime)})
		}
		if r.Cancelled && !r.State.Final() {
			text := "once a process tells it, it may clean up"
			if !r.Ends.IsZero() {
				text = "it may clean up until " + r.Ends.Local().Format(time.DateTime)
			}
			rows = append(rows, []string{"cancelled", text})
		}
		if r.Reason != "" {
			rows = append(rows, []string{"parked because", printable.OneLine(r.Reason)})
		}
		if r.Blocked != nil {
			rows = append(rows, []string{"blocked", blockedBy(r.Blocked)})
		}
		if n := len(r.Attempts) + 1; r.Retry.Attempts >= n {
			rows = append(rows, []string{"attempt", fmt.Sprintf("%d of %d", n, r.Retry.Attempts)})
		} else if n > 1 {
			rows = append(rows, []string{"attempt", strconv.Itoa(n)})
		}
		for _, a := range r.Attempts {
			rows = append(rows, []string{fmt.Sprintf("attempt %d", a.Number), line(fmt.Sprintf("%s: %s", a.Ended.Local().Format(time.DateTime), a.Outcome), 400)})
		}
		if waits := r.WaitsFor(); waits != "" {
			rows = append(rows, []string{"waits for", line(waits, 1100) + " since " + r.Changed.Local().Format(time.DateTime)})
		}
		for _, m := range messages[:min(len(messages), maxShownMessages)] {
			text := fmt.Sprintf("%s from %s: %s", m.Received.Local().Format(time.DateTime), line(m.From, 200), line(string(m.Data), 500))
			rows = append(rows, []string{"untrusted, for " + line(m.Mailbox, 64), text})
		}
		if r.Unread != "" {
			rows = append(rows, []string{"messages", line(r.Unread, 1000)})
		}
		if more := len(messages) - maxShownMessages; more > 0 {
			rows = append(rows, []string{"messages", fmt.Sprintf("%d more; --json has them", more)})
		}
		if r.Refused != nil {
			rows = append(rows, []string{"refused posts", refusedPosts(r.Refused, r.Refused.Last.Local().Format(time.DateTime))})
		}
		if r.Stash != nil {
			rows = append(rows, []string{"untrusted stash", line(string(r.Stash), 2000)})
		}
		rows = append(rows, []string{"input", line(string(r.Input), 2000)})
		switch {
		case r.Unreadable != "":
		case r.State == durable.Done:
			rows = append(rows, []string{"result", line(string(r.Output), 4000)})
		case r.Outcome.Kind != "":
			rows = append(rows, []string{"error", line(r.Outcome.String(), 4000)})
		}
		_, err = io.WriteString(s.out, table("", rows))
		return err
	})
}

type runsResume struct {
	runArg
	outputFlag
	alwaysJSON
}

// Help implements kong.HelpProvider.
func (*runsResume) Help() string {
	return `It prints the result as stile run does, with its exit codes. If another process has the run, it waits for that.

Examples:

    stile runs resume 5x7kq2n4m3aaq2ci`
}

// Run implements the command.
func (c *runsResume) Run(ctx context.Context, s *streams) error {
	return workOnRuns(ctx, s, false, func(runs *durable.Runs) error {
		run, err := runs.Get(ctx, c.Name)
		if err != nil {
			return err
		}
		if run.Function != "" {
			return usagef("run %s is of the Go function %s; it goes on in a program that has it", run.Name, line(run.Function, 64))
		}
		runs.Work(c.Name)
		return waitForRun(ctx, s, runs, c.Name, c.outputFlag)
	})
}

type runsSignal struct {
	runArg
	Mailbox string  `arg:"" help:"Mailbox, the name that the tool gives to receive."`
	Data    string  `placeholder:"JSON" default:"null" help:"What the run gets: JSON, @FILE, or - for stdin. At most 64 KiB. Default: null."`
	Key     *string `placeholder:"KEY" help:"A name of yours for the message: with the same one, it is delivered once."`
	asJSON
}

// Help implements kong.HelpProvider.
func (*runsSignal) Help() string {
	return `The run gets the message when it receives from this mailbox. It need not wait for it yet. If it sleeps and waits for it, it wakes in a process that works on runs. A mailbox has room for 100 messages.

Examples:

    stile runs signal 5x7kq2n4m3aaq2ci approved
    stile runs signal 5x7kq2n4m3aaq2ci approved --data '{"by": "ada"}' --key approval-17`
}

// Run implements the command.
func (c *runsSignal) Run(ctx context.Context, s *streams) error {
	data, err := interruptible(ctx, func() ([]byte, error) { return readInput(c.Data, s.in, durable.MaxMessage) })
	if err != nil {
		return err
	}
	message := durable.Message{Data: data, From: "stile runs signal"}
	if c.Key != nil {
		if message.Key = *c.Key; message.Key == "" {
			return usagef("--key: it is empty; give a name, or leave it out")
		}
	}
	return withRuns(ctx, s, func(runs *durable.Runs) error {
		delivered, err := runs.Signal(ctx, c.Name, c.Mailbox, message)
		if errkind.Is[*durable.MessageError](err) || errkind.Is[*durable.EndedError](err) {
			err = &usageError{err}
		}
		if err != nil {
			return err
		}
		if c.JSON {
			return printJSON(s.out, map[string]bool{"delivered": delivered})
		}
		text := "Delivered."
		if !delivered {
			text = "A message with this key was delivered before."
		}
		_, err = fmt.Fprintln(s.out, text)
		return err
	})
}

type runsWork struct {
	Drain       time.Duration `default:"30s" placeholder:"DURATION" help:"How long runs may go on to where they sleep or end after the process is asked to end. Default: ${default}."`
	Listen      string        `placeholder:"ADDRESS:PORT" help:"Where to take signals that strangers post to addresses of mailboxes, on this machine. Default: they are not taken."`
	AddressFile string        `placeholder:"FILE" help:"File to write the address to, once it listens; useful with port 0."`
}

// Help implements kong.HelpProvider.
func (*runsWork) Help() string {
	return `Several processes can do this at once. Each run belongs to one of them.

With --listen, one of them takes the signals that are posted to addresses of mailboxes. It serves nothing else. Have a proxy with TLS pass POST requests for /signals/ on to it, and set STILE_SIGNALS to the proxy's address in all processes.

Examples:

    stile runs work
    STILE_SIGNALS=https://hooks.example.com stile runs work --listen 127.0.0.1:7341`
}

// Run implements the command.
func (c *runsWork) Run(ctx context.Context, s *streams) error {
	return workOnRuns(ctx, s, true, func(runs *durable.Runs) error {
		runs.Work()
		s.say("stile: carrying runs on")
		var err error
		if c.Listen != "" {
			err = servePosts(ctx, s, runs, c.Listen, c.AddressFile)
		} else {
			<-ctx.Done()
		}
		draining, cancel := context.WithTimeout(context.WithoutCancel(ctx), c.Drain)
		defer cancel()
		runs.Drain(draining)
		return err
	})
}

type runsCancel struct {
	runArg
	Grace time.Duration `default:"30s" placeholder:"DURATION" help:"How long the run may go on to clean up, if its tool asks for that. Default: ${default}."`
	Now   bool          `help:"End it at once."`
}

// Help implements kong.HelpProvider.
func (*runsCancel) Help() string {
	return `A run that is under way ends within a second. A sleeping one does not wake. But a run whose tool has read env.NAME.cancelled of its binding runs is told, awake or asleep, and may clean up for a while. Then it ends as cancelled, whatever it returns.

Examples:

    stile runs cancel 5x7kq2n4m3aaq2ci
    stile runs cancel 5x7kq2n4m3aaq2ci --grace 5m
    stile runs cancel 5x7kq2n4m3aaq2ci --now`
}

// Run implements the command.
func (c *runsCancel) Run(ctx context.Context, s *streams) error {
	if c.Grace < 0 {
		return usagef("--grace: %v is less than nothing", c.Grace)
	}
	if c.Now {
		c.Grace = 0
	}
	return withRuns(ctx, s, func(runs *durable.Runs) error {
		asked, err := runs.CancelWithin(ctx, c.Name, c.Grace)
		if err == nil && !asked {
			err = usagef("run %s: it has ended already", printable.Text(c.Name))
		}
		if err != nil {
			return err
		}
		text := "Cancelled."
		if run, err := runs.Get(ctx, c.Name); err == nil && !run.State.Final() && !c.Now {
			text = fmt.Sprintf("It is told to end. If its tool cleans up, it has %v for that.", c.Grace)
		}
		_, err = fmt.Fprintln(s.out, text)
		return err
	})
}

type runsRetry struct{ runArg }

// Help implements kong.HelpProvider.
func (*runsRetry) Help() string {
	return `A run is parked when it cannot go on: its log was altered, or process after process ended while it ran. It then goes on where it was.

A run that failed or was cancelled begins again from the start of the tool, as another attempt with its key, input and code, and as much time as at first. It makes its changes again, also those that the last attempt made. A process that works on runs carries it on, such as stile runs resume.

Examples:

    stile runs retry 5x7kq2n4m3aaq2ci`
}

// Run implements the command.
func (c *runsRetry) Run(ctx context.Context, s *streams) error {
	return changeRun(ctx, s, c.Name, (*durable.Runs).Retry, "It goes on.", "it is neither parked nor failed")
}

type runsRemove struct{ runArg }

// Help implements kong.HelpProvider.
func (*runsRemove) Help() string {
	return `Examples:

    stile runs remove 5x7kq2n4m3aaq2ci`
}

// Run implements the command.
func (c *runsRemove) Run(ctx context.Context, s *streams) error {
	remove := func(runs *durable.Runs, ctx context.Context, name string) (bool, error) {
		removed, err := runs.Remove(ctx, name)
		if errkind.Is[*durable.ChildError](err) {
			err = &usageError{err}
		}
		return removed, err
	}
	return changeRun(ctx, s, c.Name, remove, "Removed.", "it goes on; stile runs cancel ends it")
}

// changeRun changes the state of a run, if it is in one that allows this.
func changeRun(ctx context.Context, s *streams, name string, change func(*durable.Runs, context.Context, string) (bool, error), did, not string) error {
	return withRuns(ctx, s, func(runs *durable.Runs) error {
		changed, err := change(runs, ctx, name)
		if err == nil && !changed {
			err = usagef("run %s: %s", printable.Text(name), not)
		}
		if errkind.Is[*durable.RetryError](err) {
			err = &usageError{err}
		}
		if err != nil {
			return err
		}
		_, err = fmt.Fprintln(s.out, did)
		return err
	})
}
