package inspect

import (
	"strings"
	"unicode/utf8"
)

// template reads a part, which begins with ` or with the bracket that ends a hole.
func (l *lexer) template() {
	start := l.at
	for l.at++; l.at < len(l.text); l.at++ {
		switch l.text[l.at] {
		case '\\':
			l.at++
		case '`':
			l.at++
			l.add(template, start, operand)
			return
		case '$':
			if l.peek(1) == '{' {
				l.at += 2
				l.add(template, start, operator)
				l.push('`', operand)
				return
			}
		}
	}
	l.at = len(l.text)
	l.doubt("a template that does not end")
	l.add(template, start, operand)
}

func (l *lexer) quoted(quote byte) {
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
			l.doubt("a string that does not end")
			return
		}
	}
	l.at = len(l.text)
	l.doubt("a string that does not end")
}

func (l *lexer) number() {
	if l.text[l.at] == '0' && strings.IndexByte("xXoObB", l.peek(1)) >= 0 && l.peek(1) != 0 {
		l.at += 2
		for isWord(l.peek(0)) && l.peek(0) < utf8.RuneSelf {
			l.at++
		}
		return
	}
	digits := func() {
		for isDigit(l.peek(0)) || l.peek(0) == '_' {
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
		if isDigit(l.peek(1 + sign)) {
			l.at += 1 + sign
			digits()
		}
	}
	if l.peek(0) == 'n' {
		l.at++
	}
	if l.at < len(l.text) && isWord(l.text[l.at]) {
		l.doubt("a number that runs into a name")
	}
}

// slash is a division or a regular expression; comments are space.
func (l *lexer) slash() {
	divides := true
	switch l.previous {
	case operand:
		// A statement such as "let x" or "debugger" may have ended with the line before, but not inside parentheses. In a line
		// without a second slash nothing but a division can follow.
		inside := len(l.open) > 0 && (l.open[len(l.open)-1].text == '(' || l.open[len(l.open)-1].text == '[')
		if l.newline && !inside && l.slashes() > 1 {
			l.doubt("a slash that may divide or begin a regular expression")
		}
	case operator:
		divides = false
	case unsure, dot, head:
		l.doubt("a slash that may divide or begin a regular expression")
		divides = !l.newline && l.previous != head
	}
	start := l.at
	l.at++
	if divides {
		l.add(mark, start, operator)
		return
	}
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
			for isWord(l.peek(0)) && l.peek(0) < utf8.RuneSelf {
				l.at++
			}
			l.add(pattern, start, operand)
			return
		case lineEnd(l.text[l.at:]) > 0:
			l.doubt("a regular expression that does not end")
			l.add(pattern, start, operand)
			return
		}
	}
	l.at = len(l.text)
	l.doubt("a regular expression that does not end")
	l.add(pattern, start, operand)
}

// slashes counts the slashes in the rest of the line.
func (l *lexer) slashes() int {
	rest := l.text[l.at:]
	if end := strings.IndexAny(rest, lineEnds); end >= 0 {
		rest = rest[:end]
	}
	return strings.Count(rest, "/")
}
