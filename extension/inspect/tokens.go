package inspect

import (
	"math"
	"sort"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/stilehost/stile/extension"
	"github.com/stilehost/stile/internal/jslex"
	"github.com/stilehost/stile/internal/printable"
)

// at is the text of token i. It is empty beyond the end.
func (s *source) at(i int) string {
	if i < 0 || i >= len(s.tokens) {
		return ""
	}
	return s.text[s.tokens[i].start:s.tokens[i].end]
}

// is reports whether token i is this word or punctuation.
func (s *source) is(i int, text string) bool {
	return i >= 0 && i < len(s.tokens) && (s.tokens[i].kind == jslex.Word || s.tokens[i].kind == jslex.Mark) && s.at(i) == text
}

// isName reports whether token i is a name or keyword.
func (s *source) isName(i int) bool { return s.kindOf(i, jslex.Word) }

func (s *source) kindOf(i int, k jslex.Kind) bool {
	return i >= 0 && i < len(s.tokens) && s.tokens[i].kind == k
}

// newline reports whether token i begins a line, or is beyond the end.
func (s *source) newline(i int) bool { return i >= len(s.tokens) || s.tokens[i].newline }

// member reports whether token i is the name of a member, as in a.b.
func (s *source) member(i int) bool { return s.is(i-1, ".") || s.is(i-1, "?.") }

// match returns the token that closes what token i opens, or the number of tokens if none does.
func (s *source) match(i int) int {
	if m := int(s.tokens[i].match); m > i {
		return m
	}
	return len(s.tokens)
}

// opens reports whether token i opens a bracket or the hole of a template.
func (s *source) opens(i int) bool { return int(s.tokens[i].match) > i }

// next returns the token after token i, or after what closes i if i opens something.
func (s *source) next(i int) int {
	for i < len(s.tokens) && s.opens(i) {
		i = s.match(i)
	}
	return i + 1
}

// offset is where token i begins in the text.
func (s *source) offset(i int) int {
	if i < len(s.tokens) {
		return int(s.tokens[i].start)
	}
	return len(s.text)
}

// value is the text of a string or a template without holes. ok is false if that is not Unicode text.
func (s *source) value(i int) (value string, ok bool) {
	t := s.at(i)
	switch {
	case s.kindOf(i, jslex.String) && len(t) >= 2 && t[len(t)-1] == t[0]:
		return unescape(t[1 : len(t)-1])
	case s.kindOf(i, jslex.Template) && len(t) >= 2 && t[0] == '`' && t[len(t)-1] == '`':
		return unescape(t[1 : len(t)-1])
	default:
		return "", false
	}
}

// unescape resolves the escapes of a string. It leaves those that it cannot resolve, and returns false.
func unescape(text string) (value string, ok bool) {
	if strings.IndexByte(text, '\\') < 0 {
		return strings.ReplaceAll(text, "\r\n", "\n"), utf8.ValidString(text)
	}
	ok = utf8.ValidString(text)
	var b strings.Builder
	for i := 0; i < len(text); {
		if text[i] != '\\' || i+1 == len(text) {
			b.WriteByte(text[i])
			i++
			continue
		}
		if n := jslex.LineEnd(text[i+1:]); n > 0 {
			i += 1 + n
			continue
		}
		r, size := escape(text[i+1:])
		if r < 0 {
			ok = false
			b.WriteByte(text[i])
			i++
			continue
		}
		i += 1 + size
		if utf16.IsSurrogate(r) {
			low, lowSize := rune(-1), 0
			if i < len(text) && text[i] == '\\' {
				low, lowSize = escape(text[i+1:])
			}
			if r = utf16.DecodeRune(r, low); r == utf8.RuneError {
				ok = false
			} else {
				i += 1 + lowSize
			}
		}
		b.WriteRune(r)
	}
	return b.String(), ok
}

// escape reads what follows a backslash. It returns -1 if that is not an escape of strict code.
func escape(text string) (r rune, size int) {
	if text == "" {
		return -1, 0
	}
	hex := func(digits string, size int) (rune, int) {
		n, err := strconv.ParseUint(digits, 16, 32)
		if err != nil || n > utf8.MaxRune {
			return -1, 0
		}
		return rune(n), size
	}
	switch c := text[0]; {
	case c == 'x' && len(text) >= 3:
		return hex(text[1:3], 3)
	case c == 'u' && strings.HasPrefix(text, "u{"):
		if end := strings.IndexByte(text[:min(len(text), 16)], '}'); end > 0 {
			return hex(text[2:end], end+1)
		}
		return -1, 0
	case c == 'u' && len(text) >= 5:
		return hex(text[1:5], 5)
	case c == '0' && (len(text) < 2 || !jslex.IsDigit(text[1])):
		return 0, 1
	case c == 'x' || c == 'u' || jslex.IsDigit(c):
		return -1, 0
	}
	if i := strings.IndexByte("bfnrtv", text[0]); i >= 0 {
		return rune("\b\f\n\r\t\v"[i]), 1
	}
	return utf8.DecodeRuneInString(text)
}

// numberValue returns the value of a number. ok is false if JSON cannot represent it, or if sloppy mode reads it differently.
func numberValue(text string) (float64, bool) {
	if len(text) > 1 && text[0] == '0' && strings.IndexByte("xXoObB", text[1]) >= 0 {
		n, err := strconv.ParseUint(text, 0, 53)
		return float64(n), err == nil
	}
	if len(text) > 1 && text[0] == '0' && jslex.IsDigit(text[1]) || strings.HasSuffix(text, "n") {
		return 0, false
	}
	f, err := strconv.ParseFloat(strings.ReplaceAll(text, "_", ""), 64)
	return f, err == nil && !math.IsInf(f, 0)
}

// Place is a position in the source tree.
type Place struct {
	File string `json:"file"`
	// Line and Column count from 1, columns in characters.
	Line   int `json:"line"`
	Column int `json:"column"`
}

// place returns the place of an offset in the text. Places near the one before are cheapest.
func (s *source) place(offset int) Place {
	line, start := s.line(offset)
	if s.last.Line != line {
		s.last, s.lastAt = Place{printable.OneLine(s.name), line, 1}, start
	}
	if s.lastAt <= offset {
		s.last.Column += utf8.RuneCountInString(s.text[s.lastAt:offset])
	} else {
		s.last.Column -= utf8.RuneCountInString(s.text[offset:s.lastAt])
	}
	s.lastAt = offset
	return s.last
}

// line returns the line of an offset, counted from 1, and where the line begins.
func (s *source) line(offset int) (line, start int) {
	if s.lines == nil {
		s.lines = []int32{0}
		for i := 0; i < len(s.text); i++ {
			if c := s.text[i]; c > '\r' && c < utf8.RuneSelf {
				continue
			}
			if n := jslex.LineEnd(s.text[i:]); n > 0 {
				i += n - 1
				s.lines = append(s.lines, int32(i+1))
			}
		}
	}
	line = sort.Search(len(s.lines), func(i int) bool { return int(s.lines[i]) > offset })
	return line, int(s.lines[line-1])
}

// problem returns a problem at an offset in the text.
func (s *source) problem(offset int, text, fix string) extension.Problem {
	offset = min(offset, len(s.text))
	p := s.place(offset)
	return extension.Problem{File: p.File, Line: p.Line, Column: p.Column, Text: printable.OneLine(text), Fix: printable.OneLine(fix), Snippet: s.snippet(offset)}
}

// problemAt returns a problem at token i.
func (s *source) problemAt(i int, text, fix string) *extension.Problem {
	p := s.problem(s.offset(i), text, fix)
	return &p
}

// snippet returns the line around an offset, with a mark below it.
func (s *source) snippet(offset int) string {
	const before, after = 80, 120 // characters
	_, start := s.line(offset)
	end := offset
	for n := 0; end < len(s.text) && n < after && jslex.LineEnd(s.text[end:]) == 0; n++ {
		_, size := utf8.DecodeRuneInString(s.text[end:])
		end += size
	}
	from := offset
	for n := 0; from > start && n < before; n++ {
		_, size := utf8.DecodeLastRuneInString(s.text[start:from])
		from -= size
	}
	shown := strings.TrimLeft(printable.OneLine(s.text[from:offset]), " ")
	return shown + printable.OneLine(s.text[offset:end]) + "\n" + strings.Repeat(" ", utf8.RuneCountInString(shown)) + "^"
}

// quote puts a stranger's text in quotation marks, and cuts it if it is long.
func quote(s string) string { return `"` + printable.OneLine(printable.Short(s, 80)) + `"` }

// offsetOf is the offset of a place in the file.
func (s *source) offsetOf(at Place) int {
	s.line(0)
	offset := int(s.lines[min(max(at.Line-1, 0), len(s.lines)-1)])
	for range at.Column - 1 {
		_, size := utf8.DecodeRuneInString(s.text[offset:])
		offset += size
	}
	return offset
}
