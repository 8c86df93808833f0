package toolchain

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"

	"github.com/evanw/esbuild/pkg/api"

	"github.com/stilehost/stile"
	"github.com/stilehost/stile/internal/absent"
)

// nodePrefix is the prefix of names that can only mean a module built into node.
const nodePrefix = "node:"

// ownNode is the folder of our own modules that stand in for those built into node.
const ownNode = "toolchain/node/"

// nodeModules has the file that stands in for each of node's modules, by name without the prefix. Files are ours, or those of a package
// that comes with the engine.
var nodeModules = map[string]string{
	"assert":              nodeLibs + "nodelibs/browser/assert.js",
	"assert/strict":       ownNode + "assert-strict.ts",
	"async_hooks":         ownNode + "async_hooks.ts",
	"buffer":              ownNode + "buffer.ts",
	"console":             ownNode + "console.ts",
	"crypto":              ownNode + "crypto.ts",
	"diagnostics_channel": ownNode + "diagnostics_channel.ts",
	"events":              ownNode + "events.ts",
	"fs":                  ownNode + "fs.ts",
	"fs/promises":         ownNode + "fs-promises.ts",
	"module":              ownNode + "module.ts",
	"os":                  ownNode + "os.ts",
	"path":                ownNode + "path.ts",
	"path/posix":          ownNode + "path.ts",
	"perf_hooks":          ownNode + "perf_hooks.ts",
	"process":             ownNode + "process.ts",
	"punycode":            nodeLibs + "nodelibs/browser/punycode.js",
	"querystring":         nodeLibs + "nodelibs/browser/querystring.js",
	"stream":              ownNode + "stream.ts",
	"stream/consumers":    ownNode + "stream-consumers.ts",
	"stream/promises":     ownNode + "stream-promises.ts",
	"stream/web":          ownNode + "stream-web.ts",
	"string_decoder":      nodeLibs + "nodelibs/browser/string_decoder.js",
	"sys":                 ownNode + "util.ts",
	"timers":              ownNode + "timers.ts",
	"timers/promises":     ownNode + "timers-promises.ts",
	"tty":                 ownNode + "tty.ts",
	"url":                 ownNode + "url.ts",
	"util":                ownNode + "util.ts",
	"util/types":          ownNode + "util-types.ts",
	"zlib":                ownNode + "zlib.ts",
}

// nodeInstead has what is read instead of a file that one of nodeModules imports: the package has its own process and its own Buffer.
var nodeInstead = map[string]string{
	nodeLibs + "nodelibs/browser/chunk-DEMDiNwt.js": ownNode + "library-process.ts",
	nodeLibs + "nodelibs/browser/chunk-DtuTasat.js": ownNode + "library-buffer.ts",
	nodeLibs + "nodelibs/browser/util.js":           ownNode + "util.ts",
	nodeLibs + "nodelibs/browser/events.js":         ownNode + "events.ts",
}

// Builtin reports whether an import names a module that is built into node, such as "node:path" or "fs/promises", and whether something
// stands in for it. Packages may have such a name too, unless it has the prefix.
func Builtin(specifier string) (offered, builtin bool) {
	name, prefixed := strings.CutPrefix(specifier, nodePrefix)
	_, offered = nodeModules[name]
	_, known := absent.Module(name)
	return offered, offered || known || prefixed
}

// standIn marks what [resolver.locate] returns for one of nodeModules. No file has such a name.
const standIn = "\x00"

// builtin finds what stands in for a module of node.
func builtin(specifier string) (string, error) {
	name := strings.TrimPrefix(specifier, nodePrefix)
	if _, ok := nodeModules[name]; ok {
		return standIn + name, nil
	}
	return "", errors.New(absent.ModuleReason(specifier))
}

// nodeFiles are the files of nodeModules. modules holds the folder node_modules.
func nodeFiles(modules fs.FS) fs.FS { return nodeFS{stile.TypeScript(), modules} }

type nodeFS struct{ own, modules fs.FS }

func (f nodeFS) Open(name string) (fs.File, error) {
	if strings.HasPrefix(name, "node_modules/") {
		return f.modules.Open(name)
	}
	return f.own.Open(name)
}

// requirePrefix begins the name of a module whose exports are those that require returns: the default export of an ES module.
const requirePrefix = "require:"

// resolveNode finds what one of nodeModules imports, or one of these itself.
func (b *bundler) resolveNode(args api.OnResolveArgs) (api.OnResolveResult, error) {
	if strings.HasPrefix(args.Importer, requirePrefix) || strings.HasPrefix(args.Importer, namedPrefix) { // imports the file of the same module
		found := nodeResult(args.Path)
		found.SideEffects = api.SideEffectsTrue // as in foundNode
		return found, nil
	}
	if !strings.HasPrefix(args.Path, ".") {
		if file, ok := nodeModules[strings.TrimPrefix(args.Path, nodePrefix)]; ok {
			return nodeResult(file), nil
		}
		return nodeResult(path.Join("node_modules", args.Path)), nil
	}
	file := path.Join(path.Dir(args.Importer), args.Path)
	if strings.HasPrefix(file, ownNode) {
		file += ".ts"
	}
	if instead, ok := nodeInstead[file]; ok && args.Importer != instead {
		file = instead
	}
	return nodeResult(file), nil
}

// foundNode is what an import of one of nodeModules gets.
func (b *bundler) foundNode(name string, kind api.ResolveKind) api.OnResolveResult {
	if b.source.node == nil {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.partial = true
		return api.OnResolveResult{Path: nodePrefix + name, External: true}
	}
	if kind == api.ResolveJSRequireCall {
		return nodeResult(requirePrefix + nodeModules[name])
	}
	if names, err := namesOfNode(); err == nil && len(names[name].Lacks)+len(names[name].Data) > 0 {
		found := nodeResult(namedPrefix + name)
		found.SideEffects = api.SideEffectsTrue // without this, esbuild leaves out what makes the module ready
		return found
	}
	return nodeResult(nodeModules[name])
}

func nodeResult(file string) api.OnResolveResult {
	return api.OnResolveResult{Path: file, Namespace: inNode, SideEffects: api.SideEffectsFalse}
}

// loadNode loads a file of nodeModules, or what require gets of one.
func (b *bundler) loadNode(name string) (api.OnLoadResult, error) {
	if file, ok := strings.CutPrefix(name, requirePrefix); ok {
		text := fmt.Sprintf("module.exports = require(%q).default;", file)
		return api.OnLoadResult{Contents: &text, Loader: api.LoaderJS}, nil
	}
	if module, ok := strings.CutPrefix(name, namedPrefix); ok {
		names, err := namesOfNode()
		if err != nil {
			return api.OnLoadResult{}, err
		}
		text, err := namedCode(module, names[module])
		return api.OnLoadResult{Contents: &text, Loader: api.LoaderJS}, err
	}
	files, err := b.source.node()
	if err != nil {
		return api.OnLoadResult{}, err
	}
	data, err := readAtMost(files, name, MaxSource)
	if err != nil {
		return api.OnLoadResult{}, fmt.Errorf("%s cannot be read: %w", name, reason(err))
	}
	text := string(data) + noSourceMap
	return api.OnLoadResult{Contents: &text, Loader: loaders[path.Ext(name)]}, nil
}
