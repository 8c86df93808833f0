package toolchain

import (
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
)

// nodePrefix is the prefix of names that can only mean a module built into node.
const nodePrefix = "node:"

// Shim is the npm package that replaces a module built into node. It is used if it is in the tree's node_modules.
type Shim struct {
	// Package is its name, and Range the semver range of the versions that are known to work.
	Package, Range string
}

// shims has the shims by the names of modules, without the prefix.
var shims = map[string]Shim{
	"assert":         {"assert", "^2.1.0"},
	"buffer":         {"buffer", "^6.0.3"},
	"events":         {"events", "^3.3.0"},
	"path":           {"path-browserify", "^1.0.1"},
	"path/posix":     {"path-browserify", "^1.0.1"},
	"querystring":    {"querystring-es3", "^0.2.1"},
	"string_decoder": {"string_decoder", "^1.3.0"},
	"url":            {"url", "^0.11.4"},
	"util":           {"util", "^0.12.5"},
}

// additions are code to append to a shim's file: what node's module has and the shim lacks.
var additions = map[string]string{
	"node_modules/url/url.js":   "\nexports.URL = URL; exports.URLSearchParams = URLSearchParams;",
	"node_modules/util/util.js": "\nexports.TextEncoder = TextEncoder; exports.TextDecoder = TextDecoder;",
}

// Shims returns all shims, without order.
func Shims() []Shim { return slices.Collect(maps.Values(shims)) }

// Builtin reports whether an import names a module that is built into node, such as "node:path" or "fs/promises", and which package
// replaces it. For most modules, that is the zero Shim.
func Builtin(specifier string) (shim Shim, builtin bool) {
	name := strings.TrimPrefix(specifier, nodePrefix)
	base, _, _ := strings.Cut(name, "/")
	_, known := builtins[base]
	return shims[name], known || name != specifier
}

// noteBuiltin records a requested module of node, unless the package means one of its own dependencies.
func (r *resolver) noteBuiltin(specifier string, scope *packageJSON) {
	name := strings.TrimPrefix(specifier, nodePrefix)
	if _, ok := shims[name]; !ok || name == specifier && scope.inModules() && scope.dependencies[name] {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.builtins != nil {
		r.builtins[name] = true
	}
}

// shim finds the main file of the shim for a module of node's.
func (r *resolver) shim(specifier string, as manner) (string, error) {
	s, ok := shims[strings.TrimPrefix(specifier, nodePrefix)]
	if !ok {
		return "", errors.New(builtinReason(specifier))
	}
	dir := path.Join("node_modules", s.Package)
	if kind, err := r.stat(dir); err != nil {
		return "", err
	} else if kind == isFolder {
		return r.inPackage(dir, ".", as)
	}
	return "", fmt.Errorf("%q is built into node; the npm package %q stands in for it and is not in node_modules", specifier, s.Package)
}

var builtins = builtinRemedies()

// builtinRemedies says what to use instead of each module that is built into node.
func builtinRemedies() map[string]string {
	remedies := make(map[string]string)
	for remedy, names := range map[string]string{
		"files are a capability: use a workspace binding, such as env.files.read(path)":        "fs",
		"network access is a capability: use an http binding, such as env.api.fetch(url)":      "http https http2 net tls dgram dns inspector",
		"an extension starts no processes or threads: call another tool through env.tools":     "child_process cluster worker_threads repl",
		"there is no process or machine to ask: pass what is needed as the tool's input":       "process os v8 vm wasi perf_hooks trace_events diagnostics_channel module tty readline domain async_hooks constants sys",
		"use the globals crypto.subtle.digest and crypto.getRandomValues, or an npm package":   "crypto",
		"use the globals setTimeout and clearTimeout":                                          "timers",
		"import it without a subpath: only that has a substitute on npm":                       "assert buffer events path querystring string_decoder url util",
		"add an npm package of that kind that does not need node, or write the few lines used": "test stream punycode zlib console sqlite sea",
	} {
		for name := range strings.FieldsSeq(names) {
			remedies[name] = remedy
		}
	}
	return remedies
}

func builtinReason(specifier string) string {
	name := strings.TrimPrefix(specifier, nodePrefix)
	base, _, _ := strings.Cut(name, "/")
	remedy, ok := builtins[base]
	if !ok {
		remedy = "an extension does not run in node"
	}
	return fmt.Sprintf("%q is built into node and not available here: %s", specifier, remedy)
}
