package workspace

import (
	"context"
	"fmt"
	"sync"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/internal/linediff"
	"github.com/stilehost/stile/internal/turns"
)

// maxDiff is the most bytes of a text in a diff.
const maxDiff = 1 << 20

// large are places for the operations of this process that hold whole texts and their results. A diff takes up to 48 MiB, since
// every byte can be a line, and an edit takes about as much. Users take turns.
var large = turns.New(maxLarge)

const maxLarge = 4

// hold waits for a place in large. Its holder waits for no other place. leave may be called again.
func hold(ctx context.Context, what string) (leave func(), err error) {
	if large.Take(ctx) != nil {
		return nil, fmt.Errorf("%s: wait for others: %w", what, ctx.Err())
	}
	return sync.OnceFunc(large.Give), nil
}

// Diff returns a unified diff with three lines of context, which is empty if the files are equal. It is always correct, and short if
// the files differ in up to some hundred places. The error is [abi.ErrTooLarge] if one file has more than 1 MiB; others are those of
// Read.
func (d *Directory) Diff(ctx context.Context, before, after string) (diff string, err error) {
	err = abi.WithinRoom(ctx, func(room int64) (wants int64, err error) {
		diff, wants, err = d.diff(ctx, before, after, room)
		return wants, err
	})
	return diff, err
}

// diff is Diff within room. If the result could exceed it, diff returns the size that it wants instead.
func (d *Directory) diff(ctx context.Context, before, after string, room int64) (diff string, wants int64, err error) {
	leave, err := hold(ctx, "diff")
	if err != nil {
		return "", 0, err
	}
	defer leave()
	var texts [2]string
	var paths [2]string
	for i, path := range []string{before, after} {
		err := d.inspect(ctx, d.resolveFile, "diff", path, func(o *op, path string) (err error) {
			paths[i] = path
			texts[i], err = o.text(path)
			return err
		})
		if err != nil {
			return "", 0, err
		}
		if len(texts[i]) > maxDiff {
			return "", 0, &abi.Error{Code: abi.CodeTooLarge, Size: uint64(len(texts[i]))}
		}
	}
	if wants = linediff.Most("a"+paths[0], "b"+paths[1], texts[0], texts[1]); wants > room {
		return "", wants, nil
	}
	return linediff.Unified("a"+paths[0], "b"+paths[1], texts[0], texts[1]), 0, nil
}
