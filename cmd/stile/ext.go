package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/stilehost/stile/capabilities/browser"
	"github.com/stilehost/stile/capabilities/console"
	"github.com/stilehost/stile/capabilities/http"
	"github.com/stilehost/stile/capabilities/sandbox"
	"github.com/stilehost/stile/extension"
	"github.com/stilehost/stile/extension/lifecycle"
	"github.com/stilehost/stile/extension/policy"
	"github.com/stilehost/stile/extension/typecheck"
	"github.com/stilehost/stile/host"
	"github.com/stilehost/stile/internal/printable"
	"github.com/stilehost/stile/internal/private"
	"github.com/stilehost/stile/ladder"
	"github.com/stilehost/stile/toolchain/npm"
)

// via says how a command that does not ask was given.
func (s *streams) via() string {
	if _, ok := s.person(); ok {
		return lifecycle.ViaTerminal
	}
	return lifecycle.ViaCommand
}

type extCommand struct {
	Add      extAdd      `cmd:"" help:"Add an extension, or a new version of one, from its source."`
	List     extList     `cmd:"" help:"List extensions and requests for approval."`
	Show     extShow     `cmd:"" help:"Show one extension: its tools, authority and statistics."`
	Source   extSource   `cmd:"" help:"Print the source of a version."`
	Diff     extDiff     `cmd:"" help:"Compare two versions in authority, packages and code."`
	Test     extTest     `cmd:"" help:"Run the tests of a version."`
	Approve  extApprove  `cmd:"" help:"Approve a request, after reviewing what the version may do."`
	Deny     extDeny     `cmd:"" help:"Deny a request."`
	Revoke   extRevoke   `cmd:"" help:"Revoke an extension, and end its running calls."`
	Remove   extRemove   `cmd:"" help:"Remove an extension of your own."`
	History  extHistory  `cmd:"" help:"List all versions, and who decided what."`
	Rollback extRollback `cmd:"" help:"Return to a version that was active before."`
	Promote  extPromote  `cmd:"" help:"Request an extension in a wider scope."`
	Config   extConfig   `cmd:"" help:"Show and set the vars of an extension."`
	Call     extCall     `cmd:"" help:"Call a tool of an extension."`
	Generate extGenerate `cmd:"" help:"Have a model write an extension."`
	SBOM     extSBOM     `cmd:"" name:"sbom" help:"Print the npm packages of a version, as CycloneDX."`
	Export   extExport   `cmd:"" help:"Write a version to a file."`
	Import   extImport   `cmd:"" help:"Add an extension from a file or a registry."`
	Search   extSearch   `cmd:"" help:"Find tools by words."`
	Prune    extPrune    `cmd:"" help:"Remove extensions that nobody uses or that fail."`
	Forget   extForget   `cmd:"" help:"Drop the source of old versions from disk."`
}

// Help implements kong.HelpProvider.
func (*extCommand) Help() string {
	return `STILE_HOME keeps each extension with its versions, within the limits of policy.json. Adding a version validates it, installs its packages, builds it, reports on its code and runs its tests. Then a person approves what it may do, unless policy.json in STILE_HOME does. Tool names have the form EXTENSION_TOOL.

A scope says who can use an extension: agent:NAME, user (you: STILE_USER, or your operating system user) or shared. If several scopes have a tool of the same name, stile calls the one in the narrowest scope.

The digest of a version names it. Its first ` + strconv.Itoa(lifecycle.MinDigest) + ` characters are enough where a command shows, compares or tests a version, or asks you before it acts, if no other version begins with them. Whoever may add a version can make one that begins like another; the command then refuses, and takes more characters. So ext approve, --yes and ext export --sign take whole digests.

Examples:

    stile ext add github/
    stile ext list
    stile ext call github_list_issues --input '{"repo": "stilehost/stile"}'
    stile ext approve 12
    stile ext revoke github`
}

// scopeFlag names a scope.
type scopeFlag struct {
	Scope string `default:"user" placeholder:"SCOPE" complete:"scope" help:"user, shared, agent:NAME or user:NAME. Default: ${default}, which is you."`
}

// scope reads the flag.
func (f scopeFlag) scope(where settings) (extension.Scope, error) {
	if f.Scope == string(extension.User) {
		owner, err := where.owner()
		return extension.Scope{Kind: extension.User, Owner: owner}, err
	}
	scope, err := extension.ParseScope(f.Scope)
	if err != nil {
		err = usagef("--scope: %w; user alone is you", err)
	}
	return scope, err
}

// viewer returns the viewer for a scope. An agent also sees what belongs to its user and what is shared.
func (f scopeFlag) viewer(where settings) (v lifecycle.Viewer, err error) {
	scope, err := f.scope(where)
	if err != nil {
		return v, err
	}
	v = viewerOf(scope)
	if v.Agent != "" {
		v.User, err = where.owner()
	}
	return v, err
}

// viewerOf returns the person who runs the command as a viewer who sees a scope and what is shared.
func viewerOf(scope extension.Scope) lifecycle.Viewer {
	if scope.Kind == extension.Agent {
		return lifecycle.Viewer{Agent: scope.Owner, Person: true}
	}
	return lifecycle.Viewer{User: scope.Owner, Person: true} // what is shared has no owner
}

// owner is the person's name in scopes.
func (w settings) owner() (string, error) {
	name := w.user
	if name == "" {
		u, err := user.Current()
		if err != nil {
			return "", fmt.Errorf("find out who you are: %w; set STILE_USER", err)
		}
		// Two people do not share a STILE_HOME, so it does not matter if two names become the same.
		name = strings.Trim(notInNames.ReplaceAllString(strings.ToLower(u.Username), "_"), "_")
	}
	if _, err := (extension.Scope{Kind: extension.User, Owner: name}).MarshalText(); err != nil {
		return "", usagef("your name %q cannot name a scope; set STILE_USER to a name of a-z, 0-9, _ and -", name)
	}
	return name, nil
}

// author is the person's name as an author.
func (w settings) author() (string, error) {
	owner, err := w.owner()
	return lifecycle.Viewer{User: owner}.String(), err
}

// extensions is the open store of extensions, with what their calls need.
type extensions struct {
	*session
	*lifecycle.Manager
	state *extension.State
	calls recorder
	npm   *npm.Client
	types *typecheck.Checker
	// own are the listeners of this process, which no tool can reach.
	own http.Listeners
	// ladders has the tools of the ladder. It has built nothing before their first use.
	ladders *ladder.Kit
}

// openExtensions opens the store. Logs of tools go to stderr.
func openExtensions(ctx context.Context, s *streams, o sessionOptions) (e *extensions, err error) {
	where, err := readSettings()
	if err != nil {
		return nil, err
	}
	rules, text, err := readPolicy(where)
	if err != nil {
		return nil, err
	}
	n, err := openSession(ctx, s, o)
	if err != nil {
		return nil, err
	}
	e = &extensions{session: n, calls: recorder{close: func() {}}}
	defer func() {
		if err != nil {
			err = errors.Join(err, e.Close())
		}
	}()
	e.state = extension.NewState(n.home, s.log, n.cache, n.keys)
	e.state.Progress = s.toolProgress()
	e.state.Configure(http.Kind, http.Options{Credentials: n.secrets, Own: &e.own})
	e.state.Configure(browser.Kind, n.browser)
	e.state.Configure(sandbox.Kind, n.sandbox)
	if e.types, e.npm, err = n.checker(); err != nil {
		return nil, err
	}
	options := lifecycle.Options{
		Dir: n.home, Host: n.host, Toolchain: n.toolchain, State: e.state, Policy: rules, Packages: e.npm, Bundler: bundler(), Types: e.types, Logger: n.logger,
		Follow: e.followPolicy(s, text), Runs: &n.children,
	}
	kit := ladder.KitOptions{Host: n.host, Toolchain: n.toolchain, Logger: n.logger}
	if !n.record.off {
		var store lifecycle.Recorder
		if e.calls, store = n.openRecorder(ctx, s); e.calls.recorder != nil {
			options.Recorder, kit.Recorder = store, store
		}
	}
	e.ladders = ladder.NewKit(kit)
	if e.Manager, err = lifecycle.Open(ctx, options); err != nil {
		return e, err
	}
	return e, nil
}

// followPolicy returns a function that follows changes of policy.json, which contained text. It reports an invalid file and keeps
// the previous policy.
func (e *extensions) followPolicy(s *streams, text []byte) func(set func(*policy.Policy)) {
	file := &followed{path: filepath.Join(e.home, policy.File)}
	failed := ""
	read := func(set func(*policy.Policy)) error {
		var rules *policy.Policy
		now, err := policyText(e.settings)
		changed := !bytes.Equal(now, text) || (now == nil) != (text == nil)
		switch {
		case err != nil:
		case now == nil && text != nil: // for example while an editor saves it; the default policy may allow more
			err = fs.ErrNotExist
		case changed:
			rules, err = parsePolicy(e.settings, now)
		}
		switch {
		case err != nil:
			if failed == err.Error() {
				return err
			}
			failed = err.Error()
			if errors.Is(err, fs.ErrNotExist) {
				s.say("stile: policy.json is gone; the previous policy stays in force until there is a new one")
				return err
			}
			s.say("stile: policy.json changed and is not valid, so the previous policy stays in force: %s", printable.Text(err.Error()))
		case changed:
			text, failed = now, ""
			set(rules)
			s.say("stile: policy.json changed; the new policy is in force")
		default:
			failed = ""
		}
		return err
	}
	return func(set func(*policy.Policy)) { file.each(func() error { return read(set) }) }
}

// readPolicy reads the operator's policy and its text. The default policy has no text.
func readPolicy(where settings) (rules *policy.Policy, text []byte, err error) {
	if text, err = policyText(where); err != nil {
		return nil, nil, err
	}
	rules, err = parsePolicy(where, text)
	return rules, text, err
}

// policyText reads the text of the operator's policy, which is nil if there is none. Others must not be able to write the file, because that
// would make them operators.
func policyText(where settings) ([]byte, error) {
	file := filepath.Join(where.home, policy.File)
	if _, err := os.Lstat(file); errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	info, err := os.Stat(file)
	if err != nil {
		return nil, &usageError{err}
	}
	if info.Mode().Perm()&private.Write != 0 {
		return nil, usagef("%s has mode %04o: others can write it; chmod 600 %[1]s", file, info.Mode().Perm())
	}
	return readFile(file, maxText)
}

func parsePolicy(where settings, text []byte) (*policy.Policy, error) {
	if text == nil {
		return policy.Default(), nil
	}
	rules, err := policy.Parse(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", filepath.Join(where.home, policy.File), err)
	}
	return rules, nil
}

// Close waits for running calls.
func (e *extensions) Close() error {
	var errs []error
	if e.ladders != nil {
		errs = append(errs, e.ladders.Close())
	}
	if e.Manager != nil {
		errs = append(errs, e.Manager.Close())
	}
	e.calls.close()
	if e.types != nil {
		errs = append(errs, e.types.Close())
	}
	if e.npm != nil {
		errs = append(errs, e.npm.Close())
	}
	return errors.Join(append(errs, e.state.Close(), e.session.Close())...)
}

// withExtensions opens the store for as long as use takes.
func withExtensions(ctx context.Context, s *streams, use func(*extensions) error) error {
	return withOptions(ctx, s, sessionOptions{}, use)
}

// inScope opens the store for as long as use works in the scope.
func (f scopeFlag) inScope(ctx context.Context, s *streams, use func(*extensions, extension.Scope) error) error {
	return withExtensions(ctx, s, func(e *extensions) error {
		scope, err := f.scope(e.settings)
		if err != nil {
			return err
		}
		return use(e, scope)
	})
}

// forCall opens the store for as long as use makes a call with an input.
func (f scopeFlag) forCall(ctx context.Context, s *streams, in inputFlags, use func(*extensions, lifecycle.Viewer, host.Limits, []byte) error) error {
	limits, input, err := in.read(ctx, s)
	if err != nil {
		return err
	}
	return withOptions(ctx, s, sessionOptions{memory: limits.Memory}, func(e *extensions) error {
		viewer, err := f.viewer(e.settings)
		if err != nil {
			return err
		}
		return use(e, viewer, limits, input)
	})
}

func withOptions(ctx context.Context, s *streams, o sessionOptions, use func(*extensions) error) (err error) {
	e, err := openExtensions(ctx, s, o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, e.Close()) }()
	return use(e)
}

// log shows what a tool logs, indented, so that no line of a message looks like one of ours.
func (s *streams) log(level console.Level, message string) {
	s.say("[%s] %s", level, strings.ReplaceAll(message, "\n", "\n    "))
}
