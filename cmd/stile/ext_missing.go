package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/stilehost/stile/extension"
	"github.com/stilehost/stile/extension/lifecycle"
)

// unknownError reports a call of a tool that does not exist. It has the reason, if known, and the tools that exist.
type unknownError struct {
	error
	why   string
	known []string
}

func (e *unknownError) Error() string { return e.error.Error() + e.why }

func (e *unknownError) Unwrap() error { return e.error }

// unknown explains why there is no such tool.
func (e *extensions) unknown(ctx context.Context, v lifecycle.Viewer, tool string, err error) error {
	unknown := &unknownError{error: err}
	tools, _ := e.Tools(ctx, v) // it only explains an error
	for _, t := range tools {
		unknown.known = append(unknown.known, t.Name)
	}
	if why, _ := e.MissingTool(ctx, v, tool); why != nil {
		unknown.why = whyText(why, v)
	}
	for i, c := range tool { // the extension's name ends at one of these, and has "-" where its tools have "_"
		if c == '_' && unknown.why == "" {
			unknown.why = e.whyMissing(ctx, v, strings.ReplaceAll(tool[:i], "_", "-"))
		}
	}
	switch {
	case unknown.why != "":
	case len(unknown.known) == 0:
		unknown.why = "; there are no tools: stile ext add adds an extension"
	default:
		unknown.why = "; there are: " + strings.Join(unknown.known, ", ")
	}
	return unknown
}

// Find calls the manager's Find, and explains why there is none.
func (e *extensions) Find(ctx context.Context, v lifecycle.Viewer, name string) (lifecycle.Release, error) {
	r, err := e.Manager.Find(ctx, v, name)
	if missing, ok := errors.AsType[*lifecycle.NotFoundError](err); ok && missing.Why != nil {
		err = &lifecycle.NotFoundError{What: "extension " + name + whyText(missing.Why, v)}
	}
	return r, err
}

// whyMissing explains what happened to an extension that a viewer asked for. It is empty if nothing is known.
func (e *extensions) whyMissing(ctx context.Context, v lifecycle.Viewer, name string) string {
	why, err := e.MissingExtension(ctx, v, name)
	if err != nil || why == nil { // it only explains an error
		return ""
	}
	return whyText(why, v)
}

// whyText says why something that a viewer asked for is missing.
func whyText(r *lifecycle.Release, v lifecycle.Viewer) string {
	switch {
	case r.State == lifecycle.Pending:
		return fmt.Sprintf("; a version of %s waits in scope %s as request %d: stile ext approve %[3]d", r.Name, r.Scope, r.ID)
	case r.State != lifecycle.Active:
		return fmt.Sprintf("; %s %s in scope %s", r.Name, endedText(*r), r.Scope)
	case !slices.Contains(extension.Visible(v.User, v.Agent), r.Scope):
		return fmt.Sprintf("; %s is in scope %s: --scope %[2]s", r.Name, r.Scope)
	default:
		return fmt.Sprintf("; %s is in quarantine: %s", r.Name, line(r.Quarantine, 200))
	}
}

// endedText says how a release ended, by whom and why.
func endedText(r lifecycle.Release) string {
	var b strings.Builder
	fmt.Fprintf(&b, "was %s", r.State)
	if r.By != "" {
		fmt.Fprintf(&b, " by %s", line(r.By, 60))
	}
	if r.Reason != "" {
		fmt.Fprintf(&b, " (%s)", line(r.Reason, 200))
	}
	return b.String()
}
