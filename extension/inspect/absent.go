package inspect

import (
	"maps"
	"slices"
)

// alternatives says what to write instead of names of browsers and of Node that a program may not find. An engine that has one of the names
// makes its line unused: [Faults] and the type checks ask what exists.
var alternatives = map[string]string{
	"Atomics":               "code without threads: a call is alone in its memory",
	"BroadcastChannel":      "a binding of kind tools to call other tools",
	"Buffer":                "Uint8Array with TextEncoder and TextDecoder; toBase64, fromBase64, toHex and fromHex of Uint8Array",
	"Bun":                   "bindings of the manifest: env.NAME of kind http, workspace or kv",
	"Deno":                  "bindings of the manifest: env.NAME of kind http, workspace or kv",
	"DOMParser":             `an npm package such as "cheerio" or "fast-xml-parser" in dependencies`,
	"EventSource":           "fetch, and the pieces of response.body",
	"File":                  "a Blob, with its name beside it",
	"FileReader":            "await blob.text() or blob.bytes()",
	"FormData":              "URLSearchParams for a form, or a text with its content-type for multipart",
	"Image":                 "the bytes of the image, as a Blob",
	"Intl":                  "toISOString() and toFixed() with your own formatting, or a small npm package that does not need Intl",
	"MessageChannel":        "a Promise",
	"Notification":          "the result of the tool",
	"SharedArrayBuffer":     "ArrayBuffer: a call is alone in its memory",
	"SharedWorker":          "await in one call: there are no threads",
	"Temporal":              "Date, in UTC",
	"URLPattern":            "new URL(...) and a RegExp on its pathname",
	"WebAssembly":           "JavaScript: the code of an extension cannot compile WebAssembly",
	"WebSocket":             "fetch with an http binding; there are no sockets",
	"Worker":                "await in one call: there are no threads",
	"XMLHttpRequest":        "fetch with an http binding",
	"__dirname":             "a workspace binding for files; import data as a module",
	"__filename":            "a workspace binding for files; import data as a module",
	"alert":                 "console.log, or the result of the tool",
	"caches":                "a kv or workspace binding",
	"cancelAnimationFrame":  "clearTimeout",
	"document":              `an npm package such as "cheerio" for HTML, or a browser binding: await env.browser.open(url)`,
	"exports":               "export",
	"fs":                    "a workspace binding: await env.workspace.read(path)",
	"global":                "globalThis",
	"importScripts":         "import",
	"indexedDB":             "a kv binding: await env.kv.get(key)",
	"localStorage":          "a kv binding: await env.kv.get(key)",
	"location":              "the URL as an input of the tool",
	"module":                "export",
	"navigator":             "nothing: an extension has no browser around it",
	"process":               "inputs of the tool for settings; there are no environment variables",
	"prompt":                "an input of the tool",
	"require":               `import ... from "..."`,
	"requestAnimationFrame": "setTimeout",
	"sessionStorage":        "variables of the call, or a kv binding",
	"setImmediate":          "queueMicrotask or setTimeout",
	"clearImmediate":        "clearTimeout",
	"window":                "globalThis, for what the language has; there is no page",
}

// Alternative says what to write instead of a global that does not exist. ok is false if nothing is known of the name.
func Alternative(name string) (text string, ok bool) {
	text, ok = alternatives[name]
	return text, ok
}

// Foreign returns the names that [Alternative] knows, in byte order. Which of them exist is the engine's matter.
func Foreign() []string { return slices.Sorted(maps.Keys(alternatives)) }
