package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/stilehost/stile/extension/lifecycle"
	"github.com/stilehost/stile/extension/policy"
	"github.com/stilehost/stile/internal/errkind"
	"github.com/stilehost/stile/internal/printable"
)

// policy reads the operator's policy.
func (e *examination) policy() {
	file := filepath.Join(e.home, policy.File)
	_, _, err := readPolicy(e.settings)
	_, missing := os.Lstat(file)
	switch {
	case err != nil:
		e.add("policy", statusBroken, "Correct it. Until then, commands that use extensions fail.", "%v", err)
	case errors.Is(missing, fs.ErrNotExist):
		e.add("policy", statusOK, "", "there is no %s, so the defaults apply", policy.File)
	default:
		e.add("policy", statusOK, "", "%s is valid", file)
	}
}

// extensions opens the store, reads every active or waiting version, and checks the audit log.
func (e *examination) extensions(ctx context.Context) {
	file := filepath.Join(e.home, lifecycle.File)
	if _, err := os.Stat(file); errors.Is(err, fs.ErrNotExist) {
		e.add("extensions", statusOK, "", "none yet; stile ext add stores one")
		return
	}
	err := withExtensions(ctx, e.streams, func(store *extensions) error { return e.store(ctx, store) })
	if err != nil {
		e.add("extensions", statusBroken, "See the findings about policy and databases. If there are none, restore it from a backup, or move it away to begin anew: "+file, "%v", err)
	}
}

func (e *examination) store(ctx context.Context, store *extensions) error {
	active, err := store.Active(ctx)
	if err != nil {
		return err
	}
	pending, err := store.Pending(ctx)
	if err != nil {
		return err
	}
	sound := true
	for _, r := range append(active, pending...) {
		check := fmt.Sprintf("extension %s in %s", r.Name, r.Scope)
		if _, err := store.Version(ctx, r.Digest); err != nil {
			sound = false
			e.add(check, statusBroken, "Add it again, or revoke it.", "%v", err)
		} else if r.Quarantine != "" {
			sound = false
			e.add(check, statusWarning, "Add it again, or revoke it.", "in quarantine: %s", line(r.Quarantine, 500))
		}
	}
	if sound {
		e.add("extensions", statusOK, "", "%d active, %d waiting for approval, intact", len(active), len(pending))
	}
	stored, err := store.Stored(ctx)
	if err != nil {
		return err
	}
	limits := store.Policy().Limits
	e.add("versions", statusOK, "", "they take %s on disk; the limits are %s, and %s for each author", about(stored), printable.Size(limits.Stored), printable.Size(limits.StoredPerAuthor))
	count, last, err := store.VerifyAudit(ctx)
	switch {
	case errkind.Is[*lifecycle.TamperedError](err):
		e.add("audit log", statusBroken, "Compare it with a backup of STILE_HOME: stile audit list shows what is there before and after it.", "%v", err)
	case err != nil:
		return err
	default:
		e.add("audit log", statusOK, "", "%s, intact; the last one has the hash %x", counted(count, "entry"), last[:6])
	}
	return nil
}
