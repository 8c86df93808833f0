package inspect

import (
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
