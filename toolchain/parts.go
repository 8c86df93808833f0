package toolchain

import (
	"context"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/evanw/esbuild/pkg/api"

	"github.com/stilehost/stile"
	"github.com/stilehost/stile/internal/sha256hex"
)

// part is a group of web APIs that most extensions do not use. Only images of code that names one of its words have it.
// prelude/parts/NAME.ts defines it. It is bundled and compiled once, and evaluated on top of the base image, before the bundle.
type part struct {
	name string
	// words lead to the part. An entry of several words, with spaces between them, leads to it only if the code has all of them.
	words []string
	// net says that the part builds on the web APIs of the network.
	net bool
}

// parts are evaluated in this order. A part finds in globalThis what those before it define, if its own words lead to them too.
var parts = []part{
	{name: "streams", net: true, words: []string{
		"ReadableStream", "WritableStream", "TransformStream", "pipeTo", "pipeThrough", "tee", "byob", "TextDecoderStream", "TextEncoderStream", "CompressionStream", "DecompressionStream",
		"ByteLengthQueuingStrategy", "CountQueuingStrategy", "ReadableStreamDefaultReader", "ReadableStreamBYOBReader",
		"stream Blob", "stream blob", "stream File", "stream readBlob", "stream createBlob",
	}},
	{name: "compression", net: true, words: []string{"CompressionStream", "DecompressionStream"}}, // on streams
	{name: "codecs", words: []string{"stileCodec"}},
	{name: "forms", net: true, words: []string{"File", "FormData", "formData"}},
	{name: "objects", net: true, words: []string{"createObjectURL", "revokeObjectURL"}},
	{name: "scope", words: []string{"self", "global", "navigator"}},
	{name: "buffer", words: []string{"Buffer"}},
	{name: "process", words: []string{"process"}},
	{name: "immediate", words: []string{"setImmediate", "clearImmediate"}},
	{name: "files", words: []string{"stileFiles"}},
	{name: "messages", words: []string{"MessageChannel", "MessagePort", "MessageEvent"}},
	{name: "uncaught", words: []string{
		"ErrorEvent", "PromiseRejectionEvent", "reportError", "unhandledrejection", "rejectionhandled", "onerror", "onunhandledrejection",
		"addEventListener self", "addEventListener globalThis",
	}},
	{name: "marks", words: []string{
		"Performance", "PerformanceEntry", "PerformanceMark", "PerformanceMeasure", "PerformanceObserver", "performance mark", "performance measure", "performance getEntries",
		"performance getEntriesByType", "performance getEntriesByName", "performance timeOrigin", "performance toJSON",
	}},
	{name: "patterns", net: true, words: []string{"URLPattern"}},
	{name: "encodings", words: legacyWords("iso", "windows", "koi8", "ibm866", "macintosh", "cyrillic", "latin2", "latin5", "user", "tis")},
	{name: "multibyte", words: legacyWords("big5", "euc", "gbk", "gb18030", "gb2312", "shift_jis", "sjis", "shift", "2022", "ms932", "windows")},
}

// legacyWords lead to encodings of TextDecoder and TextDecoderStream: words of their labels, and those of code that gets a label from elsewhere.
func legacyWords(words ...string) []string {
	var all []string
	for _, word := range append(words, "charset", "encoding", "contentType", "label") {
		all = append(all, "TextDecoder "+word, "TextDecoderStream "+word)
	}
	return all
}

// sharedModules are the modules of the prelude that parts may import, and the names that they may import from these. A part that imports
// anything else of the prelude gets a copy of its own.
var sharedModules = []struct {
	module string
	net    bool // only base images with the web APIs of the network have it
	names  []string
}{
	{module: "bindings", names: []string{"building", "filesBinding", "iface", "packed", "task"}},
	{module: "blob", names: []string{"Blob", "blobBytes", "blobHandle", "copyBlob", "hostBytes", "piece"}},
	{module: "body", net: true, names: []string{"Body", "acceptForms"}},
	{module: "clock", names: []string{"now", "pause"}},
	{module: "clone", names: []string{"kinds", "transferring"}},
	{module: "data", net: true, names: []string{"findBlobs"}},
	{module: "encoding", names: []string{"addEncoding", "decode", "encode", "view"}},
	{module: "errors", names: []string{"CapabilityError", "UnboundError", "ask"}},
	{module: "failure", names: []string{"intercept", "report"}},
	{module: "global", names: []string{"define", "install"}},
	{module: "rejections", names: []string{"onRejections"}},
	{module: "session", names: []string{"ambient", "bindings", "env", "handle"}},
	{module: "stream", net: true, names: []string{"replaceStreams"}},
}

// Parts says whether code that comes with a call may use web APIs that most code does not: see [PartsOf].
type Parts bool

// PartsOf returns the parts of the prelude that this code names, for [Toolchain.Evaluator]. Its cost is linear in the text.
func PartsOf(text string) Parts {
	return len(partsFor(func(word string) bool { return hasWord(text, word) })) > 0
}

// hasWord says whether a word of ASCII stands anywhere in a text, as [bundled.Uses] does, or between other letters than those of ASCII.
func hasWord(text, word string) bool {
	part := func(c byte) bool {
		return c == '_' || c == '$' || '0' <= c && c <= '9' || 'a' <= c|0x20 && c|0x20 <= 'z'
	}
	for {
		before, after, found := strings.Cut(text, word)
		if !found {
			return false
		}
		if (before == "" || !part(before[len(before)-1])) && (after == "" || !part(after[0])) {
			return true
		}
		text = text[len(before)+1:]
	}
}

// partsFor returns the parts to which words lead that are used.
func partsFor(uses func(word string) bool) []part {
	var wanted []part
	for _, p := range parts {
		if slices.ContainsFunc(p.words, func(entry string) bool {
			for word := range strings.SplitSeq(entry, " ") {
				if !uses(word) {
					return false
				}
			}
			return true
		}) {
			wanted = append(wanted, p)
		}
	}
	return wanted
}

// shareText is the code by which the prelude hands its modules to parts.
func shareText(net bool) string {
	var imports, object strings.Builder
	for _, s := range sharedModules {
		if s.net && !net {
			continue
		}
		for _, name := range s.names {
			fmt.Fprintf(&imports, "import { %[2]s as %[1]s_%[2]s } from \"./toolchain/prelude/%[1]s\";\n", s.module, name)
			fmt.Fprintf(&object, "%s_%s, ", s.module, name)
		}
	}
	return imports.String() + "export const shared = { " + object.String() + "};\n"
}

// partSource bundles a part into the text of a function of (shared).
func partSource(modules fs.FS, name string) (string, error) {
	return bundleText(stile.TypeScript(), modules, "import \"./toolchain/prelude/parts/"+name+"\";\n", "(function (shared) {\"use strict\";", "})", api.Plugin{
		Name: "shared", Setup: func(build api.PluginBuild) {
			const namespace = "shared"
			build.OnResolve(api.OnResolveOptions{Filter: `^\.`}, func(args api.OnResolveArgs) (api.OnResolveResult, error) {
				for _, s := range sharedModules {
					if args.Namespace == "prelude" && strings.HasPrefix(args.Importer, "toolchain/prelude/") && path.Join(path.Dir(args.Importer), args.Path) == "toolchain/prelude/"+s.module {
						return api.OnResolveResult{Path: s.module, Namespace: namespace, SideEffects: api.SideEffectsFalse}, nil
					}
				}
				return api.OnResolveResult{}, nil
			})
			build.OnLoad(api.OnLoadOptions{Filter: ".*", Namespace: namespace}, func(args api.OnLoadArgs) (api.OnLoadResult, error) {
				var text strings.Builder
				for _, s := range sharedModules {
					if s.module == args.Path {
						for _, n := range s.names {
							fmt.Fprintf(&text, "export const %[2]s = shared.%[1]s_%[2]s;\n", s.module, n)
						}
					}
				}
				content := text.String()
				return api.OnLoadResult{Contents: &content, Loader: api.LoaderJS}, nil
			})
		},
	})
}

// partCode is a compiled part, and its digest.
type partCode struct {
	code   []byte
	digest string
}

// partCode returns a compiled part, from the cache if it is there.
func (t *Toolchain) partCode(ctx context.Context, p part) (partCode, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if made, ok := t.parts[p.name]; ok {
		return made, nil
	}
	images, err := t.imagerLocked(ctx)
	if err != nil {
		return partCode{}, err
	}
	source := func() (string, error) {
		if _, err := t.wholeEngine(ctx); err != nil {
			return "", err
		}
		return partSource(t.modules, p.name)
	}
	key, err := t.recalled(ctx, "key of the part "+p.name, func() (string, error) {
		text, err := source()
		return sha256hex.Of([]byte(baseVersion + images.digest + text)), err
	})
	if err != nil {
		return partCode{}, err
	}
	// Later builds use it too, so it is not given up with this one.
	ctx = context.WithoutCancel(ctx)
	code, err := t.cached(ctx, "part", key, func() ([]byte, error) {
		text, err := source()
		if err != nil {
			return nil, err
		}
		return images.compilePrelude(ctx, text)
	})
	if err != nil {
		return partCode{}, fmt.Errorf("make the part %s of the prelude: %w", p.name, err)
	}
	made := partCode{code, sha256hex.Of(code)}
	t.parts[p.name] = made
	return made, nil
}

// partsDigest is the digest of parts, which need not be at hand.
func (t *Toolchain) partsDigest(ctx context.Context, wanted []part) (string, error) {
	var all strings.Builder
	for _, p := range wanted {
		digest, err := t.recalled(ctx, "part "+p.name, func() (string, error) {
			made, err := t.partCode(ctx, p)
			return made.digest, err
		})
		if err != nil {
			return "", err
		}
		all.WriteString(digest)
	}
	return all.String(), nil
}

// partCodes returns compiled parts.
func (t *Toolchain) partCodes(ctx context.Context, wanted []part) ([][]byte, error) {
	codes := make([][]byte, len(wanted))
	for i, p := range wanted {
		made, err := t.partCode(ctx, p)
		if err != nil {
			return nil, err
		}
		codes[i] = made.code
	}
	return codes, nil
}
