// Package guests holds the SDKs for the authors of extensions, so that stile new writes them into projects.
package guests

import (
	"embed"
	"fmt"
	"io/fs"
	"testing/fstest"

	"github.com/rogpeppe/go-internal/txtar"
)

//go:embed c/stile.h c/stile.c
//go:embed rust/Cargo.toml rust/README.md rust/src rust/macros/Cargo.toml rust/macros/src
//go:embed typescript/*.d.ts
var files embed.FS

// Nothing can be embedded from another module, so this is a copy of it, which generate writes.
//
//go:embed go.txtar
var goModule []byte

// Files returns the SDK of a language as a folder: "c", "go", "rust" or "typescript".
func Files(language string) (fs.FS, error) {
	if language == "go" {
		folder := fstest.MapFS{}
		for _, f := range txtar.Parse(goModule).Files {
			folder[f.Name] = &fstest.MapFile{Data: f.Data, Mode: 0o444}
		}
		return folder, nil
	}
	if _, err := fs.Stat(files, language); err != nil {
		return nil, fmt.Errorf("there is no SDK for %q: %w", language, err)
	}
	return fs.Sub(files, language)
}
