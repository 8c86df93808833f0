package trial

import (
	"encoding/json"
	"math/big"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stilehost/stile/internal/printable"
)

func TestCompare(t *testing.T) {
	long := strings.Repeat("x", 1<<20)
	deep := strings.Repeat(`[`, 9000) + `1` + strings.Repeat(`]`, 9000)
	for _, c := range []struct{ expected, came, want string }{
		{`1`, `1.0`, ""},
		{`1e2`, ` 100 `, ""},
		{`-0`, `0.0e7`, ""},
		{`0.00120`, `12E-4`, ""},
		{`1`, `-1`, `result: expected 1, got -1`},
		{`9007199254740993`, `9007199254740992`, `result: expected 9007199254740993, got 9007199254740992`},
		{`1e999999999999999999`, `1e999999999999999999`, ""},
		{`1e999999999999999999`, `10e999999999999999999`, `result: expected 1e999999999999999999, got 10e999999999999999999`},
		{`1e` + strings.Repeat("7", 1<<20), `1e` + strings.Repeat("7", 1<<20), ""},
		{`[1,5]`, `[1,1e` + strings.Repeat("7", 16<<20) + `]`, `result[1]: expected 5, got 1e` + strings.Repeat("7", 198) + `...`}, // minutes, if it were read
		{`1`, `"1"`, `result: expected 1, got "1"`},
		{`null`, `false`, `result: expected null, got false`},
		{`{}`, `[]`, `result: expected {}, got []`},
		{`{"a":1,"b":[true,{"c":"<é>"}]}`, `{"b":[true,{"c":"<\u00e9>"}],"a":1}`, ""},
		{`{"a":null}`, `{}`, `result.a: expected null, got nothing`},
		{`{}`, `{"a b":null}`, `result["a b"]: expected nothing, got null`},
		{`[1,2]`, `[1,2,3]`, `result[2]: expected nothing, got 3`},
		{`[1,{"n":[2]}]`, `[1,{"n":[]}]`, `result[1].n[0]: expected 2, got nothing`},
		{`{"items":[{"n":1},{"n":2}],"z":1}`, `{"items":[{"n":1},{"n":3}],"z":2}`, `result.items[1].n: expected 2, got 3`},
		{`"a"`, `"\u202eb\u001b[31m"`, `result: expected "a", got "\u202eb\u001b[31m"`},
		{`"` + long + `"`, `"y"`, `result: expected "` + strings.Repeat("x", 199) + `..., got "y"`},
		{`{"` + long + `":1}`, `{}`, `result["` + strings.Repeat("x", 80) + `..."]: expected 1, got nothing`},
		{deep, strings.Replace(deep, "1", "2", 1), `result` + strings.Repeat("[0]", 99) + `...: expected 1, got 2`},
	} {
		d, err := compare([]byte(c.expected), []byte(c.came))
		got := ""
		if d != nil {
			got = d.String()
		}
		if err != nil || got != c.want {
			t.Errorf("%.100s and %.100s: got %.500s, %v\nwant %s", c.expected, c.came, got, err, c.want)
		}
	}
	for _, text := range []string{``, `{`, `1 2`, `{"a":1}]`} {
		if _, err := compare([]byte(text), []byte(`1`)); err == nil {
			t.Errorf("%q is JSON", text)
		}
	}
}

// FuzzCompare compares any two values both ways, and the first with itself; what it says of them is one short line.
func FuzzCompare(f *testing.F) {
	for _, s := range []string{`1`, `1e400`, `-0.0`, `{"a":[1,"\u202e"]}`, `[[null]]`} {
		f.Add(s, `{"a":[1,2]}`)
	}
	f.Fuzz(func(t *testing.T, a, b string) {
		if d, err := compare([]byte(a), []byte(a)); err == nil && d != nil {
			t.Fatalf("%q is not itself: %s", a, d)
		}
		d, err := compare([]byte(a), []byte(b))
		back, _ := compare([]byte(b), []byte(a))
		if err != nil {
			return
		}
		if (d == nil) != (back == nil) {
			t.Fatalf("%q and %q: %v, and the other way round %v", a, b, d, back)
		}
		if d != nil {
			text := d.String()
			if len(text) > 5000 || !utf8.ValidString(text) || strings.Contains(text, "\n") || printable.Text(text) != text {
				t.Fatalf("%q", text)
			}
		}
	})
}

// FuzzNumbers compares numbers as rational numbers are compared, where those are not too large to be written.
func FuzzNumbers(f *testing.F) {
	f.Add(`1`, `1.0`)
	f.Add(`-12.50e-3`, `-0.0125`)
	f.Add(`0e5`, `-0`)
	f.Fuzz(func(t *testing.T, a, b string) {
		for _, s := range []string{a, b} {
			_, power, _ := strings.Cut(strings.ToLower(s), "e")
			if !json.Valid([]byte(s)) || strings.Trim(s, "-+.eE0123456789") != "" || len(power) > 4 {
				t.Skip()
			}
		}
		x, okX := new(big.Rat).SetString(a)
		y, okY := new(big.Rat).SetString(b)
		if !okX || !okY {
			t.Skip()
		}
		if got, want := sameNumber(a, b), x.Cmp(y) == 0; got != want {
			t.Fatalf("%s and %s: got %t", a, b, got)
		}
	})
}
