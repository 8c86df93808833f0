package main

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/stilehost/stile/capability"
	"github.com/stilehost/stile/extension"
	"github.com/stilehost/stile/extension/lifecycle"
	"github.com/stilehost/stile/internal/printable"
)

// decisionFlags are the flags of a person's decision.
type decisionFlags struct {
	Reason string `placeholder:"TEXT" help:"Reason to record."`
	asJSON
}

// decision is the person's decision. asked is set if the person answered at a terminal.
func (f decisionFlags) decision(where settings, r lifecycle.Release, asked bool) (lifecycle.Decision, error) {
	by, err := where.author()
	via := lifecycle.ViaTerminal
	if !asked {
		via = lifecycle.ViaCommand
	}
	return lifecycle.Decision{Release: r.ID, Digest: r.Digest, By: by, Via: via, Reason: f.Reason}, err
}

// end ends the active version of an extension with do, and prints the outcome.
func (f decisionFlags) end(
	ctx context.Context, s *streams, e *extensions, asked bool, scope extension.Scope, name string,
	do func(context.Context, extension.Scope, string, lifecycle.Decision) (lifecycle.Release, error),
) error {
	d, err := f.decision(e.settings, lifecycle.Release{}, asked)
	if err != nil {
		return err
	}
	r, err := do(ctx, scope, name, d)
	if err != nil {
		return err
	}
	return f.print(s, r)
}

// print prints the outcome of a decision about a release.
func (f decisionFlags) print(s *streams, r lifecycle.Release) error {
	if f.JSON {
		return printJSON(s.out, releaseOf(r))
	}
	_, err := fmt.Fprintln(s.out, releaseText(r))
	return err
}

func releaseText(r lifecycle.Release) string {
	text := fmt.Sprintf("%s %s is %s in %s", r.Name, lifecycle.ShortDigest(r.Digest), r.State, r.Scope)
	if r.State == lifecycle.Pending {
		text += fmt.Sprintf(": stile ext approve %d", r.ID)
	}
	if r.Line != "" {
		text += ", approved by " + r.Line
	}
	return printable.Line(text)
}

// notApprovedError reports that a person did not answer a question with yes.
type notApprovedError struct{ question, result string }

func (e *notApprovedError) Error() string {
	return fmt.Sprintf("the answer to %q was not yes, so %s", e.question, e.result)
}

// asks asks a person for a yes. Any other answer ends the command.
func (s *streams) asks(ctx context.Context, show func() (string, error), question, otherwise string) error {
	p, ok := s.person()
	if !ok {
		return usagef("there is no terminal to ask at: %s", otherwise)
	}
	text, err := show()
	if err != nil {
		return err
	}
	if _, err := fmt.Fprint(p.out, text); err != nil {
		return err
	}
	yes, err := p.confirm(ctx, question)
	if err == nil && !yes {
		err = &notApprovedError{question, "nothing changed"}
	}
	return err
}

// waiting finds the waiting release in a scope, by the number of the request or the name of the extension. decide is the command that decides.
func (e *extensions) waiting(ctx context.Context, decide, request string, flag scopeFlag) (r lifecycle.Release, err error) {
	if id, err := strconv.ParseInt(request, 10, 64); err == nil {
		r, err = e.Release(ctx, id)
		if err == nil && r.State != lifecycle.Pending {
			err = &lifecycle.StateError{Release: r.ID, State: r.State, Needed: lifecycle.Pending}
		}
		return r, err
	}
	scope, err := flag.scope(e.settings)
	if err != nil {
		return r, err
	}
	all, err := e.Pending(ctx)
	if err != nil {
		return r, err
	}
	var authors, elsewhere []string
	for _, one := range all {
		switch {
		case one.Name != request:
		case one.Scope == scope:
			r, authors = one, append(authors, fmt.Sprintf("%d by %s", one.ID, line(one.Author, 60)))
		default: // the number also says which, if another author asks under this name
			elsewhere = append(elsewhere, fmt.Sprintf("request %d waits in scope %s: %s %[1]d", one.ID, one.Scope, decide))
		}
	}
	switch len(authors) {
	case 0:
		where := "stile ext list shows what waits"
		if len(elsewhere) > 0 {
			if more := len(elsewhere) - 3; more > 0 {
				elsewhere = append(elsewhere[:3], fmt.Sprintf("and %d more, which stile ext list shows", more))
			}
			where = strings.Join(elsewhere, ", ")
		}
		return r, &lifecycle.NotFoundError{What: fmt.Sprintf("request for %s that waits in scope %s; %s", line(request, 64), scope, where)}
	case 1:
		return r, nil
	default: // a person may have looked at another one than the name would choose
		return r, usagef("several requests for %s wait in scope %s: %s; give the number of one", line(request, 64), scope, line(strings.Join(authors, ", "), maxListed))
	}
}

// checkDigest refuses an incomplete digest in a decision about a version, because anybody can make another version whose digest begins so. shown is the command that prints the full digest.
func checkDigest(digest, shown string) error {
	if digest == "" || len(digest) == lifecycle.DigestSize {
		return nil
	}
	return usagef("a digest has %d characters (got %d): %s prints it whole", lifecycle.DigestSize, len(digest), shown)
}

type extApprove struct {
	Request string `arg:"" complete:"request" help:"Number of the request, or name of the extension."`
	scopeFlag
	Yes    bool   `help:"Do not ask. Requires --digest."`
	Digest string `placeholder:"DIGEST" help:"Approve only this version. Requires the full digest."`
	Code   bool   `help:"Show the difference in code."`
	decisionFlags
}

// Help implements kong.HelpProvider.
func (*extApprove) Help() string {
	return `The command shows what the version may do and what is new, what policy.json removes, what the code appears to do, and its packages. Then it asks for confirmation, at a terminal only. A script passes --yes with --digest, so it approves only the bytes it knows.

Examples:

    stile ext approve 12
    stile ext approve github --scope shared --code
    stile ext approve 12 --yes --digest "$(stile ext show 12 --json | jq -r .release.digest)"`
}

// Run implements the command.
func (c *extApprove) Run(ctx context.Context, s *streams) error {
	if c.Yes && c.Digest == "" {
		return usagef("--yes needs --digest, with the whole digest of the version to approve")
	}
	if err := checkDigest(c.Digest, "stile ext show "+line(c.Request, 64)); err != nil {
		return err
	}
	return withExtensions(ctx, s, func(e *extensions) error {
		r, err := e.waiting(ctx, "stile ext approve", c.Request, c.scopeFlag)
		if err != nil {
			return err
		}
		if c.Digest != "" && c.Digest != r.Digest {
			return &lifecycle.DigestError{Release: r.ID}
		}
		if c.Yes {
			if err := e.fixed(ctx, c.Request, r); err != nil {
				return err
			}
		}
		if r, err = e.approve(ctx, s, r, c.decisionFlags, c.Yes, c.Code); err != nil {
			return err
		}
		return c.print(s, r)
	})
}

// fixed refuses a name in place of a number if more than the bytes of the version decides what it may do: the same version can be requested
// again, because the tools that it calls may do more.
func (e *extensions) fixed(ctx context.Context, request string, r lifecycle.Release) error {
	if request == fmt.Sprint(r.ID) {
		return nil
	}
	v, err := e.Version(ctx, r.Digest)
	if err != nil {
		return err
	}
	if slices.ContainsFunc(v.Manifest.Bindings, func(b extension.Binding) bool { _, ok := b.Grant.(capability.ToolCaller); return ok }) {
		return usagef("%s calls tools of other extensions, which may do more since you looked; give the number of the request: stile ext approve %d --yes --digest ...", r.Name, r.ID)
	}
	return nil
}

// approve shows a person a release, asks, and approves what was shown.
func (e *extensions) approve(ctx context.Context, s *streams, r lifecycle.Release, f decisionFlags, yes, code bool) (lifecycle.Release, error) {
	if !yes {
		show := func() (string, error) { return e.reviewText(ctx, r, code) }
		question := fmt.Sprintf("Approve %s %s in %s?", r.Name, lifecycle.ShortDigest(r.Digest), r.Scope)
		if err := s.asks(ctx, show, question, "approve at a terminal, or use --yes with --digest"); err != nil {
			return r, err
		}
	}
	d, err := f.decision(e.settings, r, !yes)
	if err != nil {
		return r, err
	}
	if r, err = e.Approve(ctx, d); err == nil {
		err = e.tellUnfit(ctx, s, r)
	}
	return r, err
}

type extDeny struct {
	Request string `arg:"" complete:"request" help:"Number of the request, or name of the extension."`
	scopeFlag
	Yes bool `help:"Accepted for scripts; the command never asks."`
	decisionFlags
}

// Help implements kong.HelpProvider.
func (*extDeny) Help() string {
	return `The active version stays active. The author sees the reason.

Examples:

    stile ext deny 12 --reason "ask for one repository only"`
}

// Run implements the command.
func (c *extDeny) Run(ctx context.Context, s *streams) error {
	return withExtensions(ctx, s, func(e *extensions) error {
		r, err := e.waiting(ctx, "stile ext deny", c.Request, c.scopeFlag)
		if err != nil {
			return err
		}
		d, err := c.decision(e.settings, r, false)
		if err != nil {
			return err
		}
		if r, err = e.Deny(ctx, d); err != nil {
			return err
		}
		return c.print(s, r)
	})
}

type extRevoke struct {
	Name string `arg:"" complete:"extension" help:"Name of the extension."`
	scopeFlag
	Yes bool `help:"Do not ask."`
	decisionFlags
}

// Help implements kong.HelpProvider.
func (*extRevoke) Help() string {
	return `Running calls end, in other processes too, and their handles are closed. Requests for approval under this name are denied. The versions stay in the history, but no rollback brings a revoked version back.

Examples:

    stile ext revoke github --reason "sends too much"
    stile ext revoke github --scope agent:claude --yes`
}

// Run implements the command.
func (c *extRevoke) Run(ctx context.Context, s *streams) error {
	return c.inScope(ctx, s, func(e *extensions, scope extension.Scope) error {
		if _, err := e.History(ctx, scope, c.Name); err != nil {
			return err
		}
		if !c.Yes {
			question := fmt.Sprintf("Revoke %s in %s, and end its calls?", c.Name, scope)
			if err := s.asks(ctx, func() (string, error) { return "", nil }, question, "use --yes to revoke without a question"); err != nil {
				return err
			}
		}
		return c.end(ctx, s, e, !c.Yes, scope, c.Name, e.Revoke)
	})
}

type extRemove struct {
	Name string `arg:"" complete:"extension" help:"Name of the extension."`
	scopeFlag
	Yes bool `help:"Accepted for scripts; the command never asks."`
	decisionFlags
}

// Help implements kong.HelpProvider.
func (*extRemove) Help() string {
	return `Its tools disappear, and running calls end. The versions stay in the history.

Examples:

    stile ext remove github`
}

// Run implements the command.
func (c *extRemove) Run(ctx context.Context, s *streams) error {
	return c.inScope(ctx, s, func(e *extensions, scope extension.Scope) error {
		return c.end(ctx, s, e, false, scope, c.Name, e.Remove)
	})
}

type extPromote struct {
	Name string `arg:"" complete:"extension" help:"Name of the extension."`
	To   string `required:"" placeholder:"SCOPE" complete:"scope" help:"The wider scope: user or shared."`
	scopeFlag
	decisionFlags
}

// Help implements kong.HelpProvider.
func (*extPromote) Help() string {
	return `The command requests the active version in another scope. A person approves it there, like any other version.

Examples:

    stile ext promote github --scope agent:claude --to user
    stile ext promote github --to shared`
}

// Run implements the command.
func (c *extPromote) Run(ctx context.Context, s *streams) error {
	return withExtensions(ctx, s, func(e *extensions) error {
		from, err := c.scope(e.settings)
		if err != nil {
			return err
		}
		to, err := scopeFlag{c.To}.scope(e.settings)
		if err != nil {
			return err
		}
		if !from.Narrower(to) {
			return usagef("%s is not wider than %s", to, from)
		}
		author, err := e.author()
		if err != nil {
			return err
		}
		r, err := e.Promote(ctx, from, to, c.Name, author, s.via())
		if err != nil {
			return err
		}
		return c.print(s, r)
	})
}
