package sandbox

import (
	"context"

	"github.com/stilehost/stile/capabilities/sandbox/internal/box"
)

// container is a machine that is a container.
type container struct{ *box.Box }

// start starts a container.
func start(ctx context.Context, o box.Options, r box.Root, l box.Limits) (machine, error) {
	b, err := box.Start(ctx, o, r, l)
	if err != nil {
		return nil, err
	}
	return container{b}, nil
}

func (c container) run(ctx context.Context, p box.Process) (box.Exit, error) { return c.Run(ctx, p) }
func (c container) tree() tree                                               { return c.Tree() }
func (c container) verified() []box.Check                                    { return c.Verified() }
func (c container) network() (string, error)                                 { return c.Network() }
func (c container) name() string                                             { return c.Runtime() }
func (c container) close() error                                             { return c.Close() }

func (c container) still(f func() error) (err error) {
	if err := c.Freeze(); err != nil {
		return err
	}
	defer func() {
		if failed := c.Thaw(); err == nil {
			err = failed
		}
	}()
	return f()
}
