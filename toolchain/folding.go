package toolchain

import (
	"errors"
	"math/bits"
	"regexp"
	"strings"

	"github.com/evanw/esbuild/pkg/api"
)

// between matches a space or comment.
const between = `(?:[\s\v\x{80}-\x{10FFFF}]|/\*(?s:.*?)\*/|(?://|<!--|-->)[^\n]*\n)`

// maxFolded is the most bytes that a member of an enum may come to. esbuild works the members out, and joins their texts: where each
// is the one before it twice, thirty of them take more memory than there is.
const maxFolded = 4 << 20

var (
	errFolded = errors.New("has an enum whose members join too many others; make them constants outside of it")
	// enumHead matches the beginning of an enum.
	enumHead = regexp.MustCompile(`\benum` + between + `+(?:\\u\{[0-9a-fA-F]+\}|[^\s{}()/;,"'` + "`" + `])+` + between + `*\{`)
	joining  = regexp.MustCompile(`[+]|\$\{`)
	// literal matches a text joined to what is before it: it adds to a member and does not multiply it.
	literal = regexp.MustCompile(`\+\s*(?:"[^"\\\n]*"|'[^'\\\n]*')\s*(?:[,}\n]|$)`)
)

// admitFolding refuses enums that would take esbuild too much memory. It bounds from above how long the longest member of any enum of
// a file can be: as long as all bodies together, times the members that each one joins.
func admitFolding(text string, loader api.Loader) error {
	if loader != api.LoaderTS && loader != api.LoaderTSX {
		return nil
	}
	size, doublings := 1, 0
	for at := 0; ; {
		head := enumHead.FindStringIndex(text[at:])
		if head == nil {
			return nil
		}
		at += head[1] // what looks like a head could hide another one
		body := text[at:enumEnd(text, at)]
		size += len(body)
		for member := range strings.SplitSeq(body, ",") {
			if n := len(joining.FindAllStringIndex(member, -1)); n > 1 || n == 1 && !literal.MatchString(member) {
				doublings += bits.Len(uint(n))
			}
		}
		if doublings > 40 || doublings > 0 && size<<doublings > maxFolded || size > 16*maxSource {
			return errFolded
		}
	}
}

// enumEnd returns where the body of an enum ends: at its closing bracket, or at the end of the text where that cannot be told.
func enumEnd(text string, at int) int {
	depth := 1
	for ; at < len(text); at++ {
		switch c := text[at]; c {
		case '{':
			depth++
		case '}':
			if depth--; depth == 0 {
				return at
			}
		case '"', '\'':
			for at++; at < len(text) && text[at] != c; at++ {
				if text[at] == '\\' {
					at++
				}
			}
		case '/', '`':
			if c == '`' || at+1 == len(text) || text[at+1] != '/' && text[at+1] != '*' {
				return len(text)
			}
			end := "*/"
			if text[at+1] == '/' {
				end = "\n"
			}
			n := strings.Index(text[at+2:], end)
			if n < 0 {
				return len(text)
			}
			at += 1 + n + len(end)
		}
	}
	return len(text)
}
