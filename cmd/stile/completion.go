package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
)

type completionCommand struct {
	Shell string `arg:"" enum:"bash,zsh,fish" help:"bash, zsh or fish."`
}

// Help implements kong.HelpProvider.
func (*completionCommand) Help() string {
	return `The script has the shell complete commands, their flags, and files. It asks stile, so it stays right when stile is updated.

Examples:

    source <(stile completion bash)
    stile completion zsh > ~/.zfunc/_stile
    stile completion fish > ~/.config/fish/completions/stile.fish`
}

// completionScripts ask stile complete for the words that may come next, one a line, with a tab before what each means. Without any, the shell completes files.
var completionScripts = map[string]string{
	"bash": `_stile() {
  local IFS=$'\n' line
  COMPREPLY=()
  for line in $(stile complete -- "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null); do COMPREPLY+=("${line%%$'\t'*}"); done
}
complete -o default -F _stile stile
`,
	"zsh": `#compdef stile
_stile() {
  local line
  local -a found
  for line in "${(@f)$(stile complete -- "${(@)words[2,CURRENT]}" 2>/dev/null)}"; do
    [[ -n $line ]] && found+=("${${line%%$'\t'*}//:/\\:}:${line#*$'\t'}")
  done
  if (( ${#found} )); then _describe stile found; else _files; fi
}
if [[ ${funcstack[1]} == _stile ]]; then _stile "$@"; else compdef _stile stile; fi
`,
	"fish": `function __stile_complete
  set -l words (commandline -opc) (commandline -ct)
  stile complete -- $words[2..-1] 2>/dev/null
end
complete -c stile -a '(__stile_complete)'
`,
}

// Run implements the command.
func (c *completionCommand) Run(s *streams) error {
	_, err := io.WriteString(s.out, completionScripts[c.Shell])
	return err
}

type completeCommand struct {
	Words []string `arg:"" optional:"" passthrough:"" help:"The words after stile, up to the one to complete."`
}

// Run implements the command.
func (c *completeCommand) Run(ctx context.Context, s *streams) error {
	parser, err := newParser(ctx, s)
	if err != nil {
		return err
	}
	words := c.Words
	if len(words) > 0 && words[0] == "--" {
		words = words[1:]
	}
	for _, w := range completions(parser.Model.Node, words) {
		if _, err := fmt.Fprintf(s.out, "%s\t%s\n", w.word, w.means); err != nil {
			return err
		}
	}
	return nil
}

// completed is a word that may come next.
type completed struct{ word, means string }

// completions returns the words that the last of words can become, in the order of the help. There are none where anything may be written.
func completions(at *kong.Node, words []string) (found []completed) {
	if len(words) == 0 {
		words = []string{""}
	}
	before, word := words[:len(words)-1], words[len(words)-1]
	value := false // whether the word is the value of a flag
	for _, w := range before {
		switch {
		case w == "--":
			return nil
		case value:
			value = false
		case strings.HasPrefix(w, "-"):
			value = takesValue(at, w)
		default:
			if i := slices.IndexFunc(at.Children, func(n *kong.Node) bool { return n.Name == w }); i >= 0 {
				at = at.Children[i]
			}
		}
	}
	add := func(word, means string) {
		means, _, _ = strings.Cut(means, "\n")
		found = append(found, completed{word, means})
	}
	switch {
	case value:
	case strings.HasPrefix(word, "-"):
		for _, group := range at.AllFlags(true) {
			for _, f := range group {
				if name := "--" + f.Name; strings.HasPrefix(name, word) {
					add(name, f.Help)
				}
			}
		}
	default:
		for _, n := range at.Children {
			if !n.Hidden && strings.HasPrefix(n.Name, word) {
				add(n.Name, n.Help)
			}
		}
	}
	return found
}

// takesValue reports whether a flag needs the next word.
func takesValue(at *kong.Node, word string) bool {
	for _, group := range at.AllFlags(false) {
		for _, f := range group {
			if word == "--"+f.Name || f.Short != 0 && word == "-"+string(f.Short) {
				return !f.IsBool()
			}
		}
	}
	return false
}
