package tools

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/stilehost/stile/capability/double"
)

// recorded learns what the tools returned that a recorded call started.
type recorded struct {
	calls map[string][]*recordedCall // by the name of the tool
	order []*recordedCall
}

func newRecorded(*double.Recording, string) double.Answerer {
	return &recorded{calls: map[string][]*recordedCall{}}
}

// Learn implements [double.Learner].
func (r *recorded) Learn(o double.Operation) (double.Learner, error) {
	switch {
	case o.Failed != "":
		return nil, fmt.Errorf("it failed: %s", o.Failed)
	case o.Method != "start": // what can be found depends on what there is
		return nil, double.ErrUnanswered
	}
	name, _ := o.Args[0].(string)
	call := &recordedCall{at: o.At}
	r.calls[name] = append(r.calls[name], call)
	r.order = append(r.order, call)
	return call, nil
}

// recordedCall is a tool that a recorded call started.
type recordedCall struct {
	at     int
	failed string
	output json.RawMessage
}

// Learn implements [double.Learner].
func (c *recordedCall) Learn(o double.Operation) (double.Learner, error) {
	switch {
	case o.Method == "take" && o.Failed != "":
		c.failed = o.Failed
	case o.Failed != "":
		return nil, fmt.Errorf("it failed: %s", o.Failed)
	case o.Method == "take":
		text, ok := o.Value.(string)
		if !ok {
			return nil, double.ErrUnanswered
		}
		c.output = json.RawMessage(text)
	case o.Method != "subscribe":
		return nil, double.ErrUnanswered
	}
	return nil, nil
}

// Answers implements [double.Answerer].
func (r *recorded) Answers() (any, error) {
	for _, call := range r.order {
		switch {
		case call.failed != "":
			return nil, &double.StepError{At: call.at, Err: fmt.Errorf("the tool failed: %s, and the text of its error is not in a recording", call.failed)}
		case call.output == nil:
			return nil, &double.StepError{At: call.at, Err: errors.New("the call did not wait for the result of the tool")}
		}
	}
	if len(r.calls) > double.MaxAnswers {
		return nil, fmt.Errorf("the call called %d different tools, and a test answers at most %d", len(r.calls), double.MaxAnswers)
	}
	answers := map[string]any{}
	for name, all := range r.calls {
		list := make([]outcome, len(all))
		for i, call := range all {
			list[i].Output = call.output
		}
		if answers[name] = list; len(list) == 1 {
			answers[name] = list[0]
		}
	}
	return answers, nil
}
