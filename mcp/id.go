package mcp

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// maxID is the largest number that every JSON parser reads as itself; the SDK answers larger ones under another number.
const maxID = 1<<53 - 1

// checkIDs looks at the id of a message, or of each message of a batch. The first one that could not be sent back as it came is
// returned with an error for it; what is no JSON-RPC at all is left to the SDK.
func checkIDs(body []byte) (id json.RawMessage, bad *jsonrpc.Error) {
	type message struct {
		ID json.RawMessage `json:"id"`
	}
	messages := make([]message, 1)
	var err error
	if body = bytes.TrimLeft(body, " \t\r\n"); bytes.HasPrefix(body, []byte{'['}) {
		err = json.Unmarshal(body, &messages)
	} else {
		err = json.Unmarshal(body, &messages[0])
	}
	if err != nil {
		return nil, nil
	}
	for _, m := range messages {
		var n float64
		if len(m.ID) == 0 || bytes.Equal(m.ID, []byte("null")) {
			continue
		}
		switch err := json.Unmarshal(m.ID, &n); {
		case m.ID[0] == '"':
			continue
		case m.ID[0] == '{' || m.ID[0] == '[' || m.ID[0] == 't' || m.ID[0] == 'f':
			return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest, Message: "the id of a request is neither a string nor a number"}
		case err != nil || n != math.Trunc(n) || math.Abs(n) > maxID:
			return m.ID, &jsonrpc.Error{
				Code:    jsonrpc.CodeInvalidRequest,
				Message: fmt.Sprintf("the id of a request is not an integer between -%d and %[1]d; use one of these, or a string", int64(maxID)),
			}
		}
	}
	return nil, nil
}

// errorMessage is the answer to a request that the SDK does not see. Without an id it is for none in particular.
func errorMessage(id json.RawMessage, bad *jsonrpc.Error) ([]byte, error) {
	return json.Marshal(map[string]any{"jsonrpc": "2.0", "id": id, "error": bad})
}
