package main

import (
	"bytes"
	"io"
	"os/exec"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
)

// TestMan checks that each command has a page with all that its help has, and that mandoc finds nothing wrong with it.
func TestMan(t *testing.T) {
	parser, err := newParser(t.Context(), &streams{in: strings.NewReader(""), out: io.Discard, err: io.Discard})
	if err != nil {
		t.Fatal(err)
	}
	pages := map[string]string{}
	for _, p := range manPages(parser.Model.Node) {
		pages[p.name] = p.text
	}
	count := 1
	var walk func(n *kong.Node)
	walk = func(n *kong.Node) {
		for _, c := range n.Children {
			if c.Hidden {
				continue
			}
			count++
			name := strings.ReplaceAll(c.FullPath(), " ", "-")
			text := strings.NewReplacer(`\-`, "-", `\e`, `\`, `\&`, "").Replace(pages[name])
			for _, group := range c.AllFlags(true) {
				for _, f := range group {
					if !strings.Contains(text, f.Name) || !strings.Contains(text, f.Help) {
						t.Errorf("%s has no --%s", name, f.Name)
					}
				}
			}
			for line := range strings.Lines(c.Detail) {
				if !strings.Contains(text, strings.TrimRight(line, "\n")) {
					t.Errorf("%s does not say %q", name, line)
				}
			}
			walk(c)
		}
	}
	walk(parser.Model.Node)
	if len(pages) != count || pages["stile"] == "" {
		t.Errorf("%d pages for %d commands", len(pages), count)
	}
	if roff(".a 'b \\ -") != `\&.a 'b \e \-` {
		t.Errorf("a line that looks like a request is %q", roff(".a 'b \\ -"))
	}
	mandoc, err := exec.LookPath("mandoc")
	if err != nil {
		t.Skip("mandoc NOT TESTED: it is not installed")
	}
	for name, text := range pages {
		lint := exec.CommandContext(t.Context(), mandoc, "-Tlint", "-Wwarning")
		lint.Stdin = bytes.NewReader([]byte(text))
		out, _ := lint.CombinedOutput() // it fails for what it says
		for line := range strings.Lines(string(out)) {
			if !strings.Contains(line, "missing date") { // the same source has the same page
				t.Errorf("%s: %s", name, line)
			}
		}
	}
}
