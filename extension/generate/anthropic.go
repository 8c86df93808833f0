package generate

import (
	"context"

	"github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/option"
)

// Anthropic returns a model behind an API that speaks the messages protocol. An error is an *[OptionsError].
func Anthropic(o ModelOptions) (Model, error) {
	o, err := o.or("https://api.anthropic.com")
	if err != nil {
		return nil, err
	}
	settings := []option.RequestOption{option.WithBaseURL(o.BaseURL), option.WithMaxRetries(0)}
	if o.Key != "" {
		settings = append(settings, option.WithAPIKey(o.Key))
	}
	// The service by itself, unlike the vendor's client around it, reads no environment.
	return &messages{newAPI(o), anthropic.NewMessageService(settings...)}, nil
}

type messages struct {
	*api
	service anthropic.MessageService
}

// Complete implements [Model].
func (m *messages) Complete(ctx context.Context, c Conversation, onText func(string)) (Reply, error) {
	params := anthropic.MessageNewParams{
		Model:     anthropic.Model(m.options.Model),
		System:    []anthropic.TextBlockParam{{Text: c.System}},
		MaxTokens: m.limit(c),
	}
	if *m.options.Temperature >= 0 {
		params.Temperature = anthropic.Float(*m.options.Temperature)
	}
	for _, t := range c.Turns {
		block := anthropic.NewTextBlock(t.Text)
		if t.Role == Assistant {
			params.Messages = append(params.Messages, anthropic.NewAssistantMessage(block))
		} else {
			params.Messages = append(params.Messages, anthropic.NewUserMessage(block))
		}
	}
	return m.complete(ctx, c, onText, func(ctx context.Context, x *exchange) error {
		stream := m.service.NewStreaming(ctx, params, option.WithHTTPClient(x))
		defer func() { _ = stream.Close() }()
		for stream.Next() {
			switch e := stream.Current().AsAny().(type) {
			case anthropic.MessageStartEvent:
				u := e.Message.Usage
				count(&x.input, u.InputTokens+u.CacheCreationInputTokens+u.CacheReadInputTokens)
				count(&x.output, u.OutputTokens)
			case anthropic.ContentBlockDeltaEvent:
				if err := x.add(e.Delta.Text); err != nil { // empty for thoughts
					return err
				}
			case anthropic.MessageDeltaEvent:
				count(&x.output, e.Usage.OutputTokens)
				reason := e.Delta.StopReason
				x.cut = reason == anthropic.StopReasonMaxTokens || reason == anthropic.StopReasonModelContextWindowExceeded
				x.filtered = reason == anthropic.StopReasonRefusal
			case anthropic.MessageStopEvent:
				x.ended = true
				return nil // whatever the server does with the connection
			}
		}
		return stream.Err()
	})
}
