package extension

import (
	"fmt"
	"slices"
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
}

// DefaultDeadline is how long a durable call may take if its manifest does not say, and MaxDeadline the most that it can say.
const (
	DefaultDeadline = 30 * 24 * time.Hour
	MaxDeadline     = 366 * 24 * time.Hour
)

const exampleDurable = `{"order": true}, or {"order": {"deadline": "72h"}}`

// durable reads which of the tools are durable.
func (r *reader) durable(n *jsonform.Node, tools []string) (all []Durable) {
	for _, m := range r.Members(n, exampleDurable) {
		d := Durable{m.Key, DefaultDeadline}
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
			fields := r.Fields(m.Value, exampleDurable, []string{"deadline"})
			if at := fields["deadline"]; at != nil {
				const example = `a time like "72h" or "90m", from 1s to 8784h`
				text := r.Text(at, example)
				deadline, err := time.ParseDuration(text)
				if r.Err == nil && (err != nil || deadline < time.Second || deadline > MaxDeadline) {
					r.Fail(at, example, "%s is no such time", jsonform.Quote(text))
				}
				d.Deadline = deadline
			}
		}
		all = append(all, d)
		r.Next()
	}
	slices.SortFunc(all, func(a, b Durable) int { return strings.Compare(a.Tool, b.Tool) })
	return all
}

// MarshalJSON implements json.Marshaler with the value that the tool has in a manifest.
func (d Durable) MarshalJSON() ([]byte, error) {
	return capability.JSON(map[string]string{"deadline": d.Deadline.String()}), nil
}

// String says what a person allows with it.
func (d Durable) String() string {
	return fmt.Sprintf("calls of %s may go on for up to %s after their caller has left", d.Tool, deadlineText(d.Deadline))
}

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

// CoversDurable reports whether each call that b lets go on could go on as long with a.
func CoversDurable(a, b []Durable) bool {
	return !slices.ContainsFunc(b, func(d Durable) bool {
		return !slices.ContainsFunc(a, func(c Durable) bool { return c.Tool == d.Tool && c.Deadline >= d.Deadline })
	})
}

// DurableDifference returns how durable tools changed, as [Difference] does for bindings. It is nil if nothing did.
func DurableDifference(before, after []Durable) []Change {
	if slices.Equal(before, after) {
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
		if !slices.Contains(after, d) {
			c.Lines = append(c.Lines, "- "+d.String())
		}
	}
	for _, d := range after {
		if !slices.Contains(before, d) {
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
