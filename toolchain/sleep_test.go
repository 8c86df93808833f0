package toolchain_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/capabilities/clock"
	"github.com/stilehost/stile/host"
)

// leaping is a clock whose waits end at once, with its time moved. The first wait is followed by its time being set back, once.
type leaping struct {
	now, slept time.Duration
	back       time.Duration
}

func (*leaping) Interface() string                  { return clock.Interface }
func (l *leaping) Now(context.Context) uint64       { return uint64(l.now.Milliseconds()) }
func (l *leaping) Monotonic(context.Context) uint64 { return uint64(l.slept) }
func (l *leaping) Subscribe(_ context.Context, nanoseconds uint64) *abi.Pollable {
	d := time.Duration(nanoseconds)
	l.now, l.slept, l.back = l.now+d-l.back, l.slept+d, 0
	return abi.Ready()
}

// TestSleep has a guest sleep for a length of time, or until a date, in every form.
func TestSleep(t *testing.T) {
	t.Parallel()
	_, tools := newToolchain(t, host.Options{})
	c := build(t, tools, tool("", `
		const given = input.date === undefined ? input.until : new Date(input.date);
		try { await env.clock.sleep(given); return "slept"; } catch (e: any) { return e.name + ": " + e.message; }`))
	const day = 24 * time.Hour
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for _, test := range []struct {
		input string
		slept time.Duration
		err   string
	}{
		{`{"until": 1500}`, 1500 * time.Millisecond, ""},
		{`{"until": 0.5}`, 500 * time.Microsecond, ""},
		{`{"until": -5}`, 0, ""},
		{`{"until": "250 ms"}`, 250 * time.Millisecond, ""},
		{`{"until": "90s"}`, 90 * time.Second, ""},
		{`{"until": "1.5 hours"}`, 90 * time.Minute, ""},
		{`{"until": "1 minute"}`, time.Minute, ""},
		{`{"until": "3 days"}`, 3 * day, ""},
		{`{"until": " 2 Weeks "}`, 14 * day, ""},
		{`{"until": "200 w"}`, 1400 * day, ""},
		{`{"until": "2026-01-03T00:00:00Z"}`, 2 * day, ""},
		{`{"until": "2026-01-01T12:00+01:00"}`, 11 * time.Hour, ""},
		{`{"until": "2025-12-31T00:00:00.5-05:00"}`, 0, ""},
		{`{"date": "2026-01-02T00:00:00Z"}`, day, ""},
		{`{"until": "3 dayz"}`, 0, `RangeError: sleep: "3 dayz" is no length of time; write a text like "90 s" or "3 days", or a date like`},
		{`{"until": "-3 days"}`, 0, "RangeError: sleep"},
		{`{"until": "three days"}`, 0, "RangeError: sleep"},
		{`{"until": "1e400 s"}`, 0, "RangeError: sleep"},
		{`{"until": ""}`, 0, "RangeError: sleep"},
		{`{"until": "300 w 1 d"}`, 0, "RangeError: sleep"},
		{`{"until": "9999999 weeks"}`, 0, "RangeError: sleep: 9999999 weeks is more than the 291 years that fit"},
		{`{"until": "2026-01-03T00:00:00"}`, 0, "has no time zone"},
		{`{"until": "2026-01-03"}`, 0, "is no date"},
		{`{"until": "2026-13-45T00:00:00Z"}`, 0, "is no date"},
		{`{"until": "` + strings.Repeat("9", 1<<16) + `"}`, 0, "RangeError: sleep"},
		{`{"date": "nothing"}`, 0, "RangeError: sleep: the date is invalid"},
		{`{"until": null}`, 0, "TypeError: sleep: null is no length of time"},
		{`{"until": {}}`, 0, "TypeError: sleep: object is no length of time"},
		{`{}`, 0, "TypeError: sleep"},
	} {
		l := &leaping{now: time.Duration(start.UnixNano())}
		out, err := c.Call(t.Context(), "t", []byte(test.input), host.Env{"clock": l})
		var text string
		if err == nil {
			err = json.Unmarshal(out, &text)
		}
		if test.err == "" {
			test.err = "slept"
		}
		if err != nil || !strings.Contains(text, test.err) || len(text) > 1000 || l.slept != test.slept {
			t.Errorf("%.100s: it slept %v, and returned %.1000s, %v", test.input, l.slept, text, err)
		}
	}
	l := &leaping{now: time.Duration(start.UnixNano()), back: 3 * day}
	if _, err := c.Call(t.Context(), "t", []byte(`{"until": "2026-01-02T00:00:00Z"}`), host.Env{"clock": l}); err != nil || l.slept != 4*day {
		t.Errorf("with a clock that was set back, it slept %v, %v", l.slept, err)
	}
	if _, err := c.Call(t.Context(), "t", []byte(`{"until": "2027-01-02T00:00:00Z"}`), host.Env{"clock": clock.Fixed(start)}); err != nil {
		t.Error(err)
	}
}
