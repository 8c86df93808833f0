package npmspec

import (
	"encoding/json"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/stilehost/stile/internal/bounded"
	"github.com/stilehost/stile/internal/lazyregexp"
)

// maxManifest bounds a package.json, in bytes.
const maxManifest = 1 << 20

// FolderOf returns the folder of the package that a file belongs to, or nothing if it belongs to none.
func FolderOf(file string) string {
	parts := strings.Split(file, "/")
	for i, part := range slices.Backward(parts) {
		if part != Modules {
			continue
		}
		end := i + 2
		if i+1 < len(parts) && strings.HasPrefix(parts[i+1], "@") {
			end++
		}
		if end < len(parts) {
			return path.Join(parts[:end]...)
		}
		return ""
	}
	return ""
}

// native match scripts that compile or fetch native code when a package is installed.
var native = lazyregexp.New(`\b(?:node-gyp|node-pre-gyp|prebuild-install|prebuildify|node-gyp-build|cmake-js|napi|neon|node-addon-api)\b`)

// Native returns the name of the package that a file belongs to, if that has native code: its package.json says how to make or fetch a Node.js addon.
// Nothing else counts, and a package that cannot be read has none.
func Native(tree fs.FS, file string) (name string, ok bool) {
	dir := FolderOf(file)
	if dir == "" || tree == nil {
		return "", false
	}
	f, err := tree.Open(path.Join(dir, "package.json"))
	if err != nil {
		return "", false
	}
	text, err := bounded.Read(f, maxManifest)
	if closed := f.Close(); err != nil || closed != nil {
		return "", false
	}
	var p struct {
		Gypfile bool
		Binary  map[string]any
		Napi    map[string]any
		Scripts map[string]any
	}
	if json.Unmarshal(text, &p) != nil {
		return "", false
	}
	ok = p.Gypfile || len(p.Binary)+len(p.Napi) > 0
	for _, when := range []string{"preinstall", "install", "postinstall"} {
		script, _ := p.Scripts[when].(string)
		ok = ok || native.MatchString(script)
	}
	return dir[strings.LastIndex(dir, Modules+"/")+len(Modules)+1:], ok
}
