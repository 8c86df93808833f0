package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/stilehost/stile/extension"
	"github.com/stilehost/stile/extension/lifecycle"
)

type extSearch struct {
	Words []string `arg:"" help:"Words of names, tags and descriptions."`
	scopeFlag
	Limit int `placeholder:"N" default:"20" help:"Maximum number of entries to list. Default: ${default}."`
	asJSON
}

// Help implements kong.HelpProvider.
func (*extSearch) Help() string {
	return `The result has tools that you can call, the best first. It leaves out tools that a narrower scope hides; stile ext list shows them.

Examples:

    stile ext search open issue
    stile ext search weather --json`
}

// Run implements the command.
func (c *extSearch) Run(ctx context.Context, s *streams) error {
	return withExtensions(ctx, s, func(e *extensions) error {
		viewer, err := c.viewer(e.settings)
		if err != nil {
			return err
		}
		found, err := e.Search(ctx, viewer, strings.Join(c.Words, " "), c.Limit)
		if err != nil {
			return err
		}
		if c.JSON {
			return printJSON(s.out, map[string][]foundJSON{"tools": foundOf(found)})
		}
		if len(found) == 0 {
			s.say("stile: no tool in this scope matches; stile ext list lists the extensions")
		}
		_, err = io.WriteString(s.out, foundText(found))
		return err
	})
}

type foundJSON struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Tags        []string        `json:"tags"`
	Extension   string          `json:"extension"`
	Scope       extension.Scope `json:"scope"`
}

func foundOf(found []lifecycle.Found) []foundJSON {
	list := make([]foundJSON, len(found))
	for i, f := range found {
		list[i] = foundJSON{f.Name, f.Description, append([]string{}, f.Tags...), f.Extension, f.Scope}
	}
	return list
}

func foundText(found []lifecycle.Found) string {
	rows := make([][]string, len(found))
	for i, f := range found {
		rows[i] = []string{f.Name, f.Scope.String(), tagsText(f.Tags), line(strings.ReplaceAll(f.Description, "\n", " - "), 100)}
	}
	return table("", rows)
}

type extPrune struct {
	scopeFlag
	Unused time.Duration `default:"${unused}" placeholder:"DURATION" help:"Remove extensions that were not used for this long. Default: ${default}."`
	DryRun bool          `help:"Remove nothing; say what would be removed."`
	Yes    bool          `help:"Do not ask."`
	asJSON
}

// Help implements kong.HelpProvider.
func (*extPrune) Help() string {
	return fmt.Sprintf(`An extension is removed when none of its tools was called for a long time, or when most of at least %d calls failed. Its versions stay in the history.

Examples:

    stile ext prune --dry-run
    stile ext prune --scope agent:claude --unused 168h --yes`, lifecycle.PrunedCalls)
}

// Run implements the command.
func (c *extPrune) Run(ctx context.Context, s *streams) error {
	if c.Unused < 0 {
		return usagef("--unused must not be negative")
	}
	return c.inScope(ctx, s, func(e *extensions, scope extension.Scope) error {
		all, err := e.Prune(ctx, scope, c.Unused)
		if err != nil {
			return err
		}
		type prunable struct {
			releaseJSON
			Why string `json:"why"`
		}
		rows := make([][]string, len(all))
		for i, p := range all {
			rows[i] = []string{p.Release.Name, p.Release.Scope.String(), line(p.Reason, 200)}
		}
		text := table("", rows)
		if !c.DryRun && len(all) > 0 {
			if err := c.remove(ctx, s, e, all, text); err != nil {
				return err
			}
		}
		if c.JSON {
			list := make([]prunable, len(all))
			for i, p := range all {
				list[i] = prunable{releaseOf(p.Release), p.Reason}
			}
			return printJSON(s.out, map[string]any{"pruned": list, "dryRun": c.DryRun})
		}
		switch {
		case len(all) == 0:
			s.say("stile: there is nothing to remove in %s", scope)
		case !c.DryRun:
			for i, p := range all {
				rows[i] = []string{p.Release.Name, p.Release.Scope.String(), "removed: " + line(p.Reason, 200)}
			}
			text = table("", rows)
		}
		_, err = io.WriteString(s.out, text)
		return err
	})
}

// remove removes extensions, and replaces them in the list by the outcome.
func (c *extPrune) remove(ctx context.Context, s *streams, e *extensions, all []lifecycle.Prunable, text string) error {
	if !c.Yes {
		show := func() (string, error) { return text, nil }
		if err := s.asks(ctx, show, "Remove these?", "use --yes to remove without a question, or --dry-run to list"); err != nil {
			return err
		}
	}
	by, err := e.author()
	if err != nil {
		return err
	}
	for i, p := range all {
		d := lifecycle.Decision{By: by, Via: s.via(), Reason: "pruned: " + p.Reason}
		if all[i].Release, err = e.Remove(ctx, p.Release.Scope, p.Release.Name, d); err != nil {
			return err
		}
	}
	return nil
}
