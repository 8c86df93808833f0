package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/stilehost/stile/extension"
	"github.com/stilehost/stile/extension/lifecycle"
)

type extRollback struct {
	Name   string `arg:"" complete:"extension" help:"Name of the extension."`
	Digest string `arg:"" optional:"" help:"Version to return to: its digest, or the first characters of it, at least ${minDigest}. Default: the one before the active one."`
	scopeFlag
	Yes  bool `help:"Do not ask. Requires the full digest."`
	Code bool `help:"Show the difference in code."`
	decisionFlags
}

// Help implements kong.HelpProvider.
func (*extRollback) Help() string {
	return `The version must have been active before, and not revoked. If its component was dropped to make room, it is built again first. The command shows what it may do and how it differs from the active version. Then it asks for confirmation; --yes with the digest skips the question.

Examples:

    stile ext rollback github
    stile ext history github`
}

// Run implements the command.
func (c *extRollback) Run(ctx context.Context, s *streams) error {
	if c.Yes && c.Digest == "" {
		return usagef("--yes needs the digest of the version to go back to")
	}
	if c.Yes || len(c.Digest) > lifecycle.DigestSize {
		if err := checkDigest(c.Digest, "stile ext history "+line(c.Name, 64)+" --json"); err != nil {
			return err
		}
	}
	return c.inScope(ctx, s, func(e *extensions, scope extension.Scope) error {
		r, err := e.Earlier(ctx, scope, c.Name, c.Digest)
		if ended, ok := errors.AsType[*lifecycle.StateError](err); ok {
			was, err := e.Release(ctx, ended.Release)
			if err != nil {
				return err
			}
			return usagef("%s has no version to go back to: %s %s (request %d); to bring a revoked version back, add it again",
				c.Name, lifecycle.ShortDigest(was.Digest), was.Ending(), was.ID)
		}
		if err != nil {
			return fmt.Errorf("%w; stile ext history lists them", err)
		}
		if !c.Yes {
			show := func() (string, error) { return e.reviewText(ctx, r, c.Code) }
			question := fmt.Sprintf("Go back to %s %s in %s?", r.Name, lifecycle.ShortDigest(r.Digest), r.Scope)
			if err := s.asks(ctx, show, question, "use --yes with a digest to go back without a question"); err != nil {
				return err
			}
		}
		d, err := c.decision(e.settings, r, !c.Yes)
		if err != nil {
			return err
		}
		if r, err = e.Rollback(ctx, scope, c.Name, r.Digest, d); err != nil {
			return err
		}
		if err := e.tellUnfit(ctx, s, r); err != nil {
			return err
		}
		return c.print(s, r)
	})
}
