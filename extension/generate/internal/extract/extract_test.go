package extract

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

const (
	goodManifest = `{"name": "greet", "version": "0.1.0", "description": "Greets", "tools": ["greet"]}`
	goodSource   = `import { extension } from "stile";

export default extension({
  tools: {
    greet: {
      description: "Greet somebody",
      input: { type: "object", properties: { name: { type: "string" } }, required: ["name"] },
      run: ({ name }) => ` + "`Hello ${name}, ${[1, 2].map((n) => `#${n}`).join(\"`\")}!`" + `,
    },
  },
});
`
	// A line of three backticks where no fence is possible.
	trickySource = `import { extension } from "stile";
/*
Usage:
` + "```" + `
greet({ name: "x" })
` + "```" + `
*/
const slashes = /[/` + "`" + `"']/.test("a") ? 4 / 2 / 1 : 0; // it's ` + "`" + ` odd
export default extension({ tools: { greet: { description: ` + "`two\n\\`\\`\\`\nlines`" + `, run: () => slashes } } });
`
	tildes = `import { extension } from "stile";
const text = ` + "`" + `
~~~
inner
~~~
` + "`" + `;
export default extension({ tools: { greet: { description: text, run: () => text } } });
`
)

func TestFrom(t *testing.T) {
	fence := func(kind, text string) string { return "```" + kind + "\n" + text + "```\n" }
	both := fence("json", goodManifest+"\n") + "\n" + fence("ts", goodSource)
	indented := "   " + strings.ReplaceAll(strings.TrimSuffix(both, "\n"), "\n", "\n   ")
	for _, test := range []struct {
		name, reply      string
		manifest, source string
	}{
		{"as asked", both, goodManifest, goodSource},
		{"windows", strings.ReplaceAll(both, "\n", "\r\n"), goodManifest, goodSource},
		{"the other way round", fence("typescript", goodSource) + fence("json", goodManifest+"\n"), goodManifest, goodSource},
		{"no language", fence("", goodManifest+"\n") + fence("", goodSource), goodManifest, goodSource},
		{"prose around", "Sure! I import things from \"stile\".\n\n" + both + "\nThis exports a tool;\nexport it to {your} friends.\n", goodManifest, goodSource},
		{"file names", fence("json manifest.json", goodManifest+"\n") + fence("tool.ts", goodSource), goodManifest, goodSource},
		{"attributes", fence("{.json}", goodManifest+"\n") + fence("ts title=\"src/tool.ts\"", goodSource), goodManifest, goodSource},
		{"language and file", fence("json:manifest.json", goodManifest+"\n") + fence("ts:../../etc/tool.ts", goodSource), goodManifest, goodSource},
		{"tildes", "~~~ts\n" + goodSource + "~~~~\n", "", goodSource},
		{"longer fence", "`````ts\n" + goodSource + "`````\n", "", goodSource},
		{"in a list", "1. The files:\n" + indented, goodManifest, goodSource},
		{"fence in a comment", fence("ts", trickySource), "", trickySource},
		{"fence in a comment, then more", fence("ts", trickySource) + fence("json", goodManifest+"\n"), goodManifest, trickySource},
		{"fence in a template", "~~~ts\n" + tildes + "~~~\nthat is it\n", "", tildes},
		{"all in markdown", "```markdown\nHere:\n" + both + "```\n", goodManifest, goodSource},
		{"missing end", fence("json", goodManifest+"\n") + "```ts\n" + goodSource, goodManifest, goodSource},
		{"end behind code", "```ts\n" + strings.TrimSuffix(goodSource, "\n") + "```", "", goodSource},
		{"missing end between", "```json\n" + goodManifest + "\n```ts\n" + goodSource + "```", goodManifest, goodSource},
		{"no fences", goodSource, "", goodSource},
		{"no fences, prose around", "Here it is:\n\n" + goodSource + "\nI hope it helps.\n", "", goodSource},
		{"no fences at all", goodManifest + "\n\n" + goodSource, goodManifest, goodSource},
		{"several drafts", fence("ts", strings.ReplaceAll(goodSource, "Hello", "Bye")) + "Wait, it should say hello:\n" + fence("ts", goodSource), "", goodSource},
		{"usage after", fence("ts", goodSource) + fence("sh", "stile run tool.ts greet # it's `easy\n") + fence("ts", `import { greet } from "./tool";`+"\n"), "", goodSource},
		{"package.json", fence("json", `{"name": "x", "version": "1.0.0", "dependencies": {}}`+"\n") + both, goodManifest, goodSource},
		{"json", `{"manifest": ` + goodManifest + `, "source": ` + string(mustJSON(goodSource)) + `}`, goodManifest, goodSource},
		{"json in a fence", fence("json", `{"manifest": `+string(mustJSON(goodManifest))+`, "code": `+string(mustJSON(goodSource))+"}\n"), goodManifest, goodSource},
		{"json in prose", "Sure:\n" + `{"manifest": null, "source": ` + string(mustJSON(fence("ts", goodSource))) + `}` + "\nDone.", "", goodSource},
		{"tags", "<manifest>" + goodManifest + "</manifest>\n<source>\n" + goodSource + "</source>", goodManifest, goodSource},
		{"tags with attributes", "<files>\n<file path=\"manifest.json\">\n" + goodManifest + "\n</file>\n<file path=\"/etc/tool.ts\"><![CDATA[\n" + goodSource + "]]></file>\n</files>", goodManifest, goodSource},
		{"tags around fences", "<manifest>\n" + fence("json", goodManifest+"\n") + "</manifest>\n<code>\n" + fence("ts", goodSource) + "</code>\n", goodManifest, goodSource},
		{"tag in prose", "<code>greet</code> is the tool.\n<source> is where it is from.\n" + both, goodManifest, goodSource},
		{"thoughts", "<think>\nMaybe:\n" + fence("ts", strings.ReplaceAll(goodSource, "Hello", "Bye")) + "</think>\n" + both, goodManifest, goodSource},
		{"thoughts whose begin was lost", fence("ts", strings.ReplaceAll(goodSource, "Hello", "Bye")) + "no\n</think>\n" + both, goodManifest, goodSource},
		{"comment before the manifest", fence("json", "// manifest.json\n"+goodManifest+"\n") + fence("ts", goodSource), "// manifest.json\n" + goodManifest, goodSource},
		{"comment after the manifest", fence("jsonc", goodManifest+" // all\n") + fence("ts", goodSource), goodManifest + " // all", goodSource},
		{"byte order marks", "\ufeff" + fence("json", "\ufeff"+goodManifest+"\n") + fence("ts", "\ufeff"+goodSource), goodManifest, goodSource},
		{"manifest without a name", fence("json", `{"tools": ["greet"], "permissions": {"kv": true}}`+"\n") + fence("ts", goodSource), `{"tools": ["greet"], "permissions": {"kv": true}}`, goodSource},
		{"manifest in a list", fence("json", "["+goodManifest+"]\n") + fence("ts", goodSource), "[" + goodManifest + "]", goodSource},
		{"manifest in an object", fence("json", `{"manifest": `+goodManifest+"}\n") + fence("ts", goodSource), `{"manifest": ` + goodManifest + `}`, goodSource},
		{"manifest with a binding called source", fence("json", `{"name": "greet", "tools": ["greet"], "bindings": {"source": {"kv": true}}}`+"\n") + fence("ts", goodSource), `{"name": "greet", "tools": ["greet"], "bindings": {"source": {"kv": true}}}`, goodSource},
		{"manifest in yaml", fence("yaml", "name: greet\ntools: [greet]\n") + fence("ts", goodSource), "name: greet\ntools: [greet]", goodSource},
		{"manifest and what to call it with", both + fence("json", `{"name": "Ada"}`+"\n"), goodManifest, goodSource},
		{"wrong manifest", fence("json", `{"name": "Greet", "tools": [,]}`+"\n") + fence("ts", goodSource), `{"name": "Greet", "tools": [,]}`, goodSource},

		{"nothing", "", "", ""},
		{"a refusal", "I'm sorry, but I can't help with that.", "", ""},
		{"prose like code", "import duties from \"China\" are due; and so is the export default { of this }\n", "", ""},
		{"prose in a fence", "```\nYou could import a module and export it;\n```\n", "", ""},
		{"prose that names the module", "First import it from \"stile\" and export default extension;\n", "", ""},
		{"a manifest only", fence("json", goodManifest+"\n"), goodManifest, ""},
		{"a shell only", fence("sh", "import x from 'y';\nexport default 1\n"), "", ""},
		{"a diff only", fence("diff", "@@ -1,2 +1,2 @@\n import { extension } from \"stile\";\n-a\n+b\n"), "", ""},
		{"a diff in ts", fence("ts", "--- tool.ts\n+++ tool.ts\n import { extension } from \"stile\";\n+b\n"), "", ""},
		{"a script only", fence("ts", "console.log(1);\n"), "", ""},
		{"empty source", `{"manifest": ` + goodManifest + `, "source": ""}`, "", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, err := From(test.reply)
			if got.Manifest != test.manifest || got.Source != test.source {
				t.Errorf("got manifest\n%s\nand source\n%s", got.Manifest, got.Source)
			}
			if (err != nil) != (test.source == "") {
				t.Errorf("error is %v", err)
			}
			if err != nil && strings.Contains(test.name, "diff") != errors.Is(err, ErrDiff) {
				t.Errorf("error is %v", err)
			}
		})
	}
}

func mustJSON(text string) []byte {
	b, err := json.Marshal(text)
	if err != nil {
		panic(err)
	}
	return b
}

const attack = 256 << 10 // bytes

// TestFromHostile has replies that take a backtracking parser practically forever.
func TestFromHostile(t *testing.T) {
	t.Parallel()
	for _, part := range []string{
		"```\n/*\n```\n", "```ts\n`\n", "<code>\n", "<code>\n```ts\n", "<code>\n```\n", "```\n```\n<code>\n", "{\n", "{\"source\":", "import ", "import {a,", "export default\n", "</think>\n",
		"`", "${", "/", "~~~\n", "\"manifest\":{", "--- a\n", "@@ ", "import \"", "[", "(", " ```ts\n",
	} {
		if got, err := From(strings.Repeat(part, attack/len(part))); err == nil {
			t.Errorf("%q: source of %d bytes", part, len(got.Source))
		}
		ToolNames(strings.Repeat(part, attack/len(part)))
		ToolNames("extension({ tools: {" + strings.Repeat(part, attack/len(part)))
	}
}

func TestToolNames(t *testing.T) {
	for _, test := range []struct {
		source string
		want   []string
	}{
		{goodSource, []string{"greet"}},
		{trickySource, []string{"greet"}},
		{`export default extension({ tools: { a: { run() { return { b: [1, { c: 2 }] } } }, "b_2": { input: { tools: {} } }, 'c': x, d, } })`, []string{"a", "b_2", "c", "d"}},
		{"extension({\n  // tools: { no: 1 }\n  tools: { /* x: */ yes: /}/ }\n})", []string{"yes"}},
		{"extension({ tools: { a: f(`${x}${y}`), b: 1 } })", []string{"a", "b"}},
		{`extension({ tools: { a: f<x, y>() } })`, nil},
		{`extension({ tools: { ...others, a: 1 } })`, nil},
		{`extension({ tools: { [name]: 1 } })`, nil},
		{`extension({ tools: { Upper: 1 } })`, nil},
		{`extension({ tools: { a: 1`, nil},
		{`extension({ tools })`, nil},
		{`extension({ tools: {} })`, nil},
		{`extension({ tools: {`, nil},
		{``, nil},
	} {
		if got := ToolNames(test.source); !slices.Equal(got, test.want) {
			t.Errorf("%s: %q, want %q", test.source, got, test.want)
		}
	}
}

func FuzzFrom(f *testing.F) {
	f.Add("```json\n" + goodManifest + "\n```\n```ts\n" + goodSource + "```\n")
	f.Add("~~~ts\n" + tildes + "~~~\n")
	f.Add("<think>x</think>\n<source>\n```\n" + trickySource + "\n```\n</source>")
	f.Add(`{"manifest": {}, "source": ` + string(mustJSON(goodSource)) + `}`)
	f.Add("```diff\n@@ -1 +1 @@\n```")
	f.Add("prose\n" + goodSource + "more prose.")
	f.Fuzz(func(t *testing.T, reply string) {
		got, err := From(reply)
		if (err == nil) != (strings.TrimSpace(got.Source) != "") {
			t.Fatalf("source %q with error %v", got.Source, err)
		}
		if err != nil {
			return
		}
		if rank(got.Source) == 0 {
			t.Errorf("prose for code: %q", got.Source)
		}
		if utf8.ValidString(reply) && len(got.Source) > len(reply)+1 {
			t.Errorf("source of %d bytes from a reply of %d", len(got.Source), len(reply))
		}
		ToolNames(got.Source)
		// An extracted result is found again when it is wrapped in the requested form.
		if again, err := From("<source>\n" + got.Source + "</source>\n"); err != nil && !strings.Contains(got.Source, "</") && !strings.Contains(got.Source, "~~~") && !strings.Contains(got.Source, "```") {
			t.Errorf("source is lost: %q, then %q, %v", got.Source, again.Source, err)
		}
	})
}
