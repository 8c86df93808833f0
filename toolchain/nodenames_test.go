package toolchain

import (
	"bytes"
	"encoding/json"
	"io/fs"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/evanw/esbuild/pkg/api"

	"github.com/stilehost/stile/internal/absent"
)

// listNames is code for Node.js that lists what its modules give out, and which of it is data that is the same everywhere.
const listNames = `
const machine = /^(rootCertificates|globalPaths|builtinModules|asyncWrapProviders|defaultCipherList|DEFAULT_CIPHERS|defaultCoreCipherList|threadId|schedulingPolicy|usingDomains)$/;
const plain = (v, depth = 0) => v === null || /^(string|number|boolean)$/.test(typeof v) ||
  depth < 3 && typeof v === "object" && (Array.isArray(v) || [Object.prototype, null].includes(Object.getPrototypeOf(v))) && Object.keys(v).length > 0 && Object.values(v).every((w) => plain(w, depth + 1));
(async () => {
  const out = {};
  for (const module of process.argv.slice(1)) {
    const found = await import("node:" + module).catch(() => ({}));
    const names = Object.keys(found).filter((name) => name !== "default" && name !== "module.exports" && /^[a-zA-Z$][\w$]*$/.test(name) && (!machine.test(name) || typeof found[name] === "function")).sort();
    out[module] = { names, data: {} };
    for (const name of names) if (!machine.test(name) && found[name] !== null && plain(found[name])) out[module].data[name] = found[name];
  }
  console.log(JSON.stringify(out));
})();`

// TestNamesOfNode compares names.json with what Node.js gives out and with what stands in for its modules. With -update, it writes the file.
func TestNamesOfNode(t *testing.T) {
	shims := exportsOfShims(t)
	modules := slices.Concat(absent.Modules(), sortedNames(nodeModules))
	output, err := exec.CommandContext(t.Context(), "node", slices.Concat([]string{"--no-warnings", "-e", listNames, "--"}, modules)...).Output()
	if err != nil {
		t.Fatal(err)
	}
	var node map[string]struct {
		Names []string
		Data  map[string]json.RawMessage
	}
	if err := json.Unmarshal(output, &node); err != nil {
		t.Fatal(err)
	}
	known, err := namesOfNode()
	if err != nil {
		t.Fatal(err)
	}
	made := map[string]nodeNames{}
	for _, module := range modules {
		exported := shims[module]
		of := node[module]
		names := nodeNames{Data: map[string]json.RawMessage{}}
		for _, name := range of.Names {
			value, isData := of.Data[name]
			switch {
			case slices.Contains(exported, name):
			case isData && module != "process":
				names.Data[name] = value
			default:
				names.Lacks = append(names.Lacks, name)
			}
		}
		if len(names.Lacks)+len(names.Data) > 0 {
			made[module] = names
		}
		for _, name := range known[module].Lacks {
			if slices.Contains(exported, name) {
				t.Errorf("%s of %s is said to be lacking, and is there; run this test with -update", name, module)
			}
		}
		for _, name := range of.Names {
			if _, isData := known[module].Data[name]; !*update && !isData && !slices.Contains(exported, name) && !slices.Contains(known[module].Lacks, name) {
				t.Logf("%s of %s is in this version of Node.js and not in names.json", name, module)
			}
		}
	}
	if !*update {
		if len(known["http"].Data["METHODS"]) == 0 || !slices.Contains(known["http"].Lacks, "createServer") || !slices.Contains(known["stream"].Lacks, "duplexPair") && len(known) < 20 {
			t.Error("names.json lacks the names of node's modules; run this test with -update")
		}
		return
	}
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetIndent("", " ")
	if err := encoder.Encode(made); err != nil {
		t.Fatal(err)
	}
	lines := text.String()
	var compact bytes.Buffer
	if err := json.Compact(&compact, []byte(lines)); err != nil {
		t.Fatal(err)
	}
	lines = strings.ReplaceAll(compact.String(), `]},"`, "]},\n\"")
	if err := os.WriteFile("node/names.json", []byte(strings.ReplaceAll(lines, `}},"`, "}},\n\"")+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
}

func sortedNames(m map[string]string) []string {
	var names []string
	for name := range m {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// exportsOfShims are the names that what stands in for each module gives out, as the bundler sees them.
func exportsOfShims(t *testing.T) map[string][]string {
	t.Helper()
	tools := newNodeTools(t)
	source := Source{FS: fstest.MapFS{}, Entry: "a.ts", node: func() (fs.FS, error) {
		modules, err := tools.engineModules(t.Context())
		return nodeFiles(modules), err
	}}
	all := map[string][]string{}
	for module, file := range nodeModules {
		b := newBundler(source, nil)
		b.ctx = t.Context()
		options := b.options()
		options.Inject, options.Metafile, options.TreeShaking = nil, true, api.TreeShakingFalse
		options.Plugins = []api.Plugin{{Name: "shims", Setup: func(build api.PluginBuild) {
			build.OnResolve(api.OnResolveOptions{Filter: ".*"}, func(args api.OnResolveArgs) (api.OnResolveResult, error) {
				if args.Kind == api.ResolveEntryPoint {
					return nodeResult(file), nil
				}
				return b.resolveNode(args)
			})
			build.OnLoad(api.OnLoadOptions{Filter: ".*"}, func(args api.OnLoadArgs) (api.OnLoadResult, error) { return b.loadNode(args.Path) })
		}}}
		built := api.Build(options)
		if len(built.Errors) > 0 {
			t.Fatalf("%s: %v", module, built.Errors[0].Text)
		}
		var meta struct {
			Outputs map[string]struct{ Exports []string }
		}
		if err := json.Unmarshal([]byte(built.Metafile), &meta); err != nil {
			t.Fatal(err)
		}
		for _, output := range meta.Outputs {
			all[module] = append(all[module], output.Exports...)
		}
	}
	return all
}
