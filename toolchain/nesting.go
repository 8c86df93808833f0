package toolchain

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/evanw/esbuild/pkg/api"
)

// esbuild parses by recursion, and Go ends the whole process when a stack outgrows 1 GB, which takes a few hundred
// thousand open brackets. So nesting is bounded before a file gets there. A level takes 7 KB of stack, at worst 13 KB.
// Of 18,000 files of popular packages the deepest had 1,064 levels.
const (
	maxNesting = 15_000
	// As files are parsed at the same time, levels over usualNesting are also bounded for all files together.
	usualNesting    = 200
	maxExtraNesting = 60_000
	// a, b, c is parsed without recursion and then walked with it, at 300 bytes for each comma.
	commasOfLevel = 32
)

// nestingOf bounds from above how deep a recursive parser gets. Where that cannot be told, it is the number of tokens, and
// unclear says what stood in the way.
func nestingOf(text []byte, loader api.Loader) (levels int, unclear string) {
	switch loader {
	case api.LoaderText, api.LoaderBinary:
		return 0, ""
	case api.LoaderJSX, api.LoaderTSX:
		return tokensIn(text), "JSX"
	default:
		n := nesting{text: text, levels: []level{{}}, newline: true}
		for levels <= maxNesting && n.token() {
			levels = max(levels, n.depth)
		}
		if n.unclear != "" {
			return tokensIn(text), n.unclear
		}
		return levels, ""
	}
}

// tokensIn counts words and other characters, wherever they stand.
func tokensIn(text []byte) int {
	count := 0
	inWord := false
	for _, c := range text {
		word := isWord(c)
		if c > ' ' && (!word || !inWord) {
			count++
		}
		inWord = word
	}
	return count
}

// nesting reads code as tokens and adds up the levels a recursive parser has open. Between brackets every token counts as a level (as in !!!!x or a=>a=>x), until a comma or semicolon ends what they could have opened. It never
// guesses: where it cannot tell a division from a regular expression it gives up, as code could hide behind the error.
type nesting struct {
	text    []byte
	at      int
	depth   int // of all levels
	levels  []level
	unclear string // why it gave up

	previous tokenKind
	newline  bool // between the previous token and this one
	closed   bool // the previous token is a "}"
}

// level is an open bracket.
type level struct {
	open   byte      // 0 for the file, ` for a template
	after  tokenKind // what its closing bracket is
	tokens int       // since the last comma or semicolon
	kept   int       // tokens that those do not end: else, and < of type arguments
	commas int       // since the last semicolon
	array  bool      // its commas are between elements
	// decorated is set from a decorator to the end of what it decorates, which may begin in a new line.
	decorated bool
}

// depth is how many levels there are directly in this one.
func (l *level) depth() int { return l.tokens + l.kept + l.commas/commasOfLevel }

// tokenKind is what a token means for what follows it.
type tokenKind int

const (
	operator tokenKind = iota // a slash begins a regular expression
	operand                   // a slash divides
	either                    // what a slash does depends on more than is known here
	dot                       // a name follows, also if it looks like a keyword
	head                      // if, for, while, with: a parenthesis and then a statement follow
)

var (
	statementKeywords = []string{"if", "for", "while", "with"}
	operatorKeywords  = []string{
		"return", "typeof", "case", "in", "delete", "throw", "new", "instanceof", "else", "do", "extends", "default",
	}
	// contextualKeywords are names in some places, and in others go before what they belong to.
	contextualKeywords = []string{
		"of", "yield", "await", "void", "keyof", "readonly", "unique", "infer", "asserts", "is", "abstract", "class",
	}
	// goingOn go on with what stands before, also in a new line. Any other name there, or after a "}", begins something new.
	goingOn = []string{"else", "while", "in", "instanceof", "of", "as", "satisfies", "extends", "catch", "finally", "from", "is"}
)

// token reads one token; false at the end, or when it gave up.
func (n *nesting) token() bool {
	n.skipSpace()
	if n.at >= len(n.text) || n.unclear != "" {
		return false
	}
	c := n.text[n.at]
	switch {
	case c >= '0' && c <= '9' || c == '.' && n.at+1 < len(n.text) && n.text[n.at+1] >= '0' && n.text[n.at+1] <= '9':
		n.at++
		for n.at < len(n.text) && (n.text[n.at] == '.' || n.text[n.at] < utf8.RuneSelf && isWord(n.text[n.at])) {
			n.at++
		}
		n.counts(operand)
	case isWord(c) || c == '#' || c == '@':
		n.name()
	case c == '"' || c == '\'':
		n.quoted(c)
		n.counts(operand)
	case c == '`':
		n.open(c, operand)
		n.template()
	case c == '(':
		if n.previous == head {
			n.open(c, operator)
		} else {
			n.open(c, operand)
		}
	case c == '[':
		array := n.previous == operator
		n.open(c, operand)
		n.levels[len(n.levels)-1].array = array
	case c == '{':
		n.open(c, either)
	case c == ')' || c == ']' || c == '}':
		n.close(c)
	case c == '/':
		n.slash()
	case c == '\\':
		n.unclear = "escapes in names"
	default:
		n.punctuation(c)
	}
	n.newline = false
	return true
}

// counts adds a token to the current level.
func (n *nesting) counts(k tokenKind) {
	n.levels[len(n.levels)-1].tokens++
	n.depth++
	n.previous, n.closed = k, false
}

// ends forgets the tokens of the current level that do not outlast the end of an expression.
func (n *nesting) ends() {
	l := &n.levels[len(n.levels)-1]
	n.depth -= l.tokens
	l.tokens = 0
}

// endsAll forgets what commas do not end either, at a semicolon or where a line ends like with one.
func (n *nesting) endsAll() {
	n.ends()
	l := &n.levels[len(n.levels)-1]
	n.depth -= l.depth() - l.kept
	l.commas, l.decorated = 0, false
}

// keeps makes the token just counted outlast commas and semicolons.
func (n *nesting) keeps() {
	l := &n.levels[len(n.levels)-1]
	l.tokens--
	l.kept++
}

func (n *nesting) open(c byte, after tokenKind) {
	n.counts(operator)
	n.levels = append(n.levels, level{open: c, after: after})
	n.at++
}

func (n *nesting) close(c byte) {
	l := n.levels[len(n.levels)-1]
	if at := strings.IndexByte("([{", l.open); at < 0 || ")]}"[at] != c {
		n.unclear = "brackets that do not match"
		return
	}
	n.levels = n.levels[:len(n.levels)-1]
	n.depth -= l.depth()
	n.previous, n.closed = l.after, c == '}'
	n.at++
	if n.levels[len(n.levels)-1].open == '`' {
		n.template()
	}
}

// template reads on in a template, up to its end or to an expression in it.
func (n *nesting) template() {
	for ; n.at < len(n.text); n.at++ {
		switch n.text[n.at] {
		case '\\':
			n.at++
		case '`':
			l := n.levels[len(n.levels)-1]
			n.levels = n.levels[:len(n.levels)-1]
			n.depth -= l.depth()
			n.previous, n.closed = operand, false
			n.at++
			return
		case '$':
			if n.at+1 < len(n.text) && n.text[n.at+1] == '{' {
				n.at++
				n.open('{', operator)
				return
			}
		}
	}
}

func (n *nesting) quoted(quote byte) {
	for n.at++; n.at < len(n.text); n.at++ {
		switch n.text[n.at] {
		case quote:
			n.at++
			return
		case '\\':
			n.at++
			if n.at+1 < len(n.text) && n.text[n.at] == '\r' && n.text[n.at+1] == '\n' {
				n.at++
			}
		case '\n', '\r':
			n.unclear = "a string that does not end"
			return
		}
	}
}

// slash is a division or a regular expression; comments are space.
func (n *nesting) slash() {
	switch n.previous {
	case operand:
		// A statement such as "let x" or "debugger" may have ended with the line before. In a line without a second slash
		// nothing but a division can follow.
		if n.newline && n.slashes() > 1 {
			n.unclear = n.slashOnLine()
			return
		}
		n.at++
		n.counts(operator)
	case operator:
		class := false
		for n.at++; n.at < len(n.text); n.at++ {
			switch c := n.text[n.at]; {
			case c == '\\':
				n.at++
			case c == '[':
				class = true
			case c == ']':
				class = false
			case c == '/' && !class:
				n.at++
				n.counts(operand)
				return
			case c == '\n' || c == '\r' || isSeparator(n.text[n.at:]):
				n.unclear = "a regular expression that does not end"
				return
			}
		}
	case either, dot, head:
		n.unclear = n.slashOnLine()
	}
}

func (n *nesting) slashOnLine() string {
	return fmt.Sprintf("a slash as on line %d", bytes.Count(n.text[:n.at], []byte("\n"))+1)
}

// slashes counts the slashes in the rest of the line.
func (n *nesting) slashes() int {
	rest := n.text[n.at:]
	if end := bytes.IndexAny(rest, lineEnds); end >= 0 {
		rest = rest[:end]
	}
	return bytes.Count(rest, []byte("/"))
}

func (n *nesting) name() {
	start := n.at
	for n.at < len(n.text) && (isWord(n.text[n.at]) || n.at == start) {
		if r, size := utf8.DecodeRune(n.text[n.at:]); r >= utf8.RuneSelf {
			if isSpace(r) {
				break
			}
			n.at += size
			continue
		}
		n.at++
	}
	name := string(n.text[start:min(n.at, start+16)])
	l := &n.levels[len(n.levels)-1]
	if (n.closed || n.newline && n.previous == operand && !l.decorated) && !slices.Contains(goingOn, name) {
		n.endsAll()
		if n.closed {
			n.depth -= l.kept
			l.kept = 0
		}
	}
	l.decorated = l.decorated || name[0] == '@'
	k := operand
	if n.previous != dot {
		switch {
		case slices.Contains(statementKeywords, name):
			k = head
		case slices.Contains(operatorKeywords, name):
			k = operator
		case name == "await" && n.previous == head: // for await (
			k = head
		case slices.Contains(contextualKeywords, name):
			k = either
		}
	}
	n.counts(k)
	if name == "else" {
		n.keeps()
	}
}

func (n *nesting) punctuation(c byte) {
	rest := n.text[n.at:]
	previous := n.previous
	n.at++
	n.counts(operator)
	switch c {
	case ',':
		n.ends()
		if l := &n.levels[len(n.levels)-1]; !l.array {
			n.depth -= l.depth()
			l.commas++
			n.depth += l.depth()
		}
	case ';':
		n.endsAll()
	case '.':
		n.previous = dot
		if bytes.HasPrefix(rest, []byte("...")) {
			n.at += 2
			n.previous = operator
		}
	case '<':
		n.keeps()
		if bytes.HasPrefix(rest, []byte("<!--")) {
			n.unclear = "<!-- in it"
		}
	case '>':
		n.previous = either // of type arguments, perhaps
	case '=':
		if bytes.HasPrefix(rest, []byte("=>")) {
			n.at++
		}
	case '!':
		if previous != operator && !n.newline && !bytes.HasPrefix(rest, []byte("!=")) {
			n.previous = either // TypeScript's x!, perhaps
		}
	case '+', '-':
		if n.newline && bytes.HasPrefix(rest, []byte("-->")) {
			n.unclear = "--> in it"
		}
		if len(rest) > 1 && rest[1] == c {
			n.at++
			if previous == operand && !n.newline {
				n.previous = operand // x++
			} else if previous != operator {
				n.previous = either
			}
		}
	}
}

// skipSpace passes over space and comments.
func (n *nesting) skipSpace() {
	if n.at == 0 {
		n.text = bytes.TrimPrefix(n.text, []byte("\uFEFF"))
		if bytes.HasPrefix(n.text, []byte("#!")) {
			n.line()
		}
	}
	for n.at < len(n.text) {
		rest := n.text[n.at:]
		r, size := utf8.DecodeRune(rest)
		switch {
		case r == '\n' || r == '\r' || isSeparator(rest):
			n.newline = true
			n.at += size
		case isSpace(r):
			n.at += size
		case bytes.HasPrefix(rest, []byte("//")):
			n.line()
		case bytes.HasPrefix(rest, []byte("/*")):
			end := bytes.Index(rest[2:], []byte("*/"))
			if end < 0 {
				n.unclear = "a comment that does not end"
				return
			}
			n.newline = n.newline || bytes.ContainsAny(rest[:end+2], lineEnds)
			n.at += end + 4
		default:
			return
		}
	}
}

const lineEnds = "\n\r\u2028\u2029"

// line passes over the rest of a line.
func (n *nesting) line() {
	if end := bytes.IndexAny(n.text[n.at:], lineEnds); end >= 0 {
		n.at += end
	} else {
		n.at = len(n.text)
	}
}

func isWord(c byte) bool {
	return c == '$' || c == '_' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c >= utf8.RuneSelf
}

func isSpace(r rune) bool {
	return r == ' ' || r >= '\t' && r <= '\r' || r == '\uFEFF' || r == '\u2028' || r == '\u2029' || unicode.Is(unicode.Zs, r)
}

// isSeparator says whether text begins with U+2028 or U+2029, which end lines of JavaScript.
func isSeparator(text []byte) bool {
	return bytes.HasPrefix(text, []byte("\u2028")) || bytes.HasPrefix(text, []byte("\u2029"))
}
