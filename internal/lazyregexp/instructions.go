package lazyregexp

import (
	"fmt"
	"regexp/syntax"
	"strings"
	"unicode/utf8"
)

// MaxWork is how much work parsing untrusted expressions may take: some 0.2 s and 10 MB.
const MaxWork = 500

// Work bounds the work of parsing an expression, in addition to the length of its text. One unit
// is a Unicode class of three bytes, which takes 5 KiB and up to 0.3 ms. A range of characters in
// an expression that ignores case takes 14 ms, since the parser looks at each character in it.
func Work(text string) int {
	n := strings.Count(text, `\p`) + strings.Count(text, `\P`)
	for rest := text; ; {
		_, after, found := strings.Cut(rest, "(?")
		if !found {
			return n
		}
		rest = strings.TrimLeft(after, "imsU-")
		if strings.Contains(after[:len(after)-len(rest)], "i") {
			break
		}
	}
	for i := 1; i < len(text); i++ {
		if text[i-1] == '-' && (text[i] == '\\' || text[i] >= utf8.RuneSelf) {
			n += 50
		}
	}
	return n
}

// Parse parses an untrusted expression, and counts its instructions. It refuses an expression that takes more than MaxWork to parse
// or has more than most instructions.
func Parse(text string, most int) (tree *syntax.Regexp, instructions int, err error) {
	if Work(text) > MaxWork {
		return nil, 0, fmt.Errorf("it takes long to parse: at most %d classes such as \\pL, and %d ranges of characters where it ignores case", MaxWork, MaxWork/50)
	}
	if tree, err = syntax.Parse(text, syntax.Perl); err != nil {
		return nil, 0, err
	}
	if instructions = Instructions(tree); instructions > most {
		return nil, 0, fmt.Errorf("it makes %d instructions, more than %d", instructions, most)
	}
	return tree, instructions, nil
}

// Instructions bounds the size of a compiled expression, in instructions of some 200 bytes each. A class of characters counts for its
// table. Compiling takes time and memory in proportion, and a text of 1,000 bytes can produce a million instructions.
func Instructions(re *syntax.Regexp) int {
	n := 2
	for _, sub := range re.Sub {
		n += Instructions(sub)
	}
	switch re.Op {
	case syntax.OpLiteral:
		return len(re.Rune) + n
	case syntax.OpCharClass:
		return len(re.Rune)/128 + n
	case syntax.OpRepeat: // the parser allows 1,000 at most, nested ones multiplied
		return n * max(re.Min+1, re.Max)
	default:
		return n
	}
}
