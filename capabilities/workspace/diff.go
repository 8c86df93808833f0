package workspace

import (
	"context"

	"github.com/aymanbagabas/go-udiff"

	"github.com/stilehost/stile/abi"
)

// maxDiff is the most bytes of a text in a diff.
const maxDiff = 1 << 20

// Diff returns how to make a file of another: a unified diff with three lines of context, empty when they are the same. It is
// right in any case, and short when the files have up to some hundred differences. The error is [abi.ErrTooLarge] when one
// has more than 1 MiB, else those of Read.
func (d *Directory) Diff(ctx context.Context, before, after string) (string, error) {
	var texts [2]string
	var paths [2]string
	for i, path := range []string{before, after} {
		err := d.inspect(ctx, d.resolveFile, "diff", path, func(o *op, path string) (err error) {
			paths[i] = path
			texts[i], err = o.text(path)
			return err
		})
		if err != nil {
			return "", err
		}
		if len(texts[i]) > maxDiff {
			return "", &abi.Error{Code: abi.CodeTooLarge, Size: uint64(len(texts[i]))}
		}
	}
	return udiff.ToUnified("a"+paths[0], "b"+paths[1], texts[0], udiff.Lines(texts[0], texts[1]), udiff.DefaultContextLines)
}
