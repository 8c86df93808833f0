package lifecycle

import (
	"context"

	"github.com/stilehost/stile/extension"
	"github.com/stilehost/stile/extension/trial"
	"github.com/stilehost/stile/internal/turns"
)

// Test runs tests against a stored version, in the sandbox. Without tests, it runs those in the version's manifest. It changes
// nothing. An error is a fault of the host, or the end of ctx. Failed tests are in the results.
func (m *Manager) Test(ctx context.Context, digest string, tests ...extension.Test) ([]trial.Result, error) {
	v, err := m.Version(ctx, digest)
	if err != nil {
		return nil, err
	}
	if err := m.enter(); err != nil {
		return nil, err
	}
	defer m.calls.Done()
	component, done, err := m.load(ctx, &active{digest: v.Digest, manifest: v.Manifest}, turns.User(ctx))
	if err != nil {
		return nil, err
	}
	defer done()
	again := *v.Manifest
	if len(tests) > 0 {
		again.Tests = tests
	}
	return m.trial(ctx, component, &Version{Manifest: &again})
}
