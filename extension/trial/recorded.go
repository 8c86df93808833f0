package trial

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/capabilities"
	"github.com/stilehost/stile/capability"
	"github.com/stilehost/stile/capability/double"
	"github.com/stilehost/stile/extension"
	"github.com/stilehost/stile/host"
	"github.com/stilehost/stile/internal/printable"
	"github.com/stilehost/stile/secret"
	"github.com/stilehost/stile/wit"
)

// maxRecordedError is how many bytes of an error's text a test expects.
const maxRecordedError = 300

// RecordingError says why a recording cannot be converted into a test.
type RecordingError struct {
	// Operation is the number of the operation, counted from 1, for which a test has no answer, and Name describes it. They are 0
	// and empty if it is not one operation.
	Operation int
	Name      string
	Reason    string
}

func (e *RecordingError) Error() string {
	if e.Operation == 0 {
		return "no test can be made of the recording: " + e.Reason
	}
	return fmt.Sprintf("no test can be made of the recording: operation %d, %s: %s", e.Operation, e.Name, e.Reason)
}

var contract = sync.OnceValues(func() (*abi.Resolve, error) { return abi.ParseCapability(wit.Capability(), wit.Extension()) })

// FromRecording makes a test from a recorded call: its input, its outcome, and the answers of its bindings. With the same
// extension and bindings, the test passes, unless the call depended on something that recordings lack: how long something took,
// which of several requests was answered first, and response headers other than those that tools ask for.
//
// The test has the answers of the bindings, and the time if the call saw only one. A *[RecordingError] says what a test
// cannot answer, and a *[host.DamagedError] says that the recording cannot be read. Redacted content is not in the test; if the test
// would need it, that is an error.
func FromRecording(r *host.Recording) (extension.Test, error) {
	known, err := contract()
	if err != nil {
		return extension.Test{}, err
	}
	return FromRecordingWith(capabilities.Builtin, known, r)
}

// FromRecordingWith is [FromRecording] with other kinds. known has their interfaces.
func FromRecordingWith(kinds capability.Set, known *abi.Resolve, r *host.Recording) (extension.Test, error) {
	test, err := ending(r)
	if err != nil {
		return extension.Test{}, &RecordingError{Reason: err.Error()}
	}
	list, err := r.Values(known)
	if err != nil {
		return extension.Test{}, err
	}
	c := &converter{
		kinds: kinds, list: list, of: &double.Recording{}, objects: map[object]double.Learner{}, bindings: map[binding]double.Answerer{},
	}
	for i, o := range list {
		if err := c.step(i, o); err != nil {
			return extension.Test{}, c.refused(i, err)
		}
	}
	if test.Env, err = c.answers(); err != nil {
		return extension.Test{}, err
	}
	if len(c.vars) > 0 {
		test.Vars = c.vars
	}
	text, err := json.Marshal(test)
	switch {
	case err != nil:
		return extension.Test{}, err
	case len(text) > double.MaxRecorded:
		return extension.Test{}, &RecordingError{Reason: fmt.Sprintf("the test would have %d bytes, and a manifest should have at most %d in one test", len(text), double.MaxRecorded)}
	case r.Redacted && bytes.Contains(text, []byte(secret.Mark)):
		return extension.Test{}, &RecordingError{Reason: "the recording replaced a secret that the test would need"}
	}
	return test, nil
}

// ending returns the test without answers.
func ending(r *host.Recording) (extension.Test, error) {
	test := extension.Test{Name: "as recorded at " + r.Started.UTC().Format(time.RFC3339), Tool: r.Tool, Input: r.Input}
	switch {
	case r.Cut != "":
		return test, fmt.Errorf("it is incomplete, because it reached its bound (%s)", double.Quoted(r.Cut))
	case r.Code != "":
		return test, errors.New("the call brought its own code, and a test calls a tool of an extension")
	case !json.Valid(r.Input):
		return test, errors.New("its input is not JSON")
	}
	message := r.Outcome.Words()
	switch r.Outcome.Kind {
	case "ok":
		switch {
		case r.OutputDigest != "":
			return test, errors.New("its output was too large to be kept")
		case !json.Valid(r.Output):
			return test, errors.New("its output is not JSON")
		}
		test.Expect = r.Output
		return test, nil
	case "failed", "denied", "input":
	default:
		return test, fmt.Errorf("the call ended with %s, and a test expects a result or an error of the tool", double.Quoted(r.Outcome.String()))
	}
	if test.Error = printable.Cut(printable.Text(message), maxRecordedError); test.Error == "" {
		return test, errors.New("the error of the call has no text")
	}
	return test, nil
}

// converter goes through the operations of a recording, and lets the kinds collect what these reveal about the outside world.
type converter struct {
	kinds capability.Set
	list  []host.RecordedValues
	of    *double.Recording
	// objects has the resource behind each handle, and bindings has the state of each binding.
	objects  map[object]double.Learner
	bindings map[binding]double.Answerer
	vars     map[string]json.RawMessage // that the code read
}

// object is a handle of a resource.
type object struct {
	resource *abi.Resource
	handle   abi.Value
}

type binding struct{ name, iface string }

// refused is an error returned by an operation.
func (c *converter) refused(at int, err error) error {
	o := c.list[at]
	return &RecordingError{at + 1, cmp.Or(o.Interface, "?") + "#" + o.Func, err.Error()}
}

// step learns from one operation. An error says why a test cannot answer it.
func (c *converter) step(at int, o host.RecordedValues) error {
	if o.Interface == abi.EnvInterface && o.Func == "[method]env.vars" && o.Error == nil {
		text, _ := o.Answer.(string)
		if err := json.Unmarshal([]byte(text), &c.vars); err != nil || len(text) > host.MaxVars {
			return errors.New("its vars cannot be read")
		}
		return nil
	}
	if o.Interface == abi.EnvInterface || o.Interface == abi.PollInterface {
		return nil
	}
	kind := c.kinds.Of(o.Interface)
	switch {
	case kind == nil || kind.Learn == nil:
		return errors.New("a test cannot give answers for this kind of capability")
	case o.Error != nil:
		return fmt.Errorf("it ended the call: %s", double.Quoted(o.Error.Message))
	case c.bindings[binding{o.Binding, o.Interface}] == double.Indifferent:
		return nil
	case o.Type == nil:
		return errors.New("there is no such operation")
	case o.Args == nil && len(o.Type.Params) > 0:
		return errors.New("its arguments are too long to be in the recording")
	}
	value, t, failed := answered(o)
	if o.Type.Resource == nil {
		if o.Func == "get" && failed == "" { // it fails for the same reason in a test
			b := binding{o.Args[1].(string), o.Interface}
			if c.bindings[b] == nil {
				c.bindings[b] = kind.Learn(c.of, b.name)
			}
			c.objects[object{t.Resource, value}] = c.bindings[b]
		}
		return nil
	}
	self := c.objects[object{o.Type.Resource, o.Args[0]}]
	if self == nil {
		return errors.New("the recording does not say where its handle comes from")
	}
	_, method, _ := strings.Cut(o.Func, ".")
	made, err := self.Learn(double.Operation{At: at, Method: method, Args: o.Args[1:], Value: value, Failed: failed})
	if made != nil && t != nil && t.Kind == abi.KindOwn {
		c.objects[object{t.Resource, value}] = made
	}
	return err
}

// answered splits an answer into a value and its type, or a failure.
func answered(o host.RecordedValues) (value abi.Value, t *abi.Type, failed string) {
	t = o.Type.Result
	if t == nil || t.Kind != abi.KindResult {
		return o.Answer, t, ""
	}
	v := o.Answer.(abi.Variant)
	if v.Case == 0 {
		return v.Value, t.Ok, ""
	}
	if t.Err != nil && t.Err.Kind == abi.KindVariant {
		return nil, nil, t.Err.Cases[v.Value.(abi.Variant).Case].Name
	}
	return nil, nil, "error"
}

// answers returns what the bindings returned, in the form of a test.
func (c *converter) answers() (map[string]json.RawMessage, error) {
	made := map[string]json.RawMessage{}
	order := func(a, b binding) int { return cmp.Or(cmp.Compare(a.name, b.name), cmp.Compare(a.iface, b.iface)) }
	for _, b := range slices.SortedFunc(maps.Keys(c.bindings), order) {
		v, err := c.bindings[b].Answers()
		if step, ok := errors.AsType[*double.StepError](err); ok {
			return nil, c.refused(step.At, step.Err)
		}
		if err != nil {
			return nil, &RecordingError{Reason: err.Error()}
		}
		if v != nil {
			made[b.name] = capability.JSON(v)
		}
	}
	return made, nil
}
