package bench

import (
	"bytes"
	"cmp"
	"fmt"
	"image/color"
	"maps"
	"math"
	"regexp"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/plotutil"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
)

// drawing is a plot, and the measurement that it shows.
type drawing struct {
	file, title, measurement string
	svg                      []byte
}

// plots draws everything for which there are figures.
func (r *results) plots() (drawn []drawing, err error) {
	add := func(measurement, file string, p *plot.Plot, legend *plot.Legend, height vg.Length) {
		if p == nil || err != nil {
			return
		}
		var svg []byte
		svg, err = render(p, legend, height)
		drawn = append(drawn, drawing{file + ".svg", p.Title.Text, measurement, svg})
	}
	for _, task := range r.tasks() {
		p, height := r.plotStart(task)
		add("start", "start-"+fileName(string(task)), p, nil, height)
	}
	p, height := r.plotMemory()
	add("memory", "memory", p, nil, height)
	p, legend := r.plotThroughput()
	add("throughput", "throughput", p, legend, max(300, vg.Length(len(r.throughput))*16+90))
	for _, what := range slices.Sorted(maps.Keys(r.costs)) {
		p, legend, failure := r.plotCost(what)
		if failure != nil {
			return nil, failure
		}
		add("cost", "cost-"+fileName(what), p, legend, 300)
	}
	return drawn, err
}

var notInNames = regexp.MustCompile(`[^a-z0-9]+`)

func fileName(s string) string { return notInNames.ReplaceAllString(shorten(s, 40), "-") }

// label shortens a text to fit a plot.
func label(s string) string { return shorten(line(s), 40) }

const width = 720

// render draws a plot, with its legend on the right.
func render(p *plot.Plot, legend *plot.Legend, height vg.Length) ([]byte, error) {
	svg := vgsvg.New(width, height)
	all := draw.New(svg)
	all.SetColor(color.White)
	all.Fill(all.Path())
	canvas := draw.Crop(all, 8, -16, 8, -8)
	if legend != nil {
		box := legend.Rectangle(canvas)
		right := box.Max.X - box.Min.X
		legend.Draw(draw.Crop(canvas, canvas.Max.X-canvas.Min.X-right, 0, 0, -30))
		canvas = draw.Crop(canvas, 0, -right-16, 0, 0)
	}
	p.Draw(canvas)
	var b bytes.Buffer
	if _, err := svg.WriteTo(&b); err != nil {
		return nil, err
	}
	// The second font is as wide as the first, which few machines have.
	return bytes.ReplaceAll(b.Bytes(), []byte("font-family:Liberation Sans;"), []byte("font-family:Liberation Sans,Arial,Helvetica,sans-serif;")), nil
}

var grey = color.Gray{0xdd}

func newPlot(title, x, y string) *plot.Plot {
	p := plot.New()
	p.Title.Text, p.X.Label.Text, p.Y.Label.Text = title, x, y
	p.Title.Padding = 8
	for _, style := range []*draw.TextStyle{&p.Title.TextStyle, &p.X.Label.TextStyle, &p.Y.Label.TextStyle, &p.X.Tick.Label, &p.Y.Tick.Label, &p.Legend.TextStyle} {
		sans(style, 11)
	}
	p.Title.TextStyle.Font.Size = 14
	return p
}

func sans(style *draw.TextStyle, size vg.Length) {
	style.Font.Typeface, style.Font.Variant, style.Font.Size = "Liberation", "Sans", size
}

func newLegend() *plot.Legend {
	l := plot.NewLegend()
	l.Top, l.Left, l.Padding, l.ThumbnailWidth = true, true, 2, 24
	sans(&l.TextStyle, 11)
	return &l
}

// logarithmic makes an axis logarithmic from low to high, both positive. It labels each power of ten, and values between if there
// are few.
func logarithmic(axis *plot.Axis, low, high float64, name func(float64) string) {
	named := []float64{1}
	if high/low < 50 {
		named = []float64{1, 2, 5}
	}
	setTicks(axis, low, high, 10, []float64{1, 2, 3, 4, 5, 6, 7, 8, 9}, named, name)
}

// binary is like logarithmic, with labels at powers of four.
func binary(axis *plot.Axis, low, high float64, name func(float64) string) {
	setTicks(axis, low, high, 4, []float64{1}, []float64{1}, name)
}

// setTicks puts ticks at the multiples of the powers of a base.
func setTicks(axis *plot.Axis, low, high, base float64, multiples, named []float64, name func(float64) string) {
	axis.Scale, axis.Min, axis.Max = plot.LogScale{}, low, high
	var ticks plot.ConstantTicks
	for power := math.Floor(math.Log(low) / math.Log(base)); math.Pow(base, power) <= high; power++ {
		for _, n := range multiples {
			t := plot.Tick{Value: n * math.Pow(base, power)}
			if slices.Contains(named, n) {
				t.Label = zeros.ReplaceAllString(name(t.Value), "$1")
			}
			if t.Value >= low && t.Value <= high {
				ticks = append(ticks, t)
			}
		}
	}
	axis.Tick.Marker = ticks
}

// zeros matches the zero decimals that a round figure does not need.
var zeros = regexp.MustCompile(`\.0+( |$)`)

// bar is one row of a chart: a bar to a value, a line on to another, and the figure.
type bar struct {
	name, figure string
	value, to    float64
	color        color.Color
}

// bars are rows from the top.
type bars struct {
	rows  []bar
	style draw.TextStyle
}

// Plot implements plot.Plotter.
func (b bars) Plot(c draw.Canvas, p *plot.Plot) {
	x, y := p.Transforms(&c)
	for i, row := range b.rows {
		middle := y(float64(len(b.rows) - 1 - i))
		left, right, end := x(p.X.Min), x(row.value), x(max(row.value, row.to))
		c.FillPolygon(row.color, []vg.Point{{X: left, Y: middle - 5}, {X: right, Y: middle - 5}, {X: right, Y: middle + 5}, {X: left, Y: middle + 5}})
		if end > right {
			line := draw.LineStyle{Color: color.Gray{0x60}, Width: 1}
			c.StrokeLine2(line, right, middle, end, middle)
			c.StrokeLine2(line, end, middle-3, end, middle+3)
		}
		c.FillText(b.style, vg.Point{X: end + 5, Y: middle + 1}, row.figure)
	}
}

// barChart draws rows along a logarithmic axis, which scale makes. Named colours are explained at the top.
func barChart(title, x string, rows []bar, scale func(axis *plot.Axis, low, high float64, name func(float64) string), name func(float64) string, legend []bar) (*plot.Plot, vg.Length) {
	if len(rows) == 0 {
		return nil, 0
	}
	p := newPlot(title, x, "")
	low, high := rows[0].value, rows[0].value
	names := make([]string, len(rows))
	for i, row := range rows {
		low, high = min(low, row.value), max(high, row.value, row.to)
		names[len(rows)-1-i] = row.name
	}
	low /= 2
	scale(&p.X, low, high*math.Pow(high/low, 0.18), name) // the last figure has room on the right
	lines := grid()
	lines.Horizontal.Color = nil
	style := p.X.Tick.Label
	style.XAlign, style.YAlign = draw.XLeft, draw.YCenter
	style.Font.Size = 10
	p.Add(lines, bars{rows, style})
	p.NominalY(names...)
	p.Y.Min, p.Y.Max = -0.7, float64(len(rows))-0.3
	p.Legend.Top, p.Legend.ThumbnailWidth, p.Legend.Padding = true, 12, 2
	for _, l := range legend {
		p.Legend.Add(l.name, swatch{l.color})
	}
	p.Y.Max += float64(len(legend)) * 0.8
	return p, vg.Length(p.Y.Max-p.Y.Min)*20 + 90
}

type swatch struct{ color.Color }

// Thumbnail implements plot.Thumbnailer.
func (s swatch) Thumbnail(c *draw.Canvas) { c.FillPolygon(s.Color, corners(c.Rectangle)) }

func corners(r vg.Rectangle) []vg.Point {
	return []vg.Point{r.Min, {X: r.Max.X, Y: r.Min.Y}, r.Max, {X: r.Min.X, Y: r.Max.Y}}
}

// levelColors can be told apart without seeing red and green.
var levelColors = map[Level]color.Color{
	NewCode: color.RGBA{0xd5, 0x5e, 0x00, 0xff}, NewIsolate: color.RGBA{0x00, 0x72, 0xb2, 0xff},
	Live: color.RGBA{0x00, 0x9e, 0x73, 0xff}, NewHost: color.RGBA{0xcc, 0x79, 0xa7, 0xff},
}

func colorOf(l Level) color.Color {
	if c := levelColors[l]; c != nil {
		return c
	}
	return color.Gray{0x80}
}

func (r *results) plotStart(task Task) (*plot.Plot, vg.Length) {
	var rows, legend []bar
	for _, level := range r.levels() {
		of := r.startsOf(task, level)
		for _, s := range of {
			rows = append(rows, bar{label(r.title(s.Contender)), duration(s.median()), s.median(), s.result.series().P95(), colorOf(level)})
		}
		if len(of) > 0 {
			legend = append(legend, bar{name: label(string(level)) + ": " + levelTitles[level], color: colorOf(level)})
		}
	}
	slices.SortStableFunc(rows, func(a, b bar) int { return cmp.Compare(a.value, b.value) })
	return barChart("Start to result, task "+label(string(task)), "median, and the line on to p95 (logarithmic)", rows, logarithmic, duration, legend)
}

func (r *results) plotMemory() (*plot.Plot, vg.Length) {
	var rows []bar
	colors := []bar{
		{name: "private: what it alone has", color: levelColors[NewIsolate]},
		{name: "proportional: with its share of what processes share", color: levelColors[NewCode]},
	}
	for _, m := range r.memories() {
		name := label(r.title(m.contender))
		for i, of := range []func(MemoryPoint) float64{private, proportional} {
			if kib, ok := m.slope(of); ok && sound(kib) {
				rows = append(rows, bar{name, size(kib), kib, kib, colors[i].color})
				name = ""
			}
		}
	}
	return barChart("Memory of one idle isolate more", "slope between the fewest and the most isolates (logarithmic)", rows, binary, size, colors)
}

// span returns the bounds of positive values for a logarithmic axis, with some room.
func span(values []float64) (low, high float64) {
	return slices.Min(values) / 1.3, slices.Max(values) * 1.3
}

func (r *results) plotThroughput() (*plot.Plot, *plot.Legend) {
	// The library misplaces the middle of a label on a logarithmic axis, so the vertical axis has no label.
	p := newPlot("Throughput, calls a second", "callers at once (both axes are logarithmic)", "")
	p.Add(grid())
	legend := newLegend()
	var xs, ys []float64
	for i, name := range r.throughputs() {
		var points plotter.XYs
		for _, n := range r.callers() {
			if rate, ok := r.rate(name, n); ok {
				points = append(points, plotter.XY{X: float64(n), Y: rate})
				xs, ys = append(xs, float64(n)), append(ys, rate)
			}
		}
		if len(points) > 0 {
			addLine(p, legend, label(r.title(name)), points, i)
		}
	}
	if len(xs) == 0 {
		return nil, nil
	}
	low, high := span(xs)
	logarithmic(&p.X, low, high, whole)
	p.X.Tick.Marker = at(r.callers())
	low, high = span(ys)
	logarithmic(&p.Y, low, high, digits)
	return p, legend
}

// at puts ticks where the values are.
func at(values []int) plot.Ticker {
	var ticks plot.ConstantTicks
	for _, v := range values {
		ticks = append(ticks, plot.Tick{Value: float64(v), Label: fmt.Sprint(v)})
	}
	return ticks
}

func grid() *plotter.Grid {
	g := plotter.NewGrid()
	g.Horizontal.Color, g.Vertical.Color = grey, grey
	g.Horizontal.Width, g.Vertical.Width = 0.5, 0.5
	return g
}

// addLine draws the i-th line.
func addLine(p *plot.Plot, legend *plot.Legend, name string, points plotter.XYs, i int) {
	hue := plotutil.DarkColors[i%len(plotutil.DarkColors)]
	l := &plotter.Line{XYs: points, LineStyle: draw.LineStyle{Color: hue, Width: 1.5, Dashes: plotutil.Dashes(i / len(plotutil.DarkColors))}}
	s := &plotter.Scatter{XYs: points, GlyphStyle: draw.GlyphStyle{Color: hue, Radius: 3, Shape: plotutil.Shape(i)}}
	p.Add(l, s)
	legend.Add(name, l, s)
}

func (r *results) plotCost(what string) (*plot.Plot, *plot.Legend, error) {
	points := r.costs[what]
	p := newPlot("A cold call over "+label(what), "", "")
	p.Add(grid())
	var xs, most []float64
	for _, c := range points {
		xs, most = append(xs, c.X), append(most, c.CallUS.Median)
		for _, v := range []float64{c.CallUS.High, c.P95US} {
			if sound(v) {
				most = append(most, v)
			}
		}
	}
	unit, scale := "µs", 1.0
	switch highest := slices.Max(most); {
	case highest >= 2e6:
		unit, scale = "s", 1e-6
	case highest >= 2e3:
		unit, scale = "ms", 1e-3
	}
	var medians, p95s plotter.XYs
	var errs plotter.YErrors
	for _, c := range points {
		medians = append(medians, plotter.XY{X: c.X, Y: c.CallUS.Median * scale})
		from, to := 0.0, 0.0
		if sound(c.CallUS.Low) && sound(c.CallUS.High) {
			from, to = max(0, c.CallUS.Median-c.CallUS.Low)*scale, max(0, c.CallUS.High-c.CallUS.Median)*scale
		}
		errs = append(errs, struct{ Low, High float64 }{from, to})
		if sound(c.P95US) {
			p95s = append(p95s, plotter.XY{X: c.X, Y: c.P95US * scale})
		}
	}
	legend := newLegend()
	addLine(p, legend, "median, 95% interval", medians, 0)
	if len(p95s) > 0 {
		addLine(p, legend, "p95", p95s, 1)
	}
	intervals, err := plotter.NewYErrorBars(struct {
		plotter.XYer
		plotter.YErrorer
	}{medians, errs})
	if err != nil {
		return nil, nil, fmt.Errorf("plot the cost over %s: %w", what, err)
	}
	p.Add(intervals)
	p.X.Label.Text, p.Y.Label.Text = label(points[0].Unit), "time ("+unit+")"
	p.Y.Min, p.Y.Max = 0, slices.Max(most)*scale*1.1
	if low, high := span(xs); low > 0 && high/low > 20 {
		logarithmic(&p.X, low, high, whole)
		p.X.Label.Text += " (logarithmic)"
	}
	return p, legend, nil
}
