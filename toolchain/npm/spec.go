package npm

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/stilehost/stile/internal/lazyregexp"
	"github.com/stilehost/stile/internal/printable"
	"github.com/stilehost/stile/toolchain"
)

const (
	maxPackageName = 214
	maxRange       = 256
	manifestFile   = "manifest.json"
)

var (
	// packageName is what the registry accepts today. It excludes old packages' names with capitals.
	packageName = lazyregexp.New(`^(@[a-z0-9~-][a-z0-9._~-]*/)?[a-z0-9~][a-z0-9._~-]*$`)

	// semverRange is node-semver's grammar of ranges, without tags: npm takes whatever else it meets for a tag, file or URL.
	semverRange = lazyregexp.New(`^(` + rangePart + `)( ?\|\| ?(` + rangePart + `))*$`)
)

const (
	partial    = `v?([0-9]{1,9}|[xX*])(\.([0-9]{1,9}|[xX*])){0,2}(-[0-9A-Za-z-]+(\.[0-9A-Za-z-]+)*)?(\+[0-9A-Za-z-]+(\.[0-9A-Za-z-]+)*)?`
	comparator = `(\^|~|>=|<=|>|<|=)? ?` + partial
	rangePart  = partial + ` - ` + partial + `|` + comparator + `( ` + comparator + `)*`
)

// nameProblem says why a name cannot be that of a package, or returns nothing.
func nameProblem(name string) string {
	switch {
	case len(name) > maxPackageName:
		return fmt.Sprintf("has %d bytes; %d are allowed", len(name), maxPackageName)
	case !packageName.MatchString(name) || name == "node_modules" || name == "favicon.ico":
		return "is not the name of an npm package"
	case name == "stile":
		return "is the SDK, which needs no package"
	}
	return ""
}

// specProblem says why a dependency cannot be resolved, and what to write instead, or nothing.
func specProblem(name, spec string) (text, fix string) {
	const aRange = `a range of versions, like "^1.2.0"`
	if problem := nameProblem(name); problem != "" {
		return quote(name) + " " + problem, `a name like "zod" or "@scope/name"`
	}
	if len(spec) <= maxRange && semverRange.MatchString(spec) {
		return "", ""
	}
	what := "is not a range of versions"
	lower := strings.ToLower(spec)
	switch {
	case spec == "":
		what = "is empty"
	case len(spec) > maxRange:
		what = fmt.Sprintf("has %d bytes; %d are allowed", len(spec), maxRange)
	case strings.HasPrefix(lower, "npm:"):
		what = "is another package under this name"
	case strings.HasPrefix(lower, "workspace:"), strings.HasPrefix(lower, "link:"):
		what = "is a link to another package of a workspace"
	case strings.HasPrefix(lower, "file:"), strings.HasPrefix(spec, "."), strings.HasPrefix(spec, "/"), strings.HasPrefix(spec, "~/"):
		what = "is a file"
	case strings.HasPrefix(lower, "git"):
		what = "is a repository"
	case strings.Contains(spec, ":"):
		what = "is a URL"
	case strings.Contains(spec, "/"):
		what = "is a repository or a file"
	}
	return fmt.Sprintf("%s: %s %s, and only packages of the registry can be used", name, quote(spec), what), aRange
}

// wantedPackages are the packages that an extension asks for by itself, and the modules that it imports from them.
func wantedPackages(r Request) (wanted map[string]string, imported []string, err error) {
	wanted = make(map[string]string)
	var problems []toolchain.Problem
	for _, name := range sortedKeys(r.Dependencies) {
		spec := r.Dependencies[name]
		if text, fix := specProblem(name, spec); text != "" {
			problems = append(problems, toolchain.Problem{File: manifestFile, Text: "dependencies: " + text, Fix: fix})
			continue
		}
		wanted[name] = spec
	}
	for _, specifier := range r.Imports {
		name := nameOf(specifier)
		if shim, builtin := toolchain.Builtin(specifier); builtin {
			if _, named := wanted[shim.Package]; shim.Package != "" && !named {
				wanted[shim.Package] = shim.Range
			}
			imported = append(imported, specifier)
			continue
		}
		if problem := nameProblem(name); problem != "" {
			problems = append(problems, toolchain.Problem{Text: quote(specifier) + " cannot be imported: " + quote(name) + " " + problem, Fix: `an import like "zod"`})
			continue
		}
		if _, named := wanted[name]; !named {
			wanted[name] = "*"
		}
		imported = append(imported, specifier)
	}
	if len(problems) > 0 {
		return nil, nil, &toolchain.BuildError{Problems: problems}
	}
	return wanted, imported, nil
}

// undeclared reports whether a package is there only because the code imports it by name.
func (r Request) undeclared(name string) bool {
	if _, declared := r.Dependencies[name]; declared {
		return false
	}
	return slices.ContainsFunc(r.Imports, func(specifier string) bool {
		_, builtin := toolchain.Builtin(specifier)
		return !builtin && nameOf(specifier) == name
	})
}

// nameOf is the name of the package in an import: "@scope/name/path" is of "@scope/name".
func nameOf(specifier string) string {
	parts := strings.SplitN(specifier, "/", 3)
	if strings.HasPrefix(specifier, "@") && len(parts) > 1 {
		return parts[0] + "/" + parts[1]
	}
	return parts[0]
}

// quote shows text from a stranger: short, and with everything escaped that a terminal would act on.
func quote(s string) string { return strconv.Quote(printable.Cut(s, 80)) }

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
