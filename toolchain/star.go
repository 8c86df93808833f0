package toolchain

import (
	"errors"
	"strings"
	"sync"

	"github.com/stilehost/stile/internal/lazyregexp"
)

// What esbuild may do to find what modules export: it follows export * from each module on all ways, and keeps each name for each.
const (
	maxStarVisits = 20_000
	maxStarNames  = 2_000_000
	maxStars      = 5_000
)

var errStars = errors.New("has export * of too many modules that also have export *; name the exports instead")

// star matches an export of everything from another module, and captures the module's name.
var star = lazyregexp.New(`\bexport` + between + `*\*` + between + `*from` + between + `*["']([^"']*)`)

// stars bounds the cost of modules that re-export all of others.
type stars struct {
	mu    sync.Mutex
	said  map[string]map[string]int // by file: the modules that it exports completely, as written, and how often
	found map[string][]string       // by file: the files that these are
	names map[string]int            // by file: how many names it exports at most
	count int
}

// load reads a file before its imports are resolved.
func (s *stars) load(name, code string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.names[name] = strings.Count(code, ",") + strings.Count(code, "export")
	exports := search{code: code, expression: star}
	for range maxStars + 1 {
		found, err := exports.next()
		if err != nil {
			return err
		}
		if found == nil {
			break
		}
		module := code[found[2]:found[3]]
		if s.said[name] == nil {
			s.said[name] = map[string]int{}
		}
		if s.said[name][module]++; strings.Contains(module, `\`) {
			return errStars
		}
		s.count++
	}
	return s.admit()
}

// resolve notes the file that an import leads to.
func (s *stars) resolve(importer, specifier, found string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := s.said[importer][specifier]
	if n == 0 {
		return nil
	}
	s.said[importer][specifier] = 0
	for range n {
		s.found[importer] = append(s.found[importer], found)
	}
	return s.admit()
}

// admit follows the paths that esbuild will follow.
func (s *stars) admit() error {
	visits, names := 0, 0
	within := map[string]bool{}
	var visit func(file string)
	visit = func(file string) {
		if within[file] {
			return
		}
		within[file] = true
		defer delete(within, file)
		for _, next := range s.found[file] {
			if visits++; visits > maxStarVisits || names > maxStarNames {
				return
			}
			names += s.names[next]
			visit(next)
		}
	}
	for file := range s.found {
		visit(file)
	}
	if s.count > maxStars || visits > maxStarVisits || names > maxStarNames {
		return errStars
	}
	return nil
}
