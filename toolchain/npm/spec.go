package npm

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/stilehost/stile/internal/npmspec"
	"github.com/stilehost/stile/internal/printable"
	"github.com/stilehost/stile/toolchain"
)

// ManifestFile is the file that problems with the requested packages are in: the manifest of an extension.
const ManifestFile = "manifest.json"

// nameProblem says why a name cannot be that of a package of the registry, or returns nothing.
func nameProblem(name string) string {
	if name == "stile" {
		return "is the SDK, which needs no package"
	}
	return npmspec.NameProblem(name)
}

// specProblem says why a dependency cannot be resolved, and what to write instead, or nothing.
func specProblem(name, spec string) (text, fix string) {
	if problem := nameProblem(name); problem != "" {
		return quote(name) + " " + problem, `a name like "zod" or "@scope/name"`
	}
	if problem := npmspec.RangeProblem(spec); problem != "" {
		return fmt.Sprintf("%s: %s %s", name, quote(spec), problem), `a range of versions, like "^1.2.0"`
	}
	return "", ""
}

// wantedPackages are the packages that an extension asks for by itself.
func wantedPackages(r Request) (map[string]string, error) {
	wanted := make(map[string]string)
	var problems []toolchain.Problem
	for _, name := range sortedKeys(r.Dependencies) {
		spec := r.Dependencies[name]
		if text, fix := specProblem(name, spec); text != "" {
			problems = append(problems, toolchain.Problem{File: ManifestFile, Text: "dependencies: " + text, Fix: fix})
			continue
		}
		wanted[name] = spec
	}
	for _, specifier := range r.Imports {
		name := nameOf(specifier)
		if _, builtin := toolchain.Builtin(specifier); builtin {
			continue
		}
		if problem := nameProblem(name); problem != "" {
			problems = append(problems, toolchain.Problem{Text: quote(specifier) + " cannot be imported: " + quote(name) + " " + problem, Fix: `an import like "zod"`})
			continue
		}
		if _, named := wanted[name]; !named {
			wanted[name] = "*"
		}
	}
	if len(problems) > 0 {
		return nil, &toolchain.BuildError{Problems: problems}
	}
	return wanted, nil
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

// nameOf returns the name of the package in an import: "@scope/name" for "@scope/name/path".
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
