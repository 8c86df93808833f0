package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/stilehost/stile/extension"
	"github.com/stilehost/stile/host"
	"github.com/stilehost/stile/toolchain"
)

const (
	maxComponent = 64 << 20 // bytes of a component that is read
	maxMemory    = 64 << 20 // bytes of a call's memory, unless --limit asks for more
)

// settings are what the environment says. Nothing else reads it.
type settings struct {
	home   string // what is to be kept
	cache  string // what can be rebuilt
	engine string // a file with the JavaScript engine; empty when npm obtains it
}

// readSettings makes all paths absolute, so that they mean the same whatever folder is the current one later.
func readSettings() (settings, error) {
	home, err := folder("STILE_HOME", "XDG_DATA_HOME", ".local", "share")
	if err != nil {
		return settings{}, err
	}
	cache, err := folder("STILE_CACHE", "XDG_CACHE_HOME", ".cache")
	if err != nil {
		return settings{}, err
	}
	engine := os.Getenv("STILE_ENGINE")
	if engine != "" {
		if engine, err = filepath.Abs(engine); err != nil {
			return settings{}, fmt.Errorf("STILE_ENGINE: %w", err)
		}
	}
	return settings{home, cache, engine}, nil
}

// folder is the value of a variable, or else stile in an XDG base folder.
func folder(variable, base string, standard ...string) (string, error) {
	if dir := os.Getenv(variable); dir != "" {
		return filepath.Abs(dir)
	}
	// The XDG specification has relative paths ignored.
	if dir := os.Getenv(base); filepath.IsAbs(dir) {
		return filepath.Join(dir, "stile"), nil
	}
	user, err := os.UserHomeDir()
	if err != nil {
		return "", fmt.Errorf("find a folder: set %s: %w", variable, err)
	}
	return filepath.Join(slices.Concat([]string{user}, standard, []string{"stile"})...), nil
}

// session is an open host. The toolchain is made when something first needs it, since that may obtain the engine.
type session struct {
	settings
	host     *host.Host
	tools    *toolchain.Toolchain
	logger   *slog.Logger
	progress func(message string)
}

// sessionOptions are what commands ask of a host.
type sessionOptions struct {
	memory int64    // of one call, if more than the default
	wit    []string // an embedder's interfaces
}

func openSession(ctx context.Context, s *streams, o sessionOptions) (*session, error) {
	where, err := readSettings()
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(where.home, 0o700); err != nil {
		return nil, fmt.Errorf("make STILE_HOME: %w", err)
	}
	n := &session{
		settings: where, progress: func(string) {},
		logger: slog.New(slog.NewTextHandler(s.err, &slog.HandlerOptions{Level: slog.LevelWarn})),
	}
	if s.interactive() {
		n.progress = func(message string) { s.say("%s", message) }
	}
	n.host, err = host.New(ctx, host.Options{
		Instances: 80, WarmInstances: 1, // one call at a time, and the tools it may call
		MaxMemory: max(o.memory, maxMemory), MaxComponent: maxComponent,
		CacheDir: where.cache, KeyDir: where.home, WIT: o.wit, Logger: n.logger,
	})
	if err != nil {
		return nil, err
	}
	return n, nil
}

// Close frees what the session holds.
func (n *session) Close() error {
	var err error
	if n.tools != nil {
		err = n.tools.Close()
	}
	return errors.Join(err, n.host.Close())
}

func (n *session) toolchain(ctx context.Context) (*toolchain.Toolchain, error) {
	if n.tools == nil {
		t, err := toolchain.New(ctx, n.host, toolchain.Options{
			CacheDir: n.cache, KeyDir: n.home, Engine: n.engine, Progress: n.progress, Logger: n.logger,
		})
		if err != nil {
			return nil, err
		}
		n.tools = t
	}
	return n.tools, nil
}

// wants are the bindings that a component is built for, and interfaces beside theirs; none at all means those it uses.
type wants struct {
	bindings []extension.Binding
	imports  []string
}

// load loads a component, or builds one from source.
func (n *session) load(ctx context.Context, file string, w wants) (*host.Component, error) {
	if filepath.Ext(file) == ".wasm" {
		wasm, err := readFile(file, maxComponent)
		if err != nil {
			return nil, err
		}
		return n.loadComponent(ctx, file, wasm)
	}
	var c *host.Component
	err := n.withSource(ctx, file, w, func(t *toolchain.Toolchain, source toolchain.Source) (err error) {
		c, err = t.Build(ctx, source)
		return err
	})
	return c, err
}

// loadComponent loads what a file holds or was made of. Only a component that shares the engine with others needs the
// engine to be there.
func (n *session) loadComponent(ctx context.Context, file string, wasm []byte) (*host.Component, error) {
	c, err := n.host.Load(ctx, wasm)
	var refused *host.LoadError
	if errors.As(err, &refused) && strings.HasPrefix(refused.Name, "engine-x") {
		if _, err := n.toolchain(ctx); err != nil {
			return nil, err
		}
		c, err = n.host.Load(ctx, wasm)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return c, nil
}

// assemble builds a component from source.
func (n *session) assemble(ctx context.Context, file string, w wants, standalone bool) ([]byte, error) {
	var wasm []byte
	err := n.withSource(ctx, file, w, func(t *toolchain.Toolchain, source toolchain.Source) (err error) {
		wasm, err = t.Assemble(ctx, source, standalone)
		return err
	})
	return wasm, err
}

// withSource opens a source for as long as use takes.
func (n *session) withSource(ctx context.Context, file string, w wants, use func(*toolchain.Toolchain, toolchain.Source) error) (err error) {
	info, err := os.Stat(file)
	switch {
	case err != nil:
		return &usageError{err}
	case !info.Mode().IsRegular():
		return usagef("%s is not a file", file)
	}
	known := extension.Known(w.bindings)
	imports := slices.Concat(w.imports, slices.Sorted(maps.Values(known)))
	for _, name := range imports {
		if n.host.WIT().Interface(name) == nil {
			return usagef("there is no interface %s", name)
		}
	}
	source, tree, err := toolchain.Open(file, n.home, n.cache)
	if err != nil {
		return &usageError{err}
	}
	defer func() { err = errors.Join(err, tree.Close()) }()
	if w.bindings != nil {
		source.Bindings = known
	}
	if w.imports != nil {
		source.Imports = imports
	}
	t, err := n.toolchain(ctx)
	if err != nil {
		return err
	}
	return use(t, source)
}
