package absent

import (
	"strings"
	"testing"
)

func TestFind(t *testing.T) {
	for message, want := range map[string]string{
		"ReferenceError: Intl is not defined":                                          "Intl",
		"cannot format: Intl is not defined":                                           "Intl",
		"toLocaleString: there is no Intl here, so the locale \"de\" would be ignored": "Intl",
		"cannot read property 'DateTimeFormat' of undefined":                           "Intl",
		"crypto.subtle.sign is not a function; crypto.subtle has: digest":              "crypto.subtle.sign",
		"WebAssembly is not defined":                                                   "WebAssembly",
		"a is not defined, WebSocket is not defined":                                   "WebSocket",
		"formatt is not defined":                                                       "",
		"cannot read property 'format' of undefined":                                   "",
		"mycrypto.subtle.sign is not a function":                                       "",
		"xIntl is not defined":                                                         "",
		"Intl is not defined by the user's locale":                                     "Intl",
		strings.Repeat("a", 20_000) + " Intl is not defined":                           "",
		"WebAssembly is not supported in this environment!":                            "WebAssembly",
		"No valid WebSocket class provided":                                            "WebSocket",
		"Web Crypto API not available":                                                 "crypto.subtle",
		"a text about WebAssembly and Intl":                                            "",
		"Intlx is not supported":                                                       "",
		"":                                                                             "",
	} {
		name, instead, ok := Find(message)
		if name != want || ok != (want != "") || ok != (instead != "") {
			t.Errorf("%.100s: got %q, %q, %v", message, name, instead, ok)
		}
	}
	if Mentions("no room", "WebAssembly") || !Mentions("fetching of the WASM failed", "WebAssembly") || !Mentions("WebSocket closed", "WebSocket") {
		t.Error("an error is about something else")
	}
}
