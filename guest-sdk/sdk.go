// Package guests holds the SDKs for the authors of extensions, so that stile new writes them into projects.
package guests

import (
	"embed"
	"fmt"
	"io/fs"
	"strings"
)

//go:embed c/stile.h c/stile.c
//go:embed rust/Cargo.toml rust/README.md rust/src rust/macros/Cargo.toml rust/macros/src
//go:embed typescript/*.d.ts
var files embed.FS

// Nothing can be embedded from another module, so this is a copy of it, which generate writes: the files, each after a line with its name.
//
//go:embed go.txtar
var goModule string

// Files returns the SDK of a language, by path: "c", "go", "rust" or "typescript".
func Files(language string) (map[string]string, error) {
	all := map[string]string{}
	if language == "go" {
		for _, file := range strings.Split("\n"+goModule, "\n-- ")[1:] {
			name, text, _ := strings.Cut(file, " --\n")
			all[name] = strings.TrimSuffix(text, "\n") + "\n"
		}
		return all, nil
	}
	err := fs.WalkDir(files, language, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := files.ReadFile(name)
		all[strings.TrimPrefix(name, language+"/")] = string(text)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("the SDK for %q: %w", language, err)
	}
	return all, nil
}
