package main

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/dustin/go-humanize"

	"github.com/stilehost/stile/extension"
	"github.com/stilehost/stile/extension/inspect"
	"github.com/stilehost/stile/extension/lifecycle"
	"github.com/stilehost/stile/internal/printable"
	"github.com/stilehost/stile/toolchain/npm"
)

// reviewText is what a person reads before a decision. Everything that an author chose is indented or on one line, so that it cannot
// look like a line of ours.
func (e *extensions) reviewText(ctx context.Context, r lifecycle.Release, code bool) (string, error) {
	review, err := e.Review(ctx, r.ID)
	if err != nil {
		return "", err
	}
	text := versionText(review, false)
	if code {
		text += section("Code", indented(review.Code))
	}
	return text + "\n", nil
}

// users says who can use the extensions of a scope.
func users(s extension.Scope) string {
	switch s.Kind {
	case extension.Agent:
		return "only this agent"
	case extension.User:
		return "only this user, with their agents,"
	default:
		return "everybody"
	}
}

// full means that no text is cut.
func versionText(r lifecycle.Review, full bool) string {
	v := r.Version
	rows := [][]string{
		{"extension", r.Release.Name + " " + v.Manifest.Version},
		{"does", line(v.Manifest.Description, 1000)},
		{"scope", r.Release.Scope.String() + ", so " + users(r.Release.Scope) + " can use it"},
		{"request", fmt.Sprintf("%d, %s, by %s on %s", r.Release.ID, r.Release.State, line(r.Release.Author, 80), when(r.Release.Asked))},
		{"digest", r.Release.Digest + ", which names exactly this code, manifest and tools"},
	}
	if r.Release.Reason != "" {
		rows = append(rows, []string{"reason", line(r.Release.Reason, 500)})
	}
	if r.Release.Signer != "" {
		rows = append(rows, []string{"signed by", line(r.Release.Signer, 500)})
	}
	if !v.HasSource() {
		rows = append(rows, []string{"source", "none to read: what you approve is the bytes of a component of " + about(v.Report.ComponentSize)})
	}
	if len(v.Manifest.Tags) > 0 {
		rows = append(rows, []string{"tags", tagsText(v.Manifest.Tags)})
	}
	if r.Before != nil {
		rows = append(rows, []string{"active", r.Before.Manifest.Version + " " + lifecycle.ShortDigest(r.Before.Digest)})
	}
	if r.Release.Quarantine != "" {
		rows = append(rows, []string{"quarantine", line(r.Release.Quarantine, 500)})
	}
	var b strings.Builder
	b.WriteString(table("", rows))
	b.WriteString(section("It may", may(r.Granted, v)))
	if len(v.Manifest.Durable) > 0 {
		b.WriteString(section("It goes on without its caller", durableText(v.Manifest.Durable)))
	}
	if len(r.Vars) > 0 {
		b.WriteString(section("Vars, which stile ext config sets and the code reads as data", varTable("    ", r.Vars)))
	}
	if warnings := v.Warnings(); len(warnings) > 0 {
		b.WriteString(section("Decide whether you trust its packages", indented(strings.Join(warnings, "\n"))))
	}
	if r.Before != nil {
		changes := changesText(r.Changes)
		if changes == "" {
			changes = "    nothing: it asks for the same authority\n"
		}
		b.WriteString(section("New against the active version", changes))
	}
	if len(r.Cut) > 0 {
		b.WriteString(section("policy.json takes away", changesText(r.Cut)))
	}
	b.WriteString(section("Tools, with all that an agent reads of them", toolTexts(r, full)))
	reported := "What the code would like to do"
	if !v.HasSource() {
		reported = "What is known of the component"
	}
	b.WriteString(section(reported, indented(v.Report.Text())))
	if len(v.Packages) > 0 {
		packages := [][]string{{"PACKAGE", "VERSION", "LICENCE", "SIZE", "INTEGRITY", "NOTES"}}
		for _, p := range v.Packages {
			packages = append(packages, []string{line(p.Name, 220), line(p.Version, 80), line(p.LicenseText(), 200), about(p.Size), line(p.Integrity, 100), cell(printable.Text(strings.Join(p.Warnings, " ")))})
		}
		b.WriteString(section("Packages", table("    ", packages)))
	}
	return b.String()
}

const (
	maxToolText  = 2 << 10  // bytes of one text of a tool
	maxToolTexts = 32 << 10 // bytes of the texts of all tools
)

// toolTexts returns the texts of all tools. A text that does not fit is replaced by its size and digest, and how to see it.
func toolTexts(r lifecycle.Review, full bool) string {
	var b strings.Builder
	used, cut, more, rest := 0, false, 0, sha256.New()
	for _, t := range r.Version.Tools {
		name := "    " + extension.ToolName(r.Release.Name, t.Name)
		for _, text := range extension.ToolTexts(t) {
			row := text.Text
			if text.Place != "" {
				row = strings.TrimSuffix(text.Place+": "+row, ": ")
			}
			if used += len(row); !full && used > maxToolTexts {
				more++
				_, _ = io.WriteString(rest, row+"\n")
				continue
			}
			if !full && len(row) > maxToolText {
				row, cut = extension.Shorten(row, maxToolText), true
			}
			b.WriteString(name + "   " + row + "\n")
			name = "     "
		}
	}
	if more > 0 {
		fmt.Fprintf(&b, "    [and %s: %s bytes of texts in all, sha256 of the others %.16x]\n", counted(more, "more text"), humanize.Comma(int64(used)), rest.Sum(nil))
	}
	if cut || more > 0 {
		fmt.Fprintf(&b, "    All of them are in: stile ext show %d --full\n", r.Release.ID)
	}
	return b.String()
}

// may says in plain words what bindings allow the author's code and the code of packages to do.
func may(bindings []extension.Binding, v *lifecycle.Version) string {
	if len(bindings) == 0 {
		return "    " + v.Computes() + "\n"
	}
	// Not a table, which would cut a long line: what a person grants is shown whole. A manifest bounds it.
	width := 0
	for _, b := range bindings {
		width = max(width, len(b.Name))
	}
	var lines strings.Builder
	for _, b := range bindings {
		name := b.Name
		for _, text := range extension.Describe(b) {
			fmt.Fprintf(&lines, "    %-*s   %s\n", width, name, printable.Line(text))
			name = ""
		}
	}
	return lines.String()
}

func durableText(all []extension.Durable) string {
	var b strings.Builder
	for _, d := range all {
		b.WriteString("    " + printable.Line(d.String()) + "\n")
	}
	return b.String()
}

func changesText(changes []extension.Change) string {
	var b strings.Builder
	for _, c := range changes {
		fmt.Fprintf(&b, "    %s (%s)\n", c.Binding, c.What)
		for _, text := range c.Lines {
			b.WriteString("      " + cell(text) + "\n")
		}
	}
	return b.String()
}

func section(title, text string) string { return "\n" + title + ":\n" + text }

// indented puts a stranger's text on its own indented lines.
func indented(text string) string {
	text = strings.TrimRight(printable.Text(text), "\n")
	if text == "" {
		return "    nothing\n"
	}
	return "    " + strings.ReplaceAll(text, "\n", "\n    ") + "\n"
}

// chosen is a version of an extension.
type chosen struct {
	Name string `arg:"" complete:"extension" help:"Name of the extension, or number of a request."`
	scopeFlag
}

// release finds it: the active release of a name, or else the waiting one.
func (c chosen) release(ctx context.Context, e *extensions) (lifecycle.Release, error) {
	if id, err := strconv.ParseInt(c.Name, 10, 64); err == nil {
		return e.Release(ctx, id)
	}
	viewer, err := c.viewer(e.settings)
	if err != nil {
		return lifecycle.Release{}, err
	}
	return e.Find(ctx, viewer, c.Name)
}

// chosenVersion is a version of any age.
type chosenVersion struct {
	chosen
	Digest string `placeholder:"DIGEST" help:"Another version: the first characters of its digest, at least ${minDigest}."`
}

func (c chosenVersion) version(ctx context.Context, e *extensions) (*lifecycle.Version, error) {
	r, err := c.release(ctx, e)
	if err != nil {
		return nil, err
	}
	if c.Digest == "" {
		return e.Version(ctx, r.Digest)
	}
	v, err := e.Version(ctx, c.Digest)
	if err == nil && v.Manifest.Name != r.Name {
		err = &lifecycle.NotFoundError{What: fmt.Sprintf("version %s of %s", lifecycle.ShortDigest(v.Digest), r.Name)}
	}
	return v, err
}

type extShow struct {
	chosen
	Full bool `help:"Print all texts of tools and schemas in full."`
	asJSON
}

// Help implements kong.HelpProvider.
func (*extShow) Help() string {
	return `The output has what the version may do, its tools with statistics, the report on its code, and its packages. For a request, it also has what is new. If another version waits for approval, the output names its request.

Examples:

    stile ext show github
    stile ext show 12
    stile ext show 12 --full
    stile ext show github --json`
}

// Run implements the command.
func (c *extShow) Run(ctx context.Context, s *streams) error {
	return withExtensions(ctx, s, func(e *extensions) error {
		r, err := c.release(ctx, e)
		if err != nil {
			return err
		}
		review, err := e.Review(ctx, r.ID)
		if err != nil {
			return err
		}
		state, err := e.State(ctx, r.Scope, r.Name) // none if nothing of this name is active or waits
		if err != nil {
			return err
		}
		tools := state.Tools
		if c.JSON {
			shown := reviewOf(review, tools)
			if waits := state.Pending; waits != nil && waits.ID != r.ID {
				next := releaseOf(*waits)
				shown.Pending = &next
			}
			return printJSON(s.out, shown)
		}
		text := versionText(review, c.Full)
		if waits := state.Pending; waits != nil && waits.ID != r.ID {
			what := fmt.Sprintf("    request %d, with another version: stile ext diff %[1]d shows what it changes\n", waits.ID)
			if waits.Digest == r.Digest {
				what = fmt.Sprintf("    request %d, with the same version, because %s: stile ext show %[1]d shows what\n", waits.ID, line(waits.Reason, 200))
			}
			text += section("Waiting for approval", what)
		}
		if len(tools) > 0 {
			text += section("How it does", statsText("    ", tools))
		}
		_, err = io.WriteString(s.out, text)
		return err
	})
}

func statsText(indent string, tools []lifecycle.ToolState) string {
	rows := [][]string{{"TOOL", "CALLS", "FAILED", "P50", "P95", "SCORE", "LAST USED"}}
	for _, t := range tools {
		last := "never"
		if !t.Stats.LastUsed.IsZero() {
			last = when(t.Stats.LastUsed)
		}
		rows = append(rows, []string{
			t.Name, fmt.Sprint(t.Stats.Calls), fmt.Sprint(t.Stats.Failures), t.Stats.P50.String(), t.Stats.P95.String(), fmt.Sprint(t.Stats.Score()), last,
		})
	}
	return table(indent, rows) + indent + "The score, of 100, is the share of calls that succeed, as if one more had succeeded and one had failed.\n"
}

// reviewJSON is a release with everything that stile ext show and diff print about it.
type reviewJSON struct {
	Release     releaseJSON        `json:"release"`
	Signer      string             `json:"signer,omitempty"`
	Version     string             `json:"version"`
	Source      bool               `json:"source"` // whether there is a source to read
	Description string             `json:"description"`
	Tags        []string           `json:"tags"`
	May         []string           `json:"may"`
	Vars        []varJSON          `json:"vars"`
	Changes     []extension.Change `json:"changes"`
	Cut         []extension.Change `json:"cut"`
	Tools       []tool             `json:"tools"`
	States      []toolStateJSON    `json:"states"`
	Packages    []npm.Package      `json:"packages"`
	Report      inspect.Report     `json:"report"`
	Component   string             `json:"component"`
	Active      string             `json:"active,omitempty"`
	Pending     *releaseJSON       `json:"pending,omitempty"` // another request for the same extension
}

func reviewOf(r lifecycle.Review, states []lifecycle.ToolState) reviewJSON {
	j := reviewJSON{
		Release: releaseOf(r.Release), Signer: printable.Text(r.Release.Signer), Version: r.Version.Manifest.Version, Source: r.Version.HasSource(), Description: r.Version.Manifest.Description, Tags: append([]string{}, r.Version.Manifest.Tags...), May: []string{}, Vars: varsOf(r.Vars),
		Changes: append([]extension.Change{}, r.Changes...), Cut: append([]extension.Change{}, r.Cut...), Tools: toolsOf(r.Version.Tools),
		States: extensionOf(lifecycle.Extension{Tools: states}).Tools, Packages: append([]npm.Package{}, r.Version.Packages...), Report: r.Version.Report, Component: r.Version.Component,
	}
	for _, b := range r.Granted {
		j.May = append(j.May, extension.Describe(b)...)
	}
	for _, d := range r.Version.Manifest.Durable {
		j.May = append(j.May, d.String())
	}
	if r.Before != nil {
		j.Active = r.Before.Digest
	}
	return j
}
