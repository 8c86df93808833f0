package mcp

import (
	"bytes"
	"crypto/rand"
	"encoding/json"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// maxRest is how many bytes the messages of a session may have besides the arguments of calls: of a line, or of a body over HTTP. The SDK
// keeps the newest messages of a session as they came, until others take their places or the session ends. An agent has one session over
// pipes and 64 over HTTP, so there each body has at most maxLater, once the session has begun.
const (
	maxRest  = 64 << 10
	maxLater = 4 << 10
)

// maxQueued is how many messages a session over HTTP may have under way. The SDK keeps about as many that it has answered.
const maxQueued = 256

// stow takes the arguments of calls out of a body of more than most bytes, so that the SDK does not keep them. It returns the rest, and
// the arguments by the text in their place. The body has passed checkIDs.
func stow(body []byte, most int) (rest []byte, stowed map[string]json.RawMessage, bad *jsonrpc.Error) {
	if len(body) <= most {
		return body, nil, nil
	}
	var messages []message
	var err error
	batch := bytes.HasPrefix(bytes.TrimLeft(body, " \t\r\n"), []byte{'['})
	if batch {
		err = json.Unmarshal(body, &messages)
	} else {
		messages = make([]message, 1)
		err = json.NewDecoder(bytes.NewReader(body)).Decode(&messages[0])
	}
	if err != nil {
		return nil, nil, &jsonrpc.Error{Code: jsonrpc.CodeParseError, Message: "the body is not a JSON-RPC message"}
	}
	size := 0
	stowed = map[string]json.RawMessage{}
	for _, m := range messages {
		for name, value := range m {
			size += len(name) + len(value)
		}
		var params map[string]json.RawMessage
		if !isCall(m["method"]) || json.Unmarshal(m["params"], &params) != nil || params["arguments"] == nil {
			continue
		}
		size -= len(params["arguments"])
		name := rand.Text()
		stowed[name], params["arguments"] = params["arguments"], json.RawMessage(`"`+name+`"`)
		if size > most {
			break
		}
		if m["params"], err = json.Marshal(params); err != nil {
			return nil, nil, invalid("the params of a call cannot be read: %v", err)
		}
	}
	if size > most {
		return nil, nil, invalid("a message has more than %d bytes besides the arguments of a call", most)
	}
	if batch {
		rest, err = json.Marshal(messages)
	} else {
		rest, err = json.Marshal(messages[0])
	}
	if err != nil {
		return nil, nil, invalid("the body cannot be read: %v", err)
	}
	return rest, stowed, nil
}

// messagesIn counts the messages of a body that has passed checkIDs.
func messagesIn(body []byte) int {
	var batch []json.RawMessage
	if !bytes.HasPrefix(bytes.TrimLeft(body, " \t\r\n"), []byte{'['}) || json.Unmarshal(body, &batch) != nil {
		return 1
	}
	return len(batch)
}

const stowedKey = "stowed"

// stowedBy returns what has the arguments of a call. It is nil if nothing was taken out.
func stowedBy(extra *sdk.RequestExtra) *taken {
	if under := takenBy(extra); under != nil || extra == nil || extra.TokenInfo == nil {
		return under
	}
	under, _ := extra.TokenInfo.Extra[stowedKey].(*taken)
	return under
}

// stowedIn is what a request over pipes says of its arguments.
func stowedIn(t *taken) *sdk.RequestExtra {
	return &sdk.RequestExtra{TokenInfo: &auth.TokenInfo{Extra: map[string]any{stowedKey: t}}}
}

// restore gives a call the arguments that stow took out of it.
func (t *taken) restore(call *sdk.CallToolRequest) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.over {
		return errClientGone
	}
	var name string
	if len(t.stowed) > 0 && json.Unmarshal(call.Params.Arguments, &name) == nil && t.stowed[name] != nil {
		call.Params.Arguments = t.stowed[name]
	}
	return nil
}
