package extension

import (
	"fmt"
	"strings"

	"github.com/stilehost/stile/internal/jsonform"
	"github.com/stilehost/stile/internal/lazyregexp"
)

const (
	maxDependencies = 100
	maxRange        = 256 // bytes
)

// packageName is the name of an npm package. It starts with a letter or a digit, so it is neither a path nor an option.
var packageName = lazyregexp.New(`^(@[a-z0-9][a-z0-9._~-]*/)?[a-z0-9][a-z0-9._~-]*$`)

// versionRange is the grammar of npm's ranges, without tags, which move, and "".
var versionRange = func() *lazyregexp.Regexp {
	const (
		part       = `(0|[1-9][0-9]{0,14}|[xX*])`
		identifier = `[0-9A-Za-z-]+(\.[0-9A-Za-z-]+)*`
		partial    = `v?` + part + `(\.` + part + `(\.` + part + `(-` + identifier + `)?(\+` + identifier + `)?)?)?`
		simple     = `([<>]=?|=|\^|~) *` + partial + `|` + partial
		set        = `(` + partial + ` +- +` + partial + `|(` + simple + `)( +(` + simple + `))*)`
	)
	return lazyregexp.New(`^` + set + `( *\|\| *` + set + `)*$`)
}()

// archiveName matches what npm takes for a file name, although it may be a version too: 1.0.0-a.tgz.
var archiveName = lazyregexp.New(`(?i)\.(tgz|tar|tar\.gz)$`)

func (r *reader) dependencies(n *jsonform.Node) map[string]string {
	const example = `{"zod": "^4.0.0"}`
	members := r.Members(n, example)
	if len(members) > maxDependencies {
		r.Fail(n, fmt.Sprintf("at most %d", maxDependencies), "there are %d dependencies", len(members))
		return nil
	}
	if len(members) == 0 {
		return nil
	}
	found := make(map[string]string, len(members))
	for _, m := range members {
		if problem := packageProblem(m.Key); problem != "" {
			r.FailAt(m.Offset, m.Value.Path, `the name of an npm package, like "zod" or "@scope/name"`, "%s %s", jsonform.Quote(m.Key), problem)
		}
		found[m.Key] = r.versionRange(m.Value)
	}
	return found
}

// packageProblem says why a name is not one that the registry could have today, or nothing.
func packageProblem(name string) string {
	switch {
	case len(name) > MaxPackageName:
		return fmt.Sprintf("has %d bytes; %d are allowed", len(name), MaxPackageName)
	case !packageName.MatchString(name):
		return "does not have this form"
	case name == "node_modules", name == "favicon.ico":
		return "is the name of no package"
	default:
		return ""
	}
}

func (r *reader) versionRange(n *jsonform.Node) string {
	const example = `a range of versions, like "^1.2.3"`
	s := r.Text(n, example)
	switch {
	case r.Err != nil:
	case len(s) > maxRange:
		r.Fail(n, fmt.Sprintf("at most %d bytes", maxRange), "the range has %d bytes", len(s))
	case strings.ContainsAny(s, `:/\@`) || archiveName.MatchString(s):
		r.Fail(n, example, "%s is not a range: a package comes from the registry under its own name, never from a file, an address or another name", jsonform.Quote(s))
	case !versionRange.MatchString(s):
		r.Fail(n, example, "%s is not a range of versions", jsonform.Quote(s))
	}
	return s
}
