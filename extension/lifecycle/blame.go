package lifecycle

import (
	"bytes"
	"errors"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/stilehost/stile/extension"
	"github.com/stilehost/stile/toolchain"
)

// imported is what names a package in a source: the name, with what may be before and behind it.
var imported = regexp.MustCompile(`\b(?:from|import|(?:import|require)\s*\()\s*["']((?:@[^/"'\s]+/)?[^/"'\s]+)(?:/[^"']*)?["']`)

// source is what the names of sources end in.
var source = regexp.MustCompile(`\.[cm]?[jt]sx?$`)

// blameImports has a problem with a package that the manifest does not name be one of the line that imports it.
func blameImports(err error, v *Version) error {
	found, ok := errors.AsType[*extension.ProblemsError](err)
	if !ok {
		return err
	}
	for i := range found.Problems {
		p := &found.Problems[i]
		quoted, _ := strconv.QuotedPrefix(p.Text)
		name, _ := strconv.Unquote(quoted)
		if _, named := v.Manifest.Dependencies[name]; named || p.File != extension.ManifestFile {
			continue
		}
		for _, file := range slices.Sorted(maps.Keys(v.Files)) {
			if !source.MatchString(file) {
				continue
			}
			text := v.Files[file]
			if at := importOf(text, name); at >= 0 {
				start := bytes.LastIndexByte(text[:at], '\n') + 1
				line, _, _ := strings.Cut(string(text[start:]), "\n")
				p.File, p.Line, p.Column = file, bytes.Count(text[:at], []byte("\n"))+1, utf8.RuneCount(text[start:at])+1
				p.Snippet = toolchain.Snippet(line, p.Column)
				break
			}
		}
	}
	return err
}

// importOf is where a source names a package; -1 when it does not.
func importOf(text []byte, name string) int {
	for _, m := range imported.FindAllSubmatchIndex(text, -1) {
		if string(text[m[2]:m[3]]) == name {
			return m[2]
		}
	}
	return -1
}
