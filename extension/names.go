package extension

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/stilehost/stile/internal/printable"
)

// MaxToolName is the maximum size of a tool's registered name in bytes. MCP clients accept no longer names.
const MaxToolName = 64

var (
	// reservedTools are the names of Stile's own tools, including those of later versions, or prefixes of them.
	reservedTools = []string{"agent", "browser", "code", "context", "extension", "person", "run", "sandbox", "schema", "sql", "stile", "workspace"}
	// reservedBindings are the names that env has itself, or will have in coming versions.
	reservedBindings = []string{"agents", "progress", "runs", "vars"}
)

// The limits of an extension's own files, without packages.
const (
	MaxFiles  = 500
	MaxSource = 16 << 20 // bytes of all files together
)

// MaxComponent is the largest component that an extension can be without source, in bytes.
const MaxComponent = 64 << 20

// IsName reports whether an extension can have this name.
func IsName(name string) bool { return len(name) <= maxName && extensionName.MatchString(name) }

// IsToolName reports whether a tool of an extension can have this name.
func IsToolName(name string) bool { return len(name) <= maxName && wordName.MatchString(name) }

// Reserved reports whether a registered name is reserved for a built-in tool of this or a coming version. No extension
// may use such a name. An extension written earlier keeps the name until its next version.
func Reserved(tool string) bool {
	return slices.ContainsFunc(reservedTools, func(own string) bool { return tool == own || strings.HasPrefix(tool, own+"_") })
}

// ToolName is the registered name of an extension's tool: EXTENSION_TOOL, in lower case, of a-z, 0-9 and "_". Every other
// character becomes "_". [Manifest.CheckNames] says whether the name can be used.
func ToolName(extension, tool string) string {
	return strings.Map(func(c rune) rune {
		switch {
		case c >= 'a' && c <= 'z' || c >= '0' && c <= '9':
			return c
		case c >= 'A' && c <= 'Z':
			return c - 'A' + 'a'
		default:
			return '_'
		}
	}, extension+"_"+tool)
}

// freeBinding suggests a name instead of a reserved one.
const freeBinding = "another name for the binding"

// reservedBinding says why no binding may have the name. It is empty if a binding may.
func reservedBinding(name string) string {
	if !slices.Contains(reservedBindings, name) {
		return ""
	}
	return fmt.Sprintf("the binding %s cannot be granted: env.%[1]s is reserved for Stile", name)
}

// CheckNames reports tools that cannot be registered because their names are too long, reserved or taken, and bindings with
// reserved names. text is the manifest as written, to give problems their places, or nil. taken says in a few words what already has a name,
// such as "the extension x", or returns an empty text.
func (m *Manifest) CheckNames(text []byte, taken func(tool string) (holder string)) []Problem {
	var problems []Problem
	places := sync.OnceValue(func() *Places { return PlacesIn(text) })
	add := func(place func(*Places) (line, column int), fix, format string, args ...any) {
		line, column := place(places())
		problems = append(problems, Problem{File: ManifestFile, Line: line, Column: column, Text: fmt.Sprintf(format, args...), Fix: fix})
	}
	for _, tool := range m.Tools {
		name := ToolName(m.Name, tool)
		holder := taken(name)
		named := func(p *Places) (line, column int) { return p.Of("name") }
		listed := func(p *Places) (line, column int) { return p.Of("tools "+tool, "tools") }
		switch {
		case !extensionName.MatchString(m.Name), !wordName.MatchString(tool):
			add(listed, "names of a-z and 0-9", "the tool %+q of %+q cannot be registered", tool, m.Name)
		case len(name) > MaxToolName:
			add(listed, "a shorter name", "the tool %s would be called %s, which has %d bytes; %d are allowed", tool, name, len(name), MaxToolName)
		case Reserved(name):
			add(named, "another name for the extension", "the tool %s would be called %s, and such names are reserved for Stile", tool, name)
		case holder != "":
			add(listed, "another name", "the tool %s would be called %s, which a tool of %s is called already", tool, name, printable.Line(holder))
		}
	}
	for _, b := range m.Bindings {
		if text := reservedBinding(b.Name); text != "" {
			add(func(p *Places) (line, column int) { return p.OfBinding(b.Name) }, freeBinding, "%s", text)
		}
	}
	return problems
}

// TooLarge returns what is wrong with a source of so many files and bytes, or nil.
func TooLarge(files int, size int64) *Problem {
	switch {
	case files > MaxFiles:
		return &Problem{Text: fmt.Sprintf("the extension has more than %d files", MaxFiles), Fix: "fewer files, and packages instead of copies"}
	case size > MaxSource:
		return &Problem{Text: fmt.Sprintf("the files of the extension have more than %d MiB", MaxSource>>20), Fix: "less, without what it does not import"}
	default:
		return nil
	}
}
