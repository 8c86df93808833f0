//go:build !linux

package images

import (
	"context"
	"errors"
	"os"
)

// FromOCI fails: sandboxes run on Linux only.
func FromOCI(context.Context, string, string, string, string) (Image, error) {
	return Image{}, errors.New("sandboxes run on Linux only")
}

// Import fails: sandboxes run on Linux only.
func Import(context.Context, string, string, Origin) (Image, error) {
	return Image{}, errors.New("sandboxes run on Linux only")
}

// exchange puts one folder in the place of another, and that into the place of the first.
func exchange(a, b string) error {
	between := a + ".exchanged"
	return errors.Join(os.Rename(b, between), os.Rename(a, b), os.Rename(between, a))
}
