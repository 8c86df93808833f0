package toolchain

import (
	"archive/zip"
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/stilehost/stile/internal/bounded"
	"github.com/stilehost/stile/internal/child"
	"github.com/stilehost/stile/internal/lazyregexp"
	"github.com/stilehost/stile/internal/printable"
	"github.com/stilehost/stile/internal/sha256hex"
)

// engineFiles are what npm delivers: the JavaScript engine, and the packages that its web APIs are bundled from.
type engineFiles struct {
	wasm []byte
	// modules holds the folder node_modules.
	modules fs.FS
}

// engineOptions say how the engine is obtained. The zero value works.
type engineOptions struct {
	// file is a folder or zip file that holds node_modules as `npm ci` makes it from engine/package-lock.json. Default:
	// npm is run.
	file string
	// npm is the npm client. Default: the one on PATH.
	npm string
	// progress is called with a few words before npm runs. It may be nil.
	progress func(what string)
}

// SetupError reports why the JavaScript engine or npm packages could not be obtained, and what to do about the machine, its npm or the
// registry. It is nothing that the author of an extension can mend.
type SetupError struct {
	Task    string // e.g. "obtain the JavaScript engine"
	Problem string // e.g. "npm is not installed"
	Remedy  string
	Err     error // may be nil
}

// Error implements error.
func (e *SetupError) Error() string {
	text := e.Task + ": " + e.Problem
	if e.Err != nil {
		text += ": " + e.Err.Error()
	}
	return text + ". " + e.Remedy
}

// Unwrap returns Err.
func (e *SetupError) Unwrap() error { return e.Err }

func engineError(problem, remedy string, err error) *SetupError {
	return &SetupError{"obtain the JavaScript engine", problem, remedy, err}
}

//go:embed engine/package.json engine/package-lock.json
var enginePackages embed.FS

// EnginePackage holds the package.json and package-lock.json from which `npm ci` makes the folder that [Options].Engine
// may name.
func EnginePackage() fs.FS {
	files, _ := fs.Sub(enginePackages, "engine") // fails for an invalid name only
	return files
}

const (
	// engineDigest is the SHA-256 of everything that is kept of the packages, see packEngine. npm has already compared the packages
	// with the lockfile; this also covers an engine from elsewhere.
	engineDigest   = "5fab291d6daa8748d4d8e2757bbd5c2c2dd22584e0cd803397d86f4a942708b9"
	wasmName       = "node_modules/quickjs-wasi/quickjs.wasm"
	maxEngineFile  = 8 << 20
	maxEngineFiles = 10_000

	offlineRemedy = "Without npm: run `npm ci --ignore-scripts` elsewhere beside the package-lock.json of Stile's toolchain/engine, bring that folder, or a zip file of what is in it, here, and name it in STILE_ENGINE"
)

// obtainEngine returns the engine, from the cache or through npm, and always with the pinned digest. Errors other than
// the end of ctx are a *SetupError.
func obtainEngine(ctx context.Context, cached cacheFunc, o engineOptions) (*engineFiles, error) {
	archive, err := cached(ctx, "engine", engineDigest, func() ([]byte, error) {
		if o.file != "" {
			return engineFromFile(o.file)
		}
		return engineFromNPM(ctx, o)
	})
	if err != nil {
		return nil, err
	}
	modules, err := zip.NewReader(bytes.NewReader(archive), int64(len(archive)))
	if err != nil {
		return nil, fmt.Errorf("open the engine's archive: %w", err)
	}
	wasm, err := fs.ReadFile(modules, wasmName)
	if err != nil {
		return nil, fmt.Errorf("open the engine's archive: %w", err)
	}
	return &engineFiles{wasm, modules}, nil
}

// engineFromNPM installs the locked packages in a temporary folder, without running any code of theirs, and packs them.
func engineFromNPM(ctx context.Context, o engineOptions) (_ []byte, err error) {
	npm, err := exec.LookPath(cmp.Or(o.npm, "npm"))
	if err != nil {
		return nil, engineError(NoNPM, InstallNPM()+". "+offlineRemedy, err)
	}
	if o.progress != nil {
		o.progress("obtaining the JavaScript engine and the packages it needs through npm, once")
	}
	dir, err := os.MkdirTemp("", "stile-engine-")
	if err != nil {
		return nil, engineError("there is no disk space for the download", "Check the temporary folder.", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if err := os.CopyFS(dir, EnginePackage()); err != nil {
		return nil, engineError("there is no disk space for the download", "Check the temporary folder.", err)
	}
	// This overrides the user's npm settings that could change the result. Registry and proxy stay the user's.
	// The lock has the digests, so packages from npm's cache are as good as those of the registry.
	line := child.WithMemory(1<<30, npm, "ci", "--prefer-offline", "--fetch-retry-mintimeout=1000", "--fetch-retry-maxtimeout=5000", "--ignore-scripts", "--no-audit", "--no-fund", "--no-bin-links",
		"--no-update-notifier", "--no-progress", "--no-global", "--no-dry-run", "--no-engine-strict", "--install-strategy=hoisted", "--loglevel=error")
	cmd := exec.CommandContext(ctx, line[0], line[1:]...)
	cmd.Dir = dir
	cmd.WaitDelay = 5 * time.Second
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	if err := cmd.Run(); err != nil {
		if ctx.Err() != nil {
			return nil, fmt.Errorf("obtain the JavaScript engine: %w", context.Cause(ctx))
		}
		return nil, npmError(said.String(), err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, engineError("what npm installed cannot be read", "Try again.", err)
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	return packEngine(root.FS())
}

// npmError explains a failure by npm's messages.
func npmError(said string, err error) *SetupError {
	code := NPMCode(said)
	problem, remedy := NPMFault(code)
	switch {
	case code == "EINTEGRITY":
		return engineError("the registry served packages with a wrong digest, so they were refused", "Check the registry in npm's settings.", err)
	case code == "E404", code == "ETARGET":
		return engineError("npm's registry lacks a package ("+code+")", "Check that registry. "+offlineRemedy, err)
	case problem != "":
		return engineError(problem, remedy+" "+offlineRemedy, err)
	}
	const shown = 500
	said = strings.TrimSpace(said)
	said = printable.OneLine(strings.ToValidUTF8(said[max(0, len(said)-shown):], ""))
	return engineError("npm failed", "Check that `npm ci` works on this machine. "+offlineRemedy, fmt.Errorf("%w: %s", err, said))
}

// engineFromFile packs an engine that somebody else obtained.
func engineFromFile(file string) (_ []byte, err error) {
	failure := func(err error) error { return engineError("STILE_ENGINE cannot be read", offlineRemedy, err) }
	info, err := os.Stat(file)
	if err != nil {
		return nil, failure(err)
	}
	if info.IsDir() {
		root, err := os.OpenRoot(file)
		if err != nil {
			return nil, failure(err)
		}
		defer func() { err = errors.Join(err, root.Close()) }()
		return packEngine(root.FS())
	}
	archive, err := zip.OpenReader(file)
	if err != nil {
		return nil, failure(fmt.Errorf("%s: %w", file, err))
	}
	defer func() { err = errors.Join(err, archive.Close()) }()
	return packEngine(archive)
}

// packEngine makes a zip file of the needed parts of node_modules, if they are exactly those pinned. The digest covers a line
// "<sha256> <path>" for each file.
func packEngine(files fs.FS) ([]byte, error) {
	var archive bytes.Buffer
	w := zip.NewWriter(&archive)
	sum := sha256.New()
	count := 0
	err := fs.WalkDir(files, "node_modules", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() || !neededOfEngine(name) {
			return err
		}
		if count++; count > maxEngineFiles {
			return fmt.Errorf("more than %d files", maxEngineFiles)
		}
		data, err := readAtMost(files, name, maxEngineFile)
		if err != nil {
			return err
		}
		_, _ = fmt.Fprintf(sum, "%s  %s\n", sha256hex.Of(data), name)
		f, err := w.Create(name)
		if err != nil {
			return err
		}
		_, err = f.Write(data)
		return err
	})
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		return nil, engineError("node_modules cannot be read", offlineRemedy, err)
	}
	if digest := hex.EncodeToString(sum.Sum(nil)); digest != engineDigest {
		return nil, engineError("its digest is wrong", "Use exactly what `npm ci` installs for this version of Stile.",
			fmt.Errorf("want sha256 %s, got %s for %d files", engineDigest, digest, count))
	}
	return archive.Bytes(), nil
}

// engineParts are what is needed of packages that bring the same for several engines: the beginning of paths below the package's folder.
var engineParts = map[string]string{
	"node_modules/web-streams-polyfill/": "dist/ponyfill.js",
}

// neededOfEngine leaves out types, maps and documents, and what nothing here uses of large packages.
func neededOfEngine(name string) bool {
	if rest, ok := strings.CutPrefix(name, nodeLibs); ok {
		return nodeLibrary.MatchString(rest)
	}
	base := path.Base(name)
	for prefix, only := range engineParts {
		if strings.HasPrefix(name, prefix) && base != "package.json" && !strings.HasPrefix(base, "LICENSE") {
			return strings.HasPrefix(name, prefix+only) && path.Ext(base) == ".js"
		}
	}
	return path.Ext(base) == ".js" || base == "package.json" || strings.HasPrefix(base, "LICENSE") || repack[name] != nil || name == wasmName || slices.Contains(multiByteNames, name)
}

// nodeLibs is the package with modules that stand in for those built into node.
const nodeLibs = "node_modules/@jspm/core/"

// multiByteNames are the files with the tables of encodings that take several bytes for a character.
var multiByteNames = []string{"node_modules/@exodus/bytes/fallback/multi-byte.encodings.cjs", "node_modules/@exodus/bytes/fallback/multi-byte.encodings.json"}

// nodeLibrary matches the files of nodeLibs that nodeModules leads to.
var nodeLibrary = lazyregexp.New(`^LICENSE$|^nodelibs/browser/(?:assert|buffer|diagnostics_channel|events|path|punycode|querystring|stream|string_decoder|url|util|chunk-(?:BlJi4mNy|CcCWfKp1|CkFCi-G1|DEMDiNwt|DtcTpLWz|DtuTasat))\.js$`)

// readAtMost reads a file and fails if it is larger than limit bytes.
func readAtMost(files fs.FS, name string, limit int64) ([]byte, error) {
	data, err := bounded.ReadFile(files, name, limit)
	if errors.Is(err, bounded.ErrTooLarge) {
		err = fmt.Errorf("%s is larger than %d KiB", name, limit>>10)
	}
	return data, err
}
