package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/extension"
	"github.com/stilehost/stile/extension/lifecycle"
)

// unknownError is a call of a tool that is not there, with why, if that is known, and those that are.
type unknownError struct {
	error
	why   string
	known []string
}

func (e *unknownError) Error() string { return e.error.Error() + e.why }

func (e *unknownError) Unwrap() error { return e.error }

// unknown explains that there is no tool.
func (e *extensions) unknown(ctx context.Context, v lifecycle.Viewer, tool string, err error) error {
	unknown := &unknownError{error: err}
	tools, _ := e.Tools(ctx, v) // it only explains an error
	for _, t := range tools {
		unknown.known = append(unknown.known, t.Name)
	}
	if name := e.waits(ctx, tool); name != "" {
		unknown.why = e.whyMissing(ctx, v, name)
	}
	for i, c := range tool { // a name of an extension ends at any of them, and has "-" where its tools have "_"
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

// waits is the extension that has a version with this tool which waits for a person; empty when there is none.
func (e *extensions) waits(ctx context.Context, tool string) string {
	pending, err := e.Pending(ctx)
	if err != nil {
		return "" // it only explains an error
	}
	for _, r := range pending {
		if !strings.HasPrefix(tool, extension.ToolName(r.Name, "")) {
			continue
		}
		v, err := e.Version(ctx, r.Digest)
		if err == nil && slices.ContainsFunc(v.Tools, func(d abi.Definition) bool { return extension.ToolName(r.Name, d.Name) == tool }) {
			return r.Name
		}
	}
	return ""
}

// Find is the manager's, with why there is none.
func (e *extensions) Find(ctx context.Context, v lifecycle.Viewer, name string) (lifecycle.Release, error) {
	r, err := e.Manager.Find(ctx, v, name)
	if is[*lifecycle.NotFoundError](err) {
		if why := e.whyMissing(ctx, v, name); why != "" {
			err = &lifecycle.NotFoundError{What: "extension " + name + why}
		}
	}
	return r, err
}

// whyMissing says what became of an extension that a viewer asked for: it waits, is in another scope or was taken away. It is empty
// when there is nothing to say.
func (e *extensions) whyMissing(ctx context.Context, v lifecycle.Viewer, name string) string {
	pending, err := e.Pending(ctx)
	if err != nil {
		return "" // it only explains an error
	}
	for _, r := range pending {
		if r.Name == name {
			return fmt.Sprintf("; a version of %s waits in scope %s as request %d: stile ext approve %[3]d", name, r.Scope, r.ID)
		}
	}
	active, err := e.Active(ctx)
	if err != nil {
		return ""
	}
	seen := extension.Visible(v.User, v.Agent)
	here := func(r lifecycle.Release) bool { return r.Name == name && slices.Contains(seen, r.Scope) }
	if slices.ContainsFunc(active, here) {
		return ""
	}
	for _, r := range active {
		if r.Name == name {
			return fmt.Sprintf("; %s is in scope %s: --scope %[2]s", name, r.Scope)
		}
	}
	for _, scope := range seen {
		if all, err := e.History(ctx, scope, name); err == nil {
			last := slices.MaxFunc(all, func(a, b lifecycle.Release) int {
				if at := a.Decided.Compare(b.Decided); at != 0 || a.State != lifecycle.Revoked {
					return at
				}
				return 1 // what waited was denied at the same time, and says less
			})
			return fmt.Sprintf("; %s %s in scope %s", name, endedText(last), scope)
		}
	}
	return ""
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
