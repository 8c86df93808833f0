package lifecycle

import (
	"bytes"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/stilehost/stile/extension"
	"github.com/stilehost/stile/extension/inspect"
	"github.com/stilehost/stile/toolchain"
	"github.com/stilehost/stile/toolchain/npm"
)

// blameImports moves a problem with a package that the manifest does not name to the line that imports it.
func blameImports(found *extension.ProblemsError, v *Version) *extension.ProblemsError {
	for i := range found.Problems {
		p := &found.Problems[i]
		quoted, _ := strconv.QuotedPrefix(p.Text)
		name, _ := strconv.Unquote(quoted)
		if _, named := v.Manifest.Dependencies[name]; named || p.File != extension.ManifestFile {
			continue
		}
		for _, file := range slices.Sorted(maps.Keys(v.Files)) {
			text := v.Files[file]
			if at := inspect.ImportOf(file, string(text), name); name != "" && at >= 0 {
				start := bytes.LastIndexByte(text[:at], '\n') + 1
				line, _, _ := strings.Cut(string(text[start:]), "\n")
				p.File, p.Line, p.Column = file, bytes.Count(text[:at], []byte("\n"))+1, utf8.RuneCount(text[start:at])+1
				p.Snippet = toolchain.Snippet(line, p.Column)
				break
			}
		}
	}
	return found
}

// withoutNamed returns the packages of a request without those that problems name.
func withoutNamed(r npm.Request, problems []extension.Problem) (dependencies map[string]string, imports []string) {
	dependencies, imports = maps.Clone(r.Dependencies), slices.Clone(r.Imports)
	for _, p := range problems {
		quoted, _ := strconv.QuotedPrefix(strings.TrimPrefix(p.Text, "dependencies: "))
		name, err := strconv.Unquote(quoted)
		if err != nil {
			continue
		}
		delete(dependencies, name)
		imports = slices.DeleteFunc(imports, func(s string) bool { return s == name || strings.HasPrefix(s, name+"/") })
	}
	return dependencies, imports
}
