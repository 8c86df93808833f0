package ladder

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"testing/fstest"

	"github.com/stilehost/stile/host"
	"github.com/stilehost/stile/internal/sha256hex"
	"github.com/stilehost/stile/toolchain"
	"github.com/stilehost/stile/toolchain/npm"
)

// Packages resolves npm packages that code imports, and decides whether it may have them. It must be safe for concurrent use.
type Packages interface {
	// Resolve returns the packages, in the form of npm.Resolution, and a lock that names their versions and content. An error says what
	// is wrong with them, or who has to allow them.
	Resolve(ctx context.Context, imports []string) (packages fs.FS, lock []byte, err error)
}

// packagesFile is the module that imports what code imports.
const packagesFile = "packages.js"

// maxPackaged is how many evaluators with packages a kit keeps. Each takes some megabytes.
const maxPackaged = 8

// withPackages returns the evaluator for code that imports these modules. Packages are bundled and evaluated once for all code that imports
// the same ones: an evaluator comes from the kit, or else from the cache.
func (l *Ladder) withPackages(ctx context.Context, modules []string, env host.Env) (*toolchain.Evaluator, func(), error) {
	modules = slices.Sorted(slices.Values(modules))
	tree := fstest.MapFS{packagesFile: {Data: []byte(toolchain.PackagesModule(modules))}}
	found, err := npm.Imports(ctx, tree, packagesFile, l.kit.options.Bundler)
	if err != nil {
		return nil, nil, err
	}
	var packages fs.FS
	var lock []byte
	if names := found.Packages; len(names) > 0 {
		if l.options.Rung < NPM {
			return nil, nil, &RungError{"import of " + names[0], NPM, l.options.Rung}
		}
		if l.options.Packages == nil {
			return nil, nil, &PackagesError{names}
		}
		if packages, lock, err = l.options.Packages.Resolve(ctx, names); err != nil {
			return nil, nil, err
		}
	}
	bindings := interfaces(env)
	key := keyOf(bindings) + strings.Join(modules, "\n") + "\n" + sha256hex.Of(lock)
	return l.kit.packaged.get(key, func() (*toolchain.Evaluator, error) {
		t, err := l.kit.options.Toolchain(ctx)
		if err != nil {
			return nil, err
		}
		e, err := t.EvaluatorWith(ctx, bindings, toolchain.Source{FS: npm.Tree(tree, packages), Entry: packagesFile})
		if err == nil {
			l.kit.keep(ctx, e.Wasm())
		}
		return e, err
	})
}

// keyOf names a set of bindings.
func keyOf(bindings map[string]string) string {
	var key strings.Builder
	for _, name := range slices.Sorted(maps.Keys(bindings)) {
		key.WriteString(name + "=" + bindings[name] + "\n")
	}
	return key.String()
}

// packaged are the evaluators with packages that were used last.
type packaged struct {
	mu     chan struct{}  // has an element while somebody looks at the list or makes an evaluator
	recent []*packagedOne // the one used last is the last
}

type packagedOne struct {
	key       string
	evaluator *toolchain.Evaluator
	users     int
	dropped   bool
}

func newPackaged() *packaged { return &packaged{mu: make(chan struct{}, 1)} }

// get returns the evaluator of a key, and a function to call when it is no longer used.
func (p *packaged) get(key string, build func() (*toolchain.Evaluator, error)) (_ *toolchain.Evaluator, done func(), err error) {
	p.mu <- struct{}{}
	defer func() { <-p.mu }()
	i := slices.IndexFunc(p.recent, func(o *packagedOne) bool { return o.key == key })
	var one *packagedOne
	if i >= 0 {
		one = p.recent[i]
		p.recent = slices.Delete(p.recent, i, i+1)
	} else {
		e, err := build()
		if err != nil {
			return nil, nil, err
		}
		one = &packagedOne{key: key, evaluator: e}
	}
	p.recent = append(p.recent, one)
	for len(p.recent) > maxPackaged {
		old := p.recent[0]
		p.recent = p.recent[1:]
		if old.dropped = true; old.users == 0 {
			err = errors.Join(err, old.evaluator.Close())
		}
	}
	one.users++
	return one.evaluator, func() {
		p.mu <- struct{}{}
		defer func() { <-p.mu }()
		if one.users--; one.users == 0 && one.dropped {
			_ = one.evaluator.Close() // nobody calls it, so nothing is lost
		}
	}, err
}

// close frees all evaluators. Nobody uses one any more.
func (p *packaged) close() error {
	p.mu <- struct{}{}
	defer func() { <-p.mu }()
	var errs []error
	for _, o := range p.recent {
		errs = append(errs, o.evaluator.Close())
	}
	p.recent = nil
	return errors.Join(errs...)
}
