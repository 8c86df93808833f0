package http

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	nethttp "net/http"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stilehost/stile/abi"
)

const mib = 1 << 20

// numbered is a body of so many bytes, each 8 of which are different from those around them.
type numbered struct {
	at, size int64
	gave     *atomic.Int64
	far      int64         // closes when as much was read
	reached  chan struct{} // of far
}

func (p *numbered) Read(to []byte) (int, error) {
	n := int(min(int64(len(to)), p.size-p.at))
	if n == 0 {
		return 0, io.EOF
	}
	copy(to[:n], numberedAt(p.at, n))
	if p.at < p.far && p.at+int64(n) >= p.far {
		close(p.reached)
	}
	p.at += int64(n)
	p.gave.Store(p.at)
	return n, nil
}

func (p *numbered) Close() error { return nil }

func numberedAt(at int64, n int) []byte {
	made := make([]byte, 0, n+16)
	for word := at / 8; word*8 < at+int64(n); word++ {
		made = binary.LittleEndian.AppendUint64(made, uint64(word)*0x9e3779b97f4a7c15)
	}
	return made[at%8:][:n]
}

// larges answers /N with a body of N MiB.
type larges struct {
	mib  map[string]int64
	gave atomic.Int64
	far  int64
	// reached is closed when far bytes of the body /far were read.
	reached chan struct{}
	zipped  map[string][]byte // compressed bodies by path
}

func zipped(t *testing.T, data []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, err := w.Write(data)
	if err := errors.Join(err, w.Close()); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func (l *larges) RoundTrip(r *nethttp.Request) (*nethttp.Response, error) {
	p := &numbered{size: l.mib[r.URL.Path] * mib, gave: new(atomic.Int64)}
	if r.URL.Path == "/far" {
		p.gave, p.far, p.reached = &l.gave, l.far, l.reached
	}
	if r.URL.Path == "/zeros" || r.URL.Path == "/short" {
		header := nethttp.Header{"Content-Encoding": {"gzip"}}
		return &nethttp.Response{StatusCode: nethttp.StatusOK, Header: header, Request: r, ContentLength: -1, Body: io.NopCloser(bytes.NewReader(l.zipped[r.URL.Path]))}, nil
	}
	return &nethttp.Response{StatusCode: nethttp.StatusOK, Header: nethttp.Header{}, Request: r, ContentLength: -1, Body: p}, nil
}

// readOn reads n bytes of a body in parts, from an offset, and compares them.
func readOn(t *testing.T, e *Exchange, at, n int64) {
	t.Helper()
	for end := at + n; at < end; {
		part, err := e.Blob(t.Context(), &Part{uint64(at), uint32(min(end-at, abi.MaxBytes))})
		if err != nil {
			t.Fatalf("at %d: %v", at, err)
		}
		got, err := io.ReadAll(part.Reader())
		if err := errors.Join(err, part.Close()); err != nil {
			t.Fatal(err)
		}
		if len(got) == 0 || !bytes.Equal(got, numberedAt(at, len(got))) {
			t.Fatalf("at %d: %d bytes, which are wrong", at, len(got))
		}
		at += int64(len(got))
	}
}

// TestBodiesOfAnySize reads bodies in parts that are larger than what a call may hold. Only what nobody has read yet counts.
func TestBodiesOfAnySize(t *testing.T) {
	for name, test := range map[string]func(t *testing.T, l *larges, start func(path string) *Exchange){
		"one after the other": func(t *testing.T, _ *larges, start func(string) *Exchange) {
			for range 2 {
				e := start("/30")
				readOn(t, e, 0, 30*mib)
				if rest, err := partOf(t, e, 30*mib, 1); rest != "" || err != nil {
					t.Errorf("the end is %q, %v", rest, err)
				}
				_ = e.Close()
			}
		},
		"two at once": func(t *testing.T, _ *larges, start func(string) *Exchange) {
			a, b := start("/30"), start("/30")
			for at := int64(0); at < 30*mib; at += mib {
				readOn(t, a, at, mib)
				readOn(t, b, at, mib)
			}
		},
		"six at once, concurrently": func(t *testing.T, _ *larges, start func(string) *Exchange) {
			var readers sync.WaitGroup
			for range 6 {
				e := start("/30")
				readers.Go(func() {
					for at := uint64(0); at < 30*mib; {
						part, err := e.Blob(t.Context(), &Part{at, abi.MaxBytes})
						if err != nil {
							t.Errorf("at %d: %v", at, err)
							return
						}
						at += part.Size(t.Context())
						if err := part.Close(); err != nil {
							t.Error(err)
						}
					}
				})
			}
			readers.Wait()
		},
		"what was dropped": func(t *testing.T, _ *larges, start func(string) *Exchange) {
			e := start("/30")
			readOn(t, e, 0, 22*mib)
			_, err := partOf(t, e, 0, 1)
			wantError(t, err, abi.ErrExhausted, "of the body were dropped when they had been read")
			_, err = e.Text(t.Context(), 1)
			wantError(t, err, abi.ErrExhausted, "were dropped")
			_, err = e.Blob(t.Context(), nil)
			wantError(t, err, abi.ErrExhausted, "were dropped")
			if !e.Subscribe(t.Context(), Stage{Case: StageWhole}).IsReady() {
				t.Error("who waits for the whole body waits for ever")
			}
			readOn(t, e, 22*mib, 8*mib)
		},
		"repeatedly, as long as it fits": func(t *testing.T, _ *larges, start func(string) *Exchange) {
			e := start("/15")
			for range 2 {
				readOn(t, e, 0, 15*mib)
			}
			body, err := e.Blob(t.Context(), nil)
			if err != nil || body.Size(t.Context()) != 15*mib {
				t.Fatal(body, err)
			}
			_ = body.Close()
		},
		"the whole": func(t *testing.T, _ *larges, start func(string) *Exchange) {
			_, err := start("/30").Blob(t.Context(), nil)
			wantError(t, err, abi.ErrExhausted, "bytes held for http: 16777216 bytes")
		},
		"the whole after a part": func(t *testing.T, _ *larges, start func(string) *Exchange) {
			e := start("/15")
			readOn(t, e, 0, mib)
			body, err := e.Blob(t.Context(), nil)
			if err != nil || body.Digest(t.Context()) == "" {
				t.Fatal(body, err)
			}
			_ = body.Close()
		},
		"far ahead of its reader": func(t *testing.T, l *larges, start func(string) *Exchange) {
			e := start("/far")
			<-l.reached
			for range 3 { // another body has room meanwhile
				other := start("/3")
				body, err := other.Blob(t.Context(), nil)
				if err != nil {
					t.Fatal(err)
				}
				_ = errors.Join(body.Close(), other.Close())
			}
			if gave := l.gave.Load(); gave > 13*mib {
				t.Errorf("%d bytes were taken", gave)
			}
			readOn(t, e, 0, 30*mib)
		},
		"small ones that nobody reads": func(t *testing.T, _ *larges, start func(string) *Exchange) {
			var all []*Exchange
			for range 15 {
				all = append(all, start("/1"))
			}
			for _, e := range all {
				<-e.done.Done() // they do not wait for readers
				readOn(t, e, 0, mib)
			}
		},
		"compressed ones that nobody reads": func(t *testing.T, l *larges, start func(string) *Exchange) {
			l.zipped = map[string][]byte{"/zeros": zipped(t, make([]byte, 30*mib)), "/short": zipped(t, []byte("read"))}
			var all []*Exchange
			for range maxDecoding {
				e := start("/zeros")
				if part, err := partOf(t, e, 0, 1); part != "\x00" || err != nil { // it is being decompressed
					t.Fatal(part, err)
				}
				all = append(all, e)
			}
			if text, err := start("/short").Text(t.Context(), mib); text != "read" || err != nil {
				t.Fatal(text, err)
			}
			for _, e := range all {
				if part, err := partOf(t, e, 29*mib, 1); part != "\x00" || err != nil {
					t.Fatal(part, err)
				}
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			l := &larges{mib: map[string]int64{"/1": 1, "/3": 3, "/15": 15, "/30": 30, "/far": 30}, far: 11 * mib, reached: make(chan struct{})}
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			c := client(t, Options{Rules: []Rule{{Host: "good.example", MaxResponse: 1 << 30}}, Held: 16 * mib, Transport: l})
			var all []*Exchange
			test(t, l, func(path string) *Exchange {
				e, err := c.Start(ctx, Request{Method: "GET", URL: "https://good.example" + path})
				if err != nil {
					t.Fatal(err)
				}
				all = append(all, e)
				return e
			})
			for _, e := range all {
				_ = e.Close()
			}
			if free := c.call.held.Free(); free != 16*mib {
				t.Errorf("%d bytes are free at the end", free)
			}
		})
	}
}

// A body as large as a rule takes in is held whole, also to be sent on, and bindings of a call share the room for the largest.
func TestWholeBodyOfTheRule(t *testing.T) {
	t.Parallel()
	ctx := abi.WithCall(t.Context())
	large := Rule{Host: "a.example", Methods: []string{"GET"}, MaxResponse: 100 * mib}
	small := large
	small.Host, small.MaxResponse = "b.example", 0
	l := &larges{mib: map[string]int64{"/90": 90, "/15": 15}}
	open := func(o Options) *Client {
		t.Helper()
		o.Transport, o.TempDir = l, t.TempDir()
		grant, err := New(o)
		if err != nil {
			t.Fatal(err)
		}
		c, err := grant.Open(ctx)
		if err != nil {
			t.Fatal(err)
		}
		return c.(*Client)
	}
	whole := func(c *Client, url string) error {
		t.Helper()
		e, err := c.Start(ctx, Request{Method: "GET", URL: url})
		if err != nil {
			t.Fatal(err)
		}
		body, err := e.Blob(ctx, nil)
		if err != nil {
			return err
		}
		sum := sha256.Sum256(numberedAt(0, int(body.Size(ctx))))
		if got := body.Digest(ctx); got != fmt.Sprintf("sha256:%x", sum) {
			t.Errorf("%s has other bytes: %s", url, got)
		}
		return errors.Join(body.Close(), e.Close())
	}
	first, second := open(Options{Rules: []Rule{small}}), open(Options{Rules: []Rule{large}})
	for _, c := range []*Client{first, second} {
		if limit := c.call.held.Limit(); limit != 100*mib {
			t.Errorf("%d bytes can be held", limit)
		}
	}
	if err := errors.Join(whole(second, "https://a.example/90"), whole(first, "https://b.example/15")); err != nil {
		t.Error(err)
	}
	for name, o := range map[string]Options{
		"a bound of the program":      {Rules: []Rule{large}, Held: 80 * mib},
		"a bound on what is received": {Rules: []Rule{large}, Received: 80 * mib},
		"a ceiling":                   {Rules: []Rule{large}, Received: 99 * mib, Within: [][]Rule{{{Host: "a.example", Methods: []string{"GET"}, MaxResponse: 80 * mib}}}},
	} {
		c := open(o)
		if limit := c.call.held.Limit(); limit > 80*mib {
			t.Errorf("%s: %d bytes can be held", name, limit)
		}
		if err := whole(c, "https://a.example/90"); !errors.Is(err, abi.ErrExhausted) && !errors.Is(err, abi.ErrTooLarge) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}
