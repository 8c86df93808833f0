package extension

import (
	"fmt"
	"slices"
	"strings"

	"github.com/stilehost/stile/abi"
)

// maxToolName is the most bytes of a name that MCP clients take.
const maxToolName = 64

var (
	// reservedTools are the names of Stile's own tools, those of coming versions included, or what these begin with.
	reservedTools = []string{"agent", "browser", "code", "context", "extension", "run", "sandbox", "schema", "sql", "stile", "workspace"}
	// reservedBindings are what coming versions have in env.
	reservedBindings = []string{"agents", "progress", "runs", "vars"}
)

// Reserved reports whether no extension may be written with a tool of this registered name, since it is kept for a built-in tool of this
// version or a coming one. An extension that was written before the name was reserved keeps it until its next version.
func Reserved(tool string) bool {
	return slices.ContainsFunc(reservedTools, func(own string) bool { return tool == own || strings.HasPrefix(tool, own+"_") })
}

// ToolName is the name under which a tool of an extension is registered: EXTENSION_TOOL, with "_" for "-". It is in lower
// case and of a-z, 0-9 and "_", as every other character becomes a "_". [Manifest.CheckNames] says whether it can be used.
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

// CheckNames says which tools of the manifest cannot be registered: names that are too long, reserved, or taken; and which bindings have
// reserved names. taken says in a few words what holds a name, such as "the extension x", or nothing.
func (m *Manifest) CheckNames(taken func(tool string) (holder string)) []Problem {
	var problems []Problem
	add := func(fix, format string, args ...any) {
		problems = append(problems, Problem{File: ManifestFile, Text: fmt.Sprintf(format, args...), Fix: fix})
	}
	for _, tool := range m.Tools {
		name := ToolName(m.Name, tool)
		holder := taken(name)
		switch {
		case !extensionName.MatchString(m.Name), !wordName.MatchString(tool):
			add("names of a-z and 0-9", "the tool %+q of %+q cannot be registered", tool, m.Name)
		case len(name) > maxToolName:
			add("a shorter name", "the tool %s would be called %s, which has %d bytes; %d are allowed", tool, name, len(name), maxToolName)
		case Reserved(name):
			add("another name for the extension", "the tool %s would be called %s, and names like this are Stile's own", tool, name)
		case holder != "":
			add("another name", "the tool %s would be called %s, which a tool of %s is called already", tool, name, abi.PrintableLine(holder))
		}
	}
	for _, b := range m.Bindings {
		if slices.Contains(reservedBindings, b.Name) {
			add("another name for the binding", "the binding %s cannot be granted: env.%s is Stile's own", b.Name, b.Name)
		}
	}
	return problems
}
