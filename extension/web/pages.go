package web

import (
	"bytes"
	"errors"
	"net/http"
	"strconv"
	"time"

	"github.com/stilehost/stile/extension"
	"github.com/stilehost/stile/extension/lifecycle"
	"github.com/stilehost/stile/internal/printable"
)

// show renders a page completely or not at all.
func (h *Handler) show(w http.ResponseWriter, status int, page string, data any) {
	h.send(w, status, h.render(page, data))
}

// render returns nil if it fails.
func (h *Handler) render(page string, data any) []byte {
	var b bytes.Buffer
	if err := pages().ExecuteTemplate(&b, page, data); err != nil {
		h.options.Logger.Error("render a page", "page", page, "error", err)
		return nil
	}
	return b.Bytes()
}

func (h *Handler) send(w http.ResponseWriter, status int, page []byte) {
	if page == nil {
		http.Error(w, "This page cannot be shown.", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write(page)
}

// fail shows an error to the person.
func (h *Handler) fail(w http.ResponseWriter, status int, message string) {
	h.show(w, status, "problem.html", message)
}

// explain shows an error of the manager. A decision that somebody else made meanwhile is not a fault.
func (h *Handler) explain(w http.ResponseWriter, err error) {
	status := http.StatusInternalServerError
	switch {
	case errors.As(err, new(*lifecycle.NotFoundError)):
		status = http.StatusNotFound
	case errors.As(err, new(*lifecycle.QuestionError)), errors.As(err, new(*lifecycle.StateError)), errors.As(err, new(*lifecycle.DigestError)):
		status = http.StatusConflict
	case errors.As(err, new(*lifecycle.PolicyError)):
		status = http.StatusForbidden
	default:
		h.options.Logger.Error("serve a page", "error", err)
	}
	h.fail(w, status, printable.Text(err.Error()))
}

func (h *Handler) overview(w http.ResponseWriter, r *http.Request, s session) {
	pending, err := h.options.Manager.Pending(r.Context())
	if err != nil {
		h.explain(w, err)
		return
	}
	active, err := h.options.Manager.Active(r.Context())
	if err != nil {
		h.explain(w, err)
		return
	}
	questions, _ := h.options.Manager.Questions()
	h.show(w, http.StatusOK, "overview.html", struct {
		Session         session
		Questions       []lifecycle.Question
		Pending, Active []lifecycle.Release
		Runs            bool
	}{s, questions, pending, active, h.options.Runs != nil})
}

// answer answers a question of code that waits.
func (h *Handler) answer(w http.ResponseWriter, r *http.Request, s session) {
	decision := r.PostForm.Get("decision")
	if decision != "approve" && decision != "deny" {
		h.fail(w, http.StatusBadRequest, "Approve or deny.")
		return
	}
	if err := h.options.Manager.Answer(r.Context(), requestID(r), decision == "approve", h.options.Person, lifecycle.ViaWeb); err != nil {
		h.explain(w, err)
		return
	}
	http.Redirect(w, r, s.Home, http.StatusSeeOther)
}

// requestID is the number in the path, or 0 if it is not a number.
func requestID(r *http.Request) int64 {
	id, _ := strconv.ParseInt(r.PathValue("id"), 10, 64)
	return id
}

// authority is what a binding lets an extension do.
type authority struct {
	Binding string
	Lines   []string
}

func (h *Handler) request(w http.ResponseWriter, r *http.Request, s session) {
	page, err := h.review(r, s)
	switch {
	case r.Context().Err() != nil: // nobody waits for it
	case err != nil:
		h.explain(w, err)
	default:
		h.send(w, http.StatusOK, page)
	}
}

// review renders a request, once fewer than maxReviews are being rendered.
func (h *Handler) review(r *http.Request, s session) ([]byte, error) {
	select {
	case h.reviews <- struct{}{}:
		defer func() { <-h.reviews }()
	case <-r.Context().Done():
		return nil, r.Context().Err()
	}
	review, err := h.options.Manager.Review(r.Context(), requestID(r))
	if err != nil {
		return nil, err
	}
	var may []authority
	for _, b := range review.Granted {
		may = append(may, authority{b.Name, extension.Describe(b)})
	}
	return h.render("request.html", struct {
		Session session
		lifecycle.Review
		May     []authority
		Report  string
		Pending bool
	}{s, review, may, review.Version.Report.Text(), review.Release.State == lifecycle.Pending}), nil
}

func (h *Handler) decide(w http.ResponseWriter, r *http.Request, s session) {
	d := lifecycle.Decision{Release: requestID(r), Digest: r.PostForm.Get("digest"), By: h.options.Person, Via: lifecycle.ViaWeb, Reason: r.PostForm.Get("reason")}
	var err error
	switch r.PostForm.Get("decision") {
	case "approve":
		_, err = h.options.Manager.Approve(r.Context(), d)
	case "deny":
		_, err = h.options.Manager.Deny(r.Context(), d)
	default:
		h.fail(w, http.StatusBadRequest, "Approve or deny.")
		return
	}
	if err != nil {
		h.explain(w, err)
		return
	}
	http.Redirect(w, r, s.Home, http.StatusSeeOther)
}

func (h *Handler) revoke(w http.ResponseWriter, r *http.Request, s session) {
	scope, err := extension.ParseScope(r.PostForm.Get("scope"))
	if err != nil {
		h.fail(w, http.StatusBadRequest, printable.Text(err.Error()))
		return
	}
	d := lifecycle.Decision{By: h.options.Person, Via: lifecycle.ViaWeb, Reason: r.PostForm.Get("reason")}
	if _, err := h.options.Manager.Revoke(r.Context(), scope, r.PostForm.Get("name"), d); err != nil {
		h.explain(w, err)
		return
	}
	http.Redirect(w, r, s.Home, http.StatusSeeOther)
}

func when(t time.Time) string { return t.UTC().Format("2006-01-02 15:04 UTC") }

func second(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05 UTC") }

// shown is a text of strangers on one line, and cut.
func shown(most int, text string) string { return printable.OneLine(printable.Short(text, most)) }
