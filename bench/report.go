package bench

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/dustin/go-humanize"

	"github.com/stilehost/stile/bench/internal/measure"
)

const reportFile = "report.md"

// Report writes tables and plots of what a run has written so far into dir, and returns the path of report.md. The same lines give
// the same files.
func Report(dir string) (path string, err error) {
	lines, err := ReadLines(dir)
	if err != nil {
		return "", err
	}
	r := gather(lines)
	drawn, err := r.plots()
	if err != nil {
		return "", err
	}
	for _, p := range drawn {
		if err := os.WriteFile(filepath.Join(dir, p.file), p.svg, 0o644); err != nil {
			return "", err
		}
	}
	path = filepath.Join(dir, reportFile)
	return path, os.WriteFile(path, []byte(r.markdown(drawn)), 0o644)
}

var levelTitles = map[Level]string{
	NewCode:    "code that was never seen, in a new isolate",
	NewIsolate: "stored code, in a new isolate",
	Live:       "an isolate that has answered before",
	NewHost:    "stored code, and the program that hosts isolates starts as well",
}

// markdown returns the report.
func (r *results) markdown(drawn []drawing) string {
	d := &document{}
	d.printf("# Stile beside other ways to run code nobody has reviewed\n")
	show := func(measurement string) {
		for _, p := range drawn {
			if p.measurement == measurement {
				d.printf("\n![%s](%s)\n", line(p.title), p.file)
			}
		}
	}
	for _, section := range []struct {
		measurement, title string
		write              func(*document)
	}{
		{"start", "Start", r.writeStart},
		{"memory", "Memory of an idle isolate", r.writeMemory},
		{"idle", "Many agents, few of them active", r.writeIdle},
		{"throughput", "Throughput", r.writeThroughput},
		{"cost", "What a cold call costs when something grows", r.writeCosts},
		{"work", "Computing inside an isolate", r.writeWork},
		{"hosts", "Other hosts of stile:extension", r.writeHosts},
		{"parts", "Parts of a cold call", r.writeParts},
	} {
		part := &document{}
		if section.write(part); part.Len() > 0 {
			d.printf("\n## %s\n", section.title)
			show(section.measurement)
			d.printf("%s", part)
		}
	}
	r.writeUnavailable(d)
	r.writeMachine(d)
	r.writeTargets(d)
	return d.String()
}

// command is the command that repeats a measurement. It leaves out names that are not contenders.
func (r *results) command(measurement string, names ...string) string {
	text := "stile bench run --only " + measurement
	known := slices.DeleteFunc(slices.Compact(slices.Sorted(slices.Values(names))), func(name string) bool {
		_, ok := r.taking[name]
		return !ok || strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789-") != ""
	})
	if len(known) > 0 {
		text += " --with " + strings.Join(known, ",")
	}
	return text + " --out DIR"
}

func (r *results) writeCommand(d *document, measurement string, names ...string) {
	d.printf("\n    %s\n", r.command(measurement, names...))
}

func (r *results) writeStart(d *document) {
	for _, level := range r.levels() {
		d.printf("\n### %s: %s\n", line(string(level)), cmp.Or(levelTitles[level], "a level of its own"))
		for _, task := range r.tasks() {
			of := r.startsOf(task, level)
			if len(of) == 0 {
				continue
			}
			d.printf("\nTask `%s`", line(string(task)))
			base := r.base(task, level)
			if base != nil {
				d.printf("; ratios are to %s, round by round", line(r.title(base.Contender)))
			}
			d.printf(".\n")
			var rows [][]string
			var names []string
			for _, s := range of {
				rows, names = append(rows, r.startRow(s, base)), append(names, s.Contender)
			}
			d.table(3, []string{"contender", "boundary", "limits", "median", "95% interval", "p95", "p99", "until gone", "CPU", "trials", "over Stile"}, rows)
			r.writeCommand(d, "start", names...)
		}
	}
}

func (r *results) startRow(s, base *starts) []string {
	series := s.result.series()
	e, all := series.Estimate(), slices.Concat(series...)
	gone, cpu, ratio := none, none, none
	if len(s.end) > 0 {
		gone = duration(s.end.series().Estimate().Median)
	}
	if len(s.cpu) > 0 {
		cpu = duration(mean(slices.Concat(s.cpu.series()...)))
	}
	if base != nil {
		if over, ok := s.result.over(base.result); ok {
			ratio = times(over.Median)
		}
	}
	p := r.taking[s.Contender]
	return []string{
		r.title(s.Contender), p.Boundary, p.Limits, duration(e.Median), interval(e, duration), duration(measure.Quantile(all, 0.95)),
		duration(measure.Quantile(all, 0.99)), gone, cpu, humanize.Comma(int64(len(all))), ratio,
	}
}

// mean is for values that the kernel counts in steps longer than a trial takes.
func mean(v []float64) (m float64) {
	for _, x := range v {
		m += x / float64(len(v))
	}
	return m
}

func (r *results) writeMemory(d *document) {
	if len(r.memory) == 0 {
		return
	}
	var slopes, points [][]string
	var names []string
	base := r.memory["stile"]
	for _, m := range r.memories() {
		names = append(names, m.contender)
		slope := func(of func(MemoryPoint) float64) string {
			if kib, ok := m.slope(of); ok {
				return size(kib)
			}
			return none
		}
		ratio := none
		if base != nil {
			own, _ := base.slope(private)
			if kib, _ := m.slope(private); sound(own) && sound(kib) {
				ratio = times(kib / own)
			}
		}
		last := m.points[len(m.points)-1]
		slopes = append(slopes, []string{
			r.title(m.contender), r.taking[m.contender].Boundary, slope(private), slope(proportional), slope(available), daemons(last), ratio,
		})
		for _, p := range m.points {
			points = append(points, []string{
				r.title(m.contender), humanize.Comma(int64(p.Live)), humanize.Comma(int64(p.Processes)), size(p.PrivateKiB), size(p.ProportionalKiB),
				size(p.AvailableKiB), daemons(p), duration(p.StartMS * 1e3), duration(p.EndMS * 1e3),
			})
		}
	}
	d.printf("\nWhat one isolate more takes: the slope between the fewest and the most. `available` is what the machine had less, with the kernel's share and noise. Daemons are apart, whole and not for an isolate.\n")
	d.table(2, []string{"contender", "boundary", "private", "proportional", "available", "daemons", "private over Stile"}, slopes)
	r.writeCommand(d, "memory", names...)
	d.printf("\nThe points, and how long it took until all were idle and until none was left:\n")
	d.table(1, []string{"contender", "isolates", "processes", "private", "proportional", "available", "daemons", "start", "end"}, points)
	r.writeCommand(d, "memory", names...)
}

func daemons(p MemoryPoint) string {
	if p.DaemonKiB == 0 {
		return none
	}
	return size(p.DaemonKiB)
}

func (r *results) writeIdle(d *document) {
	if len(r.idle) == 0 {
		return
	}
	var rows [][]string
	var names []string
	for _, p := range r.idle {
		measured := humanize.Comma(int64(p.Measured))
		if p.Measured < p.Agents {
			measured += ", extrapolated"
		}
		rows, names = append(rows, []string{
			r.title(p.Contender), humanize.Comma(int64(p.Agents)), digits(p.Active*100) + " %", size(p.MemoryMiB * 1024), digits(p.CPU), measured,
		}), append(names, p.Contender)
	}
	for _, m := range r.memories() {
		last := m.points[len(m.points)-1]
		if kib, ok := m.slope(private); ok && sound(kib) && r.idle[0].Contender != m.contender {
			rows = append(rows, []string{
				r.title(m.contender) + ", kept alive", humanize.Comma(int64(r.idle[0].Agents)), "0 %", size(kib * float64(r.idle[0].Agents)), none,
				humanize.Comma(int64(last.Live)) + ", extrapolated",
			})
		}
	}
	d.printf("\nAn agent of Stile that is not active is a row and shares its component; others are kept alive and idle, and their memory is that of one more times their number.\n")
	d.table(1, []string{"contender", "agents", "active", "memory", "processors", "measured with"}, rows)
	r.writeCommand(d, "idle", names...)
}

func (r *results) writeThroughput(d *document) {
	names := r.throughputs()
	if len(names) == 0 {
		return
	}
	write := func(head []string, row func(name string) []string) {
		if len(head) == 1 {
			return
		}
		var rows [][]string
		for _, name := range names {
			rows = append(rows, append([]string{r.title(name)}, row(name)...))
		}
		d.table(1, head, rows)
		r.writeCommand(d, "throughput", names...)
	}
	callers, head := r.callers(), []string{"contender"}
	for _, n := range callers {
		head = append(head, plural(n, "caller"))
	}
	d.printf("\nCalls a second, by callers that each begin when their last call has ended:\n")
	write(head, func(name string) (row []string) {
		for _, n := range callers {
			text := none
			if rate, ok := r.rate(name, n); ok {
				text = digits(rate)
			}
			row = append(row, text)
		}
		return row
	})
	loads, head := r.loads(), []string{"contender"}
	for _, load := range loads {
		head = append(head, fmt.Sprintf("%.0f%%: rate", load*100), "median", "p95", "p99")
	}
	d.printf("\nLatency when calls begin at random moments, whether others have ended or not, at a share of the highest rate:\n")
	write(head, func(name string) (row []string) {
		for _, load := range loads {
			cells := []string{none, none, none, none}
			for _, p := range r.throughput[name] {
				if p.Load == load {
					cells = []string{digits(p.PerSecond) + "/s", duration(p.P50US), duration(p.P95US), duration(p.P99US)}
				}
			}
			row = append(row, cells...)
		}
		return row
	})
}

func plural(n int, what string) string {
	if n != 1 {
		what += "s"
	}
	return fmt.Sprintf("%d %s", n, what)
}

func (r *results) writeCosts(d *document) {
	for _, what := range slices.Sorted(maps.Keys(r.costs)) {
		points := r.costs[what]
		var rows [][]string
		for _, p := range points {
			rows = append(rows, []string{
				whole(p.X) + " " + p.Unit, duration(p.CallUS.Median), interval(p.CallUS, duration), duration(p.P95US), digits(p.Faults), times(p.CallUS.Median / points[0].CallUS.Median),
			})
		}
		d.printf("\n### %s\n", line(what))
		d.table(1, []string{what, "median", "95% interval", "p95", "page faults", "over the first"}, rows)
		r.writeCommand(d, "cost")
	}
}

func (r *results) writeWork(d *document) {
	var rows [][]string
	var names []string
	for _, key := range slices.SortedFunc(maps.Keys(r.work), func(a, b workKey) int {
		return cmp.Or(cmp.Compare(a.Work, b.Work), cmp.Compare(r.work[a].series().Estimate().Median, r.work[b].series().Estimate().Median), cmp.Compare(a.Contender, b.Contender))
	}) {
		e, ratio := r.work[key].series().Estimate(), none
		if over, ok := r.work[key].over(r.work[workKey{key.Work, "stile"}]); ok {
			ratio = times(over.Median)
		}
		ms := func(v float64) string { return duration(v * 1e3) }
		rows, names = append(rows, []string{key.Work, r.title(key.Contender), ms(e.Median), interval(e, ms), ratio}), append(names, key.Contender)
	}
	if len(rows) == 0 {
		return
	}
	d.printf("\nThe same JavaScript, without the start of the isolate. WebAssembly has no JIT for it; a process has, unless it is told otherwise.\n")
	d.table(2, []string{"work", "contender", "median", "95% interval", "over Stile"}, rows)
	r.writeCommand(d, "work", names...)
}

func (r *results) writeParts(d *document) {
	medians := map[string]measure.Estimate{}
	for part, of := range r.parts {
		medians[part] = of.series().Estimate()
	}
	var rows [][]string
	for _, part := range slices.SortedFunc(maps.Keys(medians), func(a, b string) int {
		return cmp.Or(cmp.Compare(medians[b].Median, medians[a].Median), cmp.Compare(a, b))
	}) {
		rows = append(rows, []string{part, duration(medians[part].Median), interval(medians[part], duration)})
	}
	if len(rows) == 0 {
		return
	}
	d.table(1, []string{"part", "median for a call", "95% interval"}, rows)
	if len(r.faults) > 0 {
		d.printf("\nThe kernel mapped %s pages for a call, and took %s of processor time.\n", digits(r.faults.series().Estimate().Median), duration(r.system.series().Estimate().Median))
	}
	r.writeCommand(d, "parts")
}

// hostFigures are the rows about hosts of the protocol, in order.
var hostFigures = []struct {
	figure      HostFigure
	title, unit string
}{
	{HostStart, "start of the process, until it says what it is", "µs"},
	{HostFirst, "first call of a component that no process has seen", "µs"},
	{HostMessage, "a message and its answer, without a call", "µs"},
	{HostCall, "a call in a fresh instance", "µs"},
	{HostFetch, "a call that makes one request", "µs"},
	{HostRate1, "calls a second, 1 caller", "/s"},
	{HostRate4, "calls a second, 4 callers", "/s"},
	{HostRate16, "calls a second, 16 callers", "/s"},
	{HostPrivateNew, "private memory after the start", "KiB"},
	{HostPrivate, "private memory after calls", "KiB"},
	{HostWaiting, "private memory of one more call that waits", "KiB"},
}

// writeHosts compares hosts of the protocol, each with the first.
func (r *results) writeHosts(d *document) {
	if len(r.hosts) == 0 {
		return
	}
	head := []string{"figure", r.hosts[0]}
	for _, other := range r.hosts[1:] {
		head = append(head, other, "over "+r.hosts[0], "95% interval")
	}
	var rows [][]string
	for _, f := range hostFigures {
		own := r.hostRounds[hostKey{r.hosts[0], f.figure}]
		value := func(of rounds) string {
			if len(of) == 0 {
				return none
			}
			return quantity(of.series().Estimate().Median, f.unit)
		}
		row := []string{f.title, value(own)}
		for _, other := range r.hosts[1:] {
			of := r.hostRounds[hostKey{other, f.figure}]
			cells := []string{value(of), none, none}
			if ratio, ok := of.over(own); ok {
				cells[1], cells[2] = times(ratio.Median), interval(ratio, digits)
			}
			row = append(row, cells...)
		}
		rows = append(rows, row)
	}
	d.printf("\nEach host is a process that answers the protocol of the conformance suite, this one too. All get the same components and requests, in turns; ratios are taken round by round. Every answer is checked.\n")
	d.table(1, head, rows)
	d.printf("\n    stile bench run --only hosts --host COMMAND --out DIR\n")
}

func (r *results) writeUnavailable(d *document) {
	var rows [][]string
	for _, p := range r.unavailable {
		install := none
		if p.Install != "" {
			install = code(p.Install)
		}
		rows = append(rows, []string{cmp.Or(p.Title, p.Name), string(p.Task), shorten(p.Reason, 300), install})
	}
	if len(rows) > 0 {
		d.printf("\n## Not available\n")
		d.table(4, []string{"contender", "task", "reason", "what would help"}, rows)
	}
}

// shorten cuts a text to a number of characters.
func shorten(s string, most int) string {
	if r := []rune(s); len(r) > most {
		return string(r[:most-3]) + "..."
	}
	return s
}

func (r *results) writeMachine(d *document) {
	d.printf("\n## Machine\n")
	if len(r.machines) == 0 {
		d.printf("\nThe run did not say.\n")
		return
	}
	m := r.machines[0]
	after := "the run has not ended"
	if last := r.machines[len(r.machines)-1]; len(r.machines) > 1 {
		after = last.LoadAfter
	}
	d.table(2, []string{"machine", "at the time of the run"}, [][]string{
		{"time", m.Time.UTC().Format("2006-01-02 15:04 UTC")},
		{"revision", m.Revision},
		{"system", m.System},
		{"CPU", m.CPU},
		{"processors", fmt.Sprint(m.Processors)},
		{"memory", size(float64(m.MemoryMiB) * 1024)},
		{"Go", m.Go},
		{"load average before", m.LoadBefore},
		{"load average after", after},
	})
	for i, other := range r.machines {
		if differ(m, other) {
			d.printf("\nLine %d about the machine is about another one: %s.\n", i+1, line(describe(other)))
		}
	}
}

// differ reports whether two machines differ too much to compare their figures.
func differ(a, b measure.Machine) bool {
	return a.CPU != b.CPU || a.Processors != b.Processors || a.MemoryMiB != b.MemoryMiB || a.System != b.System
}

func describe(m measure.Machine) string {
	return fmt.Sprintf("%s, %d processors (%s), %d MiB, %s, revision %s", m.System, m.Processors, m.CPU, m.MemoryMiB, m.Go, m.Revision)
}
