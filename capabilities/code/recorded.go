package code

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/capability"
	"github.com/stilehost/stile/capability/double"
)

// recorded learns what the code of a recorded call did.
type recorded struct {
	runs  map[string][]*recordedRun // by the text of the code
	order []*recordedRun
}

func newRecorded(*double.Recording, string) double.Answerer {
	return &recorded{runs: map[string][]*recordedRun{}}
}

// Learn implements [double.Learner].
func (r *recorded) Learn(o double.Operation) (double.Learner, error) {
	switch {
	case o.Failed == "denied", o.Failed == "invalid", o.Failed == "exhausted":
		return nil, nil // the double has the same rules
	case o.Failed != "":
		return nil, fmt.Errorf("it failed: %s", o.Failed)
	case o.Method != "start":
		return nil, double.ErrUnanswered
	}
	run := &recordedRun{at: o.At}
	text := o.Args[0].(string)
	r.runs[text] = append(r.runs[text], run)
	r.order = append(r.order, run)
	return run, nil
}

// recordedRun is code of a recorded call.
type recordedRun struct {
	at     int
	failed string
	answer Answer
}

// Learn implements [double.Learner].
func (r *recordedRun) Learn(o double.Operation) (double.Learner, error) {
	if o.Failed != "" && o.Method != "take" {
		return nil, fmt.Errorf("it failed: %s", o.Failed)
	}
	switch o.Method {
	case "subscribe":
	case "take":
		if r.failed = o.Failed; o.Failed == "" {
			r.answer.Result = json.RawMessage(o.Value.(string))
		}
	case "thrown":
		if v := o.Value.(abi.Variant); v.Case != 0 {
			f := v.Value.([]abi.Value)
			r.answer.Thrown = &abi.Failure{Name: f[0].(string), Message: f[1].(string), Stack: f[2].(string)}
		}
	case "log":
		for _, line := range o.Value.([]abi.Value) {
			fields := line.([]abi.Value)
			r.answer.Log = append(r.answer.Log, capability.Level(fields[0].(abi.Variant).Case).String()+": "+fields[1].(string))
		}
	default:
		return nil, double.ErrUnanswered
	}
	return nil, nil
}

// Answers implements [double.Answerer].
func (r *recorded) Answers() (any, error) {
	for _, run := range r.order {
		switch {
		case run.failed != "" && run.answer.Thrown == nil:
			return nil, &double.StepError{At: run.at, Err: fmt.Errorf("the code failed: %s, and in a test it can only return or throw", run.failed)}
		case run.answer.Result == nil && run.answer.Thrown == nil:
			return nil, &double.StepError{At: run.at, Err: errors.New("the call did not wait for the result of the code")}
		}
	}
	if len(r.runs) > double.MaxAnswers {
		return nil, fmt.Errorf("the call ran %d different pieces of code, and a test answers at most %d", len(r.runs), double.MaxAnswers)
	}
	answers := map[string]any{}
	for text, all := range r.runs {
		if len(all) == 1 {
			answers[text] = all[0].answer
			continue
		}
		list := make([]Answer, len(all))
		for i, run := range all {
			list[i] = run.answer
		}
		answers[text] = list
	}
	return answers, nil
}
