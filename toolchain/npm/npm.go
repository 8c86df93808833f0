// Package npm resolves an extension's npm packages with the machine's npm client, and trusts nothing that comes back. It
// accepts only packages of the registry, by name and semver range, that match their digests and are old enough, and runs
// none of their code. The same lockfile gives the same files, without the network if they were fetched before.
package npm

import (
	"archive/zip"
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/stilehost/stile/internal/cache"
	"github.com/stilehost/stile/internal/jsonform"
	"github.com/stilehost/stile/internal/npmspec"
	"github.com/stilehost/stile/internal/turns"
)

// Options say how to resolve packages. The zero value works.
type Options struct {
	// CacheDir keeps packages and the facts about them. KeyDir holds the key that authenticates them. Both may be those of a
	// toolchain. Default: nothing is kept, and each Resolve asks the registry.
	CacheDir, KeyDir string
	// NPM is the npm client, of npm 10 or newer. Default: the one on PATH.
	NPM string
	// MinAge is how long a version must have been published before it is used. Default: 72 hours.
	MinAge time.Duration
	// Now is the clock. Default: time.Now.
	Now func() time.Time
	// Timeout is how long one Resolve may take, whatever the registry does, and its turn to run npm included. Default: 5 minutes.
	Timeout time.Duration
	// MaxPackages limits the packages of one extension. Default: 300.
	MaxPackages int
	// MaxFiles and MaxBytes limit the files of all its packages. Default: 20,000 and 64 MiB.
	MaxFiles int
	MaxBytes int64
	// Bundler is that of toolchain.Options: a separate process finds the imports of large packages. Default: in this process.
	Bundler []string
	// Progress is called with a few words before npm runs. Default: it is not called.
	Progress func(message string)
	// Logger receives events that no caller sees. Default: nothing is logged.
	Logger *slog.Logger
}

// Client resolves packages. It runs npm as often at once as there are places for builds, and users of [turns.For] take turns. It is safe for concurrent use. Its creator closes it.
type Client struct {
	o     Options
	cache *cache.Cache // nil if nothing is kept
	keys  map[string]registryKey

	running *turns.Places // for runs of npm: at most half of the processors, as for builds

	patience  time.Duration // for a first answer of a registry, where npm's own cache may have one
	longest   time.Duration // for one where it has none
	maxCache  int64         // bytes in npm's own cache
	maxMemory int64         // bytes that one run of npm may allocate

	asking chan struct{} // has room for one who reads or sets user
	user   *userSettings // nil until npm has reported them
}

// New makes a client, and removes what clients of killed processes left in the temporary folder. It looks for npm on first use.
func New(o Options) (*Client, error) {
	o.NPM = cmp.Or(o.NPM, "npm")
	o.MinAge = cmp.Or(o.MinAge, 72*time.Hour)
	o.Timeout = cmp.Or(o.Timeout, 5*time.Minute)
	o.MaxPackages = cmp.Or(o.MaxPackages, 300)
	o.MaxFiles = cmp.Or(o.MaxFiles, 20_000)
	o.MaxBytes = cmp.Or(o.MaxBytes, 64<<20)
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Progress == nil {
		o.Progress = func(string) {}
	}
	keys, err := parseKeys(registryKeys)
	if err != nil {
		return nil, fmt.Errorf("registry keys: %w", err)
	}
	c := &Client{o: o, keys: keys, running: turns.NewNamed("npm", max(1, runtime.GOMAXPROCS(0)/2)), patience: 15 * time.Second, longest: time.Minute, maxCache: maxNPMCache, maxMemory: maxMemory, asking: make(chan struct{}, 1)}
	if err := sweepFolders(); err != nil && o.Logger != nil {
		o.Logger.Warn("folders of processes that were killed were not removed", "error", err)
	}
	if o.CacheDir != "" && o.KeyDir != "" {
		if c.cache, err = cache.Open(o.CacheDir, o.KeyDir, o.Logger); err != nil {
			return nil, fmt.Errorf("open cache: %w", err)
		}
	}
	return c, nil
}

// Close releases the cache. Resolutions stay valid.
func (c *Client) Close() error {
	if c.cache == nil {
		return nil
	}
	return c.cache.Close()
}

// Request is what an extension needs.
type Request struct {
	// Dependencies are semver ranges by the names of packages, from the manifest.
	Dependencies map[string]string
	// Imports are what the code imports, as [Imports] returns it. Packages that Dependencies does not name are taken at their newest
	// version that is old enough. Shims are added for the node modules that have one. The build reports other node modules, because
	// it knows the line.
	Imports []string
	// Lock is the lockfile of the previous version. Its packages stay as they are if they still satisfy the request. It may be nil.
	Lock []byte
	// AllowFresh is a person's permission to use versions younger than MinAge.
	AllowFresh bool
	// Recall takes the versions that an equal request without a lock chose on the same day (UTC), also in another process. It spares code
	// that is built for one call the second that npm takes.
	Recall bool
	// Types keeps the type declarations of packages in FS, up to 64 MiB and 20,000 files. Code does not need them, and they count towards no limit.
	Types bool
	// Offline asks no registry: versions are chosen among what registries said before, and packages come from the cache. Without it, that
	// happens if the registry cannot be reached.
	Offline bool
	// Progress is called while npm works, at most ten times a second, from another goroutine, and not after Resolve has returned. It must not
	// wait. It may be nil.
	Progress func(Progress)

	reports *sparse
}

// Resolution is the packages of an extension, checked. Without any, FS is empty and Lock is nil. Optional dependencies of
// packages are left out: most are native code.
type Resolution struct {
	// FS holds the folder node_modules, for [Tree]. It is a file of the cache, or in memory if nothing is kept. It is safe for concurrent use.
	FS fs.FS
	// Lock is a package-lock.json that names no registry.
	Lock []byte
	// Unasked says why the registry was not asked for versions, which were chosen among what it said before. It is empty if it was asked, or if
	// the lock had them.
	Unasked string
	// Packages are in byte order of name and version.
	Packages []Package
}

// Package is one package of an extension. Texts that others wrote are printable.
type Package struct {
	Name    string `json:"name"`
	Version string `json:"version"`
	// Integrity is the SHA-512 of the package's archive, "sha512-<base64>".
	Integrity string `json:"integrity"`
	// License is what its package.json says, usually an SPDX expression. It is empty if that says nothing.
	License string `json:"license,omitempty"`
	// Size is the bytes of its files in FS.
	Size int64 `json:"size"`
	// Published is the zero time if the registry does not say.
	Published time.Time `json:"published,omitzero"`
	// Signature is one of the constants of this package.
	Signature string `json:"signature"`
	// Direct is set if the extension itself asks for it.
	Direct bool `json:"direct,omitempty"`
	// Undeclared is set if the code imports it and Dependencies of the request does not name it.
	Undeclared bool `json:"undeclared,omitempty"`
	// Warnings are for the person who approves, in whole sentences.
	Warnings []string `json:"warnings,omitempty"`
}

// LicenseText returns License, or words that say that there is none.
func (p Package) LicenseText() string { return npmspec.LicenseText(p.License) }

// What is known about the registry's signature of a package's name, version and integrity. A package with a wrong signature is
// refused.
const (
	SignatureVerified   = "verified"
	SignatureNotOffered = "not offered" // by this registry
	SignatureUnknownKey = "unknown key" // none of those that this version of Stile knows
)

// Resolve finds the packages of an extension. Errors that its author can correct are a *toolchain.BuildError; others are a
// *toolchain.SetupError or a *LockError, or the end of ctx.
func (c *Client) Resolve(ctx context.Context, r Request) (*Resolution, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, c.o.Timeout, errTimeout)
	defer cancel()
	if r.Progress != nil {
		r.reports = &sparse{to: r.Progress}
		defer r.reports.end()
	}
	return c.resolve(ctx, r)
}

// errTimeout is the cause that ends a resolution which takes too long.
var errTimeout = errors.New("resolving npm packages takes too long")

// ended says why npm was stopped during a step.
func (c *Client) ended(ctx context.Context, step string) error {
	err := context.Cause(ctx)
	if errors.Is(err, errTimeout) {
		return clientError(fmt.Sprintf("npm was still %s after %s, which is the limit", step, c.o.Timeout), "Check that the registry in npm's settings answers, and so does the proxy, or try again.", nil)
	}
	return fmt.Errorf("resolve npm packages: %w", err)
}

func (c *Client) resolve(ctx context.Context, r Request) (*Resolution, error) {
	wanted, err := wantedPackages(r)
	if err != nil {
		return nil, err
	}
	if len(wanted) == 0 {
		return &Resolution{FS: &zip.Reader{}}, nil
	}
	if len(wanted) > c.o.MaxPackages { // npm would ask the registry for each
		return nil, tooLarge(fmt.Sprintf("%d packages are asked for", len(wanted)), fmt.Sprint(c.o.MaxPackages))
	}
	lock, err := parseLock(r.Lock, c.o.MaxPackages)
	if err != nil {
		return nil, err
	}
	holder, err := c.holder(ctx)
	if err != nil {
		return nil, err
	}
	res, err := c.resolveFor(ctx, holder, wanted, lock, r)
	if errors.Is(err, errHolder) {
		if holder, err = c.holder(ctx); err == nil {
			res, err = c.resolveFor(ctx, holder, wanted, lock, r)
		}
	}
	return res, err
}

// resolveFor is resolve for a holder of settings.
func (c *Client) resolveFor(ctx context.Context, holder string, wanted map[string]string, lock *lockfile, r Request) (*Resolution, error) {
	asked := maps.Clone(wanted)
	unasked := ""
	for name, spec := range formerShims {
		if _, ok := wanted[name]; !ok && lock.wanted()[name] == spec {
			wanted[name] = spec
		}
	}
	if !maps.Equal(wanted, lock.wanted()) {
		var err error
		if lock, unasked, err = c.choose(ctx, holder, wanted, lock, r); err != nil {
			return nil, err
		}
	}
	res, err := c.restore(ctx, holder, lock, r)
	if err != nil {
		return nil, err
	}
	res.Unasked = unasked
	for i := range res.Packages {
		p := &res.Packages[i]
		_, byItself := asked[p.Name]
		p.Direct = p.Direct && byItself
		if p.Undeclared = p.Direct && r.undeclared(p.Name); p.Undeclared {
			p.Warnings = append(p.Warnings, "The code imports it, and the manifest's dependencies do not name it.")
		}
		if p.Direct && unasked != "" {
			p.Warnings = append(p.Warnings, "Its version was chosen among those that the registry named before, because "+unasked+".")
		}
	}
	return res, nil
}

// formerShims are packages that locks have which were made while packages stood in for modules of node. Such a lock stays as it is.
var formerShims = map[string]string{
	"assert": "^2.1.0", "buffer": "^6.0.3", "events": "^3.3.0", "path-browserify": "^1.0.1", "querystring-es3": "^0.2.1", "string_decoder": "^1.3.0", "url": "^0.11.4", "util": "^0.12.5",
}

// restore returns the packages of a lock, from the cache or through npm.
func (c *Client) restore(ctx context.Context, holder string, lock *lockfile, r Request) (*Resolution, error) {
	text := lock.encode()
	tree, err := c.archive(ctx, holder, lock, text, r)
	if err != nil {
		return nil, err
	}
	list, err := tree.list()
	if err != nil {
		return nil, fmt.Errorf("open npm packages: %w", err)
	}
	res := &Resolution{FS: tree, Lock: text}
	if err := json.Unmarshal(list, &res.Packages); err != nil {
		return nil, fmt.Errorf("open npm packages: %w", err)
	}
	if r.AllowFresh {
		return res, nil
	}
	return res, c.tooFresh(res.Packages)
}

// archive returns the archive of a lock's packages: a file of the cache, if there is one.
func (c *Client) archive(ctx context.Context, holder string, lock *lockfile, text []byte, r Request) (*archive, error) {
	build := func() ([]byte, error) { return c.install(ctx, holder, lock, r) }
	if c.cache == nil {
		data, err := build()
		return newArchive(bytes.NewReader(data), int64(len(data))), err
	}
	const kind = "npm-packages"
	key := fmt.Sprintf("%s, %d files, %d bytes, sha256 %x, %s", packing, c.o.MaxFiles, c.o.MaxBytes, sha256.Sum256(text), holder)
	if r.Types {
		key += ", types"
	}
	cached := func() (*archive, bool) {
		file, ok, err := c.cache.File(kind, key)
		if err != nil || !ok {
			return nil, false
		}
		info, err := file.Stat()
		if err != nil {
			_ = file.Close() // it was only read
			return nil, false
		}
		return newArchive(file, info.Size()), true // the file is closed once nobody can use it any more
	}
	if a, ok := cached(); ok {
		return a, nil
	}
	data, err := c.cache.Do(ctx, kind, key, build)
	switch {
	case errors.Is(err, errTimeout):
		return nil, c.ended(ctx, "fetching the same packages for another build")
	case err != nil:
		return nil, err
	}
	if a, ok := cached(); ok {
		return a, nil
	}
	return newArchive(bytes.NewReader(data), int64(len(data))), nil // the cache has no room
}

// choose has npm choose versions, or recalls what it chose. unasked is as in [Resolution].
func (c *Client) choose(ctx context.Context, holder string, wanted map[string]string, before *lockfile, r Request) (chosen *lockfile, unasked string, err error) {
	if !r.Recall || r.Lock != nil || c.cache == nil {
		return c.lock(ctx, holder, wanted, before, r)
	}
	key := fmt.Sprintf("%s, fresh %t, %s, %s", c.o.Now().UTC().Format(time.DateOnly), r.AllowFresh, encode(wanted), holder)
	text, err := c.cache.Do(ctx, "npm-choices", key, func() (text []byte, err error) {
		if chosen, unasked, err = c.lock(ctx, holder, wanted, before, r); err != nil {
			return nil, err
		}
		if unasked != "" {
			return nil, errUnasked // the registry is asked again the next time
		}
		return chosen.encode(), nil
	})
	if chosen != nil && (err == nil || errors.Is(err, errUnasked)) || err != nil {
		if errors.Is(err, errUnasked) {
			err = nil
		}
		return chosen, unasked, err
	}
	chosen, err = parseLock(text, c.o.MaxPackages)
	return chosen, "", err
}

var errUnasked = errors.New("the registry was not asked")

// lock has npm choose versions. If the registry cannot be reached, npm chooses among what it said before.
func (c *Client) lock(ctx context.Context, holder string, wanted map[string]string, before *lockfile, r Request) (_ *lockfile, unasked string, err error) {
	c.o.Progress("choosing versions of npm packages: " + strings.Join(sortedKeys(wanted), ", "))
	w, err := c.workplace(ctx, holder)
	if err != nil {
		return nil, "", err
	}
	defer func() { err = errors.Join(err, w.remove()) }()
	w.reports = r.reports
	// npm looks into archives that claim to contain others. With "always", it asks the registry for these, on whatever host that names.
	args := []string{"install", "--package-lock-only", "--loglevel=http", "--replace-registry-host=always"}
	if !r.AllowFresh {
		args = append(args, "--before="+c.o.Now().Add(-c.o.MinAge).UTC().Format(time.RFC3339))
	}
	prepare := func() error {
		if err := w.write("package.json", packageJSON(wanted)); err != nil {
			return err
		}
		if len(before.Packages) > 0 {
			return w.write(LockFile, before.encode())
		}
		return nil
	}
	if err = prepare(); err != nil {
		return nil, "", err
	}
	unasked = "that was asked for"
	if !r.Offline {
		if w.patience = c.patience; c.cache == nil {
			w.patience = c.longest
		}
		err, unasked = w.run(ctx, nil, args...), ""
	}
	away, unreached := errors.AsType[*unreachedError](err)
	if r.Offline || unreached && c.cache != nil {
		if unreached {
			unasked = "the registry was not reached (" + away.code + ")"
			c.o.Progress(unasked + "; choosing versions among those that it named before")
		}
		online := err
		if err = prepare(); err != nil {
			return nil, "", err
		}
		if err = w.run(ctx, nil, append(args, "--offline")...); err != nil && unreached && errors.As(err, new(*unreachedError)) {
			if err = online; errors.Is(err, errSilent) {
				c.o.Progress("the cache lacks what is needed; waiting for the registry")
				w.patience = c.longest
				if err = prepare(); err == nil {
					err, unasked = w.run(ctx, nil, args...), ""
				}
			}
		}
	}
	if err != nil {
		if bad, ok := errors.AsType[*archiveError](err); ok {
			err = bad.explain(nil)
		}
		return nil, "", err
	}
	if w.stale && unasked == "" {
		unasked = "the registry was not reached"
	}
	text, err := w.read(LockFile, maxLock)
	if err != nil {
		return nil, "", err
	}
	lock, err := parseLock(text, c.o.MaxPackages)
	if err == nil && !maps.Equal(lock.wanted(), wanted) {
		err = &LockError{"npm wrote one for other packages"}
	}
	return lock, unasked, err
}

// install makes npm fetch the locked packages, and packs the needed files with the list of packages.
func (c *Client) install(ctx context.Context, holder string, lock *lockfile, r Request) (_ []byte, err error) {
	c.o.Progress(fmt.Sprintf("fetching %d npm packages", len(lock.installed())))
	w, err := c.workplace(ctx, holder)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, w.remove()) }()
	w.reports = r.reports
	packages, recalled, err := c.describe(ctx, w, lock, r.Offline, false)
	if err != nil {
		return nil, err
	}
	err = c.fetch(ctx, w, lock, packages, r.Offline)
	if err != nil && recalled && !r.Offline && ctx.Err() == nil && !errors.As(err, new(*unreachedError)) { // archives may have moved since
		if packages, _, err = c.describe(ctx, w, lock, false, true); err == nil {
			err = c.fetch(ctx, w, lock, packages, false)
		}
	}
	if err != nil {
		return nil, err
	}
	return c.pack(w, packages, r.Types)
}

// fetch makes npm fetch and unpack packages.
func (c *Client) fetch(ctx context.Context, w *workplace, lock *lockfile, packages []located, offline bool) error {
	if err := w.write("package.json", packageJSON(lock.wanted())); err != nil {
		return err
	}
	if err := w.write(LockFile, lock.located(packages).encode()); err != nil {
		return err
	}
	w.arrive = arriving(packages)
	// The archives are those of the URLs that were checked. Some versions of npm take these for no packages of the registry.
	args := []string{"ci", "--prefer-offline", "--loglevel=http", "--replace-registry-host=never", "--allow-remote=all"}
	if offline {
		args[1] = "--offline"
	}
	err := w.run(ctx, nil, args...)
	if bad, ok := errors.AsType[*corruptError](err); ok {
		err = bad.explain(packages)
	}
	if bad, ok := errors.AsType[*archiveError](err); ok {
		err = bad.explain(packages)
	}
	return err
}

func packageJSON(wanted map[string]string) []byte {
	return encode(map[string]any{"name": projectName, "private": true, "dependencies": wanted})
}

func encode(v any) []byte {
	text, _ := jsonform.Encode(v, "  ") // nothing here can be refused
	return append(text, '\n')
}

// npmCacheName is the name of npm's own cache among ours. No kind of entry of ours has such a name.
const npmCacheName = "npm_cache"

// npmCache is the folder of npm's own cache for a holder of settings. npm would serve what a login got to anybody.
func (c *Client) npmCache(w *workplace) string {
	if c.cache == nil {
		return w.path("cache")
	}
	return filepath.Join(c.o.CacheDir, npmCacheName, w.holder[:16])
}
