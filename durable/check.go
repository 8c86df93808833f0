package durable

import (
	"context"
	"path/filepath"
)

// Check returns an error if this version cannot use the store in a folder, which stays as it is. It does not look for damage.
func Check(ctx context.Context, dir string) error {
	return schema.Check(ctx, filepath.Join(dir, File))
}
