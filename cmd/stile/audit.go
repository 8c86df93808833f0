package main

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/stilehost/stile/extension/lifecycle"
	"github.com/stilehost/stile/internal/atomicfile"
)

type auditCommand struct {
	List    auditList    `cmd:"" default:"withargs" help:"List entries, the newest first."`
	Verify  auditVerify  `cmd:"" help:"Check that no entry was altered or removed."`
	Archive auditArchive `cmd:"" help:"Move old entries to a file."`
}

// Help implements kong.HelpProvider.
func (*auditCommand) Help() string {
	return `Every build, decision and call of a stored extension is written to a log. stile run and stile build work on files and add no entry. Each entry holds the hash of the one before. When calls take more than limits.auditedCalls of policy.json, the oldest calls go, and an entry "trim" says how many. Decisions stay. stile audit without a command lists entries; stile audit list --help has its flags.

Examples:

    stile audit
    stile audit list --limit 20 --json
    stile audit verify
    stile audit archive audit-2026.jsonl --before 2160h`
}

type auditList struct {
	Limit int `placeholder:"N" default:"100" help:"Maximum number of entries to list. Default: ${default}."`
	asJSON
}

// Help implements kong.HelpProvider.
func (*auditList) Help() string {
	return `Examples:

    stile audit list --limit 20 --json`
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
				detail = a.Line + ": " + detail
			}
			by := a.By
			if a.Via != "" {
				by += " (" + a.Via + ")"
			}
			rows = append(rows, []string{
				fmt.Sprint(a.ID), when(a.At), line(a.Kind, 20), line(by, 100), line(a.Scope, 80), line(a.Extension, 64), line(lifecycle.ShortDigest(a.Digest), 12),
				line(detail, 200),
			})
		}
		_, err = io.WriteString(s.out, table("", rows))
		return err
	})
}

type auditVerify struct {
	Archives []string `arg:"" optional:"" name:"archive" help:"Files that stile audit archive wrote, all of them, the oldest first."`
	asJSON
}

// Help implements kong.HelpProvider.
func (*auditVerify) Help() string {
	return `The command prints the number of entries and the hash of the last one. Keep that hash elsewhere to notice when somebody replaces the whole log. The exit code is 1 if an entry was altered, removed or added. To check archived entries too, name their files.

Examples:

    stile audit verify
    stile audit verify --json
    stile audit verify audit-2025.jsonl audit-2026.jsonl`
}

// Run implements the command.
func (c *auditVerify) Run(ctx context.Context, s *streams) error {
	archives := make([]io.Reader, len(c.Archives))
	for i, name := range c.Archives {
		f, err := openFile(name)
		if err != nil {
			return err
		}
		defer func() { _ = f.Close() }() // it was only read
		archives[i] = f
	}
	return withExtensions(ctx, s, func(e *extensions) error {
		count, last, err := e.VerifyAudit(ctx, archives...)
		if err != nil {
			return err
		}
		archived, _, err := e.Archived(ctx)
		if err != nil {
			return err
		}
		if c.JSON {
			return printJSON(s.out, struct {
				Entries  int64  `json:"entries"`
				Archived int64  `json:"archived"`
				Hash     string `json:"hash"`
			}{count, archived, hex.EncodeToString(last)})
		}
		text := fmt.Sprintf("%s, intact; the last one has the hash %x\n", counted(count, "entry"), last)
		if archived > 0 && len(archives) == 0 {
			text += fmt.Sprintf("%d of them are in archives; name the archives to check those too\n", archived)
		}
		_, err = io.WriteString(s.out, text)
		return err
	})
}

// archiveAge is the age from which entries are archived by default.
const archiveAge = 90 * 24 * time.Hour

type auditArchive struct {
	File   string `arg:"" help:"File to write. It must not exist."`
	Before string `placeholder:"TIME" default:"${archiveAge}" help:"Move entries older than this: a duration like 24h, a date like 2026-01-31, or a time like 2026-01-31T12:00:00Z. Default: ${archiveDays} days ago. Entries of the last ${minArchiveAge} stay."`
	asJSON
}

// Help implements kong.HelpProvider.
func (*auditArchive) Help() string {
	return `Archive calls to keep them: the log drops the oldest ones when they take more than limits.auditedCalls of policy.json. The file gets one line of JSON for each entry, with the hashes that stile audit verify needs to check the archive together with the log. Entries leave the log once the file is on disk.

Examples:

    stile audit archive audit-2026-11.jsonl
    stile audit archive audit-2025.jsonl --before 2026-01-01`
}

// Run implements the command.
func (c *auditArchive) Run(ctx context.Context, s *streams) error {
	before, err := parseTime("--before", c.Before, time.Now())
	if err != nil {
		return err
	}
	return withExtensions(ctx, s, func(e *extensions) (err error) {
		by, err := e.author()
		if err != nil {
			return err
		}
		f, err := os.OpenFile(c.File, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		if err != nil {
			return &usageError{err}
		}
		if err := atomicfile.SyncFolder(atomicfile.Machine{}, c.File); err != nil { // the file's name must be durable too
			return errors.Join(err, f.Close(), os.Remove(c.File))
		}
		moved, err := e.ArchiveAudit(ctx, before, lifecycle.Decision{By: by, Via: s.via()}, f)
		closed := f.Close()
		if err != nil || moved == 0 { // otherwise only the file has the entries
			err = errors.Join(err, os.Remove(c.File))
		}
		if err = errors.Join(err, closed); err != nil {
			return err
		}
		if c.JSON {
			return printJSON(s.out, map[string]int64{"moved": moved})
		}
		text := fmt.Sprintf("%s moved to %s\n", counted(moved, "entry"), line(c.File, 200))
		if moved == 0 {
			text = "no entry is old enough\n"
		}
		_, err = io.WriteString(s.out, text)
		return err
	})
}
