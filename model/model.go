// Package model sends conversations to language models, with tools that they may call, and returns the next turn, in pieces as it arrives. It uses only
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
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// Model continues a conversation. Any number of goroutines may share one.
type Model interface {
	// Complete returns the next turn. It calls onPiece, which may be nil, with each piece as it arrives, on the caller's goroutine.
	// If there is an error, the reply is the part that came before it.
	Complete(ctx context.Context, c Conversation, onPiece func(Piece)) (Reply, error)
}

// Conversation is the input of a model.
type Conversation struct {
	// System is the system prompt.
	System string
	// Turns alternate, and begin and end with a turn of the user.
	Turns []Turn
	// Tools are what the model may call. Their names are unique.
	Tools []Tool
	// Choice says whether the model must call one. Default: [Auto].
	Choice Choice
	// Output is a JSON schema for the text of the reply. Servers differ in what they support, and none of them is trusted: check the text. Default: any text.
	Output json.RawMessage
	// MaxTokens bounds the tokens of the reply if it is less than the model's own limit. 0 means no additional limit.
	MaxTokens int
}

// Turn is one message of a conversation. Its parts are sent in the order of the fields.
type Turn struct {
	Role Role
	// Results answer all calls of the turn before. Only the user has them.
	Results []Result
	// Thoughts are what the model thought before it said something. Only the assistant has them. They go back to the server that they came from, and to no other.
	Thoughts []Thought
	Text     string
	// Images are shown by the user.
	Images []Image
	// Calls are those that the assistant wants.
	Calls []Call
}

// Role is a side of a conversation.
type Role string

// The sides, by their names in the protocols.
const (
	User      Role = "user"
	Assistant Role = "assistant"
)

// Tool is a function that the model may call.
type Tool struct {
	// Name has 1 to 64 letters, digits, "_" and "-".
	Name        string
	Description string
	// Input is the JSON schema of the input, of an object.
	Input json.RawMessage
}

// Choice says whether a model must call a tool.
type Choice string

// The choices.
const (
	// Auto leaves it to the model.
	Auto Choice = ""
	// Some has the model call at least one tool.
	Some Choice = "some"
	// None has the model call none.
	None Choice = "none"
)

// Call is a call of a tool that the model wants. All of it is hostile.
type Call struct {
	// ID is how the result names the call. It is unique in the turn.
	ID   string
	Name string
	// Input is JSON, unless the model wrote something else: then it is nil.
	Input json.RawMessage
	// Malformed is what the model wrote instead of JSON.
	Malformed string
}

// Result is what a call came to.
type Result struct {
	// ID is that of the call.
	ID     string
	Text   string
	Images []Image
	// Failed says that the text is an error.
	Failed bool
}

// Image is a picture.
type Image struct {
	// Type is its media type, e.g. "image/png".
	Type string
	Data []byte
}

// Thought is something that the model thought. Its text may be empty, and is hostile.
type Thought struct {
	Text string
	// Signature is what the server wants back with the text.
	Signature string
	// Sealed is a thought that only the server can read.
	Sealed string
}

// Piece is a part of a reply as it arrives: one of Text, Thought and Input. All of it is hostile.
type Piece struct {
	Text    string
	Thought string
	// Call counts the calls of the reply from 1, and Name is the tool's. The first piece of a call has no Input.
	Call        int
	Name, Input string
}

// Reply is a turn of the model. All of it is hostile.
type Reply struct {
	Thoughts []Thought
	Text     string
	Calls    []Call
	// Cut is set if a limit of tokens ended the reply before the model did. The last call is Malformed if it was cut.
	Cut    bool
	Tokens Tokens
}

// Turn returns the turn with which a conversation goes on after the reply.
func (r Reply) Turn() Turn {
	return Turn{Role: Assistant, Thoughts: r.Thoughts, Text: r.Text, Calls: r.Calls}
}

// Tokens counts the tokens that a conversation used.
type Tokens struct {
	Input  int `json:"input"`
	Output int `json:"output"`
	// Cached is the part of Input that the server had from a request before, at a lower price.
	Cached int `json:"cached,omitempty"`
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
	return Tokens{t.Input + u.Input, t.Output + u.Output, t.Cached + u.Cached, t.Estimated || u.Estimated}
}

// estimate guesses the tokens of a text. The guess is usually too high rather than too low.
func estimate(text string) int { return len(text)/3 + 1 }

// imageTokens is what an image may take.
const imageTokens = 1600

// Estimate guesses the tokens of the whole conversation so far.
func (c Conversation) Estimate() int {
	sum := estimate(c.System) + estimate(string(c.Output))
	for _, t := range c.Tools {
		sum += estimate(t.Name+t.Description) + estimate(string(t.Input))
	}
	for _, t := range c.Turns {
		sum += t.estimate()
	}
	return sum
}

func (t Turn) estimate() int {
	sum := estimate(t.Text) + imageTokens*len(t.Images)
	for _, r := range t.Results {
		sum += estimate(r.ID+r.Text) + imageTokens*len(r.Images)
	}
	for _, h := range t.Thoughts {
		sum += estimate(h.Text + h.Signature + h.Sealed)
	}
	for _, c := range t.Calls {
		sum += estimate(c.ID+c.Name+c.Malformed) + estimate(string(c.Input))
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
