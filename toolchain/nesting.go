package toolchain

import (
	"bytes"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/evanw/esbuild/pkg/api"

	"github.com/stilehost/stile/internal/lazyregexp"
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

// nested is what nesting in a file can cost a recursive parser, bounded from above.
type nested struct {
	levels int
	// unclear says what stood in the way where the nesting cannot be told; each token counts as a level then.
	unclear string
	// work is the processor time that it takes at most, about, and at is where most of that begins.
	work time.Duration
	at   int
	// twice says that most of it is spent on what is parsed twice.
	twice bool
}

// What a token takes to parse, at a depth: what esbuild tries twice it tries at each level of the file, and some of its passes look at
// all levels for each one.
const (
	workOfToken  = 300.0 // ns
	workOfLevel  = 45.0  // times depth
	workOfSquare = 1.5   // times depth, squared
	// workUnclear is the most that a file of tokens takes whose nesting cannot be told, times their number to the power of three.
	workUnclear    = 0.5
	maxWork        = float64(time.Hour)
	usualDoublings = 6
)

// nestingOf bounds how deep a recursive parser gets, and what that costs.
func nestingOf(text []byte, loader api.Loader) nested {
	switch loader {
	case api.LoaderText, api.LoaderBinary:
		return nested{}
	case api.LoaderJSX, api.LoaderTSX:
		return unclearNesting(text, "JSX")
	default:
		n := nesting{text: text, data: loader == api.LoaderJSON, levels: []level{{}}, newline: true}
		levels, work, found, most := 0, 0.0, nested{}, 0.0
		for levels <= maxNesting && n.token() {
			levels = max(levels, n.depth)
			d := float64(n.depth)
			token := math.Ldexp(workOfToken+workOfLevel*d+workOfSquare*d*d, n.doublings)
			work += token
			if token > 2*most { // the last time, this is near to where it becomes too much
				most, found.at, found.twice = token, n.at, n.doublings >= usualDoublings
			}
		}
		if n.unclear != "" {
			return unclearNesting(text, n.unclear)
		}
		found.levels, found.work = levels, time.Duration(min(work, maxWork))
		return found
	}
}

// triedTwice matches what may make esbuild parse what follows twice, wherever it stands.
var triedTwice = lazyregexp.New(`\binfer\b|\?` + between + `*\(` + between + `*[\pL\p{Nl}$_{\[.)@\\]`)

func unclearNesting(text []byte, why string) nested {
	tokens := tokensIn(text)
	t := float64(tokens)
	work := math.Ldexp(workOfToken*t+workUnclear*t*t*t, min(len(triedTwice.FindAllIndex(text, 64)), 64))
	return nested{levels: tokens, unclear: why, work: time.Duration(min(work, maxWork))}
}

// problem says where a file takes too much work, of which more is allowed, and what its author can do.
func (n nested) problem(text, file string, most time.Duration) Problem {
	if n.unclear != "" {
		return Problem{File: oneLine(file), Text: fmt.Sprintf("it is too large to have %s, after which nobody can tell how long it takes to parse; split the file", n.unclear)}
	}
	before := text[:n.at]
	start := strings.LastIndexByte(before, '\n') + 1
	line, _, _ := strings.Cut(text[start:], "\n")
	p := Problem{File: oneLine(file), Line: strings.Count(before, "\n") + 1, Column: utf8.RuneCountInString(before[start:])}
	p.Snippet = Snippet(line, p.Column)
	p.Text = fmt.Sprintf("with what is nested here, the file can take longer than %v to parse, the limit; ", most)
	if n.twice {
		p.Text += "write a ? b : (c => d) for a ? (b) : c => d, and give inferred types names of their own"
	} else {
		p.Text += "give parts of it names of their own"
	}
	return p
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
	data    bool // JSON, in which no comma joins expressions
	at      int
	depth   int // of all levels
	levels  []level
	unclear string // why it gave up

	previous tokenKind
	newline  bool // between the previous token and this one
	closed   bool // the previous token is a "}"
	question bool // the previous token is a "?"

	// doublings is how often esbuild parses a token, as a power of two. It parses twice what follows a ? (b) : c =>, since that may be an
	// arrow function or its begin the else of the condition, and what follows infer A extends.
	doublings int
	inferred  int // how many tokens ago there was an infer, from 1; 0 if it was longer ago
}

// level is an open bracket.
type level struct {
	open   byte      // 0 for the file, ` for a template
	after  tokenKind // what its closing bracket is
	tokens int       // since the last comma or semicolon
	kept   int       // tokens that those do not end: else, and but for semicolons < of type arguments
	commas int       // since the last semicolon
	array  bool      // its commas are between elements
	// asked is how many times ? ( was read that may still be the begin of an arrow function, and doubled how many doublings began with
	// that. Between its ) : and => there is a type, which has a ? only after extends.
	asked, doubled int
	extended       bool
	// inferred are the doublings that began with infer A extends: how many < were open. A conditional type may be a part of them.
	inferred    []int
	conditional bool
	angles      int // < that no > followed
	less        int // < among kept
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
	// typeOperators begin types that may be conditional ones wherever they stand.
	typeOperators = []string{"is", "asserts", "keyof", "readonly"}
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
	if l := &n.levels[len(n.levels)-1]; n.question && c == '(' {
		l.asked++
	}
	n.question = c == '?'
	if n.inferred > 0 {
		n.inferred = (n.inferred + 1) % 4
	}
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

// endsTwice ends what is parsed twice in the current level.
func (n *nesting) endsTwice() {
	l := &n.levels[len(n.levels)-1]
	n.doublings -= l.doubled
	l.asked, l.doubled, l.extended = 0, 0, false
}

// endsInferred ends what was inferred within so many type arguments or more.
func (n *nesting) endsInferred(angles int) {
	l := &n.levels[len(n.levels)-1]
	for len(l.inferred) > 0 && l.inferred[len(l.inferred)-1] >= angles {
		l.inferred = l.inferred[:len(l.inferred)-1]
		n.doublings--
	}
	l.conditional = l.conditional && len(l.inferred) > 0
}

// endsAll forgets what commas do not end either, at a semicolon or where a line ends like with one.
func (n *nesting) endsAll() {
	n.ends()
	l := &n.levels[len(n.levels)-1]
	n.depth -= l.depth() - l.kept
	l.commas, l.decorated = 0, false
	n.depth -= l.less
	l.kept -= l.less
	l.less = 0
	n.endsTwice()
	n.endsInferred(0)
	l.angles = 0
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
	n.doublings -= l.doubled + len(l.inferred)
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
			n.doublings -= l.doubled + len(l.inferred)
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
			l.kept, l.less = 0, 0
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
	switch {
	case name == "else":
		n.keeps()
	case name == "infer":
		n.inferred = 1
	case name == "extends" && n.inferred == 3:
		l.inferred = append(l.inferred, l.angles)
		l.extended = true
		n.doublings++
	case name == "extends":
		l.extended = true
	case slices.Contains(typeOperators, name):
		l.conditional = true
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
		l := &n.levels[len(n.levels)-1]
		n.endsInferred(l.angles)
		if l.kept == 0 { // else it may be between type arguments
			n.endsTwice()
		}
		if !l.array && !n.data {
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
	case '?':
		l := &n.levels[len(n.levels)-1]
		if !l.conditional {
			n.endsInferred(l.angles)
		}
		if !l.extended {
			l.asked = 0
		}
	case '<':
		n.keeps()
		l := &n.levels[len(n.levels)-1]
		l.angles++
		l.less++
		if bytes.HasPrefix(rest, []byte("<!--")) {
			n.unclear = "<!-- in it"
		}
	case '>':
		n.previous = either // of type arguments, perhaps
		l := &n.levels[len(n.levels)-1]
		l.angles = max(0, l.angles-1)
		n.endsInferred(l.angles + 1)
	case '=':
		if bytes.HasPrefix(rest, []byte("=>")) {
			n.at++
			l := &n.levels[len(n.levels)-1]
			l.doubled += l.asked
			n.doublings += l.asked
			l.asked, l.extended, l.conditional = 0, false, true
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
