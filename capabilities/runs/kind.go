package runs

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/capabilities/tools"
	"github.com/stilehost/stile/capability"
	"github.com/stilehost/stile/capability/double"
	"github.com/stilehost/stile/internal/jsonform"
)

// says is what every binding of the kind may do.
const says = "may, in durable calls, keep some data for a later attempt, stay awake, and take some time to clean up once you cancel it"

// Kind is what a durable call can say about itself, and the right to start runs.
var Kind = newKind()

func newKind() *capability.Switched {
	k := capability.NewSwitch(capability.Switched{
		Kind:      capability.Kind{Name: "runs", Interface: Interface, Example: "true"},
		Says:      says,
		New:       func(*capability.Site) abi.Capability { return new(Control) },
		NewDouble: newDouble,
	})
	on := k.Parse
	k.Parse = func(r *jsonform.Reader, n *jsonform.Node) capability.Grant {
		if n.Value == true {
			return on(r, n)
		}
		fields := r.Fields(n, exampleStarts, []string{"start"}, "start")
		g := Starts{of: &k.Kind}
		if at := fields["start"]; at != nil {
			g.calls = tools.ParseCalls(r, at)
		}
		return g
	}
	return k
}

// exampleStarts is what problems of a manifest show.
const exampleStarts = `{ "start": ["orders_*"] }`

// Starts are rights to start tools of other extensions as runs, which a manifest names, beside what every binding of the kind may do. They are a [capability.ToolCaller]: the
// program that keeps the extensions opens them.
type Starts struct {
	of    *capability.Kind
	calls tools.Calls
}

var _ capability.ToolCaller = Starts{}

// Named returns the rights without what their patterns mean.
func (g Starts) Named() Starts {
	g.calls = tools.Calls{Patterns: g.calls.Patterns}
	return g
}

// Names implements [capability.ToolCaller].
func (g Starts) Names(tool string) bool { return g.calls.Names(tool) }

// Unmatched implements [capability.ToolCaller].
func (g Starts) Unmatched(tools []string) []string { return g.calls.Unmatched(tools) }

// Unnamed implements [capability.ToolCaller].
func (g Starts) Unnamed(name string) error {
	err := g.calls.Unnamed(name)
	if e, ok := errors.AsType[*abi.Error](err); ok && e.Denial != nil {
		e.Denial.Operation = "start " + e.Denial.Operation[len("call "):]
		if wanted, ok := e.Denial.Wants.(capability.Wanted); ok {
			g.calls = wanted.Grant.(tools.Calls)
			e.Denial.Wants = capability.Wanted{Grant: g}
		}
	}
	return err
}

// Callees implements [capability.ToolCaller].
func (g Starts) Callees() []capability.Callee { return g.calls.Callees() }

// WithCallees implements [capability.ToolCaller].
func (g Starts) WithCallees(callees []capability.Callee) capability.ToolCaller {
	g.calls = g.calls.WithCallees(callees).(tools.Calls)
	return g
}

// Kind implements [capability.Grant].
func (g Starts) Kind() *capability.Kind { return g.of }

// Interface implements [capability.Grant].
func (Starts) Interface() string { return Interface }

// Document implements [capability.Grant].
func (g Starts) Document() any { return map[string]any{"start": g.calls.Document()} }

// Describe implements [capability.Grant].
func (g Starts) Describe() []string {
	return append([]string{says}, g.calls.DescribeAs("start runs of the tools", "start runs of")...)
}

// Authority implements [capability.Grant].
func (g Starts) Authority() []string {
	lines := []string{"runs"}
	for _, line := range g.calls.Authority() {
		lines = append(lines, "start "+line)
	}
	return lines
}

// Covers implements [capability.Grant].
func (g Starts) Covers(asked capability.Grant) bool {
	if a, ok := asked.(Starts); ok {
		return g.calls.Covers(a.calls)
	}
	return asked == capability.Grant(Kind.On())
}

// Size implements [capability.Sizer].
func (g Starts) Size() (rules, work int) { return g.calls.Size() }

// Reach implements [capability.Reacher].
func (g Starts) Reach() (changes, open bool) {
	_, open = g.calls.Reach()
	return true, open
}

// Double implements [double.Doubler].
func (g Starts) Double(_ context.Context, t *double.Test, answers json.RawMessage) (abi.Capability, error) {
	return scriptedWith(t, answers, &g)
}

// wanting is what a binding without patterns is told that would start a tool.
func wanting(name string) error {
	return Starts{of: &Kind.Kind}.Unnamed(name)
}
