package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

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
	why, _ := e.MissingTool(ctx, v, tool)
	for i, c := range tool { // the extension's name ends at one of these, and has "-" where its tools have "_"
		if c == '_' && why == nil {
			why, _ = e.MissingExtension(ctx, v, strings.ReplaceAll(tool[:i], "_", "-"))
		}
	}
	switch {
	case why != nil:
		unknown.why = "; " + why.Error() + remedyOf(why)
	case len(unknown.known) == 0:
		unknown.why = "; there are no tools: stile ext add adds an extension"
	default:
		unknown.why = "; there are: " + strings.Join(unknown.known, ", ")
	}
	return unknown
}

// Find calls the manager's Find, and adds to its error what to do.
func (e *extensions) Find(ctx context.Context, v lifecycle.Viewer, name string) (lifecycle.Release, error) {
	r, err := e.Manager.Find(ctx, v, name)
	if missing, ok := errors.AsType[*lifecycle.NotFoundError](err); ok && missing.Why != nil {
		err = fmt.Errorf("%w%s", err, remedyOf(missing.Why))
	}
	return r, err
}

// remedyOf names the command, or the flag, that reaches what is missing. It is empty if there is none.
func remedyOf(why *lifecycle.MissingError) string {
	switch why.Reason {
	case lifecycle.MissingWaits:
		return fmt.Sprintf(": stile ext approve %d", why.Release.ID)
	case lifecycle.MissingElsewhere:
		return fmt.Sprintf(": --scope %s", why.Release.Scope)
	default:
		return ""
	}
}
