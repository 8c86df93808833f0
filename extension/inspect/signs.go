package inspect

import (
	"fmt"
	"math"
	"strings"
	"unicode/utf8"

	"github.com/stilehost/stile/internal/jslex"
	"github.com/stilehost/stile/internal/lazyregexp"
	"github.com/stilehost/stile/internal/printable"
)

// note adds a sign at an offset.
func (v *scan) note(list *[]Sign, offset int, what string) {
	if v.room(list) {
		*list = append(*list, Sign{v.place(offset), printable.OneLine(what)})
	}
}

const (
	signFunction    = "Function, which turns text into code"
	signConstructor = "a constructor that is called, and may be Function"
)

// eval notes where text may become code, or code may be loaded later.
func (v *scan) eval(i int, name string) {
	global := v.member(i) && (v.is(i-2, "globalThis") || v.is(i-2, "self") || v.is(i-2, "window"))
	free := (!v.member(i) || global) && !v.is(i+1, ":")
	note := func(what string) { v.note(&v.report.Eval, v.offset(i), what) }
	switch name {
	case "eval":
		if free {
			note("eval")
		}
	case "Function":
		before := v.at(i - 1)
		if free && (v.is(i+1, "(") || v.kindOf(i+1, jslex.Template) || v.is(i+1, ".") && !v.is(i+2, "prototype") || before == "new" || before == "return" || before == "=" || before == "," || before == "(") {
			note(signFunction)
		}
	case "AsyncFunction", "GeneratorFunction", "AsyncGeneratorFunction":
		if v.is(i+1, "(") || v.is(i-1, "new") {
			note(name + ", which turns text into code")
		}
	case "constructor":
		if v.member(i) && v.is(i+1, "(") {
			note(signConstructor)
		}
	case "import":
		if v.is(i+1, "(") {
			note("import()")
		}
	case "setTimeout", "setInterval":
		if v.is(i+1, "(") && (v.kindOf(i+2, jslex.String) || v.kindOf(i+2, jslex.Template)) {
			note(name + " of text")
		}
	}
}

var hexName = lazyregexp.New(`^_0x[0-9a-fA-F]{3,}$`)

// name examines how a name is written.
func (v *scan) name(i int, name string) {
	note := func(what string) { v.note(&v.report.Obfuscation, v.offset(i), what) }
	switch {
	case strings.Contains(name, `\`):
		note("a name written with escapes")
	case len(name) < 1024 && mixed(name) && !v.seen[name]:
		v.seen[name] = true
		note("a name with letters of several scripts that look alike: " + quote(name))
	case hexName.MatchString(name):
		if v.hexNames++; v.hexNames == 5 {
			note("names such as " + quote(name) + ", which a program made up")
		}
	case name == "push" && v.is(i+1, "(") && v.isName(i+2) && v.member(i+4) && v.is(i+4, "shift") && v.at(i-2) == v.at(i+2):
		note("a list that is rotated")
	case name == "fromCharCode" && v.is(i+1, "(") && v.match(i+1)-i > 32 && v.kindOf(i+2, jslex.Number):
		note("text that is made of numbers")
	}
}

const (
	minEscapes = 8    // escapes of characters that need none
	minPacked  = 1024 // bytes of text in base64 or hexadecimal
	minLine    = 2000 // bytes of a long line
	// Code that people write has 4 to 4.8 bits a byte, minified code more than 5, base64 close to 6 and hexadecimal 4.
	lineEntropy   = 4.9
	packedEntropy = 3.5
)

var (
	needlessEscape = lazyregexp.New(`\\x[2-7][0-9a-fA-F]|\\u00[2-7][0-9a-fA-F]|\\u\{0*[2-7][0-9a-fA-F]\}`)
	packed         = lazyregexp.New(`^[A-Za-z0-9+/_\-\s]*=*$`)
)

// literal examines how a string is written.
func (v *scan) literal(i int) {
	text := v.at(i)
	note := func(what string) { v.note(&v.report.Obfuscation, v.offset(i), what) }
	if found := needlessEscape.FindAllStringIndex(text, -1); len(found) >= minEscapes {
		length := 0
		for _, at := range found {
			length += at[1] - at[0]
		}
		if 2*length >= len(text) {
			note(fmt.Sprintf("a string with %d characters written as escapes", len(found)))
		}
	}
	if v.is(i-2, "[") || v.is(i+1, "]") || len(text) >= minPacked {
		v.packed(i, text, note)
	}
}

// packed looks for data in strings, and for lists of strings that are rotated by ["push"] and ["shift"].
func (v *scan) packed(i int, text string, note func(what string)) {
	if value, _ := v.value(i); value == "push" && v.is(i-1, "[") && v.is(i+1, "]") && v.is(i+2, "(") && v.is(i+4, "[") {
		if shift, _ := v.value(i + 5); shift == "shift" {
			note("a list that is rotated")
		}
	}
	if len(text) >= minPacked && packed.MatchString(text[1:len(text)-1]) && entropy(text) >= packedEntropy {
		note(fmt.Sprintf("%d bytes of base64 or hexadecimal", len(text)))
	}
}

// entropy is in bits a byte.
func entropy(text string) float64 {
	var counts [256]int
	for i := range len(text) {
		counts[text[i]]++
	}
	bits := 0.0
	for _, n := range counts {
		if n > 0 {
			p := float64(n) / float64(len(text))
			bits -= p * math.Log2(p)
		}
	}
	return bits
}

// longLines looks for lines that nobody reads.
func (v *scan) longLines() {
	at := 0
	for line := range strings.Lines(v.text) {
		if len(line) >= minLine && entropy(line) >= lineEntropy {
			v.note(&v.report.Obfuscation, at, fmt.Sprintf("a line of %d bytes that reads like packed code", len(line)))
		}
		at += len(line)
	}
}

// characters looks for hidden characters, in comments and strings too.
func (v *scan) characters() {
	for at := len(v.text) - len(strings.TrimPrefix(v.text, "\uFEFF")); ; {
		i, r, found := unseen(v.text[at:])
		if !found {
			return
		}
		what := "an invisible character"
		if turns(r) {
			what = "a character that turns the direction of text"
		}
		at += i
		v.note(&v.report.Obfuscation, at, fmt.Sprintf("%s: %+q", what, r))
		_, size := utf8.DecodeRuneInString(v.text[at:])
		at += size
	}
}
