package lifecycle

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/extension"
)

// reserve is a file that holds room on the disk: enough to take back every extension of a store when the disk is full.
type reserve string

const (
	reserveFile = "extensions.reserve"
	reserveSize = 1 << 20
)

// fill makes the file unless it is there.
func (r reserve) fill() error {
	if info, err := os.Stat(string(r)); err == nil && info.Size() == reserveSize {
		return nil
	}
	b := make([]byte, reserveSize)
	_, _ = rand.Read(b) // which no file system compresses; it never fails
	if err := os.WriteFile(string(r), b, 0o600); err != nil {
		return errors.Join(err, os.Remove(string(r)))
	}
	return nil
}

// UnsavedError is a revocation that could not be written down. It holds in this process until it ends, and nowhere else.
type UnsavedError struct {
	Extension string
	Err       error
}

// Error implements error.
func (e *UnsavedError) Error() string {
	return fmt.Sprintf("the extension %s is revoked in this process only, until it ends: %v; make the store writable and revoke it again", cut(e.Extension), e.Err)
}

// Unwrap returns why it could not be written down.
func (e *UnsavedError) Unwrap() error { return e.Err }

// insist takes an extension back with what room is left for that, and at least here.
func (m *Manager) insist(ctx context.Context, scope extension.Scope, name, reason string, take func() (Release, error)) (Release, error) {
	r, err := take()
	if !errors.Is(err, abi.ErrUnavailable) {
		return r, err
	}
	if os.Remove(filepath.Join(m.options.Dir, reserveFile)) == nil {
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
