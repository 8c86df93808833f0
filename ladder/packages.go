package ladder

import (
	"context"
	"errors"
	"io/fs"
	"slices"
	"testing/fstest"

	"github.com/stilehost/stile/host"
	"github.com/stilehost/stile/toolchain"
	"github.com/stilehost/stile/toolchain/npm"
)

// Packages resolves npm packages that code imports, and decides whether it may have them. It must be safe for concurrent use.
type Packages interface {
	// Resolve returns the packages, in the form of npm.Resolution. An error says what is wrong with them, or who has to allow them.
	Resolve(ctx context.Context, imports []string) (fs.FS, error)
}

// codeFile is the name of code that is built.
const codeFile = "code.ts"

// runBuilt runs code that imports packages. It is built like an extension, so the packages are bundled, their top level runs without any
// capability, and a second run of the same code comes from the cache.
func (l *Ladder) runBuilt(ctx context.Context, c Code, module string, env host.Env) (_ host.Result, err error) {
	tree := fstest.MapFS{codeFile: {Data: []byte(module)}}
	found, err := npm.Imports(ctx, tree, codeFile, l.kit.options.Bundler)
	if err != nil {
		return host.Result{}, err
	}
	names := slices.DeleteFunc(slices.Clone(found.Packages), func(name string) bool { return name == "stile" })
	if len(names) > 0 {
		if l.options.Rung < NPM {
			return host.Result{}, &RungError{"import of " + names[0], NPM, l.options.Rung}
		}
		if l.options.Packages == nil {
			return host.Result{}, &PackagesError{names}
		}
	}
	var packages fs.FS
	if len(names) > 0 {
		if packages, err = l.options.Packages.Resolve(ctx, names); err != nil {
			return host.Result{}, err
		}
	}
	t, err := l.kit.options.Toolchain(ctx)
	if err != nil {
		return host.Result{}, err
	}
	wasm, err := t.Assemble(ctx, toolchain.Source{FS: npm.Tree(tree, packages), Entry: codeFile, Bindings: interfaces(env)}, false)
	if err != nil {
		return host.Result{}, err
	}
	component, err := l.kit.options.Host.Load(ctx, wasm)
	if err != nil {
		return host.Result{}, err
	}
	defer func() { err = errors.Join(err, component.Close()) }()
	l.kit.keep(ctx, wasm)
	return component.Do(ctx, host.Request{
		Tool: toolchain.BodyTool, User: l.options.User, Input: slices.Concat([]byte(`{"input":`), c.Input, []byte("}")), Env: env,
		Limits: l.options.Limits, Recorder: l.kit.recorder(), Begin: c.Begin,
	})
}
