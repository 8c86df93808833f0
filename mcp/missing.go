package mcp

import (
	"context"
	"errors"
	"fmt"

	"github.com/stilehost/stile/extension"
	"github.com/stilehost/stile/extension/lifecycle"
	"github.com/stilehost/stile/internal/printable"
)

// missing explains why an existing tool cannot be called. It is nil if the tool can be called, or if nobody ever wrote it.
func (e *endpoint) missing(ctx context.Context, tool string) error {
	if e.offers(tool) || e.builtin[tool] || len(tool) > extension.MaxToolName {
		return nil
	}
	r, err := e.options.Manager.MissingTool(ctx, e.viewer, tool)
	if err != nil || r == nil {
		return nil // the call says only that there is no such tool
	}
	return whyMissing(*r, tool)
}

// whyMissing says why a tool of a release cannot be called.
func whyMissing(r lifecycle.Release, tool string) error {
	switch {
	case r.State == lifecycle.Pending:
		return absent(fmt.Sprintf("the tool %s waits until a person approves request %d, which you cannot do: stile ext approve %d", tool, r.ID, r.ID))
	case r.State == lifecycle.Revoked:
		return &lifecycle.RevokedError{Extension: r.Name, Reason: printable.Short(r.Reason, 500)}
	case r.State == lifecycle.Denied:
		return absent(reason(fmt.Sprintf("the tool %s is not available, because a person refused request %d", tool, r.ID), r.Reason))
	case r.State == lifecycle.Removed:
		return absent(reason(fmt.Sprintf("the tool %s is gone: the extension %s was removed", tool, r.Name), r.Reason))
	case r.State == lifecycle.Active && r.Quarantine != "":
		return &lifecycle.QuarantinedError{Extension: r.Name, Reason: printable.Short(r.Quarantine, 500)}
	default:
		return nil
	}
}

// absent is the error of a call of a tool that exists but is not active.
type absent string

// Error implements error.
func (a absent) Error() string { return string(a) }

func reason(text, why string) string {
	if why == "" {
		return text
	}
	return text + ": " + printable.Short(why, 500)
}

// notOwn says who owns an extension that the caller cannot remove.
func (r *request) notOwn(ctx context.Context, name string, err error) error {
	if !errors.As(err, new(*lifecycle.NotFoundError)) {
		return err
	}
	found, other := r.options.Manager.Find(ctx, r.viewer, name)
	if other != nil {
		return err
	}
	return absent(fmt.Sprintf("the extension %s is in the scope %s, and only a person can remove it: stile ext revoke %s --scope %s", found.Name, found.Scope, found.Name, found.Scope))
}
