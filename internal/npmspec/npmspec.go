// Package npmspec decides which package names and version ranges may be passed to npm. npm reads any other text as a tag, a file, a URL
// or a repository, so the package accepts only texts that certainly name packages of the registry.
package npmspec

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/stilehost/stile/internal/lazyregexp"
)

// Modules is the folder in which npm keeps packages.
const Modules = "node_modules"

// Bounds in bytes. npm itself has the same bound for names.
const (
	MaxName  = 214
	maxRange = 256
)

// name matches the names that the registry accepts today, without old names
// that have capitals. It starts with a letter or a digit, so it is neither a
// path nor an option.
var name = lazyregexp.New(`^(@[a-z0-9][a-z0-9._~-]*/)?[a-z0-9][a-z0-9._~-]*$`)

// ranges is node-semver's grammar of ranges, without "" and without tags, whose versions change.
var ranges = func() *lazyregexp.Regexp {
	const (
		part       = `(0|[1-9][0-9]{0,14}|[xX*])`
		identifier = `[0-9A-Za-z-]+(\.[0-9A-Za-z-]+)*`
		partial    = `v?` + part + `(\.` + part + `(\.` + part + `(-` + identifier + `)?(\+` + identifier + `)?)?)?`
		simple     = `([<>]=?|=|\^|~) *` + partial + `|` + partial
		set        = `(` + partial + ` +- +` + partial + `|(` + simple + `)( +(` + simple + `))*)`
	)
	return lazyregexp.New(`^` + set + `( *\|\| *` + set + `)*$`)
}()

// archive matches texts that npm reads as file names although they may also be versions: 1.0.0-a.tgz.
var archive = lazyregexp.New(`(?i)\.(tgz|tar|tar\.gz)$`)

// InPackage reports whether a file of a source tree belongs to a package, by its path.
func InPackage(file string) bool {
	return strings.HasPrefix(file, Modules+"/") || strings.Contains(file, "/"+Modules+"/")
}

// LicenseText returns the licence that a package names, or words that say that it names none.
func LicenseText(license string) string { return cmp.Or(license, "no licence named") }

// NameProblem returns why a name is not a valid package name, or "".
func NameProblem(s string) string {
	switch {
	case len(s) > MaxName:
		return fmt.Sprintf("has %d bytes; %d are allowed", len(s), MaxName)
	case !name.MatchString(s) || s == Modules || s == "favicon.ico":
		return "is not the name of an npm package"
	}
	return ""
}

// RangeProblem returns why a text is not a valid range of versions, or "".
func RangeProblem(s string) string {
	if len(s) > maxRange {
		return fmt.Sprintf("has %d bytes; %d are allowed", len(s), maxRange)
	}
	if ranges.MatchString(s) && !archive.MatchString(s) {
		return ""
	}
	const only = ", and only packages of the registry can be used"
	lower := strings.ToLower(s)
	switch {
	case s == "":
		return "is empty"
	case strings.HasPrefix(lower, "npm:"):
		return "is another package under this name" + only
	case strings.HasPrefix(lower, "workspace:"), strings.HasPrefix(lower, "link:"):
		return "is a link to another package of a workspace" + only
	case strings.HasPrefix(lower, "file:"), strings.HasPrefix(s, "."), strings.HasPrefix(s, "/"), strings.HasPrefix(s, "~/"):
		return "is a file" + only
	case strings.HasPrefix(lower, "git"):
		return "is a repository" + only
	case strings.Contains(s, ":"):
		return "is a URL" + only
	case strings.Contains(s, "/"):
		return "is a repository or a file" + only
	case archive.MatchString(s):
		return "is a file" + only
	}
	return "is not a range of versions"
}
