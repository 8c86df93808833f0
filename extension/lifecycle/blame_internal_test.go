package lifecycle

import (
	"testing"

	"github.com/stilehost/stile/extension"
	"github.com/stilehost/stile/toolchain/npm"
)

func TestBlameImports(t *testing.T) {
	v := &Version{
		Manifest: &extension.Manifest{Dependencies: map[string]string{"named": "^1"}},
		Files: map[string][]byte{
			"README.md": []byte("import x from \"nowhere\""), "b.ts": []byte("// \"nowhere\"\nimport x from \"nowhere/sub\";"),
			"c.ts": []byte("import '@a/b'; import 'named'"), "d.mjs": []byte(`await import("late")`),
			"e.ts":  []byte("// import x from \"far\"\n\nimport x from \"far\";"),
			"f.ts":  []byte("/* import 'block';\n * import 'block' */ const a = \"import 'block'\", b = `import 'block' ${'import \"block\"'}`, c = /import 'block'/;\nx.import('block'); import('block/sub');"),
			"g.tsx": []byte("/** import 'jsx' */\nimport \"jsx\";\nconst a = <p>import \"late2\"</p>;"),
			"h.ts":  []byte("const t = `${await import('hole')}`;\nimport y = require(\"cjs\"); import type T from 'typed'; export * from '@s/all/x'; import 'hole2'"),
			"i.ts":  []byte("import { from } from\n\n  \"apart\"; const o = { import: 'key', from: 'key' }; f('key'); from; import 'preposition-like'"),
		},
	}
	for text, want := range map[string]string{
		`"nowhere" is not in the registry`: "b.ts:2:16: ", `"@a/b" is not in the registry`: "c.ts:1:9: ", `"late" is not in the registry`: "d.mjs:1:15: ",
		`"far" is not`: "e.ts:3:16: ", `"block" is not`: "f.ts:3:28: ", `"jsx" is not`: "g.tsx:2:9: ", `"late2" is not`: "manifest.json: ", `"hole" is not`: "h.ts:1:28: ",
		`"cjs" is not`: "h.ts:2:21: ", `"typed" is not`: "h.ts:2:48: ", `"@s/all" is not`: "h.ts:2:71: ", `"apart" is not`: "i.ts:3:4: ", `"key" is not`: "manifest.json: ",
		`"preposition" is not`:           "manifest.json: ",
		`"named" is not in the registry`: "manifest.json: ", `"other" is not in the registry`: "manifest.json: ", "a package is not": "manifest.json: ",
	} {
		got := blameImports(&extension.ProblemsError{Problems: []extension.Problem{{File: npm.ManifestFile, Text: text}}}, v)
		p := got.Problems[0]
		if p.Snippet = ""; p.String() != want+text {
			t.Errorf("got %s, want it to be %s", p, want)
		}
	}
}
