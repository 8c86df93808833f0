package http

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"io"
	"net"
	nethttp "net/http"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/iotest"

	"pgregory.net/rapid"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/internal/spelling"
	"github.com/stilehost/stile/secret"
)

// vault is a map of secrets.
type vault map[string]string

func (v vault) Get(_ context.Context, name string) (string, error) {
	if secret, ok := v[name]; ok {
		return secret, nil
	}
	return "", errors.New("/home/me/.stile/secrets.db has no " + name)
}

// token has characters that every encoding writes differently.
const token = `tok/en+"se\cr&et<9>=`

func withCredential(port uint16, as string) Rule {
	rule := good(port)
	rule.Credential, rule.As = "a-token", as
	return rule
}

func TestCredentialIsSent(t *testing.T) {
	at := serve(t, func(w nethttp.ResponseWriter, r *nethttp.Request) {
		user, password, _ := r.BasicAuth()
		ok := r.Header.Get("Authorization") == "Bearer "+token || r.Header.Get("X-Key") == token || user == "me" && password == token ||
			slices.Equal(r.URL.Query()["key"], []string{token})
		_, _ = fmt.Fprintln(w, ok, len(r.Header["Authorization"])+len(r.Header["X-Key"]), r.URL.Query()["other"])
	})
	for as, secret := range map[string]string{
		"": token, "bearer": token, "basic": "me:" + token, "header:X-Key": token, "header:authorization": "Bearer " + token, "query:key": token,
	} {
		c := client(t, Options{Rules: []Rule{withCredential(at, as)}, Credentials: vault{"a-token": secret}})
		want := "true 1 [1 2]\n"
		if as == "query:key" {
			want = "true 0 [1 2]\n"
		}
		have := do(t, c, get(at, "/?key=guest&other=1&%6bey=guest&other=2"))
		if have.err != nil || have.text != want {
			t.Errorf("%s: %s, %v", as, have.text, have.err)
		}
		if have.head.URL != fmt.Sprintf("http://good.example:%d/?key=guest&other=1&%%6bey=guest&other=2", at) {
			t.Errorf("%s: %s", as, have.head.URL)
		}
	}
}

// echoes are ways in which a server returns the data that it received.
var echoes = map[string]func(string) string{
	"plain":   func(s string) string { return s },
	"quoted":  func(s string) string { return fmt.Sprintf("%q", s) },
	"json":    func(s string) string { text, _ := json.Marshal(map[string]string{"seen": s}); return string(text) },
	"slashes": func(s string) string { return strings.ReplaceAll(s, "/", `\/`) },
	"html":    html.EscapeString,
	"query":   url.QueryEscape,
	"lower": func(s string) string {
		return strings.ToLower(url.QueryEscape("x")) + regexp.MustCompile(`%[0-9A-F]{2}`).ReplaceAllStringFunc(url.QueryEscape(s), strings.ToLower)
	},
	"path":   url.PathEscape,
	"base64": func(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) },
	"url64":  func(s string) string { return base64.URLEncoding.EncodeToString([]byte(s)) },
	"twice":  func(s string) string { return s + s },
}

// TestCredentialIsNotEchoed checks that a server that returns the secret, in headers, body, redirect or invalid HTTP, does not
// bring it to the guest.
func TestCredentialIsNotEchoed(t *testing.T) {
	sentBy := func(r *nethttp.Request) string {
		_, password, ok := r.BasicAuth()
		switch {
		case ok:
			return password
		case r.URL.Query().Has("key"):
			return r.URL.Query().Get("key")
		case r.Header.Get("X-Key") != "":
			return r.Header.Get("X-Key")
		}
		return strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
	}
	at := serve(t, func(w nethttp.ResponseWriter, r *nethttp.Request) {
		secret := echoes[r.FormValue("how")](sentBy(r))
		w.Header().Set("X-Echo", secret)
		w.Header().Set("Content-Type", `text/plain; a="`+secret+`"`)
		w.Header().Set("X-All", r.Header.Get("Authorization")+r.Header.Get("X-Key")+r.URL.RawQuery)
		switch r.URL.Path {
		case "/moved":
			w.Header().Set("Location", "/end?echo="+url.QueryEscape(secret)+"&"+r.URL.RawQuery)
			w.WriteHeader(nethttp.StatusFound)
		case "/manual":
			w.Header()["Location"] = []string{"/" + secret}
			w.WriteHeader(nethttp.StatusFound)
		case "/hidden":
			var encoded strings.Builder
			for _, c := range []byte(sentBy(r)) {
				fmt.Fprintf(&encoded, "%%%02x", c)
			}
			w.Header().Set("Location", "/end?how=plain&echo="+encoded.String())
			w.WriteHeader(nethttp.StatusFound)
		case "/refused":
			w.Header()["Location"] = []string{"http://" + secret + "@evil.example/"}
			w.WriteHeader(nethttp.StatusFound)
		case "/denied":
			w.Header()["Location"] = []string{"http://evil.example/" + url.PathEscape(sentBy(r)) + "?" + secret}
			w.WriteHeader(nethttp.StatusFound)
		}
		body := strings.Repeat(secret+"\x00\xff", 3) + r.Header.Get("Authorization") + " " + r.URL.RawQuery
		_, _ = io.WriteString(w, body)
	})
	for _, as := range []string{"bearer", "basic", "header:x-key", "query:key"} {
		secret := token
		if as == "basic" {
			secret = "me:" + token
		}
		c := client(t, Options{Rules: []Rule{withCredential(at, as)}, Credentials: vault{"a-token": secret}})
		for how := range echoes {
			for _, path := range []string{"/", "/moved", "/manual", "/hidden", "/refused", "/denied"} {
				request := get(at, path+"?how="+how)
				if path == "/manual" {
					request.Redirect = RedirectManual
				}
				exchange, err := c.Start(t.Context(), request)
				if err != nil {
					t.Fatal(err)
				}
				head, err := exchange.Head(t.Context())
				seen := fmt.Sprintf("%+v %v", head, err)
				if denied, ok := errors.AsType[*abi.Error](err); ok && denied.Denial != nil {
					seen += fmt.Sprintf("%+v", *denied.Denial)
				}
				if body, err := exchange.Blob(t.Context(), nil); err == nil {
					data, _ := body.Bytes(t.Context(), 0, 1<<16)
					seen += body.MediaType(t.Context()) + string(data)
					_ = body.Close()
				}
				for _, form := range slices.Concat(spelling.Of(token), spelling.Of(secret)) {
					if strings.Contains(seen, form) || strings.Contains(strings.ToLower(seen), strings.ToLower(token)) {
						t.Errorf("%s %s %s: %s", as, path, how, seen)
					}
				}
				if path == "/" && !strings.Contains(seen, "********") {
					t.Errorf("%s %s: nothing is masked: %s", as, how, seen)
				}
				_ = exchange.Close()
			}
		}
	}
}

// TestCredentialIsNotInErrors checks errors, because net/http quotes data that it cannot parse.
func TestCredentialIsNotInErrors(t *testing.T) {
	const secret = "sk-1234567890"
	for _, answer := range []string{
		secret + "\r\n\r\n", "HTTP/1.1 " + secret + "\r\n\r\n", "HTTP/1.1 200 OK\r\n" + secret + "\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Length: " + secret + "\r\n\r\n",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: " + secret + "\r\n\r\n", "HTTP/1.1 200 OK\r\n" + secret + ": a\r\nContent-Length: 0\r\n\r\n",
		"HTTP/1.1 302 Found\r\nLocation: http://" + secret + "_%zz/\r\nContent-Length: 0\r\n\r\n",
	} {
		at := serveRaw(t, func(conn net.Conn) { _, _ = io.WriteString(conn, answer) })
		c := client(t, Options{Rules: []Rule{withCredential(at, "")}, Credentials: vault{"a-token": secret}})
		if have := do(t, c, get(at, "/")); strings.Contains(fmt.Sprint(have), secret) {
			t.Errorf("%q: %v", answer, have)
		}
	}
}

// TestCredentialStaysWithOrigin checks that after a redirect to another origin no credential is sent any more, not even to the first.
func TestCredentialStaysWithOrigin(t *testing.T) {
	var first uint16
	var mu sync.Mutex
	seen := map[string]string{}
	record := func(r *nethttp.Request) {
		mu.Lock()
		defer mu.Unlock()
		seen[r.URL.Path] = r.Header.Get("Authorization") + r.Header.Get("X-Key")
	}
	second := serve(t, func(w nethttp.ResponseWriter, r *nethttp.Request) {
		record(r)
		nethttp.Redirect(w, r, fmt.Sprintf("http://good.example:%d/back", first), nethttp.StatusTemporaryRedirect)
	})
	first = serve(t, func(w nethttp.ResponseWriter, r *nethttp.Request) {
		record(r)
		switch r.URL.Path {
		case "/":
			nethttp.Redirect(w, r, "/same", nethttp.StatusFound)
		case "/same":
			nethttp.Redirect(w, r, fmt.Sprintf("http://good.example:%d/away", second), nethttp.StatusFound)
		}
	})
	other := withCredential(second, "header:x-key")
	other.Credential = "b-token"
	c := client(t, Options{Rules: []Rule{withCredential(first, ""), other}, Credentials: vault{"a-token": "aaaaaaaaa", "b-token": "bbbbbbbbb"}})
	if have := do(t, c, get(first, "/")); have.err != nil {
		t.Fatal(have.err)
	}
	for path, want := range map[string]string{"/": "Bearer aaaaaaaaa", "/same": "Bearer aaaaaaaaa", "/away": "", "/back": ""} {
		if have, ok := seen[path]; !ok || have != want {
			t.Errorf("%s: %q", path, have)
		}
	}
}

// TestCredentialNeedsPrivacy has a rule that allows http because its name is in a private network. The name then resolves to a public
// address.
func TestCredentialNeedsPrivacy(t *testing.T) {
	for _, test := range []struct {
		scheme, address, allowed string
		dialled                  bool
	}{
		{"http", "127.0.0.1", "127.0.0.1/32", true},
		{"http", "8.8.8.8", "127.0.0.1/32", false},
		{"http", "8.8.8.8", "8.0.0.0/8", false},
		{"http", "64:ff9b::808:808", "64:ff9b::/96", false},
		{"https", "8.8.8.8", "127.0.0.1/32", true},
	} {
		rule := withCredential(80, "bearer")
		rule.Scheme, rule.Addresses = test.scheme, []netip.Prefix{netip.MustParsePrefix(test.allowed)}
		c := client(t, Options{Rules: []Rule{rule}, Credentials: vault{}})
		err := c.grant.rules[0].policy.check(netip.AddrPortFrom(netip.MustParseAddr(test.address), 80))
		if (err == nil) != test.dialled {
			t.Errorf("%+v: %v", test, err)
		}
		if refused, ok := errors.AsType[*refusedError](err); ok {
			wantDenied(t, checked(t, get(80, "/")).refused(refused), "good.example has a public address, and this rule sends nothing there without https")
		}
	}
}

func TestCredentialIsTheHosts(t *testing.T) {
	at := serve(t, func(nethttp.ResponseWriter, *nethttp.Request) { t.Error("a request arrived") })
	rule := withCredential(at, "header:x-key")
	rule.Headers = []string{"*"}
	request := get(at, "/")
	request.Headers = []Header{{"X-Key", "mine"}}
	for _, c := range []*Client{
		client(t, Options{Rules: []Rule{rule}, Credentials: vault{"a-token": token}}),
		client(t, Options{Rules: []Rule{withCredential(at, "")}, Credentials: vault{"a-token": token}}),
	} {
		_, err := c.Start(t.Context(), request)
		wantDenied(t, err, "does not allow the header x-key")
		if strings.Contains(err.Error(), "a-token") {
			t.Errorf("the guest learns what its credential is called: %v", err)
		}
		for _, seen := range c.Rules(t.Context()) {
			if strings.Contains(fmt.Sprint(seen), "token") {
				t.Errorf("%v", seen)
			}
		}
	}
	// Byte by byte, a secret could be read undetected.
	request.Headers = []Header{{"Range", "bytes=0-0"}}
	_, err := client(t, Options{Rules: []Rule{rule}, Credentials: vault{}}).Start(t.Context(), request)
	wantDenied(t, err, "does not allow the header range")
	named := rule
	named.Headers = []string{"range"}
	if !compile(t, named).allowsHeader("range") {
		t.Error("a rule that names it does not allow Range")
	}
	for name, secret := range map[string]string{
		"none": "", "short": "1234567", "line": "12345678\r\nHost: evil", "not ASCII": "12345678é", "space": "12345678 ", "long": strings.Repeat("a", maxSecret+1),
	} {
		credentials := vault{"a-token": secret}
		if name == "none" {
			credentials = vault{}
		}
		have := do(t, client(t, Options{Rules: []Rule{rule}, Credentials: credentials}), get(at, "/"))
		wantDenied(t, have.err, "the credential")
		if text := fmt.Sprintf("%v %+v", have.err, have.err); strings.Contains(text, "1234567") || strings.Contains(text, "secrets.db") {
			t.Errorf("%s: %s", name, text)
		}
	}
}

func TestCredentialRuleIsRefused(t *testing.T) {
	for name, rule := range map[string]Rule{
		"any host":           {Scheme: "https", Host: "*", Port: 443, Credential: "a"},
		"plain text":         {Scheme: "http", Host: "good.example", Credential: "a"},
		"plain text address": {Scheme: "http", Host: "8.8.8.8", Credential: "a"},
		"a secret":           {Host: "a", Credential: "ghp_ABCDEF"},
		"as without":         {Host: "a", As: "bearer"},
		"unknown as":         {Host: "a", Credential: "a", As: "cookie"},
		"no header":          {Host: "a", Credential: "a", As: "header"},
		"empty header":       {Host: "a", Credential: "a", As: "header:"},
		"header with line":   {Host: "a", Credential: "a", As: "header:x\r\ny"},
		"host header":        {Host: "a", Credential: "a", As: "header:Host"},
		"safe header":        {Host: "a", Credential: "a", As: "header:accept"},
		"no parameter":       {Host: "a", Credential: "a", As: "query:"},
		"odd parameter":      {Host: "a", Credential: "a", As: "query:a&b"},
		"bearer with name":   {Host: "a", Credential: "a", As: "bearer:x"},
		"guest may set it":   {Host: "a", Credential: "a", Headers: []string{"Authorization"}},
	} {
		if _, err := rule.compile(); err == nil || strings.Contains(err.Error(), "ghp_ABCDEF") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := New(Options{Rules: []Rule{{Host: "a", Credential: "a"}}}); err == nil {
		t.Error("a credential from nowhere is accepted")
	}
	for _, host := range []string{"127.0.0.1", "::1"} {
		if _, err := (Rule{Scheme: "http", Host: host, Credential: "a"}).compile(); err != nil {
			t.Error(err)
		}
	}
}

// TestMaskReader checks that no secret passes, however the bytes arrive. Nothing else changes, and nothing is delayed for long.
func TestMaskReader(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		letters := rapid.StringOfN(rapid.SampledFrom([]rune("ab")), 8, 12, -1)
		texts := []string{letters.Draw(t, "first"), letters.Draw(t, "second")}
		forms := secrets{newForms(texts...)}
		text := rapid.StringOfN(rapid.SampledFrom([]rune("ab")), 0, 60, -1).Draw(t, "text")
		want := []byte(text)
		for i := range text {
			for _, form := range texts {
				if strings.HasPrefix(text[i:], form) {
					asterisks(want[i : i+len(form)])
				}
			}
		}
		for name, r := range map[string]io.Reader{
			"whole": strings.NewReader(text), "bytes": iotest.OneByteReader(strings.NewReader(text)), "halves": iotest.HalfReader(strings.NewReader(text)),
			"with end": iotest.DataErrReader(strings.NewReader(text)),
		} {
			have, err := io.ReadAll(iotest.OneByteReader(&maskReader{r: r, secrets: forms}))
			if err != nil || !bytes.Equal(have, want) {
				t.Fatalf("%s %q: have %q, want %q, %v", name, text, have, want, err)
			}
		}
		if have := forms.mask(text); have != string(want) {
			t.Fatalf("%q: have %q, want %q", text, have, want)
		}
	})
	r := &maskReader{r: io.MultiReader(strings.NewReader("event: 1\n\n12345"), iotest.ErrReader(errors.New("cut"))), secrets: secrets{newForms("12345678")}}
	data := make([]byte, 100)
	if n, err := r.Read(data); string(data[:n]) != "event: 1\n\n" || err != nil {
		t.Fatalf("%q, %v", data[:n], err)
	}
	if _, err := r.Read(data); err == nil || err.Error() != "cut" {
		t.Fatal(err)
	}
}

// TestCredentialNames compares the names that a rule takes with those that a secret can have.
func TestCredentialNames(t *testing.T) {
	for _, name := range []string{"a", "0", "a-b_c", strings.Repeat("a", 64), strings.Repeat("a", 65), "A", "-a", "_a", "a.b", "a b", "a/b", "é", "a\n"} {
		_, err := Rule{Host: "example.com", Credential: name}.compile()
		if stored := secret.CheckName(name); (err == nil) != (stored == nil) {
			t.Errorf("%q: a rule says %v, a secret %v", name, err, stored)
		}
	}
}
