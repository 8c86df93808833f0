package sandbox

import (
	"context"
	"path/filepath"

	"github.com/stilehost/stile/capabilities/sandbox/internal/box"
)

// Check is one thing that a sandbox needs, or a limit of it.
type Check struct {
	Name   string
	OK     bool
	Detail string
}

// Probe starts a small sandbox and reports which limits hold on this machine. The error says why none can run.
func Probe(ctx context.Context, o Options) ([]Check, error) {
	config := box.Options{Dir: filepath.Join(o.Dir, "run"), Runtime: o.Runtime, Storage: o.Storage, WithoutUserNamespace: o.WithoutUserNamespace}
	m, err := start(ctx, config, box.Root{}, box.Limits{Memory: 64 << 20, Disk: 32 << 20, Files: 1024, Processes: 32, CPU: 1})
	if err != nil {
		return nil, err
	}
	checks := []Check{{"runtime", true, m.name()}}
	for _, c := range m.verified() {
		checks = append(checks, Check(c))
	}
	return checks, m.close()
}
