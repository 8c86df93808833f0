package main

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stilehost/stile/durable"
	"github.com/stilehost/stile/extension/web"
	"github.com/stilehost/stile/host"
	"github.com/stilehost/stile/internal/errkind"
	"github.com/stilehost/stile/secret"
)

// TestRunPages has the pages show and change runs of a real store.
func TestRunPages(t *testing.T) {
	dir := t.TempDir()
	runs, err := durable.Open(t.Context(), durable.Options{
		Dir: dir, Key: make([]byte, durable.KeySize), Idle: time.Millisecond,
		Functions: map[string]durable.Function{"f": durable.Func(func(ctx context.Context, fails bool) (string, error) {
			if err := durable.Stash(ctx, map[string]bool{"<b>": fails}); err != nil {
				return "", err
			}
			if _, err := durable.Step(ctx, "first", func(context.Context) (int, error) { return 1, errors.New("sold out") }); fails {
				return "", err
			}
			_, _, err := durable.Receive[string](ctx, "approved", 0)
			return "done", err
		})},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := runs.Close(); err != nil {
			t.Error(err)
		}
	}()
	pages := runPages{runs}
	begin := func(input string) string {
		t.Helper()
		run, _, err := runs.Start(t.Context(), durable.Spec{Function: "f", Input: []byte(input)})
		if err != nil {
			t.Fatal(err)
		}
		return run.Name
	}
	shown := func(run, state string) web.RunPage {
		t.Helper()
		for {
			page, err := pages.Show(t.Context(), run)
			if err != nil {
				t.Fatal(err)
			}
			if page.State == state {
				return page
			}
			<-time.After(time.Millisecond)
		}
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	refused := func(missing bool, err error) {
		t.Helper()
		if told, ok := errors.AsType[*web.RunsError](err); !ok || told.Missing != missing {
			t.Errorf("got %v", err)
		}
	}
	waits, fails := begin("false"), begin("true")
	must(pages.Signal(t.Context(), fails, "m", []byte(`"hi"`)))
	if page := shown(fails, "ready"); len(page.Messages) != 1 || page.Messages[0].Data != `"hi"` || !page.Signals {
		t.Errorf("got %+v", page)
	}
	runs.Work()
	page := shown(waits, "asleep")
	if page.Waits != "signals in approved" || len(page.Operations) != 3 || page.Operations[1].Text != `step("first") failed: error: sold out` || !page.Operations[1].Failed || page.Stash != `{"\u003cb\u003e":false}` {
		t.Errorf("got %+v", page)
	}
	page = shown(fails, "failed")
	if !strings.Contains(page.Problem, "sold out") || strings.Join(page.Actions, " ") != "retry remove" || page.Signals {
		t.Errorf("got %+v", page)
	}
	db, err := sql.Open("sqlite", "file:"+filepath.Join(dir, durable.File)+"?_pragma=busy_timeout(60000)")
	must(err)
	defer func() { must(db.Close()) }()
	family := func(parent, state string) { // as if waits had called fails
		t.Helper()
		_, err := db.ExecContext(t.Context(), `UPDATE run SET parent = (SELECT id FROM run WHERE name = ?), state = ?, reason = 'why' WHERE name = ?`, parent, state, fails)
		must(err)
		_, err = db.ExecContext(t.Context(), `UPDATE run SET refused = 3, refusal = 1 WHERE name = ?`, waits)
		must(err)
	}
	family(waits, "parked")
	page = shown(waits, "asleep")
	if b := page.Blocked; b == nil || b.Run != fails || b.Reason != "why" || len(page.Children) != 1 || page.Children[0].Name != fails || page.Children[0].State != "parked" {
		t.Errorf("got %+v", page)
	}
	if refusals := (web.Fact{Name: "Refused posts", Text: "3 that were not signed as they must be, the last at 1970-01-01 00:00 UTC"}); !slices.Contains(page.Facts, refusals) {
		t.Errorf("got %+v", page.Facts)
	}
	if list, err := pages.List(t.Context(), "", 10); err != nil || len(list) != 1 || list[0].Blocked == nil {
		t.Errorf("got %+v, %v", list, err)
	}
	family("", "failed")
	refused(false, pages.Change(t.Context(), fails, "cancel"))
	refused(false, pages.Change(t.Context(), waits, "retry"))
	refused(false, pages.Change(t.Context(), waits, "remove"))
	refused(false, pages.Signal(t.Context(), fails, "approved", []byte("1")))
	refused(false, pages.Signal(t.Context(), waits, "not a name", []byte("1")))
	refused(true, pages.Change(t.Context(), "nothing", "cancel"))
	refused(true, pages.ChangeSchedule(t.Context(), "nothing", "pause"))
	if _, err := pages.Show(t.Context(), "nothing"); !errkind.Is[*web.RunsError](err) {
		t.Errorf("got %v", err)
	}
	must(pages.Signal(t.Context(), waits, "approved", []byte(`"yes"`)))
	if page := shown(waits, "done"); page.Output != `"done"` || strings.Join(page.Actions, " ") != "remove" {
		t.Errorf("got %+v", page)
	}
	must(pages.Change(t.Context(), fails, "retry"))
	for len(shown(fails, "failed").Operations) < 5 { // the note on the attempt is one
		<-time.After(time.Millisecond)
	}
	must(pages.Change(t.Context(), fails, "remove"))
	if list, err := pages.List(t.Context(), "", 10); err != nil || len(list) != 1 || list[0].Name != waits {
		t.Errorf("got %+v, %v", list, err)
	}
	if _, err := runs.AddSchedule(t.Context(), durable.Schedule{Name: "s", Cron: "@daily", Spec: durable.Spec{Function: "f"}}); err != nil {
		t.Fatal(err)
	}
	must(pages.ChangeSchedule(t.Context(), "s", "pause"))
	refused(false, pages.ChangeSchedule(t.Context(), "s", "pause"))
	if all, err := pages.Schedules(t.Context()); err != nil || len(all) != 1 || !all[0].Paused || all[0].Tool != "f" {
		t.Errorf("got %+v, %v", all, err)
	}
	must(pages.ChangeSchedule(t.Context(), "s", "remove"))
}

// TestUnreadableRun lists and shows a run whose input somebody has altered.
func TestUnreadableRun(t *testing.T) {
	home := t.TempDir()
	var runs *durable.Runs
	open := func() {
		t.Helper()
		var err error
		runs, err = durable.Open(t.Context(), durable.Options{Dir: home, Key: make([]byte, durable.KeySize), Functions: map[string]durable.Function{"f": nil}})
		if err != nil {
			t.Fatal(err)
		}
	}
	open()
	run, _, err := runs.Start(t.Context(), durable.Spec{Function: "f"})
	if err != nil {
		t.Fatal(err)
	}
	db, err := sql.Open("sqlite", "file:"+filepath.Join(home, durable.File)+"?_pragma=busy_timeout(60000)")
	if err != nil {
		t.Fatal(err)
	}
	_, err = db.ExecContext(t.Context(), `UPDATE run SET spec = zeroblob(length(spec))`)
	if err = errors.Join(err, db.Close(), runs.Close()); err != nil {
		t.Fatal(err)
	}
	open()
	defer func() {
		if err := runs.Close(); err != nil {
			t.Error(err)
		}
	}()
	pages := runPages{runs}
	list, err := pages.List(t.Context(), "", 10)
	if err != nil || len(list) != 1 || list[0].Name != run.Name || list[0].Tool != "unreadable" {
		t.Errorf("got %+v, %v", list, err)
	}
	page, err := pages.Show(t.Context(), run.Name)
	if err != nil || page.Tool != "unreadable" || !slices.ContainsFunc(page.Facts, func(f web.Fact) bool {
		return f.Name == "Unreadable" && strings.Contains(f.Text, "it is damaged or was altered, or the key is another")
	}) {
		t.Errorf("got %+v, %v", page, err)
	}
}

// TestRunPagesHideSecrets has a run with a secret everywhere where a run can have one, and one with the address of a mailbox.
func TestRunPagesHideSecrets(t *testing.T) {
	const known = "hunter2-and-more"
	t.Run("secret", func(t *testing.T) { runPagesHide(t, known, known, known, known, secret.Mark) })
	const token = "AbCdEfGhIjKlMnOpQrStUvWxYz0123456789-_abcde"
	t.Run("address", func(t *testing.T) {
		runPagesHide(t, known, "https://h.example/signals/"+token, "approved", token, "https://h.example/signals/"+host.HiddenAddress)
	})
}

// runPagesHide shows a run that has a text wherever it can have one, apart from the name of its mailbox. A part of it is never shown, and a mark is instead.
func runPagesHide(t *testing.T, known, value, mailbox, hidden, mark string) {
	t.Helper()
	h, err := host.New(t.Context(), host.Options{Redact: func(text []byte) []byte { return []byte(secret.NewRedactor(known).Redact(string(text))) }})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := h.Close(); err != nil {
			t.Error(err)
		}
	}()
	runs, err := durable.Open(t.Context(), durable.Options{
		Dir: t.TempDir(), Key: make([]byte, durable.KeySize), Idle: time.Millisecond, Host: h,
		Functions: map[string]durable.Function{"f": durable.Func(func(ctx context.Context, token string) (string, error) {
			if err := durable.Stash(ctx, token); err != nil {
				return "", err
			}
			_, _ = durable.Step(ctx, token, func(context.Context) (string, error) { return "it is " + token, nil })
			_, _ = durable.Step(ctx, "fails", func(context.Context) (string, error) { return "", errors.New("no " + token) })
			answer, _, err := durable.Receive[string](ctx, mailbox, 0)
			if err == nil && answer == "fail" {
				err = errors.New("failed with " + token)
			}
			return token, err
		})},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := runs.Close(); err != nil {
			t.Error(err)
		}
	}()
	pages := runPages{runs}
	run, _, err := runs.Start(t.Context(), durable.Spec{Function: "f", Key: "key-" + value, Target: value, Input: []byte(`"` + value + `"`), Retry: durable.Retry{Attempts: 2, Delay: time.Millisecond}})
	if err != nil {
		t.Fatal(err)
	}
	look := func(state string) {
		t.Helper()
		for {
			page, err := pages.Show(t.Context(), run.Name)
			if err != nil {
				t.Fatal(err)
			}
			list, err := pages.List(t.Context(), "", 10)
			if err != nil {
				t.Fatal(err)
			}
			shown, err := runs.Show(t.Context(), run.Name)
			if err != nil {
				t.Fatal(err)
			}
			for _, what := range []any{page, list, shown} {
				text, err := json.Marshal(what)
				if err != nil {
					t.Fatal(err)
				}
				if at := strings.Index(string(text), hidden); at >= 0 {
					t.Fatalf("while it is %s: %s", page.State, text[max(0, at-100):at+len(hidden)])
				}
			}
			if page.State == state {
				if !strings.Contains(page.Input, mark) || !strings.Contains(page.Stash, mark) || len(page.Operations) < 4 {
					t.Errorf("got %+v", page)
				}
				return
			}
			<-time.After(time.Millisecond)
		}
	}
	if _, err := runs.Signal(t.Context(), run.Name, "m-"+mailbox, durable.Message{Data: []byte(`"` + value + `"`), Key: value, From: value}); err != nil {
		t.Fatal(err)
	}
	runs.Work()
	look("asleep")
	for _, state := range []string{"asleep", "failed"} { // after an attempt, and after the last
		if _, err := runs.Signal(t.Context(), run.Name, mailbox, durable.Message{Data: []byte(`"fail"`)}); err != nil {
			t.Fatal(err)
		}
		for {
			r, err := runs.Result(t.Context(), run.Name)
			if err != nil {
				t.Fatal(err)
			}
			if state == "failed" || len(r.Attempts) == 1 && len(r.Mailboxes) == 1 {
				break
			}
			<-time.After(time.Millisecond)
		}
		look(state)
	}
}
