// Package absent knows the globals of browsers and of Node that the code of an extension may not find, and errors about them.
package absent

import (
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/stilehost/stile/internal/lazyregexp"
)

const webCrypto = "createHmac, createHash and randomBytes of node:crypto, or a package in JavaScript such as @noble/hashes, @noble/curves and @noble/ciphers"

const (
	dom     = `an npm package such as "cheerio" for HTML, or a browser binding: await env.browser.open(url)`
	drawing = "a package that draws without a page, such as pdf-lib for PDF or one that writes SVG as text; or a browser binding, whose page has a canvas: await env.browser.open(url)"
)

// alternatives says what to write instead. An engine that has one of the names makes its line unused.
var alternatives = sync.OnceValue(func() map[string]string {
	return map[string]string{
		"Atomics":                  "code without threads: a call is alone in its memory",
		"BroadcastChannel":         "a binding of kind tools to call other tools",
		"Buffer":                   "Uint8Array with TextEncoder and TextDecoder; toBase64, fromBase64, toHex and fromHex of Uint8Array",
		"Bun":                      "bindings of the manifest: env.NAME of kind http, workspace or kv",
		"CryptoKey":                webCrypto,
		"Deno":                     "bindings of the manifest: env.NAME of kind http, workspace or kv",
		"CSSStyleSheet":            dom,
		"CanvasRenderingContext2D": drawing,
		"DOMMatrix":                drawing,
		"DOMParser":                `an npm package such as "cheerio" or "fast-xml-parser" in dependencies`,
		"EventSource":              "fetch, and the pieces of response.body",
		"File":                     "a Blob, with its name beside it",
		"FileReader":               "await blob.text() or blob.bytes()",
		"FormData":                 "URLSearchParams for a form, or a text with its content-type for multipart",
		"Element":                  dom,
		"HTMLCanvasElement":        drawing,
		"HTMLElement":              dom,
		"Image":                    "the bytes of the image, as a Blob",
		"ImageData":                drawing,
		"Intl":                     "toISOString() and toFixed() with your own formatting, a package that does not need Intl, such as date-fns or dayjs without their time zones, or a table of names and offsets in the code",
		"MessageChannel":           "a Promise",
		"MutationObserver":         dom,
		"Node":                     dom,
		"Notification":             "the result of the tool",
		"OffscreenCanvas":          drawing,
		"Path2D":                   drawing,
		"SharedArrayBuffer":        "ArrayBuffer: a call is alone in its memory",
		"SharedWorker":             "await in one call: there are no threads",
		"Temporal":                 "Date, in UTC",
		"URLPattern":               "new URL(...) and a RegExp on its pathname",
		"WebAssembly":              "JavaScript, such as sql.js/dist/sql-asm.js in place of sql.js; or make the module a tool of its own with stile componentize",
		"WebSocket":                "fetch with an http binding; there are no sockets",
		"Worker":                   "await in one call: there are no threads",
		"XMLSerializer":            `an npm package such as "@xmldom/xmldom" in dependencies`,
		"XMLHttpRequest":           "fetch with an http binding",
		"__dirname":                "a workspace binding for files; import data as a module",
		"__filename":               "a workspace binding for files; import data as a module",
		"alert":                    "console.log, or the result of the tool",
		"caches":                   "a kv or workspace binding",
		"cancelAnimationFrame":     "clearTimeout",
		"customElements":           dom,
		"document":                 `an npm package such as "cheerio" for HTML, or a browser binding: await env.browser.open(url)`,
		"exports":                  "export",
		"fs":                       "a workspace binding: await env.workspace.read(path)",
		"global":                   "globalThis",
		"getComputedStyle":         dom,
		"history":                  "nothing: an extension has no browser around it",
		"importScripts":            "import",
		"indexedDB":                "a kv binding: await env.kv.get(key)",
		"localStorage":             "a kv binding: await env.kv.get(key)",
		"location":                 "the URL as an input of the tool",
		"matchMedia":               dom,
		"module":                   "export",
		"navigator":                "nothing: an extension has no browser around it",
		"process":                  "inputs of the tool for settings; there are no environment variables",
		"prompt":                   "an input of the tool",
		"require":                  `import ... from "..."`,
		"requestAnimationFrame":    "setTimeout",
		"screen":                   "nothing: an extension has no browser around it",
		"sessionStorage":           "variables of the call, or a kv binding",
		"setImmediate":             "queueMicrotask or setTimeout",
		"clearImmediate":           "clearTimeout",
		"window":                   "globalThis, for what the language has; there is no page",
	}
})

// Alternative says what to write instead of a global that does not exist. ok is false if nothing is known of the name.
func Alternative(name string) (text string, ok bool) {
	text, ok = alternatives()[name]
	return text, ok
}

// Names returns the names that [Alternative] knows, in byte order. Which of them exist is the engine's matter.
// Member says what to write instead of a property that an object of the platform lacks here, by the name of its type. ok is false if nothing is known.
func Member(of, name string) (text string, ok bool) {
	switch of {
	case "SubtleCrypto", "Crypto":
		return webCrypto, true
	case "Navigator":
		return Alternative("navigator")
	case "typeof globalThis":
		return Alternative(name)
	}
	return "", false
}

func Names() []string { return slices.Sorted(maps.Keys(alternatives())) }

var (
	undefined = lazyregexp.New(`\b([A-Za-z_$][\w$]*) is not defined\b`)
	ofIntl    = lazyregexp.New(`there is no Intl here|property '(Collator|DateTimeFormat|DisplayNames|DurationFormat|ListFormat|Locale|NumberFormat|PluralRules|RelativeTimeFormat|Segmenter)' of undefined`)
	// Code that asks first says in its own words what it lacks: "WebAssembly is not supported in this environment!".
	named    = lazyregexp.New(`(?i)\b(?:(WebAssembly)|(WebSocket)|(XMLHttpRequest|XHR)|(Intl)|(Web ?Crypto|crypto\.subtle|SubtleCrypto)|(indexedDB)|(localStorage)|(EventSource)|(DOMParser))\b`)
	negation = lazyregexp.New(`(?i)\b(?:no|not|cannot|can't|isn't|unsupported|unavailable|undefined|missing|lacks?|requires?|needs?|needed|without)\b`)
	ofCrypto = lazyregexp.New(`\bcrypto\.subtle\.(\w+) is not a function\b`)
)

// Find returns the global that the message of an error misses, and what to write instead. ok is false if the message says no such thing.
func Find(message string) (name, instead string, ok bool) {
	message = message[:min(len(message), 10_000)]
	if m := ofCrypto.FindStringSubmatch(message); m != nil {
		return "crypto.subtle." + m[1], webCrypto, true
	}
	if ofIntl.MatchString(message) {
		instead, _ = Alternative("Intl")
		return "Intl", instead, true
	}
	for _, m := range undefined.FindAllStringSubmatch(message, 10) {
		if instead, ok := Alternative(m[1]); ok {
			return m[1], instead, true
		}
	}
	if m := named.FindStringSubmatch(message); m != nil && negation.MatchString(message) {
		for i, name := range []string{"WebAssembly", "WebSocket", "XMLHttpRequest", "Intl", "crypto.subtle", "indexedDB", "localStorage", "EventSource", "DOMParser"} {
			if m[i+1] == "" {
				continue
			}
			if name == "crypto.subtle" {
				return name, webCrypto, true
			}
			instead, ok := Alternative(name)
			return name, instead, ok
		}
	}
	return "", "", false
}

// about are words by which errors tell that a global is missing, where they do not say its name.
var about = map[string]string{"WebAssembly": "wasm", "Intl": "locale", "WebSocket": "websocket", "XMLHttpRequest": "xhr", "document": "dom", "window": "browser", "indexedDB": "database", "localStorage": "storage"}

// Mentions reports whether the message of an error is about a global.
func Mentions(message, name string) bool {
	message = strings.ToLower(message)
	word, ok := about[name]
	return strings.Contains(message, strings.ToLower(name)) || ok && strings.Contains(message, word)
}
