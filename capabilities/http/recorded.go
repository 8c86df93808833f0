package http

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/capabilities/blob"
	"github.com/stilehost/stile/capability"
	"github.com/stilehost/stile/capability/double"
)

// recorded collects the answers of a binding in a recorded call, by request, in the order of the requests.
type recorded struct {
	binding string
	answers map[string][]*recordedExchange
	all     []*recordedExchange
}

func newRecorded(_ *double.Recording, binding string) double.Answerer {
	return &recorded{binding: binding, answers: map[string][]*recordedExchange{}}
}

type recordedExchange struct {
	at     int
	answer Answer
	body   *blob.Content
}

// keptHeaders are the headers of a response that tools ask for. All others are dropped, including those that carry credentials.
var keptHeaders = []string{"content-type", "etag", "last-modified", "link", "location", "retry-after"}

// Learn implements [double.Learner] for a client.
func (r *recorded) Learn(o double.Operation) (double.Learner, error) {
	switch {
	case o.Method == "rules" || o.Failed == "denied" || o.Failed == "invalid": // because of the manifest's rules
		return nil, nil
	case o.Failed != "":
		return nil, fmt.Errorf("it failed: %s", o.Failed)
	case o.Method == "narrow":
		return r, nil
	case o.Method == "start":
		return r.start(o.At, o.Args[0].([]abi.Value))
	}
	return nil, double.ErrUnanswered
}

// start begins an exchange. The fields are those of the record `request`.
func (r *recorded) start(at int, request []abi.Value) (double.Learner, error) {
	key, err := RequestKey(request[0].(string) + " " + request[1].(string))
	if err != nil {
		return nil, err
	}
	x := &recordedExchange{at: at, body: blob.NewUnread(at)}
	r.answers[key] = append(r.answers[key], x)
	r.all = append(r.all, x)
	return x, nil
}

// Answers implements [double.Answerer].
func (r *recorded) Answers() (any, error) {
	for _, x := range r.all {
		text, seen, err := x.body.Text()
		switch {
		case err != nil:
			return nil, err
		case x.answer.Status == 0:
			return nil, &double.StepError{At: x.at, Err: errors.New("the call did not wait for the answer")}
		case seen:
			x.answer.setBody(text)
		}
	}
	if len(r.answers) > double.MaxAnswers {
		return nil, fmt.Errorf("the call made %d different requests with %s, and a test answers at most %d",
			len(r.answers), double.Quoted(r.binding), double.MaxAnswers)
	}
	requests := map[string]any{}
	for key, all := range r.answers {
		list := make([]Answer, len(all))
		for i, x := range all {
			list[i] = x.answer
		}
		requests[key] = list
		if len(list) == 1 {
			requests[key] = list[0]
		}
	}
	return requests, nil
}

// Learn implements [double.Learner].
func (x *recordedExchange) Learn(o double.Operation) (double.Learner, error) {
	switch {
	case o.Method == "subscribe" || o.Method == "text" && o.Failed == "invalid": // the tool then reads the bytes
		return nil, nil
	case o.Failed != "":
		return nil, fmt.Errorf("it failed: %s, but a server in a test always answers", o.Failed)
	case o.Method == "head":
		return nil, x.head(o.Value.([]abi.Value))
	case o.Method == "text":
		return nil, x.body.Whole([]byte(o.Value.(string)))
	case o.Method == "blob":
		chosen := o.Args[0].(abi.Variant)
		if chosen.Case == 0 {
			return x.body.BlobFrom(o.At, 0, true), nil
		}
		return x.body.BlobFrom(o.At, chosen.Value.([]abi.Value)[0].(uint64), false), nil
	}
	return nil, double.ErrUnanswered
}

// head keeps a head, with the fields of the record `head`.
func (x *recordedExchange) head(head []abi.Value) error {
	if head[2].(bool) {
		return errors.New("the request was redirected, and the recording does not have the redirects")
	}
	x.answer.Status = int(head[0].(uint16))
	for _, h := range head[3].([]abi.Value) {
		fields := h.([]abi.Value)
		name := strings.ToLower(fields[0].(string))
		if !slices.Contains(keptHeaders, name) {
			continue
		}
		if x.answer.Headers == nil {
			x.answer.Headers = map[string]string{}
		}
		if before, twice := x.answer.Headers[name]; twice && before != fields[1].(string) {
			return fmt.Errorf("the answer has the header %s twice, but an answer in a test can have it only once", name)
		}
		x.answer.Headers[name] = fields[1].(string)
	}
	if x.answer.Status == 0 {
		return errors.New("the answer has no status")
	}
	return x.answer.Check()
}

// setBody gives an answer its body. The body is JSON if it survives being written into a manifest and read back unchanged.
func (a *Answer) setBody(text string) {
	if strings.HasPrefix(a.Headers["content-type"], "application/json") && json.Valid([]byte(text)) {
		var v any
		decoder := json.NewDecoder(bytes.NewReader([]byte(text)))
		decoder.UseNumber()
		if err := decoder.Decode(&v); err == nil && depth(v) <= maxJSONDepth {
			if again := capability.JSON(v); string(again) == text {
				a.JSON = again
				return
			}
		}
	}
	a.Text = &text
}

// maxJSONDepth is how deep a body may nest, so that the manifest around it does not nest too deep.
const maxJSONDepth = 6

func depth(v any) int {
	most := 0
	switch v := v.(type) {
	case map[string]any:
		for _, field := range v {
			most = max(most, depth(field))
		}
	case []any:
		for _, item := range v {
			most = max(most, depth(item))
		}
	}
	return most + 1
}
