package console

import (
	"fmt"
	"math"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/capabilities/internal/captest"
	"github.com/stilehost/stile/wit"
)

var _ abi.Opener = (*Console)(nil)

// record returns a console with a limit, and the lines that it has logged.
func record(limit int) (*Console, func() []string) {
	var mu sync.Mutex
	var lines []string
	c := To(func(l Level, m string) {
		mu.Lock()
		defer mu.Unlock()
		lines = append(lines, fmt.Sprintf("%v: %s", l, m))
	})
	return c.WithLimit(limit), func() []string {
		mu.Lock()
		defer mu.Unlock()
		return lines
	}
}

func open(t *testing.T, c *Console) *Log {
	t.Helper()
	v, err := c.Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return v.(*Log)
}

func TestMatchesWIT(t *testing.T) {
	captest.Implements(t, wit.Capability(), Interface, nil, reflect.TypeFor[*Log]())
}

func TestLog(t *testing.T) {
	tests := []struct {
		name     string
		limit    int
		messages []string
		want     []string
	}{
		{"plain", 100, []string{"hello", "a\nb\tc"}, []string{"info: hello", "info: a\nb\tc"}},
		{"terminal escapes", 100, []string{"\x1b[2J\u202eok\rno"}, []string{`info: \x1b[2J\u202eok\x0dno`}},
		{"exactly the limit", 6, []string{"hello"}, []string{"info: hello"}},
		{"cut", 4, []string{"hello"}, []string{"info: hell", "warn: log limit of 4 bytes reached: 1 bytes were dropped"}},
		{
			"later messages", 6,
			[]string{"hello", "", "more"},
			[]string{"info: hello", "warn: log limit of 6 bytes reached: 6 bytes were dropped"},
		},
		{"cut between characters", 3, []string{"éé"}, []string{"info: é", "warn: log limit of 3 bytes reached: 2 bytes were dropped"}},
		{"escapes count as written", 4, []string{"\x1b\x1b"}, []string{`info: \x1b`, "warn: log limit of 4 bytes reached: 4 bytes were dropped"}},
		{"no limit left at all", 0, []string{"a"}, []string{"warn: log limit of 0 bytes reached: 2 bytes were dropped"}},
		{"negative limit", -5, []string{"a"}, []string{"warn: log limit of -5 bytes reached: 2 bytes were dropped"}},
		{"continuation bytes only", 8, []string{strings.Repeat("\x80", 100)}, []string{`info: \x80\x80`, "warn: log limit of 8 bytes reached: 116 bytes were dropped"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c, lines := record(tt.limit)
			l := open(t, c)
			for _, m := range tt.messages {
				l.Log(t.Context(), Info, m)
			}
			if err := l.Close(); err != nil {
				t.Fatal(err)
			}
			if got := lines(); strings.Join(got, "|") != strings.Join(tt.want, "|") {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

func TestLimitIsPerCall(t *testing.T) {
	c, lines := record(5)
	for range 2 {
		l := open(t, c)
		l.Log(t.Context(), Error, "full")
		_ = l.Close()
		_ = l.Close()
		l.Log(t.Context(), Error, "late")
	}
	if got := lines(); len(got) != 2 {
		t.Errorf("got %q", got)
	}
}

func TestFloodIsBounded(t *testing.T) {
	c, lines := record(DefaultLimit)
	l := open(t, c)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 100_000 {
				l.Log(t.Context(), Debug, "")
			}
			l.Log(t.Context(), Debug, strings.Repeat("x", 64<<20))
		})
	}
	wg.Wait()
	_ = l.Close()
	if n := len(lines()); n != DefaultLimit+1 {
		t.Errorf("%d lines, want %d and the one that says so", n, DefaultLimit)
	}
}

func TestLevelNames(t *testing.T) {
	want := []string{"trace", "debug", "info", "warn", "error", "level(5)"}
	for i, w := range want {
		if got := Level(i).String(); got != w {
			t.Errorf("%d: %q, want %q", i, got, w)
		}
	}
}

// TestProgressFloods reports progress a million times, with text that would act on a terminal and numbers that are none.
func TestProgressFloods(t *testing.T) {
	var got []Progress
	l := open(t, To(func(Level, string) {}).WithProgress(func(p Progress) { got = append(got, p) }))
	total, none := 1e6, math.NaN()
	for _, done := range []float64{math.NaN(), math.Inf(1), -1} {
		l.Progress(t.Context(), done, &total, "no number")
	}
	began := time.Now()
	for i := range 1_000_000 {
		l.Progress(t.Context(), float64(i), &total, "\x1b[2J\n"+strings.Repeat("x", 1000))
	}
	most := int(time.Since(began)/progressPause) + 1
	if len(got) == 0 || len(got) > most || got[0].Done != 0 || got[0].Total != total || len(got[0].Message) > 2*maxProgressText || strings.ContainsAny(got[0].Message, "\x1b\n") {
		t.Errorf("%d of at most %d updates, %+v", len(got), most, got)
	}
	open(t, To(func(Level, string) {})).Progress(t.Context(), 1, nil, "nobody is told")
	other := open(t, To(func(Level, string) {}).WithProgress(func(p Progress) { got = []Progress{p} }))
	other.Progress(t.Context(), 2, &none, "")
	if len(got) != 1 || got[0].Total != 0 {
		t.Errorf("a total that is no number: %v", got)
	}
	if err := other.Close(); err != nil {
		t.Fatal(err)
	}
	got = nil
	other.Progress(t.Context(), 3, nil, "late")
	if got != nil {
		t.Error("a log that is closed tells")
	}
}

// TestReopen has a call go on in another process: it has what was left of its limit.
func TestReopen(t *testing.T) {
	c, lines := record(10)
	first := open(t, c)
	first.Log(t.Context(), Info, "12345")
	state, ok := first.Save()
	if !ok {
		t.Fatal("it cannot be saved")
	}
	again, err := c.Reopen(t.Context(), state)
	if err != nil {
		t.Fatal(err)
	}
	again.(*Log).Log(t.Context(), Info, "6789012")
	if got := lines(); len(got) < 2 || got[1] != "info: 6789" {
		t.Errorf("got %q", got)
	}
	if _, err := c.Reopen(t.Context(), []byte("x")); err == nil {
		t.Error("a state that nobody saved was read")
	}
}
