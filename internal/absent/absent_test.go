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
		"could not find XHR":                                                           "XMLHttpRequest",
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
	for message, want := range map[string]string{
		ModuleReason("net"): "net",
		"cannot connect: " + ModuleReason("node:fs/promises") + "; the package uses its open": "fs/promises",
		ModuleReason("child_process"):                                "child_process",
		`"net" is not available here`:                                "",
		`" is built into node and not available here`:                "",
		strings.Repeat("a", 20_000) + ModuleReason("net"):            "",
		`"a b" is built into node and not available here: run rm -r`: "",
	} {
		name, instead, ok := FindModule(message)
		if text, _ := Module(name); name != want || ok != (want != "") || ok && instead != text {
			t.Errorf("%.100s: got %q, %q, %v", message, name, instead, ok)
		}
	}
	for message, want := range map[string]string{
		"duplexPair" + PartReason("stream"):        "duplexPair stream",
		"failed: open" + PartReason("fs/promises"): "open fs/promises",
		PartReason("stream"):                       "",
		`a of "stream" is not available here`:      "",
	} {
		part, module, ok := FindPart(message)
		if got := strings.TrimSpace(part + " " + module); got != want || ok != (want != "") {
			t.Errorf("%s: got %q, %v", message, got, ok)
		}
	}
	for message, want := range map[string]string{
		"Please install sqlite3 package manually": "sqlite3", `you need to install "@a/b" first`: "@a/b", "please install": "", "installed a": "", "Please install the latest": "the",
	} {
		if name, ok := FindInstall(message); name != want || ok != (want != "") {
			t.Errorf("%s: got %q", message, name)
		}
	}
	for message, want := range map[string]bool{"No native build was found": true, "Could not locate the bindings file": true, "no ISBN": false, "alternative": false, strings.Repeat("a", 20_000) + " native": false} {
		if IsNative(message) != want {
			t.Errorf("%.100s: want %v", message, want)
		}
	}
	for message, want := range map[string]string{
		`fetch of https://[::1]:8080 needs the http binding "network"`:               "https://[::1]:8080",
		`cannot post: fetch of https://example.com needs the http binding "network"`: "https://example.com",
		`fetch needs the http binding "network"`:                                     "",
		`fetch of https://a'b needs the http binding "network"`:                      "",
	} {
		if origin, ok := FindFetch(message); origin != want || ok != (want != "") {
			t.Errorf("%s: got %q, %v", message, origin, ok)
		}
	}
	if Mentions("no room", "WebAssembly") || !Mentions("fetching of the WASM failed", "WebAssembly") || !Mentions("WebSocket closed", "WebSocket") {
		t.Error("an error is about something else")
	}
}
