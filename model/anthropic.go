package model

import (
	"context"
	"net/http"
)

// Anthropic returns a model behind an API that speaks the messages protocol. An error is an *[OptionsError].
func Anthropic(o Options) (Model, error) {
	o, err := o.or("https://api.anthropic.com")
	if err != nil {
		return nil, err
	}
	a, err := newAPI(o, "v1/messages", "X-Api-Key", "")
	if err != nil {
		return nil, err
	}
	key := a.send
	a.send = func(h http.Header) {
		h.Set("Anthropic-Version", "2023-06-01")
		key(h)
	}
	return &messages{a}, nil
}

type messages struct{ *api }

// turn is one turn of a conversation, in both protocols.
type turn struct {
	Role    Role   `json:"role"`
	Content string `json:"content"`
}

// turns returns the turns of a conversation, after the given ones.
func (c Conversation) turns(before ...turn) []turn {
	for _, t := range c.Turns {
		before = append(before, turn{t.Role, t.Text})
	}
	return before
}

// block is a text of the messages protocol. With a mark, servers keep the conversation up to its end, so that the next request pays a tenth
// for that. They ignore the mark if there is too little text.
type block struct {
	Type  string     `json:"type"`
	Text  string     `json:"text"`
	Cache *cacheMark `json:"cache_control,omitempty"`
}

type cacheMark struct {
	Type string `json:"type"`
}

// kept is a text to keep.
func kept(text string) []block { return []block{{"text", text, &cacheMark{"ephemeral"}}} }

type blockTurn struct {
	Role    Role    `json:"role"`
	Content []block `json:"content"`
}

// blockTurns returns the turns of a conversation. The last one is marked, because the next request begins with the same turns.
func (c Conversation) blockTurns() (turns []blockTurn) {
	for i, t := range c.Turns {
		content := []block{{"text", t.Text, nil}}
		if i == len(c.Turns)-1 {
			content = kept(t.Text)
		}
		turns = append(turns, blockTurn{t.Role, content})
	}
	return turns
}

type messagesRequest struct {
	Model       string      `json:"model"`
	System      []block     `json:"system,omitempty"`
	Messages    []blockTurn `json:"messages"`
	MaxTokens   int         `json:"max_tokens"`
	Temperature *float64    `json:"temperature,omitempty"`
	Stream      bool        `json:"stream"`
}

type messagesUsage struct {
	Input        int64 `json:"input_tokens"`
	CacheCreated int64 `json:"cache_creation_input_tokens"`
	CacheRead    int64 `json:"cache_read_input_tokens"`
	Output       int64 `json:"output_tokens"`
}

// messagesEvent has the fields of all events that matter here.
type messagesEvent struct {
	Type    string `json:"type"`
	Message struct {
		Usage messagesUsage `json:"usage"`
	} `json:"message"`
	Delta struct {
		Text       string `json:"text"`
		StopReason string `json:"stop_reason"`
	} `json:"delta"`
	Usage messagesUsage `json:"usage"`
	fault
}

// Complete implements [Model].
func (m *messages) Complete(ctx context.Context, c Conversation, onText func(string)) (Reply, error) {
	request := messagesRequest{
		Model: m.options.Model, Messages: c.blockTurns(), MaxTokens: m.limit(c), Temperature: m.temperature(), Stream: true,
	}
	if c.System != "" {
		request.System = kept(c.System)
	}
	return m.complete(ctx, c, onText, func(ctx context.Context, x *exchange) error {
		return x.stream(ctx, request, func(data []byte) (done bool, err error) {
			var e messagesEvent
			if err := x.decode(data, &e); err != nil {
				return false, err
			}
			switch e.Type {
			case "message_start":
				u := e.Message.Usage
				count(&x.input, u.Input)
				count(&x.input, int64(x.input)+max(u.CacheCreated, 0)+max(u.CacheRead, 0))
				count(&x.output, u.Output)
			case "content_block_delta":
				return false, x.add(e.Delta.Text) // empty for thinking
			case "message_delta":
				count(&x.output, e.Usage.Output)
				x.cut = e.Delta.StopReason == "max_tokens" || e.Delta.StopReason == "model_context_window_exceeded"
				x.filtered = e.Delta.StopReason == "refusal"
			case "message_stop":
				x.ended = true
				return true, nil // the reply is complete, even if the server keeps the connection open
			case "error":
				return false, x.failed(e.Error.Message)
			}
			return false, nil
		})
	})
}
