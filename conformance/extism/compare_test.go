package extism

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/toolchain"
)

// echo answers requests with what they are.
func echo(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Add("X-Many", "one")
	w.Header().Add("X-Many", `two "2"`)
	w.Header().Add("X-Many", "three")
	w.Header().Set("X-Sent", r.Header.Get("X-Sent"))
	switch r.URL.Path {
	case "/empty":
		w.WriteHeader(http.StatusNoContent)
	case "/bytes":
		_, _ = w.Write([]byte{0xff, 0, 0x80, 'x'})
	case "/large":
		_, _ = w.Write([]byte(strings.Repeat("\xff0123456789", 50_000)))
	case "/missing":
		http.NotFound(w, r)
	case "/moved":
		w.Header().Set("Location", "/here")
		w.WriteHeader(http.StatusFound)
	default:
		_, _ = fmt.Fprintf(w, "%s %s %q", r.Method, r.URL.Path, body)
	}
}

// The same plug-ins do the same on both hosts: outputs, errors, logs, variables and requests.
func TestSame(t *testing.T) {
	todo := setting{hosts: []string{"jsonplaceholder.typicode.com"}, server: func(w http.ResponseWriter, r *http.Request) {
		_, _ = fmt.Fprintf(w, `{"path": %q}`, r.URL.Path)
	}}
	api := setting{hosts: []string{"api.example.com"}, server: echo}
	for _, test := range []struct {
		plugin  string // of the SDK; "" is that of testdata/go
		setting setting
		calls   []call
	}{
		{"alloc", setting{}, []call{{"run_test", ""}}},
		{"config", setting{}, []call{{"run_test", ""}}},
		{"config", setting{config: map[string]string{"thing": "a\x00 thing ü"}}, []call{{"run_test", ""}}},
		{"config", setting{config: map[string]string{"thing": ""}}, []call{{"run_test", ""}}},
		{"count_vowels", setting{}, []call{{"count_vowels", "hello world"}, {"count_vowels", ""}, {"count_vowels", "aaa"}}},
		{"count_vowels", setting{config: map[string]string{"vowels": "xyz"}, vars: map[string]string{"total": "5"}}, []call{{"count_vowels", "xx y z"}}},
		{"fail", setting{}, []call{{"run_test", ""}}},
		{"hello", setting{}, []call{{"run_test", ""}}},
		{"hello_haskell", setting{}, []call{{"testing", "John"}}},
		{"hello_haskell", setting{config: map[string]string{"greeting": "Howdy"}}, []call{{"testing", "John"}}},
		{"input_offset", setting{}, []call{{"input_offset_length", "hello world"}}},
		{"log", setting{}, []call{{"run_test", ""}}},
		{"println", setting{}, []call{{"run_test", "text"}}},
		{"replace", setting{}, []call{{"run_test", strings.Repeat("a text to replace a word of, with all of it ", 100)}}},
		{"var", setting{}, []call{{"run_test", ""}, {"run_test", ""}, {"run_test", ""}}},
		{"http", todo, []call{{"run_test", ""}}},
		{"http_headers", api, []call{{"http_get", `{"url": "https://api.example.com/x", "method": "GET"}`}}},

		{"", setting{}, []call{{"echo", ""}, {"echo", "text"}, {"echo", "a\"\\\b\f\n\r\t\x00\x1f/ü€😀"}, {"echo", strings.Repeat("0123456789", 50_000)}}},
		{"", setting{}, []call{{"reverse", "für"}, {"reverse", "😀x"}, {"reverse", strings.Repeat("ü", 1001)}}},
		{"", setting{}, []call{{"greet", "Ada"}, {"quiet", "x"}, {"fail", "luck"}, {"complain", ""}}},
		{"", setting{config: map[string]string{"greeting": "Grüezi", "other": "x"}}, []call{{"greet", "Ada"}}},
		{"", setting{vars: map[string]string{"n": "41"}}, []call{{"count", ""}, {"count", ""}}},
		{"", setting{}, []call{{"vars", ""}}},
		{"", setting{}, []call{{"logs", "ü"}}},
		{"", setting{}, []call{{"many", ""}}},
		{"", api, []call{
			{"fetch", `{"url": "https://api.example.com/x"}`},
			{"fetch", `{"url": "https://api.example.com/\u00fc?a=\"b\"", "method": 2, "body": "a \"body\"", "headers": {"X-Sent": "\u0061 \\\"\/"}}`},
			{"fetch", `{"url": "https://api.example.com/x", "method": 5}`},
			{"fetch", `{"url": "https://api.example.com/empty"}`},
			{"fetch", `{"url": "https://api.example.com/bytes"}`},
			{"fetch", `{"url": "https://api.example.com/missing"}`},
			{"fetch", `{"url": "https://api.example.com/moved"}`},
			{"fetch", `{"url": "http://api.example.com/large"}`},
		}},
	} {
		name := test.plugin
		if name == "" {
			name = "go"
		}
		t.Run(name+" "+test.calls[0].tool, func(t *testing.T) {
			wasm := goPlugin(t)
			if test.plugin != "" {
				wasm = sdkWasm(t, test.plugin)
			}
			same(t, onStile(t, wasm, test.setting, test.calls), onSDK(t, wasm, test.setting, test.calls))
		})
	}
}

// A redirect to a host that nobody allowed is followed by the SDK, and denied here. So is a host that nobody allowed at all, on both.
func TestRedirects(t *testing.T) {
	s := setting{hosts: []string{"api.example.com"}, server: func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Hostname() == "api.example.com" {
			w.Header().Set("Location", "https://internal.example.net/secret")
			w.WriteHeader(http.StatusFound)
			return
		}
		_, _ = fmt.Fprint(w, "a secret")
	}}
	calls := []call{{"fetch", `{"url": "https://api.example.com/moved"}`}}
	here, there := onStile(t, goPlugin(t), s, calls), onSDK(t, goPlugin(t), s, calls)
	if !errors.Is(here.outcomes[0].err, abi.ErrDenied) || !slices.Equal(here.asked, []string{"api.example.com"}) {
		t.Errorf("here: %v, asked %q", here.outcomes[0].err, here.asked)
	}
	if there.outcomes[0].failed || !slices.Equal(there.asked, []string{"api.example.com", "internal.example.net"}) {
		t.Errorf("there: %v, asked %q", there.outcomes[0].err, there.asked)
	}
	calls = []call{{"fetch", `{"url": "https://internal.example.net/secret"}`}}
	here, there = onStile(t, goPlugin(t), s, calls), onSDK(t, goPlugin(t), s, calls)
	if !errors.Is(here.outcomes[0].err, abi.ErrDenied) || !there.outcomes[0].failed || here.asked != nil || there.asked != nil {
		t.Errorf("here: %v, asked %q; there: %v, asked %q", here.outcomes[0].err, here.asked, there.outcomes[0].err, there.asked)
	}
}

// Plug-ins of the SDK's tests that need what no host of ours has are refused, and the error names it.
func TestRefused(t *testing.T) {
	for plugin, name := range map[string]string{
		"host": "extism:host/user#mult", "host_memory": "host#to_upper", "host_multiple": "extism:host/user#hostGreenMessage", "main": "lib#capitalize",
		"exit": "", "lib": "", "std_command": "", "count_vowels_std": "", // commands
	} {
		_, err := toolchain.Componentize(toolchain.ExtensionWorld(known()), sdkWasm(t, plugin))
		refused, ok := errors.AsType[*toolchain.CoreError](err)
		switch {
		case !ok:
			t.Errorf("%s: %v", plugin, err)
		case name == "" && refused.Problem != toolchain.CoreCommand, name != "" && (refused.Problem != toolchain.CoreImport || !slices.Contains(refused.Names, name)):
			t.Errorf("%s: %v", plugin, err)
		}
	}
}
