// Package printable makes untrusted text safe on a terminal and clear to
// a reader, and finds hidden characters in it. It also formats and reads sizes.
package printable

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Text returns s in a form that is safe on a terminal and hides nothing from a reader. Line feeds, tabs and visible
// text stay, and CR LF becomes LF. Everything that [NextHidden] finds becomes a Go escape: \x1b, \u202e, \U000e0041.
//
// The result is valid UTF-8, at most four times as long as s, and unchanged by a second Text.
func Text(s string) string {
	at, size := NextHidden(s, 0)
	if at < 0 {
		return s
	}
	var b strings.Builder
	b.Grow(len(s))
	from := 0
	for ; at >= 0; at, size = NextHidden(s, from) {
		b.WriteString(s[from:at])
		from = at + size
		switch r, _ := utf8.DecodeRuneInString(s[at:]); {
		case r == '\r' && strings.HasPrefix(s[from:], "\n"):
		case size == 1:
			fmt.Fprintf(&b, `\x%02x`, s[at])
		case r <= 0xffff:
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			fmt.Fprintf(&b, `\U%08x`, r)
		}
	}
	b.WriteString(s[from:])
	return b.String()
}

// Line is [Text] on one line: line feeds and tabs become escapes too.
func Line(s string) string {
	return strings.NewReplacer("\n", `\n`, "\t", `\t`).Replace(Text(s))
}

// Marked is [Text] of words that are not Stile's, with a mark before each line, so that none looks like a line around them.
func Marked(s string) string { return "| " + strings.ReplaceAll(Text(s), "\n", "\n| ") }

// Hanging is [Text] of words that are not Stile's and begin on a line of Stile's: further lines are indented, so that none looks like a
// line around them.
func Hanging(s string) string { return indented(Text(s)) }

func indented(s string) string { return strings.ReplaceAll(s, "\n", "\n    ") }

// HangingStack is [Text] of a stack, whose lines are indented, except those that name a cause.
func HangingStack(s string) string {
	lines := strings.Split(Text(strings.TrimRight(s, "\n")), "\n")
	for i, line := range lines {
		if !strings.HasPrefix(line, "    at ") && !strings.HasPrefix(line, "Caused by ") {
			lines[i] = "    " + line
		}
	}
	return strings.Join(lines, "\n")
}

// OneLine is [Text] with spaces for line ends and tabs.
func OneLine(s string) string { return Text(spaces.Replace(s)) }

var spaces = strings.NewReplacer("\r\n", " ", "\n", " ", "\r", " ", "\t", " ")

// Short is [Text] of the part of s that [Cut] keeps, followed by "..." if Cut removed something.
func Short(s string, max int) string {
	kept := Cut(s, max)
	if len(kept) < len(s) {
		return Text(kept) + "..."
	}
	return Text(s)
}

// Ends is Short for text whose end says as much as its beginning, such as a trace with the message below it. Over max bytes it keeps half
// of them from each end, and a line between says how many are missing.
func Ends(s string, max int) string {
	if len(s) <= max {
		return Text(s)
	}
	head, from := Cut(s, max/2), len(s)-max/2
	for range utf8.UTFMax - 1 {
		if from < len(s) && !utf8.RuneStart(s[from]) {
			from++
		}
	}
	return fmt.Sprintf("%s\n... (%d bytes) ...\n%s", Text(head), from-len(head), Text(s[from:]))
}

// Cut returns the first max bytes of s, or up to three fewer to avoid splitting a character. What it returns does not keep s in memory.
func Cut(s string, max int) string {
	if len(s) <= max {
		return s
	}
	for back := range utf8.UTFMax {
		if back <= max && utf8.RuneStart(s[max-back]) {
			return strings.Clone(s[:max-back])
		}
	}
	return strings.Clone(s[:max])
}

// Problem writes what is wrong with a source: the place, the problem, what to write instead, and the line of the source. A line and a
// column of 0, and an empty text, are left out. Only the file is made printable here, on one line. Further lines of the rest are indented,
// because they can be words of the source.
func Problem(file string, line, column int, text, fix, snippet string) string {
	var b strings.Builder
	if file != "" {
		b.WriteString(Line(file))
		if line > 0 {
			fmt.Fprintf(&b, ":%d", line)
		}
		if column > 0 {
			fmt.Fprintf(&b, ":%d", column)
		}
		b.WriteString(": ")
	}
	b.WriteString(indented(text))
	if fix != "" {
		b.WriteString("; write " + indented(fix))
	}
	if snippet != "" {
		b.WriteString("\n    " + indented(snippet))
	}
	return b.String()
}

// Size formats bytes for a person.
func Size(n int64) string {
	const kib, mib, gib = 1 << 10, 1 << 20, 1 << 30
	switch {
	case n >= gib && n%gib == 0:
		return fmt.Sprintf("%d GiB", n/gib)
	case n >= mib && n%mib == 0:
		return fmt.Sprintf("%d MiB", n/mib)
	case n >= kib && n%kib == 0:
		return fmt.Sprintf("%d KiB", n/kib)
	case n == 1:
		return "1 byte"
	default:
		return fmt.Sprintf("%d bytes", n)
	}
}

// ParseSize reads a size that a person wrote: a number of bytes above 0, or a number with one of the units KiB, MiB, GiB.
func ParseSize(text string) (int64, error) {
	factor, number := int64(1), text
	for i, unit := range []string{"KiB", "MiB", "GiB"} {
		if before, ok := strings.CutSuffix(text, unit); ok {
			factor, number = 1<<(10*(i+1)), strings.TrimSpace(before)
		}
	}
	n, err := strconv.ParseInt(number, 10, 64)
	if err != nil || n <= 0 || n > math.MaxInt64/factor {
		return 0, fmt.Errorf("%q is not a size; write one like 1048576, 512KiB or 64MiB", text)
	}
	return n * factor, nil
}
