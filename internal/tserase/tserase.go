// Package tserase removes the types from the body of a function in TypeScript, where it reads all of it without any doubt. What is left
// is JavaScript whose every character stands where its author wrote it, since a type becomes spaces. It is for small and usual code, in
// a twentieth of the time that a compiler takes; a compiler is for everything else.
package tserase

import (
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/stilehost/stile/internal/jslex"
)

// maxDepth bounds the nesting of code that Body reads.
const maxDepth = 200

// Body returns the body of an async function without its types, and true. It returns false for text that it does not read entirely: classes,
// enums, namespaces, declarations, decorators, imports and exports, types with conditions, code that can be read in two ways, and code with
// mistakes. Some mistakes it does not notice: the engine finds those that are left, and those in types mean nothing. It takes linear time.
func Body(text string) (erased string, ok bool) {
	if !plain(text) {
		return "", false
	}
	p := &parser{text: text}
	if !p.read() {
		return "", false
	}
	defer func() {
		if failed := recover(); failed != nil {
			if failed != refused {
				panic(failed)
			}
			erased, ok = "", false
		}
	}()
	for p.at < len(p.tokens) {
		p.statement()
	}
	if p.out == nil {
		return text, true
	}
	return string(p.out), true
}

// plain reports whether a text has only characters that everybody counts and breaks into lines in the same way.
func plain(text string) bool {
	for i := range len(text) {
		switch c := text[i]; {
		case c >= utf8.RuneSelf:
			return utf8.ValidString(text) && !strings.ContainsAny(text, "\x00\u2028\u2029\uFEFF") && strings.Count(text, "\r") == strings.Count(text, "\r\n")
		case c == 0, c == '\r' && !strings.HasPrefix(text[i:], "\r\n"):
			return false
		}
	}
	return true
}

// refused is what the parser panics with when it does not understand something.
var refused = new(int)

type parser struct {
	text   string
	tokens []jslex.Token // without comments
	pairs  []int32       // of each opening bracket the token that closes it
	follow []follow      // of each token
	at     int
	out    []byte // the text so far, once something was erased
	depth  int
	// colon says that a colon may follow the expression, as in a ? b : c.
	colon bool
	// arguments says that the type is among arguments, which may be comparisons.
	arguments bool
}

// follow is what follows a token before its brackets end: an arrow, or a > in the same statement.
type follow struct{ arrow, angle bool }

// read makes the tokens. It returns false if any of them is uncertain.
func (p *parser) read() bool {
	l := jslex.New(p.text, false)
	var open []int
	for {
		t, more := l.Next()
		if l.Doubt != "" {
			return false
		}
		if !more {
			return len(open) == 0 && p.look()
		}
		if t.Kind == jslex.Comment {
			continue
		}
		i := len(p.tokens)
		if t.Closes {
			p.pairs[open[len(open)-1]] = int32(i)
			open = open[:len(open)-1]
		}
		if t.Opens {
			open = append(open, i)
		}
		p.tokens, p.pairs = append(p.tokens, t), append(p.pairs, -1)
	}
}

// look sets what follows each token.
func (p *parser) look() bool {
	p.follow = make([]follow, len(p.tokens))
	levels := []follow{{}}
	for i := len(p.tokens) - 1; i >= 0; i-- {
		t := p.tokens[i]
		if t.Opens {
			levels = levels[:len(levels)-1]
		}
		now := &levels[len(levels)-1]
		p.follow[i] = *now
		if t.Kind == jslex.Mark {
			switch p.text[t.Start:t.End] {
			case "=>":
				now.arrow = true
			case ">":
				now.angle = true
			case ";":
				now.angle = false
			}
		}
		if t.Closes {
			levels = append(levels, follow{})
		}
	}
	return true
}

func (p *parser) refuse() { panic(refused) }

// deeper bounds the recursion. Its result undoes it.
func (p *parser) deeper() (out func()) {
	if p.depth++; p.depth > maxDepth {
		p.refuse()
	}
	return func() { p.depth-- }
}

// inside reads what stands between brackets, where no outer colon follows.
func (p *parser) inside(read func()) {
	outer := p.colon
	p.colon = false
	read()
	p.colon = outer
}

// token returns the token n after the next one. At the end it is one of no kind.
func (p *parser) token(n int) jslex.Token {
	if p.at+n < len(p.tokens) {
		return p.tokens[p.at+n]
	}
	return jslex.Token{Kind: end, Newline: true}
}

// end is the kind of what follows the last token.
const end = jslex.Comment

// word returns the text of the token n after the next one, if it is of this kind, and else nothing.
func (p *parser) textOf(kind jslex.Kind, n int) string {
	if t := p.token(n); t.Kind == kind {
		return p.text[t.Start:t.End]
	}
	return ""
}

func (p *parser) word() string { return p.textOf(jslex.Word, 0) }

func (p *parser) mark() string { return p.textOf(jslex.Mark, 0) }

// name reads a name. A private one belongs to a class.
func (p *parser) name() {
	if w := p.word(); w == "" || w[0] == '#' || reserved[w] {
		p.refuse()
	}
	p.at++
}

// accept reads a mark or word if it is next.
func (p *parser) accept(text string) bool {
	if p.mark() != text && p.word() != text {
		return false
	}
	p.at++
	return true
}

func (p *parser) expect(text string) {
	if !p.accept(text) {
		p.refuse()
	}
}

// erase replaces the tokens from one on to the next one by spaces.
func (p *parser) erase(from int) {
	if p.out == nil {
		p.out = []byte(p.text)
	}
	for i := p.tokens[from].Start; i < p.tokens[p.at-1].End; i++ {
		switch c := p.out[i]; {
		case c >= utf8.RuneSelf:
			p.refuse() // the columns behind it would change
		case c != '\n' && c != '\r':
			p.out[i] = ' '
		}
	}
}

// broken reports whether a line ends before the next token or one that was read, from one on.
func (p *parser) broken(from int) bool {
	return p.token(0).Newline || slices.ContainsFunc(p.tokens[from:p.at], func(t jslex.Token) bool { return t.Newline })
}

// operators are those between two operands, longer ones first. Arrows, and those that are words, are not among them.
var operators = []string{
	">>>=", "===", "!==", ">>>", "<<=", ">>=", "**=", "&&=", "||=", "??=",
	"==", "!=", "<=", ">=", "&&", "||", "??", "**", "<<", ">>", "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=",
	"=", "<", ">", "+", "-", "*", "/", "%", "&", "|", "^",
}

// operator returns the operator that is next, and of how many tokens it is.
func (p *parser) operator() (operator string, tokens int) {
	t := p.token(0)
	switch w := p.word(); {
	case w == "in" || w == "instanceof":
		return w, 1
	case t.Kind != jslex.Mark || t.Opens || t.Closes:
		return "", 0
	}
	for _, o := range operators {
		if !strings.HasPrefix(p.text[t.Start:], o) {
			continue
		}
		stop := t.Start + int32(len(o))
		for tokens = 1; p.token(tokens).Kind == jslex.Mark && p.token(tokens).Start < stop; tokens++ {
		}
		if p.token(tokens-1).End != stop { // = and >, which are an arrow
			return "", 0
		}
		return o, tokens
	}
	return "", 0
}

// reserved cannot be names.
var reserved = set("break case catch class const continue debugger default delete do else enum export extends false finally for function if import in instanceof new null return super switch this throw true try typeof var void while with")

// unusual begin statements that this package does not read.
var unusual = set("abstract class declare enum export global import module namespace using with")

// prefixes are words before an operand.
var prefixes = set("await delete typeof void")

// typeWords are reserved words that are types, and const of as const.
var typeWords = set("const false null this true void")

// primitives have no arguments.
var primitives = set("any bigint boolean never number object string symbol undefined unknown")

func set(words string) map[string]bool {
	all := map[string]bool{}
	for w := range strings.FieldsSeq(words) {
		all[w] = true
	}
	return all
}

func (p *parser) block() {
	defer p.deeper()()
	p.expect("{")
	for !p.accept("}") {
		p.statement()
	}
}

// semicolon ends a statement, with a semicolon or without.
func (p *parser) semicolon() {
	if p.accept(";") || p.mark() == "}" || p.token(0).Newline {
		return
	}
	p.refuse()
}

func (p *parser) statement() {
	defer p.deeper()()
	outer := p.colon
	p.colon = false
	defer func() { p.colon = outer }()
	switch p.mark() {
	case "{":
		p.block()
		return
	case ";":
		p.at++
		return
	}
	w, next := p.word(), p.token(1)
	beside := next.Kind == jslex.Word && !next.Newline // a word on the same line
	switch {
	case w == "import" && (p.textOf(jslex.Mark, 1) == "(" || p.textOf(jslex.Mark, 1) == "."):
		p.expression()
		p.semicolon()
	case unusual[w] && (reserved[w] || next.Kind == jslex.Word || next.Kind == jslex.String || next.Opens):
		p.refuse()
	case w == "var" || w == "let" || w == "const":
		p.declaration()
		p.semicolon()
	case w == "function" || w == "async" && beside && p.textOf(jslex.Word, 1) == "function":
		p.function(true)
	case w == "type" && beside && (p.textOf(jslex.Mark, 2) == "=" || p.textOf(jslex.Mark, 2) == "<"):
		p.without(func() {
			p.at += 2
			p.typeParameters()
			p.expect("=")
			p.typ()
			p.semicolon()
		})
	case w == "interface":
		p.without(func() {
			p.at++
			p.name()
			p.typeParameters()
			if p.accept("extends") {
				for p.typ(); p.accept(","); p.typ() {
				}
			}
			p.skip("{")
		})
	case w == "if" || w == "while":
		p.at++
		p.condition()
		p.statement()
		if w == "if" && p.accept("else") {
			p.statement()
		}
	case w == "for":
		p.loop()
	case w == "do":
		p.at++
		p.statement()
		p.expect("while")
		p.condition()
		p.accept(";")
	case w == "return" || w == "throw":
		p.at++
		if m := p.mark(); m != ";" && m != "}" && !p.token(0).Newline {
			p.expression()
		}
		p.semicolon()
	case w == "break" || w == "continue":
		p.at++
		if p.word() != "" && !p.token(0).Newline {
			p.name()
		}
		p.semicolon()
	case w == "try":
		p.at++
		p.block()
		if p.accept("catch") {
			if p.accept("(") {
				p.binding()
				p.annotation()
				p.expect(")")
			}
			p.block()
		}
		if p.accept("finally") {
			p.block()
		}
	case w == "switch":
		p.cases()
	case w == "debugger":
		p.at++
		p.semicolon()
	case w != "" && p.textOf(jslex.Mark, 1) == ":":
		p.name()
		p.at++
		p.statement()
	default:
		p.expression()
		p.semicolon()
	}
}

// without erases a statement, and leaves a semicolon, which ends the one before as the statement did.
func (p *parser) without(read func()) {
	from := p.at
	read()
	p.erase(from)
	p.out[p.tokens[from].Start] = ';'
}

func (p *parser) condition() {
	p.expect("(")
	p.expression()
	p.expect(")")
}

// declaration reads var, let or const and what it declares.
func (p *parser) declaration() {
	if p.at++; p.word() == "enum" {
		p.refuse()
	}
	for {
		p.binding()
		if p.mark() == "!" && p.textOf(jslex.Mark, 1) == ":" {
			p.at++
			p.erase(p.at - 1)
		}
		p.annotation()
		p.initial()
		if !p.accept(",") {
			return
		}
	}
}

func (p *parser) loop() {
	p.at++
	p.accept("await")
	p.expect("(")
	switch w := p.word(); {
	case w == "var" || w == "let" || w == "const":
		p.declaration()
	case w == "using":
		p.refuse()
	case p.mark() != ";":
		p.expression()
	}
	switch {
	case p.accept("of") || p.accept("in"):
		p.expression()
	case p.mark() == ";":
		for range 2 {
			p.expect(";")
			if m := p.mark(); m != ";" && m != ")" {
				p.expression()
			}
		}
	} // else it was x in y
	p.expect(")")
	p.statement()
}

func (p *parser) cases() {
	p.at++
	p.condition()
	p.expect("{")
	for !p.accept("}") {
		if !p.accept("default") {
			p.expect("case")
			p.colon = true
			p.expression()
			p.colon = false
		}
		p.expect(":")
		for p.mark() != "}" && p.word() != "case" && p.word() != "default" {
			p.statement()
		}
	}
}

// function reads a function, from async or function on. A declaration has a name.
func (p *parser) function(declares bool) {
	p.accept("async")
	p.expect("function")
	p.accept("*")
	if declares || p.word() != "" {
		p.name()
	}
	p.rest()
}

// rest reads a function from its type parameters on.
func (p *parser) rest() {
	defer p.deeper()()
	p.inside(func() {
		p.typeParameters()
		p.parameters()
		p.returnType()
		p.block()
	})
}

func (p *parser) parameters() {
	p.expect("(")
	for !p.accept(")") {
		p.accept("...")
		p.binding()
		if p.mark() == "?" {
			p.at++
			p.erase(p.at - 1)
		}
		p.annotation()
		p.initial()
		if p.mark() != ")" {
			p.expect(",")
		}
	}
}

// initial reads an initial value, if there is one.
func (p *parser) initial() {
	if o, _ := p.operator(); o == "=" {
		p.at++
		p.assignment()
	}
}

// binding reads a name or a pattern of names.
func (p *parser) binding() {
	defer p.deeper()()
	p.inside(func() {
		switch {
		case p.accept("{"):
			for !p.accept("}") {
				switch {
				case p.accept("..."):
					p.name()
				case p.key() && p.mark() != ":":
					p.initial()
				default:
					p.expect(":")
					p.binding()
					p.initial()
				}
				if p.mark() != "}" {
					p.expect(",")
				}
			}
		case p.accept("["):
			for !p.accept("]") {
				if p.accept(",") {
					continue
				}
				p.accept("...")
				p.binding()
				p.initial()
				if p.mark() != "]" {
					p.expect(",")
				}
			}
		default:
			p.name()
		}
	})
}

// key reads the key of a property, and reports whether it can stand alone, as a name.
func (p *parser) key() (alone bool) {
	switch t := p.token(0); {
	case t.Kind == jslex.Word && p.text[t.Start] != '#':
		p.at++
		return !reserved[p.text[t.Start:t.End]]
	case t.Kind == jslex.String || t.Kind == jslex.Number:
		p.at++
	default:
		p.expect("[")
		p.inside(p.assignment)
		p.expect("]")
	}
	return false
}

func (p *parser) expression() {
	for p.assignment(); p.accept(","); p.assignment() {
	}
}

// assignment reads an expression without a comma. What binds tighter does not matter here, except beside an erased type.
func (p *parser) assignment() {
	defer p.deeper()()
	for arrow := true; ; {
		if p.operand(arrow) {
			return
		}
		for p.word() == "as" || p.word() == "satisfies" {
			if p.token(0).Newline {
				break
			}
			from := p.at
			p.at++
			p.typ()
			p.erase(from)
			p.afterType()
		}
		if p.mark() == "?" && p.token(0).End-p.token(0).Start == 1 && !strings.HasPrefix(p.text[p.token(0).Start:], "??") {
			p.at++
			outer := p.colon
			p.colon = true
			p.assignment()
			p.colon = outer
			p.expect(":")
			p.assignment()
			return
		}
		o, n := p.operator()
		if o == "" {
			return
		}
		if o == "<" && p.follow[p.at].angle {
			p.refuse()
		}
		p.at += n
		arrow = o[len(o)-1] == '=' && !comparisons[o]
	}
}

var comparisons = set("== != === !== <= >=")

// afterType refuses what would continue the expression before an erased type, and what binds tighter than the type.
func (p *parser) afterType() {
	t := p.token(0)
	switch o, _ := p.operator(); o {
	case "", "==", "!=", "===", "!==", "&&", "||", "??", "=", "&&=", "||=", "??=":
	default:
		p.refuse()
	}
	if m := p.mark(); t.Kind == jslex.Template && !t.Closes || m == "(" || m == "[" || m == "." || m == "?." || m == "!" || m == "++" || m == "--" || p.word() == "extends" {
		p.refuse()
	}
}

// operand reads prefixes, an operand, and what follows it. It reports whether that was an arrow function, after which an expression ends.
// There can be one only where mayArrow says so.
func (p *parser) operand(mayArrow bool) (arrow bool) {
	defer p.deeper()()
	for start := p.at; ; {
		if p.at > start+maxDepth {
			p.refuse() // the engine reads prefixes by recursion
		}
		w, m := p.word(), p.mark()
		switch {
		case prefixes[w], m == "+", m == "-", m == "!", m == "~", m == "++", m == "--":
			p.at++
			mayArrow = false
			continue
		case w == "new" && p.textOf(jslex.Mark, 1) != ".":
			p.at++
			mayArrow = false
			continue
		case w == "yield":
			p.at++
			if p.accept("*") {
				continue
			}
			if t := p.token(0); t.Newline || t.Closes || p.mark() == ";" || p.mark() == "," || p.mark() == ":" {
				return true
			}
			continue
		}
		break
	}
	if mayArrow && p.arrow() {
		return true
	}
	t := p.token(0)
	switch w := p.word(); {
	case t.Kind == jslex.Number || t.Kind == jslex.String || t.Kind == jslex.Pattern:
		p.at++
	case t.Kind == jslex.Template && !t.Closes:
		p.template()
	case w == "function" || w == "async" && p.textOf(jslex.Word, 1) == "function" && !p.token(1).Newline:
		p.function(false)
	case w == "this" || w == "null" || w == "true" || w == "false" || w == "super":
		p.at++
	case w == "import":
		if m := p.textOf(jslex.Mark, 1); m != "(" && m != "." {
			p.refuse()
		}
		p.at++
	case w != "":
		p.name()
	case p.accept("("):
		p.inside(p.expression)
		p.expect(")")
	case p.accept("["):
		p.inside(func() { p.elements("]") })
	case p.accept("{"):
		p.inside(p.properties)
	default:
		p.refuse()
	}
	p.suffixes()
	return false
}

// suffixes reads what follows an operand: members, calls, and what TypeScript adds.
func (p *parser) suffixes() {
	for {
		t := p.token(0)
		switch m := p.mark(); {
		case m == "." || m == "?.":
			p.at++
			switch next := p.token(0); {
			case next.Kind == jslex.Word && p.text[next.Start] != '#':
				p.at++
			case m == "?." && (p.mark() == "(" || p.mark() == "["):
			default:
				p.refuse()
			}
		case m == "[":
			p.at++
			p.inside(p.expression)
			p.expect("]")
		case m == "(":
			p.at++
			p.inside(func() { p.elements(")") })
		case t.Kind == jslex.Template && !t.Closes:
			p.template()
		case (m == "++" || m == "--") && !t.Newline:
			p.at++
		case m == "!" && !t.Newline && !strings.HasPrefix(p.text[t.Start:], "!="):
			p.at++
			p.erase(p.at - 1)
		case m == "<" && !t.Newline && !strings.HasPrefix(p.text[t.Start:], "<=") && !strings.HasPrefix(p.text[t.Start:], "<<") && p.follow[p.at].angle:
			from := p.at
			p.arguments = true
			p.typeArguments()
			p.arguments = false
			p.erase(from)
			if next := p.token(0); p.mark() != "(" && (next.Kind != jslex.Template || next.Closes) {
				p.refuse()
			}
		default:
			return
		}
	}
}

func (p *parser) template() {
	for p.token(0).Opens {
		p.at++
		p.inside(p.expression)
		if t := p.token(0); t.Kind != jslex.Template || !t.Closes {
			p.refuse()
		}
	}
	p.at++
}

// elements reads those of a list, or arguments.
func (p *parser) elements(closing string) {
	for !p.accept(closing) {
		if closing == "]" && p.accept(",") {
			continue
		}
		p.accept("...")
		p.assignment()
		if p.mark() != closing {
			p.expect(",")
		}
	}
}

// properties reads those of an object, up to its end.
func (p *parser) properties() {
	for !p.accept("}") {
		p.property()
		if p.mark() != "}" {
			p.expect(",")
		}
	}
}

func (p *parser) property() {
	defer p.deeper()()
	if p.accept("...") {
		p.assignment()
		return
	}
	if w := p.word(); w == "get" || w == "set" || w == "async" {
		t := p.token(1)
		if t.Kind == jslex.Word || t.Kind == jslex.String || t.Kind == jslex.Number || p.textOf(jslex.Mark, 1) == "[" || p.textOf(jslex.Mark, 1) == "*" {
			p.at++
			p.accept("*")
			p.key()
			p.rest()
			return
		}
	}
	if p.accept("*") {
		p.key()
		p.rest()
		return
	}
	alone := p.key()
	switch m := p.mark(); {
	case m == "(" || m == "<":
		p.rest()
	case p.accept(":"):
		p.assignment()
	case alone && (m == "," || m == "}"):
	case alone && m == "=": // of a pattern
		p.at++
		p.assignment()
	default:
		p.refuse()
	}
}

// arrow reads an arrow function, if there is one.
func (p *parser) arrow() bool {
	start := p.at
	if p.word() == "async" && !p.token(1).Newline && p.textOf(jslex.Mark, 2) == "=>" {
		p.at++
	}
	if p.word() != "" && p.textOf(jslex.Mark, 1) == "=>" {
		p.name()
		p.arrowBody()
		return true
	}
	if p.word() == "async" && !p.token(1).Newline && (p.textOf(jslex.Mark, 1) == "(" || p.textOf(jslex.Mark, 1) == "<") {
		p.at++
	}
	if p.mark() == "<" { // in the place of an operand
		if start != p.at && !p.follow[p.at].angle { // async < b
			p.at = start
			return false
		}
		from := p.at
		p.typeParameters()
		if p.mark() != "(" || p.broken(from+1) { // a line would end behind return or async
			p.refuse()
		}
	} else if p.mark() != "(" {
		p.at = start
		return false
	}
	closing := int(p.pairs[p.at]) - p.at
	switch m := p.textOf(jslex.Mark, closing+1); {
	case m == ":" && p.colon:
		if p.follow[p.at+closing].arrow { // a ? (b) : c => d, which can be read in two ways
			p.refuse()
		}
		fallthrough
	default:
		if p.tokens[start].Kind == jslex.Mark && p.text[p.tokens[start].Start] == '<' {
			p.refuse()
		}
		p.at = start
		return false
	case m == "=>" || m == ":":
	}
	p.inside(p.parameters)
	after := p.at
	p.returnType()
	if p.broken(after) {
		p.refuse()
	}
	p.arrowBody()
	return true
}

func (p *parser) arrowBody() {
	if p.mark() != "=>" || p.token(0).Newline {
		p.refuse()
	}
	if p.at++; p.mark() == "{" {
		p.inside(p.block)
		return
	}
	p.assignment()
}

// annotation erases a colon and a type, if there is one.
func (p *parser) annotation() {
	if p.mark() == ":" {
		from := p.at
		p.at++
		p.typ()
		p.erase(from)
	}
}

// returnType is annotation for the result of a function, which may be a statement about a parameter.
func (p *parser) returnType() {
	if p.mark() != ":" {
		return
	}
	from := p.at
	if p.at++; p.word() == "asserts" {
		p.refuse()
	}
	if p.textOf(jslex.Word, 1) == "is" && !p.token(1).Newline {
		p.at += 2
	}
	p.typ()
	p.erase(from)
}

// typeParameters erases <T, U extends V = W>, if there are some.
func (p *parser) typeParameters() {
	if p.mark() != "<" {
		return
	}
	from := p.at
	p.at++
	for !p.accept(">") {
		for w := p.word(); (w == "const" || w == "in" || w == "out") && p.token(1).Kind == jslex.Word; w = p.word() {
			p.at++
		}
		p.name()
		if p.accept("extends") {
			p.typ()
		}
		if p.accept("=") {
			p.typ()
		}
		if p.mark() != ">" {
			p.expect(",")
		}
	}
	p.erase(from)
}

// typeArguments reads <T, U>.
func (p *parser) typeArguments() {
	p.expect("<")
	for {
		p.typ()
		if p.accept(">") {
			return
		}
		p.expect(",")
	}
}

// skip reads a bracket and all up to its end, which is a type. Among arguments it may be none, so there it reads what is inside.
func (p *parser) skip(open string) {
	if p.mark() != open {
		p.refuse()
	}
	if !p.arguments {
		p.at = int(p.pairs[p.at]) + 1
		return
	}
	p.at++
	closing := string(jslex.Closing(open[0]))
	for !p.accept(closing) {
		if p.member(open); p.mark() == closing || p.accept(",") {
			continue
		}
		if open != "{" || !p.accept(";") && !p.token(0).Newline {
			p.refuse()
		}
	}
}

// member reads a property of an object's type, an element of a list's, or a parameter of a function's. It knows only the usual ones.
func (p *parser) member(open string) {
	if open != "{" {
		p.accept("...")
	} else if p.word() == "readonly" && p.token(1).Kind == jslex.Word {
		p.at++
	}
	optional := p.textOf(jslex.Mark, 1) == "?" && p.textOf(jslex.Mark, 2) == ":"
	named := optional || p.textOf(jslex.Mark, 1) == ":"
	switch {
	case named && (p.word() != "" && !reserved[p.word()] || open == "{" && p.token(0).Kind == jslex.String):
		if p.at += 2; optional {
			p.at++
		}
	case open == "[" && !named:
	default:
		p.refuse()
	}
	p.typ()
}

// typ reads a type.
func (p *parser) typ() {
	defer p.deeper()()
	if !p.accept("|") {
		p.accept("&")
	}
	for {
		p.typeOperand()
		if !p.accept("|") && !p.accept("&") {
			break
		}
	}
	if p.word() == "extends" {
		p.refuse()
	}
}

func (p *parser) typeOperand() {
	for w := p.word(); w == "keyof" || w == "readonly"; w = p.word() {
		p.at++
	}
	prefix := p.word()
	if prefix == "typeof" || prefix == "new" {
		p.at++
	}
	t := p.token(0)
	switch w := p.word(); {
	case prefix == "typeof" && w == "" || prefix == "new" && p.mark() != "(" && p.mark() != "<":
		p.refuse()
	case w == "import" || w == "infer" || w == "unique" || w == "abstract" || w == "asserts" || reserved[w] && !typeWords[w]:
		p.refuse()
	case w != "":
		for p.at++; p.accept("."); p.at++ {
			if p.word() == "" {
				p.refuse()
			}
		}
		if p.mark() == "<" && !p.token(0).Newline {
			if typeWords[w] || primitives[w] {
				p.refuse()
			}
			p.typeArguments()
		}
	case t.Kind == jslex.String || t.Kind == jslex.Number:
		p.at++
	case t.Kind == jslex.Template && !t.Opens && !t.Closes:
		p.at++
	case p.accept("-"):
		if p.token(0).Kind != jslex.Number {
			p.refuse()
		}
		p.at++
	case p.mark() == "{" || p.mark() == "[":
		p.skip(p.mark())
	case p.mark() == "(" || p.mark() == "<":
		p.typeParameters()
		if p.mark() != "(" {
			p.refuse()
		}
		if p.textOf(jslex.Mark, int(p.pairs[p.at])-p.at+1) == "=>" {
			p.skip("(")
			p.at++
			if p.textOf(jslex.Word, 1) == "is" && !p.token(1).Newline {
				p.at += 2
			}
			p.typ()
			return
		}
		if prefix == "new" {
			p.refuse()
		}
		p.at++
		p.typ()
		p.expect(")")
	default:
		p.refuse()
	}
	for p.mark() == "[" && !p.token(0).Newline {
		if p.at++; p.mark() != "]" {
			p.typ()
		}
		p.expect("]")
	}
}
