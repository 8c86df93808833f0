package model

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"slices"
	"sync/atomic"
)

// OpenAI returns a model behind an API that speaks the chat completions protocol: OpenAI's own, or one of the many compatible
// servers. An error is an *[OptionsError].
func OpenAI(o Options) (Model, error) {
	o, err := o.or("https://api.openai.com/v1")
	if err != nil {
		return nil, err
	}
	a, err := newAPI(o, "chat/completions", "Authorization", "Bearer ")
	if err != nil {
		return nil, err
	}
	return &chat{api: a}, nil
}

type chat struct {
	*api
	older atomic.Bool // the server takes max_tokens instead of max_completion_tokens, which newer models require
}

type chatRequest struct {
	Model               string        `json:"model"`
	Messages            []chatMessage `json:"messages"`
	Tools               []chatTool    `json:"tools,omitempty"`
	ToolChoice          string        `json:"tool_choice,omitempty"`
	ResponseFormat      *chatFormat   `json:"response_format,omitempty"`
	MaxTokens           int           `json:"max_tokens,omitempty"` // deprecated, but all that older servers know
	MaxCompletionTokens int           `json:"max_completion_tokens,omitempty"`
	Temperature         *float64      `json:"temperature,omitempty"`
	Stream              bool          `json:"stream"`
	StreamOptions       chatOptions   `json:"stream_options"`
}

// chatMessage is a message. Its content is a text, or a list of parts if there are images.
type chatMessage struct {
	Role       string     `json:"role"`
	Content    any        `json:"content"`
	ToolCalls  []chatCall `json:"tool_calls,omitempty"`
	ToolCallID string     `json:"tool_call_id,omitempty"`
}

type chatPart struct {
	Type     string         `json:"type"`
	Text     string         `json:"text,omitempty"`
	ImageURL *chatReference `json:"image_url,omitempty"`
}

type chatReference struct {
	URL string `json:"url"`
}

type chatCall struct {
	ID       string       `json:"id"`
	Type     string       `json:"type"`
	Function chatArgument `json:"function"`
}

type chatArgument struct {
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
}

type chatTool struct {
	Type     string       `json:"type"`
	Function chatFunction `json:"function"`
}

type chatFunction struct {
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	Parameters  json.RawMessage `json:"parameters"`
}

type chatFormat struct {
	Type   string     `json:"type"`
	Schema chatSchema `json:"json_schema"`
}

type chatSchema struct {
	Name   string          `json:"name"`
	Schema json.RawMessage `json:"schema"`
}

// parts returns the content of a message: a text, unless there are images.
func parts(text string, images []Image) any {
	if len(images) == 0 {
		return text
	}
	var all []chatPart
	if text != "" {
		all = append(all, chatPart{Type: "text", Text: text})
	}
	for _, i := range images {
		all = append(all, chatPart{Type: "image_url", ImageURL: &chatReference{"data:" + i.Type + ";base64," + base64.StdEncoding.EncodeToString(i.Data)}})
	}
	return all
}

// chat returns the messages of a conversation.
func (c Conversation) chat() (messages []chatMessage) {
	if c.System != "" {
		messages = append(messages, chatMessage{Role: "system", Content: c.System})
	}
	for _, t := range c.Turns {
		images := t.Images
		for _, r := range t.Results {
			text := r.Text
			if r.Failed {
				text = "Error: " + text
			}
			messages = append(messages, chatMessage{Role: "tool", Content: text, ToolCallID: r.ID})
			images = append(slices.Clone(r.Images), images...) // a result has only text
		}
		m := chatMessage{Role: string(t.Role)}
		if t.Text != "" || len(images) > 0 || len(t.Calls)+len(t.Results) == 0 {
			m.Content = parts(t.Text, images)
		} else if len(t.Results) > 0 {
			continue
		}
		for _, call := range t.Calls {
			m.ToolCalls = append(m.ToolCalls, chatCall{call.ID, "function", chatArgument{call.Name, cmp.Or(string(call.Input), call.Malformed)}})
		}
		messages = append(messages, m)
	}
	return messages
}

type chatOptions struct {
	IncludeUsage bool `json:"include_usage"`
}

type chatChunk struct {
	Choices []struct {
		Delta struct {
			Content   string `json:"content"`
			Refusal   string `json:"refusal"`
			Reasoning string `json:"reasoning"`         // as some servers call it
			Thinking  string `json:"reasoning_content"` // as others do
			Calls     []struct {
				Index    int          `json:"index"`
				ID       string       `json:"id"`
				Function chatArgument `json:"function"`
			} `json:"tool_calls"`
		} `json:"delta"`
		FinishReason string `json:"finish_reason"`
	} `json:"choices"`
	Usage struct {
		Prompt     int64 `json:"prompt_tokens"`
		Completion int64 `json:"completion_tokens"`
		Details    struct {
			Cached int64 `json:"cached_tokens"`
		} `json:"prompt_tokens_details"`
	} `json:"usage"`
	Error *struct {
		Message string `json:"message"`
	} `json:"error"`
}

// Complete implements [Model].
func (m *chat) Complete(ctx context.Context, c Conversation, onPiece func(Piece)) (Reply, error) {
	newer := chatRequest{
		Model: m.options.Model, Messages: c.chat(), MaxCompletionTokens: m.limit(c), Temperature: m.temperature(),
		Stream: true, StreamOptions: chatOptions{IncludeUsage: true},
	}
	for _, t := range c.Tools {
		newer.Tools = append(newer.Tools, chatTool{"function", chatFunction{t.Name, t.Description, t.Input}})
	}
	if len(c.Tools) > 0 {
		newer.ToolChoice = map[Choice]string{Some: "required", None: "none"}[c.Choice]
	}
	if c.Output != nil {
		newer.ResponseFormat = &chatFormat{"json_schema", chatSchema{"reply", c.Output}}
	}
	older := newer
	older.MaxTokens, older.MaxCompletionTokens = newer.MaxCompletionTokens, 0
	return m.complete(ctx, c, onPiece, func(ctx context.Context, x *exchange) error {
		if m.older.Load() {
			return m.ask(ctx, x, older)
		}
		err := m.ask(ctx, x, newer)
		if err == nil || !x.refusal.rejects("max_completion_tokens") {
			return err
		}
		first := x.refusal
		err = m.ask(ctx, x, older)
		switch {
		case x.opened:
			m.older.Store(true)
		case x.refusal != first:
			return first
		}
		return err
	})
}

// ask reads a reply.
func (m *chat) ask(ctx context.Context, x *exchange, request chatRequest) error {
	r := chunkReader{exchange: x, at: map[int]*calling{}}
	return x.stream(ctx, request, r.read)
}

// chunkReader reads the chunks of a reply.
type chunkReader struct {
	*exchange
	thought *thinking
	at      map[int]*calling // the last call of each index
}

func (x *chunkReader) read(data []byte) (done bool, err error) {
	if string(data) == "[DONE]" {
		return true, nil
	}
	var chunk chatChunk
	if err := x.decode(data, &chunk); err != nil {
		return false, err
	}
	if chunk.Error != nil {
		return false, x.failed(chunk.Error.Message)
	}
	count(&x.input, chunk.Usage.Prompt)
	count(&x.output, chunk.Usage.Completion)
	count(&x.cached, chunk.Usage.Details.Cached)
	if len(chunk.Choices) == 0 {
		return false, nil // the last chunk has only the usage
	}
	choice := chunk.Choices[0]
	if choice.FinishReason != "" {
		x.ended, x.cut, x.filtered = true, choice.FinishReason == "length", choice.FinishReason == "content_filter"
	}
	if text := choice.Delta.Reasoning + choice.Delta.Thinking; text != "" {
		if x.thought == nil {
			x.thought = x.begin()
		}
		if err := x.think(x.thought, text); err != nil {
			return false, err
		}
	}
	if err := x.say(choice.Delta.Content + choice.Delta.Refusal); err != nil {
		return false, err
	}
	for _, d := range choice.Delta.Calls {
		c := x.at[d.Index]
		if c == nil || d.ID != "" && d.ID != c.id { // some servers give all calls the same index
			if c, err = x.call(d.ID, d.Function.Name); err != nil {
				return false, err
			}
			x.at[d.Index] = c
		}
		if err := x.argue(c, d.Function.Arguments); err != nil {
			return false, err
		}
	}
	return false, nil
}
