package absent

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/stilehost/stile/internal/lazyregexp"
)

// modules says what to use instead of each module that is built into node and that nothing stands in for.
var modules = sync.OnceValue(func() map[string]string {
	remedies := make(map[string]string)
	for remedy, names := range map[string]string{
		"network access is a capability: use an http binding, such as env.api.fetch(url)":                                                                                      "http https http2 net tls dgram dns dns/promises",
		`an extension starts no processes: ask for a sandbox, which runs commands in a container ("bindings": {"box": {"sandbox": {"image": "host"}}}, then env.box.run(...))`: "child_process",
		"an extension starts no processes or threads: await in one call, or call another tool through env.NAME of kind tools":                                                  "cluster worker_threads repl",
		"there is no process or machine to ask: pass what is needed as the tool's input":                                                                                       "v8 wasi trace_events domain constants inspector inspector/promises",
		"eval and new Function run code here; code that comes with a call runs apart, through a binding of the kind code":                                                      "vm",
		"there is no terminal to read: pass what is needed as the tool's input, or read lines of a file with env.NAME.readLines of a workspace":                                "readline readline/promises",
		"only path and path/posix are there: paths are separated by /":                                                                                                         "path/win32",
		"give tests in the manifest: see docs/manifest.md":                                                                                                                     "test test/reporters",
		"keep data in a kv or workspace binding, or use an npm package that does not need node":                                                                                "sqlite sea",
	} {
		for name := range strings.FieldsSeq(names) {
			remedies[name] = remedy
		}
	}
	return remedies
})

// Modules returns the names of these modules, in byte order.
func Modules() []string { return slices.Sorted(maps.Keys(modules())) }

const ofNode = " is built into node and not available here"

var missingModule = lazyregexp.New(`"(?:node:)?([\w/.-]{1,60})"` + ofNode)

// Module says what to use instead of a module that is built into node and that nothing stands in for. known is false if the name is of no such
// module; then text says so in general.
func Module(name string) (text string, known bool) {
	if text, known = modules()[strings.TrimPrefix(name, "node:")]; !known {
		text = "an extension does not run in node"
	}
	return text, known
}

// ModuleReason is the error of an import of a module that is built into node. [FindModule] reads it.
func ModuleReason(specifier string) string {
	text, _ := Module(specifier)
	return fmt.Sprintf("%q%s: %s", specifier, ofNode, text)
}

// FindModule returns the module of node that the message of an error misses, and what to use instead. ok is false if the message says no such
// thing.
func FindModule(message string) (name, instead string, ok bool) {
	m := missingModule.FindStringSubmatch(message[:min(len(message), 10_000)])
	if m == nil {
		return "", "", false
	}
	instead, _ = Module(m[1])
	return m[1], instead, true
}

const ofPart = " is not available here"

var missingPart = lazyregexp.New(`\b([\w$]{1,60}) of "node:([\w/]{1,60})"` + ofPart)

// PartReason goes on, after the name of a part of a module that is built into node, with the error of using that part, which what stands in for the module
// lacks. [FindPart] reads both.
func PartReason(module string) string {
	return fmt.Sprintf(" of %q%s", "node:"+module, ofPart)
}

// FindPart returns the part of a module of node that the message of an error misses, and the module. ok is false if the message says no such thing.
func FindPart(message string) (part, module string, ok bool) {
	m := missingPart.FindStringSubmatch(message[:min(len(message), 10_000)])
	if m == nil {
		return "", "", false
	}
	return m[1], m[2], true
}

// Native is what to use instead of a package with native code.
const Native = `a package in JavaScript alone, or a sandbox, which runs programs in a container ("bindings": {"box": {"sandbox": {"image": "host"}}}, then env.box.run(...))`

var ofNative = lazyregexp.New(`(?i)\bnative\b|\bbindings?\b|\.node\b|module root|prebuil[dt]|not in the bundle|only what is written as a string|could not load`)

// IsNative reports whether the message of an error, from a package with native code, says that this cannot be loaded.
func IsNative(message string) bool { return ofNative.MatchString(message[:min(len(message), 10_000)]) }

// UnboundFiles is what node:fs says without a binding.
const UnboundFiles = "fs has no files: name a workspace binding in the manifest"

var install = lazyregexp.New(`(?i)\b(?:please|need to|must) install ["'` + "`" + `]?(@?[a-z0-9][\w./-]{0,200})`)

// FindInstall returns the package that the message of an error asks to install, which code looks for by a computed name.
func FindInstall(message string) (name string, ok bool) {
	m := install.FindStringSubmatch(message[:min(len(message), 10_000)])
	if m == nil {
		return "", false
	}
	return m[1], true
}

// UnboundFetch matches what the prelude says of the global fetch that has no binding. Its group is the origin.
const UnboundFetch = `fetch of (https?://[\w.:[\]-]{1,260}) needs the http binding "network"`

var unboundFetch = lazyregexp.New(`\b` + UnboundFetch)

// FindFetch returns the scheme, the host and any port that the global fetch was to ask, if the message of an error says that it has no binding
// for it.
func FindFetch(message string) (origin string, ok bool) {
	m := unboundFetch.FindStringSubmatch(message[:min(len(message), 10_000)])
	if m == nil {
		return "", false
	}
	return m[1], true
}
