package bench

import (
	"bytes"
	"encoding/xml"
	"errors"
	"flag"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write golden files anew")

// written makes a folder as a run leaves it.
func written(t *testing.T, lines []byte) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, linesFile), lines, 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

func reported(t *testing.T, dir string) string {
	t.Helper()
	path, err := Report(dir)
	if err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

func sample(t testing.TB) []byte {
	t.Helper()
	lines, err := os.ReadFile("testdata/run/lines.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	return lines
}

func TestReport(t *testing.T) {
	const golden = "testdata/run/report.md"
	dir := written(t, sample(t))
	got := reported(t, dir)
	if *update {
		if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("the report is not that of %s; go test -update writes it anew:\n%s", golden, got)
	}

	again := written(t, sample(t))
	reported(t, again)
	drawn, err := filepath.Glob(filepath.Join(dir, "*.svg"))
	if err != nil || len(drawn) != 5 {
		t.Fatalf("got the plots %v (%v), want 5", drawn, err)
	}
	for _, file := range drawn {
		if !strings.Contains(got, "]("+filepath.Base(file)+")") {
			t.Errorf("the report does not show %s", file)
		}
		svg, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		second, err := os.ReadFile(filepath.Join(again, filepath.Base(file)))
		if err != nil || !bytes.Equal(svg, second) {
			t.Errorf("%s is not the same for the same lines (%v)", file, err)
		}
		wellFormed(t, svg)
	}
}

func wellFormed(t *testing.T, svg []byte) {
	t.Helper()
	for d := xml.NewDecoder(bytes.NewReader(svg)); ; {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			return
		} else if err != nil {
			t.Fatalf("%v in\n%s", err, svg)
		}
	}
}

func TestDamagedLines(t *testing.T) {
	const (
		machine = `{"machine":{"cpu":"one","processors":2}}` + "\n"
		start   = `{"start":{"contender":"stile","task":"compute","level":"L1","round":0,"result_us":[60,61],"end_us":[70,71],"cpu_us":80}}` + "\n"
	)
	for _, c := range []struct {
		name, lines string
		bad         int // line that cannot be read
		want        []string
	}{
		{"nothing", "", 0, []string{"The run did not say", "not measured"}},
		{"no end", machine + start, 0, []string{"60.5 µs", "the run has not ended"}},
		{"the last line is cut short", machine + start + start[:40], 0, []string{"60.5 µs"}},
		{"a line is cut short", machine + start[:40] + "\n" + start, 2, nil},
		{"not a number", machine + strings.Replace(start, "60", "NaN", 1), 2, nil},
		{"too large", strings.Replace(start, "60", "1e999", 1), 1, nil},
		{"larger than any time", strings.Replace(start, "60", "1e300", 1), 0, []string{"61.0 µs"}},
		{"negative and zero", strings.Replace(start, "60,61", "-1,0", 1), 0, []string{"not measured"}},
		{"another type", `{"start":[]}` + "\n", 1, nil},
		{"no object", "[]\n", 1, nil},
		{"null, and empty lines", "null\n\n{}\n" + start, 0, []string{"60.5 µs"}},
		{"unknown fields", `{"future":{"x":1},"start":null}` + "\n" + strings.Replace(start, `"round"`, `"new":true,"round"`, 1), 0, []string{"60.5 µs"}},
		{"empty rounds", `{"start":{"contender":"stile","task":"compute","level":"L1","result_us":[],"end_us":null}}` + "\n" + start, 0, []string{"60.5 µs"}},
		{"only empty rounds", `{"start":{"contender":"stile","task":"compute","level":"L1"}}` + "\n", 0, []string{"not measured"}},
		{"two machines", machine + start + strings.Replace(machine, "one", "two", 1), 0, []string{"Line 2 about the machine is about another one"}},
		{"a level and a task of their own", strings.NewReplacer("L1", "L9", "compute", "other").Replace(start), 0, []string{"### L9", "Task `other`"}},
		{"one count", `{"memory":{"contender":"stile","live":20,"private_kib":1}}` + "\n", 0, []string{"| stile | - | - | - | - | - | - |"}},
		{"no isolates", `{"memory":{"contender":"stile","live":0,"private_kib":1}}` + "\n", 0, []string{"not measured"}},
		{"a table in a cell", `{"contender":{"name":"x","reason":"a|b\nc<script>","install":"` + "`" + `"}}` + "\n", 0, []string{`| x | - | a\|b c&lt;script> | ` + "`'`" + ` |`}},
		{"a command in a name", strings.Replace(start, "stile", "a; rm -r b", 1) + `{"contender":{"name":"a; rm -r b"}}` + "\n", 0, []string{"--only start --out DIR"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := written(t, []byte(c.lines))
			if c.bad > 0 {
				var bad *LineError
				if _, err := Report(dir); !errors.As(err, &bad) || bad.Line != c.bad {
					t.Fatalf("got %v, want an error of line %d", err, c.bad)
				}
				return
			}
			got := reported(t, dir)
			for _, want := range c.want {
				if !strings.Contains(got, want) {
					t.Errorf("there is no %q in\n%s", want, got)
				}
			}
			if strings.Contains(got, "NaN") || strings.Contains(got, "Inf") {
				t.Errorf("a figure is none:\n%s", got)
			}
		})
	}
}

func TestTargets(t *testing.T) {
	got := reported(t, written(t, sample(t)))
	for what, want := range map[string]string{
		"against crun + node |":   "met",
		"against docker run":      "not measured: docker is not installed",
		"against gVisor":          "not measured |",
		"(L0), built":             "MISSED",
		"against the C floor":     "met",
		"from start to end":       "met",
		"by two callers":          "met",
		"100,000 stored":          "met",
		"memory of 10,000 live":   "met",
		"memory of a live isolat": "met",
	} {
		_, row, found := strings.Cut(got[strings.Index(got, "## Targets"):], what)
		row, _, _ = strings.Cut(row, "\n")
		if !found || !strings.Contains(row, want) {
			t.Errorf("the target %q is not %q: %s", what, want, row)
		}
	}
}

func FuzzReport(f *testing.F) {
	f.Add(sample(f))
	for l := range bytes.Lines(sample(f)) {
		f.Add(l)
	}
	f.Add([]byte(`{"cost":{"what":"a","x":1e14,"call_us":{"median":1e-8}}}` + "\n" + `{"cost":{"what":"a","x":1,"call_us":{"median":1e14}}}`))
	f.Add([]byte(`{"throughput":{"contender":"a","callers":1,"per_second":1e-8}}`))
	f.Fuzz(func(t *testing.T, lines []byte) {
		dir := written(t, lines)
		var bad *LineError
		if _, err := Report(dir); err != nil && !errors.As(err, &bad) {
			t.Fatal(err)
		}
		if c, err := Compare(dir, dir); err == nil {
			if text := c.String(); !strings.HasPrefix(text, "0 of ") {
				t.Errorf("a run is not like itself: %s", text)
			}
		}
	})
}

func TestDigits(t *testing.T) {
	for v, want := range map[float64]string{
		0: "0", 0.0364: "0.036", 0.5: "0.50", 9.994: "9.99", 9.996: "10.0", 99.96: "100", 612.4: "612", 999.4: "999", 999.6: "1,000", 1234: "1,230", 1_234_567: "1,230,000", -70.06: "-70.1",
	} {
		if got := digits(v); got != want {
			t.Errorf("%v is %q, want %q", v, got, want)
		}
	}
}
