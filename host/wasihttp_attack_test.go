package host_test

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/capabilities/console"
	httpcap "github.com/stilehost/stile/capabilities/http"
	"github.com/stilehost/stile/host"
	"github.com/stilehost/stile/internal/errkind"
)

// httpCodes are some cases of the error-code of wasi:http.
var httpCodes = strings.Fields("HTTP-request-denied HTTP-request-URI-invalid HTTP-request-body-size HTTP-protocol-error HTTP-response-timeout destination-unavailable internal-error HTTP-response-incomplete")

const httpImports = `
	(import "wasi:io/error@0.2.0" (instance $error (export "error" (type (sub resource)))))
	(alias export $error "error" (type $error-t))
	(import "wasi:io/poll@0.2.3" (instance $poll (export "pollable" (type $p (sub resource))) (export "[method]pollable.block" (func (param "self" (borrow $p))))))
	(alias export $poll "pollable" (type $pollable-t))
	(import "wasi:io/streams@0.2.3" (instance $streams
		(alias outer 1 $error-t (type $e')) (export "error" (type $e (eq $e')))
		(type $se' (variant (case "last-operation-failed" (own $e)) (case "closed"))) (export "stream-error" (type $se (eq $se')))
		(export "output-stream" (type $out (sub resource)))
		(export "input-stream" (type $in (sub resource)))
		(export "[method]input-stream.blocking-read" (func (param "self" (borrow $in)) (param "len" u64) (result (result (list u8) (error $se)))))
		(export "[method]output-stream.blocking-write-and-flush" (func (param "self" (borrow $out)) (param "contents" (list u8)) (result (result (error $se)))))))
	(alias export $streams "output-stream" (type $out-t))
	(alias export $streams "input-stream" (type $in-t))
	(import "wasi:cli/stdout@0.2.0" (instance $stdout
		(alias outer 1 $out-t (type $o')) (export "output-stream" (type $o (eq $o')))
		(export "get-stdout" (func (result (own $o))))))
	(import "wasi:http/types@0.2.1" (instance $types
		(alias outer 1 $out-t (type $o')) (export "output-stream" (type $o (eq $o')))
		(alias outer 1 $in-t (type $i')) (export "input-stream" (type $i (eq $i')))
		(alias outer 1 $pollable-t (type $p')) (export "pollable" (type $p (eq $p')))
		(type $he' (variant (case "invalid-syntax") (case "forbidden") (case "immutable"))) (export "header-error" (type $he (eq $he')))
		(type $code' (variant (case "HTTP-request-denied") (case "HTTP-request-URI-invalid") (case "HTTP-request-body-size" (option u64)) (case "HTTP-protocol-error")
			(case "HTTP-response-timeout") (case "destination-unavailable") (case "internal-error" (option string)) (case "HTTP-response-incomplete"))) (export "error-code" (type $code (eq $code')))
		(type $scheme' (variant (case "HTTP") (case "HTTPS") (case "other" string))) (export "scheme" (type $scheme (eq $scheme')))
		(export "fields" (type $fields (sub resource)))
		(export "outgoing-request" (type $request (sub resource)))
		(export "request-options" (type $options (sub resource)))
		(export "outgoing-body" (type $body (sub resource)))
		(export "future-incoming-response" (type $future (sub resource)))
		(export "incoming-response" (type $response (sub resource)))
		(export "incoming-body" (type $incoming (sub resource)))
		(export "[constructor]fields" (func (result (own $fields))))
		(export "[method]fields.append" (func (param "self" (borrow $fields)) (param "name" string) (param "value" (list u8)) (result (result (error $he)))))
		(export "[constructor]outgoing-request" (func (param "headers" (own $fields)) (result (own $request))))
		(export "[method]outgoing-request.body" (func (param "self" (borrow $request)) (result (result (own $body)))))
		(export "[method]outgoing-request.set-authority" (func (param "self" (borrow $request)) (param "a" (option string)) (result (result))))
		(export "[method]outgoing-request.set-path-with-query" (func (param "self" (borrow $request)) (param "a" (option string)) (result (result))))
		(export "[method]outgoing-request.set-scheme" (func (param "self" (borrow $request)) (param "a" (option $scheme)) (result (result))))
		(type $method' (variant (case "get") (case "post") (case "other" string))) (export "method" (type $method (eq $method')))
		(export "[method]outgoing-request.set-method" (func (param "self" (borrow $request)) (param "method" $method) (result (result))))
		(export "[method]outgoing-body.write" (func (param "self" (borrow $body)) (result (result (own $o)))))
		(export "[static]outgoing-body.finish" (func (param "this" (own $body)) (param "trailers" (option (own $fields))) (result (result (error $code)))))
		(export "[method]future-incoming-response.subscribe" (func (param "self" (borrow $future)) (result (own $p))))
		(export "[method]future-incoming-response.get" (func (param "self" (borrow $future)) (result (option (result (result (own $response) (error $code)))))))
		(export "[method]incoming-response.consume" (func (param "self" (borrow $response)) (result (result (own $incoming)))))
		(export "[method]incoming-body.stream" (func (param "self" (borrow $incoming)) (result (result (own $i)))))))
	(alias export $types "outgoing-request" (type $request-t))
	(alias export $types "request-options" (type $options-t))
	(alias export $types "future-incoming-response" (type $future-t))
	(alias export $types "outgoing-body" (type $body-t))
	(alias export $types "incoming-response" (type $response-t))
	(alias export $types "error-code" (type $code-t))
	(import "wasi:http/outgoing-handler@0.2.4" (instance $handler
		(alias outer 1 $request-t (type $request)) (alias outer 1 $options-t (type $options)) (alias outer 1 $future-t (type $future)) (alias outer 1 $code-t (type $code))
		(export "handle" (func (param "request" (own $request)) (param "options" (option (own $options))) (result (result (own $future) (error $code)))))))
`

var httpFuncs = []scriptFunc{
	{"append", "types", "[method]fields.append", "iiiiii"},
	{"body", "types", "[method]outgoing-request.body", "ii"},
	{"stream", "types", "[method]outgoing-body.write", "ii"},
	{"finish", "types", "[static]outgoing-body.finish", "iiii"},
	{"get", "types", "[method]future-incoming-response.get", "ii"},
	{"consume", "types", "[method]incoming-response.consume", "ii"},
	{"incoming", "types", "[method]incoming-body.stream", "ii"},
	{"handle", "handler", "handle", "iiii"},
	{"take", "streams", "[method]input-stream.blocking-read", "iIi"},
	{"put", "streams", "[method]output-stream.blocking-write-and-flush", "iiii"},
}

// web is a script of http.
type web struct{ script }

// request makes a request. It notes when a part of it is refused.
func (s *web) request(scheme, authority, path string) string {
	fmt.Fprintf(&s.body, "(i32.store (i32.const 3004) (call $request (call $fields)))\n")
	r := s.slot()
	kind := map[string]int{"http": 0, "https": 1}
	if n, ok := kind[scheme]; ok {
		s.flat(fmt.Sprintf("scheme %s (i32.const 1) (i32.const %d) (i32.const 0) (i32.const 0)", r, n))
	} else {
		s.flat(fmt.Sprintf("scheme %s (i32.const 1) (i32.const 2) %s", r, s.text(scheme)))
	}
	s.flat(fmt.Sprintf("authority %s (i32.const 1) %s", r, s.text(authority)))
	s.flat(fmt.Sprintf("path %s (i32.const 1) %s", r, s.text(path)))
	return r
}

// flat calls a function whose result is 1 if it failed, and notes only that.
func (s *web) flat(call string) {
	fmt.Fprintf(&s.body, "(if (call $%s) (then (i32.store8 (i32.const 3000) (i32.const 1)) (i32.store8 (i32.const 3001) (i32.const 40)) (call $note (i32.const 3001))))\n", call)
}

func (s *web) handle(r string) string {
	s.do(8, "handle "+r+" (i32.const 0) (i32.const 0)")
	fmt.Fprintf(&s.body, "(i32.store (i32.const 3004) (i32.load (i32.const 3008)))\n")
	return s.slot()
}

// answer waits for the answer, and notes its error.
func (s *web) answer(future string) string {
	fmt.Fprintf(&s.body, "(call $block (call $subscribe %s)) (call $get %s (i32.const 3016)) (if (i32.or (i32.eqz (i32.load8_u (i32.const 3016))) (i32.load8_u (i32.const 3024))) (then unreachable))\n", future, future)
	fmt.Fprintf(&s.body, "(i32.store8 (i32.const 3000) (i32.load8_u (i32.const 3032))) (call $note (i32.const 3040)) (i32.store (i32.const 3004) (i32.load (i32.const 3040)))\n")
	return s.slot()
}

func (s *web) load(t *testing.T, h *host.Host) *host.Component {
	t.Helper()
	return s.loadWith(t, h, httpImports, httpFuncs, `(core func $out (canon lower (func $stdout "get-stdout")))
		(core func $fields (canon lower (func $types "[constructor]fields"))) (core func $request (canon lower (func $types "[constructor]outgoing-request")))
		(core func $authority (canon lower (func $types "[method]outgoing-request.set-authority")`+options+`)) (core func $path (canon lower (func $types "[method]outgoing-request.set-path-with-query")`+options+`))
		(core func $scheme (canon lower (func $types "[method]outgoing-request.set-scheme")`+options+`))
		(core func $method (canon lower (func $types "[method]outgoing-request.set-method")`+options+`))
		(core func $subscribe (canon lower (func $types "[method]future-incoming-response.subscribe"))) (core func $block (canon lower (func $poll "[method]pollable.block")))
		(core func $drop-body (canon resource.drop $body-t)) (core func $drop-future (canon resource.drop $future-t)) (core func $drop-response (canon resource.drop $response-t))
		(core func $drop-request (canon resource.drop $request-t)) (core func $drop-stream (canon resource.drop $out-t))
		(core instance $w %s(export "out" (func $out)) (export "fields" (func $fields)) (export "request" (func $request)) (export "authority" (func $authority)) (export "path" (func $path))
			(export "scheme" (func $scheme)) (export "method" (func $method)) (export "subscribe" (func $subscribe)) (export "block" (func $block)) (export "drop-body" (func $drop-body))
			(export "drop-future" (func $drop-future)) (export "drop-response" (func $drop-response))
			(export "drop-request" (func $drop-request)) (export "drop-stream" (func $drop-stream)))`,
		`(import "w" "out" (func $out (result i32))) (import "w" "fields" (func $fields (result i32))) (import "w" "request" (func $request (param i32) (result i32)))
		(import "w" "authority" (func $authority (param i32 i32 i32 i32) (result i32))) (import "w" "path" (func $path (param i32 i32 i32 i32) (result i32)))
		(import "w" "method" (func $method (param i32 i32 i32 i32) (result i32)))
		(import "w" "scheme" (func $scheme (param i32 i32 i32 i32 i32) (result i32)))
		(import "w" "subscribe" (func $subscribe (param i32) (result i32))) (import "w" "block" (func $block (param i32))) (import "w" "drop-body" (func $drop-body (param i32)))
		(import "w" "drop-future" (func $drop-future (param i32))) (import "w" "drop-response" (func $drop-response (param i32)))
		(import "w" "drop-request" (func $drop-request (param i32))) (import "w" "drop-stream" (func $drop-stream (param i32)))`)
}

// answers reads what a script of http printed.
func answers(text string) string {
	var all []string
	for _, b := range []byte(text) {
		switch b {
		case '.':
			all = append(all, "ok")
		case 'A' + 40:
			all = append(all, "no")
		default:
			all = append(all, httpCodes[min(int(b-'A'), len(httpCodes)-1)])
		}
	}
	return strings.Join(all, " ")
}

func TestWorldHTTP(t *testing.T) {
	var seen []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n, _ := io.Copy(io.Discard, r.Body)
		seen = append(seen, fmt.Sprintf("%s %s%s %d", r.Method, r.Host, r.URL, n))
		switch r.URL.Path {
		case "/ok/far":
			http.Redirect(w, r, "http://127.0.0.2:1/", http.StatusFound)
		case "/ok/cut":
			w.Header().Set("content-length", "100")
			_, _ = io.WriteString(w, "less")
		default:
			_, _ = io.WriteString(w, "hello")
		}
	}))
	t.Cleanup(server.Close)
	at := strings.TrimPrefix(server.URL, "http://")
	_, port, err := net.SplitHostPort(at)
	if err != nil {
		t.Fatal(err)
	}
	number, err := strconv.Atoi(port)
	if err != nil {
		t.Fatal(err)
	}
	client := httpcap.Allow(httpcap.Rule{Scheme: "http", Host: "127.0.0.1", Port: uint16(number), Methods: []string{"GET", "POST"}, Path: "/ok/**"})
	records := &kept{}
	h := newHost(t, host.Options{Recorder: records, Limits: host.Limits{Handles: 200, CPU: 20 * time.Second}})
	for _, c := range []struct {
		name   string
		script func(s *web)
		want   string
		seen   []string
		ends   func(error) bool // how the call ends, if not well
	}{
		{"a response", func(s *web) {
			response := s.answer(s.handle(s.request("http", at, "/ok/a?b")))
			s.do(4, "consume "+response)
			body := s.slot()
			s.do(1, "consume "+response) // once
			s.do(4, "incoming "+body)
			in := s.slot()
			fmt.Fprintf(&s.body, "(call $drop-response %s)", response) // what is read outlives it
			s.do(4, "take "+in+" (i64.const 3)")
			s.do(4, "take "+in+" (i64.const 300)")
			s.do(4, "take "+in+" (i64.const 300)")
		}, "ok ok ok * ok ok ok HTTP-request-URI-invalid", []string{"GET " + at + "/ok/a?b 0"}, nil}, // the last is the case "closed"
		{"where it may not go", func(s *web) {
			for _, u := range [][3]string{
				{"http", "127.0.0.1:1", "/ok/a"},
				{"https", at, "/ok/a"},
				{"http", at, "/other"},
				{"http", at, "/ok/../other"},
				{"http", at, "/ok/%2e%2e/other"},
				{"http", "localhost:" + port, "/ok/a"},
				{"http", "127.1:" + port, "/other"},
				{"http", "[::1]:" + port, "/ok/a"},
				{"ftp", at, "/ok/a"},
				{"http", "", "/ok/a"},
			} {
				s.handle(s.request(u[0], u[1], u[2]))
			}
		}, "HTTP-request-denied HTTP-request-denied HTTP-request-denied * * HTTP-request-denied * HTTP-request-denied HTTP-request-URI-invalid HTTP-request-URI-invalid", nil, nil},
		{"parts that are not parts", func(s *web) {
			s.request("http", "a@"+at, "/ok/a")
			s.request("http", at+"/ok", "/ok/a")
			s.request("http", at, "ok/a")
			s.request("http", at, "/ok/a b")
			s.request("http", at, "/ok/a\r\nx: y")
			s.request("ht tp", at, "/ok/a")
			s.request("http", strings.Repeat("a", 9000), "/ok/a")
			fmt.Fprintf(&s.body, "(i32.store (i32.const 3004) (call $fields))\n")
			f := s.slot()
			for _, pair := range [][2]string{{"x y", "v"}, {"", "v"}, {"x", "a\r\nb: c"}, {"host", "v"}, {"transfer-encoding", "chunked"}, {"x", "\xff"}} {
				s.do(1, fmt.Sprintf("append %s %s %s", f, s.text(pair[0]), s.text(pair[1])))
			}
		}, "no no no no no no * * * HTTP-request-URI-invalid HTTP-request-URI-invalid *", nil, nil},
		{"a redirect is the guest's", func(s *web) {
			s.answer(s.handle(s.request("http", at, "/ok/far")))
			s.handle(s.request("http", "127.0.0.2:1", "/"))
		}, "ok ok HTTP-request-denied", []string{"GET " + at + "/ok/far 0"}, nil},
		{"a body", func(s *web) {
			r := s.request("http", at, "/ok/a")
			s.flat("method " + r + " (i32.const 1) (i32.const 0) (i32.const 0)")
			s.flat("method " + r + " (i32.const 2) " + s.text("GET /other HTTP/1.1\r\nx:"))
			s.do(4, "body "+r)
			body := s.slot()
			s.do(1, "body "+r) // once
			future := s.handle(r)
			s.do(4, "stream "+body)
			out := s.slot()
			s.do(4, fmt.Sprintf("put %s %s", out, s.text("hello")))
			s.do(8, "finish "+body+" (i32.const 0) (i32.const 0)")
			s.do(4, fmt.Sprintf("put %s %s", out, s.text("too late")))
			s.answer(future)
		}, "no ok * ok ok ok ok HTTP-request-URI-invalid ok", []string{"POST " + at + "/ok/a 5"}, nil},
		{"a body without end", func(s *web) {
			r := s.request("http", at, "/ok/a")
			s.do(4, "body "+r)
			body := s.slot()
			future := s.handle(r)
			s.do(4, "stream "+body)
			out := s.slot()
			s.loop(70, func() { s.do(4, fmt.Sprintf("put %s (i32.const 0) (i32.const 4096)", out)) })
			s.do(8, "finish "+body+" (i32.const 0) (i32.const 0)")
			s.answer(future)
		}, "ok ok ok HTTP-request-denied HTTP-request-body-size HTTP-request-body-size", nil, nil}, // the fourth is last-operation-failed
		{"a body that is dropped", func(s *web) {
			r := s.request("http", at, "/ok/a")
			s.do(4, "body "+r)
			body := s.slot()
			future := s.handle(r)
			fmt.Fprintf(&s.body, "(call $drop-body %s)", body)
			s.answer(future)
		}, "ok ok HTTP-protocol-error", nil, nil},
		{"a body that is never finished", func(s *web) {
			r := s.request("http", at, "/ok/a")
			s.do(4, "body "+r)
			s.answer(s.handle(r))
		}, "", nil, errkind.Is[*host.TrapError]},
		{"what the server cuts", func(s *web) {
			response := s.answer(s.handle(s.request("http", at, "/ok/cut")))
			s.do(4, "consume "+response)
			s.do(4, "incoming "+s.slot())
			in := s.slot()
			s.do(4, "take "+in+" (i64.const 300)") // what came, or the failure
			s.do(4, "take "+in+" (i64.const 300)")
		}, "ok ok ok ok ? HTTP-request-denied", []string{"GET " + at + "/ok/cut 0"}, nil}, // last-operation-failed
		{"many requests that nobody makes", func(s *web) { s.loop(100_000, func() { s.request("http", at, "/ok/a") }) }, "", nil, isLimit("handles")},
		{"headers without end", func(s *web) {
			fmt.Fprintf(&s.body, "(i32.store (i32.const 3004) (call $fields))\n")
			f := s.slot()
			s.loop(100_000, func() { s.do(1, fmt.Sprintf("append %s %s %s", f, s.text("x"), s.text("v"))) })
		}, "", nil, isLimit("bytes")},
		{"forged", func(s *web) { s.handle("(i32.const 77)") }, "", nil, errkind.Is[*host.TrapError]},
		{"twice", func(s *web) {
			r := s.request("http", at, "/ok/a")
			s.handle(r)
			s.handle(r)
		}, "", nil, errkind.Is[*host.TrapError]},
		{"dropped before its answer", func(s *web) {
			future := s.handle(s.request("http", at, "/ok/a"))
			fmt.Fprintf(&s.body, "(call $drop-future %s)", future)
		}, "ok", nil, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := &web{}
			c.script(s)
			component := s.load(t, h)
			seen = nil
			var printed string
			env := host.Env{"web": client, "console": console.To(func(_ console.Level, m string) { printed += m })}
			_, err := component.Do(t.Context(), host.Request{Tool: "t", Env: env, WASI: abi.WASI{HTTP: "web"}, Approved: onlyT})
			switch {
			case c.ends != nil && !c.ends(err):
				t.Fatalf("ended with %v", err)
			case c.ends == nil && err != nil:
				t.Fatal(err)
			}
			got, want := strings.Fields(answers(printed)), strings.Fields(c.want)
			for i := range min(len(got), len(want)) {
				if want[i] == "*" && got[i] != "ok" || want[i] == "?" {
					want[i] = "*"
					got[i] = "*"
				}
			}
			if strings.Join(got, " ") != strings.Join(want, " ") {
				t.Errorf("the steps ended with\n%q, want\n%q", got, want)
			}
			if strings.Join(seen, "\n") != strings.Join(c.seen, "\n") && c.name != "dropped before its answer" && c.ends == nil {
				t.Errorf("the server saw %q, want %q", seen, c.seen)
			}
			again(t, component, records)
		})
	}
	t.Run("without a binding", func(t *testing.T) {
		s := &web{}
		s.handle(s.request("http", at, "/ok/a"))
		component := s.load(t, h)
		result, err := component.Do(t.Context(), host.Request{Tool: "t", Env: host.Env{"web": client}, Approved: onlyT})
		if err != nil || len(result.Usage.Denials) != 1 || !strings.Contains(result.Usage.Denials[0].Reason, "wasi") {
			t.Errorf("ended with %v, denials %v", err, result.Usage.Denials)
		}
		again(t, component, records)
	})
	t.Run("revoked meanwhile", func(t *testing.T) {
		grant := host.NewGrant(client, host.GrantOptions{})
		s := &web{}
		response := s.answer(s.handle(s.request("http", at, "/ok/a")))
		s.do(4, "consume "+response)
		s.do(4, "incoming "+s.slot())
		s.do(4, "take "+s.slot()+" (i64.const 3)")
		s.handle(s.request("http", at, "/ok/a"))
		component := s.load(t, h)
		var printed string
		_, err := component.Do(t.Context(), host.Request{
			Tool: "t", WASI: abi.WASI{HTTP: "web"}, Approved: onlyT, Env: host.Env{"web": grant, "console": console.To(func(_ console.Level, m string) { printed += m })},
			Observe: func(o host.Operation) {
				if o.Func == "[method]exchange.head" {
					grant.Revoke("no more")
				}
			},
		})
		if got := answers(printed); err != nil || got != "ok ok ok ok HTTP-request-denied HTTP-request-denied" {
			t.Errorf("the steps ended with %s: %v", got, err)
		}
		again(t, component, records)
	})
}

// TestWorldHTTPDropped makes requests that are dropped with their bodies, one after the other: nothing of them stays in the host.
func TestWorldHTTPDropped(t *testing.T) {
	h := newHost(t, host.Options{Limits: host.Limits{CPU: 20 * time.Second}})
	for name, end := range map[string]func(s *web, r, body string){
		"a body before its end": func(s *web, r, body string) {
			s.do(8, "handle "+r+" (i32.const 0) (i32.const 0)")
			fmt.Fprintf(&s.body, "(i32.store (i32.const 3004) (i32.load (i32.const 3008)))\n")
			future := s.slot()
			fmt.Fprintf(&s.body, "(call $drop-body %s) (call $get %s (i32.const 3016)) (call $drop-future %[2]s)\n", body, future)
		},
		"a request whose body has ended": func(s *web, r, body string) {
			s.do(4, "stream "+body)
			out := s.slot()
			s.do(4, fmt.Sprintf("put %s (i32.const 0) (i32.const 1000)", out))
			fmt.Fprintf(&s.body, "(call $drop-stream %s)\n", out)
			s.do(8, "finish "+body+" (i32.const 0) (i32.const 0)")
			fmt.Fprintf(&s.body, "(call $drop-request %s)\n", r)
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := &web{}
			value := s.text(strings.Repeat("v", 1500))
			s.loop(3000, func() {
				fmt.Fprintf(&s.body, "(i32.store (i32.const 3004) (call $fields))\n")
				f := s.slot()
				s.do(1, fmt.Sprintf("append %s %s %s", f, s.text("x"), value))
				fmt.Fprintf(&s.body, "(i32.store (i32.const 3004) (call $request %s))\n", f)
				r := s.slot()
				s.flat(fmt.Sprintf("authority %s (i32.const 1) %s", r, s.text("127.0.0.1")))
				s.do(4, "body "+r)
				end(s, r, s.slot())
				fmt.Fprintf(&s.body, "(global.set $noted (i32.const 3501))\n")
			})
			_, err := s.load(t, h).Do(t.Context(), host.Request{Tool: "t", Env: host.Env{"web": httpcap.Allow(httpcap.Rule{Host: "127.0.0.1"})}, WASI: abi.WASI{HTTP: "web"}, Approved: onlyT})
			if err != nil {
				t.Error(err)
			}
		})
	}
}

func isLimit(name string) func(error) bool {
	return func(err error) bool {
		var limit *host.LimitError
		return errors.As(err, &limit) && limit.Limit == name
	}
}
