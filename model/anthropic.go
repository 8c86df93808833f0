package model

import (
	"context"
	"encoding/json"
	"errors"
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

// block is a part of a turn of the messages protocol: the fields of all its types. With a mark, servers keep the conversation up to its end, so that the next request pays a tenth
// for that. They ignore the mark if there is too little text.
type block struct {
	Type string `json:"type"`

	Text      string `json:"text,omitempty"`
	Thinking  string `json:"thinking,omitempty"`
	Signature string `json:"signature,omitempty"`
	Data      string `json:"data,omitempty"`

	Source *imageSource `json:"source,omitempty"`

	ID    string          `json:"id,omitempty"`
	Name  string          `json:"name,omitempty"`
	Input json.RawMessage `json:"input,omitempty"`

	ToolUseID string  `json:"tool_use_id,omitempty"`
	Content   []block `json:"content,omitempty"`
	IsError   bool    `json:"is_error,omitempty"`

	Cache *cacheMark `json:"cache_control,omitempty"`
}

type imageSource struct {
	Type      string `json:"type"`
	MediaType string `json:"media_type"`
	Data      []byte `json:"data"`
}

type cacheMark struct {
	Type string `json:"type"`
}

// kept marks what is to be kept.
func kept() *cacheMark { return &cacheMark{"ephemeral"} }

func textBlocks(text string) (blocks []block) {
	if text != "" { // servers refuse an empty one
		blocks = append(blocks, block{Type: "text", Text: text})
	}
	return blocks
}

func imageBlocks(images []Image) (blocks []block) {
	for _, i := range images {
		blocks = append(blocks, block{Type: "image", Source: &imageSource{"base64", i.Type, i.Data}})
	}
	return blocks
}

type blockTurn struct {
	Role    Role    `json:"role"`
	Content []block `json:"content"`
}

// blocks returns the parts of a turn.
func (t Turn) blocks() (blocks []block) {
	for _, r := range t.Results {
		blocks = append(blocks, block{Type: "tool_result", ToolUseID: r.ID, Content: append(textBlocks(r.Text), imageBlocks(r.Images)...), IsError: r.Failed})
	}
	for _, h := range t.Thoughts {
		switch {
		case h.Sealed != "":
			blocks = append(blocks, block{Type: "redacted_thinking", Data: h.Sealed})
		case h.Signature != "":
			blocks = append(blocks, block{Type: "thinking", Thinking: h.Text, Signature: h.Signature})
		}
	}
	blocks = append(append(blocks, textBlocks(t.Text)...), imageBlocks(t.Images)...)
	for _, c := range t.Calls {
		input := c.Input
		if input == nil {
			input, _ = json.Marshal(map[string]string{"malformed": c.Malformed}) // the protocol takes only an object
		}
		blocks = append(blocks, block{Type: "tool_use", ID: c.ID, Name: c.Name, Input: input})
	}
	return blocks
}

// blockTurns returns the turns of a conversation. The last one is marked, because the next request begins with the same turns.
func (c Conversation) blockTurns() (turns []blockTurn) {
	for i, t := range c.Turns {
		content := t.blocks()
		if i == len(c.Turns)-1 && len(content) > 0 {
			content[len(content)-1].Cache = kept()
		}
		turns = append(turns, blockTurn{t.Role, content})
	}
	return turns
}

type messagesRequest struct {
	Model       string          `json:"model"`
	System      []block         `json:"system,omitempty"`
	Messages    []blockTurn     `json:"messages"`
	Tools       []messagesTool  `json:"tools,omitempty"`
	ToolChoice  *messagesChoice `json:"tool_choice,omitempty"`
	Output      *messagesOutput `json:"output_config,omitempty"`
	MaxTokens   int             `json:"max_tokens"`
	Temperature *float64        `json:"temperature,omitempty"`
	Stream      bool            `json:"stream"`
}

type messagesTool struct {
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	Input       json.RawMessage `json:"input_schema"`
}

type messagesChoice struct {
	Type string `json:"type"`
}

type messagesOutput struct {
	Format messagesFormat `json:"format"`
}

type messagesFormat struct {
	Type   string          `json:"type"`
	Schema json.RawMessage `json:"schema"`
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
	Block struct {
		Type      string `json:"type"`
		ID        string `json:"id"`
		Name      string `json:"name"`
		Text      string `json:"text"`
		Thinking  string `json:"thinking"`
		Signature string `json:"signature"`
		Data      string `json:"data"`
	} `json:"content_block"`
	Delta struct {
		Text       string `json:"text"`
		Input      string `json:"partial_json"`
		Thinking   string `json:"thinking"`
		Signature  string `json:"signature"`
		StopReason string `json:"stop_reason"`
	} `json:"delta"`
	Usage messagesUsage `json:"usage"`
	fault
}

// Complete implements [Model].
func (m *messages) Complete(ctx context.Context, c Conversation, onPiece func(Piece)) (Reply, error) {
	request := messagesRequest{
		Model: m.options.Model, Messages: c.blockTurns(), MaxTokens: m.limit(c), Temperature: m.temperature(), Stream: true,
	}
	if c.System != "" {
		request.System = []block{{Type: "text", Text: c.System, Cache: kept()}} // the tools are before it, and kept with it
	}
	for _, t := range c.Tools {
		request.Tools = append(request.Tools, messagesTool(t))
	}
	if len(c.Tools) > 0 && c.Choice != Auto {
		request.ToolChoice = &messagesChoice{map[Choice]string{Some: "any", None: "none"}[c.Choice]}
	}
	if c.Output != nil {
		request.Output = &messagesOutput{messagesFormat{"json_schema", c.Output}}
	}
	return m.complete(ctx, c, onPiece, func(ctx context.Context, x *exchange) error {
		r := blockReader{exchange: x}
		return x.stream(ctx, request, r.read)
	})
}

// blockReader reads the blocks of a reply, one after the other.
type blockReader struct {
	*exchange
	thought *thinking // the block that arrives, if it is one
	calling *calling  // likewise
}

func (x *blockReader) read(data []byte) (done bool, err error) {
	var e messagesEvent
	if err := x.decode(data, &e); err != nil {
		return false, err
	}
	switch e.Type {
	case "message_start":
		u := e.Message.Usage
		count(&x.input, u.Input)
		count(&x.input, int64(x.input)+max(u.CacheCreated, 0)+max(u.CacheRead, 0))
		count(&x.cached, u.CacheRead)
		count(&x.output, u.Output)
	case "content_block_start":
		x.thought, x.calling = nil, nil
		switch b := e.Block; b.Type {
		case "text":
			return false, x.say(b.Text)
		case "thinking", "redacted_thinking":
			x.thought = x.begin()
			return false, errors.Join(x.think(x.thought, b.Thinking), x.take(&x.thought.signature, b.Signature, Piece{}), x.take(&x.thought.sealed, b.Data, Piece{}))
		case "tool_use":
			x.calling, err = x.call(b.ID, b.Name)
			return false, err
		}
	case "content_block_delta":
		switch d := e.Delta; {
		case d.Text != "":
			return false, x.say(d.Text)
		case x.calling != nil:
			return false, x.argue(x.calling, d.Input)
		case x.thought != nil:
			return false, errors.Join(x.think(x.thought, d.Thinking), x.take(&x.thought.signature, d.Signature, Piece{}))
		}
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
}
