package inspect

import (
	"fmt"
	"strings"

	"github.com/dustin/go-humanize"
	"github.com/dustin/go-humanize/english"

	"github.com/stilehost/stile/internal/npmspec"
	"github.com/stilehost/stile/internal/printable"
)

// Text is the report for a terminal, on several lines. It omits empty sections, except those that a person asks about first:
// bindings, hosts and eval.
func (r Report) Text() string {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	if r.Component != nil {
		return r.componentText()
	}
	line("%s: %s, %s", r.Entry, english.Plural(r.Files, "file", ""), humanize.IBytes(uint64(max(0, r.Size))))
	if r.PackageFiles > 0 {
		line("packages: %s of code, %s", english.Plural(r.PackageFiles, "file", ""), humanize.IBytes(uint64(max(0, r.PackageSize))))
	}
	if r.ComponentSize > 0 {
		line("component: %s", humanize.IBytes(uint64(r.ComponentSize)))
	}
	uses(line, "bindings used", r.BindingsUsed)
	if r.NodeFS != "" {
		line("node:fs, for all of this code and its packages: the files of %s", r.NodeFS)
	}
	if len(r.BindingsUnused) > 0 {
		line("bindings requested but not used: %s", strings.Join(r.BindingsUnused, ", "))
	}
	if len(r.UndeclaredBindings) > 0 {
		uses(line, "bindings used but not requested", r.UndeclaredBindings)
	}
	if len(r.EnvElsewhere) > 0 {
		line("env is passed on whole or read by a computed name, so uses may be missing: %s", places(r.EnvElsewhere))
	}
	if len(r.Hosts) == 0 {
		line("hosts in strings: none")
	}
	for _, h := range r.Hosts {
		rule := ", which no http binding names"
		if h.Covered {
			rule = ""
		}
		line("host %s%s: %s", h.Name, rule, places(h.Places))
	}
	if len(r.Eval) == 0 {
		line("code made from text: none found")
	}
	signs(line, "code made from text", r.Eval)
	signs(line, "hard to read", r.Obfuscation)
	signs(line, "not read", r.Unread)
	if r.Omitted > 0 {
		line("%d more places are not listed", r.Omitted)
	}
	for _, p := range r.Packages {
		line("package %s %s, %s, %s", p.Name, p.Version, npmspec.LicenseText(p.License), humanize.IBytes(uint64(max(0, p.Size))))
		for _, w := range p.Warnings {
			line("  warning: %s", w)
		}
	}
	for _, change := range r.PackageChanges() {
		line("%s", change)
	}
	return printable.Text(b.String())
}

// componentText is the report on a component without source.
func (r Report) componentText() string {
	lines := []string{
		"no source to read: the bytes of the component are the version. Its hosts, packages and code are not known.",
		"component: " + humanize.IBytes(uint64(max(0, r.ComponentSize))) + ", sha256 " + r.Component.Digest,
	}
	lines = append(lines, r.Component.Lines()...)
	if len(r.BindingsUnused) > 0 {
		lines = append(lines, "bindings requested but not imported: "+strings.Join(r.BindingsUnused, ", "))
	}
	for _, u := range r.UndeclaredBindings {
		lines = append(lines, fmt.Sprintf("imported but not requested: %s (%s)", u.Name, places(u.Places)))
	}
	return printable.Text(strings.Join(lines, "\n") + "\n")
}

// PackageChanges says which packages are new, changed or gone since the previous version, a printable line each.
func (r Report) PackageChanges() (lines []string) {
	for _, kind := range []struct {
		what string
		list []PackageChange
	}{{"new", r.New}, {"changed", r.Changed}, {"gone", r.Gone}} {
		for _, c := range kind.list {
			from := c.From
			if c.From != "" && c.To != "" {
				from += " -> "
			}
			lines = append(lines, printable.Line(fmt.Sprintf("%s package: %s %s", kind.what, c.Name, from+c.To)))
		}
	}
	return lines
}

func uses(line func(string, ...any), what string, list []Use) {
	if len(list) == 0 {
		line("%s: none", what)
		return
	}
	line("%s:", what)
	for _, u := range list {
		line("  %s: %s", u.Name, places(u.Places))
	}
}

func signs(line func(string, ...any), what string, list []Sign) {
	for _, s := range list {
		line("%s: %s: %s", what, s.Place, s.What)
	}
}

// String is file:line:column.
func (p Place) String() string {
	if p.Line == 0 {
		return p.File
	}
	return fmt.Sprintf("%s:%d:%d", p.File, p.Line, p.Column)
}

func places(list []Place) string {
	const most = 5
	texts := make([]string, 0, most)
	for _, p := range list[:min(len(list), most)] {
		texts = append(texts, p.String())
	}
	if len(list) > most {
		texts = append(texts, "...")
	}
	return strings.Join(texts, ", ")
}
