package mcp

import (
	"context"
	"errors"
	"fmt"

	"github.com/stilehost/stile/extension"
	"github.com/stilehost/stile/extension/lifecycle"
)

// missing explains why an existing tool cannot be called. It is nil if the tool can be called, or if nobody ever wrote it.
func (e *endpoint) missing(ctx context.Context, tool string) error {
	if e.builtin[tool] {
		return e.beyond(ctx, tool)
	}
	if e.offers(tool) || len(tool) > extension.MaxToolName {
		return nil
	}
	why, err := e.options.Manager.MissingTool(ctx, e.viewer, tool)
	if err != nil || why == nil {
		return nil // the call says only that there is no such tool
	}
	remedy := ""
	switch why.Reason {
	case lifecycle.MissingWaits:
		remedy = fmt.Sprintf(", which only a person can approve: stile ext approve %d", why.Release.ID)
	case lifecycle.MissingQuarantined:
		remedy = "; write it again or remove it"
	case lifecycle.MissingElsewhere, lifecycle.MissingEnded:
	}
	return fmt.Errorf("the tool %s cannot be called: %w%s", tool, why, remedy)
}

// ownerError is the error of removing an extension of another scope.
type ownerError string

// Error implements error.
func (e ownerError) Error() string { return string(e) }

// notOwn says who owns an extension that the caller cannot remove.
func (r *request) notOwn(ctx context.Context, name string, err error) error {
	if !errors.As(err, new(*lifecycle.NotFoundError)) {
		return err
	}
	found, other := r.options.Manager.Find(ctx, r.viewer, name)
	if other != nil {
		return err
	}
	return ownerError(fmt.Sprintf("the extension %s is in the scope %s, and only a person can remove it: stile ext revoke %s --scope %s", found.Name, found.Scope, found.Name, found.Scope))
}
