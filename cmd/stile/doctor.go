package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"

	"github.com/stilehost/stile/capabilities/workspace"
	"github.com/stilehost/stile/durable"
	"github.com/stilehost/stile/extension/lifecycle"
	"github.com/stilehost/stile/extension/typecheck"
	"github.com/stilehost/stile/host"
	"github.com/stilehost/stile/host/recording"
	"github.com/stilehost/stile/internal/cache"
	"github.com/stilehost/stile/internal/printable"
	"github.com/stilehost/stile/internal/private"
	"github.com/stilehost/stile/internal/sqlite"
	"github.com/stilehost/stile/secret"
	"github.com/stilehost/stile/toolchain"
	"github.com/stilehost/stile/toolchain/npm"
)

type doctorCommand struct {
	Fetch bool `help:"Fetch the JavaScript engine and the TypeScript compiler if they are not in the cache."`
	asJSON
}

// Help implements kong.HelpProvider.
func (*doctorCommand) Help() string {
	return `The command tries what the other commands need: the WebAssembly engine, the JavaScript engine and how to obtain it, the folders and who may write to them, the secrets and where their key is, the databases, policy.json, the extensions and their audit log, disk space, memory maps, the headless browser, the helper programs that some commands start, and sandboxes: which of their limits hold. The exit code is 5 if something needed is missing or broken.

Examples:

    stile doctor
    stile doctor --fetch
    stile doctor --json`
}

// finding is the outcome of one check.
type finding struct {
	Check  string `json:"check"`
	Status status `json:"status"`
	// Detail says what was found.
	Detail string `json:"detail"`
	// Remedy says what to do about it.
	Remedy string `json:"remedy,omitempty"`
}

type status string

const (
	statusOK      status = "ok"
	statusWarning status = "warning" // works, with restrictions
	statusMissing status = "missing" // something will not work
	statusBroken  status = "broken"  // something is there and does not work
)

// examination is one run of the doctor.
type examination struct {
	settings
	streams  *streams
	fetch    bool
	findings []finding
}

func (e *examination) add(check string, s status, remedy, format string, args ...any) {
	e.findings = append(e.findings, finding{check, s, cell(fmt.Sprintf(format, args...)), remedy})
}

// Run implements the command.
func (c *doctorCommand) Run(ctx context.Context, s *streams) error {
	where, err := readSettings()
	if err != nil {
		return err
	}
	e := &examination{settings: where, streams: s, fetch: c.Fetch}
	e.folder("home", e.home, "STILE_HOME")
	e.folder("cache", e.cache, "STILE_CACHE")
	e.key()
	e.secrets(ctx)
	hasNPM := e.npm(ctx)
	e.npmCache()
	e.engines(ctx, hasNPM)
	e.databases(ctx)
	e.policy()
	e.extensions(ctx)
	e.disk()
	e.maps()
	e.helpers()
	e.web(ctx)
	e.sandboxes(ctx)
	if err := ctx.Err(); err != nil {
		return err
	}

	var missing []string
	for _, f := range e.findings {
		if f.Status == statusMissing || f.Status == statusBroken {
			missing = append(missing, f.Check)
		}
	}
	if c.JSON {
		err = printJSON(s.out, struct {
			OK       bool      `json:"ok"`
			Versions versions  `json:"versions"`
			Findings []finding `json:"findings"`
		}{len(missing) == 0, readVersions(), e.findings})
	} else {
		_, err = io.WriteString(s.out, s.outcomes(e.text()))
	}
	if err == nil && len(missing) > 0 {
		err = fmt.Errorf("missing or broken: %s", strings.Join(missing, ", "))
	}
	return err
}

func (e *examination) text() string {
	rows := make([][]string, 0, len(e.findings))
	for _, f := range e.findings {
		rows = append(rows, []string{string(f.Status), f.Check, f.Detail})
		if f.Remedy != "" {
			rows = append(rows, []string{"", "", "-> " + f.Remedy})
		}
	}
	return table("", rows)
}

// key tries the key that authenticates the cache, and creates it if it is missing, as every command does.
func (e *examination) key() {
	c, err := cache.Open(e.cache, e.keys, slog.New(&warnings{streams: e.streams, cache: e.cache}))
	if err == nil {
		err = c.Close()
	}
	if err != nil {
		e.add("cache key", statusMissing, "Make the folder or file it names yours alone, or choose others with STILE_HOME and STILE_CACHE.", "%v", err)
		return
	}
	e.add("cache key", statusOK, "", "%s, readable by its owner only", filepath.Join(e.keys, "cache.key"))
}

// secrets opens the store of secrets and every secret in it, and says where its key is.
func (e *examination) secrets(ctx context.Context) {
	const remedy = "Do what the detail says; stile secret set and remove work on one secret each."
	store, err := openSecrets(ctx, e.settings, e.streams)
	if err != nil {
		e.add("secrets", statusMissing, remedy, "%v", err)
		return
	}
	defer func() { _ = store.Close() }() // closing only forgets the key
	entries, err := store.List(ctx)
	place := map[secret.Place]string{
		secret.PlaceKeyring: "in the keyring",
		secret.PlaceFile:    "in " + filepath.Join(e.home, secret.KeyFile) + ", readable by its owner only",
	}
	switch where, ok := place[store.KeyPlace()]; {
	case err != nil:
		e.add("secrets", statusMissing, remedy, "%v", err)
	case !ok:
		e.add("secrets", statusOK, "", "none yet; stile secret set stores one")
	default:
		e.add("secrets", statusOK, "", "%d, intact; their key is %s", len(entries), where)
	}
}

// engines tries the WebAssembly engine with a component that has no imports. It tries the JavaScript engine with a tool, if the
// engine is cached or may be fetched.
func (e *examination) engines(ctx context.Context, hasNPM bool) {
	h, err := host.New(ctx, host.Options{CacheDir: e.cache, KeyDir: e.keys})
	if err != nil {
		// Try without the cache, which has its own finding.
		h, err = host.New(ctx, host.Options{})
	}
	if err == nil {
		defer func() { _ = h.Close() }() // nothing that could fail is still running
		err = probeHost(ctx, h)
	}
	if err != nil {
		e.add("wasm engine", statusMissing, "Address space may be limited (ulimit -v), or the processor lacks what the engine needs.", "%v", err)
		return
	}
	e.add("wasm engine", statusOK, "", "wasmtime %s compiled and ran a component", readVersions().Wasmtime)

	o := toolchain.Options{CacheDir: e.cache, KeyDir: e.keys, Engine: e.engine, Bundler: bundler()}
	has, err := toolchain.HasEngine(o)
	switch {
	case err != nil:
		e.add("js engine", statusMissing, "See the findings about the cache.", "%v", err)
		return
	case has, e.fetch:
	case e.engine != "":
		if _, err := os.Stat(e.engine); err != nil {
			e.add("js engine", statusMissing, "Name a copy of the engine in STILE_ENGINE, or unset it.", "not in the cache, and STILE_ENGINE cannot be read: %v", err)
			return
		}
		e.add("js engine", statusOK, "stile doctor --fetch takes it now.", "not in the cache yet; is taken from STILE_ENGINE, %s, when first needed", e.engine)
		return
	case hasNPM:
		e.add("js engine", statusOK, "stile doctor --fetch obtains it now.", "not in the cache yet; is obtained through npm when first needed")
		return
	default:
		e.add("js engine", statusMissing, toolchain.InstallNPM()+", or name a copy of the engine in STILE_ENGINE.", "not in the cache, and there is no npm to obtain it")
		return
	}
	var obtain *toolchain.SetupError
	switch err := probeToolchain(ctx, h, o); {
	case errors.As(err, &obtain):
		problem := obtain.Problem
		if obtain.Err != nil {
			problem += ": " + strings.Join(strings.Fields(printable.Text(obtain.Err.Error())), " ") // npm prints many lines
		}
		e.add("js engine", statusMissing, obtain.Remedy, "%s", problem)
	case err != nil:
		e.add("js engine", statusMissing, "Empty STILE_CACHE and try again.", "%v", err)
	default:
		e.add("js engine", statusOK, "", "built and ran a TypeScript tool")
		if e.fetch {
			e.compiler(ctx, h, o)
		}
	}
}

// compiler makes the compiler that checks types ready, which later commands then take from the cache.
func (e *examination) compiler(ctx context.Context, h *host.Host, o toolchain.Options) {
	prepare := func() (err error) {
		tools, err := toolchain.New(ctx, h, o)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, tools.Close()) }()
		packages, err := npm.New(npm.Options{CacheDir: e.cache, KeyDir: e.keys, Bundler: bundler()})
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, packages.Close()) }()
		checker, err := typecheck.New(typecheck.Options{
			Toolchain: func(context.Context) (*toolchain.Toolchain, error) { return tools, nil }, Packages: packages, CacheDir: e.cache, KeyDir: e.keys,
			Progress: func(message string) { e.streams.say("stile: %s", message) },
		})
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, checker.Close()) }()
		return checker.Prepare(ctx)
	}
	if err := prepare(); err != nil {
		e.add("types", statusWarning, "Until then, drafts are accepted without a check of their types.", "%s", strings.Join(strings.Fields(printable.Text(err.Error())), " "))
		return
	}
	e.add("types", statusOK, "", "the TypeScript compiler is in the cache")
}

// databases checks every database in STILE_HOME.
func (e *examination) databases(ctx context.Context) {
	files, err := filepath.Glob(filepath.Join(escapeGlob(e.home), "*.db"))
	if err != nil {
		e.add("databases", statusWarning, "", "%v", err)
		return
	}
	for _, file := range files {
		info, err := os.Stat(file)
		if err == nil {
			err = sqlite.Regular(file)
		}
		if err == nil {
			largest := recording.MaxRow // of all the other databases
			if filepath.Base(file) == lifecycle.File {
				largest = lifecycle.MaxRow
			}
			err = sqlite.Intact(ctx, file, largest)
		}
		name := filepath.Base(file)
		if err == nil && name == workspace.File {
			err = checkWorkspaces(ctx, file)
		}
		if err == nil && name == durable.File && !e.usesRuns(ctx, file) {
			continue
		}
		if err != nil {
			e.add(name, statusBroken, "Restore it from a backup, or move it away to begin anew: "+file, "%v", err)
			continue
		}
		e.add(name, statusOK, "", "%d bytes, intact", info.Size())
	}
	if len(files) == 0 {
		e.add("databases", statusOK, "", "none yet; a recorded call, a workspace or a kv binding makes them")
	}
}

// usesRuns reports whether this version can use an intact file of runs. If not, it says why.
func (e *examination) usesRuns(ctx context.Context, file string) bool {
	err := hasRunsKey(e.home)
	if missing, ok := errors.AsType[*runsKeyError](err); ok {
		e.add(durable.File, statusMissing, "Until then, no command touches runs: "+missing.remedy()+".", "intact, but %s", missing.problem())
		return false
	}
	if err == nil {
		_, err = private.Key(filepath.Join(e.home, runsKey), durable.KeySize)
	}
	if err != nil {
		e.add(durable.File, statusBroken, "Do what the detail says.", "intact, but its key cannot be used: %v", err)
		return false
	}
	err = durable.Check(ctx, e.home)
	if newer, ok := errors.AsType[*sqlite.VersionError](err); ok {
		e.add(durable.File, statusBroken, "Use the newer version. To begin anew with this one, move the file away: "+file,
			"intact, but of a newer version of Stile: its schema has version %d, and this one knows versions up to %d", newer.Version, newer.Known)
		return false
	}
	if err != nil {
		e.add(durable.File, statusBroken, "Restore it from a backup, or move it away to begin anew: "+file, "%v", err)
	}
	return err == nil
}

// checkWorkspaces looks for contradictions that SQLite cannot detect: sizes, contents and limits that do not match.
func checkWorkspaces(ctx context.Context, file string) (err error) {
	store, err := workspace.Open(ctx, file, workspace.Options{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	return store.Check(ctx)
}
