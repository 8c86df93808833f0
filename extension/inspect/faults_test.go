package inspect

import (
	"fmt"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stilehost/stile/extension"
)

// Code that works is no fault, also if it uses the names of env, of browsers and of Node for something of its own.
func TestFaultsLeaveOwnNames(t *testing.T) {
	m, err := extension.Parse([]byte(`{"name": "a", "version": "1.0.0", "description": "A test", "tools": ["get"], "permissions": {"workspace": "read"}}`))
	if err != nil {
		t.Fatal(err)
	}
	for code, faulty := range map[string]bool{
		`const build = (env: { prefix: string }) => env.prefix.toUpperCase();`:                               false,
		`function build(a: string, env: Record<string, any>) { return env.prefix.trim(); }`:                  false,
		`function build() { const env = { workspace: { write(x: string) {} } }; env.workspace.write("a"); }`: false,
		`const build = (document: any, [window]: any) => document.title + window.x;`:                         false,
		`const build = (...window: any[]) => window.length;`:                                                 false,
		`const build = () => globalThis.Buffer ? Buffer.from("x") : undefined;`:                              false,
		`import type { Env } from "stile"; const build = (env: Env) => env.prefix.get("a");`:                 true,
		`const build = () => Buffer.from("x");`:                                                              true,
		`const build = (x: string) => [window.name];`:                                                        true,
	} {
		text := `import { extension } from "stile";` + "\n" + code + "\n" + `export default extension({ tools: { get: { description: "Gets", run: async (i, env) => build() } } });`
		in := Input{FS: fstest.MapFS{"tool.ts": {Data: []byte(text)}}, Entry: "tool.ts", Bindings: m.Bindings}
		found, err := Faults(in, nil, func([]string) (map[string]bool, error) { return nil, nil })
		if err != nil || len(found) > 0 != faulty {
			t.Errorf("%s: %v, %v", code, found, err)
		}
	}
}

// The module fs has files only where the manifest says so. What imports it for a type, or asks first, is no fault.
func TestFaultsOfFiles(t *testing.T) {
	m, err := extension.Parse([]byte(`{"name": "a", "version": "1.0.0", "description": "A test", "tools": ["get"], "bindings": {"drafts": {"workspace": {"access": "read"}}}}`))
	if err != nil {
		t.Fatal(err)
	}
	for code, faulty := range map[string]bool{
		`import fs from "fs"; const build = () => fs.readFileSync("a", "utf8");`:                true,
		`import * as fs from 'node:fs'; const build = () => fs.readFileSync("a", "utf8");`:      true,
		`import { readFileSync as read, type Stats } from "fs"; const build = () => read("a");`: true,
		`import def, { readFileSync } from "fs"; const build = () => readFileSync("a");`:        true,
		`import { readFile } from "node:fs/promises"; const build = () => readFile("a");`:       true,
		`const fs = require("fs"); const build = () => fs.readFileSync("a");`:                   true,
		`import type { Stats } from "fs"; const build = (s?: Stats) => s;`:                      false,
		`import { Stats } from "fs"; const build = (s?: Stats) => s;`:                           false,
		`import { type Stats } from "fs"; const build = (s?: Stats) => s;`:                      false,
		`import fs from "memfs"; const build = () => fs.readFileSync("a");`:                     false,
		`let fs: any; try { fs = require("fs"); } catch {} const build = () => fs?.x;`:          false,
		`const build = () => "import fs from 'fs'; fs.x()";`:                                    false,
		`const o: any = {}; const build = () => o.require("fs");`:                               false,
		`import "fs"; const build = () => 1;`:                                                   false,
	} {
		text := `import { extension } from "stile";` + "\n" + code + "\n" + `export default extension({ tools: { get: { description: "Gets", run: async () => build() } } });`
		for _, fs := range []string{"", "drafts"} {
			in := Input{FS: fstest.MapFS{"tool.ts": {Data: []byte(text)}}, Entry: "tool.ts", Bindings: m.Bindings, NodeFS: fs}
			found, err := Faults(in, nil, func([]string) (map[string]bool, error) { return map[string]bool{"require": true}, nil })
			if want := faulty && fs == ""; err != nil || len(found) > 0 != want {
				t.Errorf("%s: %v, %v", code, found, err)
			} else if want && (found[0].Line != 2 || found[0].Fix != `"fs": "drafts" in the manifest, or env.drafts`) {
				t.Errorf("%s: %+v", code, found[0])
			}
		}
	}
}

func TestInputNames(t *testing.T) {
	for text, want := range map[string]string{
		`run: async (input, env) => f(input.a, input?.b, input.a, output.c)`:             "[a b]",
		`run: async ({ at, zone = "UTC", deep: { x } }) => 1, run({ to }) {}`:            "[to]",
		`tools: { t: { run: async ({ at, zone: other = "UTC" }, env) => at } }`:          "[at zone]",
		`input.` + strings.Repeat("x", 100) + `; inputs.a; myinput.b; const input = "";`: "[]",
	} {
		if got := fmt.Sprint(InputNames(map[string][]byte{"tool.ts": []byte(text), "data.json": []byte("input.z")})); got != want {
			t.Errorf("%s: got %s, want %s", text, got, want)
		}
	}
}
