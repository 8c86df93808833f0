package npm

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/stilehost/stile/internal/jsonform"
	"github.com/stilehost/stile/internal/lazyregexp"
	"github.com/stilehost/stile/toolchain"
)

// LockFile is the name of a lockfile.
const LockFile = "package-lock.json"

const (
	projectName = "extension"
	maxLock     = 8 << 20 // bytes
	maxValues   = 100_000 // each takes up to 700 bytes when it is read
)

// LockError reports a lockfile that is not ours, or was altered. Without the lockfile, npm chooses versions again.
type LockError struct {
	Problem string
}

// Error implements error.
func (e *LockError) Error() string {
	return "the lockfile of the npm packages cannot be used: " + e.Problem + "; resolve without it"
}

// lockfile is the relevant part of a package-lock.json. npm gets this instead of the original text, so that both read the same.
type lockfile struct {
	Name            string               `json:"name"`
	LockfileVersion int                  `json:"lockfileVersion"`
	Requires        bool                 `json:"requires"`
	Packages        map[string]lockEntry `json:"packages"` // by path; the extension itself is ""
}

type lockEntry struct {
	Name         string `json:"name,omitempty"` // where the path has another
	Version      string `json:"version,omitempty"`
	Integrity    string `json:"integrity,omitempty"`
	Resolved     string `json:"resolved,omitempty"`
	Link         bool   `json:"link,omitempty"`
	InBundle     bool   `json:"inBundle,omitempty"`
	Shrinkwrap   bool   `json:"hasShrinkwrap,omitempty"`
	Optional     bool   `json:"optional,omitempty"`
	Peer         bool   `json:"peer,omitempty"`
	HasScript    bool   `json:"hasInstallScript,omitempty"`
	Deprecated   string `json:"deprecated,omitempty"`
	Dependencies specs  `json:"dependencies,omitempty"`

	OptionalDependencies specs           `json:"optionalDependencies,omitempty"`
	PeerDependencies     specs           `json:"peerDependencies,omitempty"`
	PeerMeta             json.RawMessage `json:"peerDependenciesMeta,omitempty"`
	Engines              json.RawMessage `json:"engines,omitempty"`
	OS                   json.RawMessage `json:"os,omitempty"`
	CPU                  json.RawMessage `json:"cpu,omitempty"`
}

type specs map[string]string

// parseLock reads and checks a lockfile. An absent lockfile counts as one without packages.
func parseLock(text []byte, maxPackages int) (*lockfile, error) {
	l := &lockfile{}
	if len(text) == 0 {
		return l, nil
	}
	if len(text) > maxLock {
		return nil, &LockError{fmt.Sprintf("it has %d bytes; %d are allowed", len(text), maxLock)}
	}
	if jsonform.Values(text) > maxValues {
		return nil, &LockError{fmt.Sprintf("it has more than %d values", maxValues)}
	}
	if err := json.Unmarshal(text, l); err != nil {
		return nil, &LockError{err.Error()}
	}
	if l.LockfileVersion != 3 {
		return nil, &LockError{fmt.Sprintf("its version is %d, not 3", l.LockfileVersion)}
	}
	if len(l.wanted()) == 0 {
		return nil, &LockError{"it does not name the requested packages"}
	}
	return l, l.check(maxPackages)
}

func (l *lockfile) encode() []byte { return encode(l) }

// located returns the lock with the URLs of its archives. Otherwise, npm would ask the registry again and could get different ones.
func (l *lockfile) located(packages []located) *lockfile {
	lock := *l
	lock.Packages = maps.Clone(l.Packages)
	for _, p := range packages {
		e := lock.Packages[p.at]
		e.Resolved = p.tarball
		lock.Packages[p.at] = e
	}
	return &lock
}

// wanted are the packages that the extension asks for.
func (l *lockfile) wanted() map[string]string { return l.Packages[""].Dependencies }

// installed are the paths of the packages that are fetched, in byte order: all but the optional ones, which are most often
// native code for one kind of machine.
func (l *lockfile) installed() []string {
	return slices.DeleteFunc(sortedKeys(l.Packages), func(at string) bool { return at == "" || l.Packages[at].Optional })
}

var versionForm = lazyregexp.New(`^[0-9]{1,16}\.[0-9]{1,16}\.[0-9]{1,16}(-[0-9A-Za-z.-]{1,128})?(\+[0-9A-Za-z.-]{1,128})?$`)

// check refuses packages that do not come from the registry with a digest, and more packages than allowed.
func (l *lockfile) check(maxPackages int) error {
	paths := l.installed()
	if len(paths) > maxPackages {
		return tooLarge(fmt.Sprintf("there are %d packages, dependencies included", len(paths)), fmt.Sprintf("%d", maxPackages))
	}
	for _, name := range sortedKeys(l.wanted()) {
		if text, _ := specProblem(name, l.wanted()[name]); text != "" {
			return &LockError{text}
		}
		if e, ok := l.Packages["node_modules/"+name]; !ok || e.Optional || e.Name != "" && e.Name != name {
			return &LockError{"it lacks the package " + quote(name)}
		}
	}
	var problems []toolchain.Problem
	var wrong error
	for _, at := range paths {
		e, name := l.Packages[at], l.nameAt(at)
		switch unnamed := nameProblem(name); {
		case !isFolder(at):
			wrong = &LockError{quote(at) + " is not the folder of a package"}
		case unnamed != "":
			wrong = &LockError{quote(name) + " " + unnamed}
		case e.problem() != "":
			problems = append(problems, toolchain.Problem{File: ManifestFile, Text: name + " " + e.problem(), Fix: "another package that does the same"})
		case !versionForm.MatchString(e.Version):
			wrong = &LockError{fmt.Sprintf("%s: %s is not a version", name, quote(e.Version))}
		}
	}
	if len(problems) > 0 {
		return &toolchain.BuildError{Problems: problems}
	}
	return wrong
}

// isFolder reports whether a path is that of a package, perhaps inside other packages' folders.
func isFolder(at string) bool {
	rest, ok := strings.CutPrefix(at, modules+"/")
	if !ok {
		return false
	}
	for name := range strings.SplitSeq(rest, "/"+modules+"/") {
		if nameProblem(strings.ToLower(name)) != "" { // npm finds packages with old names by these names
			return false
		}
	}
	return true
}

// nameAt is the name of the package at a path.
func (l *lockfile) nameAt(at string) string {
	if name := l.Packages[at].Name; name != "" {
		return name
	}
	parts := strings.Split(at, "node_modules/")
	return parts[len(parts)-1]
}

// problem says why a package does not come from the registry, or returns nothing. A package can depend on others from anywhere.
func (e *lockEntry) problem() string {
	switch {
	case e.Link:
		return "is a link to a folder"
	case e.InBundle:
		return "comes from another package's archive instead of the registry"
	case e.Shrinkwrap:
		return "brings a lockfile of its own"
	case e.Resolved != "": // npm leaves it out for packages of the registry
		return "is not a package of the registry"
	case !isSHA512(e.Integrity):
		return "has no SHA-512 digest in the registry"
	}
	for _, list := range []specs{e.Dependencies, e.PeerDependencies} {
		for _, name := range sortedKeys(list) {
			spec := list[name]
			if strings.ContainsAny(spec, ":/") && !isAlias(spec) {
				return fmt.Sprintf("asks for %s, which is not a package of the registry", quote(name+"@"+spec))
			}
		}
	}
	return ""
}

// isAlias reports whether a range names another package of the registry, as in "npm:name@^1.0.0". Packages may have such ranges.
func isAlias(spec string) bool {
	rest, ok := strings.CutPrefix(spec, "npm:")
	if !ok {
		return false
	}
	at := strings.LastIndex(rest, "@")
	return at > 0 && nameProblem(rest[:at]) == "" && !strings.ContainsAny(rest[at:], ":/")
}

func isSHA512(integrity string) bool {
	digest, ok := strings.CutPrefix(integrity, "sha512-")
	sum, err := base64.StdEncoding.DecodeString(digest)
	return ok && err == nil && len(sum) == 64
}

// versions returns all versions in the lock, in byte order.
func (l *lockfile) versions() []string {
	found := make(map[string]bool)
	for _, at := range l.installed() {
		found[l.Packages[at].Version] = true
	}
	return slices.Sorted(maps.Keys(found))
}

func tooLarge(what, limit string) error {
	return authors(what+"; "+limit+" are allowed", "fewer or smaller packages")
}
