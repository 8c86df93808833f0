package main

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/stilehost/stile/durable"
	"github.com/stilehost/stile/extension/web"
	"github.com/stilehost/stile/internal/errkind"
)

// runPages are the runs for the pages of stile serve.
type runPages struct{ runs *durable.Runs }

// forPage is an error that the page shows if it is about what the person asked for.
func forPage(err error) error {
	switch {
	case err == nil:
		return nil
	case errkind.Is[*durable.UnknownError](err), errkind.Is[*durable.UnknownScheduleError](err):
		return &web.RunsError{Missing: true, Text: err.Error()}
	case errkind.Is[*durable.EndedError](err), errkind.Is[*durable.FullError](err), errkind.Is[*durable.MessageError](err), errkind.Is[*durable.RetryError](err), errkind.Is[*durable.ChildError](err):
		return &web.RunsError{Text: err.Error()}
	}
	return err
}

// List implements [web.Runs].
func (p runPages) List(ctx context.Context, before string, most int) ([]web.Run, error) {
	list, err := p.runs.List(ctx, before, most)
	if err != nil {
		return nil, forPage(err)
	}
	all := make([]web.Run, 0, len(list))
	for _, i := range list {
		r := durable.Result{Info: p.runs.Redact(i)}
		if i.State == durable.Asleep {
			if now, err := p.runs.Result(ctx, i.Name); err == nil {
				now = p.runs.RedactResult(now)
				r.Mailboxes, r.Awaited = now.Mailboxes, now.Awaited
			}
		}
		all = append(all, onPage(r))
	}
	return all, nil
}

func onPage(r durable.Result) web.Run {
	page := web.Run{Name: r.Name, Tool: calledIn(r.Info), Key: r.Key, State: string(r.State), Since: r.Changed, Wake: r.Wake}
	if t, ok := callOf(r.Info); ok {
		page.Tool = t.Tool
	}
	page.Waits = r.WaitsFor()
	if b := r.Blocked; b != nil {
		page.Blocked = &web.Blocked{Run: b.Run, Reason: b.Reason}
	}
	return page
}

// Show implements [web.Runs].
func (p runPages) Show(ctx context.Context, run string) (page web.RunPage, err error) {
	r, err := p.runs.Show(ctx, run)
	if err != nil {
		return page, forPage(err)
	}
	page = web.RunPage{Run: onPage(r.Result), Input: string(r.Input), Output: string(r.Output), Parent: r.Parent, Stash: string(r.Stash)}
	fact := func(name, text string) {
		if text != "" {
			page.Facts = append(page.Facts, web.Fact{Name: name, Text: text})
		}
	}
	utc := func(t time.Time) string { return t.UTC().Format("2006-01-02 15:04 UTC") }
	if t, ok := callOf(r.Info); ok {
		fact("Extension", fmt.Sprintf("%s in %s, called by %s", t.Extension, t.Scope, t.Viewer))
	}
	if r.Parent == "" { // else its key says only that
		fact("Key", r.Key)
	}
	fact("Started", utc(r.Created))
	fact("Deadline", utc(r.Deadline))
	fact("Parked because", r.Reason)
	fact("Unreadable", r.Unreadable)
	fact("Messages", r.Unread)
	if r.Refused != nil {
		fact("Refused posts", refusedPosts(r.Refused, utc(r.Refused.Last)))
	}
	for _, a := range r.Attempts {
		fact(fmt.Sprintf("Attempt %d", a.Number), fmt.Sprintf("%s: %s", utc(a.Ended), a.Outcome))
	}
	if r.State != durable.Done && r.Outcome.Kind != "" {
		page.Problem = r.Outcome.String()
	}
	operations, damage := p.runs.Latest(ctx, run)
	var last durable.Operation
	for _, o := range operations {
		if o.Attempt != last.Attempt {
			if o.Attempt > 1 {
				page.Operations = append(page.Operations, web.RunOperation{Text: fmt.Sprintf("attempt %d", o.Attempt)})
			}
			last.Number = 0
		}
		if gap := missingOperations(last, o); gap != "" {
			page.Operations = append(page.Operations, web.RunOperation{Text: gap})
		}
		page.Operations = append(page.Operations, web.RunOperation{Number: o.Number, Time: o.Time, Text: operationText(o), Failed: o.State == durable.Refused || o.State == durable.Uncertain})
		last = o
	}
	if damage != nil {
		page.Operations = append(page.Operations, web.RunOperation{Text: damage.Error()})
	}
	page.MoreChildren = max(0, len(r.Children)-maxShownChildren)
	for _, child := range r.Children[:len(r.Children)-page.MoreChildren] {
		page.Children = append(page.Children, onPage(durable.Result{Info: child}))
	}
	page.More = max(0, len(r.Messages)-maxShownMessages)
	for _, m := range r.Messages[:len(r.Messages)-page.More] {
		page.Messages = append(page.Messages, web.RunMessage{Mailbox: m.Mailbox, From: m.From, Data: string(m.Data), Received: m.Received})
	}
	switch r.State {
	case durable.Parked:
		page.Actions = []string{"retry", "cancel", "remove"}
	case durable.Failed, durable.Cancelled:
		page.Actions = []string{"retry", "remove"}
	case durable.Done:
		page.Actions = []string{"remove"}
	default:
		page.Actions = []string{"cancel"}
	}
	page.Signals = !r.State.Final() || r.State == durable.Parked
	return page, nil
}

// Change implements [web.Runs].
func (p runPages) Change(ctx context.Context, run, action string) error {
	change, not := p.runs.Cancel, "has ended already"
	switch action {
	case "retry":
		change, not = p.runs.Retry, "is neither parked nor failed"
	case "remove":
		change, not = p.runs.Remove, "goes on; cancel it first"
	}
	changed, err := change(ctx, run)
	if err == nil && !changed {
		err = &web.RunsError{Text: "run " + run + " " + not}
	}
	return forPage(err)
}

// Signal implements [web.Runs].
func (p runPages) Signal(ctx context.Context, run, mailbox string, data []byte) error {
	_, err := p.runs.Signal(ctx, run, mailbox, durable.Message{Data: data, From: "the pages of stile serve"})
	return forPage(err)
}

// Schedules implements [web.Runs].
func (p runPages) Schedules(ctx context.Context) ([]web.Schedule, error) {
	list, err := p.runs.Schedules(ctx)
	all := make([]web.Schedule, 0, len(list))
	for _, i := range list {
		all = append(all, web.Schedule{Name: i.Name, Tool: cmp.Or(i.Tool, i.Function), Cron: i.Cron, Zone: i.Zone, Paused: i.Paused, Next: i.Next, Reason: i.Reason, Run: i.Run})
	}
	return all, err
}

// ChangeSchedule implements [web.Runs].
func (p runPages) ChangeSchedule(ctx context.Context, schedule, action string) error {
	if action == "remove" {
		return forPage(p.runs.RemoveSchedule(ctx, schedule))
	}
	changed, err := p.runs.PauseSchedule(ctx, schedule, action == "pause")
	if err == nil && !changed {
		err = &web.RunsError{Text: "schedule " + schedule + " is in this state already"}
	}
	return forPage(err)
}
