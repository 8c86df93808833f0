package toolchain

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"
	"unicode"

	"github.com/stilehost/stile/internal/absent"
	"github.com/stilehost/stile/internal/lazyregexp"
	"github.com/stilehost/stile/internal/npmspec"
)

// resolver finds the file that an import names, inside one source tree. The rules are node's (packages in node_modules,
// package.json's exports and imports), with the liberties that bundlers take: extensions may be left out, and
// "./x.js" also names x.ts. It is safe for concurrent use.
type resolver struct {
	files fs.FS
	read  func(name string, limit int64) ([]byte, error)

	mu       sync.Mutex
	packages map[string]*packageJSON // by folder; nil when it has none
	pages    map[string]string       // by file: what only pages have and the file uses
	lacking  map[string]bool         // files that lack something that is imported from them
}

// resolution is the answer to an import.
type resolution struct {
	path  string
	empty bool // the package says that browsers get an empty module here
	pure  bool // the package says that the file may be dropped if its exports are unused
	node  bool // path is a module of node without the prefix, one of nodeModules
}

// refusedError reports an import that is refused without a search, in any source tree.
type refusedError struct {
	reason string
	// notInTree is set if such a file may exist, but not for an extension.
	notInTree bool
}

func (e *refusedError) Error() string { return e.reason }

const (
	maxSpecifier   = 1024
	maxPackageJSON = 1 << 20
)

var (
	scheme = lazyregexp.New(`^[A-Za-z][A-Za-z0-9+.-]*:`)

	extensions        = []string{".ts", ".tsx", ".mts", ".cts", ".js", ".mjs", ".cjs", ".jsx", ".json"}
	packageExtensions = []string{".js", ".mjs", ".cjs", ".jsx", ".ts", ".tsx", ".mts", ".cts", ".json"}
	// twins are the TypeScript files that a JavaScript name may mean.
	twins = map[string][]string{".js": {".ts", ".tsx"}, ".jsx": {".tsx"}, ".mjs": {".mts"}, ".cjs": {".cts"}}
)

// manner says how a package is asked for a file.
type manner struct {
	require bool // for CommonJS
	server  bool // not for what it has for browsers
}

// resolve finds the file that specifier means in the file importer. With require, packages are asked for CommonJS. Packages are taken as for
// a browser, because that spares them most of node's modules, unless the file for browsers needs a page and the one for servers does not, or lacks what is
// imported from it.
func (r *resolver) resolve(specifier, importer string, require bool) (resolution, error) {
	server, err := r.isForServers(importer)
	if err != nil {
		return resolution{}, err
	}
	found, err := r.resolveAs(specifier, importer, manner{require: require, server: server})
	if err != nil || server || found.empty || !npmspec.InPackage(found.path) {
		return found, err
	}
	if r.isLacking(found.path) {
		if other, err := r.resolveAs(specifier, importer, manner{require: require, server: true}); err == nil {
			return other, nil
		}
		return found, nil
	}
	needs, err := r.needsPage(found.path)
	if err != nil || needs == "" {
		return found, err
	}
	if paired, err := r.areForBrowsers(importer, found.path); err != nil || paired {
		return found, err
	}
	other, err := r.resolveAs(specifier, importer, manner{require: require, server: true})
	if err != nil || other.path == found.path {
		return found, nil
	}
	if needs, err = r.needsPage(other.path); err != nil || needs != "" {
		return found, err
	}
	return other, nil
}

// ofPages match what only a page has, in code that does not ask first whether it is there.
var ofPages = lazyregexp.New(`(?:^|[^.\w$'"` + "`" + `])(document|window|XMLHttpRequest|DOMParser|localStorage)\s*[.(\[]`)

// maxPages is how many bytes of a file are looked at for what only pages have.
const maxPages = 1 << 20

// needsPage returns the name of something that only pages have and that a file of a package uses. It is empty for a file that asks whether it is
// there, as code for several environments does, and for a large one.
func (r *resolver) needsPage(name string) (string, error) {
	r.mu.Lock()
	known, ok := r.pages[name]
	r.mu.Unlock()
	if ok || !isCode(loaders[path.Ext(name)]) {
		return known, nil
	}
	text, err := r.read(name, MaxSource)
	if err != nil {
		return "", err
	}
	needs := ""
	if len(text) <= maxPages {
		asks := map[string]bool{} // by word, because a file may use one many times
		for _, m := range ofPages.FindAllSubmatch(text, -1) {
			word := string(m[1])
			if _, known := asks[word]; !known {
				asks[word] = bytes.Contains(text, []byte("typeof "+word))
			}
			if !asks[word] {
				needs = word
				break
			}
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.pages[name] = needs
	return needs, nil
}

// noteLacking says that a file lacks something that is imported from it. It returns false if that is known.
func (r *resolver) noteLacking(name string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	known := r.lacking[name]
	r.lacking[name] = true
	return !known
}

func (r *resolver) isLacking(name string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.lacking[name]
}

// isForServers reports whether a file has a counterpart for browsers, which needs a page. What such a file imports is for servers too.
func (r *resolver) isForServers(name string) (bool, error) {
	owner, err := r.scope(path.Dir(name))
	if err != nil || !owner.inModules() {
		return false, err
	}
	replacement, _ := owner.replacement(name)
	if replacement == "" {
		return false, nil
	}
	found, err := r.relative(owner.dir, replacement, manner{})
	if err != nil || found == name {
		return false, nil
	}
	needs, err := r.needsPage(found)
	return needs != "", err
}

// areForBrowsers reports whether a package has both files for browsers. They were written for each other.
func (r *resolver) areForBrowsers(one, other string) (bool, error) {
	owner, err := r.scope(path.Dir(one))
	return err == nil && owner.inModules() && owner.forBrowsers[one] && owner.forBrowsers[other], err
}

// replacement returns what browsers get for a file of the package: "" is an empty module.
func (p *packageJSON) replacement(file string) (to string, ok bool) {
	name := "./" + strings.TrimPrefix(strings.TrimPrefix(file, p.dir), "/")
	if to, ok = p.browser[name]; !ok {
		to, ok = p.browser[strings.TrimSuffix(name, path.Ext(name))]
	}
	return to, ok
}

// resolveAs is resolve in one manner.
func (r *resolver) resolveAs(specifier, importer string, as manner) (resolution, error) {
	if err := refuse(specifier); err != nil {
		return resolution{}, err
	}
	scope, err := r.scope(path.Dir(importer))
	if err != nil {
		return resolution{}, err
	}
	if scope.inModules() {
		if replacement, ok := scope.browser[specifier]; ok && !as.server {
			if replacement == "" {
				return resolution{path: specifier, empty: true}, nil
			}
			specifier, importer = replacement, path.Join(scope.dir, "package.json")
		}
	}
	found, err := r.locate(specifier, path.Dir(importer), scope, as)
	if err != nil {
		return resolution{}, err
	}
	if name, ok := strings.CutPrefix(found, standIn); ok {
		return resolution{path: name, node: true}, nil
	}
	return r.finish(found, as)
}

// finish applies what the package of a file says about it.
func (r *resolver) finish(found string, as manner) (resolution, error) {
	owner, err := r.scope(path.Dir(found))
	if err != nil || !owner.inModules() {
		return resolution{path: found}, err
	}
	if to, ok := owner.replacement(found); ok && !as.server {
		if to == "" {
			return resolution{path: found, empty: true}, nil
		}
		if found, err = r.relative(owner.dir, to, as); err != nil {
			return resolution{}, err
		}
	}
	return resolution{path: found, pure: owner.pure(found)}, nil
}

// refuse refuses imports that could only mean something outside the source tree.
func refuse(specifier string) error {
	var reason string
	switch {
	case specifier == "":
		reason = "an empty name cannot be imported"
	case len(specifier) > maxSpecifier:
		reason = fmt.Sprintf("a name of %d bytes cannot be imported: %d is the limit", len(specifier), maxSpecifier)
	case strings.ContainsFunc(specifier, unicode.IsControl) || strings.ContainsRune(specifier, unicode.ReplacementChar):
		reason = fmt.Sprintf("%q has characters that no file name has", specifier)
	case strings.HasPrefix(specifier, nodePrefix):
		if offered, _ := Builtin(specifier); offered {
			return nil
		}
		reason = absent.ModuleReason(specifier)
	case strings.HasPrefix(specifier, "stile/"):
		reason = fmt.Sprintf("%q does not exist: everything is exported by \"stile\" itself", specifier)
	case scheme.MatchString(specifier), strings.HasPrefix(specifier, "//"):
		reason = fmt.Sprintf("%q is a URL or drive: only files of the source tree and its packages can be imported", specifier)
	case strings.HasPrefix(specifier, "/"):
		reason = fmt.Sprintf("%q is an absolute path: only files of the source tree can be imported, by relative path", specifier)
	case strings.Contains(specifier, `\`):
		reason = fmt.Sprintf("%q has a backslash: write / between folders", specifier)
	default:
		return nil
	}
	return &refusedError{reason: reason}
}

// locate finds the file that a specifier names seen from a folder of a package.
func (r *resolver) locate(specifier, dir string, scope *packageJSON, as manner) (string, error) {
	switch {
	case specifier == "." || specifier == ".." || strings.HasPrefix(specifier, "./") || strings.HasPrefix(specifier, "../"):
		return r.relative(dir, specifier, as)
	case strings.HasPrefix(specifier, "#"):
		if scope == nil || scope.imports == nil {
			return "", fmt.Errorf("%q: no package.json of this file has \"imports\"", specifier)
		}
		return r.mapped(scope, scope.imports, specifier, as)
	case strings.HasPrefix(specifier, nodePrefix):
		return builtin(specifier)
	}
	name, sub, ok := splitPackage(specifier)
	if !ok {
		return "", fmt.Errorf("%q is not the name of a package", specifier)
	}
	if scope != nil && scope.exports != nil && scope.name == name {
		return r.mapped(scope, scope.exportMap(), sub, as)
	}
	for {
		if path.Base(dir) != "node_modules" {
			candidate := path.Join(dir, "node_modules", name)
			if kind, err := r.stat(candidate); err != nil {
				return "", err
			} else if kind == isFolder {
				return r.inPackage(candidate, sub, as)
			}
		}
		if dir == "." {
			break
		}
		dir = path.Dir(dir)
	}
	if _, is := Builtin(specifier); is {
		return builtin(specifier)
	}
	return "", fmt.Errorf("package %q is not in node_modules: npm install puts it there, and stile ext add fetches it by itself; a file beside this one is %q", name, "./"+specifier)
}

// relative finds a file by a path that is relative to dir.
func (r *resolver) relative(dir, specifier string, as manner) (string, error) {
	target := path.Join(dir, specifier)
	if target == ".." || strings.HasPrefix(target, "../") {
		return "", &refusedError{reason: fmt.Sprintf("%q leaves the source tree: only files in the entry's folder and below can be imported", specifier)}
	}
	if !fs.ValidPath(target) {
		return "", fmt.Errorf("%q is not a path", specifier)
	}
	if !strings.HasSuffix(specifier, "/") && path.Base(specifier) != "." && path.Base(specifier) != ".." {
		if found, err := r.file(target); found != "" || err != nil {
			return found, err
		}
	}
	if found, err := r.folder(target, manner{server: as.server}); found != "" || err != nil {
		return found, err
	}
	return "", fmt.Errorf("%q does not exist", specifier)
}

// inPackage finds a subpath ("." or "./x") of the package in dir.
func (r *resolver) inPackage(dir, sub string, as manner) (string, error) {
	p, err := r.packageAt(dir)
	if err != nil {
		return "", err
	}
	if p != nil && p.exports != nil {
		return r.mapped(p, p.exportMap(), sub, as)
	}
	var found string
	target := path.Join(dir, sub)
	if sub != "." && target != dir && !strings.HasPrefix(target, dir+"/") {
		return "", &refusedError{reason: fmt.Sprintf("%q leaves its package", path.Base(dir)+strings.TrimPrefix(sub, "."))}
	}
	if sub != "." {
		found, err = r.file(target)
	}
	if found == "" && err == nil {
		found, err = r.folder(target, as)
	}
	if found == "" && err == nil {
		err = fmt.Errorf("package %s has no file for %q", dir, sub)
	}
	return found, err
}

// file finds target itself, its TypeScript twin, or target with an extension. It returns "" if there is none.
func (r *resolver) file(target string) (string, error) {
	candidates := []string{target}
	ext := path.Ext(target)
	for _, twin := range twins[ext] {
		candidates = append(candidates, strings.TrimSuffix(target, ext)+twin)
	}
	for _, ext := range extensionsIn(target) {
		candidates = append(candidates, target+ext)
	}
	return r.first(candidates)
}

// folder finds the main file of a folder: the one its package.json names, or index. It returns "" if there is none.
func (r *resolver) folder(dir string, as manner) (string, error) {
	if kind, err := r.stat(dir); err != nil || kind != isFolder {
		return "", err
	}
	p, err := r.packageAt(dir)
	if err != nil {
		return "", err
	}
	for _, main := range p.mains(as) {
		target := path.Join(dir, main)
		if !fs.ValidPath(target) || target != dir && dir != "." && !strings.HasPrefix(target, dir+"/") {
			continue
		}
		if target != dir {
			if found, err := r.file(target); found != "" || err != nil {
				return found, err
			}
		}
		if found, err := r.index(target); found != "" || err != nil {
			return found, err
		}
	}
	return r.index(dir)
}

func (r *resolver) index(dir string) (string, error) {
	var candidates []string
	for _, ext := range extensionsIn(dir) {
		candidates = append(candidates, path.Join(dir, "index"+ext))
	}
	return r.first(candidates)
}

func extensionsIn(name string) []string {
	if npmspec.InPackage(name) {
		return packageExtensions
	}
	return extensions
}

func (r *resolver) first(candidates []string) (string, error) {
	for _, name := range candidates {
		if kind, err := r.stat(name); err != nil {
			return "", err
		} else if kind == isFile {
			return name, nil
		}
	}
	return "", nil
}

type fileKind int

const (
	isMissing fileKind = iota
	isFile
	isFolder
)

// stat says what a name is. It reports errors other than absence, such as a link that leads out of the tree.
func (r *resolver) stat(name string) (fileKind, error) {
	if hidden(name) {
		return isMissing, hiddenError(name)
	}
	info, err := fs.Stat(r.files, name)
	switch {
	case err == nil && info.IsDir():
		return isFolder, nil
	case err == nil && info.Mode().IsRegular():
		return isFile, nil
	case err == nil:
		return isMissing, &refusedError{reason: fmt.Sprintf("%q is neither a file nor a folder", name)}
	case missing(err):
		return isMissing, nil
	}
	if refused, ok := errors.AsType[*refusedError](err); ok {
		return isMissing, refused
	}
	return isMissing, &refusedError{reason: fmt.Sprintf("%q cannot be used: %v", name, reason(err))}
}

// missing reports whether an error means that there is no such file. A path through a file does not exist either.
func missing(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || strings.HasSuffix(err.Error(), "not a directory")
}

// hidden reports whether a path has a name that begins with a dot. Package managers use such names in node_modules.
func hidden(name string) bool {
	for part := range strings.SplitSeq(name, "/") {
		switch {
		case part == "node_modules":
			return false
		case part != "." && strings.HasPrefix(part, "."):
			return true
		}
	}
	return false
}

func hiddenError(name string) error {
	return &refusedError{fmt.Sprintf("%q is hidden: no file or folder whose name begins with a dot can be imported, nor a link to one", name), true}
}

// reason is an error without the operation and path that the caller's text already gives.
func reason(err error) error {
	if p, ok := errors.AsType[*fs.PathError](err); ok {
		return p.Err
	}
	return err
}

// scope returns the package that a folder belongs to. It is nil if there is none in the tree.
func (r *resolver) scope(dir string) (*packageJSON, error) {
	for {
		if path.Base(dir) == "node_modules" {
			return nil, nil
		}
		if p, err := r.packageAt(dir); p != nil || err != nil {
			return p, err
		}
		if dir == "." {
			return nil, nil
		}
		dir = path.Dir(dir)
	}
}

// packageAt reads the package.json of a folder. It returns nil if there is none.
func (r *resolver) packageAt(dir string) (*packageJSON, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if p, ok := r.packages[dir]; ok {
		return p, nil
	}
	name := path.Join(dir, "package.json")
	var p *packageJSON
	kind, err := r.stat(name)
	if refused, ok := errors.AsType[*refusedError](err); err != nil && (!ok || !refused.notInTree) {
		return nil, err
	}
	if kind == isFile {
		text, err := r.read(name, maxPackageJSON)
		if err != nil {
			return nil, err
		}
		if p, err = parsePackage(dir, text); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	r.packages[dir] = p
	return p, nil
}

// mapped finds a subpath in a package's exports, or a "#name" in its imports: PACKAGE_IMPORTS_EXPORTS_RESOLVE of node's
// documentation.
func (r *resolver) mapped(p *packageJSON, table object, key string, as manner) (string, error) {
	value, star, ok := lookup(table, key)
	if !ok {
		return "", fmt.Errorf("%s does not export %q", path.Join(p.dir, "package.json"), key)
	}
	conditions := as.conditions()
	internal := strings.HasPrefix(key, "#")
	c := chooser{conditions, star, internal, maxTargets}
	target, err := c.choose(value)
	if err != nil {
		return "", fmt.Errorf("%s: %q: %w", path.Join(p.dir, "package.json"), key, err)
	}
	switch {
	case target == "":
		return "", fmt.Errorf("%s exports %q, but not under the conditions %s", path.Join(p.dir, "package.json"), key, strings.Join(conditions, ", "))
	case strings.HasPrefix(target, "./"):
		found, err := r.file(path.Join(p.dir, target))
		if found == "" && err == nil {
			err = fmt.Errorf("%s: %q means %q, which does not exist", path.Join(p.dir, "package.json"), key, target)
		}
		return found, err
	}
	if err := refuse(target); err != nil {
		return "", err
	}
	return r.locate(target, p.dir, nil, as)
}

// conditions are those that hold in a package's exports. Which one counts is for the package to say: the first in its own order.
func (as manner) conditions() []string {
	conditions := []string{"import", "module", "workerd", "worker", "browser", "default"}
	if as.server {
		conditions = []string{"import", "module", "workerd", "worker", "node", "default"}
	}
	if as.require {
		conditions[0] = "require"
	}
	return conditions
}

// lookup finds the entry for key: the exact one, or else the most specific pattern, with the text for its *.
func lookup(table object, key string) (value any, star string, ok bool) {
	best := ""
	for _, m := range table {
		prefix, suffix, pattern := strings.Cut(m.key, "*")
		if m.key == key && !pattern {
			return m.value, "", true
		}
		if !pattern || len(key) < len(m.key) || !strings.HasPrefix(key, prefix) || !strings.HasSuffix(key, suffix) {
			continue
		}
		if n := strings.IndexByte(best, '*'); len(prefix) > n || len(prefix) == n && len(m.key) > len(best) {
			best, value, star, ok = m.key, m.value, key[len(prefix):len(key)-len(suffix)], true
		}
	}
	return value, star, ok
}

var (
	errTarget  = errors.New("the target is not a path in the package")
	errTargets = fmt.Errorf("%w, and no more than %d are looked at", errTarget, maxTargets)
)

// maxTargets is how many targets of one name are examined. Packages have a handful.
const maxTargets = 1000

// chooser has the inputs for choosing a target.
type chooser struct {
	conditions []string
	star       string // what the * of a pattern stands for
	internal   bool
	left       int // number of targets that may still be examined
}

// choose picks a target by conditions: PACKAGE_TARGET_RESOLVE of node's documentation. A target is a path in the package
// or, for internal names, another package; "" means that none applies.
func (c *chooser) choose(value any) (string, error) {
	if c.left--; c.left < 0 {
		return "", errTargets
	}
	switch v := value.(type) {
	case string:
		if len(v) > maxSpecifier || len(v)+strings.Count(v, "*")*len(c.star) > 2*maxSpecifier {
			return "", errTarget
		}
		target := strings.ReplaceAll(v, "*", c.star)
		if rest, ok := strings.CutPrefix(target, "./"); ok && fs.ValidPath(rest) && !npmspec.InPackage("/"+rest) {
			return target, nil
		}
		if c.internal && !strings.HasPrefix(target, "#") && !strings.HasPrefix(target, ".") {
			return target, nil
		}
		return "", errTarget
	case object:
		for _, m := range v {
			if slices.Contains(c.conditions, m.key) {
				if target, err := c.choose(m.value); target != "" || err != nil {
					return target, err
				}
			}
		}
		return "", nil
	case []any:
		var first error
		for _, element := range v {
			target, err := c.choose(element)
			if target != "" || errors.Is(err, errTargets) {
				return target, err
			}
			if first == nil {
				first = err
			}
		}
		return "", first
	case nil:
		return "", nil
	}
	return "", errTarget
}

// splitPackage divides "@scope/name/a/b" into "@scope/name" and "./a/b"; the subpath of a bare name is ".".
func splitPackage(specifier string) (name, sub string, ok bool) {
	parts := strings.SplitN(specifier, "/", 3)
	n := 1
	if strings.HasPrefix(specifier, "@") {
		n = 2
	}
	if len(parts) < n {
		return "", "", false
	}
	name = strings.Join(parts[:n], "/")
	if !fs.ValidPath(name) || strings.HasPrefix(name, ".") || strings.HasPrefix(name, "@/") || strings.ContainsAny(name, "%*") {
		return "", "", false
	}
	if rest := strings.TrimPrefix(specifier[len(name):], "/"); rest != "" {
		return name, "./" + rest, true
	}
	return name, ".", true
}

// packageJSON is the part of a package.json that matters for finding files. The zero values mean absent.
type packageJSON struct {
	dir     string
	name    string
	main    string
	module  string
	exports any
	imports object
	// browser holds replacements, for the package's own "./files" and for other packages; "" is an empty module.
	browser     map[string]string
	browserMain string
	forBrowsers map[string]bool // what replaces something
	// sideEffects match the files that must not be dropped. It is nil if no file may be dropped.
	sideEffects *fileGlobs
	// dependencies are the names of the packages that it depends on.
	dependencies map[string]bool
}

func parsePackage(dir string, text []byte) (*packageJSON, error) {
	value, err := parseOrdered(text)
	if err != nil {
		return nil, err
	}
	fields, ok := value.(object)
	if !ok {
		return nil, errors.New("it is not a JSON object")
	}
	p := &packageJSON{dir: dir, dependencies: make(map[string]bool)}
	for _, m := range fields {
		text, _ := m.value.(string)
		switch m.key {
		case "name":
			p.name = text
		case "main":
			p.main = text
		case "module":
			p.module = text
		case "exports":
			p.exports = m.value
		case "imports":
			p.imports, _ = m.value.(object)
		case "dependencies", "peerDependencies", "optionalDependencies":
			packages, _ := m.value.(object)
			for _, d := range packages {
				p.dependencies[d.key] = true
			}
		case "browser":
			p.browserMain = text
			replacements, _ := m.value.(object)
			p.browser, p.forBrowsers = make(map[string]string, len(replacements)), make(map[string]bool, len(replacements))
			for _, r := range replacements {
				if to, ok := r.value.(string); ok {
					p.browser[r.key], p.forBrowsers[path.Join(dir, to)] = to, true
				} else if r.value == false {
					p.browser[r.key] = ""
				}
			}
		case "sideEffects":
			if patterns, ok := m.value.([]any); ok || m.value == false {
				p.sideEffects = newFileGlobs(patterns)
			}
		}
	}
	return p, nil
}

// inModules reports whether this is a package in node_modules. The author's own package.json says nothing about files.
func (p *packageJSON) inModules() bool { return p != nil && npmspec.InPackage(p.dir) }

// mains lists the fields that name the main file, best first.
func (p *packageJSON) mains(as manner) []string {
	if p == nil {
		return nil
	}
	mains := []string{p.browserMain, p.module, p.main}
	if as.server {
		mains = mains[1:]
	}
	if as.require && p.main != "" {
		mains = append(mains[:len(mains)-2], p.main)
	}
	return slices.DeleteFunc(mains, func(s string) bool { return s == "" })
}

// exportMap returns exports with the main file written out: a target alone means {".": target}.
func (p *packageJSON) exportMap() object {
	if table, ok := p.exports.(object); ok && len(table) > 0 && strings.HasPrefix(table[0].key, ".") {
		return table
	}
	return object{{".", p.exports}}
}

func (p *packageJSON) pure(name string) bool {
	name = strings.TrimPrefix(name, p.dir+"/")
	return p.sideEffects != nil && !p.sideEffects.match(name)
}

const (
	maxGlobs = 1000
	maxGlob  = 256
	// maxGlobsBytes bounds the globs with wildcards of one package together, because matching a path takes up to its length times theirs.
	maxGlobsBytes = 1024
)

// fileGlobs match files of a package.
type fileGlobs struct {
	files map[string]bool // globs without wildcards
	globs []*regexp.Regexp
}

// newFileGlobs turns patterns of files into regular expressions, which take linear time. It returns nil for unusual patterns.
func newFileGlobs(patterns []any) *fileGlobs {
	if len(patterns) > maxGlobs {
		return nil
	}
	g, size := &fileGlobs{files: make(map[string]bool)}, 0
	for _, pattern := range patterns {
		s, ok := pattern.(string)
		if !ok || len(s) > maxGlob {
			return nil
		}
		s = strings.TrimPrefix(s, "./")
		if !strings.Contains(s, "/") {
			s = "**/" + s
		}
		if !strings.ContainsAny(s, "*?") {
			g.files[s] = true
			continue
		}
		if size += len(s); size > maxGlobsBytes {
			return nil
		}
		s = strings.NewReplacer(`\*\*/`, `(?:.*/)?`, `\*\*`, `.*`, `\*`, `[^/]*`, `\?`, `[^/]`).Replace(regexp.QuoteMeta(s))
		r, err := regexp.Compile("^" + s + "$")
		if err != nil {
			return nil
		}
		g.globs = append(g.globs, r)
	}
	return g
}

func (g *fileGlobs) match(name string) bool {
	return g.files[name] || slices.ContainsFunc(g.globs, func(r *regexp.Regexp) bool { return r.MatchString(name) })
}

// object is a JSON object whose members keep their order, on which the meaning of conditions depends.
type object []member

type member struct {
	key   string
	value any
}

const maxPackageDepth = 64

// parseOrdered reads one JSON value as string, bool, json.Number, nil, []any or object.
func parseOrdered(text []byte) (any, error) {
	d := json.NewDecoder(bytes.NewReader(bytes.TrimPrefix(text, []byte("\uFEFF"))))
	d.UseNumber()
	value, err := orderedValue(d, 0)
	if err != nil {
		return nil, fmt.Errorf("it is not JSON: %w", err)
	}
	if d.More() {
		return nil, errors.New("it is more than one JSON value")
	}
	return value, nil
}

func orderedValue(d *json.Decoder, depth int) (any, error) {
	if depth > maxPackageDepth {
		return nil, fmt.Errorf("it is nested deeper than %d", maxPackageDepth)
	}
	token, err := d.Token()
	if err != nil {
		return nil, err
	}
	switch token {
	case json.Delim('['):
		list := []any{}
		for d.More() {
			value, err := orderedValue(d, depth+1)
			if err != nil {
				return nil, err
			}
			list = append(list, value)
		}
		_, err = d.Token()
		return list, err
	case json.Delim('{'):
		members := object{}
		for d.More() {
			key, err := d.Token()
			if err != nil {
				return nil, err
			}
			name, ok := key.(string)
			if !ok {
				return nil, errors.New("a key is not a string")
			}
			value, err := orderedValue(d, depth+1)
			if err != nil {
				return nil, err
			}
			members = append(members, member{name, value})
		}
		_, err = d.Token()
		return members, err
	}
	return token, nil
}
