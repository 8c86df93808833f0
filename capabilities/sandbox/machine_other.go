//go:build !linux

package sandbox

import (
	"context"

	"github.com/stilehost/stile/capabilities/sandbox/internal/box"
)

func start(context.Context, box.Options, box.Root, box.Limits) (machine, error) {
	return nil, box.ErrUnavailable
}
