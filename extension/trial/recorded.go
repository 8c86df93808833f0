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
	"github.com/stilehost/stile/capabilities/blob"
	"github.com/stilehost/stile/capabilities/clock"
	"github.com/stilehost/stile/capabilities/console"
	"github.com/stilehost/stile/capabilities/http"
	"github.com/stilehost/stile/capabilities/kv"
	"github.com/stilehost/stile/capabilities/random"
	"github.com/stilehost/stile/capabilities/workspace"
	"github.com/stilehost/stile/capability/double"
	"github.com/stilehost/stile/extension"
	"github.com/stilehost/stile/host"
	"github.com/stilehost/stile/internal/printable"
	"github.com/stilehost/stile/secret"
	"github.com/stilehost/stile/wit"
)

const (
	// maxRecorded is how many bytes a test that is made of a recording may have: a part of what a manifest may.
	maxRecorded = 128 << 10
	// maxRecordedError is how many bytes it expects of an error's text.
	maxRecordedError = 300
	// maxInstant is when the years end that JSON can say, in milliseconds.
	maxInstant = 253402300799999
)

// RecordingError says why no test can be made of a recording.
type RecordingError struct {
	// Operation is the number of the operation, counted from 1, for which a test has no answer, and Name what it is. They
	// are 0 and empty when it is not one operation.
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

var capabilities = sync.OnceValues(func() (*abi.Resolve, error) { return abi.ParseCapability(wit.Capability(), wit.Extension()) })

// FromRecording makes a test of a recorded call: its input, what came of it, and as answers what its bindings gave. Run with
// the same extension and bindings, it passes, unless the call depended on what no recording has: how long something took,
// which of several requests was answered first, and headers of responses other than those that tools ask for.
//
// Answers are of http, kv and workspace, and the time if the call saw one time only. A *[RecordingError] says what it is that
// a test cannot answer, and a *[host.DamagedError] that the recording cannot be read. What was redacted is not in the test:
// where the test would need it, that is an error.
func FromRecording(r *host.Recording) (extension.Test, error) {
	known, err := capabilities()
	if err != nil {
		return extension.Test{}, err
	}
	test, err := ending(r)
	if err != nil {
		return extension.Test{}, &RecordingError{Reason: err.Error()}
	}
	list, err := r.Values(known)
	if err != nil {
		return extension.Test{}, err
	}
	c := &converter{
		list: list, objects: map[abi.Rep]any{}, sites: map[string]*site{}, stores: map[string]*stored{}, clocks: map[string]bool{},
	}
	for i, o := range list {
		c.at = i
		if err := c.step(o); err != nil {
			return extension.Test{}, c.refused(i, err)
		}
	}
	if test.Env, err = c.answers(); err != nil {
		return extension.Test{}, err
	}
	text, err := json.Marshal(test)
	switch {
	case err != nil:
		return extension.Test{}, err
	case len(text) > maxRecorded:
		return extension.Test{}, &RecordingError{Reason: fmt.Sprintf("the test would have %d bytes, and at most %d fit a manifest well", len(text), maxRecorded)}
	case r.Redacted && bytes.Contains(text, []byte(secret.Mark)):
		return extension.Test{}, &RecordingError{Reason: "a secret was taken out of what the test would hold"}
	}
	return test, nil
}

// ending is the test without answers.
func ending(r *host.Recording) (extension.Test, error) {
	test := extension.Test{Name: "as recorded at " + r.Started.UTC().Format(time.RFC3339), Tool: r.Tool, Input: r.Input}
	switch {
	case r.Cut != "":
		return test, fmt.Errorf("it is not whole: it reached its bound (%s)", double.Quoted(r.Cut))
	case r.Code != "":
		return test, errors.New("the call brought its own code, and a test calls a tool of an extension")
	case !json.Valid(r.Input):
		return test, errors.New("its input is not JSON")
	}
	message := r.Outcome.Message
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
	case "failed":
		message = strings.TrimPrefix(message, "tool failed: ")
	case "denied":
		message, _, _ = strings.Cut(message, "; to allow it: ")
	case "input":
	default:
		return test, fmt.Errorf("the call ended with %s, and a test expects a result or an error of the tool", double.Quoted(r.Outcome.String()))
	}
	if test.Error = printable.Cut(printable.Text(message), maxRecordedError); test.Error == "" {
		return test, errors.New("the error of the call has no text")
	}
	return test, nil
}

// converter goes through the operations of a recording and keeps what they tell about the world that answered them.
type converter struct {
	list []host.RecordedValues
	at   int
	// objects are what handles stand for: *site, *exchange, *content, part, *stored (a bucket) or directory.
	objects  map[abi.Rep]any
	sites    map[string]*site
	stores   map[string]*stored
	contents []*content
	// clocks are the bindings through which the call saw the time.
	clocks map[string]bool
	time   uint64
}

// refused is an error of an operation.
func (c *converter) refused(at int, err error) error {
	o := c.list[at]
	return &RecordingError{at + 1, cmp.Or(o.Interface, "?") + "#" + o.Func, err.Error()}
}

// errUnanswered is of what a test has no answers for.
var errUnanswered = errors.New("a test has no answer for it that could be recorded")

// step learns from one operation. An error says why a test cannot answer it.
func (c *converter) step(o host.RecordedValues) error {
	made := o.Interface == blob.Interface && !strings.HasPrefix(o.Func, "[method]blob.") // blobs that the call itself makes
	switch o.Interface {
	case abi.EnvInterface, abi.PollInterface, console.Interface:
		return nil
	case blob.Interface, clock.Interface, http.Interface, kv.Interface, random.Interface, workspace.Interface:
	default:
		return errUnanswered
	}
	switch {
	case made && o.Error == nil:
		return nil
	case o.Error != nil:
		return fmt.Errorf("it ended the call: %s", double.Quoted(o.Error.Message))
	case o.Type == nil:
		return errors.New("there is no such operation")
	case o.Args == nil && len(o.Type.Params) > 0:
		return errors.New("its arguments are too long to be in the recording")
	case o.Type.Resource == nil:
		c.get(o)
		return nil
	}
	_, method, _ := strings.Cut(o.Func, ".")
	value, failed := answered(o)
	object := c.objects[o.Args[0].(abi.Rep)]
	switch o.Interface {
	case clock.Interface:
		if method == "now" {
			return c.now(o.Binding, value.(uint64))
		}
		return nil
	case random.Interface:
		return errors.New("in a test random numbers are others")
	case kv.Interface:
		if bucket, ok := object.(*stored); ok {
			return bucket.bucket(c.at, method, o.Args[1:], value, failed)
		}
	case workspace.Interface:
		if d, ok := object.(directory); ok {
			return c.directory(d, method, o.Args[1:], value, failed)
		}
	case http.Interface:
		return c.http(object, method, o.Args[1:], value, failed)
	case blob.Interface:
		return blobRead(object, method, o.Args[1:], value, failed)
	}
	return errors.New("the recording does not say where its handle is from")
}

// answered takes an answer apart: into a value, or the name of an error's case.
func answered(o host.RecordedValues) (value abi.Value, failed string) {
	t := o.Type.Result
	if t == nil || t.Kind != abi.KindResult {
		return o.Answer, ""
	}
	v := o.Answer.(abi.Variant)
	if v.Case == 0 {
		return v.Value, ""
	}
	return nil, t.Err.Cases[v.Value.(abi.Variant).Case].Name
}

// get opens a binding. What it fails for, it fails for in a test too.
func (c *converter) get(o host.RecordedValues) {
	value, failed := answered(o)
	if o.Func != "get" || failed != "" {
		return
	}
	name, rep := o.Args[1].(string), value.(abi.Rep)
	switch o.Interface {
	case http.Interface:
		if c.sites[name] == nil {
			c.sites[name] = &site{answers: map[string][]*exchange{}}
		}
		c.objects[rep] = c.sites[name]
	case kv.Interface, workspace.Interface:
		if c.stores[name] == nil {
			c.stores[name] = &stored{first: map[string]string{}, now: map[string]state{}, partly: map[string]int{}}
		}
		c.objects[rep] = c.stores[name]
		if o.Interface == workspace.Interface {
			c.objects[rep] = directory{c.stores[name], "/"}
		}
	}
}

// now keeps what a clock showed.
func (c *converter) now(binding string, milliseconds uint64) error {
	if milliseconds > maxInstant || len(c.clocks) > 0 && milliseconds != c.time {
		return errors.New("the call saw the time go on, and in a test it stands still unless the tool waits")
	}
	c.clocks[binding], c.time = true, milliseconds
	return nil
}

// answers are what the bindings gave, as a test says it.
func (c *converter) answers() (map[string]json.RawMessage, error) {
	for _, content := range c.contents {
		if !content.ended && !content.ignored {
			return nil, c.refused(content.at, errors.New("the call did not read all that is behind it, so the recording does not have it"))
		}
	}
	env := map[string]any{}
	for name := range c.clocks {
		env[name] = time.UnixMilli(int64(c.time)).UTC() // at most maxInstant
	}
	for name, s := range c.stores {
		for _, at := range slices.Sorted(maps.Values(s.partly)) {
			return nil, c.refused(at, errPartly)
		}
		env[name] = s.first
	}
	for name, s := range c.sites {
		requests := map[string]any{}
		for key, all := range s.answers {
			list := make([]http.Answer, len(all))
			for i, x := range all {
				if x.answer.Status == 0 {
					return nil, c.refused(x.at, errors.New("the call did not wait for the answer"))
				}
				if x.body.ended {
					setBody(&x.answer, string(x.body.bytes))
				}
				list[i] = x.answer
			}
			requests[key] = list
			if len(list) == 1 {
				requests[key] = list[0]
			}
		}
		env[name] = requests
	}
	made := make(map[string]json.RawMessage, len(env))
	for name, v := range env {
		text, err := encode(v)
		if err != nil {
			return nil, err
		}
		made[name] = text
	}
	return made, c.tooMany()
}

// tooMany is the error of more answers than a binding can be given.
func (c *converter) tooMany() error {
	for name, s := range c.stores {
		if len(s.first) > double.MaxAnswers {
			return &RecordingError{Reason: fmt.Sprintf("the call read %d entries of %s, and a test gives at most %d", len(s.first), double.Quoted(name), double.MaxAnswers)}
		}
	}
	for name, s := range c.sites {
		if len(s.answers) > double.MaxAnswers {
			return &RecordingError{Reason: fmt.Sprintf("the call made %d different requests with %s, and a test answers at most %d", len(s.answers), double.Quoted(name), double.MaxAnswers)}
		}
	}
	return nil
}

// encode writes JSON as a person would.
func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return bytes.TrimSuffix(b.Bytes(), []byte{'\n'}), err
}
