package lifecycle

import (
	"context"
	"errors"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/capabilities/tools"
	"github.com/stilehost/stile/host"
	"github.com/stilehost/stile/internal/printable"
)

// Toolbox returns the right to call the tools that a viewer can call, by full names, for code that is not an extension. The tools
// have the approved bindings, and accept no others. allowed is as in [Call].
func (m *Manager) Toolbox(v Viewer, allowed func() error) (*tools.Toolbox, error) {
	return tools.New(tools.Options{
		Resolve: func(name string) (tools.Func, error) {
			if err := m.Refresh(context.Background()); err != nil {
				return nil, err
			}
			m.mu.RLock()
			_, ok := m.find(v, name)
			m.mu.RUnlock()
			if !ok {
				return nil, abi.Errorf(abi.CodeNotFound, "tool %q; its name may have changed, or its extension is not active: tools.search(\"\") lists the tools that you can call", printable.Short(name, 64))
			}
			return func(ctx context.Context, name string, input []byte, env map[string]abi.Capability, done func([]byte, error)) {
				if len(env) > 0 {
					done(nil, abi.Errorf(abi.CodeInvalid, "%s: it has the approved bindings, and accepts no others", name))
					return
				}
				m.Start(ctx, Call{Viewer: v, Tool: name, Input: input, Allowed: allowed}, func(r host.Result, err error) {
					done(r.Output, forCaller(name, err))
				})
			}, nil
		},
		Finder: m.Finder(v),
	})
}

// forCaller converts a call's error into the one reported to the code that made the call.
func forCaller(name string, err error) error {
	var revoked *RevokedError
	var quarantined *QuarantinedError
	var broken *BrokenError
	var unknown *UnknownToolError
	var uncovered *uncoveredError
	var gone *goneError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &uncovered):
		return abi.Deny(uncovered.denial)
	case errors.As(err, &gone):
		return abi.Errorf(abi.CodeUnavailable, "%s: %v", name, gone)
	case errors.As(err, &revoked), errors.As(err, &quarantined), errors.As(err, &broken):
		return abi.Errorf(abi.CodeUnavailable, "%s: %v", name, err)
	case errors.As(err, &unknown):
		return abi.Errorf(abi.CodeNotFound, "%v", err)
	default:
		return host.ForCaller(name, err)
	}
}
