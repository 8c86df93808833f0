package main

import (
	"context"
	"encoding/hex"
	"fmt"
	"io"
	"time"

	"github.com/stilehost/stile/extension/lifecycle"
)

type auditCommand struct {
	List   auditList   `cmd:"" default:"withargs" help:"List what was done, the newest first."`
	Verify auditVerify `cmd:"" help:"Check that no entry was changed or taken away."`
}

// Help implements kong.HelpProvider.
func (*auditCommand) Help() string {
	return `Every build, decision and call is written to a log of which each entry holds the hash of the one before.

Examples:

    stile audit
    stile audit list --limit 20 --json
    stile audit verify`
}

type auditList struct {
	Limit int  `placeholder:"N" default:"100" help:"The most that are listed. Default: ${default}."`
	JSON  bool `name:"json" help:"Print as JSON."`
}

// Run implements the command.
func (c *auditList) Run(ctx context.Context, s *streams) error {
	return withExtensions(ctx, s, func(e *extensions) error {
		entries, err := e.Audit(ctx, c.Limit)
		if err != nil {
			return err
		}
		for i := range entries {
			entries[i].At = entries[i].At.UTC()
		}
		if c.JSON {
			return printJSON(s.out, map[string][]lifecycle.Entry{"entries": append([]lifecycle.Entry{}, entries...)})
		}
		rows := [][]string{{"ENTRY", "AT", "WHAT", "BY", "SCOPE", "EXTENSION", "DIGEST", "DETAIL"}}
		for _, a := range entries {
			detail := a.Reason
			if a.Kind == "call" {
				detail = a.Tool + " " + a.Outcome
			}
			if a.Line != "" {
				detail = a.Line + " " + detail
			}
			by := a.By
			if a.Via != "" {
				by += " (" + a.Via + ")"
			}
			rows = append(rows, []string{
				fmt.Sprint(a.ID), a.At.Format(time.RFC3339), line(a.Kind, 20), line(by, 100), line(a.Scope, 80), line(a.Extension, 64), line(shortDigest(a.Digest), 12),
				line(detail, 200),
			})
		}
		_, err = io.WriteString(s.out, table("", rows))
		return err
	})
}

type auditVerify struct {
	JSON bool `name:"json" help:"Print as JSON."`
}

// Help implements kong.HelpProvider.
func (*auditVerify) Help() string {
	return `It prints how many entries there are, and the hash of the last one. Who keeps that hash elsewhere also sees when the whole log was replaced. The exit code is 1 when an entry is changed, missing or too many.

Examples:

    stile audit verify
    stile audit verify --json`
}

// Run implements the command.
func (c *auditVerify) Run(ctx context.Context, s *streams) error {
	return withExtensions(ctx, s, func(e *extensions) error {
		count, last, err := e.VerifyAudit(ctx)
		if err != nil {
			return err
		}
		if c.JSON {
			return printJSON(s.out, struct {
				Entries int64  `json:"entries"`
				Hash    string `json:"hash"`
			}{count, hex.EncodeToString(last)})
		}
		_, err = fmt.Fprintf(s.out, "%d entries, sound; the last has the hash %x\n", count, last)
		return err
	})
}
