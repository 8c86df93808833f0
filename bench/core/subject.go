package main

import (
	"bytes"
	"context"
	"embed"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"testing/fstest"

	"github.com/stilehost/stile/capabilities/clock"
	"github.com/stilehost/stile/capabilities/kv"
	"github.com/stilehost/stile/host"
	"github.com/stilehost/stile/toolchain"
)

//go:embed bodies.ts cold.ts tools.ts saved.ts waiting.ts
var sources embed.FS

// subject is Stile as it is measured: a host, with the default options unless a measurement says otherwise, and a toolchain.
type subject struct {
	host  *host.Host
	tools *toolchain.Toolchain
	store *kv.Store
	env   host.Env // clock and store
}

// caches are the folders that all hosts and toolchains of the run share.
func (b *bench) caches() (cache, key string) {
	return filepath.Join(b.dir, "cache"), filepath.Join(b.dir, "key")
}

func (b *bench) newSubject(ctx context.Context, o host.Options) (_ *subject, err error) {
	s := &subject{}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.close())
		}
	}()
	o.CacheDir, o.KeyDir = b.caches()
	if s.host, err = host.New(ctx, o); err != nil {
		return nil, err
	}
	if s.tools, err = toolchain.New(ctx, s.host, toolchain.Options{CacheDir: o.CacheDir, KeyDir: o.KeyDir, Engine: b.packages}); err != nil {
		return nil, err
	}
	if s.store, err = kv.Open(ctx, filepath.Join(b.dir, "store.sqlite"), kv.Options{}); err != nil {
		return nil, err
	}
	bucket := s.store.Bucket("bench")
	s.env = host.Env{"clock": clock.System(), "store": bucket}
	return s, bucket.Set(ctx, "present", "a value of ordinary length, as programs keep them")
}

func (s *subject) close() error {
	var errs []error
	if s.store != nil {
		errs = append(errs, s.store.Close())
	}
	if s.tools != nil {
		errs = append(errs, s.tools.Close())
	}
	if s.host != nil {
		errs = append(errs, s.host.Close())
	}
	return errors.Join(errs...)
}

// source returns one of the embedded files with id in its placeholder.
func source(name, id string) (toolchain.Source, error) {
	text, err := sources.ReadFile(name)
	if err != nil {
		return toolchain.Source{}, err
	}
	text = bytes.ReplaceAll(text, []byte("@id@"), []byte(id))
	return toolchain.Source{FS: fstest.MapFS{name: {Data: text}}, Entry: name, Bindings: map[string]string{"store": kv.Interface, "clock": clock.Interface}}, nil
}

func (s *subject) build(ctx context.Context, name string) (*host.Component, error) {
	src, err := source(name, "")
	if err != nil {
		return nil, err
	}
	return s.tools.Build(ctx, src)
}

// obtainEngine makes npm put the packages of a lockfile into dir, unless they are there, and returns the engine as published.
func obtainEngine(ctx context.Context, packages fs.FS, dir string) (quickjs []byte, err error) {
	lock := filepath.Join(dir, "package-lock.json")
	want, err := fs.ReadFile(packages, "package-lock.json")
	if err != nil {
		return nil, err
	}
	file := filepath.Join(dir, "node_modules", "quickjs-wasi", "quickjs.wasm")
	if quickjs, err = os.ReadFile(file); err == nil {
		if is, err := os.ReadFile(lock); err == nil && bytes.Equal(is, want) {
			return quickjs, nil
		}
	}
	manifest, err := fs.ReadFile(packages, "package.json")
	if err != nil {
		return nil, err
	}
	if err := errors.Join(os.MkdirAll(dir, 0o755), os.RemoveAll(filepath.Join(dir, "node_modules")),
		os.WriteFile(filepath.Join(dir, "package.json"), manifest, 0o600), os.WriteFile(lock, want, 0o600)); err != nil {
		return nil, err
	}
	npm := exec.CommandContext(ctx, "npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--no-bin-links", "--prefix", dir)
	if out, err := npm.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("npm ci: %w\n%s", err, out)
	}
	return os.ReadFile(file)
}

// sharedEngine extracts the engine that components share from a standalone component, where it is the first core module. It returns
// the name under which the others import it.
func sharedEngine(standalone []byte) (name string, module []byte, err error) {
	const header, coreModule = 8, 1
	for rest := standalone[min(header, len(standalone)):]; len(rest) > 0; {
		size, n := binary.Uvarint(rest[1:])
		if n <= 0 || uint64(len(rest)-1-n) < size {
			return "", nil, errors.New("read the component's sections: it ends early")
		}
		id, body := rest[0], rest[1+n:][:size]
		rest = rest[1+n:][size:]
		if id == coreModule && module == nil {
			module = body
		}
	}
	if module == nil {
		return "", nil, errors.New("the standalone component holds no engine")
	}
	return host.ModuleName(module), module, nil
}
