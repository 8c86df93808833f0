package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"text/tabwriter"

	"github.com/stilehost/stile/bench/internal/measure"
)

// row is one line of the table. Key names it in the JSON.
type row struct {
	Key      string            `json:"key"`
	What     string            `json:"what"`
	Unit     string            `json:"unit,omitempty"` // empty for a ratio
	Value    float64           `json:"value"`          // a median if there is an interval
	Interval *measure.Estimate `json:"interval,omitempty"`
	P95      *float64          `json:"p95,omitempty"`
	// AtMost and AtLeast are the target. Zero means none.
	AtMost  float64 `json:"at_most,omitempty"`
	AtLeast float64 `json:"at_least,omitempty"`
	Met     *bool   `json:"met,omitempty"`
	// Missing is why the machine cannot measure this, or "". Then there is no value.
	Missing string `json:"missing,omitempty"`
}

// of fills in the result of a series.
func (r row) of(s measure.Series) row {
	e, p95 := s.Estimate(), s.P95()
	r.Value, r.Interval, r.P95 = e.Median, &e, &p95
	return r
}

// ratio fills in the ratio of two series that were measured in turns.
func (r row) ratio(s, base measure.Series) row {
	e := s.Over(base)
	r.Value, r.Interval = e.Median, &e
	return r
}

func (r row) target() string {
	switch {
	case r.AtMost != 0:
		return fmt.Sprintf("at most %s", figure(r.AtMost))
	case r.AtLeast != 0:
		return fmt.Sprintf("at least %s", figure(r.AtLeast))
	default:
		return ""
	}
}

func figure(v float64) string {
	switch {
	case v >= 1000:
		return fmt.Sprintf("%.0f", v)
	case v >= 100 || v == float64(int(v)):
		return fmt.Sprintf("%.4g", v)
	default:
		return fmt.Sprintf("%.3g", v)
	}
}

var columns = []string{"what", "median", "95% interval", "p95", "target", ""}

// cells are the columns of a row.
func (r row) cells() []string {
	interval, p95, met := "", "", ""
	if r.Interval != nil {
		interval = figure(r.Interval.Low) + " - " + figure(r.Interval.High)
	}
	if r.P95 != nil {
		p95 = figure(*r.P95)
	}
	if r.Met != nil {
		met = map[bool]string{true: "met", false: "MISSED"}[*r.Met]
	}
	if r.Missing != "" {
		return []string{r.What, "not available: " + r.Missing, "", "", r.target(), ""}
	}
	return []string{r.What, strings.TrimSpace(figure(r.Value) + " " + r.Unit), interval, p95, r.target(), met}
}

// about says where and how figures were measured.
func about(m measure.Machine) string {
	return fmt.Sprintf("%s, %d processors (%s), %d MiB, %s; load average %s before, %s after", m.System, m.Processors, m.CPU, m.MemoryMiB, m.Go, m.LoadBefore, m.LoadAfter)
}

// writeMarkdown writes rows as a section of a page.
func writeMarkdown(file string, m measure.Machine, rows []row) error {
	var b strings.Builder
	fmt.Fprintf(&b, "\n## Calls\n\nIn one run of `make bench-core`, at revision %s: %s. A name without a unit is a ratio of two things that were measured in turns.\n\n", m.Revision, about(m))
	line := func(cells []string) { b.WriteString("| " + strings.Join(cells, " | ") + " |\n") }
	line(columns)
	b.WriteString("|---|---:|---:|---:|---|---|\n")
	for _, r := range rows {
		line(r.cells())
	}
	return os.WriteFile(file, []byte(b.String()), 0o644)
}

// writeTable prints rows for a person.
func writeTable(w io.Writer, m measure.Machine, rows []row) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n\n", about(m))
	b.WriteString(strings.Join(columns, "\t") + "\n")
	for _, r := range rows {
		b.WriteString(strings.Join(r.cells(), "\t") + "\n")
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	if _, err := io.WriteString(t, b.String()); err != nil {
		return err
	}
	return t.Flush()
}

// writeJSON writes the value of each row under its key, and everything else under "rows" and "machine".
func writeJSON(file string, m measure.Machine, rows []row) error {
	document := map[string]any{"machine": m, "rows": rows}
	for _, r := range rows {
		if r.Missing == "" {
			document[r.Key] = r.Value
		}
	}
	content, err := json.MarshalIndent(document, "", "  ")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	return os.WriteFile(file, append(content, '\n'), 0o644)
}
