package generate

import (
	"context"
	"sync/atomic"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
)

// OpenAI returns a model behind an API that speaks the chat completions protocol: OpenAI's own, or one of the many servers
// that do as it does. An error is an *[OptionsError].
func OpenAI(o ModelOptions) (Model, error) {
	o, err := o.or("https://api.openai.com/v1")
	if err != nil {
		return nil, err
	}
	settings := []option.RequestOption{option.WithBaseURL(o.BaseURL), option.WithMaxRetries(0)}
	if o.Key != "" {
		settings = append(settings, option.WithAPIKey(o.Key))
	}
	// The service by itself, unlike the vendor's client around it, reads no environment.
	return &chat{api: newAPI(o), service: openai.NewChatCompletionService(settings...)}, nil
}

type chat struct {
	*api
	service openai.ChatCompletionService
	older   atomic.Bool // it takes max_tokens, and no max_completion_tokens, without which newer models do not work
}

// Complete implements [Model].
func (m *chat) Complete(ctx context.Context, c Conversation, onText func(string)) (Reply, error) {
	params := openai.ChatCompletionNewParams{
		Model:         m.options.Model,
		Messages:      []openai.ChatCompletionMessageParamUnion{openai.SystemMessage(c.System)},
		StreamOptions: openai.ChatCompletionStreamOptionsParam{IncludeUsage: openai.Bool(true)},
	}
	if *m.options.Temperature >= 0 {
		params.Temperature = openai.Float(*m.options.Temperature)
	}
	for _, t := range c.Turns {
		if t.Role == Assistant {
			params.Messages = append(params.Messages, openai.AssistantMessage(t.Text))
		} else {
			params.Messages = append(params.Messages, openai.UserMessage(t.Text))
		}
	}
	return m.complete(ctx, c, onText, func(ctx context.Context, x *exchange) error {
		old := params
		old.MaxTokens = openai.Int(m.limit(c)) // deprecated, and all that these servers know
		if m.older.Load() {
			return m.stream(ctx, x, old)
		}
		params.MaxCompletionTokens = openai.Int(m.limit(c))
		err := m.stream(ctx, x, params)
		if err == nil || !x.refusal.rejects("max_completion_tokens") {
			return err
		}
		first := x.refusal
		err = m.stream(ctx, x, old)
		switch {
		case x.opened:
			m.older.Store(true)
		case x.refusal != first:
			return first
		}
		return err
	})
}

// stream reads a reply.
func (m *chat) stream(ctx context.Context, x *exchange, params openai.ChatCompletionNewParams) error {
	stream := m.service.NewStreaming(ctx, params, option.WithHTTPClient(x))
	defer func() { _ = stream.Close() }()
	for stream.Next() {
		chunk := stream.Current()
		count(&x.input, chunk.Usage.PromptTokens)
		count(&x.output, chunk.Usage.CompletionTokens)
		if len(chunk.Choices) == 0 {
			continue // the last chunk has only the usage
		}
		choice := chunk.Choices[0]
		if err := x.add(choice.Delta.Content + choice.Delta.Refusal); err != nil {
			return err
		}
		if choice.FinishReason != "" {
			x.ended, x.cut, x.filtered = true, choice.FinishReason == "length", choice.FinishReason == "content_filter"
		}
	}
	return stream.Err()
}
