package trial

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/capabilities/blob"
	"github.com/stilehost/stile/capabilities/console"
	"github.com/stilehost/stile/capabilities/random"
	"github.com/stilehost/stile/extension"
	"github.com/stilehost/stile/host"
)

const (
	// maxStubs is how many answers, files or values a binding can be given.
	maxStubs = 100
	// maxLog is how many bytes of its log a test keeps, and maxLines how many lines.
	maxLog   = 16 << 10
	maxLines = 500
	// maxBlobs is how many bytes a test can keep in a blob store.
	maxBlobs = 16 << 20
)

// seed is what every test draws its random numbers from.
var seed = [32]byte([]byte("stile tests draw the same number"))

// environment makes the bindings of one test and remembers what came of them. Its capabilities are used while the test runs
// only.
type environment struct {
	// path leads to the answers that are being read, e.g. `tests[0].env.github`.
	path  string
	clock *virtualClock
	files files

	mu      sync.Mutex
	log     []string
	missing []missing
}

// missing is an answer that the tool asked for and the test does not give.
type missing struct{ binding, what, line string }

// mistake is what the author of a test got wrong.
type mistake struct{ text, fix string }

func (m *mistake) Error() string { return m.text }

// wrong makes a mistake of the answers that are being read; text goes on where their path ends.
func (e *environment) wrong(text, fix string) error { return &mistake{e.path + text, fix} }

// unanswered notes what the tool asked for in vain, and is what the tool learns of it. line is what to add to the answers of
// the binding.
func (e *environment) unanswered(binding, what, line string) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if m := (missing{binding, what, line}); len(e.missing) < maxStubs && !slices.Contains(e.missing, m) {
		e.missing = append(e.missing, m)
	}
	return abi.Errorf(abi.CodeUnavailable, "this test gives no answer for %s: add to env.%s of the test: %s", what, binding, line)
}

// bind makes the env of a test. Errors are a *mistake of its author, or a fault of the host.
func (e *environment) bind(ctx context.Context, at string, bindings []extension.Binding, answers map[string]json.RawMessage) (host.Env, error) {
	env := make(host.Env, len(bindings))
	names := make([]string, len(bindings))
	for i, b := range bindings {
		names[i] = b.Name
		e.path = at + ".env." + b.Name
		var err error
		if env[b.Name], err = e.capability(ctx, b, answers[b.Name]); err != nil {
			return nil, err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(answers)) {
		if !slices.Contains(names, name) {
			e.path = at + ".env"
			return nil, e.wrong(fmt.Sprintf("[%s]: the extension has no binding of that name", quoted(name)), "one of the bindings: "+strings.Join(names, ", "))
		}
	}
	return env, nil
}

// capability makes one binding. raw is what the test says that it answers; nil when it says nothing.
func (e *environment) capability(ctx context.Context, b extension.Binding, raw json.RawMessage) (abi.Capability, error) {
	switch b.Grant.(type) {
	case extension.Clock:
		return e.clock, e.set(raw)
	case extension.Random:
		return random.Seeded(seed), e.none(raw)
	case extension.Console:
		return console.To(e.line).WithLimit(maxLog), e.none(raw)
	case extension.Blob:
		return blob.NewStore(blob.StoreOptions{Limit: maxBlobs}), e.none(raw)
	}
	if raw == nil {
		return unstubbed{e, b}, nil
	}
	switch g := b.Grant.(type) {
	case extension.HTTP:
		return e.http(b.Name, g, raw)
	case extension.Workspace:
		return e.directory(ctx, g, raw)
	case extension.KV:
		return e.bucket(ctx, g, raw)
	case extension.Tools:
		return e.toolbox(b.Name, raw)
	default:
		return nil, e.wrong(": a test cannot give answers for "+abi.PrintableCut(b.Grant.Interface(), maxValue)+" yet", "a test of what does not need it")
	}
}

// set sets the clock to what the test says, an instant as RFC 3339 has it.
func (e *environment) set(raw json.RawMessage) error {
	if raw == nil {
		return nil
	}
	var instant time.Time
	if err := json.Unmarshal(raw, &instant); err != nil || instant.Unix() < 0 {
		return e.wrong(": this is not the time at which the test begins", `"2026-01-01T00:00:00Z"`)
	}
	e.clock.start = instant
	return nil
}

// none refuses answers for what always gives the same ones.
func (e *environment) none(raw json.RawMessage) error {
	if raw == nil {
		return nil
	}
	return e.wrong(": this binding takes no answers from a test", "nothing")
}

// line keeps what the tool logs.
func (e *environment) line(level console.Level, message string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.log) < maxLines {
		e.log = append(e.log, level.String()+": "+message)
	}
}

// unstubbed is a binding that the test says nothing about. Whoever uses it is denied it.
type unstubbed struct {
	e       *environment
	binding extension.Binding
}

// Interface implements [abi.Capability].
func (u unstubbed) Interface() string { return u.binding.Grant.Interface() }

// Open implements [abi.Opener].
func (u unstubbed) Open(context.Context) (any, error) {
	name := u.binding.Name
	_ = u.e.unanswered(name, "the binding "+name, "") // the tool is told in another way
	return nil, abi.Deny(abi.Denial{
		Operation: "use " + u.Interface(),
		Reason:    fmt.Sprintf("this test gives no answers for %s: add env.%s to the test", name, name),
	})
}

// members reads an object of answers, each of type T, strictly.
func members[T any](e *environment, raw json.RawMessage, example string) (map[string]T, error) {
	var given map[string]*T
	err := strict(raw, &given)
	if err == nil && given == nil {
		err = errors.New("null where an object belongs")
	}
	if misfit, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		err = fmt.Errorf("%s: a %s does not belong there", cmp.Or(misfit.Field, "the answers"), misfit.Value)
	}
	if err != nil {
		return nil, e.wrong(": "+abi.PrintableCut(strings.TrimPrefix(err.Error(), "json: "), maxValue), "an object like "+example)
	}
	if len(given) > maxStubs {
		return nil, e.wrong(fmt.Sprintf(": there are %d entries", len(given)), fmt.Sprintf("at most %d", maxStubs))
	}
	all := make(map[string]T, len(given))
	for _, name := range slices.Sorted(maps.Keys(given)) {
		if given[name] == nil { // which encoding/json takes for an answer without anything in it
			return nil, e.wrong(fmt.Sprintf("[%s]: null, which is no answer", quoted(name)), "an object like "+example)
		}
		all[name] = *given[name]
	}
	return all, nil
}

// strict decodes JSON without fields that v does not know.
func strict(raw []byte, v any) error {
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.DisallowUnknownFields()
	return decoder.Decode(v)
}
