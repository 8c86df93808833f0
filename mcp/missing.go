package mcp

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/extension"
	"github.com/stilehost/stile/extension/lifecycle"
)

// maxName is the most bytes of the name of a tool.
const maxName = 64

// missing says why a tool that was written cannot be called; nil when it can be, or nobody ever wrote it.
func (e *endpoint) missing(ctx context.Context, tool string) error {
	if e.offers(tool) || extension.Reserved(tool) || len(tool) > maxName {
		return nil
	}
	for _, scope := range extension.Visible(e.viewer.User, e.viewer.Agent) {
		for i, c := range tool {
			if c != '_' {
				continue
			}
			// The name of an extension has no "_" of its own.
			all, err := e.options.Manager.History(ctx, scope, strings.ReplaceAll(tool[:i], "_", "-"))
			if err != nil {
				continue // there is no such extension, or else the call says only that there is no such tool
			}
			all = slices.DeleteFunc(all, func(r lifecycle.Release) bool { return !e.viewer.Sees(r) })
			for _, r := range all {
				if !e.has(ctx, r, tool) {
					continue
				}
				if r.State == lifecycle.Denied && slices.ContainsFunc(all, func(o lifecycle.Release) bool {
					return o.State == lifecycle.Revoked && !o.Decided.Before(r.Decided)
				}) {
					continue // it was denied as the extension was revoked, which says more
				}
				if why := whyMissing(r, tool); why != nil {
					return why
				}
				break // an older version says less
			}
		}
	}
	return nil
}

// has reports whether a release has a tool of this full name.
func (e *endpoint) has(ctx context.Context, r lifecycle.Release, tool string) bool {
	v, err := e.options.Manager.Version(ctx, r.Digest)
	return err == nil && slices.ContainsFunc(v.Tools, func(d abi.Definition) bool { return extension.ToolName(r.Name, d.Name) == tool })
}

// whyMissing says why a tool of a release cannot be called.
func whyMissing(r lifecycle.Release, tool string) error {
	switch {
	case r.State == lifecycle.Pending:
		return absent(fmt.Sprintf("the tool %s waits for a person as request %d, outside of your reach: stile ext approve %d", tool, r.ID, r.ID))
	case r.State == lifecycle.Revoked:
		return &lifecycle.RevokedError{Extension: r.Name, Reason: abi.PrintableCut(r.Reason, 500)}
	case r.State == lifecycle.Denied:
		return absent(reason(fmt.Sprintf("the tool %s is not there: a person refused request %d", tool, r.ID), r.Reason))
	case r.State == lifecycle.Removed:
		return absent(reason(fmt.Sprintf("the tool %s is gone: the extension %s was removed", tool, r.Name), r.Reason))
	case r.State == lifecycle.Active && r.Quarantine != "":
		return &lifecycle.QuarantinedError{Extension: r.Name, Reason: abi.PrintableCut(r.Quarantine, 500)}
	default:
		return nil
	}
}

// absent is a call of a tool that nobody let be there.
type absent string

// Error implements error.
func (a absent) Error() string { return string(a) }

func reason(text, why string) string {
	if why == "" {
		return text
	}
	return text + ": " + abi.PrintableCut(why, 500)
}

// notOwn says of an extension that is not there to be removed whose it is.
func (r *request) notOwn(ctx context.Context, name string, err error) error {
	if !errors.As(err, new(*lifecycle.NotFoundError)) {
		return err
	}
	found, other := r.options.Manager.Find(ctx, r.viewer, name)
	if other != nil {
		return err
	}
	return absent(fmt.Sprintf("the extension %s is in the scope %s, and only a person takes it away: stile ext revoke %s --scope %s", found.Name, found.Scope, found.Name, found.Scope))
}
