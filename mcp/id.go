package mcp

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/stilehost/stile/internal/jsonform"
	"github.com/stilehost/stile/internal/printable"
)

// maxID is the largest number that every JSON parser reads exactly. The SDK answers larger ones under another number.
const maxID = 1<<53 - 1

// maxBatch is how many messages a batch may have, because a message of a few bytes can have an answer of megabytes.
const maxBatch = 64

// maxValues is how many JSON values a body may have: a value of three bytes takes 190 when it is decoded. Of these, maxOther may be
// outside the arguments of calls. The SDK decodes them, and keeps those of initialize as long as the session.
const maxValues, maxOther = 100_000, 2000

// maxInitialize is the maximum size of the params of initialize. They are kept as long as the session.
const maxInitialize = 64 << 10

// checkIDs checks the id of a message, or of each message of a batch. It returns an error for the first id that could not be sent back
// unchanged. It also refuses a batch that is too long. Like the SDK, it reads the first value and matches field names exactly. And it
// refuses what would take much memory: too many values, and a large initialize. id is the one to answer under, if there is one.
func checkIDs(body []byte) (id json.RawMessage, bad *jsonrpc.Error) { return check(body, false) }

// checkFirst is [checkIDs] for a body that belongs to no session yet. It also refuses requests that come too early.
func checkFirst(body []byte) (id json.RawMessage, bad *jsonrpc.Error) { return check(body, true) }

func check(body []byte, first bool) (id json.RawMessage, bad *jsonrpc.Error) {
	messages, id, bad := checkMessages(body)
	if bad == nil && first {
		return early(messages)
	}
	return id, bad
}

// maxEcho is how long an id is that is sent back with an error of [checkIDs], and how long the token of a call's progress may be.
const maxEcho = 1000

// idOf is the id of a message that is no batch, if it is one to send back. It takes little memory whatever else the message has.
func idOf(body []byte) json.RawMessage {
	var m struct {
		ID json.RawMessage `json:"id"`
	}
	if json.NewDecoder(bytes.NewReader(body)).Decode(&m) != nil || len(m.ID) > maxEcho || len(m.ID) == 0 || m.ID[0] == 'n' || !isText(m.ID) && !isExact(m.ID) {
		return nil
	}
	return m.ID
}

func isText(id json.RawMessage) bool { return id[0] == '"' }

// isExact reports whether an id is a number that every JSON parser reads exactly.
func isExact(id json.RawMessage) bool {
	var n float64
	return json.Unmarshal(id, &n) == nil && n == math.Trunc(n) && math.Abs(n) <= maxID
}

// invalid is the error for a message that is no valid request.
func invalid(format string, args ...any) *jsonrpc.Error {
	return &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest, Message: fmt.Sprintf(format, args...)}
}

// message is a JSON-RPC message with its fields as they came.
type message map[string]json.RawMessage

// checkMessages does the work of [checkIDs], and returns the messages that it read.
func checkMessages(body []byte) (messages []message, id json.RawMessage, bad *jsonrpc.Error) {
	if messages, id, bad = readMessages(body); bad != nil && id == nil {
		id = idOf(body)
	}
	return messages, id, bad
}

func readMessages(body []byte) (messages []message, id json.RawMessage, bad *jsonrpc.Error) {
	values := jsonform.Values(body)
	if values > maxValues {
		return nil, nil, invalid("a message has more than %d JSON values; send large data as text, or in parts", maxValues)
	}
	d := json.NewDecoder(bytes.NewReader(body))
	batch := bytes.HasPrefix(bytes.TrimLeft(body, " \t\r\n"), []byte{'['})
	if batch {
		_, _ = d.Token() // the bracket
	}
	for len(messages) == 0 || batch && d.More() {
		if len(messages) == maxBatch {
			return nil, nil, invalid("a batch has more than %d messages; send fewer at once", maxBatch)
		}
		var m message
		if d.Decode(&m) != nil {
			return nil, nil, nil
		}
		messages = append(messages, m)
	}
	if values > maxOther {
		for _, m := range messages {
			values -= argumentValues(m["method"], m["params"])
		}
		if values > maxOther {
			return nil, nil, invalid("a message has more than %d JSON values besides the arguments of a call", maxOther)
		}
	}
	for _, m := range messages {
		id := m["id"]
		if bytes.Equal(m["method"], []byte(`"initialize"`)) && len(m["params"]) > maxInitialize {
			return nil, nil, invalid("the params of initialize have more than %d bytes", maxInitialize)
		}
		if len(id) == 0 || bytes.Equal(id, []byte("null")) {
			continue
		}
		switch {
		case isText(id):
			continue
		case id[0] == '{' || id[0] == '[' || id[0] == 't' || id[0] == 'f':
			return nil, nil, invalid("the id of a request is neither a string nor a number")
		case !isExact(id):
			return nil, id, invalid("the id of a request is not an integer between -%d and %[1]d; use one of these, or a string", int64(maxID))
		}
	}
	return messages, nil, nil
}

// early returns an error for the first request that may not come before initialize, with its id. The SDK answers it with code 0.
func early(messages []message) (id json.RawMessage, bad *jsonrpc.Error) {
	for _, m := range messages {
		var method string
		var params, meta map[string]json.RawMessage
		_ = json.Unmarshal(m["method"], &method) // a missing method allows nothing
		_ = json.Unmarshal(m["params"], &params)
		_ = json.Unmarshal(params["_meta"], &meta)
		_, newer := meta[sdk.MetaKeyProtocolVersion] // the SDK says which header is missing
		switch id := m["id"]; {
		case method == "initialize":
			return nil, nil
		case len(id) > 0 && !bytes.Equal(id, []byte("null")) && method != "" && !beforehand[method] && !newer:
			return id, invalid("method %q is invalid before initialize; send initialize first", printable.Short(method, 100))
		}
	}
	return nil, nil
}

func isCall(method json.RawMessage) bool { return bytes.Equal(method, []byte(`"tools/call"`)) }

// argumentValues counts the values in the arguments of a call, which the SDK does not decode.
func argumentValues(method, params json.RawMessage) int {
	var fields map[string]json.RawMessage
	if !isCall(method) || json.Unmarshal(params, &fields) != nil || fields["arguments"] == nil {
		return 0
	}
	return jsonform.Values(fields["arguments"])
}

// errorMessage is the answer to a request that does not reach the SDK. Without an id, it belongs to no request in particular.
func errorMessage(id json.RawMessage, bad *jsonrpc.Error) ([]byte, error) {
	return json.Marshal(map[string]any{"jsonrpc": "2.0", "id": id, "error": bad})
}
