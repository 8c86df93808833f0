package main

import (
	"os"
	"strings"
)

// globalFlags are flags of every command.
type globalFlags struct {
	Color string `enum:"auto,always,never" default:"auto" placeholder:"WHEN" help:"Use colour: auto, always or never. Default: ${default}, on a terminal; see NO_COLOR in stile --help."`
}

// colorFlag finds the flag before a command line is parsed, because errors of parsing may have colour too. The parser checks its value.
func colorFlag(args []string) string {
	for i, arg := range args {
		switch value, found := strings.CutPrefix(arg, "--color="); {
		case arg == "--":
			return ""
		case found:
			return value
		case arg == "--color" && i+1 < len(args):
			return args[i+1]
		}
	}
	return ""
}

// colored reports whether text on a stream may have colour. The flag counts most, then NO_COLOR (no-color.org) and CLICOLOR_FORCE, then the terminal.
func (s *streams) colored(stream any) bool {
	switch s.color {
	case "always":
		return true
	case "never":
		return false
	}
	is := func(name string) bool { value := os.Getenv(name); return value != "" && value != "0" }
	switch _, person := terminal(stream); {
	case os.Getenv("NO_COLOR") != "":
		return false
	case is("CLICOLOR_FORCE"):
		return true
	default:
		return person && os.Getenv("TERM") != "dumb" && os.Getenv("CLICOLOR") != "0"
	}
}

const (
	red    = "\x1b[31m"
	green  = "\x1b[32m"
	yellow = "\x1b[33m"
	plain  = "\x1b[0m"
)

// A mark is how a line begins that has a meaning, and its colour.
type mark struct{ begins, color string }

// Marks of the texts that commands print. They are words of ours at the beginning of a line, where no text of a guest is.
var (
	messageMarks = []mark{{"stile: warning:", yellow}, {"stile: types:", red}, {"[error]", red}, {"[warn]", yellow}}
	outcomeMarks = []mark{{"ok ", green}, {"failed ", red}, {"missing ", red}, {"broken ", red}, {"warning ", yellow}}
	diffMarks    = []mark{{"    +", green}, {"    -", red}}
)

// tint colours the marks at the beginnings of lines, or these whole lines. The text is safe for a terminal already.
func tint(text string, marks []mark, whole bool) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		for _, m := range marks {
			if strings.HasPrefix(line, m.begins) {
				marked := m.begins
				if whole {
					marked = strings.TrimSuffix(line, "\n")
				}
				line = m.color + marked + plain + line[len(marked):]
				break
			}
		}
		b.WriteString(line)
	}
	return b.String()
}

// outcomes colours the words with which lines of a result begin.
func (s *streams) outcomes(text string) string {
	if !s.colored(s.out) {
		return text
	}
	return tint(text, outcomeMarks, false)
}
