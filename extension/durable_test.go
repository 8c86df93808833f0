package extension

import (
	"reflect"
	"strings"
	"testing"
	"time"
)

// TestDurable reads durable tools, writes them in the canonical form, and compares what they allow.
func TestDurable(t *testing.T) {
	read := func(durable string) *Manifest {
		t.Helper()
		m, err := Parse([]byte(`{"name": "a", "version": "1.0.0", "description": "d", "tools": ["x", "y"], "durable": {` + durable + `}}`))
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	m := read(`"y": {"retry": {"attempts": 2}}, "x": {"deadline": "72h", "retry": {"attempts": 5, "first": "1s", "factor": 1.5, "longest": "1h", "outcomes": ["interrupted", "failed"]}}`)
	retry := Retry{5, time.Second, 1.5, time.Hour, []string{"failed", "interrupted"}}
	want := []Durable{{"x", 72 * time.Hour, retry}, {"y", DefaultDeadline, Retry{Attempts: 2}}}
	if !reflect.DeepEqual(m.Durable, want) {
		t.Errorf("got %+v", m.Durable)
	}
	if again, err := Parse(m.Canonical()); err != nil || !reflect.DeepEqual(again.Durable, want) {
		t.Errorf("%s: got %+v, %v", m.Canonical(), again, err)
	}
	for _, c := range []struct {
		before, after string
		what          What
		lines         string
	}{
		{``, ``, "", ""},
		{`"x": true`, `"x": {"deadline": "720h"}`, "", ""},
		{``, `"x": true`, Added, "+ calls of x may go on for up to 30 days after their caller has left"},
		{`"x": true`, ``, Removed, "- calls of x may go on for up to 30 days after their caller has left"},
		{`"x": {"deadline": "1h"}`, `"x": true`, Widened, "- calls of x may go on for up to 1h0m0s after their caller has left\n+ calls of x may go on for up to 30 days after their caller has left"},
		{`"x": true, "y": true`, `"y": true`, Narrowed, "- calls of x may go on for up to 30 days after their caller has left"},
		{
			`"x": true`, `"x": {"retry": {"attempts": 3}}`, Widened,
			"- calls of x may go on for up to 30 days after their caller has left\n+ calls of x may go on for up to 30 days after their caller has left, in up to 3 attempts: another follows on failed",
		},
		{
			`"x": {"retry": {"attempts": 3, "outcomes": ["failed", "limit"]}}`, `"x": {"retry": {"attempts": 2}}`, Narrowed,
			"- calls of x may go on for up to 30 days after their caller has left, in up to 3 attempts: another follows on failed, limit\n+ calls of x may go on for up to 30 days after their caller has left, in up to 2 attempts: another follows on failed",
		},
		{`"x": true`, `"y": true`, Changed, "- calls of x may go on for up to 30 days after their caller has left\n+ calls of y may go on for up to 30 days after their caller has left"},
	} {
		changes := DurableDifference(read(c.before).Durable, read(c.after).Durable)
		switch {
		case c.what == "" && changes == nil:
		case len(changes) != 1 || changes[0].What != c.what || strings.Join(changes[0].Lines, "\n") != c.lines:
			t.Errorf("%s to %s: got %+v", c.before, c.after, changes)
		}
	}
}
