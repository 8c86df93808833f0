//go:build !linux

package images

import (
	"context"
	"errors"
)

// FromOCI fails: sandboxes run on Linux only.
func FromOCI(context.Context, string, string, string, string) (Image, error) {
	return Image{}, errors.New("sandboxes run on Linux only")
}
