package trial

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/capability/double"
	"github.com/stilehost/stile/extension"
	"github.com/stilehost/stile/host"
	"github.com/stilehost/stile/internal/printable"
)

// maxLines is how many log lines a test keeps.
const maxLines = 500

// environment makes the bindings of one test and records what happens to them. Its capabilities are used only while the test runs.
type environment struct {
	clock  *double.Clock
	stores *double.Stores

	mu      sync.Mutex
	log     []string
	missing []missing
}

func newEnvironment() *environment {
	return &environment{clock: double.NewClock(), stores: &double.Stores{
		Folder: func() (string, error) { return os.MkdirTemp("", "stile-trial-") },
		Remove: os.RemoveAll,
	}}
}

// missing is an answer that the tool asked for and the test does not have.
type missing struct{ binding, what, line string }

// test is the test as the double of a binding sees it. at is the path to the test, e.g. `tests[0]`.
func (e *environment) test(at, binding string) *double.Test {
	return &double.Test{
		Path: at + ".env." + binding, Binding: binding, Clock: e.clock, Log: e.line, Missing: e.unanswered, Stores: e.stores,
	}
}

// unanswered notes a request of the tool for which the test has no answer.
func (e *environment) unanswered(binding, what, line string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if m := (missing{binding, what, line}); len(e.missing) < double.MaxAnswers && !slices.Contains(e.missing, m) {
		e.missing = append(e.missing, m)
	}
}

// bind makes the env of a test. An error is a *double.MistakeError, which the author made, or a fault of the host.
func (e *environment) bind(ctx context.Context, at string, bindings []extension.Binding, answers map[string]json.RawMessage) (host.Env, error) {
	env := make(host.Env, len(bindings))
	names := make([]string, len(bindings))
	for i, b := range bindings {
		names[i] = b.Name
		var err error
		if env[b.Name], err = e.capability(ctx, e.test(at, b.Name), b, answers[b.Name]); err != nil {
			return nil, err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(answers)) {
		if !slices.Contains(names, name) {
			return nil, &double.MistakeError{
				Text: fmt.Sprintf("%s.env[%s]: the extension has no binding of that name", at, double.Quoted(name)),
				Fix:  "one of the bindings: " + strings.Join(names, ", "),
			}
		}
	}
	return env, nil
}

// capability makes one binding. answers are the test's answers for it, or nil.
func (e *environment) capability(ctx context.Context, t *double.Test, b extension.Binding, answers json.RawMessage) (abi.Capability, error) {
	if answers == nil && !b.Harmless() {
		return unstubbed{e, b}, nil
	}
	g, ok := b.Grant.(double.Doubler)
	if !ok {
		return nil, t.Wrong(": a test cannot give answers for "+printable.Short(b.Grant.Interface(), maxValue)+" yet", "a test of what does not need it")
	}
	return g.Double(ctx, t, answers)
}

// line keeps what the tool logs.
func (e *environment) line(text string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.log) < maxLines {
		e.log = append(e.log, text)
	}
}

// unstubbed is a binding for which the test has no answers. It denies every use.
type unstubbed struct {
	e       *environment
	binding extension.Binding
}

// Interface implements [abi.Capability].
func (u unstubbed) Interface() string { return u.binding.Grant.Interface() }

// Open implements [abi.Opener].
func (u unstubbed) Open(context.Context) (any, error) {
	name := u.binding.Name
	u.e.unanswered(name, "the binding "+name, "")
	return nil, abi.Deny(abi.Denial{
		Operation: "use " + u.Interface(),
		Reason:    fmt.Sprintf("this test gives no answers for %s: add env.%s to the test", name, name),
	})
}
