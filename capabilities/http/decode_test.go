package http

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io"
	nethttp "net/http"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/zstd"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/internal/turns"
)

// packed compresses, by encoding.
var packed = map[string]func([]byte) []byte{
	"gzip": func(data []byte) []byte {
		return written(data, func(w io.Writer) io.WriteCloser { return gzip.NewWriter(w) })
	},
	"br": func(data []byte) []byte {
		return written(data, func(w io.Writer) io.WriteCloser { return brotli.NewWriter(w) })
	},
	"zstd": func(data []byte) []byte {
		return written(data, func(w io.Writer) io.WriteCloser {
			encoder, _ := zstd.NewWriter(w, zstd.WithEncoderConcurrency(1), zstd.WithZeroFrames(true))
			return encoder
		})
	},
}

func written(data []byte, compress func(io.Writer) io.WriteCloser) []byte {
	var out bytes.Buffer
	w := compress(&out)
	_, _ = w.Write(data)
	_ = w.Close()
	return out.Bytes()
}

func TestDecoding(t *testing.T) {
	type response struct {
		encoding string
		body     []byte
		want     string
		fails    bool
	}
	bodies := map[string]response{
		"members":         {"GZip", append(packed["gzip"]([]byte("a")), packed["gzip"]([]byte("b"))...), "ab", false},
		"x-gzip":          {"x-gzip", packed["gzip"]([]byte("a")), "a", false},
		"gzip trailing":   {"gzip", append(packed["gzip"]([]byte("a")), "garbage garbage"...), "", true},
		"frames":          {"zstd", append(packed["zstd"]([]byte("a")), packed["zstd"]([]byte("b"))...), "ab", false},
		"zstd window":     {"zstd", []byte{0x28, 0xb5, 0x2f, 0xfd, 0x00, 0xf8, 0x03, 0x00, 0x00, 0x61}, "", true},
		"other":           {"compress", []byte("raw"), "raw", false},
		"encoded twice":   {"gzip, br", []byte("raw"), "raw", false},
		"unencoded":       {"", []byte("raw"), "raw", false},
		"identity":        {"identity", []byte("raw"), "raw", false},
		"zstd dictionary": {"zstd", []byte{0x28, 0xb5, 0x2f, 0xfd, 0x21, 0x07, 0x01, 0x09, 0x00, 0x00, 0x61}, "", true},
	}
	for encoding, pack := range packed {
		bodies[encoding+" whole"] = response{encoding, pack([]byte("text")), "text", false}
		bodies[encoding+" empty"] = response{encoding, nil, "", false}
		bodies[encoding+" of nothing"] = response{encoding, pack(nil), "", false}
		cut := pack(bytes.Repeat([]byte("text, of which something is missing; "), 100))
		bodies[encoding+" cut"] = response{encoding, cut[:len(cut)-6], "", true}
		bodies[encoding+" garbage"] = response{encoding, []byte("this is something else"), "", true}
	}
	at := serve(t, func(w nethttp.ResponseWriter, r *nethttp.Request) {
		if (r.Header.Get("Accept-Encoding") == "gzip, br, zstd") == (r.Method == "HEAD" || r.Header.Get("Range") != "") {
			t.Errorf("%s with Range %q has Accept-Encoding %q", r.Method, r.Header.Get("Range"), r.Header.Get("Accept-Encoding"))
		}
		test := bodies[r.FormValue("is")]
		if test.encoding != "" {
			w.Header().Set("Content-Encoding", test.encoding)
		}
		_, _ = w.Write(test.body)
	})
	c := client(t, Options{Rules: []Rule{good(at)}})
	for name, test := range bodies {
		request := get(at, "/?is="+strings.ReplaceAll(name, " ", "+"))
		have := do(t, c, request)
		decoded := slices.Contains([]string{"gzip", "x-gzip", "br", "zstd"}, strings.ToLower(test.encoding))
		switch {
		case test.fails:
			if !errors.Is(have.err, abi.ErrUnavailable) {
				t.Errorf("%s: %+v", name, have)
			}
		case have.err != nil || have.text != test.want:
			t.Errorf("%s: %+v", name, have)
		case test.encoding != "" && decoded != (have.header("content-encoding") == nil && have.header("content-length") == nil):
			t.Errorf("%s: %+v", name, have.head)
		}
		request.Headers = []Header{{"Range", "bytes=0-1000"}}
		if have := do(t, c, request); have.err == nil && have.text != string(test.body) {
			t.Errorf("%s with Range: %+v", name, have)
		}
		request.Headers, request.Method = nil, "HEAD"
		if have := do(t, c, request); have.err != nil || have.text != "" {
			t.Errorf("HEAD %s: %+v", name, have)
		}
	}
}

// TestLargeDecodersAreBounded has a server stop in the middle of responses whose decoders take 13 MiB each, in many calls. All others
// still get their responses, in an encoding that takes little. One user's calls have half of the places, so another user's response is decoded.
func TestLargeDecodersAreBounded(t *testing.T) {
	content := bytes.Repeat([]byte("text, "), 1000)
	var accepted sync.Map
	begun, stop := make(chan struct{}, maxLarge), make(chan struct{})
	at := serve(t, func(w nethttp.ResponseWriter, r *nethttp.Request) {
		if r.URL.Path == "/waits" {
			w.Header().Set("Content-Encoding", "br")
			_, _ = w.Write(packed["br"](content)[:10])
			w.(nethttp.Flusher).Flush()
			begun <- struct{}{}
			<-stop
			return
		}
		encoding := r.FormValue("as")
		accepted.Store(r.Header.Get("Accept-Encoding"), true)
		w.Header().Set("Content-Encoding", encoding)
		_, _ = w.Write(packed[encoding](content))
	})
	c := client(t, Options{Rules: []Rule{good(at)}})
	ask := func(user, path string) *Exchange {
		ctx := turns.For(t.Context(), user)
		opened, err := c.grant.Open(ctx)
		if err != nil {
			t.Fatal(err)
		}
		exchange, err := opened.(*Client).Start(ctx, get(at, path))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = exchange.Close() })
		return exchange
	}
	for i := range maxLarge {
		user := ""
		if i < maxLarge/2 {
			user = "agent:busy"
		}
		ask(user, "/waits")
		<-begun
		if i != maxLarge/2-1 {
			continue
		}
		if text, err := ask("agent:busy", "/?as=br").Text(t.Context(), 1<<20); err == nil && text == string(content) {
			t.Error("a user has more than half of the places")
		}
		if text, err := ask("agent:other", "/?as=br").Text(t.Context(), 1<<20); err != nil || text != string(content) {
			t.Errorf("another user: %d bytes, %v", len(text), err)
		}
		accepted.Clear()
		for large.Free() < maxLarge/2 { // the exchange ends
			runtime.Gosched()
		}
	}
	if have := do(t, open(t, c.grant), get(at, "/?as=gzip")); have.err != nil || have.text != string(content) {
		t.Errorf("meanwhile: %+v", have)
	}
	if have := do(t, open(t, c.grant), get(at, "/?as=br")); have.text == string(content) { // which was not asked for
		t.Error("one more is decoded")
	}
	accepted.Range(func(encodings, _ any) bool {
		if encodings != smallEncodings {
			t.Errorf("it accepts %s", encodings)
		}
		return true
	})
	close(stop)
	for large.Free() < maxLarge { // their exchanges end
		runtime.Gosched()
	}
	if have := do(t, open(t, c.grant), get(at, "/?as=br")); have.err != nil || have.text != string(content) {
		t.Errorf("afterwards: %+v", have)
	}
}

// TestReceivedIsCharged checks that a call's received bytes are counted as they arrive and after decoding, over all its exchanges.
func TestReceivedIsCharged(t *testing.T) {
	body := packed["gzip"](make([]byte, 40_000))
	at := serve(t, func(w nethttp.ResponseWriter, _ *nethttp.Request) {
		w.Header().Set("Content-Encoding", "gzip")
		_, _ = w.Write(body)
	})
	c := client(t, Options{Rules: []Rule{good(at)}, Received: 100_000})
	for range 2 {
		if have := do(t, c, get(at, "/")); have.err != nil || len(have.text) != 40_000 {
			t.Fatal(have.err)
		}
	}
	wantError(t, do(t, c, get(at, "/")).err, abi.ErrExhausted, "bytes received by http: 100000")
	if have := do(t, open(t, c.grant), get(at, "/")); have.err != nil {
		t.Fatal("the next call starts with less:", have.err)
	}
}

// TestDecodingTakesTime has a server send data that takes work to decode, empty blocks and zeros. The call is charged for the time, piece by piece. When
// none is left, decoding stops.
func TestDecodingTakesTime(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("threads are measured on Linux only")
	}
	header := packed["gzip"](nil)[:10]
	for name, body := range map[string][]byte{
		"blocks of nothing": append(header, bytes.Repeat([]byte{0, 0, 0, 0xff, 0xff}, 3<<20)...),
		"zeros":             packed["gzip"](make([]byte, 16<<20)),
	} {
		t.Run(name, func(t *testing.T) {
			at := serve(t, func(w nethttp.ResponseWriter, _ *nethttp.Request) {
				w.Header().Set("Content-Encoding", "gzip")
				_, _ = w.Write(body)
			})
			pieces, beyond := 0, 0
			read := func(left time.Duration) error {
				pieces, beyond = 0, 0
				c, err := client(t, Options{Rules: []Rule{good(at)}}).grant.Open(abi.WithWork(t.Context(), func(took time.Duration) error {
					pieces++
					if left < 0 {
						beyond++
					}
					if left -= took; left < 0 {
						return errors.New("over")
					}
					return nil
				}))
				if err != nil {
					t.Fatal(err)
				}
				exchange, err := c.(*Client).Start(t.Context(), get(at, "/"))
				if err != nil {
					t.Fatal(err)
				}
				defer func() { _ = exchange.Close() }()
				_, err = exchange.Text(t.Context(), 16<<20)
				return err
			}
			if err := read(time.Hour); errors.Is(err, abi.ErrExhausted) || pieces < 300 {
				t.Errorf("got %v, charged in %d pieces", err, pieces)
			}
			// Two charges come after: the rest of the piece, and the exchange's part of the connection.
			if err := read(5 * time.Millisecond); !errors.Is(err, abi.ErrExhausted) || !strings.Contains(err.Error(), "over") || beyond > 2 {
				t.Errorf("got %v, with %d pieces after", err, beyond)
			}
		})
	}
}

// FuzzDecode checks that decoding ends with bytes or an error, and within the limit, whatever a server sends.
func FuzzDecode(f *testing.F) {
	for encoding, pack := range packed {
		f.Add(encoding, pack([]byte("some text, some text")))
		f.Add(encoding, pack(make([]byte, 100_000)))
	}
	f.Fuzz(func(t *testing.T, encoding string, data []byte) {
		if packed[encoding] == nil {
			t.Skip()
		}
		r, err := decode(bytes.NewReader(data), encoding, 1000)
		if err != nil {
			return
		}
		_, _ = io.Copy(io.Discard, io.LimitReader(r, 1<<20))
		_ = r.Close()
	})
}

// TestRequestsAreCounted checks that the host's work for a request without a body is bounded, too.
func TestRequestsAreCounted(t *testing.T) {
	sent := atomic.Int64{}
	transport := stubs(func(r *nethttp.Request) (*nethttp.Response, error) {
		sent.Add(1)
		response := &nethttp.Response{StatusCode: nethttp.StatusFound, Header: nethttp.Header{}, Body: nethttp.NoBody, Request: r}
		if hop, _ := strconv.Atoi(r.URL.Query().Get("hop")); hop < maxRedirects {
			response.Header.Set("Location", "/?hop="+strconv.Itoa(hop+1))
		}
		if r.URL.Path == "/long" {
			response.Header = nethttp.Header{"X": {strings.Repeat("a", 60_000)}}
		}
		return response, nil
	})
	for _, test := range []struct {
		name, path, message string
		most                int64
	}{
		{"redirects", "/", "http requests of one call: 8192", maxRequests},
		{"heads", "/long", "bytes received by http", 1<<30/60_000/headCost + 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			sent.Store(0)
			grant, err := New(Options{Rules: []Rule{{Host: "a.example"}}, Transport: transport})
			if err != nil {
				t.Fatal(err)
			}
			c := open(t, grant)
			for range 5000 {
				if err = do(t, c, Request{Method: "GET", URL: "https://a.example" + test.path}).err; err != nil {
					break
				}
			}
			wantError(t, err, abi.ErrExhausted, test.message)
			if sent.Load() > test.most {
				t.Errorf("%d requests were sent, at most %d are worked on", sent.Load(), test.most)
			}
			if err := do(t, open(t, grant), Request{Method: "GET", URL: "https://a.example/"}).err; err != nil {
				t.Error("the next call starts with less:", err)
			}
		})
	}
}

// stubs is a transport.
type stubs func(*nethttp.Request) (*nethttp.Response, error)

func (a stubs) RoundTrip(r *nethttp.Request) (*nethttp.Response, error) { return a(r) }

// TestHeldInMemoryIsBounded checks that the memory used for everything except bodies is less than the amount charged.
func TestHeldInMemoryIsBounded(t *testing.T) {
	c := open(t, Allow(Rule{Host: "a.example"}))
	rules := make([]WitRule, MaxRules)
	for i := range rules {
		rules[i] = WitRule{Host: "a.example", Path: strings.Repeat("/a", maxPattern/4)}
	}
	var err error
	for range maxNarrowings {
		narrowed, refused := c.Narrow(t.Context(), rules)
		if err = refused; err != nil {
			break
		}
		c = narrowed
	}
	wantError(t, err, abi.ErrExhausted, "8388608 bytes")
}

// TestBindingsShareBudgets gives one call two bindings, and another call one binding.
func TestBindingsShareBudgets(t *testing.T) {
	one := abi.WithCall(t.Context())
	client := func(ctx context.Context, options Options) *Client {
		t.Helper()
		grant, err := New(options)
		if err != nil {
			t.Fatal(err)
		}
		c, err := grant.Open(ctx)
		if err != nil {
			t.Fatal(err)
		}
		return c.(*Client)
	}
	first, second := client(one, Options{}), client(one, Options{Rules: []Rule{{Host: "a.example"}}})
	if err := first.call.memory.Reserve(maxMemory); err != nil {
		t.Fatal(err)
	}
	defer first.call.memory.Release(maxMemory)
	wantError(t, second.call.memory.Reserve(1), abi.ErrExhausted, "8388608 bytes")
	for _, other := range []*Client{client(abi.WithCall(one), Options{}), client(t.Context(), Options{}), client(one, Options{Held: 16 << 20})} {
		if err := other.call.memory.Reserve(1); err != nil {
			t.Error(err)
		}
	}
}
