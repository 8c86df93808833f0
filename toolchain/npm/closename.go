package npm

import (
	_ "embed"
	"strings"
	"sync"
)

// popularNames are the most downloaded packages, one a line. Attackers imitate these names.
//
//go:embed popular.txt
var popularNames string

// popular finds popular names by the name and by its skeleton.
var popular = sync.OnceValue(func() (p struct {
	names     map[string]bool
	skeletons map[string]string
	scopes    map[string]bool // each has one owner, so nobody else can imitate names in it
},
) {
	p.names, p.skeletons, p.scopes = make(map[string]bool), make(map[string]string), map[string]bool{typesScope: true}
	for name := range strings.FieldsSeq(popularNames) {
		p.names[name] = true
		p.skeletons[skeleton(name)] = name
		if scope, _, ok := strings.Cut(name, "/"); ok {
			p.scopes[scope] = true
		}
	}
	return p
})

// typesScope is the scope of the declarations that TypeScript's own publisher makes of other packages. They have no code.
const typesScope = "@types"

// closeName returns a popular name that looks like this one, or nothing.
func closeName(name string) string {
	const short = 3 // shorter names are close to each other by chance
	p := popular()
	if scope, _, scoped := strings.Cut(name, "/"); p.names[name] || scoped && p.scopes[scope] {
		return ""
	}
	if other, ok := p.skeletons[skeleton(name)]; ok && len(name) >= short {
		return other
	}
	closest := ""
	for other := range p.names {
		if len(other) >= short && oneEdit(name, other) && (closest == "" || other < closest) {
			closest = other
		}
	}
	if scope, bare, ok := strings.Cut(name, "/"); ok && closest == "" && len(bare) >= short && p.names[bare] && !p.names[scope] {
		return bare
	}
	return closest
}

// skeleton returns a name without parts that are often added to make a similar one: separators, a scope's signs, "js" and "node".
func skeleton(name string) string {
	s := strings.NewReplacer("@", "", "/", "", "-", "", "_", "", ".", "").Replace(name)
	for _, end := range []string{"js", "node"} {
		s = strings.TrimSuffix(strings.TrimPrefix(s, end), end)
	}
	if s == "" {
		return name
	}
	return s
}

// oneEdit reports whether adding, removing or changing one letter, or swapping two neighbours, turns a into b: a Damerau-Levenshtein
// distance of 1.
func oneEdit(a, b string) bool {
	for a != "" && b != "" && a[0] == b[0] {
		a, b = a[1:], b[1:]
	}
	for a != "" && b != "" && a[len(a)-1] == b[len(b)-1] {
		a, b = a[:len(a)-1], b[:len(b)-1]
	}
	return len(a)+len(b) == 1 || len(a) == 1 && len(b) == 1 || len(a) == 2 && len(b) == 2 && a[0] == b[1] && a[1] == b[0]
}
