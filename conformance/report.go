package conformance

import (
	"fmt"
	"slices"
	"strings"

	"github.com/stilehost/stile/internal/printable"
)

// Score counts the verdicts of a section.
type Score struct {
	Section string          `json:"section"`
	Counts  map[Verdict]int `json:"counts"`
}

// String is passed of tried: "12/13".
func (s Score) String() string {
	return fmt.Sprintf("%d/%d", s.Counts[Pass], s.Counts[Pass]+s.Counts[Fail]+s.Counts[ExpectedFail]+s.Counts[Unexpected])
}

// cell is the score with all verdicts but passes: "12/13, 1 fail".
func (s Score) cell() string {
	if len(s.Counts) == 0 {
		return "no case"
	}
	var text strings.Builder
	text.WriteString(s.String())
	for _, v := range verdicts[1:] {
		if n := s.Counts[v]; n > 0 {
			fmt.Fprintf(&text, ", %d %s", n, v)
		}
	}
	return text.String()
}

// Scores are the scores of all sections with cases, and of everything at the end.
func (r *Report) Scores() (all []Score) {
	for _, name := range Sections {
		if s := r.score(name); len(s.Counts) > 0 {
			all = append(all, s)
		}
	}
	return append(all, r.score(everything))
}

// everything is the name of the score of all sections.
const everything = "all"

func (r *Report) score(section string) Score {
	s := Score{section, map[Verdict]int{}}
	for _, c := range r.Cases {
		if section == everything || c.Section == section {
			s.Counts[c.Verdict]++
		}
	}
	return s
}

// Wrong is how many cases failed, or passed although the host is expected to fail them.
func (r *Report) Wrong() (n int) {
	for _, c := range r.Cases {
		if c.Verdict == Fail || c.Verdict == Unexpected {
			n++
		}
	}
	return n
}

var verdicts = []Verdict{Pass, Fail, ExpectedFail, Unexpected, Skip}

// Table is the report for a terminal: what did not pass, and the score by section. It is printable, though the host wrote part of it.
func (r *Report) Table() string {
	var b strings.Builder
	for _, c := range r.Cases {
		if c.Verdict != Pass {
			fmt.Fprintf(&b, "%-15s %s\n    %s\n", c.Verdict, c.Name, strings.ReplaceAll(c.Why, "\n", "\n    "))
		}
	}
	if b.Len() > 0 {
		b.WriteByte('\n')
	}
	fmt.Fprintf(&b, "%-12s %8s", r.Host, "score")
	for _, v := range verdicts {
		fmt.Fprintf(&b, " %15s", v)
	}
	b.WriteByte('\n')
	for _, s := range r.Scores() {
		fmt.Fprintf(&b, "%-12s %8s", s.Section, s)
		for _, v := range verdicts {
			fmt.Fprintf(&b, " %15d", s.Counts[v])
		}
		b.WriteByte('\n')
	}
	return printable.Text(b.String())
}

// Markdown is the reports of several hosts beside each other.
func Markdown(reports ...*Report) string {
	var b strings.Builder
	b.WriteString("| section |")
	for _, r := range reports {
		fmt.Fprintf(&b, " %s |", r.Host)
	}
	b.WriteString("\n|---|" + strings.Repeat("---|", len(reports)) + "\n")
	for _, section := range append(slices.Clone(Sections), everything) {
		fmt.Fprintf(&b, "| %s |", section)
		for _, r := range reports {
			fmt.Fprintf(&b, " %s |", r.score(section).cell())
		}
		b.WriteByte('\n')
	}
	for _, r := range reports {
		fmt.Fprintf(&b, "\n## Cases that %s does not pass\n\n", r.Host)
		none := true
		for _, c := range r.Cases {
			if c.Verdict != Pass {
				none = false
				fmt.Fprintf(&b, "- `%s`, %s: %s\n", c.Name, c.Verdict, strings.ReplaceAll(c.Why, "\n", " "))
			}
		}
		if none {
			b.WriteString("None.\n")
		}
	}
	return b.String()
}
