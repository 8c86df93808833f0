package web

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/stilehost/stile/internal/printable"
)

// Runs are the durable runs that the pages show. What it returns need not be safe for a page. It is safe for concurrent use.
type Runs interface {
	// List returns runs, the newest first: at most so many, and those before a name if it is not empty.
	List(ctx context.Context, before string, most int) ([]Run, error)
	// Show returns a run with everything that its page shows.
	Show(ctx context.Context, run string) (RunPage, error)
	// Change does something with a run: one of the [RunPage.Actions].
	Change(ctx context.Context, run, action string) error
	// Signal sends a message to a mailbox of a run.
	Signal(ctx context.Context, run, mailbox string, data []byte) error
	// Schedules returns the schedules.
	Schedules(ctx context.Context) ([]Schedule, error)
	// ChangeSchedule pauses, resumes or removes a schedule, as "pause", "resume" or "remove".
	ChangeSchedule(ctx context.Context, schedule, action string) error
}

// RunsError is an error of [Runs] that the person is shown.
type RunsError struct {
	// Missing says that there is no such run or schedule.
	Missing bool
	Text    string
}

func (e *RunsError) Error() string { return e.Text }

// Run is a run in the list.
type Run struct {
	Name, Tool, Key, State string
	// Since is when it came into its state.
	Since time.Time
	// Waits says what a sleeping run waits for. It is empty if it is only a time.
	Waits string
	// Wake is when it goes on. It is zero if no time makes it.
	Wake time.Time
	// Blocked is a run that it has called and that is parked. It is nil if there is none.
	Blocked *Blocked
}

// Blocked is a run that is parked, and why.
type Blocked struct{ Run, Reason string }

// RunPage is what the page of a run shows.
type RunPage struct {
	Run
	// Facts are what else is known of it.
	Facts []Fact
	// Input and Output are JSON. Problem says why there is no output.
	Input, Output, Problem string
	// Parent is the run that called it. It is empty for one that no run has called.
	Parent string
	// Children are runs that it has called, of which MoreChildren are not here.
	Children     []Run
	MoreChildren int
	// Stash is JSON that it keeps for later attempts. It is empty if it keeps nothing.
	Stash string
	// Operations are what it did, the oldest first.
	Operations []RunOperation
	// Messages wait for it, of which More are not here.
	Messages []RunMessage
	More     int
	// Actions are those of "cancel", "retry" and "remove" that are possible. Signals says that it can receive messages.
	Actions []string
	Signals bool
}

// Fact is something that is known of a run.
type Fact struct{ Name, Text string }

// RunOperation is an operation of a run. Number and Time are zero for a note between operations.
type RunOperation struct {
	Number uint64
	Time   time.Time
	Text   string
	// Failed says that it did not succeed.
	Failed bool
}

// RunMessage is a message from outside.
type RunMessage struct {
	Mailbox, From, Data string
	Received            time.Time
}

// Schedule is a schedule in the list.
type Schedule struct {
	Name, Tool, Cron, Zone string
	Paused                 bool
	// Next is when it starts a run. It is zero, and Reason may say why, if it starts none.
	Next   time.Time
	Reason string
	// Run is the last that it started.
	Run string
}

// listedRuns is how many runs a page lists.
const listedRuns = 50

// handleRuns adds the pages of runs.
func (h *Handler) handleRuns() {
	h.mux.HandleFunc("GET /sessions/{session}/runs", h.signedIn(h.listRuns))
	h.mux.HandleFunc("GET /sessions/{session}/runs/{run}", h.signedIn(h.showRun))
	h.mux.HandleFunc("POST /sessions/{session}/runs/{run}", h.signedIn(h.changeRun))
	h.mux.HandleFunc("POST /sessions/{session}/schedules", h.signedIn(h.changeSchedule))
}

// explainRuns shows an error of [Runs].
func (h *Handler) explainRuns(w http.ResponseWriter, err error) {
	told, ok := errors.AsType[*RunsError](err)
	switch {
	case !ok:
		h.options.Logger.Error("serve a page of runs", "error", err)
		h.fail(w, http.StatusInternalServerError, "The runs cannot be read. The log of the server says why.")
	case told.Missing:
		h.fail(w, http.StatusNotFound, printable.Text(told.Text))
	default:
		h.fail(w, http.StatusConflict, printable.Text(told.Text))
	}
}

func (h *Handler) listRuns(w http.ResponseWriter, r *http.Request, s session) {
	runs, err := h.options.Runs.List(r.Context(), r.URL.Query().Get("before"), listedRuns+1)
	var schedules []Schedule
	if err == nil {
		schedules, err = h.options.Runs.Schedules(r.Context())
	}
	if err != nil {
		h.explainRuns(w, err)
		return
	}
	before := ""
	if len(runs) > listedRuns {
		runs = runs[:listedRuns]
		before = runs[listedRuns-1].Name
	}
	h.show(w, http.StatusOK, "runs.html", struct {
		Session   session
		Runs      []Run
		Before    string
		Schedules []Schedule
	}{s, runs, before, schedules})
}

func (h *Handler) showRun(w http.ResponseWriter, r *http.Request, s session) {
	page, err := h.options.Runs.Show(r.Context(), r.PathValue("run"))
	if err != nil {
		h.explainRuns(w, err)
		return
	}
	h.show(w, http.StatusOK, "run.html", struct {
		Session session
		RunPage
	}{s, page})
}

func (h *Handler) changeRun(w http.ResponseWriter, r *http.Request, s session) {
	name, to := r.PathValue("run"), s.Home+"runs"
	var err error
	switch action := r.PostForm.Get("action"); action {
	case "signal":
		err = h.options.Runs.Signal(r.Context(), name, r.PostForm.Get("mailbox"), []byte(r.PostForm.Get("data")))
		to += "/" + name
	case "cancel", "retry":
		err = h.options.Runs.Change(r.Context(), name, action)
		to += "/" + name
	case "remove":
		err = h.options.Runs.Change(r.Context(), name, action)
	default:
		h.fail(w, http.StatusBadRequest, "Cancel, retry, remove or signal.")
		return
	}
	if err != nil {
		h.explainRuns(w, err)
		return
	}
	http.Redirect(w, r, to, http.StatusSeeOther)
}

func (h *Handler) changeSchedule(w http.ResponseWriter, r *http.Request, s session) {
	action := r.PostForm.Get("action")
	switch action {
	case "pause", "resume", "remove":
	default:
		h.fail(w, http.StatusBadRequest, "Pause, resume or remove.")
		return
	}
	if err := h.options.Runs.ChangeSchedule(r.Context(), r.PostForm.Get("schedule"), action); err != nil {
		h.explainRuns(w, err)
		return
	}
	http.Redirect(w, r, s.Home+"runs", http.StatusSeeOther)
}
