// Package modeltest has scripted model servers for tests, for each protocol.
package modeltest

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/stilehost/stile/model"
	"github.com/stilehost/stile/secret"
)

// Key is the key of [Protocol.Model].
const Key = "sk-test/4711+geheim"

// Protocol is a protocol that the scripted server speaks.
type Protocol struct {
	Name    string
	Open    func(model.Options) (model.Model, error)
	Base    string // path of the base URL
	Path    string
	Limit   string // name of the field with the most tokens
	Keyed   func(http.Header) bool
	Content func(text string) string                                 // events that carry a piece of text
	Start   string                                                   // events before the first piece
	Call    func(index int, id, name string, input ...string) string // events of a call, whose input comes in pieces
	Think   func(pieces ...string) string                            // events of a thought
	Stop    func(reason string, usage bool) string
	Cut     string // the reason of a reply that a limit ended
	Fault   func(message string) string
}

// Event is a server-sent event.
func Event(kind, format string, args ...any) string {
	if kind != "" {
		kind = "event: " + kind + "\n"
	}
	return kind + "data: " + fmt.Sprintf(format, args...) + "\n\n"
}

func quoted(text string) string {
	b, err := json.Marshal(text)
	if err != nil {
		panic(err)
	}
	return string(b)
}

// events has an event for each piece, which it gets quoted.
func events(pieces []string, event func(piece string) string) string {
	var all strings.Builder
	for _, piece := range pieces {
		all.WriteString(event(quoted(piece)))
	}
	return all.String()
}

// Chunk begins a chunk of the chat completions protocol.
const Chunk = `{"id":"chatcmpl-1","object":"chat.completion.chunk","created":1700000000,"model":"scripted",`

// Protocols are all protocols.
var Protocols = []Protocol{
	{
		Name: "openai", Open: model.OpenAI, Base: "/v1", Path: "/v1/chat/completions", Limit: "max_completion_tokens", Cut: "length",
		Keyed: func(h http.Header) bool { return h.Get("Authorization") == "Bearer "+Key },
		Start: Event("", Chunk+`"choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}]}`),
		Content: func(text string) string {
			return Event("", Chunk+`"choices":[{"index":0,"delta":{"content":%s},"finish_reason":null}],"usage":null}`, quoted(text))
		},
		Call: func(index int, id, name string, input ...string) string {
			return Event("", Chunk+`"choices":[{"index":0,"delta":{"tool_calls":[{"index":%d,"id":%s,"type":"function","function":{"name":%s,"arguments":""}}]},"finish_reason":null}]}`, index, quoted(id), quoted(name)) +
				events(input, func(piece string) string {
					return Event("", Chunk+`"choices":[{"index":0,"delta":{"tool_calls":[{"index":%d,"function":{"arguments":%s}}]},"finish_reason":null}]}`, index, piece)
				})
		},
		Think: func(pieces ...string) string {
			return events(pieces, func(piece string) string {
				return Event("", Chunk+`"choices":[{"index":0,"delta":{"reasoning_content":%s},"finish_reason":null}]}`, piece)
			})
		},
		Stop: func(reason string, usage bool) string {
			end := Event("", Chunk+`"choices":[{"index":0,"delta":{},"finish_reason":%q}]}`, reason)
			if usage {
				end += Event("", Chunk+`"choices":[],"usage":{"prompt_tokens":1200,"completion_tokens":34,"total_tokens":1234,"prompt_tokens_details":{"cached_tokens":200}}}`)
			}
			return end + "data: [DONE]\n\n"
		},
		Fault: func(message string) string {
			return Event("", `{"error":{"message":%s,"type":"server_error"}}`, quoted(message))
		},
	},
	{
		Name: "anthropic", Open: model.Anthropic, Path: "/v1/messages", Limit: "max_tokens", Cut: "max_tokens",
		Keyed: func(h http.Header) bool { return h.Get("X-Api-Key") == Key },
		Start: Event("message_start", `{"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","model":"scripted","content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":1000,"cache_read_input_tokens":200,"output_tokens":1}}}`) +
			Event("content_block_start", `{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}`) +
			Event("ping", `{"type":"ping"}`),
		Content: func(text string) string {
			return Event("content_block_delta", `{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":%s}}`, quoted(text))
		},
		Call: func(index int, id, name string, input ...string) string {
			return Event("content_block_start", `{"type":"content_block_start","index":%d,"content_block":{"type":"tool_use","id":%s,"name":%s,"input":{}}}`, index+1, quoted(id), quoted(name)) +
				events(input, func(piece string) string {
					return Event("content_block_delta", `{"type":"content_block_delta","index":%d,"delta":{"type":"input_json_delta","partial_json":%s}}`, index+1, piece)
				}) + Event("content_block_stop", `{"type":"content_block_stop","index":%d}`, index+1)
		},
		Think: func(pieces ...string) string {
			return Event("content_block_start", `{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"","signature":""}}`) +
				events(pieces, func(piece string) string {
					return Event("content_block_delta", `{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":%s}}`, piece)
				}) + Event("content_block_delta", `{"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"sig=="}}`) +
				Event("content_block_stop", `{"type":"content_block_stop","index":0}`)
		},
		Stop: func(reason string, usage bool) string {
			counted := ""
			if usage {
				counted = `,"usage":{"output_tokens":34}`
			}
			return Event("content_block_stop", `{"type":"content_block_stop","index":0}`) +
				Event("message_delta", `{"type":"message_delta","delta":{"stop_reason":%q,"stop_sequence":null}%s}`, reason, counted) +
				Event("message_stop", `{"type":"message_stop"}`)
		},
		Fault: func(message string) string {
			return Event("error", `{"type":"error","error":{"type":"overloaded_error","message":%s}}`, quoted(message))
		},
	},
}

// Normal is the reason of a reply that the model ended.
func (p Protocol) Normal() string {
	return map[string]string{"openai": "stop", "anthropic": "end_turn"}[p.Name]
}

// Stream answers with events.
func Stream(events ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
		for _, e := range events {
			_, _ = io.WriteString(w, e)
			w.(http.Flusher).Flush()
		}
	}
}

// Reply answers with a text in small pieces, as a model does.
func (p Protocol) Reply(text string) http.HandlerFunc {
	return Stream(append(p.Pieces(text), p.Stop(p.Normal(), true))...)
}

// Pieces are the events of a text, without those that end it.
func (p Protocol) Pieces(text string) []string {
	events := []string{p.Start}
	for runes := []rune(text); len(runes) > 0; {
		n := min(len(runes), 97)
		events = append(events, p.Content(string(runes[:n])))
		runes = runes[n:]
	}
	return events
}

// Refuse answers with a status.
func Refuse(status int, body string, headers ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		for i := 0; i < len(headers); i += 2 {
			w.Header().Set(headers[i], headers[i+1])
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

// Server is a server that answers each request with the next step of its script, and the last step from then on.
type Server struct {
	*httptest.Server
	mu       sync.Mutex
	requests []Request
}

// Request is a request that the server received.
type Request struct {
	Path   string
	Header http.Header
	Body   map[string]any
}

type askedKey struct{}

// AskedBody returns the body of the request that a step of a script answers.
func AskedBody(r *http.Request) map[string]any {
	body, _ := r.Context().Value(askedKey{}).(map[string]any)
	return body
}

// Serve starts a server that ends with the test.
func Serve(t *testing.T, script ...http.HandlerFunc) *Server {
	t.Helper()
	s := newScripted(t, script)
	s.Start()
	return s
}

// ServeInBubble is [Serve] for a test of synctest, whose clock stands still while anything is at work: connections are in memory.
func ServeInBubble(t *testing.T, script ...http.HandlerFunc) *Server {
	t.Helper()
	s := newScripted(t, script)
	p := &pipes{made: make(chan net.Conn), closed: make(chan struct{})}
	_ = s.Listener.Close() // the machine's listener
	s.Listener = p
	s.Start()
	transport := &http.Transport{DialContext: p.dial}
	t.Cleanup(transport.CloseIdleConnections)
	s.Client().Transport = transport
	return s
}

// pipes listens for connections in memory.
type pipes struct {
	made   chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func (p *pipes) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	here, there := net.Pipe()
	select {
	case p.made <- there:
		return here, nil
	case <-p.closed:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Accept implements net.Listener.
func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.made:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener.
func (p *pipes) Close() error {
	p.once.Do(func() { close(p.closed) })
	return nil
}

// Addr implements net.Listener.
func (*pipes) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 1} }

func newScripted(t *testing.T, script []http.HandlerFunc) *Server {
	t.Helper()
	s := &Server{}
	s.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked := Request{Path: r.URL.Path, Header: r.Header.Clone()}
		body, err := io.ReadAll(r.Body)
		if err == nil {
			err = json.Unmarshal(body, &asked.Body)
		}
		if err != nil {
			t.Errorf("request body: %v", err)
		}
		s.mu.Lock()
		step := script[min(len(s.requests), len(script)-1)]
		s.requests = append(s.requests, asked)
		s.mu.Unlock()
		step(w, r.WithContext(context.WithValue(r.Context(), askedKey{}, asked.Body)))
	}))
	t.Cleanup(s.Close)
	return s
}

// Asked returns all requests so far.
func (s *Server) Asked() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.requests
}

// Model returns the model behind a server.
func (p Protocol) Model(t *testing.T, s *Server, o model.Options) model.Model {
	t.Helper()
	o.BaseURL, o.Key, o.Redact, o.Model = s.URL+p.Base, Key, secret.NewRedactor(Key).Redact, "scripted"
	if o.HTTPClient == nil {
		o.HTTPClient = s.Client()
	}
	m, err := p.Open(o)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// Said returns the texts of a request's turns, the system's first.
func (r Request) Said() []string {
	var all []string
	if system, ok := r.Body["system"]; ok {
		all = append(all, textOf(system))
	}
	messages, _ := r.Body["messages"].([]any)
	for _, m := range messages {
		turn, _ := m.(map[string]any)
		all = append(all, textOf(turn["content"]))
	}
	return all
}

// textOf reads content in either of its forms: text, or a list of blocks of text.
func textOf(content any) string {
	list, ok := content.([]any)
	if !ok {
		text, _ := content.(string)
		return text
	}
	var b strings.Builder
	for _, item := range list {
		block, _ := item.(map[string]any)
		text, _ := block["text"].(string)
		b.WriteString(text)
	}
	return b.String()
}
