package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/stilehost/stile/extension"
	"github.com/stilehost/stile/extension/inspect"
	"github.com/stilehost/stile/extension/lifecycle"
	"github.com/stilehost/stile/extension/trial"
	"github.com/stilehost/stile/internal/errkind"
	"github.com/stilehost/stile/internal/printable"
	"github.com/stilehost/stile/toolchain/npm"
)

// addFlags are the flags of every command that adds a version.
type addFlags struct {
	scopeFlag
	AllowFresh bool `help:"Accept npm packages that are younger than three days."`
	Offline    bool `help:"Ask no npm registry: take versions and packages that were fetched before. Without it, that happens if the registry cannot be reached."`
	NoApprove  bool `help:"Do not ask: the version waits for approval."`
	Code       bool `help:"Show the code when asking."`
	decisionFlags
}

// fill adds the scope, the author and the flags to a draft.
func (f addFlags) fill(s *streams, e *extensions, d *lifecycle.Draft) (err error) {
	if d.Scope, err = f.scope(e.settings); err != nil {
		return err
	}
	d.Author, err = e.author()
	d.Via, d.AllowFresh, d.Offline = s.via(), f.AllowFresh, f.Offline
	d.Progress = func(stage extension.Stage) {
		text := stages[stage]
		if d.Component != nil {
			text = cmp.Or(componentStages[stage], text)
		}
		e.progress(text)
	}
	d.Working = oncePerSecond(func(stage extension.Stage, message string) {
		e.progress(strings.TrimSuffix(stages[stage], " ...") + ": " + message + " ...")
	})
	return err
}

// oncePerSecond calls show at most once a second, because each message takes a line.
func oncePerSecond(show func(extension.Stage, string)) func(extension.Stage, string) {
	var mu sync.Mutex
	var last time.Time
	return func(stage extension.Stage, message string) {
		mu.Lock()
		defer mu.Unlock()
		if now := time.Now(); now.Sub(last) >= time.Second {
			last = now
			show(stage, message)
		}
	}
}

// stages are the words that a person sees during each stage.
var stages = map[extension.Stage]string{
	extension.StageValidate: "Checking the manifest and the source ...",
	extension.StageResolve:  "Resolving npm packages ...",
	extension.StageBundle:   "Building ...",
	extension.StageTypes:    "Checking types ...",
	extension.StageImage:    "Running top-level code ...",
	extension.StageReport:   "Looking through the code ...",
	extension.StageTest:     "Running its tests ...",
	extension.StagePolicy:   "Asking the policy ...",
}

// componentStages are the words for a component without source, where they differ.
var componentStages = map[extension.Stage]string{
	extension.StageValidate: "Checking the manifest and the component ...",
	extension.StageImage:    "Compiling, and asking it for its tools ...",
	extension.StageReport:   "Looking at its imports ...",
}

// finish reports warnings about npm packages and bindings, asks the person at the terminal to approve a waiting version, and prints the
// result.
func (f addFlags) finish(ctx context.Context, s *streams, e *extensions, w *lifecycle.Written) error {
	for _, text := range w.Untyped {
		s.say("stile: %s", text)
	}
	if w.Unchecked != nil {
		s.say("stile: %s", printable.Text(w.Unchecked.Error()))
	}
	for _, warning := range slices.Concat(w.Version.Warnings(), e.Unasked(w.Version)) {
		s.say("stile: warning: %s", warning)
	}
	if !w.Version.HasSource() {
		s.say("stile: this is a component without source to read, so there is no report on its code and its packages")
	}
	err := f.decide(ctx, s, e, w)
	declined, ok := errors.AsType[*notApprovedError](err)
	if err != nil && !ok {
		return err
	}
	if ok { // the version was added all the same
		declined.result = "the version waits for approval"
	}
	if f.JSON {
		return errors.Join(err, printJSON(s.out, writtenOf(w)))
	}
	if w.Release.State == lifecycle.Pending && w.Why != "" {
		s.say("stile: waiting for a person: %s", line(w.Why, 1000))
	}
	_, printed := io.WriteString(s.out, s.outcomes(testsText(w.Tests))+releaseText(w.Release)+"\n")
	return errors.Join(err, printed)
}

// decide asks the person at the terminal to approve a waiting version.
func (f addFlags) decide(ctx context.Context, s *streams, e *extensions, w *lifecycle.Written) error {
	if _, ok := s.person(); ok && !f.NoApprove && w.Release.State == lifecycle.Pending {
		r, err := e.approve(ctx, s, w.Release, f.decisionFlags, false, f.Code)
		if err != nil {
			return err
		}
		w.Release = r
		return nil
	}
	return e.tellUnfit(ctx, s, w.Release)
}

type extAdd struct {
	Path     string `arg:"" optional:"" help:"Source file, folder with the source, or component (.wasm)."`
	Manifest string `placeholder:"FILE" help:"Manifest, or a folder with one. Default: manifest.json in the folder or beside the file, or NAME.json beside NAME.ts or NAME.wasm."`
	Entry    string `placeholder:"FILE" help:"File of the folder that exports the tools. Default: the only one, or index, tool or the extension's name with .ts or another ending."`
	Types    bool   `default:"true" negatable:"" help:"Check types with the TypeScript compiler, which npm fetches once. Default: yes."`
	openapiFlags
	addFlags
}

// Help implements kong.HelpProvider.
func (*extAdd) Help() string {
	return `Adding validates the manifest, installs npm packages, builds, reports on the code, and runs the extension's tests. If a step fails, nothing changes. Then policy.json approves the version, or stile asks you. Without a terminal, the version waits for stile ext approve.

From a folder, stile takes all files except hidden ones and node_modules: packages come from the manifest's dependencies. No link may lead out of the folder. If you name a source file, stile takes only that file.

--openapi makes an extension out of an OpenAPI document: each operation becomes a tool, and one http binding reaches the server with the methods that the operations use. If there are more than 1,000 operations, they become several extensions. stile ext source NAME operations.json shows the result.

A component (.wasm), made by any toolchain, is taken as it is: its bytes are the version, because there is no source to read. It must export stile:extension/tools and import only what stile inspect can explain. The person who approves sees its imports, exports, size and origin. No rule of policy.json approves a component, so one always waits for a person. Packages and types are not checked. stile componentize turns a core module into a component. An Extism plug-in is turned into one here.

Building erases types, so stile checks them first, as tsc --strict does, with the manifest's bindings in env. The compiler also runs in the sandbox, for at most 15 s of processor time. --no-types leaves the check out.

All problems of the manifest and the code come at once. They include bindings that the code uses and the manifest does not ask for, web APIs that do not exist here, and operations that the bindings never permit.

Examples:

    stile ext add github/
    stile ext add distance.ts --manifest distance.json --no-types
    stile ext add github/ --entry src/main.ts
    stile ext add notes.wasm
    stile ext add github/ --scope shared --no-approve --json
    stile ext add --openapi petstore.yaml --credential petstore-key --as header:api_key
    stile ext add --openapi github.json --name github --tag issues --tag pulls --credential github-token`
}

// Run implements the command.
func (c *extAdd) Run(ctx context.Context, s *streams) error {
	if err := c.check(c.Path); err != nil {
		return err
	}
	return withExtensions(ctx, s, func(e *extensions) error {
		if c.OpenAPI != "" {
			if c.Manifest != "" || c.Entry != "" {
				return usagef("--manifest and --entry do not go with --openapi, which makes both")
			}
			drafts, err := c.drafts(ctx, s)
			if err != nil {
				return err
			}
			return c.addAll(ctx, s, e, drafts)
		}
		d, manifest, err := readDraft(c.Path, c.Manifest, e.home, e.cache, e.keys)
		if err != nil {
			return err
		}
		if c.Entry != "" {
			if d.Component != nil {
				return usagef("--entry does not go with %s: a component has no source files", c.Path)
			}
			d.Entry = path.Clean(filepath.ToSlash(c.Entry))
		}
		if _, ok := d.Files[d.Entry]; !ok && d.Entry != "" {
			return usagef("--entry %s is not a file of %s", line(c.Entry, 200), c.Path)
		}
		return c.add(ctx, s, e, d, manifest)
	})
}

// add takes a draft through all stages. manifest is the file that its manifest was read from.
func (c *extAdd) add(ctx context.Context, s *streams, e *extensions, d lifecycle.Draft, manifest string) error {
	if err := c.fill(s, e, &d); err != nil {
		return err
	}
	d.NoTypes = d.NoTypes || !c.Types
	w, err := e.Write(ctx, d)
	if err != nil {
		return nameComponent(nameManifest(err, manifest), c.Path)
	}
	return c.finish(ctx, s, e, w)
}

type writtenJSON struct {
	Release   releaseJSON                 `json:"release"`
	Version   string                      `json:"version"`
	Source    bool                        `json:"source"` // whether there is a source to read
	Unchanged bool                        `json:"unchanged"`
	Unchecked string                      `json:"unchecked,omitempty"`
	Tools     []tool                      `json:"tools"`
	Changes   []extension.Change          `json:"changes"`
	Cut       []extension.Change          `json:"cut"`
	Tests     []testJSON                  `json:"tests"`
	Packages  []npm.Package               `json:"packages"`
	Report    inspect.Report              `json:"report"`
	Seconds   map[extension.Stage]float64 `json:"seconds"`
	Untyped   []string                    `json:"untyped,omitempty"`
}

func writtenOf(w *lifecycle.Written) writtenJSON {
	j := writtenJSON{
		releaseOf(w.Release), w.Version.Manifest.Version, w.Version.HasSource(), w.Unchanged, "", toolsOf(w.Version.Tools),
		append([]extension.Change{}, w.Changes...), append([]extension.Change{}, w.Cut...), testsOf(w.Tests), append([]npm.Package{}, w.Version.Packages...), w.Version.Report,
		map[extension.Stage]float64{},
		w.Untyped,
	}
	for stage, took := range w.Took {
		j.Seconds[stage] = took.Seconds()
	}
	if w.Unchecked != nil {
		j.Unchecked = w.Unchecked.Error()
	}
	return j
}

type testJSON struct {
	Name    string             `json:"name"`
	Tool    string             `json:"tool"`
	Passed  bool               `json:"passed"`
	Problem *extension.Problem `json:"problem,omitempty"`
	Log     []string           `json:"log,omitempty"`
	Seconds float64            `json:"seconds"`
}

func testsOf(results []trial.Result) []testJSON {
	tests := make([]testJSON, len(results))
	for i, r := range results {
		tests[i] = testJSON{r.Name, r.Tool, r.Passed, r.Problem, r.Log, r.Duration.Seconds()}
	}
	return tests
}

func testsText(results []trial.Result) string {
	var b strings.Builder
	for i, r := range results {
		name := line(r.Name, 200)
		if name == "" {
			name = fmt.Sprintf("test %d", i+1)
		}
		outcome := "ok"
		if !r.Passed {
			outcome = "failed"
		}
		fmt.Fprintf(&b, "%-6s  %s  %s\n", outcome, r.Tool, name)
		if r.Problem != nil {
			b.WriteString(indented(r.Problem.String()))
		}
	}
	return b.String()
}

type extTest struct {
	Name string `arg:"" complete:"extension" help:"Name of the extension, number of a request, or path of a source or component that was not added, with a dot or a slash."`
	scopeFlag
	Digest   string `placeholder:"DIGEST" help:"Another version: the first characters of its digest, at least ${minDigest}."`
	Manifest string `placeholder:"FILE" help:"Manifest of a path. Default: as for stile ext add."`
	asJSON
}

// Help implements kong.HelpProvider.
func (*extTest) Help() string {
	return `Each test in the manifest is one call. Its bindings return only the answers that the test provides. The exit code is 1 if a test fails.

A path is built as stile ext add builds it, and nothing of it is kept.

Examples:

    stile ext test github
    stile ext test 12 --json
    stile ext test ./github/
    stile ext test notes.wasm`
}

// failedTestsError reports a version whose tests do not all pass.
type failedTestsError struct {
	failed, all int
	problems    []extension.Problem
}

func (e *failedTestsError) Error() string {
	return fmt.Sprintf("%d of %d tests failed", e.failed, e.all)
}

// Run implements the command.
func (c *extTest) Run(ctx context.Context, s *streams) error {
	return withExtensions(ctx, s, func(e *extensions) error {
		results, err := c.results(ctx, s, e)
		if err != nil {
			return err
		}
		if c.JSON {
			err = printJSON(s.out, map[string][]testJSON{"tests": testsOf(results)})
		} else {
			if len(results) == 0 {
				s.say("stile: %s has no tests; add them to its manifest", line(c.Name, 200))
			}
			_, err = io.WriteString(s.out, s.outcomes(testsText(results)))
		}
		failed := &failedTestsError{all: len(results)}
		for _, r := range results {
			if !r.Passed {
				failed.failed++
			}
			if r.Problem != nil {
				failed.problems = append(failed.problems, *r.Problem)
			}
		}
		if err == nil && failed.failed > 0 {
			err = failed
		}
		return err
	})
}

// results runs the tests of a version, or of a path.
func (c *extTest) results(ctx context.Context, s *streams, e *extensions) ([]trial.Result, error) {
	if !strings.ContainsAny(c.Name, "./"+string(filepath.Separator)) {
		if c.Manifest != "" {
			return nil, usagef("--manifest goes with a path, such as ./%s", line(c.Name, 200))
		}
		v, err := chosenVersion{chosen{c.Name, c.scopeFlag}, c.Digest}.version(ctx, e)
		if err != nil {
			if info, missing := os.Stat(c.Name); missing == nil && info.IsDir() && errkind.Is[*lifecycle.NotFoundError](err) {
				err = fmt.Errorf("%w; to test the folder, write ./%s", err, line(c.Name, 200))
			}
			return nil, err
		}
		return e.Test(ctx, v.Digest)
	}
	if c.Digest != "" {
		return nil, usagef("--digest does not go with a path")
	}
	d, manifest, err := readDraft(c.Name, c.Manifest, e.home, e.cache, e.keys)
	if err != nil {
		return nil, err
	}
	if err := (addFlags{scopeFlag: c.scopeFlag}).fill(s, e, &d); err != nil {
		return nil, err
	}
	results, err := e.Try(ctx, d)
	if err != nil {
		return nil, nameComponent(nameManifest(err, manifest), c.Name)
	}
	return results, nil
}
