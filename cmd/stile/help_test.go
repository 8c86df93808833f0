package main

import (
	"io"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
)

// TestHelpHasExamples checks that the help of every command has examples, which name the command.
func TestHelpHasExamples(t *testing.T) {
	parser, err := newParser(t.Context(), &streams{in: strings.NewReader(""), out: io.Discard, err: io.Discard})
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

// Each command line is parsed by the part of the grammar for its command, or by the whole grammar if it names none.
func TestGrammar(t *testing.T) {
	s := &streams{in: strings.NewReader(""), out: io.Discard, err: io.Discard}
	whole, err := newParser(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	for _, command := range whole.Model.Children {
		part, err := parserOf(t.Context(), s, grammar([]string{command.Name, "x"}))
		if err != nil {
			t.Fatal(err)
		}
		if len(part.Model.Children) != 1 || part.Model.Children[0].Summary() != command.Summary() || part.Model.Children[0].Help != command.Help {
			t.Errorf("%s is read by another grammar", command.Name)
		}
	}
	for _, args := range [][]string{nil, {"--help"}, {"nothing", "run"}, {"--nothing", "run"}} {
		if _, ok := grammar(args).(*cli); !ok {
			t.Errorf("%q is read by a part of the grammar", args)
		}
	}
}
