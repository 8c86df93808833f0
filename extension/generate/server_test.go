package generate_test

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

	"github.com/stilehost/stile/extension/generate"
)

const testKey = "sk-test/4711+geheim"

// protocol is one of those that the scripted server speaks.
type protocol struct {
	name    string
	open    func(generate.ModelOptions) (generate.Model, error)
	base    string // path of the base URL
	path    string
	limit   string // name of the field with the most tokens
	keyed   func(http.Header) bool
	content func(text string) string // events that carry a piece of text
	start   string                   // events before the first piece
	stop    func(reason string, usage bool) string
	cut     string // the reason of a reply that a limit ended
	fault   func(message string) string
}

func event(kind, format string, args ...any) string {
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

const chunk = `{"id":"chatcmpl-1","object":"chat.completion.chunk","created":1700000000,"model":"scripted",`

var protocols = []protocol{
	{
		name: "openai", open: generate.OpenAI, base: "/v1", path: "/v1/chat/completions", limit: "max_completion_tokens", cut: "length",
		keyed: func(h http.Header) bool { return h.Get("Authorization") == "Bearer "+testKey },
		start: event("", chunk+`"choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}]}`),
		content: func(text string) string {
			return event("", chunk+`"choices":[{"index":0,"delta":{"content":%s},"finish_reason":null}],"usage":null}`, quoted(text))
		},
		stop: func(reason string, usage bool) string {
			end := event("", chunk+`"choices":[{"index":0,"delta":{},"finish_reason":%q}]}`, reason)
			if usage {
				end += event("", chunk+`"choices":[],"usage":{"prompt_tokens":1200,"completion_tokens":34,"total_tokens":1234}}`)
			}
			return end + "data: [DONE]\n\n"
		},
		fault: func(message string) string {
			return event("", `{"error":{"message":%s,"type":"server_error"}}`, quoted(message))
		},
	},
	{
		name: "anthropic", open: generate.Anthropic, path: "/v1/messages", limit: "max_tokens", cut: "max_tokens",
		keyed: func(h http.Header) bool { return h.Get("X-Api-Key") == testKey },
		start: event("message_start", `{"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","model":"scripted","content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":1000,"cache_read_input_tokens":200,"output_tokens":1}}}`) +
			event("content_block_start", `{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}`) +
			event("ping", `{"type":"ping"}`),
		content: func(text string) string {
			return event("content_block_delta", `{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":%s}}`, quoted(text))
		},
		stop: func(reason string, usage bool) string {
			counted := ""
			if usage {
				counted = `,"usage":{"output_tokens":34}`
			}
			return event("content_block_stop", `{"type":"content_block_stop","index":0}`) +
				event("message_delta", `{"type":"message_delta","delta":{"stop_reason":%q,"stop_sequence":null}%s}`, reason, counted) +
				event("message_stop", `{"type":"message_stop"}`)
		},
		fault: func(message string) string {
			return event("error", `{"type":"error","error":{"type":"overloaded_error","message":%s}}`, quoted(message))
		},
	},
}

// normal is the reason of a reply that the model ended.
func (p protocol) normal() string {
	return map[string]string{"openai": "stop", "anthropic": "end_turn"}[p.name]
}

// stream answers with events.
func stream(events ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
		for _, e := range events {
			_, _ = io.WriteString(w, e)
			w.(http.Flusher).Flush()
		}
	}
}

// reply answers with a text in small pieces, as a model does.
func (p protocol) reply(text string) http.HandlerFunc {
	return stream(append(p.pieces(text), p.stop(p.normal(), true))...)
}

func (p protocol) pieces(text string) []string {
	events := []string{p.start}
	for runes := []rune(text); len(runes) > 0; {
		n := min(len(runes), 97)
		events = append(events, p.content(string(runes[:n])))
		runes = runes[n:]
	}
	return events
}

// refuse answers with a status.
func refuse(status int, body string, headers ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		for i := 0; i < len(headers); i += 2 {
			w.Header().Set(headers[i], headers[i+1])
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

// scripted is a server that answers each request with the next step of its script, and the last step from then on.
type scripted struct {
	*httptest.Server
	mu       sync.Mutex
	requests []request
}

// request is what the server was asked.
type request struct {
	path   string
	header http.Header
	body   map[string]any
}

// askedKey has a step of a script find what was asked.
type askedKey struct{}

func serve(t *testing.T, script ...http.HandlerFunc) *scripted {
	t.Helper()
	s := newScripted(t, script)
	s.Start()
	return s
}

// serveInBubble is serve for a test of synctest, whose clock stands still while anything is at work: connections are in memory.
func serveInBubble(t *testing.T, script ...http.HandlerFunc) *scripted {
	t.Helper()
	s := newScripted(t, script)
	p := &pipes{made: make(chan net.Conn), closed: make(chan struct{})}
	_ = s.Listener.Close() // that of the machine
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

func newScripted(t *testing.T, script []http.HandlerFunc) *scripted {
	t.Helper()
	s := &scripted{}
	s.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked := request{path: r.URL.Path, header: r.Header.Clone()}
		body, err := io.ReadAll(r.Body)
		if err == nil {
			err = json.Unmarshal(body, &asked.body)
		}
		if err != nil {
			t.Errorf("request body: %v", err)
		}
		s.mu.Lock()
		step := script[min(len(s.requests), len(script)-1)]
		s.requests = append(s.requests, asked)
		s.mu.Unlock()
		step(w, r.WithContext(context.WithValue(r.Context(), askedKey{}, asked.body)))
	}))
	t.Cleanup(s.Close)
	return s
}

func (s *scripted) asked() []request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.requests
}

// open returns the model behind the server.
func (p protocol) model(t *testing.T, s *scripted, o generate.ModelOptions) generate.Model {
	t.Helper()
	o.BaseURL, o.Key, o.Model = s.URL+p.base, testKey, "scripted"
	if o.HTTPClient == nil {
		o.HTTPClient = s.Client()
	}
	m, err := p.open(o)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// said are the texts of a request's turns, the system's first.
func (r request) said() []string {
	var all []string
	if system, ok := r.body["system"]; ok {
		all = append(all, textOf(system))
	}
	messages, _ := r.body["messages"].([]any)
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
