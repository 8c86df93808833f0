package main

import (
	"io"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
)

// TestHelpHasExamples: the help of every command has examples, which name the command.
func TestHelpHasExamples(t *testing.T) {
	parser, err := newParser(t.Context(), &streams{strings.NewReader(""), io.Discard, io.Discard})
	if err != nil {
		t.Fatal(err)
	}
	var walk func(n *kong.Node)
	walk = func(n *kong.Node) {
		for _, c := range n.Children {
			if c.Hidden {
				continue
			}
			command := strings.TrimSuffix(c.FullPath(), " run")
			_, examples, found := strings.Cut(c.Detail, "Examples:\n\n")
			if !found || !strings.Contains(examples, command) {
				t.Errorf("the help of %q has no examples of it", c.FullPath())
			}
			walk(c)
		}
	}
	walk(parser.Model.Node)
}
