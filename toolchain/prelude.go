package toolchain

import (
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"

	"github.com/evanw/esbuild/pkg/api"
)

//go:embed prelude/*.ts
var preludeFiles embed.FS

// preludeEntry ties the files of the prelude together. What it exports is what [imager.makeBase] asks for.
const preludeEntry = `
import "./main";
%s
import "./evaluator";
import { define as learn } from "./bindings";
import { prepare } from "./env";
export function define(descriptor: string) {
  learn(descriptor);
  prepare();
}
export { enter, finish, now, turn } from "./bindings";
export { register } from "./extension";
export { frames } from "./failure";
export { array, record, replacer } from "./json";
export { rejected } from "./rejections";
`

// preludeSource bundles the prelude into the text of a function of (host, memory, block); see prelude/bindings.ts.
// modules holds the folder node_modules with the packages that it imports. With net it has what prelude/net.ts adds.
func preludeSource(modules fs.FS, net bool) (string, error) {
	files, err := fs.Sub(preludeFiles, "prelude")
	if err != nil {
		return "", err
	}
	extra := ""
	if net {
		extra = `import "./net";`
	}
	return bundlePrelude(files, modules, fmt.Sprintf(preludeEntry, extra))
}

func bundlePrelude(files, modules fs.FS, entry string) (string, error) {
	result := api.Build(api.BuildOptions{
		Stdin:            &api.StdinOptions{Contents: entry, Sourcefile: "prelude.ts", Loader: api.LoaderTS},
		Bundle:           true,
		Format:           api.FormatIIFE,
		GlobalName:       "prelude",
		Banner:           map[string]string{"js": "(function (host, memory, block, stackLimit) {\"use strict\";"},
		Footer:           map[string]string{"js": "return prelude; })"},
		Target:           api.ESNext,
		Platform:         api.PlatformNeutral,
		LegalComments:    api.LegalCommentsNone,
		MinifyWhitespace: true,
		MinifySyntax:     true,
		TsconfigRaw:      "{}",
		LogLevel:         api.LogLevelSilent,
		Plugins: []api.Plugin{{Name: "embedded", Setup: func(build api.PluginBuild) {
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
					if strings.HasSuffix(args.Path, ".ts") {
						loader = api.LoaderTS
					}
					return api.OnLoadResult{Contents: &text, Loader: loader}, err
				})
			}
		}}},
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

// resolvePrelude finds a file of the prelude, or of a package by its path. Packages are taken as they lie: only the main file in their
// package.json counts.
func resolvePrelude(files, modules fs.FS, args api.OnResolveArgs) (api.OnResolveResult, error) {
	from, namespace, name := modules, "module", path.Join("node_modules", args.Path)
	if strings.HasPrefix(args.Path, ".") {
		name = path.Join(path.Dir(args.Importer), args.Path)
		if args.Namespace != "module" {
			from, namespace, name = files, "prelude", path.Clean(args.Path)
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
