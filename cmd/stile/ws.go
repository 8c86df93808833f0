package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/capabilities/blob"
	"github.com/stilehost/stile/capabilities/workspace"
	"github.com/stilehost/stile/capability"
	"github.com/stilehost/stile/internal/errkind"
	"github.com/stilehost/stile/internal/printable"
)

type wsCommand struct {
	Ls      wsLs      `cmd:"" help:"List a directory, or all workspaces."`
	Cat     wsCat     `cmd:"" help:"Print a file."`
	Put     wsPut     `cmd:"" help:"Write a file."`
	Rm      wsRm      `cmd:"" help:"Remove a file or a directory."`
	Mv      wsMv      `cmd:"" help:"Move a file or a directory."`
	Grep    wsGrep    `cmd:"" help:"Search in files."`
	Find    wsFind    `cmd:"" help:"Find paths."`
	History wsHistory `cmd:"" help:"List earlier contents of a file."`
	Restore wsRestore `cmd:"" help:"Restore an earlier content of a file."`
	Forget  wsForget  `cmd:"" help:"Remove workspaces with their history and snapshots."`
	Backup  wsBackup  `cmd:"" help:"Copy all workspaces to a file, even while they are in use."`
}

// Help implements kong.HelpProvider.
func (*wsCommand) Help() string {
	return `Workspaces are kept in STILE_HOME. Name one as in --bind: NAME, or NAME/path for something in it. The first write creates the workspace.

The workspace of the extension list is agent.NAME.list, user.NAME.list or shared.list, by its scope. With stile run --manifest, it is run.FOLDER-DIGEST.list, where FOLDER has the manifest and the digest stands for its path. Names without a dot are yours.

The exit code is 1 if a path is missing or in the way, 2 for a bad request, 4 if the workspace is full.

Examples:

    stile ws ls
    stile ws ls notes/2026
    stile ws cat notes/today.md
    stile ws put notes/today.md < today.md
    stile ws put notes/logo.png logo.png
    stile ws mv notes/today.md notes/archive/today.md
    stile ws rm notes/archive --recursive
    stile ws find '**/*.md' notes
    stile ws grep -C 2 'TODO|FIXME' notes --include '*.ts'
    stile ws history notes/today.md
    stile ws restore notes/today.md 17
    stile ws forget notes
    stile ws backup workspaces.db`
}

// address is a workspace and a path in it.
type address struct {
	Address string `arg:"" complete:"workspace" name:"workspace" help:"NAME or NAME/path."`
}

// open opens the root of an existing workspace until use returns.
func (a address) open(ctx context.Context, use func(d *workspace.Directory, path string) error) error {
	return a.with(ctx, func(s *workspace.Store, name, path string) error {
		has, err := s.Has(ctx, name)
		if err != nil {
			return err
		}
		if !has {
			return abi.Errorf(abi.CodeNotFound, "workspace %q; stile ws ls lists the workspaces, and the first write makes a new one", name)
		}
		return use(s.Workspace(name), path)
	})
}

// with opens the store until use returns. The workspace may not exist yet.
func (a address) with(ctx context.Context, use func(s *workspace.Store, name, path string) error) error {
	return withStore(ctx, func(s *workspace.Store) error {
		name, path, _ := strings.Cut(a.Address, "/")
		// Extensions' own workspaces have such names too.
		if !capability.IsStoreName(name) {
			return usagef("%q is not the name of a workspace; write NAME or NAME/path", name)
		}
		if err := inside(name, path); err != nil {
			return err
		}
		return use(s, name, path)
	})
}

// isFile refuses the address of a whole workspace.
func (a address) isFile() error {
	if name, path, _ := strings.Cut(a.Address, "/"); path == "" && capability.IsStoreName(name) {
		return usagef("%s is a workspace, not a file; write %s/path", name, name)
	}
	return nil
}

// inside refuses a path that leaves its workspace. This is not a matter of rights: each workspace has its own address.
func inside(name, file string) error {
	if clean := path.Clean(file); clean == ".." || strings.HasPrefix(clean, "../") {
		return usagef("%q leaves the workspace %s; write NAME/path with the NAME of the workspace that has the file", file, name)
	}
	return nil
}

// withStore opens the store of workspaces until use returns.
func withStore(ctx context.Context, use func(*workspace.Store) error) error {
	return useStore(ctx, workspace.File, workspace.Open, use)
}

// useStore opens a store of STILE_HOME with default options until use returns.
func useStore[S io.Closer, O any](ctx context.Context, file string, open func(context.Context, string, O) (S, error), use func(S) error) (err error) {
	where, err := readSettings()
	if err != nil {
		return err
	}
	if err := makeFolder("STILE_HOME", where.home); err != nil {
		return err
	}
	var defaults O
	store, err := open(ctx, filepath.Join(where.home, file), defaults)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	return use(store)
}

// wsEntry is an entry of a directory as JSON has it.
type wsEntry struct {
	Name     string    `json:"name"`
	Kind     string    `json:"kind"`
	Size     uint64    `json:"size"`
	Mode     string    `json:"mode"`
	Modified time.Time `json:"modified"`
}

func moment(milliseconds uint64) time.Time { return time.UnixMilli(int64(milliseconds)).UTC() }

type wsLs struct {
	Address string `arg:"" optional:"" complete:"workspace" name:"workspace" help:"NAME or NAME/path. Without it, the workspaces are listed."`
	asJSON
}

// Help implements kong.HelpProvider.
func (*wsLs) Help() string {
	return `Examples:

    stile ws ls
    stile ws ls notes/2026 --json`
}

// Run implements the command.
func (c *wsLs) Run(ctx context.Context, s *streams) error {
	if c.Address == "" {
		return withStore(ctx, func(store *workspace.Store) error {
			all, err := store.Workspaces(ctx)
			if err != nil {
				return err
			}
			if c.JSON {
				return printJSON(s.out, map[string][]string{"workspaces": append([]string{}, all...)})
			}
			return s.lines(all)
		})
	}
	return address{c.Address}.open(ctx, func(d *workspace.Directory, path string) error {
		entries := []wsEntry{}
		err := eachPage(func(cursor *string) (*string, error) {
			page, err := d.List(ctx, path, pageSize, cursor)
			for _, e := range page.Entries {
				entries = append(entries, wsEntry{
					e.Name, e.Status.Kind.String(), e.Status.Size, fmt.Sprintf("%04o", e.Status.Mode), moment(e.Status.Modified),
				})
			}
			return page.Cursor, err
		})
		if err != nil {
			return err
		}
		if c.JSON {
			return printJSON(s.out, map[string][]wsEntry{"entries": entries})
		}
		rows := make([][]string, len(entries))
		for i, e := range entries {
			rows[i] = []string{e.Kind, e.Mode, fmt.Sprint(e.Size), when(e.Modified), printable.Text(e.Name)}
		}
		_, err = io.WriteString(s.out, table("", rows))
		return err
	})
}

// pageSize is how many entries, matches or paths a page has.
const pageSize = 1000

// eachPage calls read for each page, first with no cursor, then with the cursor that it returned.
func eachPage(read func(cursor *string) (next *string, err error)) error {
	for cursor := (*string)(nil); ; {
		next, err := read(cursor)
		if err != nil || next == nil {
			return err
		}
		cursor = next
	}
}

// lines prints each text on its own line, safe for a terminal.
func (s *streams) lines(texts []string) error {
	for _, text := range texts {
		if _, err := fmt.Fprintln(s.out, printable.Text(text)); err != nil {
			return err
		}
	}
	return nil
}

type wsCat struct {
	address
	Revision uint64 `placeholder:"ID" help:"Earlier content to print; stile ws history lists the ids."`
	JSON     bool   `name:"json" help:"Print an error as JSON too. The content is printed as it is."`
}

// Help implements kong.HelpProvider.
func (*wsCat) Help() string {
	return `Examples:

    stile ws cat notes/today.md
    stile ws cat notes/today.md --revision 17`
}

// Run implements the command.
func (c *wsCat) Run(ctx context.Context, s *streams) error {
	if err := c.isFile(); err != nil {
		return err
	}
	return c.open(ctx, func(d *workspace.Directory, path string) (err error) {
		var content *blob.Blob
		if c.Revision != 0 {
			content, err = d.ReadRevision(ctx, path, c.Revision)
		} else {
			content, err = d.ReadBlob(ctx, path)
		}
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, content.Close()) }()
		if _, ok := terminal(s.out); ok {
			text, err := content.Text(ctx, abi.MaxText)
			if err != nil {
				return err
			}
			_, err = io.WriteString(s.out, printable.Text(text))
			return err
		}
		_, err = io.Copy(s.out, content.Reader())
		return err
	})
}

type wsPut struct {
	address
	File string `arg:"" optional:"" help:"File to read. Default: stdin."`
	asJSON
}

// Help implements kong.HelpProvider.
func (*wsPut) Help() string {
	return `Examples:

    stile ws put notes/today.md < today.md
    stile ws put notes/logo.png logo.png`
}

// Run implements the command.
func (c *wsPut) Run(ctx context.Context, s *streams) error {
	if err := c.isFile(); err != nil {
		return err
	}
	return c.with(ctx, func(store *workspace.Store, name, path string) (err error) {
		from := s.in
		if c.File != "" && c.File != "-" {
			f, err := openFile(c.File)
			if err != nil {
				return err
			}
			defer f.Close()
			from = f
		}
		b := blob.NewBuilder(blob.Options{Limit: workspace.DefaultBytes})
		defer func() { err = errors.Join(err, b.Close()) }()
		_, err = interruptible(ctx, func() ([]byte, error) { _, err := io.Copy(b, from); return nil, err })
		if errkind.Is[*fs.PathError](err) { // it cannot be read
			return &usageError{err}
		}
		if err != nil {
			return err
		}
		content, err := b.Blob()
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, content.Close()) }()
		if err := store.Workspace(name).WriteBlob(ctx, path, content); err != nil {
			return err
		}
		return c.done(s, map[string]any{"path": c.Address, "size": content.Size(ctx)})
	})
}

type wsRm struct {
	address
	Recursive bool `short:"r" help:"Remove a directory with its contents."`
	asJSON
}

// Help implements kong.HelpProvider.
func (*wsRm) Help() string {
	return `Examples:

    stile ws rm notes/today.md
    stile ws rm notes/archive --recursive`
}

// Run implements the command.
func (c *wsRm) Run(ctx context.Context, s *streams) error {
	err := c.open(ctx, func(d *workspace.Directory, path string) error { return d.Remove(ctx, path, c.Recursive) })
	if err != nil {
		return err
	}
	return c.done(s, map[string]string{"path": c.Address})
}

type wsMv struct {
	address
	Target string `arg:"" help:"NAME/path to move it to, in the same workspace."`
	asJSON
}

// Help implements kong.HelpProvider.
func (*wsMv) Help() string {
	return `Examples:

    stile ws mv notes/today.md notes/archive/today.md`
}

// Run implements the command.
func (c *wsMv) Run(ctx context.Context, s *streams) error {
	from, _, _ := strings.Cut(c.Address, "/")
	to, target, _ := strings.Cut(c.Target, "/")
	if from != to {
		return usagef("%q is not in the workspace %s, and a move stays in one workspace; write %s/path", c.Target, from, from)
	}
	if err := inside(to, target); err != nil {
		return err
	}
	err := c.open(ctx, func(d *workspace.Directory, path string) error { return d.Move(ctx, path, target) })
	if err != nil {
		return err
	}
	return c.done(s, map[string]string{"from": c.Address, "path": c.Target})
}

type wsGrep struct {
	Pattern string `arg:"" help:"Regular expression (RE2). Prefix (?i) to ignore case."`
	address
	Include []string `sep:"none" placeholder:"GLOB" help:"Search only files that match. Can be repeated."`
	Exclude []string `sep:"none" placeholder:"GLOB" help:"Skip files that match. Can be repeated."`
	Context uint32   `short:"C" placeholder:"LINES" help:"Show this many lines before and after, at most ${maxContext}."`
	asJSON
}

// Help implements kong.HelpProvider.
func (*wsGrep) Help() string {
	return `Each match is a line: path, line number, text. Context lines have "-" instead of ":". The exit code is 0 even without a match.

Examples:

    stile ws grep 'TODO|FIXME' notes
    stile ws grep -C 2 'TODO|FIXME' notes --include '*.ts'`
}

// wsMatch is a match as JSON has it.
type wsMatch struct {
	Path   string   `json:"path"`
	Line   uint32   `json:"line"`
	Column uint32   `json:"column"`
	Text   string   `json:"text"`
	Before []string `json:"before,omitempty"`
	After  []string `json:"after,omitempty"`
}

// Run implements the command.
func (c *wsGrep) Run(ctx context.Context, s *streams) error {
	search := workspace.Search{Include: c.Include, Exclude: c.Exclude, Context: c.Context}
	all := struct {
		Matches []wsMatch `json:"matches"`
		Partial uint32    `json:"partial"`
	}{Matches: []wsMatch{}}
	err := c.below(ctx, func(d *workspace.Directory) error {
		return eachPage(func(cursor *string) (*string, error) {
			page, err := d.Grep(ctx, c.Pattern, search, pageSize, cursor)
			if err != nil {
				return nil, err
			}
			all.Partial += page.Partial
			for _, m := range page.Matches {
				if c.JSON {
					all.Matches = append(all.Matches, wsMatch(m))
				} else if err := s.lines(matchLines(m)); err != nil {
					return nil, err
				}
			}
			return page.Cursor, nil
		})
	})
	switch {
	case err != nil:
		return err
	case c.JSON:
		return printJSON(s.out, all)
	case all.Partial > 0:
		s.say("stile: %s not searched completely: the search skips binary files and the ends of very long lines", counted(all.Partial, "file"))
	}
	return nil
}

func matchLines(m workspace.Match) []string {
	var lines []string
	for i, text := range m.Before {
		lines = append(lines, fmt.Sprintf("%s-%d-%s", m.Path, int(m.Line)-len(m.Before)+i, text))
	}
	lines = append(lines, fmt.Sprintf("%s:%d:%s", m.Path, m.Line, m.Text))
	for i, text := range m.After {
		lines = append(lines, fmt.Sprintf("%s-%d-%s", m.Path, int(m.Line)+1+i, text))
	}
	return lines
}

// below opens the directory at an address until use returns.
func (a address) below(ctx context.Context, use func(*workspace.Directory) error) error {
	return a.open(ctx, func(d *workspace.Directory, path string) error {
		if path != "" {
			var err error
			if d, err = d.Subdirectory(ctx, path); err != nil {
				return err
			}
		}
		return use(d)
	})
}

type wsFind struct {
	Glob string `arg:"" help:"Glob, like '*.md' for names or 'src/**/*.ts' for paths."`
	address
	asJSON
}

// Help implements kong.HelpProvider.
func (*wsFind) Help() string {
	return `Examples:

    stile ws find '**/*.md' notes`
}

// Run implements the command.
func (c *wsFind) Run(ctx context.Context, s *streams) error {
	return c.below(ctx, func(d *workspace.Directory) error {
		paths := []string{}
		err := eachPage(func(cursor *string) (*string, error) {
			page, err := d.Find(ctx, c.Glob, pageSize, cursor)
			paths = append(paths, page.Paths...)
			return page.Cursor, err
		})
		if err != nil {
			return err
		}
		if c.JSON {
			return printJSON(s.out, map[string][]string{"paths": paths})
		}
		return s.lines(paths)
	})
}

type wsHistory struct {
	address
	asJSON
}

// Help implements kong.HelpProvider.
func (*wsHistory) Help() string {
	return `Examples:

    stile ws history notes/today.md`
}

// wsRevision is a revision as JSON has it.
type wsRevision struct {
	ID       uint64    `json:"id"`
	Size     uint64    `json:"size"`
	Modified time.Time `json:"modified"`
}

// Run implements the command.
func (c *wsHistory) Run(ctx context.Context, s *streams) error {
	if err := c.isFile(); err != nil {
		return err
	}
	return c.open(ctx, func(d *workspace.Directory, path string) error {
		all, err := d.History(ctx, path)
		if err != nil {
			return err
		}
		revisions := make([]wsRevision, len(all))
		rows := make([][]string, len(all))
		for i, r := range all {
			revisions[i] = wsRevision{r.ID, r.Size, moment(r.Modified)}
			rows[i] = []string{fmt.Sprint(r.ID), fmt.Sprint(r.Size), when(revisions[i].Modified)}
		}
		if c.JSON {
			return printJSON(s.out, map[string][]wsRevision{"revisions": revisions})
		}
		_, err = io.WriteString(s.out, table("", rows))
		return err
	})
}

type wsRestore struct {
	address
	Revision uint64 `arg:"" help:"Id of the revision; stile ws history lists them."`
	asJSON
}

// Help implements kong.HelpProvider.
func (*wsRestore) Help() string {
	return `Examples:

    stile ws history notes/today.md
    stile ws restore notes/today.md 17`
}

// Run implements the command.
func (c *wsRestore) Run(ctx context.Context, s *streams) error {
	if err := c.isFile(); err != nil {
		return err
	}
	err := c.open(ctx, func(d *workspace.Directory, path string) error { return d.Restore(ctx, path, c.Revision) })
	if err != nil {
		return err
	}
	return c.done(s, map[string]any{"path": c.Address, "revision": c.Revision})
}

type wsForget struct {
	Workspace []string `arg:"" complete:"workspace" help:"Workspaces, as stile ws ls prints them."`
	Yes       bool     `help:"Do not ask."`
	asJSON
}

// Help implements kong.HelpProvider.
func (*wsForget) Help() string {
	return `The files cannot be restored. Workspaces of an extension stay when the extension is removed.

Examples:

    stile ws forget notes
    stile ws forget agent.claude.list/files --yes`
}

// Run implements the command.
func (c *wsForget) Run(ctx context.Context, s *streams) error {
	return withStore(ctx, func(store *workspace.Store) error {
		for _, name := range c.Workspace {
			if has, err := store.Has(ctx, name); err != nil {
				return err
			} else if !has {
				return abi.Errorf(abi.CodeNotFound, "workspace %q; stile ws ls lists the workspaces", name)
			}
		}
		if !c.Yes {
			show := func() (string, error) { return strings.Join(c.Workspace, "\n") + "\n", nil }
			if err := s.asks(ctx, show, "Remove these with their history, for ever?", "use --yes to remove without a question"); err != nil {
				return err
			}
		}
		for _, name := range c.Workspace {
			if err := store.Forget(ctx, name); err != nil {
				return err
			}
		}
		if c.JSON {
			return printJSON(s.out, map[string][]string{"removed": c.Workspace})
		}
		return s.lines(c.Workspace)
	})
}

type wsBackup struct {
	File string `arg:"" help:"File to write; it must not exist. To restore, replace workspace.db in STILE_HOME with it while nothing runs."`
	asJSON
}

// Help implements kong.HelpProvider.
func (*wsBackup) Help() string {
	return `Examples:

    stile ws backup workspaces.db`
}

// Run implements the command.
func (c *wsBackup) Run(ctx context.Context, s *streams) error {
	file := cmp.Or(c.File, "-")
	if file == "-" {
		return usagef("a backup cannot go to stdout; name a file (./- for a file called -)")
	}
	if _, err := os.Lstat(file); err == nil {
		return usagef("%s exists, and a backup never replaces a file; name another one", file)
	}
	file, err := filepath.Abs(file)
	if err != nil {
		return err
	}
	err = withStore(ctx, func(s *workspace.Store) error { return s.Backup(ctx, file) })
	if at, ok := errors.AsType[*fs.PathError](err); ok && at.Path == file && at.Op == "open" {
		err = &usageError{err}
	}
	if err != nil {
		return err
	}
	return c.done(s, map[string]string{"file": c.File})
}
