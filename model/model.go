// Package model sends conversations to language models and returns the next turn, in pieces as it arrives. It uses only
// net/http, and speaks the protocols of Anthropic and OpenAI, which most other servers understand too.
//
//	m, err := model.OpenAI(model.Options{BaseURL: "http://127.0.0.1:11434/v1", Model: "qwen3"})
//	reply, err := m.Complete(ctx, model.Conversation{Turns: []model.Turn{{Role: model.User, Text: "Hello?"}}}, nil)
//
// It treats answers as hostile: the length and duration of a reply are bounded, redirects are not followed, and errors are *[Error],
// printable and without the key.
package model

import (
	"context"
	"fmt"
	"math"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// Model continues a conversation. Any number of goroutines may share one.
type Model interface {
	// Complete returns the next turn. It calls onText, which may be nil, with each piece as it arrives, on the caller's goroutine.
	// If there is an error, the reply is the part that came before it.
	Complete(ctx context.Context, c Conversation, onText func(piece string)) (Reply, error)
}

// Conversation is the input of a model.
type Conversation struct {
	// System is the system prompt.
	System string
	// Turns alternate, and begin and end with a turn of the user.
	Turns []Turn
	// MaxTokens bounds the tokens of the reply if it is less than the model's own limit. 0 means no additional limit.
	MaxTokens int
}

// Turn is one message of a conversation.
type Turn struct {
	Role Role
	Text string
}

// Role is a side of a conversation.
type Role string

// The sides, by their names in the protocols.
const (
	User      Role = "user"
	Assistant Role = "assistant"
)

// Reply is a turn of the model. Its text is hostile.
type Reply struct {
	Text string
	// Cut is set if a limit of tokens ended the text before the model did.
	Cut    bool
	Tokens Tokens
}

// Tokens counts the tokens that a conversation used.
type Tokens struct {
	Input  int `json:"input"`
	Output int `json:"output"`
	// Estimated is set if the API did not count a part, and its number was guessed from the length of texts.
	Estimated bool `json:"estimated,omitempty"`
}

// String returns, for example, "1200 in, 34 out".
func (t Tokens) String() string {
	text := fmt.Sprintf("%d in, %d out", t.Input, t.Output)
	if t.Estimated {
		text = "about " + text
	}
	return text
}

// Total is the sum of both directions.
func (t Tokens) Total() int { return t.Input + t.Output }

// Plus returns the sum with u.
func (t Tokens) Plus(u Tokens) Tokens {
	return Tokens{t.Input + u.Input, t.Output + u.Output, t.Estimated || u.Estimated}
}

// estimate guesses the tokens of a text. The guess is usually too high rather than too low.
func estimate(text string) int { return len(text)/3 + 1 }

// Estimate guesses the tokens of the whole conversation so far.
func (c Conversation) Estimate() int {
	sum := estimate(c.System)
	for _, t := range c.Turns {
		sum += estimate(t.Text)
	}
	return sum
}

// Options say where a model is and how to ask it. Nothing comes from the environment.
type Options struct {
	// BaseURL is the start of the API's addresses, e.g. "http://127.0.0.1:11434/v1". Default: the vendor's own.
	BaseURL string
	// Key authenticates the requests. It is sent only to the origin of BaseURL, and removed from every error. Default: none.
	Key string `json:"-"`
	// Redact removes the key from what a server says, before that becomes an error. It is required with Key. The Redact of
	// secret.NewRedactor(key) does it.
	Redact func(text string) string `json:"-"`
	// Model is the model's name. It is required.
	Model string
	// Temperature is between 0 and 2. Default 0.2. A negative one is not sent, for models that accept none.
	Temperature *float64
	// MaxTokens bounds the tokens of a reply. Default 16,384.
	MaxTokens int
	// Timeout bounds one reply, including all attempts. Default 5 minutes.
	Timeout time.Duration
	// HTTPClient sends the requests. Redirects are never followed. Default: a client of its own that uses no proxy.
	HTTPClient *http.Client `json:"-"`
}

// String leaves out the key, so that it does not appear in logs.
func (o Options) String() string { return fmt.Sprintf("model %q at %q", o.Model, o.BaseURL) }

// GoString leaves out the key too.
func (o Options) GoString() string { return o.String() }

func (o Options) redact(text string) string {
	if o.Redact == nil {
		return text
	}
	return o.Redact(text)
}

// Defaults of Options.
const (
	DefaultTemperature = 0.2
	DefaultMaxTokens   = 16 << 10
	DefaultTimeout     = 5 * time.Minute
)

// or fills in defaults, and reports options that cannot work.
func (o Options) or(baseURL string) (Options, error) {
	if o.BaseURL == "" {
		o.BaseURL = baseURL
	}
	base, err := url.Parse(o.BaseURL)
	switch {
	case err != nil:
		return o, &OptionsError{"BaseURL", "it is not a URL"} // the parser's error quotes the URL, passwords included
	case base.Scheme != "https" && base.Scheme != "http" || base.Host == "":
		return o, &OptionsError{"BaseURL", `write one like "https://api.example.com/v1"`}
	case base.User != nil || base.RawQuery != "" || base.Fragment != "":
		return o, &OptionsError{"BaseURL", "it must not have a user, a query or a fragment; give the key in its own option"}
	case strings.TrimSpace(o.Model) == "":
		return o, &OptionsError{"Model", "a name is required"}
	case strings.ContainsFunc(o.Key, func(c rune) bool { return c <= ' ' || c >= 0x7f }):
		return o, &OptionsError{"Key", "it holds a space or a character that no header can have"}
	case o.Key != "" && o.Redact == nil:
		return o, &OptionsError{"Redact", "it is required with a key, because a server may repeat the key"}
	case o.Temperature != nil && (math.IsNaN(*o.Temperature) || *o.Temperature > 2):
		return o, &OptionsError{"Temperature", "it must be a number between 0 and 2, or negative for none"}
	case o.MaxTokens < 0 || o.Timeout < 0:
		return o, &OptionsError{"MaxTokens, Timeout", "they must be positive, or 0 for the default"}
	}
	if o.Temperature == nil {
		temperature := DefaultTemperature
		o.Temperature = &temperature
	}
	if o.MaxTokens == 0 {
		o.MaxTokens = DefaultMaxTokens
	}
	if o.Timeout == 0 {
		o.Timeout = DefaultTimeout
	}
	return o, nil
}

// OptionsError reports an option that cannot work.
type OptionsError struct{ Option, Reason string }

// Error implements error.
func (e *OptionsError) Error() string { return fmt.Sprintf("option %s: %s", e.Option, e.Reason) }
