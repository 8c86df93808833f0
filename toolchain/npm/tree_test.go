package npm

import (
	"archive/zip"
	"errors"
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"
)

// The author's own files never stand where a package does.
func TestTree(t *testing.T) {
	files := func(content string, names ...string) fstest.MapFS {
		m := fstest.MapFS{}
		for _, name := range names {
			m[name] = &fstest.MapFile{Data: []byte(content)}
		}
		return m
	}
	both := Tree(
		files("author", "tool.ts", "lib/a.ts", "node_modules/p/index.js", "node_modules/own/index.js", "Node_Modules/p/b.js", "lib/node_modules/p/index.js", "lib/NODE_MODULES/p/index.js", "node_modules.ts", "my_node_modules/a.ts"),
		files("package", "tool.ts", "node_modules/p/index.js", "node_modules/p/node_modules/q/index.js"),
	)
	for name, want := range map[string]string{
		"tool.ts": "author", "lib/a.ts": "author", "node_modules.ts": "author", "my_node_modules/a.ts": "author",
		"node_modules/p/index.js": "package", "node_modules/p/node_modules/q/index.js": "package",
		"node_modules/own/index.js": "", "Node_Modules/p/b.js": "", "lib/node_modules/p/index.js": "", "lib/NODE_MODULES/p/index.js": "",
	} {
		content, err := fs.ReadFile(both, name)
		if string(content) != want || (want == "") != errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: got %q, %v", name, content, err)
		}
	}
	if info, err := fs.Stat(both, "lib/node_modules"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a folder of the author's is there: %v", info)
	}
}

// A tree lists what it opens, so that all code in it is found.
func TestTreeLists(t *testing.T) {
	source := fstest.MapFS{
		"tool.ts": {}, "lib/a.ts": {}, "lib/node_modules/evil/index.js": {}, "Node_Modules/evil/index.js": {}, "node_modules/evil/index.js": {},
	}
	packages := fstest.MapFS{"node_modules/zod/index.js": {}, "node_modules/zod/node_modules/q/index.js": {}}
	for want, fsys := range map[string]fs.FS{
		"lib/a.ts node_modules/zod/index.js node_modules/zod/node_modules/q/index.js tool.ts": Tree(source, packages),
		"lib/a.ts tool.ts": Tree(source, &zip.Reader{}),
	} {
		var got []string
		if err := fs.WalkDir(fsys, ".", func(name string, e fs.DirEntry, err error) error {
			if err == nil && !e.IsDir() {
				got = append(got, name)
			}
			return err
		}); err != nil || strings.Join(got, " ") != want {
			t.Errorf("got %q, %v; want %s", got, err, want)
		}
	}
}
