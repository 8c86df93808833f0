package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"text/tabwriter"

	"github.com/stilehost/stile/bench/internal/measure"
)

// results are those of a run. The first row is TypeScript.
type results struct {
	Machine measure.Machine `json:"machine"`
	Rows    []*row          `json:"languages"`
}

// row is a language.
type row struct {
	Language string `json:"language"`
	Name     string `json:"name"`
	// Missing is why it was not measured. Install installs what lacks.
	Missing   string `json:"missing,omitempty"`
	Install   string `json:"install,omitempty"`
	Toolchain string `json:"toolchain,omitempty"`
	Bytes     int    `json:"bytes,omitempty"`
	// LoadMS and LoadCPUMS are a load with an empty cache, in which the component is compiled: wall and processor time. ReloadMS is one
	// from the cache. EngineCPUMS is processor time for the engine of TypeScript, before its first component.
	LoadMS      float64      `json:"load_ms,omitempty"`
	LoadCPUMS   float64      `json:"load_cpu_ms,omitempty"`
	ReloadMS    float64      `json:"reload_ms,omitempty"`
	EngineCPUMS float64      `json:"engine_cpu_ms,omitempty"`
	Call        *callFigures `json:"call,omitempty"`
	PrivateKiB  float64      `json:"private_kib,omitempty"` // of one more call that waits
}

// callFigures are of a fresh call.
type callFigures struct {
	US    measure.Estimate `json:"us"`
	P95US float64          `json:"p95_us"`
	Over  measure.Estimate `json:"over_typescript"` // round by round
}

// figure writes a number with about three digits.
func figure(v float64) string {
	switch {
	case v >= 99.5:
		return fmt.Sprintf("%.0f", v)
	case v >= 9.95:
		return fmt.Sprintf("%.1f", v)
	default:
		return fmt.Sprintf("%.2g", v)
	}
}

func bytesOf(n int) string {
	if n >= 1e6 {
		return fmt.Sprintf("%.1f MB", float64(n)/1e6)
	}
	return fmt.Sprintf("%.0f KB", float64(n)/1e3)
}

// terminal has the figures as they are.
func (r *results) terminal() string {
	var lines, b strings.Builder
	lines.WriteString("LANGUAGE\tCOMPONENT\tFIRST LOAD\tCOMPILE (CPU)\tLOAD AGAIN\tFRESH CALL\tP95\tOVER TYPESCRIPT\tPRIVATE MEMORY\n")
	for _, l := range r.Rows {
		if l.Missing != "" {
			fmt.Fprintf(&lines, "%s\tnot measured: %s; to install it: %s\n", l.Language, l.Missing, l.Install)
			continue
		}
		fmt.Fprintf(&lines, "%s\t%s\t%s ms\t%s ms\t%s ms\t%s us\t%s us\t%s (%s - %s)\t%s KiB\n", l.Language, bytesOf(l.Bytes), figure(l.LoadMS), figure(l.LoadCPUMS),
			figure(l.ReloadMS), figure(l.Call.US.Median), figure(l.Call.P95US), figure(l.Call.Over.Median), figure(l.Call.Over.Low), figure(l.Call.Over.High), figure(l.PrivateKiB))
	}
	w := tabwriter.NewWriter(&b, 0, 0, 3, ' ', 0)
	_, _ = w.Write([]byte(lines.String())) // into memory
	_ = w.Flush()
	return b.String()
}

// markdown has ratios to TypeScript, which hold between machines, and sizes.
func (r *results) markdown() string {
	var b strings.Builder
	base := r.Rows[0]
	b.WriteString("\n## Guests in other languages\n\nThe same small tool, `search_notes` of `examples/notes`, in each language: ratios to TypeScript in the same run. Compile is the processor time of the first load.\n\n")
	b.WriteString("| language | component | compile | first load | load again | fresh call | 95% interval | private memory |\n|---|---:|---:|---:|---:|---:|---:|---:|\n")
	for _, l := range r.Rows {
		if l.Missing != "" {
			fmt.Fprintf(&b, "| %s | not measured: %s | - | - | - | - | - | - |\n", l.Language, l.Missing)
			continue
		}
		fmt.Fprintf(&b, "| %s | %s | %s x | %s x | %s x | %s x | %s - %s | %s KiB, %s x |\n", l.Language, bytesOf(l.Bytes), figure(l.LoadCPUMS/base.LoadCPUMS), figure(l.LoadMS/base.LoadMS),
			figure(l.ReloadMS/base.ReloadMS), figure(l.Call.Over.Median), figure(l.Call.Over.Low), figure(l.Call.Over.High), figure(l.PrivateKiB), figure(l.PrivateKiB/base.PrivateKiB))
	}
	fmt.Fprintf(&b, "\nThe engine of TypeScript is compiled once, for %s x the processor time of a TypeScript component.\n", figure(base.EngineCPUMS/base.LoadCPUMS))
	var named []string
	for _, l := range r.Rows {
		if l.Toolchain != "" {
			named = append(named, l.Language+": "+l.Toolchain)
		}
	}
	fmt.Fprintf(&b, "\nMeasured %s at a load average of %s before and %s after, revision %s. Toolchains: %s.\n",
		r.Machine.Time.Format("2006-01-02"), r.Machine.LoadBefore, r.Machine.LoadAfter, r.Machine.Revision, strings.Join(named, "; "))
	b.WriteString("\n    make bench-languages\n")
	return b.String()
}

// write writes the figures, and the table beside them.
func (r *results) write(file string) error {
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	data, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	if err := os.WriteFile(file, append(data, '\n'), 0o644); err != nil {
		return err
	}
	return os.WriteFile(strings.TrimSuffix(file, ".json")+".md", []byte(r.markdown()), 0o644)
}
