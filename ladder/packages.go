package ladder

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing/fstest"
	"unicode/utf8"

	"github.com/stilehost/stile/host"
	"github.com/stilehost/stile/internal/fair"
	"github.com/stilehost/stile/internal/printable"
	"github.com/stilehost/stile/internal/sha256hex"
	"github.com/stilehost/stile/toolchain"
	"github.com/stilehost/stile/toolchain/npm"
)

// Packages resolves npm packages that code imports, and decides whether it may have them. It must be safe for concurrent use.
type Packages interface {
	// Resolve returns the packages, in the form of npm.Resolution, and a lock that names their versions and content. An error says what
	// is wrong with them, or who has to allow them.
	Resolve(ctx context.Context, imports []string) (packages fs.FS, lock []byte, err error)
	// Count counts a build of packages for code, before it begins. An error refuses it.
	Count(ctx context.Context) error
}

// codeFile is the name of code without one.
const codeFile = "code.ts"

// packagesFile is the module that imports what code imports.
const packagesFile = "packages.js"

const (
	// maxPackaged is how many evaluators with packages a kit keeps that no call uses.
	maxPackaged = 8
	// maxPackagedBytes is how many bytes all of them may take, also those in use, and ownPackagedBytes those that the calls of one user
	// use at a time, if they use more than one.
	maxPackagedBytes = 128 << 20
	ownPackagedBytes = maxPackagedBytes / 4
	// packagedCopies is how often the bytes of a component are in memory: here, as it is compiled, and as the content of its memory.
	packagedCopies = 4
)

// withPackages returns the evaluator for code that imports these modules. Packages are bundled and evaluated once for all code that imports
// the same ones: an evaluator comes from the kit, or else from the cache.
func (l *Ladder) withPackages(ctx context.Context, text string, modules []string, env host.Env) (_ *toolchain.Evaluator, done func(), err error) {
	modules = slices.Sorted(slices.Values(modules))
	defer func() { blame(err, text, modules) }()
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
	parts := toolchain.PartsOf(text)
	key := keyOf(bindings) + fmt.Sprintln(parts) + strings.Join(modules, "\n") + "\n" + sha256hex.Of(lock)
	return l.kit.packaged.get(ctx, l.options.User, key, func() (*toolchain.Evaluator, error) {
		if p := l.options.Packages; p != nil {
			if err := p.Count(ctx); err != nil {
				return nil, err
			}
		}
		t, err := l.kit.options.Toolchain(ctx)
		if err != nil {
			return nil, err
		}
		e, err := t.EvaluatorWith(ctx, bindings, toolchain.Source{FS: npm.Tree(tree, packages), Entry: packagesFile}, parts)
		if err == nil {
			l.kit.keep(ctx, e.Wasm())
		}
		return e, err
	})
}

// blame moves problems of the module that imports the packages, one in each line, to the code that imports them.
func blame(err error, text string, modules []string) {
	built, ok := errors.AsType[*toolchain.BuildError](err)
	if !ok {
		return
	}
	for i, p := range built.Problems {
		if p.File != packagesFile || p.Line < 1 || p.Line > len(modules) {
			continue
		}
		moved := toolchain.Problem{File: codeFile, Text: p.Text, Fix: p.Fix}
		for _, quote := range []string{`"`, `'`} {
			if before, _, found := strings.Cut(text, quote+modules[p.Line-1]+quote); found {
				line := before[strings.LastIndexByte(before, '\n')+1:]
				moved.Line, moved.Column = strings.Count(before, "\n")+1, utf8.RuneCountInString(line)+1
				break
			}
		}
		built.Problems[i] = moved
	}
}

// keyOf names a set of bindings.
func keyOf(bindings map[string]string) string {
	var key strings.Builder
	for _, name := range slices.Sorted(maps.Keys(bindings)) {
		key.WriteString(name + "=" + bindings[name] + "\n")
	}
	return key.String()
}

// packaged are the evaluators with packages that were used last, and those in use.
type packaged struct {
	mu     sync.Mutex
	closed bool
	recent []*packagedOne // the one used last is the last
	bytes  int64          // of all, also of dropped ones in use
	uses   fair.Uses[*packagedOne]
}

type packagedOne struct {
	key     string
	users   int // calls, and who builds it
	dropped bool
	built   chan struct{} // closed when the fields below are set

	evaluator *toolchain.Evaluator
	err       error
	bytes     int64
}

// get returns the evaluator of a key, and a function to call when it is no longer used. Callers who want the same one build it once, and
// those who want others wait for nothing here. The error is a *[host.LimitError] if calls use too much, those of user or all.
func (p *packaged) get(ctx context.Context, user, key string, build func() (*toolchain.Evaluator, error)) (_ *toolchain.Evaluator, done func(), err error) {
	for {
		one, mine, err := p.take(key)
		if err != nil {
			return nil, nil, err
		}
		if mine {
			p.made(one, build)
		}
		select {
		case <-one.built:
		case <-ctx.Done():
			p.give(one)
			return nil, nil, context.Cause(ctx)
		}
		if one.err == nil {
			evaluator, err := p.use(one, user)
			if err != nil {
				p.give(one)
				return nil, nil, err
			}
			return evaluator, func() {
				p.unuse(one, user)
				p.give(one)
			}, nil
		}
		p.give(one)
		if mine {
			return nil, nil, one.err
		}
		// It may be another call that ended.
	}
}

// take counts a user of an entry. mine says that the caller has to build it.
func (p *packaged) take(key string) (one *packagedOne, mine bool, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, false, ErrClosed
	}
	i := slices.IndexFunc(p.recent, func(o *packagedOne) bool { return o.key == key })
	if mine = i < 0; mine {
		one = &packagedOne{key: key, built: make(chan struct{})}
	} else {
		one = p.recent[i]
		p.recent = slices.Delete(p.recent, i, i+1)
	}
	one.users++
	p.recent = append(p.recent, one)
	p.trim()
	return one, mine, nil
}

// made builds an entry, and frees it again if all that are in use leave no room for it.
func (p *packaged) made(one *packagedOne, build func() (*toolchain.Evaluator, error)) {
	one.evaluator, one.err = build()
	p.mu.Lock()
	defer p.mu.Unlock()
	if one.evaluator != nil {
		one.bytes = packagedCopies * int64(len(one.evaluator.Wasm()))
		p.bytes += one.bytes
		if p.trim(); p.bytes > maxPackagedBytes && p.bytes > one.bytes {
			one.err = packagedFull("calls")
			p.free(one)
		}
	}
	close(one.built)
}

func packagedFull(whose string) error {
	return &host.LimitError{Limit: "engine", Value: printable.Size(maxPackagedBytes), Detail: "of packages for code that other " + whose + " import; try again when they have ended"}
}

// use counts an entry for a user.
func (p *packaged) use(one *packagedOne, user string) (*toolchain.Evaluator, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, ErrClosed
	}
	if !p.uses.Begin(user, one, one.bytes, ownPackagedBytes) {
		return nil, packagedFull("calls of " + user)
	}
	return one.evaluator, nil
}

func (p *packaged) unuse(one *packagedOne, user string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.uses.End(user, one, one.bytes)
}

// give takes back what take counted. What could not be built is forgotten.
func (p *packaged) give(one *packagedOne) {
	p.mu.Lock()
	defer p.mu.Unlock()
	one.users--
	select {
	case <-one.built:
		if one.err != nil && !one.dropped {
			p.drop(one)
			return
		}
	default:
	}
	if one.dropped && one.users == 0 {
		p.free(one)
	}
	p.trim()
}

// trim drops those used longest ago: above their number all, as they are freed with their last call, and above their bytes those that
// nobody uses. It is called with mu held.
func (p *packaged) trim() {
	for len(p.recent) > maxPackaged {
		p.drop(p.recent[0])
	}
	for _, o := range slices.Clone(p.recent) {
		if p.bytes > maxPackagedBytes && o.users == 0 {
			p.drop(o)
		}
	}
}

// drop forgets an entry. It is called with mu held.
func (p *packaged) drop(one *packagedOne) {
	one.dropped = true
	p.recent = slices.DeleteFunc(p.recent, func(o *packagedOne) bool { return o == one })
	if one.users == 0 {
		p.free(one)
	}
}

// free closes the evaluator of an entry that nobody uses. It is called with mu held.
func (p *packaged) free(one *packagedOne) {
	if one.evaluator != nil {
		p.bytes -= one.bytes
		_ = one.evaluator.Close() // nobody calls it, so nothing is lost
		one.evaluator = nil
	}
}

// close waits for calls and frees all evaluators.
func (p *packaged) close() error {
	p.mu.Lock()
	all := p.recent
	p.closed, p.recent = true, nil
	for _, o := range all {
		o.dropped = true
	}
	p.mu.Unlock()
	var errs []error
	for _, o := range all {
		<-o.built
		p.mu.Lock()
		e := o.evaluator
		if o.evaluator = nil; e != nil {
			p.bytes -= o.bytes
		}
		p.mu.Unlock()
		if e != nil {
			errs = append(errs, e.Close())
		}
	}
	return errors.Join(errs...)
}
