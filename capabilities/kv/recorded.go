package kv

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/capability/double"
)

// recorded is a bucket of a recorded call.
type recorded struct{ *double.Entries }

func newRecorded(_ *double.Recording, binding string) double.Answerer {
	return recorded{double.NewEntries(binding)}
}

// Learn implements [double.Learner].
func (r recorded) Learn(o double.Operation) (double.Learner, error) { return nil, r.learn(o) }

func (r recorded) learn(o double.Operation) error {
	text := func(i int) string { return o.Args[i].(string) }
	switch {
	case o.Failed == "denied":
		return nil
	case o.Failed == "invalid":
		if o.Method == "increment" {
			r.Depend(o.At, text(0))
		}
		return nil
	case o.Failed != "":
		return fmt.Errorf("it failed: %s", o.Failed)
	}
	switch o.Method {
	case "get":
		return r.See(text(0), optional(o.Value))
	case "set":
		r.Put(text(0), double.Entry{Text: text(1)})
	case "delete":
		if !o.Value.(bool) {
			return r.See(text(0), nil)
		}
		return r.Remove(text(0))
	case "increment":
		return r.increment(text(0), o.Args[1].(int64), o.Value.(int64))
	case "compare-and-set":
		if !o.Value.(bool) {
			r.Depend(o.At, text(0))
			return nil
		}
		err := r.See(text(0), optional(o.Args[1]))
		now := double.Entry{Absent: true}
		if text := optional(o.Args[2]); text != nil {
			now = double.Entry{Text: *text}
		}
		r.Put(text(0), now)
		return err
	case "list":
		page := o.Value.([]abi.Value)
		if optional(page[1]) != nil {
			return errors.New("the operation returned only a part, and a test can hold only what the call saw")
		}
		for _, entry := range page[0].([]abi.Value) {
			fields := entry.([]abi.Value)
			if err := r.See(fields[0].(string), new(fields[1].(string))); err != nil {
				return err
			}
		}
	default:
		return double.ErrUnanswered
	}
	return nil
}

func (r recorded) increment(name string, delta, sum int64) error {
	before := sum - delta
	if (delta > 0) != (before < sum) && delta != 0 {
		return fmt.Errorf("the sum %d is none of %d", sum, delta)
	}
	if old, seen := r.Now(name); !seen {
		var text *string
		if before != 0 {
			text = new(strconv.FormatInt(before, 10))
		}
		if err := r.See(name, text); err != nil {
			return err
		}
	} else if n, err := strconv.ParseInt(old.Text, 10, 64); (err != nil || n != before) && (!old.Absent || before != 0) {
		return double.ErrOther
	}
	r.Put(name, double.Entry{Text: strconv.FormatInt(sum, 10)})
	return nil
}

// optional is an option<string>.
func optional(v abi.Value) *string {
	o := v.(abi.Variant)
	if o.Case == 0 {
		return nil
	}
	return new(o.Value.(string))
}
