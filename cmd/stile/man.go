package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
)

type manCommand struct {
	Folder string `arg:"" help:"Folder to write, such as share/man/man1."`
	asJSON
}

// Help implements kong.HelpProvider.
func (*manCommand) Help() string {
	return `There is a page for stile and one for each command, from the same source as the commands' help. Pages of the same names are replaced. man finds the folder man1 below a folder of MANPATH; ~/.local/share/man is one where ~/.local/bin is on your path.

Examples:

    stile man ~/.local/share/man/man1
    man stile-ext-add`
}

// Run implements the command.
func (c *manCommand) Run(ctx context.Context, s *streams) error {
	parser, err := newParser(ctx, s)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(c.Folder, 0o777); err != nil {
		return &usageError{err}
	}
	pages := manPages(parser.Model.Node)
	var files []string
	for _, p := range pages {
		file := filepath.Join(c.Folder, p.name+".1")
		if err := writeFile(file, []byte(p.text)); err != nil {
			return err
		}
		files = append(files, file)
	}
	if c.JSON {
		return printJSON(s.out, map[string][]string{"files": files})
	}
	_, err = fmt.Fprintf(s.out, "%s: %s\n", c.Folder, counted(len(files), "page"))
	return err
}

// manPage is a page of the manual.
type manPage struct{ name, text string }

// manPages returns the page of a command, and those of its commands.
func manPages(n *kong.Node) (pages []manPage) {
	if n.Hidden {
		return nil
	}
	name := strings.ReplaceAll(commandOf(n), " ", "-")
	pages = append(pages, manPage{name, manText(n, name)})
	for _, c := range n.Children {
		pages = append(pages, manPages(c)...)
	}
	return pages
}

// commandOf returns the words of a command.
func commandOf(n *kong.Node) string {
	if n.Type == kong.ApplicationNode {
		return n.Name
	}
	return n.FullPath()
}

func manText(n *kong.Node, name string) string {
	var b strings.Builder
	section := func(title string) { fmt.Fprintf(&b, ".SH %s\n", title) }
	first, rest, _ := strings.Cut(n.Help, ".")
	about := n.Detail
	if n.Type == kong.ApplicationNode { // its help is the whole description
		about = strings.TrimSpace(rest)
	}
	fmt.Fprintf(&b, ".\\\" Written by stile man.\n.TH %s 1 \"\" \"stile %s\" \"Stile\"\n", strings.ToUpper(roff(name)), roff(readVersions().Stile))
	section("NAME")
	fmt.Fprintf(&b, "%s \\- %s\n", roff(name), roff(strings.TrimSpace(first)))
	section("SYNOPSIS")
	summary := n.Summary()
	if n.Type != kong.ApplicationNode {
		summary = "stile " + summary
	}
	b.WriteString(roff(summary) + "\n")
	if about != "" {
		section("DESCRIPTION")
		b.WriteString(manParagraphs(about))
	}
	var arguments []string
	for _, p := range n.Positional {
		if !p.Tag.Hidden {
			arguments = append(arguments, ".TP\n.B "+roff(p.Summary())+"\n"+roff(p.Help)+"\n")
		}
	}
	if arguments != nil {
		section("ARGUMENTS")
		b.WriteString(strings.Join(arguments, ""))
	}
	if n.Type != kong.ApplicationNode || len(n.Children) == 0 {
		manFlags(&b, n)
	}
	var commands []string
	for _, c := range n.Children {
		if !c.Hidden {
			commands = append(commands, ".TP\n.B "+roff(strings.ReplaceAll(commandOf(c), " ", "-"))+"(1)\n"+roff(c.Help)+"\n")
		}
	}
	if commands != nil {
		section("COMMANDS")
		b.WriteString(strings.Join(commands, ""))
	}
	if n.Parent != nil {
		section("SEE ALSO")
		b.WriteString(".BR " + roff(strings.ReplaceAll(commandOf(n.Parent), " ", "-")) + " (1)\n")
	}
	return b.String()
}

func manFlags(b *strings.Builder, n *kong.Node) {
	var flags []*kong.Flag
	for _, group := range n.AllFlags(true) {
		flags = append(flags, group...)
	}
	if len(flags) == 0 {
		return
	}
	slices.SortStableFunc(flags, func(x, y *kong.Flag) int { return strings.Compare(x.Name, y.Name) })
	b.WriteString(".SH OPTIONS\n")
	for _, f := range flags {
		text := f.String()
		if f.Tag.Negatable != "" {
			text = strings.Replace(text, "--", "--[no-]", 1)
		}
		fmt.Fprintf(b, ".TP\n.B %s\n%s\n", roff(text), roff(f.Help))
	}
}

// manParagraphs writes text whose examples and tables are indented.
func manParagraphs(text string) string {
	var b strings.Builder
	literal := false
	between := false
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		if indented := strings.HasPrefix(line, "    "); line != "" && indented != literal {
			if literal = indented; literal {
				b.WriteString(".PP\n.EX\n")
			} else {
				b.WriteString(".EE\n")
			}
			between = !literal
		}
		switch {
		case line == "" && !literal:
			between = true
		case line == "":
		default:
			if between && !literal {
				b.WriteString(".PP\n")
			}
			between = false
			b.WriteString(roff(line) + "\n")
		}
	}
	if literal {
		b.WriteString(".EE\n")
	}
	return b.String()
}

// roff escapes a line of text.
func roff(text string) string {
	text = strings.NewReplacer(`\`, `\e`, "-", `\-`, "\n", " ", "\t", " ").Replace(text)
	if strings.HasPrefix(text, ".") || strings.HasPrefix(text, "'") {
		text = `\&` + text
	}
	return text
}
