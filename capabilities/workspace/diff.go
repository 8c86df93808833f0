package workspace

import (
	"cmp"
	"context"
	"fmt"
	"regexp"
	"strconv"
	"strings"

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
	diff, err := udiff.ToUnified(label("a"+paths[0]), label("b"+paths[1]), texts[0], udiff.Lines(texts[0], texts[1]), udiff.DefaultContextLines)
	return renumber(diff), err
}

// label is a path as a diff names it: a tab says where one with spaces ends.
func label(path string) string {
	if strings.Contains(path, " ") {
		return path + "\t"
	}
	return path
}

// hunk is the line that a hunk begins with; every other line of one begins with another character.
var hunk = regexp.MustCompile(`(?m)^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@$`)

// renumber makes each hunk begin at its own line of the new text: udiff loses count where one has several changes.
func renumber(diff string) string {
	grown := 0 // lines, by the hunks before
	return hunk.ReplaceAllStringFunc(diff, func(line string) string {
		var n [4]int // where and how many lines, in the old text and in the new one
		for i, digits := range hunk.FindStringSubmatch(line)[1:] {
			n[i], _ = strconv.Atoi(cmp.Or(digits, "1")) // digits they are
		}
		if n[0] > 0 && n[2] > 0 { // else there is nothing before, and one hunk
			n[2] = n[0] + grown
		}
		grown += n[3] - n[1]
		return fmt.Sprintf("@@ -%d,%d +%d,%d @@", n[0], n[1], n[2], n[3])
	})
}
