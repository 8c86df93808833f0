package typecheck

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/stilehost/stile/internal/bounded"
	"github.com/stilehost/stile/internal/jslex"
	"github.com/stilehost/stile/internal/lazyregexp"
	"github.com/stilehost/stile/internal/npmspec"
	"github.com/stilehost/stile/toolchain"
)

// What declarations of packages a check reads. A package beyond it has the type any.
const (
	maxTypeFiles = 1_000
	maxTypeBytes = 4 << 20  // without comments
	maxTypeRead  = 16 << 20 // with them, of each import
	maxLinks     = 50_000   // imports within declarations
	maxResolving = 64 << 20 // bytes of package.json that are read again and again for them
)

// declared are the declarations that a check reads of packages.
type declared struct {
	// Files are texts by path, such as node_modules/zod/index.d.ts.
	Files map[string]string `json:"files"`
	// Links say which file a specifier in a file leads to. The extension's own files are all "". What is not there has the type any.
	Links map[string]map[string]string `json:"links"`

	left []string // imports of the source whose packages were left out, because they are too large
}

// key identifies declarations together with the compiler that reads them, and with the time that it has.
func (c *Checker) key(d declared) string {
	hash := sha256.New()
	for _, part := range [][]byte{[]byte(recipe), checkSource, lock} {
		hash.Write(fmt.Appendf(nil, "%d ", len(part)))
		hash.Write(part)
	}
	_ = json.NewEncoder(hash).Encode([]any{d, c.o.CPU}) // maps of texts, and a hash takes all
	return hex.EncodeToString(hash.Sum(nil))
}

// imported finds the declarations of packages that files import. dependencies are those that the manifest names.
func imported(packages fs.FS, dependencies map[string]string, files map[string]string) declared {
	all := declared{Files: map[string]string{}, Links: map[string]map[string]string{}}
	if packages == nil {
		return all
	}
	specifiers := map[string]bool{}
	for name, text := range files {
		if jslex.IsCode(name) {
			for _, s := range specifiersIn(text) {
				if _, builtin := toolchain.Builtin(s); !builtin && !strings.HasPrefix(s, ".") && s != "stile" {
					specifiers[s] = true
				}
			}
		}
	}
	r := &typesResolver{files: packages, dependencies: dependencies, manifests: map[string]*typesManifest{}}
	for _, s := range slices.Sorted(maps.Keys(specifiers)) {
		file, ok := r.pkg(s, "")
		if !ok {
			continue
		}
		more, err := r.closure(file, all)
		if errors.Is(err, errTooMuch) {
			all.left = append(all.left, s)
		}
		if err != nil {
			continue
		}
		maps.Copy(all.Files, more.Files)
		maps.Copy(all.Links, more.Links)
		if all.Links[""] == nil {
			all.Links[""] = map[string]string{}
		}
		all.Links[""][s] = file
	}
	return all
}

var (
	specifier = lazyregexp.New(`\b(?:from|import|require)\s*\(?\s*["']([^"'\n]{1,300})["']`)
	pathTo    = lazyregexp.New(`(?m)^\s*///\s*<reference\s+path\s*=\s*["']([^"'\n]{1,300})["']`)
	// otherTypes are references that lead to libraries, which the check has already, and to types of environments, which it has not.
	otherTypes = lazyregexp.New(`(?m)^(\s*///)(\s*<reference\s+(?:lib|types|no-default-lib)\b)`)
	allOf      = lazyregexp.New(`\bexport\s*\*\s*from\s*["']([^"'\n]{1,300})["']`)
)

func specifiersIn(text string) (all []string) {
	for _, m := range specifier.FindAllStringSubmatch(text, maxLinks) {
		all = append(all, m[1])
	}
	return all
}

var (
	errTooMuch = errors.New("too many declarations")
	errOpen    = errors.New("not all declarations are there")
)

// closure reads a file of declarations and all that it leads to, except what is there already. The error is errTooMuch, or errOpen if a file
// exports all of a module that is not there: nobody knows then what else it has.
func (r *typesResolver) closure(file string, there declared) (declared, error) {
	more := declared{Files: map[string]string{}, Links: map[string]map[string]string{}}
	size, read, links := 0, 0, 0
	for _, text := range there.Files {
		size += len(text)
	}
	for _, l := range there.Links {
		links += len(l)
	}
	for queue := []string{file}; len(queue) > 0; queue = queue[1:] {
		name := queue[0]
		if _, known := more.Files[name]; known || there.Files[name] != "" {
			continue
		}
		data, err := bounded.ReadFile(r.files, name, maxTypeRead)
		if errors.Is(err, bounded.ErrTooLarge) {
			return more, errTooMuch
		} else if err != nil {
			return more, err
		}
		if read += len(data); read > maxTypeRead {
			return more, errTooMuch
		}
		text := withoutComments(otherTypes.ReplaceAllString(string(data), "$1 -$2"))
		if size += len(text); size > maxTypeBytes || len(more.Files)+len(there.Files) == maxTypeFiles {
			return more, errTooMuch
		}
		more.Files[name] = text
		found := map[string]string{}
		for _, s := range specifiersIn(text) {
			if to, ok := r.resolve(s, name); ok {
				found[s] = to
				queue = append(queue, to)
			}
		}
		for _, m := range allOf.FindAllStringSubmatch(text, -1) {
			if _, there := found[m[1]]; !there {
				return more, errOpen
			}
		}
		for _, m := range pathTo.FindAllStringSubmatch(text, -1) {
			if to := path.Join(path.Dir(name), m[1]); r.within(name, to) && r.isFile(to) {
				queue = append(queue, to)
			}
		}
		if links += len(found); links > maxLinks {
			return more, errTooMuch
		}
		more.Links[name] = found
	}
	return more, nil
}

// withoutComments returns declarations without comments, which are half of the text of most packages, except references to other files. Where the
// tokens are unclear, it leaves the rest as it is.
func withoutComments(text string) string {
	var b strings.Builder
	end := 0
	for l := jslex.New(text, false); ; {
		t, more := l.Next()
		if !more || l.Doubt != "" {
			break
		}
		if t.Kind != jslex.Comment || strings.HasPrefix(text[t.Start:t.End], "///") {
			continue
		}
		b.WriteString(text[end:t.Start])
		b.WriteByte(" \n"[min(1, strings.Count(text[t.Start:t.End], "\n"))])
		end = int(t.End)
	}
	return b.String() + text[end:]
}

// typesResolver finds declarations as TypeScript does with the module resolution of bundlers.
type typesResolver struct {
	files        fs.FS
	dependencies map[string]string
	manifests    map[string]*typesManifest // by folder
	work         int                       // bytes of those that were read again
}

// typesManifest is what a package.json says about types.
type typesManifest struct {
	Types         any
	Typings       any
	Main          any
	Exports       json.RawMessage
	TypesVersions json.RawMessage
}

func (m *typesManifest) UnmarshalJSON(text []byte) error {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(text, &fields); err != nil {
		return err
	}
	for name, to := range map[string]*any{"types": &m.Types, "typings": &m.Typings, "main": &m.Main} {
		_ = json.Unmarshal(fields[name], to) // what is no JSON is no text
	}
	m.Exports, m.TypesVersions = fields["exports"], fields["typesVersions"]
	return nil
}

func (r *typesResolver) manifest(folder string) *typesManifest {
	if m, ok := r.manifests[folder]; ok {
		return m
	}
	var m *typesManifest
	if data, err := bounded.ReadFile(r.files, folder+"/package.json", 1<<20); err == nil {
		read := &typesManifest{}
		if json.Unmarshal(data, read) == nil {
			m = read
		}
	}
	r.manifests[folder] = m
	return m
}

func (r *typesResolver) isFile(name string) bool {
	if !fs.ValidPath(name) {
		return false
	}
	info, err := fs.Stat(r.files, name)
	return err == nil && info.Mode().IsRegular()
}

// within reports whether a file belongs to the same package as another.
func (r *typesResolver) within(name, other string) bool {
	folder := packageOf(name)
	return strings.HasPrefix(other, folder+"/") && !strings.Contains(strings.TrimPrefix(other, folder), "/node_modules/")
}

// packageOf is the folder of the package of a file.
func packageOf(name string) string {
	at := strings.LastIndex("/"+name, "/node_modules/") + len("/node_modules/") - 1
	parts := strings.SplitN(name[at:], "/", 3)
	if strings.HasPrefix(parts[0], "@") && len(parts) > 1 {
		return name[:at] + parts[0] + "/" + parts[1]
	}
	return name[:at] + parts[0]
}

// resolve finds what a specifier in a file of declarations leads to.
func (r *typesResolver) resolve(specifier, from string) (string, bool) {
	if specifier == "." || specifier == ".." || strings.HasPrefix(specifier, "./") || strings.HasPrefix(specifier, "../") {
		file, ok := r.file(path.Join(path.Dir(from), specifier))
		return file, ok && r.within(from, file)
	}
	if strings.HasPrefix(specifier, "#") {
		return "", false
	}
	if _, builtin := toolchain.Builtin(specifier); builtin {
		return "", false
	}
	return r.pkg(specifier, from)
}

var declarationOf = [][2]string{{".mjs", ".d.mts"}, {".cjs", ".d.cts"}, {".js", ".d.ts"}, {".jsx", ".d.ts"}}

func isDeclaration(name string) bool {
	return strings.HasSuffix(name, ".d.ts") || strings.HasSuffix(name, ".d.mts") || strings.HasSuffix(name, ".d.cts")
}

// file finds the declarations of a path: its own, those of a module of JavaScript, or those of a folder.
func (r *typesResolver) file(name string) (string, bool) {
	try := []string{}
	if isDeclaration(name) {
		try = append(try, name)
	}
	for _, e := range declarationOf {
		if stem, ok := strings.CutSuffix(name, e[0]); ok {
			try = append(try, stem+e[1])
		}
	}
	for _, e := range []string{".ts", ".mts", ".cts"} { // a declaration may name the sources
		if stem, ok := strings.CutSuffix(name, e); ok && !isDeclaration(name) {
			try = append(try, stem+".d"+e)
		}
	}
	try = append(try, name+".d.ts", name+".d.mts", name+".d.cts")
	for _, one := range try {
		if r.isFile(one) {
			return one, true
		}
	}
	if m := r.manifest(name); m != nil && name != packageOf(name) {
		if file, ok := r.entry(name, m); ok {
			return file, true
		}
	}
	for _, e := range []string{".d.ts", ".d.mts", ".d.cts"} {
		if r.isFile(name + "/index" + e) {
			return name + "/index" + e, true
		}
	}
	return "", false
}

// entry finds the declarations of a folder by the fields of its package.json.
func (r *typesResolver) entry(folder string, m *typesManifest) (string, bool) {
	for _, field := range []any{m.Types, m.Typings, m.Main} {
		if to, ok := field.(string); ok && to != "" {
			name := path.Join(folder, to)
			if !strings.HasPrefix(name, folder+"/") {
				continue
			}
			if file, ok := r.file(name); ok {
				return file, true
			}
		}
	}
	return "", false
}

// pkg finds the declarations of a package, or those that the package @types/NAME has of it.
func (r *typesResolver) pkg(specifier, from string) (string, bool) {
	name, sub, _ := strings.Cut(specifier, "/")
	if strings.HasPrefix(specifier, "@") {
		scoped, rest, _ := strings.Cut(sub, "/")
		name, sub = name+"/"+scoped, rest
	}
	if npmspec.NameProblem(name) != "" {
		return "", false
	}
	typed := "@types/" + strings.Replace(strings.TrimPrefix(name, "@"), "/", "__", 1)
	for _, name := range []string{name, typed} {
		if _, named := r.dependencies[name]; name == typed && from == "" && !named {
			continue
		}
		for dir := path.Dir(from); ; dir = path.Dir(dir) {
			folder := path.Join(dir, "node_modules", name)
			if path.Base(dir) != "node_modules" {
				if m := r.manifest(folder); m != nil {
					if file, ok := r.of(folder, m, sub); ok && strings.HasPrefix(file, folder+"/") {
						return file, true
					}
					break
				}
			}
			if dir == "." {
				break
			}
		}
	}
	return "", false
}

// of finds the declarations of a path in a package.
func (r *typesResolver) of(folder string, m *typesManifest, sub string) (string, bool) {
	if r.work += len(m.Exports) + len(m.TypesVersions); r.work > maxResolving {
		return "", false
	}
	if len(m.Exports) > 0 && string(m.Exports) != "null" {
		key := "."
		if sub != "" {
			key = "./" + sub
		}
		for _, conditions := range [][]string{{"types", "import", "default"}, {"types", "import", "node", "require", "default"}} {
			for _, to := range targets(m.Exports, key, conditions) {
				if file, ok := r.file(path.Join(folder, to)); ok {
					return file, true
				}
			}
		}
		return "", false
	}
	if to, ok := versioned(m.TypesVersions, sub); ok {
		if file, ok := r.file(path.Join(folder, to)); ok {
			return file, true
		}
	}
	if sub != "" {
		return r.file(path.Join(folder, sub))
	}
	if file, ok := r.entry(folder, m); ok {
		return file, true
	}
	return r.file(path.Join(folder, "index"))
}

// pair is a member of a JSON object whose members keep their order.
type pair struct {
	key   string
	value json.RawMessage
}

var errNoObject = errors.New("it is no object")

// members reads an object in order.
func members(text json.RawMessage) (all []pair, err error) {
	d := json.NewDecoder(strings.NewReader(string(text)))
	if first, err := d.Token(); err != nil || first != json.Delim('{') {
		return nil, errNoObject
	}
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return nil, err
		}
		name, ok := key.(string)
		if !ok {
			return nil, fmt.Errorf("%v is no key", key)
		}
		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			return nil, err
		}
		all = append(all, pair{name, value})
	}
	return all, nil
}

// targets are the paths to which exports lead for a key, the first that holds first.
func targets(exports json.RawMessage, key string, conditions []string) []string {
	all, err := members(exports)
	paths := err == nil && len(all) > 0 && strings.HasPrefix(all[0].key, ".")
	if !paths {
		if key != "." {
			return nil
		}
		return target(exports, "", conditions, 0)
	}
	best, star := -1, ""
	for i, p := range all {
		if p.key == key {
			return target(p.value, "", conditions, 0)
		}
		if before, after, ok := strings.Cut(p.key, "*"); ok && len(key) >= len(before)+len(after) && strings.HasPrefix(key, before) && strings.HasSuffix(key, after) &&
			(best < 0 || len(p.key) > len(all[best].key)) {
			best, star = i, key[len(before):len(key)-len(after)]
		}
	}
	if best < 0 {
		return nil
	}
	return target(all[best].value, star, conditions, 0)
}

func target(value json.RawMessage, star string, conditions []string, depth int) (found []string) {
	if depth > 16 {
		return nil
	}
	var text string
	if json.Unmarshal(value, &text) == nil && text != "" {
		return []string{strings.ReplaceAll(text, "*", star)}
	}
	var list []json.RawMessage
	if json.Unmarshal(value, &list) == nil {
		for _, one := range list[:min(len(list), 16)] {
			found = append(found, target(one, star, conditions, depth+1)...)
		}
		return found
	}
	all, err := members(value)
	if err != nil {
		return nil
	}
	for _, p := range all {
		if slices.Contains(conditions, p.key) {
			found = append(found, target(p.value, star, conditions, depth+1)...)
		}
	}
	return found
}

// versioned is where typesVersions send a path, for a current compiler.
func versioned(text json.RawMessage, sub string) (string, bool) {
	versions, err := members(text)
	if err != nil {
		return "", false
	}
	for _, v := range versions {
		if v.key != "*" && !strings.HasPrefix(v.key, ">") {
			continue
		}
		paths, err := members(v.value)
		if err != nil {
			return "", false
		}
		want := sub
		if sub == "" {
			want = "index"
		}
		for _, p := range paths {
			before, after, star := strings.Cut(p.key, "*")
			matched := p.key == want
			middle := ""
			if star && len(want) >= len(before)+len(after) && strings.HasPrefix(want, before) && strings.HasSuffix(want, after) {
				matched, middle = true, want[len(before):len(want)-len(after)]
			}
			var to []string
			if matched && sub != "" && json.Unmarshal(p.value, &to) == nil && len(to) > 0 {
				return strings.ReplaceAll(to[0], "*", middle), true
			}
		}
		return "", false
	}
	return "", false
}
