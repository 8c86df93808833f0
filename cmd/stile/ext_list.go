package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/stilehost/stile/extension"
	"github.com/stilehost/stile/extension/lifecycle"
)

type extList struct {
	scopeFlag
	All bool   `help:"List the extensions of all scopes."`
	Tag string `placeholder:"TAG" help:"List only extensions with this tag."`
	asJSON
}

// Help implements kong.HelpProvider.
func (*extList) Help() string {
	return `The list has the scope's own extensions and those of wider scopes. If two have a tool of the same name, the narrower scope's tool is called, and the state of the other says what hides it. Requests for approval are listed for all scopes and tags.

Examples:

    stile ext list
    stile ext list --scope agent:claude
    stile ext list --all
    stile ext list --tag weather
    stile ext list --json`
}

// Run implements the command.
func (c *extList) Run(ctx context.Context, s *streams) error {
	return withExtensions(ctx, s, func(e *extensions) error {
		all, err := c.list(ctx, e)
		if err != nil {
			return err
		}
		if c.Tag != "" {
			all = slices.DeleteFunc(all, func(one lifecycle.Extension) bool { return !slices.Contains(one.Tags, c.Tag) })
		}
		pending, err := e.Pending(ctx)
		if err != nil {
			return err
		}
		if c.JSON {
			list := make([]extensionJSON, len(all))
			for i, one := range all {
				list[i] = extensionOf(one)
			}
			return printJSON(s.out, struct {
				Extensions []extensionJSON `json:"extensions"`
				// Pending lists what waits for a person, in all scopes.
				Pending []releaseJSON `json:"pending"`
			}{list, releasesOf(pending)})
		}
		rows := [][]string{{"EXTENSION", "VERSION", "SCOPE", "STATE", "TOOLS", "TAGS", "DESCRIPTION"}}
		for _, one := range all {
			rows = append(rows, []string{one.Name, one.Version, one.Scope.String(), stateText(one), fmt.Sprint(len(one.Tools)), tagsText(one.Tags), line(one.Description, maxListed)})
		}
		text := fit(table("", rows), s.columns())
		if len(pending) > 0 {
			rows = [][]string{{"REQUEST", "EXTENSION", "SCOPE", "DIGEST", "BY", "ASKED"}}
			for _, r := range pending {
				rows = append(rows, []string{fmt.Sprint(r.ID), r.Name, r.Scope.String(), lifecycle.ShortDigest(r.Digest), line(r.Author, 60), when(r.Asked)})
			}
			text += "\nWaiting for approval:\n" + table("", rows)
		}
		_, err = io.WriteString(s.out, text)
		return err
	})
}

// list lists what the scope sees, or everything.
func (c *extList) list(ctx context.Context, e *extensions) ([]lifecycle.Extension, error) {
	if c.All {
		return e.ListAll(ctx)
	}
	viewer, err := c.viewer(e.settings)
	if err != nil {
		return nil, err
	}
	return e.List(ctx, viewer)
}

// tagsText joins tags into a line, which has room for as many tags as a manifest can have.
func tagsText(tags []string) string { return line(strings.Join(tags, " "), 1000) }

// stateText describes the state of an extension in a few words.
func stateText(e lifecycle.Extension) string {
	if e.NoSource {
		e.NoSource = false
		return stateText(e) + ", no source"
	}
	switch {
	case e.Problem != "":
		return "broken: " + line(e.Problem, 200)
	case e.Active == nil:
		return "waits for approval"
	case e.Active.Quarantine != "":
		return "in quarantine: " + line(e.Active.Quarantine, 200)
	case e.Pending != nil:
		return "active, another version waits" + hiddenText(e.Tools)
	default:
		return "active" + hiddenText(e.Tools)
	}
}

// hiddenText names the scopes whose tools are called instead of these.
func hiddenText(tools []lifecycle.ToolState) string {
	var hidden int
	var by []string
	for _, t := range tools {
		if t.ShadowedBy == nil {
			continue
		}
		hidden++
		if scope := t.ShadowedBy.String(); !slices.Contains(by, scope) {
			by = append(by, scope)
		}
	}
	switch {
	case hidden == 0:
		return ""
	case hidden < len(tools):
		return fmt.Sprintf(", %d of %d tools hidden by %s", hidden, len(tools), strings.Join(by, " and "))
	default:
		return ", hidden by " + strings.Join(by, " and ")
	}
}

type extHistory struct {
	Name string `arg:"" complete:"extension" help:"Name of the extension."`
	scopeFlag
	asJSON
}

// Help implements kong.HelpProvider.
func (*extHistory) Help() string {
	return `The list has each request for a version in the scope, the newest first, with the decision and who made it. To make room, Stile drops the component of a version that is no longer active, and builds it again when you return to the version. Of a version that was never active it drops the source too.

Examples:

    stile ext history github
    stile ext history github --scope shared --json`
}

// Run implements the command.
func (c *extHistory) Run(ctx context.Context, s *streams) error {
	return c.inScope(ctx, s, func(e *extensions, scope extension.Scope) error {
		all, err := e.History(ctx, scope, c.Name)
		if err != nil {
			return err
		}
		if c.JSON {
			return printJSON(s.out, map[string][]releaseJSON{"releases": releasesOf(all)})
		}
		rows := [][]string{{"REQUEST", "DIGEST", "STATE", "ASKED", "BY", "DECIDED BY", "REASON"}}
		revoked := map[string]bool{}
		for _, r := range all {
			state := string(r.State)
			switch {
			case r.State == lifecycle.Revoked:
				revoked[r.Digest] = true
			case r.State == lifecycle.Superseded && revoked[r.Digest]:
				state += ", revoked later"
			}
			state += droppedText(r)
			by := r.By
			if r.Line != "" {
				by += " " + r.Line
			}
			rows = append(rows, []string{
				fmt.Sprint(r.ID), lifecycle.ShortDigest(r.Digest), state, when(r.Asked), line(r.Author, 60), line(by, 100), line(r.Reason, 200),
			})
		}
		_, err = io.WriteString(s.out, table("", rows))
		return err
	})
}
