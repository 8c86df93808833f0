package browser

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/capabilities/blob"
	"github.com/stilehost/stile/capability/double"
)

// recorded collects the outcomes of a binding's actions in a recorded call, by action, in their order.
type recorded struct {
	binding string
	steps   map[string][]*recordedStep
}

func newRecorded(_ *double.Recording, binding string) double.Answerer {
	return &recorded{binding: binding, steps: map[string][]*recordedStep{}}
}

// recordedStep is an action that was begun.
type recordedStep struct {
	at     int
	step   string
	answer Answer
	taken  bool
	file   *blob.Content
}

// Learn implements [double.Learner] for a session.
func (r *recorded) Learn(o double.Operation) (double.Learner, error) {
	switch {
	case o.Failed == "denied" || o.Failed == "invalid": // because of the manifest's rules
		return nil, nil
	case o.Failed != "":
		return nil, fmt.Errorf("it failed: %s", o.Failed)
	}
	text := func(i int) *string { return optional(o.Args[i]) }
	var name string
	switch o.Method {
	case "open":
		to, err := parseTarget(o.Args[0].(string))
		if err != nil {
			return nil, err
		}
		name = "open " + to.String()
	case "click", "press", "fill":
		name = o.Method + " " + o.Args[0].(string)
	case "wait-for":
		what := o.Args[0].(abi.Variant)
		name = waitStep(AwaitedCase(what.Case)) + what.Value.(string)
	case "text", "html":
		name = step(o.Method, text(0))
	case "evaluate":
		var list []json.RawMessage
		if err := json.Unmarshal([]byte(o.Args[1].(string)), &list); err != nil {
			return nil, err
		}
		name = evaluateStep(o.Args[0].(string), list)
	case "screenshot":
		name = step("screenshot", text(1))
		if o.Args[0].(bool) {
			name = "screenshot full-page"
		}
	case "markdown", "pdf", "download", "leave":
		name = o.Method
	default:
		return nil, double.ErrUnanswered
	}
	made := &recordedStep{at: o.At, step: name}
	r.steps[name] = append(r.steps[name], made)
	return made, nil
}

// optional is an option<string>.
func optional(v abi.Value) *string {
	o := v.(abi.Variant)
	if o.Case == 0 {
		return nil
	}
	return new(o.Value.(string))
}

// Learn implements [double.Learner] for a pending action.
func (s *recordedStep) Learn(o double.Operation) (double.Learner, error) {
	switch {
	case o.Method == "subscribe":
		return nil, nil
	case o.Method != "take":
		return nil, double.ErrUnanswered
	case o.Failed != "":
		return nil, fmt.Errorf("it failed: %s, and a test has other failures", o.Failed)
	}
	s.taken = true
	outcome := o.Value.(abi.Variant)
	switch OutcomeCase(outcome.Case) {
	case OutcomePage:
		page := outcome.Value.([]abi.Value)
		s.answer = Answer{URL: new(page[0].(string)), Title: new(page[1].(string)), Status: page[2].(uint16)}
	case OutcomeText:
		text := outcome.Value.(string)
		if stepKind(s.step) == OutcomeText && len(s.step) > 9 && s.step[:9] == "evaluate " {
			if text != "" {
				s.answer.JSON = json.RawMessage(text)
			}
		} else {
			s.answer.Text = &text
		}
	case OutcomeBlob:
		s.file = blob.NewContent(o.At, func(text string) error { s.answer.File = &text; return nil })
		return s.file.Blob(), nil
	default:
	}
	return nil, nil
}

// Answers implements [double.Answerer].
func (r *recorded) Answers() (any, error) {
	if len(r.steps) > double.MaxAnswers {
		return nil, fmt.Errorf("the call took %d different actions with %s, and a test answers at most %d", len(r.steps), double.Quoted(r.binding), double.MaxAnswers)
	}
	steps := map[string]any{}
	for name, all := range r.steps {
		list := make([]Answer, len(all))
		for i, s := range all {
			if !s.taken {
				return nil, &double.StepError{At: s.at, Err: errors.New("the call did not wait for the outcome")}
			}
			if s.file != nil {
				if _, _, err := s.file.Text(); err != nil {
					return nil, err
				}
			}
			list[i] = s.answer
		}
		switch {
		case stepKind(name) == OutcomeNothing: // it does nothing in a test either
		case len(list) == 1:
			steps[name] = list[0]
		default:
			steps[name] = list
		}
	}
	return steps, nil
}
