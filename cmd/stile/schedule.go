package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"time"

	"github.com/stilehost/stile/durable"
	"github.com/stilehost/stile/internal/printable"
)

type runsSchedule struct {
	List   scheduleList   `cmd:"" default:"withargs" help:"List schedules."`
	Pause  schedulePause  `cmd:"" help:"Have a schedule start no runs."`
	Resume scheduleResume `cmd:"" help:"Have a paused schedule start runs again."`
	Remove scheduleRemove `cmd:"" help:"Remove a schedule. The runs that it started stay."`
}

// Help implements kong.HelpProvider.
func (*runsSchedule) Help() string {
	return `A schedule starts durable runs at times: --cron of stile run --durable and stile ext call --durable makes one. Any stile runs work, serve or mcp on the same STILE_HOME starts its runs, each once.

Examples:

    stile run report.ts report --durable --key morning --cron "30 9 * * 1-5" --zone Europe/Berlin
    stile runs schedule
    stile runs schedule pause morning
    stile runs schedule remove morning`
}

type scheduleList struct{ asJSON }

// Help implements kong.HelpProvider.
func (*scheduleList) Help() string {
	return `Examples:

    stile runs schedule list
    stile runs schedule list --json`
}

// Run implements the command.
func (c *scheduleList) Run(ctx context.Context, s *streams) error {
	return withRuns(ctx, s, func(runs *durable.Runs) error {
		all, err := runs.Schedules(ctx)
		if err != nil {
			return err
		}
		if c.JSON {
			return printJSON(s.out, map[string][]durable.ScheduleInfo{"schedules": all})
		}
		rows := [][]string{{"SCHEDULE", "TOOL", "CRON", "ZONE", "NEXT", "LAST RUN"}}
		for _, i := range all {
			next := "-"
			switch {
			case i.Paused:
				next = "paused"
			case !i.Next.IsZero():
				next = i.Next.Local().Format(time.DateTime)
			case i.Reason != "":
				next = printable.OneLine(i.Reason)
			}
			rows = append(rows, []string{i.Name, line(cmp.Or(i.Tool, i.Function), 64), i.Cron, i.Zone, next, cmp.Or(i.Run, "-")})
		}
		_, err = io.WriteString(s.out, table("", rows))
		return err
	})
}

// scheduleArg names a schedule.
type scheduleArg struct {
	Name string `arg:"" name:"schedule" help:"Schedule, as stile runs schedule lists it."`
}

// pause pauses a schedule or has it go on.
func (c *scheduleArg) pause(ctx context.Context, s *streams, pause bool, did, not string) error {
	return withRuns(ctx, s, func(runs *durable.Runs) error {
		changed, err := runs.PauseSchedule(ctx, c.Name, pause)
		if err == nil && !changed {
			err = usagef("schedule %s: %s", printable.Text(c.Name), not)
		}
		if err != nil {
			return err
		}
		_, err = fmt.Fprintln(s.out, did)
		return err
	})
}

type schedulePause struct{ scheduleArg }

// Help implements kong.HelpProvider.
func (*schedulePause) Help() string {
	return `Runs that it has started go on. Times that pass meanwhile are not made up for.

Examples:

    stile runs schedule pause morning`
}

// Run implements the command.
func (c *schedulePause) Run(ctx context.Context, s *streams) error {
	return c.pause(ctx, s, true, "Paused.", "it is paused already")
}

type scheduleResume struct{ scheduleArg }

// Help implements kong.HelpProvider.
func (*scheduleResume) Help() string {
	return `It starts a run at the next time from now.

Examples:

    stile runs schedule resume morning`
}

// Run implements the command.
func (c *scheduleResume) Run(ctx context.Context, s *streams) error {
	return c.pause(ctx, s, false, "Resumed.", "it is not paused")
}

type scheduleRemove struct{ scheduleArg }

// Help implements kong.HelpProvider.
func (*scheduleRemove) Help() string {
	return `Examples:

    stile runs schedule remove morning`
}

// Run implements the command.
func (c *scheduleRemove) Run(ctx context.Context, s *streams) error {
	return withRuns(ctx, s, func(runs *durable.Runs) error {
		if err := runs.RemoveSchedule(ctx, c.Name); err != nil {
			return err
		}
		_, err := fmt.Fprintln(s.out, "Removed.")
		return err
	})
}
