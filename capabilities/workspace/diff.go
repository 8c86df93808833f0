package workspace

import (
	"context"
	"errors"
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
func (d *Directory) Diff(ctx context.Context, before, after string) (string, error) {
	return compare(ctx, func() (names, texts [2]string, err error) {
		for i, path := range []string{before, after} {
			err := d.inspect(ctx, d.resolveFile, "diff", path, func(o *op, path string) (err error) {
				names[i] = path
				texts[i], err = o.diffText(path)
				return err
			})
			if err != nil {
				return names, texts, err
			}
		}
		return names, texts, nil
	})
}

// DiffRevision is Diff for an earlier content of a path and its content now. The errors are also those of [Directory.ReadRevision].
func (d *Directory) DiffRevision(ctx context.Context, path string, revision uint64) (string, error) {
	return compare(ctx, func() (names, texts [2]string, err error) {
		err = d.inspect(ctx, d.resolveFile, "diff", path, func(o *op, path string) error {
			a, err := o.archive()
			if err != nil {
				return err
			}
			place, n, err := o.file(path)
			if err != nil {
				return err
			}
			past, err := find(a, path, place, revision)
			if err != nil {
				return err
			}
			names = [2]string{fmt.Sprintf("%s@%d", path, revision), path}
			for i, n := range []*node{past, n} {
				if texts[i], err = (openFile{o, place, path, n}).diffText(); err != nil {
					return err
				}
			}
			return nil
		})
		return names, texts, err
	})
}

// compare makes a diff of two texts, once there is room for it.
func compare(ctx context.Context, read func() (names, texts [2]string, err error)) (diff string, err error) {
	err = abi.WithinRoom(ctx, func(room int64) (wants int64, err error) {
		leave, err := hold(ctx, "diff")
		if err != nil {
			return 0, err
		}
		defer leave()
		names, texts, err := read()
		if err != nil {
			return 0, err
		}
		before, after := "a"+names[0], "b"+names[1]
		if wants = linediff.Most(before, after, texts[0], texts[1]); wants > room {
			return wants, nil
		}
		diff = linediff.Unified(before, after, texts[0], texts[1])
		return 0, nil
	})
	if err != nil {
		return "", err
	}
	return diff, nil
}

func (o *op) diffText(path string) (string, error) {
	place, n, err := o.file(path)
	if err != nil {
		return "", err
	}
	return openFile{o, place, path, n}.diffText()
}

// diffText returns the whole file, which must not be larger than a diff can take.
func (f openFile) diffText() (string, error) {
	if size := f.n.status.Size; size > maxDiff {
		return "", &abi.Error{Code: abi.CodeTooLarge, Size: size}
	}
	text, err := f.text(maxDiff)
	if errors.Is(err, errGrown) {
		err = &abi.Error{Code: abi.CodeTooLarge, Size: maxDiff + 1}
	}
	return text, err
}
