package lazyregexp

import "regexp/syntax"

// Instructions bounds the size of an expression once it is compiled, in instructions: some 200 bytes each. A class of characters counts for the table it
// brings. To compile an expression takes time and memory in proportion, and a text of 1,000 bytes can make a million.
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
