// Package wit holds the contract between host and component: the WIT text of stile:capability and stile:extension. The folder is
// laid out for `wasm-tools component wit`, with a file for each interface of stile:capability.
package wit

import (
	"embed"
	"fmt"
	"io/fs"
	"strings"
	"sync"
)

//go:embed extension.wit deps/capability/*.wit
var files embed.FS

// Files are the texts, as a folder: extension.wit, and what it needs below deps.
func Files() embed.FS { return files }

// Capability returns the WIT text of the package stile:capability@0.1.0: what a host can hand to a component.
func Capability() string { return capability() }

// Extension returns the WIT text of the package stile:extension@0.1.0: what an extension exports.
func Extension() string { return read("extension.wit") }

// capability puts the files of the package together. It panics if this program was built without them.
var capability = sync.OnceValue(func() string {
	const folder = "deps/capability/"
	names, err := fs.Glob(files, folder+"*.wit")
	if err != nil {
		panic(fmt.Sprintf("find the WIT of stile:capability: %v", err))
	}
	var b strings.Builder
	b.WriteString(read(folder + "package.wit"))
	for _, name := range names {
		_, text, _ := strings.Cut(read(name), "package stile:capability@0.1.0;\n")
		b.WriteString(text)
	}
	return b.String()
})

func read(name string) string {
	text, err := files.ReadFile(name)
	if err != nil {
		panic(fmt.Sprintf("read the WIT: %v", err))
	}
	return string(text)
}
