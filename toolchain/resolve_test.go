package toolchain

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/fstest"
	"time"
)

// Packages are taken in the build that works without a page.
func TestConditions(t *testing.T) {
	const (
		page   = `export default document.createElement("i").innerHTML + "for pages";`
		asks   = `export default typeof document === "undefined" ? "for either" : document.title;`
		server = `export default "for servers";`
		worker = `export default "for workers";`
		plain  = `export default "for browsers";`
	)
	for name, test := range map[string]struct {
		p    map[string]string
		want string
	}{
		"worker before browser": {map[string]string{"package.json": `{"exports": {"worker": "./w.js", "browser": "./b.js", "default": "./s.js"}}`, "w.js": worker, "b.js": plain, "s.js": server}, "for workers"},
		"the package's order":   {map[string]string{"package.json": `{"exports": {"browser": "./b.js", "worker": "./w.js", "default": "./s.js"}}`, "w.js": worker, "b.js": plain, "s.js": server}, "for browsers"},
		"workerd":               {map[string]string{"package.json": `{"exports": {".": {"workerd": {"import": "./w.js"}, "default": "./s.js"}}}`, "w.js": worker, "s.js": server}, "for workers"},
		"a page by condition":   {map[string]string{"package.json": `{"exports": {"browser": "./b.js", "default": "./s.js"}}`, "b.js": page, "s.js": server}, "for servers"},
		"node, not a page":      {map[string]string{"package.json": `{"exports": {"browser": "./b.js", "node": "./s.js", "default": "./b.js"}}`, "b.js": page, "s.js": server}, "for servers"},
		"a page by field":       {map[string]string{"package.json": `{"main": "s.js", "browser": "b.js"}`, "b.js": page, "s.js": server}, "for servers"},
		"a page by file": {map[string]string{
			"package.json": `{"module": "s.js", "browser": {"./s.js": "./b.js", "only-servers": false}}`, "b.js": page, "s.js": `import x from "only-servers"; export default x;`,
			"node_modules/only-servers/index.js": `module.exports = "for servers"`,
		}, "for servers"},
		"two for browsers": {map[string]string{
			"package.json": `{"main": "s.js", "browser": {"./s.js": "./b.js", "./raw": "./b-raw.js", "./raw.js": "./b-raw.js"}}`, "b.js": `import x from "./raw"; export default x;`, "s.js": server,
			"raw.js": server, "b-raw.js": `export default globalThis.MutationObserver ? document.body : "for browsers";`,
		}, "for browsers"},
		"asks for a page":        {map[string]string{"package.json": `{"main": "s.js", "browser": "b.js"}`, "b.js": asks, "s.js": server}, "for either"},
		"only for pages":         {map[string]string{"package.json": `{"main": "b.js", "browser": "b.js"}`, "b.js": page}, "for pages"},
		"both for pages":         {map[string]string{"package.json": `{"main": "s.js", "browser": "b.js"}`, "b.js": page, "s.js": page + "//"}, "for pages"},
		"a browser":              {map[string]string{"package.json": `{"main": "s.js", "browser": "b.js"}`, "b.js": plain, "s.js": server}, "for browsers"},
		"a module":               {map[string]string{"package.json": `{"main": "s.js", "module": "m.js"}`, "m.js": plain, "s.js": server}, "for browsers"},
		"files that are circles": {map[string]string{"package.json": `{"main": "a.js", "browser": {"./a.js": "./b.js", "./b.js": "./a.js"}}`, "a.js": page, "b.js": page}, "for pages"},
		"a circle of itself":     {map[string]string{"package.json": `{"main": "a.js", "browser": {"./a.js": "./a.js"}}`, "a.js": page}, "for pages"},
	} {
		t.Run(name, func(t *testing.T) {
			out, err := bundleTree(t, "main.ts", mod(`import v from "p"; export default v`, test.p))
			if err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(string(out.code), test.want) {
				t.Errorf("got %s", out.code)
			}
		})
	}
}

// What a hostile package.json says costs little and leads nowhere.
func TestHostileConditions(t *testing.T) {
	many := func(form string, n int) string {
		var all strings.Builder
		for i := range n {
			fmt.Fprintf(&all, form, i, i)
		}
		return all.String()
	}
	for name, test := range map[string]struct{ json, want string }{
		"many keys":           {`{"exports": {` + many(`"./k%d": "./k%d.js",`, 40_000) + `".": "./index.js"}}`, ""},
		"many replacements":   {`{"browser": {` + many(`"./k%d": "./k%d.js",`, 40_000) + `"./index.js": "./index.js"}}`, ""},
		"nested conditions":   {`{"exports": ` + strings.Repeat(`{"worker": `, 60) + `"./index.js"` + strings.Repeat("}", 61), ""},
		"nested too deep":     {`{"exports": ` + strings.Repeat(`{"worker": `, 100) + `"./index.js"` + strings.Repeat("}", 101), "nested deeper"},
		"escape by condition": {`{"exports": {"worker": "./../../secret.js"}}`, "not a path in the package"},
		"escape by field":     {`{"main": "index.js", "browser": "../../secret.js"}`, ""},
		"escape by file":      {`{"main": "index.js", "browser": {"./index.js": "../../../secret.js"}}`, "leaves the source tree"},
		"a machine's path":    {`{"main": "index.js", "browser": {"./index.js": "/etc/passwd"}}`, `does not exist`},
		"itself":              {`{"imports": {"#a": "#a"}, "exports": {"worker": "#a"}}`, "not a path in the package"},
	} {
		t.Run(name, func(t *testing.T) {
			files := mod(`import v from "p"; export default v`, map[string]string{"package.json": test.json, "index.js": `export default "found"`})
			files["secret.js"] = `export default "secret"`
			out, err := bundleTree(t, "main.ts", files)
			switch {
			case test.want == "" && (err != nil || !strings.Contains(string(out.code), `"found"`)):
				t.Errorf("got %.300v", err)
			case test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)):
				t.Errorf("got %.300v", err)
			case err == nil && strings.Contains(string(out.code), `"secret"`):
				t.Error("it left its package")
			}
		})
	}
}

// A file that uses what only pages have many times, and asks for it at its end, is looked at once.
func TestPagesAreFoundOnce(t *testing.T) {
	b := newBundler(Source{FS: fstest.MapFS{"node_modules/p/index.js": {Data: []byte(strings.Repeat("; document.a", 80_000) + "; typeof document")}}}, nil)
	b.ctx = t.Context()
	ended := make(chan error, 1)
	go func() {
		needs, err := b.resolver.needsPage("node_modules/p/index.js")
		ended <- errors.Join(err, map[bool]error{true: errors.New(needs)}[needs != ""])
	}()
	select {
	case err := <-ended:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(time.Minute):
		t.Fatal("it takes more than a minute")
	}
}

// The source's own code imports nothing that is not there.
func TestNothingAbsentInOwnCode(t *testing.T) {
	for code, want := range map[string]string{
		`let net; try { net = require("node:net") } catch {} export default net`: "http binding",
		`import net from "net"; export default net`:                              "http binding",
		`export default (x) => import(x)`:                                        "must be written as a string",
		`export default (x) => require("./" + x)`:                                "must be written as a string",
	} {
		if _, err := bundleTree(t, "main.ts", map[string]string{"main.ts": code}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v", code, err)
		}
	}
}
