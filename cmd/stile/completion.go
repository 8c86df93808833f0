package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/stilehost/stile/extension/project"
)

type completionCommand struct {
	Shell string `arg:"" enum:"bash,zsh,fish" help:"bash, zsh or fish."`
}

// Help implements kong.HelpProvider.
func (*completionCommand) Help() string {
	return `The script has the shell complete commands, their flags, files, and names where a command takes one: of extensions, tools, scopes, workspaces and secrets, and numbers of requests and recordings. It asks stile, so it stays right when stile is updated. STILE_HOME is only read, for at most 200 ms, and at most 200 names come of it.

Examples:

    source <(stile completion bash)
    stile completion zsh > ~/.zfunc/_stile
    stile completion fish > ~/.config/fish/completions/stile.fish`
}

// completionScripts ask stile complete for the words that may come next, one a line, with a tab before what each means. Without any, the shell completes files.
// bash makes three words of agent:tom and --scope=user, which the script joins: it replaces only the last of them.
var completionScripts = map[string]string{
	"bash": `_stile() {
  local line drop='' join='' i n=-1
  local -a words
  for ((i = 1; i <= COMP_CWORD; i++)); do
    if [[ ${COMP_WORDS[i]} =~ ^[:=]+$ && $n -ge 0 ]]; then
      words[n]+=${COMP_WORDS[i]} join=1 drop=${words[n]}
    elif [[ $join ]]; then
      words[n]+=${COMP_WORDS[i]} join=''
    else
      n=$((n + 1)) drop=''
      words[n]=${COMP_WORDS[i]}
    fi
  done
  COMPREPLY=()
  while IFS= read -r line; do
    line=${line%%$'\t'*}
    COMPREPLY+=("${line#"$drop"}")
  done < <(stile complete -- "${words[@]:0:n+1}" 2>/dev/null)
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
  set -l found (stile complete -- $words[2..-1] 2>/dev/null)
  if set -q found[1]
    printf '%s\n' $found
  else
    __fish_complete_path (commandline -ct)
  end
end
complete -c stile -f -a '(__stile_complete)'
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
	for _, w := range completions(ctx, parser.Model.Node, words) {
		if _, err := fmt.Fprintf(s.out, "%s\t%s\n", w.word, w.means); err != nil {
			return err
		}
	}
	return nil
}

// completed is a word that may come next.
type completed struct{ word, means string }

// completions returns the words that the last of words can become, in the order of the help. There are none where anything may be written.
func completions(ctx context.Context, at *kong.Node, words []string) (found []completed) {
	if len(words) == 0 {
		words = []string{""}
	}
	before, word := words[:len(words)-1], words[len(words)-1]
	var value *kong.Value // of the flag that the word is the value of
	arguments := 0        // before the word
	for _, w := range before {
		switch {
		case w == "--":
			return nil
		case value != nil:
			value = nil
		case strings.HasPrefix(w, "-") && w != "-":
			value = takesValue(at, w)
		default:
			if i := slices.IndexFunc(at.Children, func(n *kong.Node) bool { return n.Name == w }); i >= 0 && arguments == 0 {
				at = at.Children[i]
			} else {
				arguments++
			}
		}
	}
	add := func(word, means string) {
		means, _, _ = strings.Cut(means, "\n")
		found = append(found, completed{word, means})
	}
	flag, rest, joined := strings.Cut(word, "=")
	switch {
	case value != nil:
		return valuesOf(ctx, value, word)
	case strings.HasPrefix(word, "--") && joined:
		if value = takesValue(at, flag); value != nil {
			for _, one := range valuesOf(ctx, value, rest) {
				add(flag+"="+one.word, one.means)
			}
		}
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
		if argument := argumentAt(at, arguments); argument != nil {
			found = append(found, valuesOf(ctx, argument, word)...)
		}
	}
	return found
}

// argumentAt returns the argument of a command at a place. The last one may have several values.
func argumentAt(at *kong.Node, place int) *kong.Value {
	switch last := len(at.Positional) - 1; {
	case place <= last:
		return at.Positional[place]
	case last >= 0 && at.Positional[last].IsSlice():
		return at.Positional[last]
	default:
		return nil
	}
}

// valuesOf returns the values of a flag or an argument that begin with a word: those it can have, or names in STILE_HOME.
func valuesOf(ctx context.Context, v *kong.Value, word string) []completed {
	if v.Enum != "" {
		return beginning(strings.Split(v.Enum, ","), word)
	}
	switch kind := v.Tag.Get("complete"); kind {
	case "":
	case "language":
		return beginning(project.Languages(), word)
	case "template":
		return beginning(project.Templates("typescript"), word) // which has all that the others have
	default:
		return namesOf(ctx, kind, word)
	}
	return nil
}

// beginning returns those that begin with a word.
func beginning(all []string, word string) (found []completed) {
	for _, one := range all {
		if strings.HasPrefix(one, word) {
			found = append(found, completed{one, ""})
		}
	}
	return found
}

// takesValue returns the value of a flag that needs the next word, or nil.
func takesValue(at *kong.Node, word string) *kong.Value {
	for _, group := range at.AllFlags(false) {
		for _, f := range group {
			if (word == "--"+f.Name || f.Short != 0 && word == "-"+string(f.Short)) && !f.IsBool() {
				return f.Value
			}
		}
	}
	return nil
}
