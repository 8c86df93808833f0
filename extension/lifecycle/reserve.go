package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/extension"
	"github.com/stilehost/stile/internal/sqlite"
)

// reserve is disk space for revoking every extension of the store on a full disk.
func (o Options) reserve() sqlite.Reserve {
	return sqlite.Reserve(filepath.Join(o.Dir, "extensions.reserve"))
}

// UnsavedError reports a revocation that could not be saved. It applies in this process until the process ends, and nowhere else.
type UnsavedError struct {
	Extension string
	Err       error
}

// Error implements error.
func (e *UnsavedError) Error() string {
	return fmt.Sprintf("the extension %s is revoked in this process only, until it ends: %v; make the store writable and revoke it again", cut(e.Extension), e.Err)
}

// Unwrap returns why it could not be saved.
func (e *UnsavedError) Unwrap() error { return e.Err }

// insist revokes an extension with the reserved disk space, or at least in this process.
func (m *Manager) insist(ctx context.Context, scope extension.Scope, name, reason string, take func() (Release, error)) (Release, error) {
	r, err := take()
	if !errors.Is(err, abi.ErrUnavailable) {
		return r, err
	}
	if m.options.reserve().Spend() {
		if r, err = take(); !errors.Is(err, abi.ErrUnavailable) {
			return r, err
		}
	}
	m.mu.RLock()
	defer m.mu.RUnlock()
	for _, a := range m.releases {
		if a.scope == scope && a.manifest.Name == name {
			a.revoke(&RevokedError{Extension: name, Reason: reason})
			m.options.Logger.ErrorContext(ctx, "an extension is revoked in this process only", "extension", name, "error", err)
			return Release{}, &UnsavedError{name, err}
		}
	}
	return Release{}, err
}
