package jslex

import (
	"fmt"
	"strings"
	"testing"
)

// TestNext says of each token what callers ask of it: ^ that a line ends before it, < that it opens, > that it closes.
func TestNext(t *testing.T) {
	kinds := [...]string{Word: "word", Number: "number", String: "string", Template: "template", Pattern: "pattern", Mark: "", Comment: "comment"}
	for _, tt := range []struct{ text, want, doubt string }{
		{"a /* b\n */ (c)", "^word:a comment:/* b\n */ ^<( word:c >)", ""},
		{"a // b\nc", "^word:a comment:// b ^word:c", ""},
		{"`a${b}c${d}`", "^<template:`a${ word:b ><template:}c${ word:d >template:}`", ""},
		{"`${{}}`", "^<template:`${ <{ >} >template:}`", ""},
		{"x = /[/]/g", "^word:x = pattern:/[/]/g", ""},
		{"1.5.f", "^number:1.5 . word:f", ""},
		{"@a.if /b", "^@ word:a . word:if / word:b", ""},
		{"@if /b/", "^@ word:if / word:b /", ""},
		{"(]", "^<( ]", Mismatch},
		{"a?.b?.1:c", "^word:a ?. word:b ? number:.1 : word:c", ""},
		{"#!a\nb", "^word:b", ""},
		{"\uFEFFa", "^word:a", ""},
		{"a /* b", "^word:a comment:/* b", "an unterminated comment"},
		{"", "", ""},
	} {
		l := New(tt.text, false)
		var got []string
		for token, more := l.Next(); more; token, more = l.Next() {
			var b strings.Builder
			for _, sign := range []struct {
				is   bool
				text string
			}{{token.Newline, "^"}, {token.Closes, ">"}, {token.Opens, "<"}, {kinds[token.Kind] != "", kinds[token.Kind] + ":"}} {
				if sign.is {
					b.WriteString(sign.text)
				}
			}
			got = append(got, b.String()+tt.text[token.Start:token.End])
		}
		if strings.Join(got, " ") != tt.want || l.Doubt != tt.doubt {
			t.Errorf("%q: got %q, %q", tt.text, strings.Join(got, " "), l.Doubt)
		}
	}
}

// A slash at the start of a line divides what JavaScript has ended with a bracket, a number or a member; the end of a type, or a name, may end a statement.
func TestSlashes(t *testing.T) {
	for _, tt := range []struct {
		text             string
		script, anything bool // doubts
	}{
		{"a = b[c] // d\n/ e // f", false, true},
		{"a = b(c)\n/ e // f", false, true},
		{"a = 1\n/ e // f", false, true},
		{"a = b.c\n/ e // f", false, true},
		{"let a\n/ e // f", true, true},
		{"import 'a'\n/ e // f", true, true},
		{"{}\n/ e // f", true, true},
		{"`a`\n/ e // f", true, true},
		{"do {} while (a)\n/ e //.b()", false, false}, // a regular expression
	} {
		for script, want := range map[bool]bool{true: tt.script, false: tt.anything} {
			l := New(tt.text, false)
			l.JavaScript = script
			for _, more := l.Next(); more; _, more = l.Next() {
			}
			if got := l.Doubt != ""; got != want {
				t.Errorf("%q as JavaScript %t: got %q", tt.text, script, l.Doubt)
			}
		}
	}
}

// Whatever the text, tokens follow one another, and what one opens another closes.
func FuzzNext(f *testing.F) {
	for _, text := range []string{"a/b/c", "`${`${a}`}`", "/[/]/", "<!-- --> ++/", "'\\\r\n'", "}\u2028/", "#!\n", "1./2", "a!/b", "({[`", "@a()class{}", "\\u{61}", "\xff/\xfe/"} {
		f.Add(text, false)
		f.Add(text, true)
	}
	f.Fuzz(func(t *testing.T, text string, jsx bool) {
		l := New(text, jsx)
		end, open := int32(0), 0
		for token, more := l.Next(); more; token, more = l.Next() {
			if token.Start < end || token.End <= token.Start || int(token.End) > len(text) {
				t.Fatalf("token %v after %d of %d", token, end, len(text))
			}
			end = token.End
			if token.Closes {
				open--
			}
			if token.Opens {
				open++
			}
			if open != len(l.Open()) {
				t.Fatalf("%d are open, and not %d", len(l.Open()), open)
			}
		}
		if rest := strings.TrimFunc(text[end:], isSpace); rest != "" && l.Doubt == "" && !strings.HasPrefix(text, "#!") && !strings.HasPrefix(text, "\uFEFF#!") {
			t.Fatalf("%q was not read", rest)
		}
		if l.Doubt != "" && (l.DoubtAt < 0 || l.DoubtAt > len(text)) {
			t.Fatalf("doubt at %d of %d", l.DoubtAt, len(text))
		}
	})
}

func ExampleLexer() {
	text := "x = `${y}` / 2 // half"
	l := New(text, false)
	for t, more := l.Next(); more; t, more = l.Next() {
		fmt.Println(text[t.Start:t.End])
	}
	// Output:
	// x
	// =
	// `${
	// y
	// }`
	// /
	// 2
	// // half
}
