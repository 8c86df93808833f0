package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/stilehost/stile/extension"
	"github.com/stilehost/stile/extension/lifecycle"
)

type extForget struct {
	Author string        `placeholder:"AUTHOR" help:"Drop only versions by this author: agent:NAME or user:NAME. Default: by all authors."`
	Ended  time.Duration `default:"720h" placeholder:"DURATION" help:"Drop versions whose last decision is older than this. Default: ${default}."`
	DryRun bool          `help:"Drop nothing; say what would be dropped."`
	Yes    bool          `help:"Do not ask."`
	asJSON
}

// Help implements kong.HelpProvider.
func (*extForget) Help() string {
	return `The command drops the source and the component of versions that are neither active nor wait for approval. Their digests and the decisions about them stay in the history and in the audit log. Nobody can read these versions again, or return to them.

Stile drops components by itself when versions take more than limits.storedPerAuthor or limits.stored in policy.json, and sources of versions that were never active. It keeps the source of all that was active, because that is the evidence of what ran.

Examples:

    stile ext forget --dry-run
    stile ext forget --author agent:claude --ended 2160h`
}

// Run implements the command.
func (c *extForget) Run(ctx context.Context, s *streams) error {
	if c.Ended < 0 {
		return usagef("--ended must not be negative")
	}
	if c.Author != "" {
		if _, err := extension.ParseScope(c.Author); err != nil {
			return usagef("--author: %w", err)
		}
	}
	return withExtensions(ctx, s, func(e *extensions) error {
		all, err := e.Ended(ctx, c.Author, time.Now().Add(-c.Ended))
		if err != nil {
			return err
		}
		text := endedTable(all)
		if !c.DryRun && len(all) > 0 {
			if err := c.forget(ctx, s, e, all, text); err != nil {
				return err
			}
		}
		if c.JSON {
			return printJSON(s.out, map[string]any{"forgotten": endedOf(all), "dryRun": c.DryRun})
		}
		if len(all) == 0 {
			s.say("stile: there is nothing to drop")
			return nil
		}
		_, err = io.WriteString(s.out, text)
		return err
	})
}

// forget drops versions.
func (c *extForget) forget(ctx context.Context, s *streams, e *extensions, all []lifecycle.Ended, text string) error {
	if !c.Yes {
		show := func() (string, error) { return text, nil }
		if err := s.asks(ctx, show, "Drop these for ever?", "use --yes to drop without a question, or --dry-run to list"); err != nil {
			return err
		}
	}
	by, err := e.author()
	if err != nil {
		return err
	}
	for _, v := range all {
		if _, err := e.Forget(ctx, v.Digest, lifecycle.Decision{By: by, Via: s.via()}); err != nil {
			return err
		}
	}
	return nil
}

type endedJSON struct {
	Name    string    `json:"name"`
	Digest  string    `json:"digest"`
	Author  string    `json:"author"`
	Decided time.Time `json:"decided"`
	Bytes   int64     `json:"bytes"`
}

func endedOf(all []lifecycle.Ended) []endedJSON {
	list := make([]endedJSON, len(all))
	for i, v := range all {
		list[i] = endedJSON{v.Name, v.Digest, v.Author, v.Decided.UTC(), v.Bytes}
	}
	return list
}

func endedTable(all []lifecycle.Ended) string {
	rows := [][]string{{"EXTENSION", "DIGEST", "BY", "DECIDED", "SIZE"}}
	for _, v := range all {
		rows = append(rows, []string{line(v.Name, 64), lifecycle.ShortDigest(v.Digest), line(v.Author, 60), when(v.Decided), about(v.Bytes)})
	}
	return table("", rows)
}

// droppedText says what the store no longer has of a version.
func droppedText(r lifecycle.Release) string {
	if r.Dropped == "" {
		return ""
	}
	return fmt.Sprintf(", %s dropped", r.Dropped)
}
