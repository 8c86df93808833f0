package toolchain

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/evanw/esbuild/pkg/api"

	"github.com/stilehost/stile/internal/jslex"
	"github.com/stilehost/stile/internal/lazyregexp"
	"github.com/stilehost/stile/internal/printable"
)

// esbuild parses by recursion, and Go ends the whole process when a stack outgrows 1 GB, which takes a few hundred thousand open
// brackets. So nesting is bounded before esbuild sees a file. A level takes 7 KB of stack, at worst 13 KB. Of 18,000 files of
// popular packages, the deepest had 1,064 levels.
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
	// unclear says why the nesting is uncertain. Each token then counts as a level.
	unclear string
	// work is about the maximum processor time, and at is where most of it begins.
	work time.Duration
	at   int
	// twice is set if most of the time is spent on what is parsed twice.
	twice bool
}

// The time to parse a token at a depth: what esbuild tries twice, it tries at each level of the file, and some of its passes look at
// all levels for each token.
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
func nestingOf(text string, loader api.Loader) nested {
	switch loader {
	case api.LoaderText, api.LoaderBinary:
		return nested{}
	case api.LoaderJSX, api.LoaderTSX:
		return unclearNesting(text, "JSX", 0)
	default:
	}
	l := jslex.New(text, false)
	l.JavaScript = loader == api.LoaderJS
	n := nesting{data: loader == api.LoaderJSON, levels: []level{{}}}
	levels, work, found, most := 0, 0.0, nested{}, 0.0
	for levels <= maxNesting {
		t, more := l.Next()
		if l.Doubt != "" && l.DoubtAt < len(text) { // at the end it hides nothing
			return unclearNesting(text, l.Doubt, l.DoubtAt)
		}
		if !more {
			break
		}
		if t.Kind == jslex.Comment {
			continue
		}
		n.token(t, text[t.Start:t.End])
		levels = max(levels, n.depth)
		d := float64(n.depth)
		token := math.Ldexp(workOfToken+workOfLevel*d+workOfSquare*d*d, n.doublings)
		work += token
		if token > 2*most { // the last time; this is close to where it becomes too much
			most, found.at, found.twice = token, int(t.End), n.doublings >= usualDoublings
		}
	}
	found.levels, found.work = levels, time.Duration(min(work, maxWork))
	return found
}

// triedTwice matches what may make esbuild parse what follows twice, wherever it stands.
var triedTwice = lazyregexp.New(`\binfer\b|\?` + between + `*\(` + between + `*[\pL\p{Nl}$_{\[.)@\\]`)

func unclearNesting(text, why string, at int) nested {
	tokens := tokensIn(text)
	t := float64(tokens)
	work := math.Ldexp(workOfToken*t+workUnclear*t*t*t, min(len(triedTwice.FindAllStringIndex(text, 64)), 64))
	if why != "JSX" {
		why += fmt.Sprintf(" on line %d", strings.Count(text[:at], "\n")+1)
	}
	return nested{levels: tokens, unclear: why, work: time.Duration(min(work, maxWork))}
}

// problem says where a file takes too much work and what its author can do. more is what is allowed.
func (n nested) problem(text, file string, most time.Duration) Problem {
	if n.unclear != "" {
		return Problem{File: printable.OneLine(file), Text: fmt.Sprintf("it is too large to have %s, because it is unclear after that how long parsing takes; split the file", n.unclear)}
	}
	before := text[:n.at]
	start := strings.LastIndexByte(before, '\n') + 1
	line, _, _ := strings.Cut(text[start:], "\n")
	p := Problem{File: printable.OneLine(file), Line: strings.Count(before, "\n") + 1, Column: utf8.RuneCountInString(before[start:])}
	p.Snippet = Snippet(line, p.Column)
	p.Text = fmt.Sprintf("with the nesting here, parsing the file can take longer than the limit of %v; ", most)
	if n.twice {
		p.Text += "write a ? b : (c => d) for a ? (b) : c => d, and give inferred types names of their own"
	} else {
		p.Text += "give parts of it names of their own"
	}
	return p
}

// tokensIn counts words and other characters, wherever they stand.
func tokensIn(text string) int {
	count := 0
	inWord := false
	for _, c := range []byte(text) {
		word := jslex.IsWord(c)
		if c > ' ' && (!word || !inWord) {
			count++
		}
		inWord = word
	}
	return count
}

// nesting adds up the levels that a recursive parser has open. Between brackets, every token counts as a level (as in !!!!x or
// a=>a=>x), until a comma or semicolon ends what they could have opened. It never guesses: after text that can be read in two ways,
// its result is not used, because code could hide behind the error.
type nesting struct {
	data   bool // JSON, in which no comma joins expressions
	depth  int  // of all levels
	levels []level

	previous jslex.Meaning
	closed   bool // the previous token is a "}"
	question bool // the previous token is a "?"

	// doublings is how often esbuild parses a token, as a power of two. It parses twice what follows a ? (b) : c =>, since that may
	// be an arrow function or the start of the else branch, and what follows infer A extends.
	doublings int
	inferred  int // how many tokens ago there was an infer, from 1; 0 if it was longer ago
}

// level is an open bracket, an open template, or the file.
type level struct {
	tokens int  // since the last comma or semicolon
	kept   int  // tokens that those do not end: else, and but for semicolons < of type arguments
	commas int  // since the last semicolon
	array  bool // its commas are between elements
	// asked is how many times ? ( was read that may still be the begin of an arrow function, and doubled how many doublings began with
	// that. Between its ) : and => there is a type, which has a ? only after extends.
	asked, doubled int
	extended       bool
	// inferred are the doublings that began with infer A extends: how many < were open. A conditional type may be a part of them.
	inferred    []int
	conditional bool
	angles      int // < that no > followed
	less        int // < among kept
	// decorated is set from a decorator to the end of what it decorates, which may begin on a new line.
	decorated bool
}

// depth is how many levels there are directly in this one.
func (l *level) depth() int { return l.tokens + l.kept + l.commas/commasOfLevel }

var (
	// typeOperators begin types that may be conditional wherever they occur.
	typeOperators = []string{"is", "asserts", "keyof", "readonly"}
	// goingOn continue what comes before, even on a new line. Any other name there, or after a "}", begins something new.
	goingOn = []string{"else", "while", "in", "instanceof", "of", "as", "satisfies", "extends", "catch", "finally", "from", "is"}
)

// token reads one token.
func (n *nesting) token(t jslex.Token, text string) {
	l := n.level()
	if n.question && text == "(" {
		l.asked++
	}
	n.question = text == "?"
	if n.inferred > 0 {
		n.inferred = (n.inferred + 1) % 4
	}
	switch {
	case t.Kind == jslex.Word:
		n.name(t, text)
	case t.Kind == jslex.Template:
		if t.Closes {
			n.close()
		} else {
			n.open()
		}
		if t.Opens {
			n.open()
		} else {
			n.close()
		}
	case t.Opens:
		array := text == "[" && n.previous == jslex.Operator
		n.open()
		n.level().array = array
	case t.Closes:
		n.close()
	case t.Kind == jslex.Mark:
		n.punctuation(t, text)
	default:
		n.counts()
	}
	n.previous, n.closed = t.After, text == "}"
}

// level is the innermost one.
func (n *nesting) level() *level { return &n.levels[len(n.levels)-1] }

// counts adds a token to the current level.
func (n *nesting) counts() {
	n.level().tokens++
	n.depth++
}

// ends forgets the tokens of the current level that do not outlast the end of an expression.
func (n *nesting) ends() {
	l := n.level()
	n.depth -= l.tokens
	l.tokens = 0
}

// endsTwice ends what is parsed twice in the current level.
func (n *nesting) endsTwice() {
	l := n.level()
	n.doublings -= l.doubled
	l.asked, l.doubled, l.extended = 0, 0, false
}

// endsInferred ends what was inferred within so many type arguments or more.
func (n *nesting) endsInferred(angles int) {
	l := n.level()
	for len(l.inferred) > 0 && l.inferred[len(l.inferred)-1] >= angles {
		l.inferred = l.inferred[:len(l.inferred)-1]
		n.doublings--
	}
	l.conditional = l.conditional && len(l.inferred) > 0
}

// endsAll forgets what commas do not end either, at a semicolon or where a line ends like with one.
func (n *nesting) endsAll() {
	n.ends()
	l := n.level()
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
	l := n.level()
	l.tokens--
	l.kept++
}

func (n *nesting) open() {
	n.counts()
	n.levels = append(n.levels, level{})
}

func (n *nesting) close() {
	l := n.level()
	n.levels = n.levels[:len(n.levels)-1]
	n.depth -= l.depth()
	n.doublings -= l.doubled + len(l.inferred)
}

// begins ends all before a token that begins something new.
func (n *nesting) begins(t jslex.Token) {
	l := n.level()
	if n.closed || t.Newline && n.previous == jslex.Operand && !l.decorated {
		n.endsAll()
		if n.closed {
			n.depth -= l.kept
			l.kept, l.less = 0, 0
		}
	}
}

func (n *nesting) name(t jslex.Token, name string) {
	l := n.level()
	if !slices.Contains(goingOn, name) {
		n.begins(t)
	}
	n.counts()
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

func (n *nesting) punctuation(t jslex.Token, mark string) {
	l := n.level()
	if mark == "@" {
		n.begins(t)
		l.decorated = true
	}
	n.counts()
	switch mark {
	case ",":
		n.ends()
		n.endsInferred(l.angles)
		if l.kept == 0 { // else it may be between type arguments
			n.endsTwice()
		}
		if !l.array && !n.data {
			n.depth -= l.depth()
			l.commas++
			n.depth += l.depth()
		}
	case ";":
		n.endsAll()
	case "?", "?.":
		if !l.conditional {
			n.endsInferred(l.angles)
		}
		if !l.extended {
			l.asked = 0
		}
	case "<":
		n.keeps()
		l.angles++
		l.less++
	case ">":
		l.angles = max(0, l.angles-1)
		n.endsInferred(l.angles + 1)
	case "=>":
		l.doubled += l.asked
		n.doublings += l.asked
		l.asked, l.extended, l.conditional = 0, false, true
	}
}
