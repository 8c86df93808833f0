// Package jslex reads JavaScript and TypeScript as tokens, without parsing them. It reads hostile text in linear time.
//
// The meaning of a slash depends on the grammar, which the package does not know. If a token can be read in two ways, the lexer
// takes the more likely one and notes a doubt: everything before it is certain, and everything after it is not. Some callers
// continue, and others stop there.
package jslex

import (
	"path"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Kind is the kind of a token.
type Kind uint8

const (
	Word     Kind = iota // a name or keyword, or a private name with its #
	Number               // a number
	String               // a string, with its quotes
	Template             // a part of a template: up to its first hole, between two holes, or from the last hole to the end
	Pattern              // a regular expression with its flags
	Mark                 // one character of punctuation, or one of => ... ?. ++ --
	Comment              // a comment with its delimiters
)

// Token is a piece of code, or a comment.
type Token struct {
	Kind    Kind
	Newline bool    // a line ends between the previous piece of code and this one
	After   Meaning // the token's meaning for a following slash
	// Opens and Closes are set if a bracket or a hole of a template begins or ends. A part between two holes does both. A bracket
	// that closes nothing does neither.
	Opens, Closes bool
	Start, End    int32
}

// Meaning is a token's meaning for a following slash.
type Meaning uint8

const (
	Operator Meaning = iota // the slash begins a regular expression
	Operand                 // the slash divides
	Unsure                  // it depends on more than the lexer knows
	Dot                     // no slash can follow; a keyword is a name
	Head                    // if, for, while, with: a parenthesis follows, then a statement
)

// Mismatch is the doubt of a bracket that closes nothing, or that does not match the last open one.
const Mismatch = "brackets that do not match"

// Lexer reads a text from the start to the end.
type Lexer struct {
	// Doubt says why the tokens from DoubtAt on are uncertain. It is empty while all tokens are certain.
	Doubt   string
	DoubtAt int
	// JavaScript says that the text has no types. You set it before the first token. A slash after a line that ends with a bracket, a
	// number or a member then divides; after a type, it could begin a regular expression.
	JavaScript bool

	text     string
	jsx      bool
	at       int
	previous Meaning
	ends     bool // the previous token ends an expression, if it is no type
	newline  bool
	open     []Bracket
}

// Bracket is an open bracket, or an open hole.
type Bracket struct {
	Start int
	Text  byte // ` for a hole
	after Meaning
}

// New makes a lexer of a text. JSX is certain only up to the first element.
func New(text string, jsx bool) *Lexer {
	l := &Lexer{text: text, jsx: jsx, newline: true}
	if strings.HasPrefix(text, "\uFEFF") {
		l.at = len("\uFEFF")
	}
	if strings.HasPrefix(text[l.at:], "#!") {
		l.skipLine()
	}
	return l
}

// Open returns the brackets that are still open. The result is valid until the next call of Next.
func (l *Lexer) Open() []Bracket { return l.open }

// Next reads a token. It returns false at the end.
func (l *Lexer) Next() (Token, bool) {
	l.skipSpace()
	if l.at >= len(l.text) {
		return Token{}, false
	}
	t := Token{Newline: l.newline, Start: int32(l.at)}
	l.token(&t)
	t.End = int32(l.at)
	if t.Kind == Comment {
		t.After = l.previous
		comment := l.text[t.Start:t.End]
		l.newline = l.newline || lineOf(comment) < len(comment)
	} else {
		l.ends = t.Kind == Number || t.Kind == Word && l.previous == Dot || t.Kind == Mark && t.Closes && t.After == Operand
		l.previous, l.newline = t.After, false
	}
	return t, true
}

func (l *Lexer) token(t *Token) {
	switch c := l.text[l.at]; {
	case IsDigit(c) || c == '.' && IsDigit(l.peek(1)):
		t.Kind, t.After = Number, Operand
		l.number()
	case IsWord(c) || c == '#' || c == '\\':
		l.word(t)
	case c == '"' || c == '\'':
		t.Kind, t.After = String, Operand
		l.quoted(c)
	case c == '`':
		l.template(t)
	case c == '(' || c == '[' || c == '{':
		after := Operand
		if c == '{' {
			after = Unsure
		} else if l.previous == Head {
			after = Operator
		}
		t.Kind, t.After, t.Opens = Mark, Operator, true
		l.open = append(l.open, Bracket{l.at, c, after})
		l.at++
	case c == ')' || c == ']' || c == '}':
		l.close(t, c)
	case c == '/':
		l.slash(t)
	default:
		if l.jsx && c == '<' && l.previous == Operator && (IsWord(l.peek(1)) || l.peek(1) == '>') {
			l.doubt("JSX")
		}
		l.punctuation(t, c)
	}
}

// doubt records that nothing is certain from here on.
func (l *Lexer) doubt(why string) {
	if l.Doubt == "" {
		l.Doubt, l.DoubtAt = why, min(l.at, len(l.text))
	}
}

func (l *Lexer) close(t *Token, c byte) {
	t.Kind = Mark
	if len(l.open) == 0 || Closing(l.open[len(l.open)-1].Text) != c {
		l.doubt(Mismatch)
		l.at++
		t.After = Unsure
		return
	}
	b := l.open[len(l.open)-1]
	l.open = l.open[:len(l.open)-1]
	t.Closes = true
	if b.Text == '`' {
		l.template(t)
		return
	}
	l.at++
	t.After = b.after
}

// IsCode reports whether a file is code by the ending of its name, IsTypeScript whether it is TypeScript, and IsJSX whether it may have
// elements.
func IsCode(name string) bool {
	switch path.Ext(name) {
	case ".js", ".mjs", ".cjs", ".jsx":
		return true
	default:
		return IsTypeScript(name)
	}
}

// IsTypeScript: see [IsCode].
func IsTypeScript(name string) bool {
	switch path.Ext(name) {
	case ".ts", ".mts", ".cts", ".tsx":
		return true
	default:
		return false
	}
}

// IsJSX: see [IsCode].
func IsJSX(name string) bool { return path.Ext(name) == ".tsx" || path.Ext(name) == ".jsx" }

// Closing returns the mark that closes a bracket or hole.
func Closing(open byte) byte {
	switch open {
	case '(':
		return ')'
	case '[':
		return ']'
	default:
		return '}'
	}
}

// template reads a part of a template, which begins with ` or with the bracket that ends a hole.
func (l *Lexer) template(t *Token) {
	t.Kind, t.After = Template, Operand
	for l.at++; l.at < len(l.text); l.at++ {
		switch l.text[l.at] {
		case '\\':
			l.at++
		case '`':
			l.at++
			return
		case '$':
			if l.peek(1) == '{' {
				l.open = append(l.open, Bracket{int(t.Start), '`', Operand})
				l.at += 2
				t.After, t.Opens = Operator, true
				return
			}
		}
	}
	l.at = len(l.text)
	l.doubt("an unterminated template")
}

func (l *Lexer) quoted(quote byte) {
	for l.at++; l.at < len(l.text); l.at++ {
		switch l.text[l.at] {
		case quote:
			l.at++
			return
		case '\\':
			l.at++
			if l.peek(0) == '\r' && l.peek(1) == '\n' {
				l.at++
			}
		case '\n', '\r':
			l.doubt("an unterminated string")
			return
		}
	}
	l.at = len(l.text)
	l.doubt("an unterminated string")
}

func (l *Lexer) number() {
	if l.text[l.at] == '0' && strings.IndexByte("xXoObB", l.peek(1)) >= 0 && l.peek(1) != 0 {
		l.at += 2
		l.letters()
		return
	}
	digits := func() {
		for IsDigit(l.peek(0)) || l.peek(0) == '_' {
			l.at++
		}
	}
	digits()
	if l.peek(0) == '.' {
		l.at++
		digits()
	}
	if e := l.peek(0); e == 'e' || e == 'E' {
		sign := 0
		if l.peek(1) == '+' || l.peek(1) == '-' {
			sign = 1
		}
		if IsDigit(l.peek(1 + sign)) {
			l.at += 1 + sign
			digits()
		}
	}
	if l.peek(0) == 'n' {
		l.at++
	}
	if l.at < len(l.text) && IsWord(l.text[l.at]) {
		l.doubt("a number that runs into a name")
	}
}

// slash reads a division, a regular expression, or a comment.
func (l *Lexer) slash(t *Token) {
	switch l.peek(1) {
	case '/':
		t.Kind = Comment
		l.skipLine()
		return
	case '*':
		t.Kind = Comment
		end := strings.Index(l.text[l.at+2:], "*/")
		if end < 0 {
			l.doubt("an unterminated comment")
			l.at = len(l.text)
			return
		}
		l.at += end + 4
		return
	}
	divides := true
	switch l.previous {
	case Operand:
		// A statement such as "let x" or "debugger" may have ended with the previous line, but not inside parentheses. In a line
		// without a second slash, it must be a division.
		inside := len(l.open) > 0 && (l.open[len(l.open)-1].Text == '(' || l.open[len(l.open)-1].Text == '[')
		certain := l.JavaScript && l.ends
		if l.newline && !inside && !certain && l.slashes() > 1 {
			l.doubt(slashDoubt)
		}
	case Operator:
		divides = false
	case Unsure, Dot, Head:
		l.doubt(slashDoubt)
		divides = !l.newline && l.previous != Head
	}
	l.at++
	if divides {
		t.Kind, t.After = Mark, Operator
		return
	}
	t.Kind, t.After = Pattern, Operand
	l.pattern()
}

const slashDoubt = "a slash that may be a division or start a regular expression"

// pattern reads the rest of a regular expression.
func (l *Lexer) pattern() {
	class := false
	for ; l.at < len(l.text); l.at++ {
		switch c := l.text[l.at]; {
		case c == '\\':
			l.at++
		case c == '[':
			class = true
		case c == ']':
			class = false
		case c == '/' && !class:
			l.at++
			l.letters()
			return
		case LineEnd(l.text[l.at:]) > 0:
			l.doubt("an unterminated regular expression")
			return
		}
	}
	l.at = len(l.text)
	l.doubt("an unterminated regular expression")
}

// letters skips ASCII letters and digits.
func (l *Lexer) letters() {
	for IsWord(l.peek(0)) && l.peek(0) < utf8.RuneSelf {
		l.at++
	}
}

// slashes counts the slashes in the rest of the line.
func (l *Lexer) slashes() int {
	rest := l.text[l.at:]
	return strings.Count(rest[:lineOf(rest)], "/")
}

func (l *Lexer) word(t *Token) {
	escaped := false
read:
	for start := l.at; l.at < len(l.text) && (IsWord(l.text[l.at]) || l.text[l.at] == '\\' || l.at == start); {
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
			break read
		default:
			l.at += size
		}
	}
	t.Kind, t.After = Word, Operand
	if escaped {
		l.doubt("a name that is written with escapes")
	}
	switch name := l.text[t.Start:l.at]; {
	case l.previous == Dot:
	case escaped:
		t.After = Unsure
	case name == "await" && l.previous == Head: // for await (
		t.After = Head
	default:
		t.After = meaningOf(name)
	}
}

// meaningOf returns the meaning of a name or keyword that does not follow a dot.
func meaningOf(name string) Meaning {
	switch name {
	case "if", "for", "while", "with":
		return Head
	case "return", "typeof", "case", "in", "delete", "throw", "new", "instanceof", "else", "do", "extends", "default":
		return Operator
	case "of", "yield", "await", "void", "keyof", "readonly", "unique", "infer", "asserts", "is", "abstract", "class":
		return Unsure // in some places these are names, in others they precede an operand
	default:
		return Operand
	}
}

func (l *Lexer) punctuation(t *Token, c byte) {
	previous, rest := l.previous, l.text[l.at:]
	t.Kind, t.After = Mark, Operator
	switch {
	case strings.HasPrefix(rest, "..."):
		l.at += 3
	case c == '.', c == '@':
		l.at++
		t.After = Dot
	case strings.HasPrefix(rest, "?.") && !IsDigit(l.peek(2)):
		l.at += 2
		t.After = Dot
	case strings.HasPrefix(rest, "=>"):
		l.at += 2
	case strings.HasPrefix(rest, "++") || strings.HasPrefix(rest, "--"):
		if l.newline && strings.HasPrefix(rest, "-->") {
			l.doubt("--> in code")
		}
		l.at += 2
		if previous == Operand && !l.newline {
			t.After = Operand // x++
		} else if previous != Operator {
			t.After = Unsure
		}
	case c == '>':
		l.at++
		t.After = Unsure // perhaps of type arguments
	case c == '!':
		l.at++
		if !l.newline && !strings.HasPrefix(rest, "!=") && previous != Operator {
			if t.After = Unsure; previous == Operand {
				t.After = Operand // TypeScript's x!
			}
		}
	default:
		if strings.HasPrefix(rest, "<!--") {
			l.doubt("<!-- in code")
		}
		l.at++
	}
}

// skipSpace skips white space.
func (l *Lexer) skipSpace() {
	for l.at < len(l.text) {
		r, size := utf8.DecodeRuneInString(l.text[l.at:])
		if !isSpace(r) {
			return
		}
		l.newline = l.newline || r != ' ' && LineEnd(l.text[l.at:]) > 0
		l.at += size
	}
}

func (l *Lexer) skipLine() { l.at += lineOf(l.text[l.at:]) }

// lineOf returns the length of the first line of text, without its end.
func lineOf(text string) int {
	for i := range len(text) {
		switch text[i] {
		case '\n', '\r', 0xe2: // the latter begins U+2028 and U+2029
			if LineEnd(text[i:]) > 0 {
				return i
			}
		}
	}
	return len(text)
}

// peek returns the byte n after this one. It returns 0 beyond the end.
func (l *Lexer) peek(n int) byte {
	if l.at+n < len(l.text) {
		return l.text[l.at+n]
	}
	return 0
}

// LineEnds are the characters that end a line.
const LineEnds = "\n\r\u2028\u2029"

// LineEnd returns how many bytes at the start of text are the end of a line. It returns 0 if there is none.
func LineEnd(text string) int {
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

// IsDigit reports whether a byte is a decimal digit.
func IsDigit(c byte) bool { return c >= '0' && c <= '9' }

// IsWord reports whether a byte can be part of a name. Bytes outside ASCII can.
func IsWord(c byte) bool {
	return c == '$' || c == '_' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || IsDigit(c) || c >= utf8.RuneSelf
}

func isSpace(r rune) bool {
	return r == ' ' || r >= '\t' && r <= '\r' || r >= utf8.RuneSelf && (r == '\uFEFF' || r == '\u2028' || r == '\u2029' || unicode.Is(unicode.Zs, r))
}
