package lifecycle

import (
	"errors"
	"testing"

	"github.com/stilehost/stile/extension"
)

func TestBlameImports(t *testing.T) {
	v := &Version{
		Manifest: &extension.Manifest{Dependencies: map[string]string{"named": "^1"}},
		Files: map[string][]byte{
			"README.md": []byte("import x from \"nowhere\""), "b.ts": []byte("// \"nowhere\"\nimport x from \"nowhere/sub\";"),
			"c.ts": []byte("import '@a/b'; import 'named'"), "d.mjs": []byte(`await import("late")`),
		},
	}
	for text, want := range map[string]string{
		`"nowhere" is not in the registry`: "b.ts:2:16: ", `"@a/b" is not in the registry`: "c.ts:1:9: ", `"late" is not in the registry`: "d.mjs:1:15: ",
		`"named" is not in the registry`: "manifest.json: ", `"other" is not in the registry`: "manifest.json: ", "a package is not": "manifest.json: ",
	} {
		var got *extension.ProblemsError
		err := blameImports(&extension.ProblemsError{Problems: []extension.Problem{{File: extension.ManifestFile, Text: text}}}, v)
		if !errors.As(err, &got) {
			t.Fatal(err)
		}
		p := got.Problems[0]
		if p.Snippet = ""; p.String() != want+text {
			t.Errorf("got %s, want it to be %s", p, want)
		}
	}
	if err := errors.New("another"); !errors.Is(blameImports(err, v), err) {
		t.Error("another error is changed")
	}
}
