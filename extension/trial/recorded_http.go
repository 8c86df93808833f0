package trial

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/capabilities/http"
)

// site is all that an http binding answered: by request, in the order in which the requests were made.
type site struct{ answers map[string][]*exchange }

type exchange struct {
	at     int
	answer http.Answer
	body   *content
}

// keptHeaders are those of a response that tools ask for. All others are dropped, among them those that carry credentials.
var keptHeaders = []string{"content-type", "etag", "last-modified", "link", "location", "retry-after"}

// http learns from an operation of a client or an exchange.
func (c *converter) http(object any, method string, args []abi.Value, value abi.Value, failed string) error {
	switch o := object.(type) {
	case *site:
		switch {
		case method == "rules" || failed == "denied" || failed == "invalid": // by the rules that the manifest has
			return nil
		case failed != "":
			return fmt.Errorf("it failed: %s", failed)
		case method == "narrow":
			c.objects[value.(abi.Rep)] = o
			return nil
		case method == "start":
			return c.start(o, args[0].([]abi.Value), value.(abi.Rep))
		}
	case *exchange:
		switch {
		case method == "subscribe" || method == "text" && failed == "invalid": // then the bytes are asked for
			return nil
		case failed != "":
			return fmt.Errorf("it failed: %s, and the servers of a test always answer", failed)
		case method == "head":
			return o.head(value.([]abi.Value))
		case method == "text":
			return o.body.whole([]byte(value.(string)))
		case method == "blob":
			c.objects[value.(abi.Rep)] = o.body.part(c.at, args[0].(abi.Variant))
			return nil
		}
	}
	return errors.New("the recording does not say where its handle is from")
}

// start begins an exchange. The fields are those of the record `request`.
func (c *converter) start(s *site, request []abi.Value, rep abi.Rep) error {
	key, err := http.RequestKey(request[0].(string) + " " + request[1].(string))
	if err != nil {
		return err
	}
	x := &exchange{at: c.at}
	x.body = c.content(func(string) error { return nil })
	x.body.ignored = true // until somebody looks
	s.answers[key] = append(s.answers[key], x)
	c.objects[rep] = x
	return nil
}

// head keeps a head, whose fields are those of the record.
func (x *exchange) head(head []abi.Value) error {
	if head[2].(bool) {
		return errors.New("the request was redirected, and the answers on the way are not in the recording")
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
			return fmt.Errorf("the answer has the header %s twice, and one of a test has it once", name)
		}
		x.answer.Headers[name] = fields[1].(string)
	}
	if x.answer.Status == 0 {
		return errors.New("the answer has no status")
	}
	return x.answer.Check()
}

// setBody gives an answer its body: as JSON if it is the same, byte for byte, when a manifest has gone through all hands.
func setBody(a *http.Answer, text string) {
	if strings.HasPrefix(a.Headers["content-type"], "application/json") {
		if v, err := decode([]byte(text)); err == nil {
			if again, err := encode(v); err == nil && string(again) == text && depth(v) <= maxJSONDepth {
				a.JSON = again
				return
			}
		}
	}
	a.Text = &text
}

// maxJSONDepth is how deep a body may be nested so that a manifest, which has the test in a list, is not nested too deep.
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

// content is bytes that the call saw in pieces, from the start: of a body or of a file.
type content struct {
	at      int // the operation that gave it
	ignored bool
	ended   bool    // all of it was seen
	size    *uint64 // nil as long as nobody asked
	bytes   []byte
	keep    func(text string) error
}

// part is a handle on what there is of a content from an offset on: on all of it, or not.
type part struct {
	*content
	offset uint64
	all    bool
}

func (c *converter) content(keep func(string) error) *content {
	made := &content{at: c.at, keep: keep}
	c.contents = append(c.contents, made)
	return made
}

// part is what the option of `exchange.blob` chooses.
func (c *content) part(at int, chosen abi.Variant) part {
	c.at, c.ignored = at, false
	if chosen.Case == 0 {
		return part{c, 0, true}
	}
	return part{c, chosen.Value.([]abi.Value)[0].(uint64), false}
}

// whole is called with all of it.
func (c *content) whole(all []byte) error {
	if c.ended && !bytes.Equal(all, c.bytes) {
		return errors.New("it is not what the call read before")
	}
	c.bytes, c.ignored = all, false
	return c.end()
}

// add is called with what is at an offset.
func (c *content) add(offset uint64, b []byte) error {
	have := uint64(len(c.bytes))
	if offset > have {
		return errors.New("it was not read from its start on")
	}
	if end := offset + uint64(len(b)); end > have {
		c.bytes = append(slices.Clip(c.bytes), b[have-offset:]...)
	}
	if len(c.bytes) > maxRecorded {
		return fmt.Errorf("there are more than %d bytes of it", maxRecorded)
	}
	return nil
}

// end hands over what was seen, once it is all.
func (c *content) end() error {
	switch {
	case c.ended:
		return nil
	case !utf8.Valid(c.bytes):
		return errNoText
	}
	c.ended = true
	return c.keep(string(c.bytes))
}

var errNoText = errors.New("what is there is not text, and a test has text only")

// blobRead learns from an operation of a blob.
func blobRead(object any, method string, args []abi.Value, value abi.Value, failed string) error {
	p, ok := object.(part)
	switch {
	case !ok: // the call made it
		return nil
	case failed != "":
		return fmt.Errorf("it failed: %s", failed)
	}
	switch method {
	case "text":
		if p.all {
			return p.whole([]byte(value.(string)))
		}
		return errUnanswered
	case "bytes":
		offset, b := args[0].(uint64), value.([]byte)
		if err := p.add(p.offset+offset, b); err != nil {
			return err
		}
		if args[1].(uint32) > 0 && len(b) == 0 && p.offset+offset == uint64(len(p.bytes)) {
			return p.end()
		}
	case "size":
		if size := value.(uint64); p.all {
			p.size = &size
		}
	}
	if p.size != nil && *p.size == uint64(len(p.bytes)) {
		return p.end()
	}
	return nil
}
