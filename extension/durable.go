package extension

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/stilehost/stile/capability"
	"github.com/stilehost/stile/internal/jsonform"
)

// Durable is a tool whose calls are durable: they go on after their caller has left, and in another process.
type Durable struct {
	Tool string
	// Deadline is how long a call may take, time asleep included.
	Deadline time.Duration
	// Retry says whether a call that fails begins again.
	Retry Retry
}

// Retry says when a durable call that failed begins again, as durable.Retry does, which has the same fields. The zero value is one attempt.
type Retry struct {
	Attempts int
	Delay    time.Duration
	Factor   float64
	Maximum  time.Duration
	On       []string
}

// DefaultDeadline is how long a durable call may take if its manifest does not say, and MaxDeadline the most that it can say.
const (
	DefaultDeadline = 30 * 24 * time.Hour
	MaxDeadline     = 366 * 24 * time.Hour
)

const exampleDurable = `{"order": true}, or {"order": {"deadline": "72h"}}`

const (
	exampleRetry = `{"attempts": 5, "first": "1s", "factor": 2, "longest": "1h", "outcomes": ["failed"]}; only attempts is needed`
	maxDelay     = 30 * 24 * time.Hour
)

// retryOutcomes are those that can be retried.
var retryOutcomes = []string{"failed", "interrupted", "limit", "trap"}

// durable reads which of the tools are durable.
func (r *reader) durable(n *jsonform.Node, tools []string) (all []Durable) {
	for _, m := range r.Members(n, exampleDurable) {
		d := Durable{Tool: m.Key, Deadline: DefaultDeadline}
		if tools != nil && !slices.Contains(tools, m.Key) {
			r.FailAt(m.Offset, m.Value.Path(), "one of "+strings.Join(tools, ", "), "there is no tool %s", jsonform.Quote(m.Key))
			r.Next()
		}
		switch v := m.Value.Value.(type) {
		case bool:
			if !v {
				r.Fail(m.Value, exampleDurable+"; leave out a tool that is not durable", "false says nothing")
			}
		default:
			fields := r.Fields(m.Value, exampleDurable, []string{"deadline", "retry"})
			if at := fields["deadline"]; at != nil {
				d.Deadline = r.length(at, `a time like "72h" or "90m", from 1s to 8784h`, time.Second, MaxDeadline)
			}
			if at := fields["retry"]; at != nil {
				d.Retry = r.retry(at)
			}
		}
		all = append(all, d)
		r.Next()
	}
	slices.SortFunc(all, func(a, b Durable) int { return strings.Compare(a.Tool, b.Tool) })
	return all
}

// length reads a length of time.
func (r *reader) length(n *jsonform.Node, example string, least, most time.Duration) time.Duration {
	text := r.Text(n, example)
	length, err := time.ParseDuration(text)
	if r.Err == nil && (err != nil || length < least || length > most) {
		r.Fail(n, example, "%s is no such time", jsonform.Quote(text))
	}
	return length
}

// retry reads when a call begins again.
func (r *reader) retry(n *jsonform.Node) (p Retry) {
	fields := r.Fields(n, exampleRetry, []string{"attempts", "first", "factor", "longest", "outcomes"}, "attempts")
	if at := fields["attempts"]; at != nil {
		const example = "how many attempts there are in all: a whole number from 2 to 100"
		number, _ := at.Value.(json.Number)
		var err error
		if p.Attempts, err = strconv.Atoi(string(number)); r.Err == nil && (err != nil || p.Attempts < 2 || p.Attempts > 100) {
			r.Fail(at, example, "this is no such number")
		}
	}
	if at := fields["first"]; at != nil {
		p.Delay = r.length(at, `the time before the second attempt, like "1s" or "5m", at most 720h`, time.Millisecond, maxDelay)
	}
	if at := fields["factor"]; at != nil {
		const example = "how many times longer each further delay is: a number from 1 to 100"
		number, _ := at.Value.(json.Number)
		var err error
		if p.Factor, err = number.Float64(); r.Err == nil && (err != nil || p.Factor < 1 || p.Factor > 100) {
			r.Fail(at, example, "this is no such number")
		}
	}
	if at := fields["longest"]; at != nil {
		p.Maximum = r.length(at, `the longest delay, like "1h", at most 720h`, time.Millisecond, maxDelay)
	}
	if at := fields["outcomes"]; at != nil {
		example := "some of " + strings.Join(retryOutcomes, ", ")
		for _, item := range r.Items(at, len(retryOutcomes), example) {
			outcome := r.Text(item, example)
			switch {
			case r.Err != nil:
			case !slices.Contains(retryOutcomes, outcome):
				r.Fail(item, example, "%s is not retried", jsonform.Quote(outcome))
			case slices.Contains(p.On, outcome):
				r.Fail(item, example, "%s is there twice", jsonform.Quote(outcome))
			}
			p.On = append(p.On, outcome)
		}
		slices.Sort(p.On)
	}
	return p
}

// MarshalJSON implements json.Marshaler with the value that the tool has in a manifest.
func (d Durable) MarshalJSON() ([]byte, error) {
	type retry struct {
		Attempts int      `json:"attempts"`
		First    string   `json:"first,omitempty"`
		Factor   float64  `json:"factor,omitempty"`
		Longest  string   `json:"longest,omitempty"`
		Outcomes []string `json:"outcomes,omitempty"`
	}
	fields := struct {
		Deadline string `json:"deadline"`
		Retry    *retry `json:"retry,omitempty"`
	}{Deadline: d.Deadline.String()}
	if p := d.Retry; p.Attempts > 1 {
		fields.Retry = &retry{Attempts: p.Attempts, Factor: p.Factor, Outcomes: p.On}
		if p.Delay > 0 {
			fields.Retry.First = p.Delay.String()
		}
		if p.Maximum > 0 {
			fields.Retry.Longest = p.Maximum.String()
		}
	}
	return capability.JSON(fields), nil
}

// String says what a person allows with it.
func (d Durable) String() string {
	text := fmt.Sprintf("calls of %s may go on for up to %s after their caller has left", d.Tool, deadlineText(d.Deadline))
	if d.Retry.Attempts > 1 {
		text += fmt.Sprintf(", in up to %d attempts: another follows on %s", d.Retry.Attempts, strings.Join(d.Retry.on(), ", "))
	}
	return text
}

// on are the outcomes that are retried.
func (r Retry) on() []string {
	if len(r.On) == 0 {
		return []string{"failed"}
	}
	return r.On
}

// covers reports whether each attempt that b makes could be made with r.
func (r Retry) covers(b Retry) bool {
	return b.Attempts <= 1 || r.Attempts >= b.Attempts && !slices.ContainsFunc(b.on(), func(o string) bool { return !slices.Contains(r.on(), o) })
}

func (d Durable) equal(b Durable) bool { return reflect.DeepEqual(d, b) }

func deadlineText(d time.Duration) string {
	const day = 24 * time.Hour
	if d >= 2*day && d%day == 0 {
		return fmt.Sprintf("%d days", d/day)
	}
	return d.String()
}

// DurableTool returns what the manifest says of a tool whose calls are durable.
func (m *Manifest) DurableTool(tool string) (Durable, bool) {
	at := slices.IndexFunc(m.Durable, func(d Durable) bool { return d.Tool == tool })
	if at < 0 {
		return Durable{}, false
	}
	return m.Durable[at], true
}

// CoversDurable reports whether each call that b lets go on could go on as long, and begin again as often, with a.
func CoversDurable(a, b []Durable) bool {
	return !slices.ContainsFunc(b, func(d Durable) bool {
		return !slices.ContainsFunc(a, func(c Durable) bool { return c.Tool == d.Tool && c.Deadline >= d.Deadline && c.Retry.covers(d.Retry) })
	})
}

// DurableDifference returns how durable tools changed, as [Difference] does for bindings. It is nil if nothing did.
func DurableDifference(before, after []Durable) []Change {
	if slices.EqualFunc(before, after, Durable.equal) {
		return nil
	}
	c := Change{Binding: "durable", What: Changed}
	switch wider, narrower := CoversDurable(after, before), CoversDurable(before, after); {
	case len(before) == 0:
		c.What = Added
	case len(after) == 0:
		c.What = Removed
	case wider:
		c.What = Widened
	case narrower:
		c.What = Narrowed
	}
	for _, d := range before {
		if !slices.ContainsFunc(after, d.equal) {
			c.Lines = append(c.Lines, "- "+d.String())
		}
	}
	for _, d := range after {
		if !slices.ContainsFunc(before, d.equal) {
			c.Lines = append(c.Lines, "+ "+d.String())
		}
	}
	c.Before, c.After = durableDocument(before), durableDocument(after)
	return []Change{c}
}

func durableDocument(all []Durable) []byte {
	if len(all) == 0 {
		return nil
	}
	return capability.JSON(durableFields(all))
}

func durableFields(all []Durable) map[string]Durable {
	if len(all) == 0 {
		return nil
	}
	fields := make(map[string]Durable, len(all))
	for _, d := range all {
		fields[d.Tool] = d
	}
	return fields
}
