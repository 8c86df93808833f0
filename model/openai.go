package model

import (
	"context"
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
	Model               string      `json:"model"`
	Messages            []turn      `json:"messages"`
	MaxTokens           int         `json:"max_tokens,omitempty"` // deprecated, but all that older servers know
	MaxCompletionTokens int         `json:"max_completion_tokens,omitempty"`
	Temperature         *float64    `json:"temperature,omitempty"`
	Stream              bool        `json:"stream"`
	StreamOptions       chatOptions `json:"stream_options"`
}

type chatOptions struct {
	IncludeUsage bool `json:"include_usage"`
}

type chatChunk struct {
	Choices []struct {
		Delta struct {
			Content string `json:"content"`
			Refusal string `json:"refusal"`
		} `json:"delta"`
		FinishReason string `json:"finish_reason"`
	} `json:"choices"`
	Usage struct {
		Prompt     int64 `json:"prompt_tokens"`
		Completion int64 `json:"completion_tokens"`
	} `json:"usage"`
	Error *struct {
		Message string `json:"message"`
	} `json:"error"`
}

// Complete implements [Model].
func (m *chat) Complete(ctx context.Context, c Conversation, onText func(string)) (Reply, error) {
	newer := chatRequest{
		Model: m.options.Model, Messages: c.turns(turn{"system", c.System}), MaxCompletionTokens: m.limit(c), Temperature: m.temperature(),
		Stream: true, StreamOptions: chatOptions{IncludeUsage: true},
	}
	older := newer
	older.MaxTokens, older.MaxCompletionTokens = newer.MaxCompletionTokens, 0
	return m.complete(ctx, c, onText, func(ctx context.Context, x *exchange) error {
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
	return x.stream(ctx, request, func(data []byte) (done bool, err error) {
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
		if len(chunk.Choices) == 0 {
			return false, nil // the last chunk has only the usage
		}
		choice := chunk.Choices[0]
		if choice.FinishReason != "" {
			x.ended, x.cut, x.filtered = true, choice.FinishReason == "length", choice.FinishReason == "content_filter"
		}
		return false, x.add(choice.Delta.Content + choice.Delta.Refusal)
	})
}
