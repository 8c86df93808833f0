package inspect

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// kind is what a token is.
type kind uint8

const (
	word     kind = iota // a name or keyword, with the # of a private one
	number               // a number
	quoted               // a string
	template             // a part of a template: to its first hole, from one hole to the next, or from the last to the end
	pattern              // a regular expression
	mark                 // one character of punctuation, or one of => ... ?. ++ --
)

// token is a piece of code; comments and space are none.
type token struct {
	kind       kind
	newline    bool // a line ends between the token before and this one
	start, end int32
	// match is the token that closes the bracket or hole which this one opens, or else the one that opened what this one
	// closes; -1 when there is none.
	match int32
}

const (
	// maxTokens bounds memory. A file of 8 MiB that people wrote or a minifier made has half of it.
	maxTokens = 4 << 20
	// maxBrackets is the toolchain's limit of nesting: it refuses whatever is deeper.
	maxBrackets = 15_000
)

// source is a file as tokens. Where a token can be told in two ways, the more likely one is taken and unclear says so:
// what was read before that is certain, and what comes after is not.
type source struct {
	name   string
	text   string
	tokens []token
	docs   map[int]span // the doc comment of a token, with its delimiters
	// unclear is why not all can be told, and unclearAt where that begins; empty when all is certain.
	unclear   string
	unclearAt int
	mend      string // what to write instead, when unclear is about brackets that do not match
	brackets  int    // how deep brackets nest
	lines     []int32
	last      Place // of lastAt, the last place that was asked for
	lastAt    int
}

type span struct{ start, end int32 }

// meaning is what a token means for a slash after it.
type meaning uint8

const (
	operator meaning = iota // it begins a regular expression
	operand                 // it divides
	unsure                  // that depends on more than is known here
	dot                     // none can follow; a keyword is a name
	head                    // if, for, while, with: a parenthesis follows, and then a statement
)

var (
	statementWords = set("if for while with")
	operatorWords  = set("return typeof case in delete throw new instanceof else do extends default")
	// contextualWords are names in some places, and in others stand before what they belong to.
	contextualWords = set("of yield await void keyof readonly unique infer asserts is abstract class")
)

func set(words string) map[string]bool {
	m := map[string]bool{}
	for w := range strings.FieldsSeq(words) {
		m[w] = true
	}
	return m
}

// lexer reads a source from the start to the end.
type lexer struct {
	*source
	at       int
	previous meaning
	newline  bool
	doc      span
	open     []bracket
}

type bracket struct {
	token int32
	text  byte    // ` for the hole of a template
	after meaning // what its closing bracket means
}

// lex reads text; of a JSX file it is certain only up to the first element.
func lex(name, text string, jsx bool) *source {
	l := lexer{source: &source{name: name, text: text, docs: map[int]span{}}, newline: true}
	if strings.HasPrefix(text, "\uFEFF") {
		l.at = len("\uFEFF")
	}
	if strings.HasPrefix(text[l.at:], "#!") {
		l.skipLine()
	}
	for l.skipSpace(); l.at < len(text); l.skipSpace() {
		if len(l.tokens) == maxTokens {
			l.doubt("more than 4 million tokens")
			break
		}
		l.token(jsx)
		l.newline, l.doc = false, span{}
	}
	if len(l.open) > 0 {
		l.mismatch("the end of the file")
	}
	for _, b := range l.open {
		l.tokens[b.token].match = int32(len(l.tokens))
	}
	return l.source
}

// doubt notes that from here on nothing is certain.
func (l *lexer) doubt(why string) { l.source.doubt(why, l.at) }

func (s *source) doubt(why string, at int) {
	if s.unclear == "" {
		s.unclear, s.unclearAt = why, min(at, len(s.text))
	}
}

// mismatch notes that what stands here closes nothing, or something else than was opened last.
func (l *lexer) mismatch(here string) {
	if l.unclear != "" {
		return // what was opened is not certain
	}
	line, _ := l.line(l.at)
	if len(l.open) == 0 {
		l.mend = "it without this one, or with the one that it closes"
		l.doubt(fmt.Sprintf("%s in line %d, which closes nothing", here, line))
		return
	}
	b := l.open[len(l.open)-1]
	opened, _ := l.line(int(l.tokens[b.token].start))
	text := string(b.text)
	if b.text == '`' {
		text = "${"
	}
	l.mend = fmt.Sprintf(`"%c" before it`, closing(b.text))
	l.doubt(fmt.Sprintf(`"%s" in line %d, which is closed by %s in line %d`, text, opened, here, line))
}

func (l *lexer) token(jsx bool) {
	start, c := l.at, l.text[l.at]
	switch {
	case isDigit(c) || c == '.' && isDigit(l.peek(1)):
		l.number()
		l.add(number, start, operand)
	case isWord(c) || c == '#' || c == '\\':
		l.word()
	case c == '"' || c == '\'':
		l.quoted(c)
		l.add(quoted, start, operand)
	case c == '`':
		l.template()
	case c == '(' || c == '[' || c == '{':
		after := operand
		if c == '{' {
			after = unsure
		} else if l.previous == head {
			after = operator
		}
		l.at++
		l.add(mark, start, operator)
		l.push(c, after)
	case c == ')' || c == ']' || c == '}':
		l.close(c)
	case c == '/':
		l.slash()
	default:
		if jsx && c == '<' && l.previous == operator && (isWord(l.peek(1)) || l.peek(1) == '>') {
			l.doubt("JSX")
		}
		l.punctuation(c)
	}
}

// add appends the token from start to here.
func (l *lexer) add(k kind, start int, m meaning) {
	if l.doc.end > 0 {
		l.docs[len(l.tokens)] = l.doc
	}
	l.tokens = append(l.tokens, token{k, l.newline, int32(start), int32(l.at), -1})
	l.previous = m
}

// push makes the last token one that opens.
func (l *lexer) push(text byte, after meaning) {
	l.open = append(l.open, bracket{int32(len(l.tokens) - 1), text, after})
	l.brackets = max(l.brackets, len(l.open))
}

func (l *lexer) close(c byte) {
	start := l.at
	if len(l.open) == 0 || closing(l.open[len(l.open)-1].text) != c {
		l.mismatch(`"` + string(c) + `"`)
		l.at++
		l.add(mark, start, unsure)
		return
	}
	b := l.open[len(l.open)-1]
	l.open = l.open[:len(l.open)-1]
	if b.text == '`' {
		l.template()
	} else {
		l.at++
		l.add(mark, start, b.after)
	}
	last := len(l.tokens) - 1
	l.tokens[b.token].match = int32(last)
	if l.tokens[last].match < 0 {
		l.tokens[last].match = b.token
	}
}

func closing(open byte) byte {
	switch open {
	case '(':
		return ')'
	case '[':
		return ']'
	default:
		return '}'
	}
}

func (l *lexer) word() {
	start := l.at
	escaped := false
	for l.at < len(l.text) && (isWord(l.text[l.at]) || l.text[l.at] == '\\' || l.at == start) {
		switch r, size := utf8.DecodeRuneInString(l.text[l.at:]); {
		case r == '\\':
			escaped = true
			l.at++
			if strings.HasPrefix(l.text[l.at:], "u{") {
				if end := strings.IndexByte(l.text[l.at:min(len(l.text), l.at+12)], '}'); end > 0 {
					l.at += end + 1
				}
			}
		case isSpace(r):
			l.name(start, escaped)
			return
		default:
			l.at += size
		}
	}
	l.name(start, escaped)
}

// name adds the word from start to here.
func (l *lexer) name(start int, escaped bool) {
	m := operand
	switch name := l.text[start:l.at]; {
	case l.previous == dot:
	case escaped:
		m = unsure
	case statementWords[name] || name == "await" && l.previous == head: // for await (
		m = head
	case operatorWords[name]:
		m = operator
	case contextualWords[name]:
		m = unsure
	}
	if escaped {
		l.doubt("a name that is written with escapes")
	}
	l.add(word, start, m)
}

func (l *lexer) punctuation(c byte) {
	start, previous, rest := l.at, l.previous, l.text[l.at:]
	after := operator
	switch {
	case strings.HasPrefix(rest, "..."):
		l.at += 3
	case c == '.':
		l.at++
		after = dot
	case strings.HasPrefix(rest, "?.") && !isDigit(l.peek(2)):
		l.at += 2
		after = dot
	case strings.HasPrefix(rest, "=>"):
		l.at += 2
	case strings.HasPrefix(rest, "++") || strings.HasPrefix(rest, "--"):
		if l.newline && strings.HasPrefix(rest, "-->") {
			l.doubt("--> in code")
		}
		l.at += 2
		if previous == operand && !l.newline {
			after = operand // x++
		} else if previous != operator {
			after = unsure
		}
	case c == '>':
		l.at++
		after = unsure // of type arguments, perhaps
	case c == '!':
		l.at++
		if !l.newline && !strings.HasPrefix(rest, "!=") && previous != operator {
			if after = unsure; previous == operand {
				after = operand // TypeScript's x!
			}
		}
	default:
		if strings.HasPrefix(rest, "<!--") {
			l.doubt("<!-- in code")
		}
		l.at++
	}
	l.add(mark, start, after)
}

// skipSpace passes over space and comments.
func (l *lexer) skipSpace() {
	for l.at < len(l.text) {
		rest := l.text[l.at:]
		r, size := utf8.DecodeRuneInString(rest)
		switch {
		case lineEnd(rest) > 0:
			l.newline = true
			l.at += size
		case isSpace(r):
			l.at += size
		case strings.HasPrefix(rest, "//"):
			l.skipLine()
		case strings.HasPrefix(rest, "/*"):
			end := strings.Index(rest[2:], "*/")
			if end < 0 {
				l.doubt("a comment that does not end")
				l.at = len(l.text)
				return
			}
			comment := rest[:end+4]
			isDoc := strings.HasPrefix(comment, "/**") && len(comment) > len("/**/")
			// One that stands behind code in its line is about that code.
			if isDoc && (l.newline || lineEnd(strings.TrimLeft(rest[len(comment):], " \t")) == 0) {
				l.doc = span{int32(l.at), int32(l.at + len(comment))}
			}
			l.newline = l.newline || strings.ContainsAny(comment, lineEnds)
			l.at += len(comment)
		default:
			return
		}
	}
}

func (l *lexer) skipLine() {
	if end := strings.IndexAny(l.text[l.at:], lineEnds); end >= 0 {
		l.at += end
	} else {
		l.at = len(l.text)
	}
}

// peek is the byte n after this one; 0 behind the end.
func (l *lexer) peek(n int) byte {
	if l.at+n < len(l.text) {
		return l.text[l.at+n]
	}
	return 0
}

const lineEnds = "\n\r\u2028\u2029"

// lineEnd is how many bytes the end of a line takes with which text begins; 0 when it does not.
func lineEnd(text string) int {
	switch {
	case strings.HasPrefix(text, "\r\n"):
		return 2
	case strings.HasPrefix(text, "\n"), strings.HasPrefix(text, "\r"):
		return 1
	case strings.HasPrefix(text, "\u2028"), strings.HasPrefix(text, "\u2029"):
		return 3
	default:
		return 0
	}
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

func isWord(c byte) bool {
	return c == '$' || c == '_' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || isDigit(c) || c >= utf8.RuneSelf
}

func isSpace(r rune) bool {
	return r == ' ' || r >= '\t' && r <= '\r' || r == '\uFEFF' || r == '\u2028' || r == '\u2029' || unicode.Is(unicode.Zs, r)
}
