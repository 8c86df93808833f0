package toolchain

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/evanw/esbuild/pkg/api"

	"github.com/stilehost/stile"
	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/internal/absent"
	"github.com/stilehost/stile/internal/lazyregexp"
)

// preludeEntry joins the files of the prelude. [imager.makeBase] uses its exports.
const preludeEntry = `
import "./toolchain/prelude/main";
import "./toolchain/prelude/evaluator";
import { define as learn } from "./toolchain/prelude/bindings";
import { prepare, sugar } from "./toolchain/prelude/env";
export function define(descriptor: string) {
  learn(descriptor);
  prepare();
}
export { enter, finish, now, turn } from "./toolchain/prelude/bindings";
export { register } from "./toolchain/prelude/extension";
export { frames } from "./toolchain/prelude/failure";
export { array, record, replacer } from "./toolchain/prelude/json";
export { rejected } from "./toolchain/prelude/rejections";
`

// preludeSource bundles the prelude and the sugar of all kinds into the text of a function of (host, memory, block); see
// prelude/bindings.ts. modules holds the folder node_modules with the packages that it imports. With net it has what
// prelude/net.ts adds.
func preludeSource(modules fs.FS, net bool) (string, error) {
	kinds := sugars()
	var entry strings.Builder
	entry.WriteString(preludeEntry)
	if net {
		entry.WriteString("import \"./toolchain/prelude/net\";\n")
	}
	for _, kind := range slices.Sorted(maps.Keys(kinds)) {
		if kinds[kind].made && (net || !kinds[kind].Net) {
			fmt.Fprintf(&entry, "import %s from \"./capabilities/%[1]s/sugar\";\nsugar.set(\"stile:capability/%[1]s\", %[1]s);\n", kind)
		}
	}
	entry.WriteString(shareText(net))
	return bundlePrelude(stile.TypeScript(), modules, entry.String())
}

// sugar is the file sugar.json of a kind. In the same folder, types.d.ts declares the object of a binding, and sugar.ts makes it.
// Without sugar.ts, the object has the methods of the WIT resource.
type sugar struct {
	made bool // by sugar.ts
	// Type is the type of the object.
	Type string `json:"type"`
	// Words are the words that lead to a method of WIT, if these are not just its own name: see [reaches].
	Words map[string][]string `json:"words"`
	// Net says that the sugar uses the web APIs of the network.
	Net bool `json:"net"`
	// Passes is the method of the WIT resource that passes bindings on; code can call it without naming it.
	Passes string `json:"passes"`
}

// sugars returns the sugar of each kind by the name of its folder, which is the name of the WIT interface. It panics if the files
// that this program was built with are incomplete.
var sugars = sync.OnceValue(func() map[string]sugar {
	files, all := stile.TypeScript(), map[string]sugar{}
	names, err := fs.Glob(files, "capabilities/*/sugar.json")
	for _, name := range names {
		folder := path.Dir(name)
		s, wrong := parseSugar(files, name)
		err = errors.Join(err, wrong)
		_, absent := fs.Stat(files, folder+"/sugar.ts")
		s.made = absent == nil
		all[path.Base(folder)] = s
	}
	if err != nil {
		panic(err)
	}
	return all
})

// parseSugar reads the file sugar.json of a kind.
func parseSugar(files fs.FS, name string) (s sugar, err error) {
	text, err := fs.ReadFile(files, name)
	if err != nil {
		return sugar{}, err
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	err = d.Decode(&s)
	if err == nil && !json.Valid(text) {
		err = errors.New("it has more than one value")
	}
	if err != nil {
		return sugar{}, fmt.Errorf("read %s: %w; its fields are type, words, net and passes", name, err)
	}
	if s.Type == "" {
		return sugar{}, fmt.Errorf("%s lacks \"type\": name the type that types.d.ts in the same folder exports", name)
	}
	return s, nil
}

func bundlePrelude(files, modules fs.FS, entry string) (string, error) {
	return bundleText(files, modules, entry, "(function (host, memory, block) {\"use strict\";", "return prelude; })")
}

// bundleText bundles what entry imports, between two texts. The plug-ins come before the one that finds files.
func bundleText(files, modules fs.FS, entry, before, after string, plugins ...api.Plugin) (string, error) {
	result := api.Build(api.BuildOptions{
		Stdin:            &api.StdinOptions{Contents: entry, Sourcefile: "prelude.ts", Loader: api.LoaderTS},
		Bundle:           true,
		Format:           api.FormatIIFE,
		GlobalName:       "prelude",
		Banner:           map[string]string{"js": before},
		Footer:           map[string]string{"js": after},
		Target:           api.ESNext,
		Platform:         api.PlatformNeutral,
		LegalComments:    api.LegalCommentsNone,
		MinifyWhitespace: true,
		MinifySyntax:     true,
		TsconfigRaw:      "{}",
		LogLevel:         api.LogLevelSilent,
		Plugins: append(plugins, api.Plugin{Name: "embedded", Setup: func(build api.PluginBuild) {
			build.OnResolve(api.OnResolveOptions{Filter: ".*"}, func(args api.OnResolveArgs) (api.OnResolveResult, error) {
				return resolvePrelude(files, modules, args)
			})
			for namespace, from := range map[string]fs.FS{"prelude": files, "module": modules} {
				build.OnLoad(api.OnLoadOptions{Filter: ".*", Namespace: namespace}, func(args api.OnLoadArgs) (api.OnLoadResult, error) {
					content, err := fs.ReadFile(from, args.Path)
					text := string(content)
					if pack := repack[args.Path]; pack != nil && err == nil {
						text, err = pack(content)
					}
					loader := api.LoaderJS
					switch {
					case strings.HasSuffix(args.Path, ".ts"):
						loader = api.LoaderTS
					case strings.HasSuffix(args.Path, ".json") && repack[args.Path] == nil:
						loader = api.LoaderJSON
					}
					return api.OnLoadResult{Contents: &text, Loader: loader}, err
				})
			}
		}}),
	})
	if len(result.Errors) > 0 {
		var errs []error
		for _, m := range result.Errors {
			if m.Location != nil {
				errs = append(errs, fmt.Errorf("%s:%d: %s", m.Location.File, m.Location.Line, m.Text))
			} else {
				errs = append(errs, errors.New(m.Text))
			}
		}
		return "", fmt.Errorf("bundle prelude: %w", errors.Join(errs...))
	}
	return string(result.OutputFiles[0].Contents), nil
}

// resolvePrelude finds a file of the prelude, or of a package by its path. For packages, only the main file in their package.json
// counts.
func resolvePrelude(files, modules fs.FS, args api.OnResolveArgs) (api.OnResolveResult, error) {
	from, namespace, name := modules, "module", path.Join("node_modules", args.Path)
	if strings.HasPrefix(args.Path, ".") {
		name = path.Join(path.Dir(args.Importer), args.Path)
		if args.Namespace != "module" {
			from, namespace = files, "prelude"
		}
		if args.Namespace == "file" { // the entry
			name = path.Clean(args.Path)
		}
	}
	if text, err := fs.ReadFile(from, path.Join(name, "package.json")); err == nil {
		var manifest struct{ Main string }
		if err := json.Unmarshal(text, &manifest); err != nil {
			return api.OnResolveResult{}, fmt.Errorf("read the package.json of %s: %w", args.Path, err)
		}
		name = path.Join(name, manifest.Main)
	}
	for _, suffix := range []string{"", ".ts", ".js", "/index.js"} {
		if info, err := fs.Stat(from, name+suffix); err == nil && info.Mode().IsRegular() {
			return api.OnResolveResult{Path: name + suffix, Namespace: namespace}, nil
		}
	}
	return api.OnResolveResult{}, fmt.Errorf("%s is not there", args.Path)
}

// unboundText matches the message of the prelude's UnboundError.
var unboundText = lazyregexp.New(`^(?:env\.([\w-]{1,64}) is not bound \(bound: [^()]*\)(?:; did you mean env\.[\w-]{1,64}\?)?|fetch needs the http binding "(network)"|` + absent.UnboundFetch + `)$`)

// Unbound returns the name of the binding that code used and does not have, if that is what a tool reported, and else nothing. Code can
// report it of any name. origin is the scheme, the host and any port that the global fetch was to ask, such as https://example.com, if
// that is what used the binding.
func Unbound(f abi.Failure) (name, origin string) {
	if m := unboundText.FindStringSubmatch(f.Message); m != nil && f.Name == "UnboundError" {
		if origin = m[3]; origin != "" {
			return "network", origin
		}
		return m[1] + m[2], ""
	}
	return "", ""
}
