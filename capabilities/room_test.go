package capabilities_test

import (
	"context"
	"errors"
	"fmt"
	nethttp "net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/capabilities/http"
	"github.com/stilehost/stile/capabilities/kv"
	"github.com/stilehost/stile/capabilities/workspace"
)

// TestAnswersAskForRoom has operations with large answers: the host knows the size of each before it is made, and an operation whose
// wait for room ends makes none.
func TestAnswersAskForRoom(t *testing.T) {
	ctx := t.Context()
	store, err := workspace.Open(ctx, t.TempDir()+"/ws.db", workspace.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	files := store.Workspace("w")
	for i := range 200 {
		if err := files.Write(ctx, fmt.Sprintf("names/%0200d", i), ""); err != nil {
			t.Fatal(err)
		}
	}
	lines := strings.Repeat("\n", 100_000)
	if err := errors.Join(files.Write(ctx, "empty", ""), files.Write(ctx, "lines", lines)); err != nil {
		t.Fatal(err)
	}
	buckets, err := kv.Open(ctx, t.TempDir()+"/kv.db", kv.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = buckets.Close() })
	bucket := buckets.Bucket("b")
	if err := bucket.Set(ctx, "key", lines); err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(nethttp.HandlerFunc(func(w nethttp.ResponseWriter, _ *nethttp.Request) {
		w.Header()["X"] = slices.Repeat([]string{"y"}, 1000)
	}))
	t.Cleanup(server.Close)
	at, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	port, err := strconv.ParseUint(at.Port(), 10, 16)
	if err != nil {
		t.Fatal(err)
	}
	rule := http.Rule{Scheme: "http", Host: at.Hostname(), Port: uint16(port), Addresses: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}
	for i := range 60 {
		rule.Headers = append(rule.Headers, fmt.Sprintf("x-%d", i))
	}
	grant, err := http.New(http.Options{Rules: slices.Repeat([]http.Rule{rule}, 200)})
	if err != nil {
		t.Fatal(err)
	}
	opened, err := grant.Open(ctx)
	if err != nil {
		t.Fatal(err)
	}
	client := opened.(*http.Client)
	exchange, err := client.Start(ctx, http.Request{Method: "GET", URL: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = exchange.Close() })
	for name, c := range map[string]struct {
		least int64 // of the answer
		do    func(ctx context.Context) (size int, err error)
	}{
		"diff": {2 * 100_000, func(ctx context.Context) (int, error) {
			text, err := files.Diff(ctx, "empty", "lines")
			return len(text), err
		}},
		"list": {200 * 600, func(ctx context.Context) (int, error) {
			page, err := files.List(ctx, "names", 1000, nil)
			return len(page.Entries), err
		}},
		"value": {100_000, func(ctx context.Context) (int, error) {
			value, err := bucket.Get(ctx, "key")
			if value == nil {
				return 0, err
			}
			return len(*value), err
		}},
		"head": {1000 * 330, func(ctx context.Context) (int, error) {
			head, err := exchange.Head(ctx)
			return len(head.Headers), err
		}},
		"rules": {200 * 60 * 60, func(ctx context.Context) (int, error) { return len(client.Rules(ctx)), abi.ErrExpired }}, // it has no error
	} {
		asked := int64(0)
		full := abi.WithRoom(ctx, func(bytes int64) error { asked = bytes; return abi.ErrExpired })
		if n, err := c.do(full); !errors.Is(err, abi.ErrExpired) || n > 0 && name != "rules" || asked < c.least || asked > 10*c.least {
			t.Errorf("%s: asked for %d bytes, want at least %d; answered %d, %v", name, asked, c.least, n, err)
		}
		free := abi.WithRoom(ctx, func(int64) error { return nil })
		if n, err := c.do(free); n == 0 || err != nil && name != "rules" {
			t.Errorf("%s: with room: %d, %v", name, n, err)
		}
	}
}
