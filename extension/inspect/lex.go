package inspect

import (
	"fmt"
	"strings"

	"github.com/stilehost/stile/internal/jslex"
)

// token is a piece of code. Comments and space are not tokens.
type token struct {
	kind       jslex.Kind
	newline    bool // a line ends between the token before and this one
	start, end int32
	// match is the other end of a bracket or hole: the token that closes it if this one opens it, or opens it if this one closes
	// it. It is -1 if there is none.
	match int32
}

const (
	// maxTokens bounds memory. Code of 16 MiB written by people or made by a minifier has as many; long lists of short numbers have more.
	maxTokens = 4 << 20
	// maxBrackets is the toolchain's limit of nesting: it refuses deeper code.
	maxBrackets = 15_000
)

// source is a file as tokens. If a token can be read in two ways, the lexer takes the more likely one and sets unclear: everything
// before that token is certain, and everything after it is not.
type source struct {
	name   string
	text   string
	tokens []token
	docs   map[int]span // the doc comment of a token, with its delimiters
	// unclear says why not everything is certain, and unclearAt where that begins. unclear is empty if everything is certain.
	unclear   string
	unclearAt int
	mend      string // what to write instead, when unclear is about brackets that do not match
	brackets  int    // how deep brackets nest
	lines     []int32
	last      Place // place of lastAt, the last offset that was asked for
	lastAt    int
}

type span struct{ start, end int32 }

// lex reads text. A JSX file is certain only up to the first element.
func lex(name, text string, jsx bool) *source {
	s := &source{name: name, text: text, docs: map[int]span{}}
	l := jslex.New(text, jsx)
	var open []int32 // tokens that wait for what closes them
	var doc span
	for {
		t, more := l.Next()
		switch {
		case l.Doubt == jslex.Mismatch && s.unclear == "":
			s.mismatch(l.Open(), `"`+text[t.Start:t.End]+`"`, int(t.Start))
		case s.unclear == "":
			s.unclear, s.unclearAt = l.Doubt, l.DoubtAt
		}
		if !more {
			break
		}
		if t.Kind == jslex.Comment {
			if isDoc(text, t) {
				doc = span{t.Start, t.End}
			}
			continue
		}
		if len(s.tokens) == maxTokens {
			s.doubt("more than 4 million tokens", int(t.Start))
			break
		}
		this := int32(len(s.tokens))
		if doc.end > 0 {
			s.docs[len(s.tokens)] = doc
			doc = span{}
		}
		s.tokens = append(s.tokens, token{t.Kind, t.Newline, t.Start, t.End, -1})
		if t.Closes {
			opener := open[len(open)-1]
			open = open[:len(open)-1]
			s.tokens[opener].match, s.tokens[this].match = this, opener
		}
		if t.Opens {
			open = append(open, this)
			s.brackets = max(s.brackets, len(open))
		}
	}
	if len(open) > 0 && s.unclear == "" {
		s.mismatch(l.Open(), "the end of the file", len(text))
	}
	for _, i := range open {
		s.tokens[i].match = int32(len(s.tokens))
	}
	return s
}

// isDoc reports whether a comment is about the code that follows it. A comment after code on the same line is about that code.
func isDoc(text string, t jslex.Token) bool {
	comment := text[t.Start:t.End]
	return strings.HasPrefix(comment, "/**") && len(comment) > len("/**/") &&
		(t.Newline || jslex.LineEnd(strings.TrimLeft(text[t.End:], " \t")) == 0)
}

func (s *source) doubt(why string, at int) {
	if s.unclear == "" {
		s.unclear, s.unclearAt = why, at
	}
}

// mismatch notes a closing bracket that closes nothing, or something else than was opened last.
func (s *source) mismatch(open []jslex.Bracket, here string, at int) {
	line, _ := s.line(at)
	if len(open) == 0 {
		s.mend = "it without this one, or with the one that it closes"
		s.doubt(fmt.Sprintf("%s in line %d, which closes nothing", here, line), at)
		return
	}
	b := open[len(open)-1]
	opened, _ := s.line(b.Start)
	text := string(b.Text)
	if b.Text == '`' {
		text = "${"
	}
	s.mend = fmt.Sprintf(`"%c" before it`, jslex.Closing(b.Text))
	s.doubt(fmt.Sprintf(`"%s" in line %d, which is closed by %s in line %d`, text, opened, here, line), at)
}

func set(words string) map[string]bool {
	m := map[string]bool{}
	for w := range strings.FieldsSeq(words) {
		m[w] = true
	}
	return m
}
