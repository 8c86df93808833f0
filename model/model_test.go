package model_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stilehost/stile/model"
	"github.com/stilehost/stile/model/modeltest"
	"github.com/stilehost/stile/secret"
)

var hello = model.Conversation{System: "Be brief.", Turns: []model.Turn{{Role: model.User, Text: "Hello?"}, {Role: model.Assistant, Text: "Yes?"}, {Role: model.User, Text: "Go on."}}}

func TestComplete(t *testing.T) {
	// What the vendors' own clients take from the environment must not count.
	for _, name := range []string{"OPENAI_API_KEY", "OPENAI_ORG_ID", "OPENAI_PROJECT_ID", "ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN"} {
		t.Setenv(name, "ambient")
	}
	t.Setenv("OPENAI_BASE_URL", "http://127.0.0.1:1/")
	t.Setenv("ANTHROPIC_BASE_URL", "http://127.0.0.1:1/")
	t.Setenv("OPENAI_CUSTOM_HEADERS", "X-Extra: ambient")
	t.Setenv("ANTHROPIC_CUSTOM_HEADERS", "X-Extra: ambient")

	const text = "Grüße, \"world\"\n```ts\n☃ and then some more words, so that there are several pieces, as there always are with models that stream\n```"
	for _, p := range modeltest.Protocols {
		t.Run(p.Name, func(t *testing.T) {
			s := modeltest.Serve(t, p.Reply(text))
			var pieces []string
			got, err := p.Model(t, s, model.Options{}).Complete(t.Context(), hello, func(piece model.Piece) { pieces = append(pieces, piece.Text) })
			if err != nil {
				t.Fatal(err)
			}
			if want := (model.Reply{Text: text, Tokens: model.Tokens{Input: 1200, Output: 34, Cached: 200}}); !reflect.DeepEqual(got, want) {
				t.Errorf("got %+v, want %+v", got, want)
			}
			if strings.Join(pieces, "") != text || len(pieces) < 2 {
				t.Errorf("pieces are %q", pieces)
			}
			asked := s.Asked()[0]
			if asked.Path != p.Path || !p.Keyed(asked.Header) {
				t.Errorf("asked %s with %v", asked.Path, asked.Header)
			}
			if header := fmt.Sprint(asked.Header); strings.Contains(header, "ambient") {
				t.Errorf("the environment is in the header: %s", header)
			}
			b := asked.Body
			if b["model"] != "scripted" || b["stream"] != true || b["temperature"] != 0.2 || b[p.Limit] != 16384.0 {
				t.Errorf("asked %v", b)
			}
			if said := strings.Join(asked.Said(), "|"); said != "Be brief.|Hello?|Yes?|Go on." {
				t.Errorf("said %q", said)
			}
		})
	}
}

// The system prompt and the last turn are marked, so that the server keeps what the next request begins with.
func TestCacheMarks(t *testing.T) {
	for _, p := range modeltest.Protocols {
		s := modeltest.Serve(t, p.Reply("Yes"))
		if _, err := p.Model(t, s, model.Options{}).Complete(t.Context(), hello, nil); err != nil {
			t.Fatal(err)
		}
		body, err := json.Marshal(s.Asked()[0].Body)
		if err != nil {
			t.Fatal(err)
		}
		const mark = `"cache_control":{"type":"ephemeral"}`
		n := strings.Count(string(body), mark)
		if p.Name != "anthropic" {
			if n != 0 {
				t.Errorf("%s: %d marks", p.Name, n)
			}
			continue
		}
		for _, text := range []string{"Be brief.", "Go on."} {
			if !strings.Contains(string(body), mark+`,"text":"`+text+`"`) {
				t.Errorf("%q has no mark in %s", text, body)
			}
		}
		if n != 2 {
			t.Errorf("%d marks", n)
		}
	}
}

func TestCompleteOptions(t *testing.T) {
	none, hot := -1.0, 1.5
	for _, p := range modeltest.Protocols {
		t.Run(p.Name, func(t *testing.T) {
			s := modeltest.Serve(t, p.Reply("x"))
			c := hello
			c.MaxTokens = 50
			for _, o := range []model.Options{{Temperature: &none, MaxTokens: 70}, {Temperature: &hot, MaxTokens: 30}} {
				if _, err := p.Model(t, s, o).Complete(t.Context(), c, nil); err != nil {
					t.Fatal(err)
				}
			}
			first, second := s.Asked()[0].Body, s.Asked()[1].Body
			if _, has := first["temperature"]; has || first[p.Limit] != 50.0 {
				t.Errorf("first asked %v", first)
			}
			if second["temperature"] != 1.5 || second[p.Limit] != 30.0 {
				t.Errorf("second asked %v", second)
			}
		})
	}
}

// TestOlderServer has servers that do not know the newer name of the limit, and one that knows it well.
func TestOlderServer(t *testing.T) {
	p := modeltest.Protocols[0]
	older := func(status int, body string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			if modeltest.AskedBody(r)["max_completion_tokens"] != nil {
				modeltest.Refuse(status, body)(w, r)
				return
			}
			p.Reply("done")(w, r)
		}
	}
	always := modeltest.Refuse(400, `{"error":{"message":"max_completion_tokens is too large: 16384"}}`)
	for _, test := range []struct {
		name   string
		script []http.HandlerFunc
		asked  string // the fields of two conversations' requests
		want   string // in the error
	}{
		{"refused by OpenAI's form", []http.HandlerFunc{older(400, `{"error":{"message":"Unrecognized request argument supplied: max_completion_tokens"}}`)}, "max_completion_tokens max_tokens max_tokens", ""},
		{"refused by a schema", []http.HandlerFunc{older(422, `{"detail":[{"type":"extra_forbidden","loc":["body","max_completion_tokens"]}]}`)}, "max_completion_tokens max_tokens max_tokens", ""},
		{"something else", []http.HandlerFunc{older(400, `{"error":{"message":"no such model"}}`)}, "max_completion_tokens max_completion_tokens", "no such model"},
		{"another status", []http.HandlerFunc{older(403, `{"error":{"message":"max_completion_tokens"}}`)}, "max_completion_tokens max_completion_tokens", "403"},
		{"both refused", []http.HandlerFunc{always, modeltest.Refuse(400, `{"error":{"message":"Use max_completion_tokens instead"}}`), always}, "max_completion_tokens max_tokens max_completion_tokens max_tokens", "is too large"},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := modeltest.Serve(t, test.script...)
			m := p.Model(t, s, model.Options{})
			for range 2 {
				got, err := m.Complete(t.Context(), hello, nil)
				if test.want == "" && (err != nil || got.Text != "done") || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
					t.Errorf("got %+v, %v", got, err)
				}
			}
			var fields []string
			for _, r := range s.Asked() {
				for _, name := range []string{"max_completion_tokens", "max_tokens"} {
					if r.Body[name] == 16384.0 {
						fields = append(fields, name)
					}
				}
			}
			if strings.Join(fields, " ") != test.asked {
				t.Errorf("asked with %v", fields)
			}
		})
	}
}

func TestWithoutKey(t *testing.T) {
	for _, p := range modeltest.Protocols {
		s := modeltest.Serve(t, p.Reply("x"))
		m, err := p.Open(model.Options{BaseURL: s.URL + p.Base, Model: "local", HTTPClient: s.Client()})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := m.Complete(t.Context(), hello, nil); err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"Authorization", "X-Api-Key"} {
			if value := s.Asked()[0].Header.Get(name); value != "" {
				t.Errorf("%s: %s is %q", p.Name, name, value)
			}
		}
	}
}

// TestUncounted has servers that do not count tokens, or not all.
func TestUncounted(t *testing.T) {
	p := modeltest.Protocols[0]
	s := modeltest.Serve(t, modeltest.Stream(append(p.Pieces("some words"), p.Stop("stop", false))...))
	got, err := p.Model(t, s, model.Options{}).Complete(t.Context(), hello, nil)
	if err != nil {
		t.Fatal(err)
	}
	if !got.Tokens.Estimated || got.Tokens.Input < 5 || got.Tokens.Output < 2 {
		t.Errorf("tokens are %+v", got.Tokens)
	}
	for _, usage := range []string{`{"prompt_tokens":-5,"completion_tokens":-1}`, `{"prompt_tokens":0,"completion_tokens":7}`, `null`, `{}`} {
		s := modeltest.Serve(t, modeltest.Stream(p.Start, p.Content("words"), modeltest.Event("", modeltest.Chunk+`"choices":[{"index":0,"delta":{},"finish_reason":"stop"}],"usage":%s}`, usage)))
		got, err := p.Model(t, s, model.Options{}).Complete(t.Context(), hello, nil)
		if err != nil || !got.Tokens.Estimated || got.Tokens.Input <= 0 || got.Tokens.Output <= 0 {
			t.Errorf("usage %s: %+v, %v", usage, got.Tokens, err)
		}
	}
	s = modeltest.Serve(t, modeltest.Stream(p.Start, p.Content("words"), modeltest.Event("", modeltest.Chunk+`"choices":[{"index":0,"delta":{},"finish_reason":"stop"}],"usage":{"prompt_tokens":9223372036854775807,"completion_tokens":9223372036854775807}}`)))
	if got, err := p.Model(t, s, model.Options{}).Complete(t.Context(), hello, nil); err != nil || got.Tokens.Total() <= 0 {
		t.Errorf("huge: %+v, %v", got.Tokens, err)
	}
}

func TestCut(t *testing.T) {
	for _, p := range modeltest.Protocols {
		s := modeltest.Serve(t, modeltest.Stream(append(p.Pieces("half of"), p.Stop(p.Cut, true))...))
		if got, err := p.Model(t, s, model.Options{}).Complete(t.Context(), hello, nil); err != nil || !got.Cut || got.Text != "half of" {
			t.Errorf("%s: %+v, %v", p.Name, got, err)
		}
	}
}

// hang takes a request and never answers, or not to the end.
func hang(events ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if len(events) > 0 {
			modeltest.Stream(events...)(w, r)
		}
		<-r.Context().Done()
	}
}

// forever sends the same text until the client leaves.
func forever(events ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		for r.Context().Err() == nil {
			for _, e := range events {
				if _, err := io.WriteString(w, e); err != nil {
					return
				}
			}
		}
	}
}

func TestFailures(t *testing.T) {
	for _, p := range modeltest.Protocols {
		long := p.Content(strings.Repeat("spam ", 5000))
		busy := modeltest.Refuse(http.StatusTooManyRequests, `{"error":{"message":"slow down"}}`, "Retry-After", "0")
		down := modeltest.Refuse(http.StatusServiceUnavailable, "", "Retry-After", "0")
		for _, test := range []struct {
			name     string
			script   []http.HandlerFunc
			attempts int
			status   int
			want     string // in the error; empty when there is none
			is       error
		}{
			{"busy, then not", []http.HandlerFunc{busy, p.Reply("done")}, 2, 0, "", nil},
			{"down twice, then not", []http.HandlerFunc{down, down, p.Reply("done")}, 3, 0, "", nil},
			{"busy for ever", []http.HandlerFunc{busy}, 4, 429, "slow down", nil},
			{"500 for ever", []http.HandlerFunc{modeltest.Refuse(500, "<h1>oops\x1b[31m</h1>", "Retry-After", "0")}, 4, 500, `<h1>oops\x1b[31m</h1>`, nil},
			{"busy for hours", []http.HandlerFunc{modeltest.Refuse(429, "{}", "Retry-After", "7200")}, 1, 429, "it asks to wait for 2h0m0s", nil},
			{"bad request", []http.HandlerFunc{modeltest.Refuse(400, `{"error":{"message":"no such model"}}`)}, 1, 400, "no such model", nil},
			{"told to try again", []http.HandlerFunc{modeltest.Refuse(400, `{"error":{"message":"no"}}`, "X-Should-Retry", "true")}, 1, 400, "no", nil},
			{"key in the refusal", []http.HandlerFunc{modeltest.Refuse(401, `{"error":{"message":"wrong key `+modeltest.Key+`, or c2stdGVzdC80NzExK2dlaGVpbQ=="}}`)}, 1, 401, "wrong key [redacted], or [redacted]", nil},
			{"key in a broken refusal", []http.HandlerFunc{modeltest.Refuse(403, modeltest.Key+strings.Repeat("x", 1<<20))}, 1, 403, "[redacted]xxx", nil},
			{"no content", []http.HandlerFunc{modeltest.Refuse(204, "")}, 1, 204, "No Content", nil},
			{"hangs", []http.HandlerFunc{hang()}, 1, 0, "no complete reply within 100ms", context.DeadlineExceeded},
			{"hangs in the middle", []http.HandlerFunc{hang(p.Start, p.Content("half"))}, 1, 0, "no complete reply within 100ms", context.DeadlineExceeded},
			{"busy, then hangs", []http.HandlerFunc{busy, hang()}, 2, 429, "slow down, for 100ms", context.DeadlineExceeded},
			{"no events", []http.HandlerFunc{func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				_, _ = io.WriteString(w, `{"choices":[{"message":{"content":"whole"}}]}`)
			}}, 1, 0, `the server answered with "application/json"`, nil},
			{"a page", []http.HandlerFunc{func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "<html>") }}, 1, 0, `"text/html`, nil},
			{"garbage", []http.HandlerFunc{modeltest.Stream(p.Start, "event: content_block_delta\ndata: {\"choices\":[{\n\n")}, 1, 0, "JSON", nil},
			{"ends early", []http.HandlerFunc{modeltest.Stream(p.Start, p.Content("half"))}, 1, 0, "the stream ended before the reply did", nil},
			{"nothing", []http.HandlerFunc{modeltest.Stream()}, 1, 0, "the stream ended before the reply did", nil},
			{"breaks off", []http.HandlerFunc{func(w http.ResponseWriter, r *http.Request) {
				modeltest.Stream(p.Start, p.Content("half"))(w, r)
				panic(http.ErrAbortHandler)
			}}, 1, 0, "EOF", nil},
			{"error in the stream", []http.HandlerFunc{modeltest.Stream(p.Start, p.Content("half"), p.Fault("overloaded by "+modeltest.Key))}, 1, 0, "overloaded by [redacted]", nil},
			{"endless text", []http.HandlerFunc{forever(p.Start, long)}, 1, 0, "the reply is longer than 1024 KiB", nil},
			{"endless silence", []http.HandlerFunc{forever(strings.Repeat(": still here\n\n", 1000))}, 1, 0, "more than 16 MiB", nil},
			{"an endless line", []http.HandlerFunc{forever("data: "+strings.Repeat("x", 1<<16), strings.Repeat("x", 1<<20))}, 1, 0, "more than 16 MiB", nil},
		} {
			t.Run(p.Name+"/"+test.name, func(t *testing.T) {
				t.Parallel()
				try := func(t *testing.T, s *modeltest.Server, o model.Options) {
					got, err := p.Model(t, s, o).Complete(t.Context(), hello, nil)
					if n := len(s.Asked()); n != test.attempts {
						t.Errorf("asked %d times, want %d", n, test.attempts)
					}
					if test.want == "" {
						if err != nil || got.Text != "done" {
							t.Errorf("got %+v, %v", got, err)
						}
						return
					}
					var failed *model.Error
					if !errors.As(err, &failed) || failed.Status != test.status || !strings.Contains(err.Error(), test.want) || len(err.Error()) > 2000 {
						t.Errorf("error is %v (%T), want one with %d and %q", err, err, test.status, test.want)
					}
					if test.is != nil && !errors.Is(err, test.is) {
						t.Errorf("error %v is not %v", err, test.is)
					}
					if strings.Contains(fmt.Sprintf("%v %+v %#v", err, err, failed), modeltest.Key) {
						t.Errorf("the key is in %#v", err)
					}
				}
				if test.is == nil {
					try(t, modeltest.Serve(t, test.script...), model.Options{})
					return
				}
				synctest.Test(t, func(t *testing.T) { // else a slow machine would take the time limit before the server is asked
					try(t, modeltest.ServeInBubble(t, test.script...), model.Options{Timeout: 100 * time.Millisecond})
				})
			})
		}
	}
}

// TestRedirects has a server that leads to another, which must see nothing, least of all the key.
func TestRedirects(t *testing.T) {
	for _, p := range modeltest.Protocols {
		for _, status := range []int{301, 302, 303, 307, 308} {
			reached := false
			thief := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached = true }))
			s := modeltest.Serve(t, modeltest.Refuse(status, "", "Location", thief.URL+"/"+modeltest.Key+p.Path))
			_, err := p.Model(t, s, model.Options{HTTPClient: &http.Client{}}).Complete(t.Context(), hello, nil)
			thief.Close()
			var failed *model.Error
			if !errors.As(err, &failed) || failed.Status != status || !strings.Contains(err.Error(), thief.URL) || strings.Contains(err.Error(), modeltest.Key) {
				t.Errorf("%s %d: %v", p.Name, status, err)
			}
			if reached || len(s.Asked()) != 1 {
				t.Errorf("%s %d: followed, or asked %d times", p.Name, status, len(s.Asked()))
			}
		}
	}
}

// TestEndings has replies that did not end because the model was done.
func TestEndings(t *testing.T) {
	for _, test := range []struct {
		protocol, reason string
		cut              bool
		want             string
	}{
		{"openai", "length", true, ""},
		{"openai", "tool_calls", false, ""},
		{"openai", "content_filter", false, "the server's filter ended the reply"},
		{"anthropic", "max_tokens", true, ""},
		{"anthropic", "model_context_window_exceeded", true, ""},
		{"anthropic", "tool_use", false, ""},
		{"anthropic", "refusal", false, "the server's filter ended the reply"},
	} {
		p := modeltest.Protocols[slices.IndexFunc(modeltest.Protocols, func(p modeltest.Protocol) bool { return p.Name == test.protocol })]
		s := modeltest.Serve(t, modeltest.Stream(p.Start, p.Content("part"), p.Stop(test.reason, true)))
		got, err := p.Model(t, s, model.Options{}).Complete(t.Context(), hello, nil)
		if got.Text != "part" || got.Cut != test.cut || got.Tokens.Total() != 1234 {
			t.Errorf("%s: %+v", test.reason, got)
		}
		if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v", test.reason, err)
		}
	}
}

// TestEndedStream has servers that say that all is said, and keep the connection.
func TestEndedStream(t *testing.T) {
	for _, p := range modeltest.Protocols {
		s := modeltest.Serve(t, hang(p.Start, p.Content("done"), p.Stop(p.Normal(), true)))
		got, err := p.Model(t, s, model.Options{Timeout: time.Minute}).Complete(t.Context(), hello, nil)
		if err != nil || got.Text != "done" {
			t.Errorf("%s: %+v, %v", p.Name, got, err)
		}
	}
}

func TestCancel(t *testing.T) {
	for _, p := range modeltest.Protocols {
		s := modeltest.Serve(t, hang(p.Start, p.Content("half of it")))
		ctx, cancel := context.WithCancelCause(t.Context())
		enough := errors.New("enough")
		got, err := p.Model(t, s, model.Options{}).Complete(ctx, hello, func(model.Piece) { cancel(enough) })
		if !errors.Is(err, enough) || got.Text != "half of it" || got.Tokens.Total() == 0 {
			t.Errorf("%s: %+v, %v", p.Name, got, err)
		}
	}
}

type transport func(*http.Request) (*http.Response, error)

func (f transport) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// TestWaits looks at the time between attempts.
func TestWaits(t *testing.T) {
	p := modeltest.Protocols[0]
	for _, test := range []struct {
		name  string
		after func() string
		want  []time.Duration
	}{
		{"seconds", func() string { return "7" }, []time.Duration{7 * time.Second, 7 * time.Second, 7 * time.Second}},
		{"a date", func() string { return time.Now().Add(20 * time.Second).UTC().Format(http.TimeFormat) }, []time.Duration{20 * time.Second, 20 * time.Second, 20 * time.Second}},
		{"a date gone by", func() string { return "Fri, 02 Jan 1998 15:04:05 GMT" }, []time.Duration{0, 0, 0}},
		{"nothing", func() string { return "" }, []time.Duration{time.Second, 2 * time.Second, 4 * time.Second}},
		{"nonsense", func() string { return "-3" }, []time.Duration{time.Second, 2 * time.Second, 4 * time.Second}},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				last := time.Now()
				var waits []time.Duration
				client := &http.Client{Transport: transport(func(r *http.Request) (*http.Response, error) {
					waits = append(waits, time.Since(last))
					last = time.Now()
					if body, err := io.ReadAll(r.Body); err != nil || !json.Valid(body) {
						t.Errorf("attempt %d sends %q, %v", len(waits), body, err)
					}
					w := httptest.NewRecorder()
					modeltest.Refuse(503, "{}", "Retry-After", test.after())(w, r)
					return w.Result(), nil
				})}
				m, err := p.Open(model.Options{BaseURL: "http://model.test/v1", Model: "scripted", HTTPClient: client})
				if err != nil {
					t.Fatal(err)
				}
				if _, err := m.Complete(t.Context(), hello, nil); err == nil {
					t.Error("no error")
				}
				if fmt.Sprint(waits[1:]) != fmt.Sprint(test.want) {
					t.Errorf("waited %v, want %v", waits[1:], test.want)
				}
			})
		})
	}
}

func TestModelOptions(t *testing.T) {
	number := func(f float64) *float64 { return &f }
	for _, test := range []struct {
		o    model.Options
		want string
	}{
		{model.Options{}, "Model"},
		{model.Options{Model: "m", BaseURL: "ftp://example.com"}, "BaseURL"},
		{model.Options{Model: "m", BaseURL: "example.com/v1"}, "BaseURL"},
		{model.Options{Model: "m", BaseURL: "https://user:" + modeltest.Key + "@example.com"}, "BaseURL"},
		{model.Options{Model: "m", BaseURL: "https://exa\x00mple.com/" + modeltest.Key}, "BaseURL"},
		{model.Options{Model: "m", BaseURL: "https://example.com/?key=" + modeltest.Key}, "BaseURL"},
		{model.Options{Model: "m", Key: "two\r\nlines: " + modeltest.Key}, "Key"},
		{model.Options{Model: "m", Key: modeltest.Key}, "Redact"},
		{model.Options{Model: "m", Temperature: number(math.NaN())}, "Temperature"},
		{model.Options{Model: "m", Temperature: number(2.1)}, "Temperature"},
		{model.Options{Model: "m", MaxTokens: -1}, "MaxTokens"},
		{model.Options{Model: "m", Timeout: -1}, "Timeout"},
	} {
		for _, p := range modeltest.Protocols {
			_, err := p.Open(test.o)
			var wrong *model.OptionsError
			if !errors.As(err, &wrong) || !strings.Contains(wrong.Option, test.want) || strings.Contains(err.Error(), modeltest.Key) {
				t.Errorf("%s: %+v: %v", p.Name, test.o, err)
			}
		}
	}
}

// TestKeyIsNotPrinted prints what a careless log would.
func TestKeyIsNotPrinted(t *testing.T) {
	o := model.Options{BaseURL: "https://example.com", Key: modeltest.Key, Redact: secret.NewRedactor(modeltest.Key).Redact, Model: "m"}
	text := fmt.Sprintf("%v %+v %#v %s", o, o, o, &o)
	if b, err := json.Marshal(o); err == nil {
		text += string(b)
	}
	for _, p := range modeltest.Protocols {
		m, err := p.Open(o)
		if err != nil {
			t.Fatal(err)
		}
		text += fmt.Sprintf("%v %+v %#v", m, m, m)
	}
	if strings.Contains(text, modeltest.Key) || strings.Contains(text, "geheim") {
		t.Errorf("the key is in %s", text)
	}
}

// recorded is an answer with events.
func recorded(events string) *http.Response {
	w := httptest.NewRecorder()
	w.Header().Set("Content-Type", "text/event-stream")
	_, _ = io.WriteString(w, events)
	return w.Result()
}
