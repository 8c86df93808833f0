package lifecycle

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/stilehost/stile/extension"
	"github.com/stilehost/stile/internal/linediff"
	"github.com/stilehost/stile/internal/printable"
	"github.com/stilehost/stile/internal/sqlite"
)

// Review is what a person reviews before a decision.
type Review struct {
	Release Release
	Version *Version
	// Before is the active version in the same scope. It is nil if there is none.
	Before *Version
	// Granted is what the extension would get: its request without Cut, which the operator's ceiling removes.
	Granted []extension.Binding
	Cut     []extension.Change
	// Changes are the differences of its authority from that of Before.
	Changes []extension.Change
	// Vars are what a person can configure, with the values that the version would read.
	Vars []extension.VarState
	// Code is the difference in source, manifest and packages from Before, as a unified diff. For a first version, it is everything. Of a
	// component without source it has what the report knows.
	Code string
}

// Review returns what a person reviews before a decision about a release.
func (m *Manager) Review(ctx context.Context, id int64) (review Review, err error) {
	var before, asked []extension.Binding
	err = m.db.View(ctx, func(c *sqlite.Conn) error {
		r, err := releaseByID(ctx, c, id)
		if err != nil {
			return err
		}
		review = Review{Release: r}
		if review.Version, err = loadVersion(ctx, c, m.options.Kinds, r.Digest); err != nil {
			return err
		}
		if asked, err = bindingsOf(ctx, c, m.options.Kinds, r.ID, review.Version.Manifest); err != nil {
			return err
		}
		set, err := varsIn(ctx, c, r.Scope, r.Name)
		if err != nil {
			return err
		}
		review.Vars = review.Version.Manifest.Configure(set)
		current, err := releaseIn(ctx, c, r.Scope, r.Name, Active)
		if notFound := (*NotFoundError)(nil); errors.As(err, &notFound) || current.ID == r.ID {
			return nil
		} else if err != nil {
			return err
		}
		if review.Before, err = loadVersion(ctx, c, m.options.Kinds, current.Digest); err != nil {
			return err
		}
		before, err = bindingsOf(ctx, c, m.options.Kinds, current.ID, review.Before.Manifest)
		return err
	})
	if err != nil {
		return Review{}, err
	}
	review.Granted, review.Cut = m.policy.Load().Limit(asked)
	var lasted []extension.Durable
	if review.Before != nil {
		lasted = review.Before.Manifest.Durable
	}
	review.Changes = append(extension.Difference(before, asked), extension.DurableDifference(lasted, review.Version.Manifest.Durable)...)
	review.Code = Diff(review.Before, review.Version)
	return review, nil
}

// Diff returns the differences of two versions in manifest, source and packages, as a printable unified diff. before may be nil.
func Diff(before, after *Version) string {
	var b strings.Builder
	old, now := before.parts(), after.parts()
	names := slices.AppendSeq(slices.Collect(maps.Keys(old)), maps.Keys(now))
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		if was, is := old[name], now[name]; !bytes.Equal(was, is) { // one byte of invalid UTF-8 must not hide the others
			shown := strings.TrimPrefix(name, "./")
			if old[shown] != nil || now[shown] != nil { // by a file
				shown = name
			}
			b.WriteString(linediff.Unified("a/"+shown, "b/"+shown, printable.Text(string(was)), printable.Text(string(is))))
		}
	}
	return b.String()
}

// parts returns the files of a version, its manifest and its list of packages. The latter two have names that no file can have.
func (v *Version) parts() map[string][]byte {
	if v == nil {
		return nil
	}
	parts := maps.Clone(v.Files)
	if parts == nil {
		parts = map[string][]byte{}
	}
	parts["./manifest.json"] = v.manifest
	if c := v.Report.Component; !v.HasSource() && c != nil {
		lines := append([]string{"no source to read", fmt.Sprintf("%d bytes, sha256 %s", v.Report.ComponentSize, v.given)}, c.Lines()...)
		parts["./component"] = []byte(strings.Join(lines, "\n") + "\n")
	}
	var packages bytes.Buffer
	for _, p := range v.Packages {
		packages.WriteString(p.Name + " " + p.Version + " " + p.Integrity + "\n")
	}
	if packages.Len() > 0 {
		parts["./packages"] = packages.Bytes()
	}
	return parts
}
