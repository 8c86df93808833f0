// Package linediff compares texts line by line. What it takes is linear in their size, so it is for texts that an attacker wrote, too.
package linediff

import (
	"fmt"
	"strings"

	"github.com/aymanbagabas/go-udiff/lcs"
)

// Unified returns a unified diff of two texts, with their names and three lines of context. It is empty if they are equal, always correct,
// and short if the texts differ in up to some hundred places.
func Unified(before, after, old, changed string) string {
	return unified(label(before), label(after), lines(old), lines(changed))
}

// Most bounds the bytes of [Unified], without comparing the texts.
func Most(before, after, old, changed string) int64 {
	const (
		perLine = 8   // the first byte, and the part of a header with up to 41 bytes for each seven lines of old
		ends    = 128 // the first header and three lines, and two lines about missing ends
	)
	lines := strings.Count(old, "\n") + strings.Count(changed, "\n")
	return int64(len(before) + len(after) + len(old) + len(changed) + perLine*lines + ends)
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
