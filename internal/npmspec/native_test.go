package npmspec

import (
	"strings"
	"testing"
	"testing/fstest"
)

func TestNative(t *testing.T) {
	tree := fstest.MapFS{}
	for name, manifest := range map[string]string{
		"sql": `{"scripts": {"install": "prebuild-install || node-gyp rebuild --release"}}`, "@a/canvas": `{"napi": {"binaryName": "skia"}}`, "crypt": `{"gypfile": true}`, "img": `{"binary": {"napi_versions": [9]}}`,
		"pure": `{"scripts": {"install": "node check.js", "test": "node-gyp rebuild"}}`, "odd": `{"gypfile": "x"}`, "huge": `{"gypfile": true, "a": "` + strings.Repeat("a", maxManifest) + `"}`,
	} {
		tree[Modules+"/"+name+"/package.json"] = &fstest.MapFile{Data: []byte(manifest)}
	}
	tree["node_modules/pure/node_modules/crypt/package.json"] = tree["node_modules/crypt/package.json"]
	for file, want := range map[string]string{
		"node_modules/sql/lib/a.js": "sql", "node_modules/@a/canvas/index.js": "@a/canvas", "node_modules/crypt/a.js": "crypt", "node_modules/img/dist/a.mjs": "img", "node_modules/pure/node_modules/crypt/a.js": "crypt",
		"node_modules/pure/a.js": "", "node_modules/odd/a.js": "", "node_modules/huge/a.js": "", "node_modules/none/a.js": "", "node_modules/sql": "", "node_modules": "", "node_modules/@a": "", "a.js": "", "": "",
	} {
		if name, ok := Native(tree, file); ok != (want != "") || ok && name != want {
			t.Errorf("%q: got %q, %v", file, name, ok)
		}
	}
	if _, ok := Native(nil, "node_modules/sql/a.js"); ok {
		t.Error("there is no tree")
	}
}
