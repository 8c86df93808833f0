package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/stilehost/stile/extension"
	"github.com/stilehost/stile/extension/lifecycle"
)

type extRollback struct {
	Name   string `arg:"" help:"Name of the extension."`
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
		all, err := e.History(ctx, scope, c.Name)
		if err != nil {
			return err
		}
		if c.Digest, err = digestOf(all, c.Digest); err != nil {
			return err
		}
		r, ok := superseded(all, c.Digest)
		if was, revoked := revocation(all, c.Digest); !ok && revoked {
			return usagef("%s has no version to go back to: %s %s (request %d); to bring a revoked version back, add it again",
				c.Name, lifecycle.ShortDigest(was.Digest), endedText(was), was.ID)
		}
		if !ok {
			return &lifecycle.NotFoundError{What: fmt.Sprintf("version of %s to go back to in scope %s; stile ext history lists them", c.Name, scope)}
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
		return c.print(s, r)
	})
}

// digestOf returns the full digest of the one release whose digest begins with start. It returns start itself if start is empty or
// already a full digest.
func digestOf(all []lifecycle.Release, start string) (string, error) {
	if start == "" || len(start) == lifecycle.DigestSize {
		return start, nil
	}
	if len(start) < lifecycle.MinDigest {
		return "", usagef("the digest %q is too short; write at least its first %d characters", start, lifecycle.MinDigest)
	}
	found := map[string]bool{}
	for _, r := range all {
		if strings.HasPrefix(r.Digest, start) {
			found[r.Digest] = true
		}
	}
	switch len(found) {
	case 0:
		return "", &lifecycle.NotFoundError{What: fmt.Sprintf("version %q in this scope; stile ext history lists them", line(start, 64))}
	case 1:
		return slices.Collect(maps.Keys(found))[0], nil
	default:
		return "", usagef("the digests of %d versions begin with %q; write more of it", len(found), start)
	}
}

// superseded finds the newest release that another one replaced and whose version was not revoked later. If digest is not empty,
// only releases of that digest count, and otherwise only those whose source is stored.
func superseded(all []lifecycle.Release, digest string) (lifecycle.Release, bool) {
	for i, r := range all {
		if r.State != lifecycle.Superseded || digest != "" && r.Digest != digest || digest == "" && r.Dropped == lifecycle.DroppedSource {
			continue
		}
		if _, revoked := revocation(all[:i], r.Digest); !revoked {
			return r, true
		}
	}
	return lifecycle.Release{}, false
}

// revocation finds the newest revoked release. If digest is not empty, only releases of that digest count.
func revocation(all []lifecycle.Release, digest string) (lifecycle.Release, bool) {
	for _, r := range all {
		if r.State == lifecycle.Revoked && (digest == "" || r.Digest == digest) {
			return r, true
		}
	}
	return lifecycle.Release{}, false
}
