// Package examples holds extensions to learn from.
package examples

import (
	"embed"
	"io/fs"
)

//go:embed distance.json distance.ts notes.json notes.ts
var files embed.FS

// Files returns manifests and sources: distance computes, notes keeps files.
func Files() fs.FS { return files }
