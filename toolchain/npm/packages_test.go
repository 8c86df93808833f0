package npm

import (
	"encoding/json"
	"errors"
	"flag"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/stilehost/stile/host"
	"github.com/stilehost/stile/internal/cache/cachetest"
	"github.com/stilehost/stile/toolchain"
)

// bundler is this program as one of Options.Bundler.
var bundler = []string{os.Args[0], "as-bundler"}

func init() {
	if !slices.Equal(os.Args, bundler) {
		return
	}
	if err := toolchain.Bundle(os.Stdin, os.Stdout); err != nil {
		panic(err)
	}
	os.Exit(0)
}

// realPackages are code that uses a package, and what a call of it returns.
var realPackages = []struct{ name, imports, body, want string }{
	{"zod", `import { z } from "zod";`, `return z.object({ a: z.number().default(2) }).parse({}).a + z.string().email().safeParse("x").error!.issues.length`, `3`},
	{"lodash-es", `import { chunk } from "lodash-es"; import sortBy from "lodash-es/sortBy.js";`, `return chunk(sortBy([3, 1, 2]), 2)`, `[[1,2],[3]]`},
	{"date-fns", `import { addDays, format } from "date-fns"; import { de } from "date-fns/locale/de";`, `return format(addDays(new Date(2024, 1, 28), 2), "d. MMMM yyyy", { locale: de })`, `"1. März 2024"`},
	{"yaml", `import { parse, stringify } from "yaml";`, `return stringify(parse("a: [1, 2]\nb: &x {c: 3}\nd: *x").d)`, `"c: 3\n"`},
	{"marked", `import { marked } from "marked";`, `return marked.parse("# Hi *there*")`, `"<h1>Hi <em>there</em></h1>\n"`},
	// CommonJS, asking for process.env
	{"semver", `import semver from "semver";`, `return semver.maxSatisfying(["1.2.3", "1.9.0", "2.0.0"], "^1.2.0")`, `"1.9.0"`},
	// makes functions from text
	{"ajv", `import Ajv from "ajv";`, `const check = new Ajv().compile({ type: "object", required: ["a"] }); return [check({ a: 1 }), check({}), check.errors![0].message]`, `[true,false,"must have required property 'a'"]`},
	{"handlebars", `import Handlebars from "handlebars";`, `return Handlebars.compile("Hi {{#each names}}{{this}} {{/each}}")({ names: ["a", "<b>"] })`, `"Hi a &lt;b&gt; "`},
	// UMD
	{"papaparse", `import Papa from "papaparse";`, `return Papa.parse("a,b\n1,\"2,3\"", { header: true }).data`, `[{"a":"1","b":"2,3"}]`},
	{"dayjs", `import dayjs from "dayjs"; import utc from "dayjs/plugin/utc";`, `dayjs.extend(utc); return dayjs.utc("2024-02-28").add(2, "day").format("YYYY-MM-DD")`, `"2024-03-01"`},
	{"fast-xml-parser", `import { XMLParser } from "fast-xml-parser";`, `return new XMLParser({ ignoreAttributes: false }).parse("<a x='1'><b>2</b></a>")`, `{"a":{"b":2,"@_x":"1"}}`},
	{"decimal.js", `import Decimal from "decimal.js";`, `return new Decimal("0.1").plus("0.2").toString()`, `"0.3"`},
	{"immer", `import { produce } from "immer";`, `const a = { b: [1] }; return [produce(a, (d) => { d.b.push(2); }), a]`, `[{"b":[1,2]},{"b":[1]}]`},
	// packages that ask for buffer and string_decoder, for util and path, and code that asks for modules of node's itself
	{"iconv-lite", `import iconv from "iconv-lite"; import { Buffer } from "node:buffer";`, `return [iconv.encode("Ü€", "win1252").toString("hex"), iconv.decode(Buffer.from([0x93, 0xfa]), "shift_jis")]`, `["dc80","日"]`},
	{"micromatch", `import micromatch from "micromatch";`, `return micromatch(["a.ts", "b.js", "c/d.ts"], ["**/*.ts", "!c/**"])`, `["a.ts"]`},
	{"node", `import path from "node:path"; import { EventEmitter } from "events"; import { inspect, format, promisify } from "util"; import assert from "node:assert";
import { parse, URL as U } from "node:url"; import qs from "querystring"; import { StringDecoder } from "node:string_decoder"; import { join } from "path/posix"; import { Buffer } from "buffer";`, `
const seen: any[] = []; const e = new EventEmitter(); e.once("x", (v) => seen.push(v)); e.emit("x", 1);
try { assert.deepStrictEqual({ a: 1 }, { a: 2 }); } catch (e: any) { seen.push(e.code); }
seen.push(path.resolve("a", "..", "b"), join("a", "../c"), path.extname("x.tar.gz"), inspect({ a: [1] }), format("%s=%d", "n", 1));
seen.push(await promisify((v: number, done: any) => done(null, v + 1))(1), parse("http://h/p?q=1").pathname, new U("/b", "http://h/a").href, qs.parse("a=1&a=2").a, new StringDecoder("utf8").write(Buffer.from([0xc3, 0xbc])));
return seen`, `[1,"ERR_ASSERTION","/b","c",".gz","{ a: [ 1 ] }","n=1",2,"/p","http://h/b",["1","2"],"ü"]`},
}

var update = flag.Bool("update", false, "choose the versions of the real packages anew")

const realLock = "testdata/package-lock.json"

// Real packages are resolved in one go, and each is bundled and called.
func TestRealPackages(t *testing.T) {
	t.Parallel()
	cacheDir, keyDir := cachetest.Dirs(t)
	c, err := New(Options{CacheDir: cacheDir, KeyDir: keyDir, Bundler: bundler, Progress: func(message string) { t.Log(message) }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	sources := map[string][]byte{}
	var imports []string
	for _, p := range realPackages {
		sources[p.name] = []byte(`import { extension } from "stile";
` + p.imports + `
export default extension({ tools: { t: { description: "test", run: async () => {
` + p.body + `
} } } });`)
		found, err := Imports(t.Context(), fstest.MapFS{"tool.ts": {Data: sources[p.name]}}, "tool.ts", bundler)
		if err != nil {
			t.Fatal(err)
		}
		imports = append(imports, found.Packages...)
	}
	request := Request{Imports: imports}
	if !*update {
		if request.Lock, err = os.ReadFile(realLock); err != nil {
			t.Fatal(err)
		}
	}
	res, err := c.Resolve(t.Context(), request)
	if err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile(realLock, res.Lock, 0o600); err != nil {
			t.Fatal(err)
		}
	} else if string(res.Lock) != string(request.Lock) {
		t.Error("another lock came back")
	}
	direct := 0
	for _, p := range res.Packages {
		if p.Direct {
			direct++
		}
		if p.License == "" || p.Size == 0 || p.Published.IsZero() || p.Signature == "" {
			t.Errorf("%+v", p)
		}
	}
	if want := 15; direct != want {
		t.Errorf("%d packages are asked for, want %d", direct, want)
	}
	sbom, err := SBOM("test", "1.0.0", res.Packages, res.Lock)
	if err != nil || strings.Count(string(sbom), `"purl"`) != len(res.Packages) {
		t.Errorf("SBOM: %v", err)
	}
	checkSBOM(t, sbom)

	h, err := host.New(t.Context(), host.Options{CacheDir: cacheDir, KeyDir: keyDir})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := h.Close(); err != nil {
			t.Error(err)
		}
	})
	chain, err := toolchain.New(t.Context(), h, toolchain.Options{CacheDir: cacheDir, KeyDir: keyDir, Bundler: bundler})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := chain.Close(); err != nil {
			t.Error(err)
		}
	})
	for _, p := range realPackages {
		t.Run(p.name, func(t *testing.T) {
			source := Tree(fstest.MapFS{"tool.ts": {Data: sources[p.name]}}, res.FS)
			component, err := chain.Build(t.Context(), toolchain.Source{FS: source, Entry: "tool.ts"})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				if err := component.Close(); err != nil {
					t.Error(err)
				}
			})
			got, err := component.Call(t.Context(), "t", json.RawMessage(`{}`), host.Env{})
			if err != nil {
				t.Fatal(err)
			}
			if string(got) != p.want {
				t.Errorf("got %s, want %s", got, p.want)
			}
		})
	}
}

// The newest version of a real package is chosen, and it is old enough.
func TestNewestVersion(t *testing.T) {
	t.Parallel()
	cacheDir, keyDir := cachetest.Dirs(t)
	c, err := New(Options{CacheDir: cacheDir, KeyDir: keyDir})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	res, err := c.Resolve(t.Context(), Request{Imports: []string{"ms"}})
	if err != nil {
		t.Fatal(err)
	}
	if len(res.Packages) != 1 || res.Packages[0].Name != "ms" || time.Since(res.Packages[0].Published) < 72*time.Hour || res.Packages[0].License != "MIT" {
		t.Errorf("got %+v", res.Packages)
	}
}

func TestImports(t *testing.T) {
	files := fstest.MapFS{
		"tool.ts":                 {Data: []byte(`import { z } from "zod/v4"; import "./lib/a"; import type { T } from "types"; export default z as T`)},
		"lib/a.ts":                {Data: []byte(`import "node:path"; import "p"; import "stile"`)},
		"node_modules/p/index.js": {Data: []byte(`import "/etc/passwd"`)},
	}
	if got, err := Imports(t.Context(), files, "tool.ts", nil); err != nil || strings.Join(got.Packages, " ") != "p zod/v4" {
		t.Errorf("got %q, %v", got.Packages, err)
	}
	files["lib/a.ts"].Data = []byte("\n  let x = ;")
	_, err := Imports(t.Context(), files, "tool.ts", nil)
	bad, ok := errors.AsType[*toolchain.BuildError](err)
	if !ok || bad.Problems[0].File != "lib/a.ts" || bad.Problems[0].Line != 2 || bad.Problems[0].Snippet == "" {
		t.Errorf("got %v", err)
	}
}
