package typecheck

import (
	"bytes"
	"context"
	"crypto/sha256"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"sync"
	"testing/fstest"
	"time"

	"github.com/evanw/esbuild/pkg/api"

	sdk "github.com/stilehost/stile/guest-sdk/typescript"
	"github.com/stilehost/stile/host"
	"github.com/stilehost/stile/internal/lazyregexp"
	"github.com/stilehost/stile/toolchain"
	"github.com/stilehost/stile/toolchain/npm"
)

//go:embed check.ts
var checkSource []byte

// lock pins the compiler: the last version in JavaScript. It reports the same problems as later versions, which are native code.
//
//go:embed package-lock.json
var lock []byte

const (
	compilerVersion = "6.0.3"
	compilerFolder  = "node_modules/typescript/lib/"
)

// ready returns the component, and loads it first if necessary.
func (c *Checker) ready(ctx context.Context) (*host.Component, error) {
	select {
	case c.making <- struct{}{}:
		defer func() { <-c.making }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if c.component == nil && !time.Now().Before(c.again) {
		if c.component, c.missing = c.load(ctx); c.missing != nil && ctx.Err() == nil {
			c.again = time.Now().Add(retryAfter)
		}
	}
	return c.component, c.missing
}

// readyWith is ready with a message each second that it takes.
func (c *Checker) readyWith(ctx context.Context, progress func(string)) (*host.Component, error) {
	if progress == nil {
		return c.ready(ctx)
	}
	done, began := make(chan struct{}), time.Now()
	var told sync.WaitGroup
	told.Go(func() {
		each := time.NewTicker(time.Second)
		defer each.Stop()
		for {
			select {
			case <-each.C:
				progress(fmt.Sprintf("making the TypeScript compiler ready, once on this machine (%d s)", int(time.Since(began).Seconds())))
			case <-done:
				return
			}
		}
	})
	defer told.Wait()
	defer close(done)
	return c.ready(ctx)
}

// load makes the component.
func (c *Checker) load(ctx context.Context) (*host.Component, error) {
	tools, err := c.o.Toolchain(ctx)
	if err != nil {
		return nil, err
	}
	wasm, err := c.obtain(ctx, tools)
	if err != nil {
		return nil, err
	}
	if c.host == nil {
		c.host, err = host.New(ctx, host.Options{
			// Checks wait for their turn, which is not the source's fault. So only processor time bounds them.
			Limits:    host.Limits{Memory: memory, CPU: c.o.CPU, Wall: time.Hour, Input: 32 * maxSource, Output: maxOutput},
			Instances: maxChecks, Running: maxChecks, MaxMemory: memory, CacheDir: c.o.CacheDir, KeyDir: c.o.KeyDir, Logger: c.o.Logger,
		})
		if err != nil {
			return nil, err
		}
	}
	name, engine := tools.Engine()
	if err := c.host.AddModuleNamed(ctx, name, engine); err != nil {
		return nil, fmt.Errorf("offer engine: %w", err)
	}
	return c.host.Load(ctx, wasm)
}

// obtain returns the component, from the cache or built.
func (c *Checker) obtain(ctx context.Context, tools *toolchain.Toolchain) ([]byte, error) {
	build := func() ([]byte, error) { return c.build(ctx, tools) }
	if c.cache == nil {
		return build()
	}
	// A component without the compiler is quick to build, and differs whenever the toolchain would build the compiler differently.
	empty, err := c.assemble(ctx, tools, nil, nil)
	if err != nil {
		return nil, err
	}
	key := sha256.Sum256(slices.Concat(empty, lock, []byte(sdk.Index()), []byte(sdk.Capabilities()), []byte(sdk.Globals())))
	return c.cache.Do(ctx, "typecheck", fmt.Sprintf("%s %x", recipe, key), build)
}

// recipe changes when build treats its input differently.
const recipe = "3"

func (c *Checker) build(ctx context.Context, tools *toolchain.Toolchain) ([]byte, error) {
	c.o.Progress("making the TypeScript compiler ready, once")
	// Pinned packages need no minimum age.
	packages, err := c.o.Packages.Resolve(ctx, npm.Request{Dependencies: map[string]string{"typescript": compilerVersion}, Lock: lock, AllowFresh: true, Types: true})
	if err != nil {
		return nil, err
	}
	compiler, err := compilerModule(packages.FS)
	if err != nil {
		return nil, err
	}
	declared, err := declarations(packages.FS)
	if err != nil {
		return nil, err
	}
	return c.assemble(ctx, tools, compiler, declared)
}

func (c *Checker) assemble(ctx context.Context, tools *toolchain.Toolchain, compiler []byte, declared map[string]string) ([]byte, error) {
	text, err := json.Marshal(declared)
	if err != nil {
		return nil, err
	}
	if declared == nil {
		text = []byte("{}")
	}
	return tools.Assemble(ctx, toolchain.Source{
		FS:    fstest.MapFS{"check.ts": {Data: checkSource}, "compiler.js": {Data: compiler}, "declarations.json": {Data: text}},
		Entry: "check.ts", Imports: []string{}, Large: true, // not those that the code of the compiler seems to use
	}, false)
}

// compilerModule makes a module from the compiler, without its command line and other unused parts.
func compilerModule(packages fs.FS) ([]byte, error) {
	text, err := fs.ReadFile(packages, compilerFolder+"_tsc.js")
	if err != nil {
		return nil, fmt.Errorf("read the compiler: %w", err)
	}
	text, _, ok := bytes.Cut(text, []byte("\n// src/tsc/tsc.ts\n"))
	if !ok {
		return nil, errors.New("read the compiler: it has no command line to be left out")
	}
	text = append(text, "\nexport { bindSourceFile, createProgram, createSourceFile, Diagnostics, flattenDiagnosticMessageText, forEachChild, getLineAndCharacterOfPosition, getPositionOfLineAndCharacter, getSourceFileOfNode, isInterfaceDeclaration };\n"...)
	result := api.Transform(string(text), api.TransformOptions{
		Loader: api.LoaderJS, Format: api.FormatESModule, Target: api.ESNext, TreeShaking: api.TreeShakingTrue, MinifyWhitespace: true, MinifySyntax: true,
		MinifyIdentifiers: true, LegalComments: api.LegalCommentsNone, LogLevel: api.LogLevelSilent,
		Define: map[string]string{"process": "undefined", "require": "undefined"},
	})
	if len(result.Errors) > 0 {
		return nil, fmt.Errorf("read the compiler: %s", result.Errors[0].Text)
	}
	return result.Code, nil
}

var (
	reference = lazyregexp.New(`(?m)^/// <reference .*$`)
	libraries = lazyregexp.New(`(?m)^/// <reference lib="([^"]+)"`)
	isModule  = lazyregexp.New(`(?m)^export \{`)
	// notThere are the libraries of features that the engine lacks.
	notThere = lazyregexp.New(`\.intl$|^esnext\.(temporal|date)$`)
	// values are the values declared by libraries that also declare types. The engine has neither of the two.
	values = lazyregexp.New(`(?m)^(    var (Collator|NumberFormat|DateTimeFormat)|declare var Atomics): .*$`)
)

// declarations returns everything that the compiler knows about, by file name: the language as the engine supports it, the web APIs
// and the module "stile". It joins libraries, which saves a tenth of every check.
func declarations(packages fs.FS) (map[string]string, error) {
	declared := map[string]string{
		"/stile/index.d.ts": sdk.Index(), "/stile/capabilities.d.ts": sdk.Capabilities(), "/stile/globals.d.ts": sdk.Globals(),
	}
	seen := map[string]bool{}
	var joined strings.Builder
	// add adds a library after those that it refers to, in the compiler's own order.
	var add func(name string) error
	add = func(name string) error {
		if seen[name] || notThere.MatchString(name) {
			return nil
		}
		seen[name] = true
		data, err := fs.ReadFile(packages, compilerFolder+"lib."+name+".d.ts")
		if err != nil {
			return fmt.Errorf("read the compiler's libraries: %w", err)
		}
		for _, found := range libraries.FindAllSubmatch(data, -1) {
			if err := add(string(found[1])); err != nil {
				return err
			}
		}
		text := values.ReplaceAllString(reference.ReplaceAllString(string(data), ""), "")
		if isModule.MatchString(text) {
			declared["/lib/"+name+".d.ts"] = text
		} else {
			joined.WriteString(text + "\n")
		}
		return nil
	}
	err := add("esnext")
	declared["/lib/lib.d.ts"] = joined.String()
	return declared, err
}
