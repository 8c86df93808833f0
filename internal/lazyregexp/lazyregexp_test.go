package lazyregexp

import (
	"runtime"
	"strings"
	"testing"
)

func TestNew(t *testing.T) {
	if !New(`^a+$`).MatchString("aaa") {
		t.Error("^a+$ does not match aaa")
	}
	defer func() {
		if recover() == nil {
			t.Error("in a test, a wrong expression is found when it is declared")
		}
	}()
	New(`(`)
}

// TestParse parses usual expressions, the worst that are allowed, which take little memory, and worse ones, which take none.
func TestParse(t *testing.T) {
	for name, c := range map[string]struct {
		text    string
		refused bool
	}{
		"usual":              {`(?i)^[a-zà-öø-ÿ0-9._%+-]+@(?:[\p{L}\p{N}-]+\.)+\pL{2,}$`, false},
		"no flag":            {strings.Repeat(`(?:[A-\x{1e942}]i)`, 100), false},
		"another flag":       {`(?s)` + strings.Repeat(`[A-\x{1e942}]`, 20) + `(?P<i>a)`, false},
		"Unicode":            {strings.Repeat(`\pL`, 400), false},
		"Unicode in a class": {"[" + strings.Repeat(`\PL`, MaxWork) + "]", false},
		"ignoring case":      {"(?i)" + strings.Repeat(`[A-\x{1e942}]`, MaxWork/50), false},
		"too much Unicode":   {strings.Repeat(`\pL`, 10_000), true}, "too much in a class": {"[" + strings.Repeat(`\PL`, 10_000) + "]", true},
		"too much ignoring case": {"(?i)" + strings.Repeat(`[A-\x{1e942}]`, MaxWork/50+1), true}, "the same later": {"a(?mi:[" + strings.Repeat("A-\U0001e942", MaxWork/50+1) + "])", true},
		"the same after a name": {"(?P<a>a)(?-si)(?i)" + strings.Repeat(`[^A-\x{1e942}]`, MaxWork/50+1), true},
		"too large":             {strings.Repeat("(?:a{100}){100}", 2), true}, "wrong": {"(", true},
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, _, err := Parse(c.text, 5000)
		runtime.ReadMemStats(&after)
		if (err != nil) != c.refused {
			t.Errorf("%s: %v", name, err)
		}
		if made := after.TotalAlloc - before.TotalAlloc; made > 16<<20 || strings.HasPrefix(name, "too much") && made > 64<<10 {
			t.Errorf("%s: %d bytes", name, made)
		}
	}
}
