package code

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/capability"
	"github.com/stilehost/stile/capability/double"
	"github.com/stilehost/stile/internal/printable"
)

const exampleAnswers = `{"return 1 + 1": {"result": 2}}`

// Answer is what code does in a test: exactly one of its first three fields says how it ends.
type Answer struct {
	// Result is what it returns.
	Result json.RawMessage `json:"result,omitempty"`
	// Thrown is what it throws.
	Thrown *abi.Failure `json:"thrown,omitempty"`
	// Error is why it could not run to its end.
	Error *string `json:"error,omitempty"`
	// Log are the lines that it logs, such as "info: done".
	Log []string `json:"log,omitempty"`
}

// lines reads Log.
func (a Answer) lines() (lines []Line, wrong string) {
	for _, text := range a.Log {
		word, rest, found := strings.Cut(text, ": ")
		level := capability.Trace
		for level <= capability.Error && level.String() != word {
			level++
		}
		if !found || level > capability.Error {
			return nil, text
		}
		lines = append(lines, Line{level, rest})
	}
	return lines, ""
}

// check returns an error if no code can end like this.
func (a Answer) check() error {
	ends := 0
	for _, set := range []bool{a.Result != nil, a.Thrown != nil, a.Error != nil} {
		if set {
			ends++
		}
	}
	if ends != 1 {
		return fmt.Errorf("it needs one of result, thrown and error, and has %d", ends)
	}
	if _, wrong := a.lines(); wrong != "" {
		return fmt.Errorf(`%s is no line of a log, such as "info: done"`, double.Quoted(wrong))
	}
	return nil
}

// Double implements [double.Doubler]: no code runs, and the test says what it does, by its text.
func (g Rights) Double(_ context.Context, t *double.Test, raw json.RawMessage) (abi.Capability, error) {
	answers, err := double.Members[double.Answers[Answer]](t, raw, exampleAnswers)
	if err != nil {
		return nil, err
	}
	for text, all := range answers {
		for _, a := range all.List {
			if err := a.check(); err != nil {
				return nil, t.Wrong(fmt.Sprintf("[%s]: %v", double.Quoted(text), err), exampleAnswers)
			}
		}
	}
	script := double.NewScript(answers)
	return doubled{New(g, func(ctx context.Context, p Program, done func([]byte, error)) {
		a, n, ok := script.Next(p.Text)
		if !ok {
			what := "the code " + double.Quoted(p.Text)
			if n > 0 {
				what = fmt.Sprintf("run %d of %s", n, what)
			}
			done(nil, t.Unanswered(what, printable.Short(string(capability.JSON(p.Text)), 300)+`: {"result": null}`))
			return
		}
		lines, _ := a.lines()
		for _, l := range lines {
			if written, ok := p.Env[ConsoleBinding].(*log); ok { // its caller's own console is not this test's to answer for
				written.Log(ctx, l.Level, l.Text)
			}
		}
		switch {
		case a.Thrown != nil:
			done(nil, &ThrownError{*a.Thrown})
		case a.Error != nil:
			done(nil, abi.Errorf(abi.CodeUnavailable, "%s", *a.Error))
		default:
			done(a.Result, nil)
		}
	})}, nil
}

// doubled is a grant whose code has ended when it is started, so that the order of events is always the same.
type doubled struct{ *Grant }

// Open implements [abi.Opener].
func (d doubled) Open(ctx context.Context) (any, error) {
	r, err := d.Grant.Open(ctx)
	if err != nil {
		return nil, err
	}
	return doubledRunner{r.(*Runner)}, nil
}

type doubledRunner struct{ *Runner }

// Start implements the method `start`.
func (d doubledRunner) Start(ctx context.Context, text, name, input string, env abi.Env) (*Pending, error) {
	p, err := d.Runner.Start(ctx, text, name, input, env)
	if err == nil {
		double.Until(ctx, p.Subscribe(ctx))
	}
	return p, err
}
