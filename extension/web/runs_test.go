package web

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// runsOfTest are runs whose texts are hostile. It notes what was done with them.
type runsOfTest struct {
	mu   sync.Mutex
	did  []string
	fail error
}

const hostile = "<script>alert(1)</script>\x1b[31m\u202e\"'&\n"

func (f *runsOfTest) do(what string, args ...any) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.did = append(f.did, fmt.Sprintf(what, args...))
	return f.fail
}

func (f *runsOfTest) List(_ context.Context, before string, most int) (list []Run, err error) {
	for i := range most {
		list = append(list, Run{Name: fmt.Sprintf("%sr%d", before, i), Tool: hostile, Key: hostile, State: "asleep", Waits: hostile, Wake: time.Unix(1, 0), Blocked: &Blocked{hostile, hostile}})
	}
	return list, f.fail
}

func (f *runsOfTest) Show(_ context.Context, run string) (RunPage, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	actions := []string{"cancel", "retry", "remove"}
	if len(f.did) > 0 {
		actions = actions[:1]
	}
	return RunPage{
		Run: Run{Name: run, Tool: hostile, State: "asleep", Waits: hostile, Blocked: &Blocked{"child", hostile}}, Facts: []Fact{{hostile, hostile}}, Input: hostile, Output: hostile, Problem: strings.Repeat("x", 100_000),
		Operations: []RunOperation{{Number: 7, Text: hostile, Failed: true}, {Text: hostile}}, Parent: hostile, Children: []Run{{Name: "c1", Tool: hostile, State: "parked"}, {Name: hostile, Tool: hostile}}, MoreChildren: 5, Stash: hostile + strings.Repeat("y", 100_000), Messages: []RunMessage{{Mailbox: hostile, From: hostile, Data: hostile}}, More: 3,
		Actions: actions, Signals: true,
	}, f.fail
}

func (f *runsOfTest) Change(_ context.Context, run, action string) error {
	return f.do("%s %s", action, run)
}

func (f *runsOfTest) Signal(_ context.Context, run, mailbox string, data []byte) error {
	return f.do("signal %s %s %s", run, mailbox, data)
}

func (f *runsOfTest) Schedules(context.Context) ([]Schedule, error) {
	return []Schedule{{Name: "<script>", Tool: hostile, Cron: hostile, Zone: hostile, Reason: hostile, Run: "r1"}, {Name: "b", Paused: true}}, f.fail
}

func (f *runsOfTest) ChangeSchedule(_ context.Context, schedule, action string) error {
	return f.do("%s schedule %s", action, schedule)
}

// Hostile texts of tools and strangers are text on the pages of runs, and are cut.
func TestRunPages(t *testing.T) {
	s := newSite(t)
	for _, path := range []string{"~/runs", "~/runs/r1"} {
		if _, page := s.do("GET", path, nil, nil); !strings.Contains(page, "Operator token") {
			t.Errorf("%s without a session: %s", path, page)
		}
	}
	s.signIn()
	if _, page := s.do("GET", "~/", nil, nil); !strings.Contains(page, `<a href="runs">`) {
		t.Errorf("no link to the runs: %s", page)
	}
	for path, wants := range map[string][]string{
		"~/runs":             {`<a href="runs/r0">`, `href="runs?before=r49"`, "1970-01-01 00:00 UTC", `aria-label="Resume schedule b"`, `\x1b[31m\u202e`},
		"~/runs?before=%3Cb": {`href="runs/%3cbr0"`},
		"~/runs/r1":          {"<td>7</td>", "3 more are not shown", "Untrusted data", `value="cancel"`, `value="retry"`, `value="remove"`, `value="signal"`, `&lt;script&gt;`, `<a href="c1"><code>c1</code></a>`, "5 more are not shown", "What it keeps", `<a href="child"><code>child</code></a>, which is parked`},
	} {
		status, page := s.do("GET", path, nil, nil)
		if status != http.StatusOK || len(page) > 50_000 {
			t.Errorf("%s: %d, %d bytes", path, status, len(page))
		}
		for _, want := range wants {
			if !strings.Contains(page, want) {
				t.Errorf("%s has no %q: %s", path, want, page)
			}
		}
		if strings.Contains(page, "<script") || strings.ContainsAny(page, "\x1b\u202e") {
			t.Errorf("%s has what a tool wrote: %s", path, page)
		}
	}
	for err, want := range map[error]int{
		&RunsError{Missing: true, Text: hostile}: http.StatusNotFound, &RunsError{Text: hostile}: http.StatusConflict, errors.New("secret " + hostile): http.StatusInternalServerError,
	} {
		s.runs.fail = err
		for _, path := range []string{"~/runs", "~/runs/r1"} {
			if status, page := s.do("GET", path, nil, nil); status != want || strings.Contains(page, "<script") || strings.Contains(page, "secret") {
				t.Errorf("%s after %v: %d %s", path, err, status, page)
			}
		}
		if status, _ := s.do("POST", "~/runs/r1", url.Values{"form": {s.form()}, "action": {"cancel"}}, nil); status != want {
			t.Errorf("%v: got %d", err, status)
		}
	}
}

// Only a form of the session does something with runs.
func TestRunActions(t *testing.T) {
	s := newSite(t)
	s.signIn()
	form := s.form()
	with := func(pairs ...string) url.Values {
		v := url.Values{}
		for i := 0; i < len(pairs); i += 2 {
			v.Set(pairs[i], pairs[i+1])
		}
		return v
	}
	for _, c := range []struct {
		path   string
		form   url.Values
		change func(*http.Request)
		status int
	}{
		{"~/runs/r1", with("action", "cancel"), nil, http.StatusForbidden},
		{"~/runs/r1", with("form", "x", "action", "cancel"), nil, http.StatusForbidden},
		{"~/runs/r1", with("form", form, "action", "cancel"), func(r *http.Request) { r.Header.Set("Origin", "https://evil.example") }, http.StatusForbidden},
		{"~/schedules", with("schedule", "b", "action", "remove"), nil, http.StatusForbidden},
		{"~/runs/r1", with("form", form, "action", "burn"), nil, http.StatusBadRequest},
		{"~/schedules", with("form", form, "schedule", "b", "action", "burn"), nil, http.StatusBadRequest},
	} {
		if status, page := s.do("POST", c.path, c.form, c.change); status != c.status {
			t.Errorf("%s %v: got %d, want %d: %s", c.path, c.form, status, c.status, page)
		}
	}
	if len(s.runs.did) > 0 {
		t.Fatalf("something was done: %v", s.runs.did)
	}
	var want []string
	for _, action := range []string{"cancel", "retry", "remove"} {
		if status, page := s.do("POST", "~/runs/r1", with("form", form, "action", action), nil); status != http.StatusOK {
			t.Errorf("%s: %d %s", action, status, page)
		}
		want = append(want, action+" r1")
	}
	if status, _ := s.do("POST", "~/runs/r1", with("form", form, "action", "signal", "mailbox", "m", "data", `{"a": 1}`), nil); status != http.StatusOK {
		t.Errorf("got %d", status)
	}
	want = append(want, `signal r1 m {"a": 1}`)
	for _, action := range []string{"pause", "resume", "remove"} {
		if status, _ := s.do("POST", "~/schedules", with("form", form, "schedule", "b", "action", action), nil); status != http.StatusOK {
			t.Errorf("%s: %d", action, status)
		}
		want = append(want, action+" schedule b")
	}
	if !slices.Equal(s.runs.did, want) {
		t.Errorf("got %v, want %v", s.runs.did, want)
	}
}

// Without runs, there is no page of them.
func TestNoRuns(t *testing.T) {
	s := newSite(t)
	s.handler = New(Options{Manager: s.manager, Hosts: Hosts(s.Listener.Addr()), Person: "user:tom"})
	s.Config.Handler = s.handler
	s.signIn()
	if _, page := s.do("GET", "~/", nil, nil); strings.Contains(page, `href="runs"`) {
		t.Errorf("there is a link: %s", page)
	}
}
