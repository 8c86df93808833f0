package bench

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/dustin/go-humanize"

	"github.com/stilehost/stile/bench/internal/measure"
)

// none stands where there is no figure.
const none = "-"

// digits writes a figure with three significant digits.
func digits(v float64) string {
	switch size := math.Abs(v); {
	case math.IsNaN(v) || math.IsInf(v, 0):
		return none
	case size >= 999.5 && size < 1e18:
		unit := math.Pow10(int(math.Log10(size)) - 2)
		return humanize.Comma(int64(math.Round(v/unit) * unit))
	case size >= 99.95:
		return strconv.FormatFloat(v, 'f', 0, 64)
	case size >= 9.995:
		return strconv.FormatFloat(v, 'f', 1, 64)
	case size >= 0.0995:
		return strconv.FormatFloat(v, 'f', 2, 64)
	default:
		return strconv.FormatFloat(v, 'g', 2, 64)
	}
}

// duration writes microseconds in the unit that fits.
func duration(us float64) string {
	switch {
	case us >= 1e6:
		return digits(us/1e6) + " s"
	case us >= 1e3:
		return digits(us/1e3) + " ms"
	default:
		return digits(us) + " µs"
	}
}

// size writes KiB in the unit that fits.
func size(kib float64) string {
	switch v := math.Abs(kib); {
	case v >= 1<<20:
		return digits(kib/(1<<20)) + " GiB"
	case v >= 1<<10:
		return digits(kib/(1<<10)) + " MiB"
	default:
		return digits(kib) + " KiB"
	}
}

// times writes a ratio.
func times(ratio float64) string { return digits(ratio) + " x" }

// interval writes the bounds of an estimate.
func interval(e measure.Estimate, figure func(float64) string) string {
	return figure(e.Low) + " to " + figure(e.High)
}

// quantity writes a figure in a known unit, or with the unit's name.
func quantity(v float64, unit string) string {
	switch unit {
	case "µs":
		return duration(v)
	case "KiB":
		return size(v)
	case "":
		return digits(v)
	default:
		return digits(v) + " " + unit
	}
}

// whole writes a count as it is.
func whole(v float64) string {
	if v == math.Trunc(v) && math.Abs(v) < 1e15 {
		return humanize.Comma(int64(v))
	}
	return digits(v)
}

// document is growing Markdown.
type document struct{ strings.Builder }

func (d *document) printf(format string, args ...any) { fmt.Fprintf(&d.Builder, format, args...) }

// table writes rows. The first columns are text.
func (d *document) table(text int, head []string, rows [][]string) {
	row := func(cells []string) {
		for _, c := range cells {
			d.printf("| %s ", cell(c))
		}
		d.printf("|\n")
	}
	d.printf("\n")
	row(head)
	for i := range head {
		if i < text {
			d.printf("|---")
		} else {
			d.printf("|---:")
		}
	}
	d.printf("|\n")
	for _, r := range rows {
		row(r)
	}
}

// cell makes a text safe for a table cell.
func cell(s string) string {
	if s = strings.ReplaceAll(line(s), "|", `\|`); s != "" {
		return s
	}
	return none
}

// line makes a text safe for one line without HTML.
func line(s string) string {
	return strings.ReplaceAll(strings.Join(strings.Fields(strings.ToValidUTF8(s, "")), " "), "<", "&lt;")
}

// code shows a text unchanged.
func code(s string) string { return "`" + strings.ReplaceAll(s, "`", "'") + "`" }
