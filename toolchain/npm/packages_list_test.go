package npm

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/stilehost/stile/capabilities"
	"github.com/stilehost/stile/capabilities/clock"
	"github.com/stilehost/stile/capabilities/console"
	"github.com/stilehost/stile/capabilities/random"
	"github.com/stilehost/stile/extension"
	"github.com/stilehost/stile/extension/inspect"
	"github.com/stilehost/stile/extension/trial"
	"github.com/stilehost/stile/host"
	"github.com/stilehost/stile/internal/absent"
	"github.com/stilehost/stile/internal/cache/cachetest"
	"github.com/stilehost/stile/internal/printable"
	"github.com/stilehost/stile/toolchain"
)

// memory is that of a call: a compiler needs more than most tools.
const memory = 256 << 20

// listed is a file of testdata/packages: a tool that uses packages, with an input and what a call of it returns.
type listed struct {
	name     string
	source   []byte
	packages []string // name@version
	input    string
	output   string // what Node.js returns for it
	missing  string // or what it needs that is not there, for which it is refused before approval
}

// outcome is a line of the table.
type outcome struct {
	result  string
	works   bool
	refused string // for what is missing
	size    int64
	cold    time.Duration
}

func readListed(t *testing.T) []listed {
	t.Helper()
	files, err := filepath.Glob("testdata/packages/*.js")
	if err != nil || len(files) == 0 {
		t.Fatal("no packages", err)
	}
	var found []listed
	for _, file := range files {
		l := listed{name: strings.TrimSuffix(filepath.Base(file), ".js")}
		if l.source, err = os.ReadFile(file); err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(l.source)) {
			key, value, ok := strings.Cut(strings.TrimSuffix(strings.TrimPrefix(line, "// "), "\n"), ": ")
			if !ok || !strings.HasPrefix(line, "// ") {
				break
			}
			switch key {
			case "package":
				l.packages = append(l.packages, value)
			case "input":
				l.input = value
			case "output":
				l.output = value
			case "missing":
				l.missing = value
			}
		}
		if len(l.packages) == 0 || l.input == "" || (l.output == "") == (l.missing == "") {
			t.Fatalf("%s does not say what it uses and returns", file)
		}
		found = append(found, l)
	}
	return found
}

// shardSize is how many tools of the list each run of the tests tries.
const shardSize = 7

// TestPackagesOfTheDay builds and calls some tools of the list, others each day, with packages that come from the registry. make packages
// tries all.
func TestPackagesOfTheDay(t *testing.T) {
	t.Parallel()
	all := readListed(t)
	shards := (len(all) + shardSize - 1) / shardSize
	day := int(time.Now().UTC().Unix() / (24 * 60 * 60))
	var chosen []listed
	for i := day % shards; i < len(all); i += shards { // so that neighbours, which are alike, are tried on different days
		chosen = append(chosen, all[i])
	}
	tryListed(t, t.TempDir(), chosen)
}

// tryListed builds and calls tools, each in a test of its own, and returns what came of it. packagesDir is the cache of their packages.
func tryListed(t *testing.T, packagesDir string, chosen []listed) map[string]outcome {
	t.Helper()
	cacheDir, keyDir := cachetest.Dirs(t)
	c, err := New(Options{CacheDir: packagesDir, KeyDir: keyDir, Bundler: bundler, MaxPackages: 2000, MaxFiles: 100_000, MaxBytes: 512 << 20, Timeout: 10 * time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	h, err := host.New(t.Context(), host.Options{CacheDir: cacheDir, KeyDir: keyDir, Limits: host.Limits{Memory: memory, CPU: 30 * time.Second}, MaxMemory: memory})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = h.Close() })
	chain, err := toolchain.New(t.Context(), h, toolchain.Options{CacheDir: cacheDir, KeyDir: keyDir, Bundler: bundler})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = chain.Close() })
	outcomes := make(map[string]outcome)
	for together := range slices.Chunk(chosen, 20) { // what npm says about them has a limit
		packages := resolveListed(t, c, together)
		for _, l := range together {
			t.Run(l.name, func(t *testing.T) {
				o := call(t, chain, l, toolchain.Source{FS: Tree(fstest.MapFS{"tool.js": {Data: l.source}}, packages), Entry: "tool.js"})
				outcomes[l.name] = o
				if o.works != (l.missing == "") || o.refused != "" != (l.missing != "") || !strings.Contains(o.refused, l.missing) {
					t.Errorf("missing %q: it %s", l.missing, o.result)
				}
			})
		}
	}
	return outcomes
}

// resolveListed returns the packages of tools.
func resolveListed(t *testing.T, c *Client, chosen []listed) fs.FS {
	t.Helper()
	request := Request{Dependencies: map[string]string{}}
	for _, l := range chosen {
		for _, p := range l.packages {
			at := strings.LastIndex(p, "@")
			request.Dependencies[p[:at]] = p[at+1:]
		}
		found, err := Imports(t.Context(), fstest.MapFS{"tool.js": {Data: l.source}}, "tool.js", bundler)
		if err != nil {
			t.Fatal(err)
		}
		request.Imports = append(request.Imports, found.Packages...)
	}
	res, err := c.Resolve(t.Context(), request)
	if err != nil {
		t.Fatal(err)
	}
	return res.FS
}

// call builds a tool and calls it.
func call(t *testing.T, chain *toolchain.Toolchain, l listed, s toolchain.Source) (o outcome) {
	t.Helper()
	refused := func(text, fix string) outcome {
		if _, _, lacks := absent.Find(text); !lacks && !strings.Contains(text, ", because there is no ") {
			return outcome{result: "is refused: " + printable.Short(text, 300)}
		}
		reason, _, _ := strings.Cut(text, ": with the input")
		fix, _, _ = strings.Cut(fix, "; if the tool works")
		return outcome{result: "refused before approval: " + printable.Short(reason+"; write "+fix, 600), refused: text}
	}
	wasm, err := chain.Assemble(t.Context(), s, false)
	if wrong, ok := errors.AsType[*toolchain.BuildError](err); ok {
		return refused(wrong.Problems[0].Text, wrong.Problems[0].Fix)
	}
	if err != nil {
		t.Fatal(err)
	}
	o.size = int64(len(wasm))
	component, err := chain.Build(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = component.Close() }()
	found, err := trial.Probe(t.Context(), trial.Request{Component: component, Bindings: extension.Defaults(capabilities.Builtin), Open: true}, nil, inspect.InputNames(map[string][]byte{"tool.js": l.source}))
	if err != nil {
		t.Fatal(err)
	}
	if len(found) > 0 {
		return refused(found[0].Text, found[0].Fix)
	}
	began := time.Now()
	got, err := component.Call(t.Context(), "call", json.RawMessage(l.input), host.Env{"clock": clock.System(), "random": random.System(), "console": console.To(func(console.Level, string) {})})
	o.cold = time.Since(began)
	switch {
	case err != nil:
		o.result = "fails when it is called: " + printable.Short(err.Error(), 300)
	case !sameJSON(got, []byte(l.output)):
		o.result = "returns something else: " + printable.Short(string(got), 300)
	default:
		o.result, o.works = "works", true
	}
	return o
}

// sameJSON compares values.
func sameJSON(a, b []byte) bool {
	var x, y any
	return json.Unmarshal(a, &x) == nil && json.Unmarshal(b, &y) == nil && reflect.DeepEqual(x, y)
}
