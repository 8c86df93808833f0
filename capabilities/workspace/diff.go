package workspace

import (
	"context"
	"fmt"
	"strings"
	"sync"

	"github.com/aymanbagabas/go-udiff/lcs"

	"github.com/stilehost/stile/abi"
)

// maxDiff is the most bytes of a text in a diff.
const maxDiff = 1 << 20

// large has an element for each operation of this process that holds whole texts and its results. A diff takes up to 48 MiB, since
// every byte can be a line, and an edit takes about as much.
var large = make(chan struct{}, 4)

// hold waits for a place in large. Its holder waits for no other place. leave may be called again.
func hold(ctx context.Context, what string) (leave func(), err error) {
	select {
	case large <- struct{}{}:
		return sync.OnceFunc(func() { <-large }), nil
	case <-ctx.Done():
		return nil, fmt.Errorf("%s: wait for others: %w", what, ctx.Err())
	}
}

// Diff returns a unified diff with three lines of context, which is empty if the files are equal. It is always correct, and short if
// the files differ in up to some hundred places. The error is [abi.ErrTooLarge] if one file has more than 1 MiB; others are those of
// Read.
func (d *Directory) Diff(ctx context.Context, before, after string) (string, error) {
	leave, err := hold(ctx, "diff")
	if err != nil {
		return "", err
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
			return "", err
		}
		if len(texts[i]) > maxDiff {
			return "", &abi.Error{Code: abi.CodeTooLarge, Size: uint64(len(texts[i]))}
		}
	}
	return unified(label("a"+paths[0]), label("b"+paths[1]), lines(texts[0]), lines(texts[1])), nil
}

// lines are those of a text, with their ends.
func lines(text string) []string {
	all := make([]string, 0, strings.Count(text, "\n")+1)
	for line := range strings.Lines(text) {
		all = append(all, line)
	}
	return all
}

// around is how many unchanged lines surround a difference.
const around = 3

// unified writes a unified diff of two texts.
func unified(before, after string, old, changed []string) string {
	edits := lcs.DiffLines(old, changed)
	if len(edits) == 0 {
		return ""
	}
	var diff strings.Builder
	write := func(kind byte, lines []string) {
		for _, line := range lines {
			diff.WriteByte(kind)
			diff.WriteString(line)
			if !strings.HasSuffix(line, "\n") {
				diff.WriteString("\n\\ No newline at end of file\n")
			}
		}
	}
	fmt.Fprintf(&diff, "--- %s\n+++ %s\n", before, after)
	for len(edits) > 0 {
		n := 1 // edits of one hunk
		for n < len(edits) && edits[n].Start-edits[n-1].End <= 2*around {
			n++
		}
		first, last := edits[0], edits[n-1]
		from, to := max(first.Start-around, 0), min(last.End+around, len(old))
		fmt.Fprintf(&diff, "@@ -%s +%s @@\n", span(from, to), span(first.ReplStart-(first.Start-from), last.ReplEnd+(to-last.End)))
		for _, e := range edits[:n] {
			write(' ', old[from:e.Start])
			write('-', old[e.Start:e.End])
			write('+', changed[e.ReplStart:e.ReplEnd])
			from = e.End
		}
		write(' ', old[from:to])
		edits = edits[n:]
	}
	return diff.String()
}

// span describes which lines of a text a hunk has.
func span(from, to int) string {
	if from == to {
		return fmt.Sprintf("%d,0", from)
	}
	return fmt.Sprintf("%d,%d", from+1, to-from)
}

// label is a path as a diff names it. A tab marks the end of a path with spaces.
func label(path string) string {
	if strings.Contains(path, " ") {
		return path + "\t"
	}
	return path
}
