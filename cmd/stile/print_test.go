package main

import (
	"strings"
	"testing"

	"github.com/stilehost/stile/capability"
	"github.com/stilehost/stile/internal/printable"
)

// TestTableIsPlain has a cell that would write to the terminal, begin a row, or begin a column.
func TestTableIsPlain(t *testing.T) {
	got := table("  ", [][]string{{"a\x1b[2J\u202eb\nc\td\r", "x"}, {"y", "\u200b"}})
	if want := "  a\\x1b[2J\\u202eb\\nc\\td\\x0d   x\n  y                           \\u200b\n"; got != want || printable.Text(got) != got {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestLongNames inspects a component with extremely long names.
func TestLongNames(t *testing.T) {
	long := strings.Repeat("x", 5000)
	i := inspection{
		File: "a.wasm", Sections: map[string]int{"s:" + long: 1, "s:a": 2}, sections: []string{"s:" + long, "s:a"}, Exports: []string{"e:" + long},
		Imports: []importedThing{{Name: "m:" + long, Kind: "module"}},
	}
	text := i.text()
	for line := range strings.Lines(text) {
		if len(line) > 200 {
			t.Errorf("a line of %d bytes: %.50s", len(line), line)
		}
	}
	for _, want := range []string{"s:a", "s:xx", "e:xx", "m:xx"} {
		if !strings.Contains(text, want) {
			t.Errorf("lacks %q", want)
		}
	}
}

// TestFit has a list as wide as the terminal, in visible characters.
func TestFit(t *testing.T) {
	for _, c := range []struct {
		text    string
		columns int
		want    string
	}{
		{"abcdef\n", 0, "abcdef\n"},
		{"abcdef\nab\n", 6, "abcdef\nab\n"},
		{"abcdef\nab\n", 5, "abcd…\nab\n"},
		{"äöüß\n", 3, "äö…\n"},
		{"日本語\n", 5, "日本…\n"},
		{"日本語\n", 4, "日…\n"},
		{"e\u0301e\u0301e\u0301\n", 2, "e\u0301…\n"},
		{"ab\n", 1, "…\n"},
	} {
		if got := fit(c.text, c.columns); got != c.want {
			t.Errorf("%q in %d: got %q, want %q", c.text, c.columns, got, c.want)
		}
	}
}

// A tool's numbers are short on a terminal, whatever it says.
func TestProgressText(t *testing.T) {
	for want, p := range map[string]capability.Progress{
		"3 of 10  reading": {Done: 3, Total: 10, Message: "reading"}, "0.5": {Done: 0.5}, "1e+308 of 1.7e+308": {Done: 1e308, Total: 1.7e308},
	} {
		if got := progressText(p); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}
