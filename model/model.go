// Package model asks language models: a conversation goes in, and the next turn comes out, in pieces as it arrives. It
// speaks the protocols of Anthropic and OpenAI, which most other servers speak too, with net/http alone.
//
//	m, err := model.OpenAI(model.Options{BaseURL: "http://127.0.0.1:11434/v1", Model: "qwen3"})
//	reply, err := m.Complete(ctx, model.Conversation{Turns: []model.Turn{{Role: model.User, Text: "Hello?"}}}, nil)
//
// What a server sends is hostile: length and time of a reply are bounded, redirects are not followed, and errors are *[Error], printable and
// without the key.
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
	// Complete returns the next turn. onText, which may be nil, is called with every piece of it as it arrives, on the
	// goroutine of the caller. With an error, the reply is what came before it.
	Complete(ctx context.Context, c Conversation, onText func(piece string)) (Reply, error)
}

// Conversation is what a model is asked to continue.
type Conversation struct {
	// System is what the model is told before all else.
	System string
	// Turns begin and end with one of the user, and alternate.
	Turns []Turn
	// MaxTokens is the most tokens of the reply, where that is less than the model's own limit; 0 is no limit of its own.
	MaxTokens int
}

// Turn is what one side said.
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

// Reply is a turn of the model: hostile text.
type Reply struct {
	Text string
	// Cut says that a limit of tokens ended the text before the model did.
	Cut    bool
	Tokens Tokens
}

// Tokens are what a conversation cost.
type Tokens struct {
	Input  int `json:"input"`
	Output int `json:"output"`
	// Estimated says that a part was not counted by the API but guessed from the length of texts.
	Estimated bool `json:"estimated,omitempty"`
}

// String is e.g. "1200 in, 34 out".
func (t Tokens) String() string {
	text := fmt.Sprintf("%d in, %d out", t.Input, t.Output)
	if t.Estimated {
		text = "about " + text
	}
	return text
}

// Total is the sum of both directions.
func (t Tokens) Total() int { return t.Input + t.Output }

// Plus is the sum with u.
func (t Tokens) Plus(u Tokens) Tokens {
	return Tokens{t.Input + u.Input, t.Output + u.Output, t.Estimated || u.Estimated}
}

// estimate guesses the tokens of a text, of which a few too many do less harm than too few.
func estimate(text string) int { return len(text)/3 + 1 }

// Estimate guesses the tokens of all that is said so far.
func (c Conversation) Estimate() int {
	sum := estimate(c.System)
	for _, t := range c.Turns {
		sum += estimate(t.Text)
	}
	return sum
}

// Options say where a model is and how it is asked. Nothing is taken from the environment.
type Options struct {
	// BaseURL is what the paths of the API are added to, e.g. "http://127.0.0.1:11434/v1". Default: the vendor's own.
	BaseURL string
	// Key authenticates. It is sent to the origin of BaseURL only, and taken out of every error. Empty: none is sent.
	Key string `json:"-"`
	// Redact takes the key out of what a server says, before it becomes an error. It is needed with Key; the Redact of
	// secret.NewRedactor(key) is one.
	Redact func(text string) string `json:"-"`
	// Model is the model's name. It is needed.
	Model string
	// Temperature is between 0 and 2. Default 0.2. A negative one is not sent, for models that take none.
	Temperature *float64
	// MaxTokens is the most tokens of a reply. Default 16,384.
	MaxTokens int
	// Timeout bounds one reply with all attempts at it. Default 5 minutes.
	Timeout time.Duration
	// HTTPClient sends the requests; redirects are never followed. Default: one of its own that uses no proxy.
	HTTPClient *http.Client `json:"-"`
}

// String leaves out the key, so that no log has it.
func (o Options) String() string { return fmt.Sprintf("model %q at %q", o.Model, o.BaseURL) }

// GoString leaves out the key too.
func (o Options) GoString() string { return o.String() }

func (o Options) redact(text string) string {
	if o.Redact == nil {
		return text
	}
	return o.Redact(text)
}

const (
	defaultTemperature = 0.2
	defaultMaxTokens   = 16 << 10
	defaultTimeout     = 5 * time.Minute
)

// or fills in defaults, and says what cannot work.
func (o Options) or(baseURL string) (Options, error) {
	if o.BaseURL == "" {
		o.BaseURL = baseURL
	}
	base, err := url.Parse(o.BaseURL)
	switch {
	case err != nil:
		return o, &OptionsError{"BaseURL", "it is not a URL"} // the parser's own words quote it, with passwords in it
	case base.Scheme != "https" && base.Scheme != "http" || base.Host == "":
		return o, &OptionsError{"BaseURL", `write one like "https://api.example.com/v1"`}
	case base.User != nil || base.RawQuery != "" || base.Fragment != "":
		return o, &OptionsError{"BaseURL", "a user, a query or a fragment has no place in it; the key is an option of its own"}
	case strings.TrimSpace(o.Model) == "":
		return o, &OptionsError{"Model", "a name is needed"}
	case strings.ContainsFunc(o.Key, func(c rune) bool { return c <= ' ' || c >= 0x7f }):
		return o, &OptionsError{"Key", "it holds a space or a character that no header can have"}
	case o.Key != "" && o.Redact == nil:
		return o, &OptionsError{"Redact", "it is needed with a key, which a server may repeat"}
	case o.Temperature != nil && (math.IsNaN(*o.Temperature) || *o.Temperature > 2):
		return o, &OptionsError{"Temperature", "it is a number between 0 and 2, or negative for none"}
	case o.MaxTokens < 0 || o.Timeout < 0:
		return o, &OptionsError{"MaxTokens, Timeout", "they are positive, or 0 for the default"}
	}
	if o.Temperature == nil {
		temperature := defaultTemperature
		o.Temperature = &temperature
	}
	if o.MaxTokens == 0 {
		o.MaxTokens = defaultMaxTokens
	}
	if o.Timeout == 0 {
		o.Timeout = defaultTimeout
	}
	return o, nil
}

// OptionsError is an option that cannot work.
type OptionsError struct{ Option, Reason string }

// Error implements error.
func (e *OptionsError) Error() string { return fmt.Sprintf("option %s: %s", e.Option, e.Reason) }
