package abi

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// SyntaxError reports what is wrong with a WIT text, and where. It also reports wrong names and types.
type SyntaxError struct {
	// Text is the index of the text among those that were parsed, from 0.
	Text int
	// File is the path of the text within the folder that [ParseFolder] read; empty otherwise.
	File string
	// Line and Column count from 1, Column in characters. Both are 0 if the error concerns the texts as a whole.
	Line, Column int
	Message      string
}

// Error implements error.
func (e *SyntaxError) Error() string {
	where := fmt.Sprintf("wit text %d", e.Text+1)
	if e.File != "" {
		where = e.File
	}
	switch {
	case e.Line > 0:
		return fmt.Sprintf("%s, line %d, column %d: %s", where, e.Line, e.Column, e.Message)
	case e.File != "":
		return e.File + ": " + e.Message
	default:
		return "wit: " + e.Message
	}
}

// source is one WIT text.
type source struct {
	index int
	file  string
	text  string
}

// position is a byte offset in a text. Line and column are counted only when an error needs them.
type position struct {
	source *source
	offset int
}

func (p position) errorf(format string, args ...any) *SyntaxError {
	before := p.source.text[:p.offset]
	line := before[strings.LastIndexByte(before, '\n')+1:]
	return &SyntaxError{
		Text:    p.source.index,
		File:    p.source.file,
		Line:    strings.Count(before, "\n") + 1,
		Column:  utf8.RuneCountInString(strings.TrimPrefix(line, byteOrderMark)) + 1,
		Message: fmt.Sprintf(format, args...),
	}
}

const byteOrderMark = "\ufeff"

// check refuses text that is too long, or that could mislead a reader about its contents.
func (s *source) check() error {
	if len(s.text) > maxText {
		return position{s, 0}.errorf("the text is too long; at most %d bytes are allowed", maxText)
	}
	for offset, r := range s.text {
		switch {
		case r == utf8.RuneError && !strings.HasPrefix(s.text[offset:], string(utf8.RuneError)):
			return position{s, offset}.errorf("the text is not UTF-8")
		case r == '\n', r == '\t', r == '\r' && strings.HasPrefix(s.text[offset:], "\r\n"):
		case unicode.IsControl(r), unicode.Is(unicode.Bidi_Control, r):
			return position{s, offset}.errorf("the character %U is not allowed in WIT", r)
		}
	}
	return nil
}

type tokenKind uint8

const (
	tokenEnd tokenKind = iota
	// tokenName is an identifier; text is without the `%`.
	tokenName
	tokenKeyword
	tokenNumber
	// tokenMark is punctuation.
	tokenMark
	// tokenBad cannot start anything; text says why.
	tokenBad
)

type token struct {
	kind tokenKind
	text string
	at   position
	// doc is the text of the doc comments since the previous token.
	doc string
}

func (t token) String() string {
	switch t.kind {
	case tokenEnd:
		return "the end of the text"
	case tokenKeyword:
		return "the keyword `" + t.text + "`"
	default:
		return "`" + t.text + "`"
	}
}

// keywords are the words that a name must escape with `%`.
var keywords = map[string]bool{
	"use": true, "type": true, "func": true, "u8": true, "u16": true, "u32": true, "u64": true, "s8": true, "s16": true,
	"s32": true, "s64": true, "f32": true, "f64": true, "char": true, "resource": true, "own": true, "borrow": true,
	"record": true, "flags": true, "variant": true, "enum": true, "bool": true, "string": true, "option": true,
	"result": true, "future": true, "stream": true, "error-context": true, "list": true, "map": true, "_": true,
	"as": true, "from": true, "static": true, "interface": true, "tuple": true, "world": true, "import": true,
	"export": true, "package": true, "constructor": true, "include": true, "with": true, "async": true,
}

// lexer cuts one text into tokens.
type lexer struct {
	source *source
	offset int
}

func newLexer(s *source) lexer {
	if strings.HasPrefix(s.text, byteOrderMark) {
		return lexer{s, len(byteOrderMark)}
	}
	return lexer{s, 0}
}

func (l *lexer) next() token {
	doc, open := l.space()
	t := token{at: position{l.source, l.offset}, doc: doc}
	if open != "" {
		t.kind, t.text = tokenBad, open
		return t
	}
	rest := l.source.text[l.offset:]
	if rest == "" {
		return t
	}
	switch c := rest[0]; {
	case strings.HasPrefix(rest, "->"):
		t.kind, t.text = tokenMark, "->"
		l.offset += 2
	case strings.IndexByte("=,:;.(){}<>@/*", c) >= 0:
		t.kind, t.text = tokenMark, rest[:1]
		l.offset++
	case c == '%':
		t.kind, t.text = tokenName, rest[1:1+wordLength(rest[1:])]
		l.offset += 1 + len(t.text)
	case c >= '0' && c <= '9':
		t.kind, t.text = tokenNumber, rest[:wordLength(rest)]
		l.offset += len(t.text)
	case wordLength(rest) > 0:
		t.kind, t.text = tokenName, rest[:wordLength(rest)]
		if keywords[t.text] {
			t.kind = tokenKeyword
		}
		l.offset += len(t.text)
	default:
		r, _ := utf8.DecodeRuneInString(rest)
		t.kind, t.text = tokenBad, fmt.Sprintf("unexpected character %q", r)
	}
	return t
}

// wordLength counts the bytes at the start of s that may occur in a name, a keyword or a number.
func wordLength(s string) int {
	for i, c := range []byte(s) {
		if c != '-' && c != '_' && (c < '0' || c > '9') && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') {
			return i
		}
		if c == '-' && strings.HasPrefix(s[i:], "->") {
			return i
		}
	}
	return len(s)
}

// space skips white space and comments. It returns the text of the doc comments in between. problem is set if a comment does not
// end.
func (l *lexer) space() (doc, problem string) {
	var lines []string
	for {
		rest := l.source.text[l.offset:]
		trimmed := strings.TrimLeft(rest, " \t\r\n")
		l.offset += len(rest) - len(trimmed)
		switch {
		case strings.HasPrefix(trimmed, "//"):
			line, _, _ := strings.Cut(trimmed, "\n")
			l.offset += len(line)
			if strings.HasPrefix(line, "///") {
				lines = append(lines, strings.TrimLeft(line, "/"))
			}
		case strings.HasPrefix(trimmed, "/*"):
			length := blockLength(trimmed)
			if length < 0 {
				return "", "a comment starts here and does not end"
			}
			l.offset += length
			if strings.HasPrefix(trimmed, "/**") && length > len("/**/") {
				for line := range strings.Lines(trimmed[len("/**") : length-len("*/")]) {
					line = strings.TrimLeft(line, " \t")
					lines = append(lines, strings.TrimPrefix(strings.TrimPrefix(line, "*"), " "))
				}
			}
		default:
			return docText(lines), ""
		}
	}
}

// blockLength is the length of the block comment that s starts with, or -1. Block comments nest.
func blockLength(s string) int {
	depth := 0
	for i := 0; i+1 < len(s); i++ {
		switch s[i : i+2] {
		case "/*":
			depth++
			i++
		case "*/":
			depth--
			i++
			if depth == 0 {
				return i + 1
			}
		}
	}
	return -1
}

// docText joins the lines of a doc comment without their common indentation and without blank lines around them.
func docText(lines []string) string {
	indent := -1
	for i, line := range lines {
		line = strings.TrimRight(line, " \t\r\n")
		lines[i] = line
		if spaces := len(line) - len(strings.TrimLeft(line, " ")); line != "" && (indent < 0 || spaces < indent) {
			indent = spaces
		}
	}
	for i, line := range lines {
		lines[i] = line[min(max(indent, 0), len(line)):]
	}
	return strings.Trim(strings.Join(lines, "\n"), "\n")
}
