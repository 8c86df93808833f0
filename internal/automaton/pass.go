package automaton

import (
	"slices"
	"strings"
)

// breaks are the ends of lines, as they are and as strings in JSON and in URLs have them.
var breaks = []string{"\n", "\r\n", `\n`, `\r\n`, "%0A", "%0D%0A", "%0a", "%0d%0a"}

var beginsBreak = [256]bool{'\n': true, '\r': true, '\\': true, '%': true}

const (
	longestBreak = 6
	// minColumns is the fewest bytes of a line between two others that belong to one text: encoders wrap at 60 and more.
	minColumns = 16
	// minWrapped is the fewest bytes of a text that is found in lines: shorter ones stand there by chance.
	minWrapped = 8
)

// Pass reads a text byte by byte and finds what the automaton looks for, also wrapped into lines. Each byte takes constant time, and
// where something wrapped ends as many steps more as it has lines.
type Pass struct {
	a    *Automaton
	read int
	at   int32 // state for the text as it is

	// The text without its line breaks:
	wrapped int32
	breaks  []span // inside of what wrapped may be part of, in order
	last    int    // end of the last break
	// What may be the begin of a break:
	partial [longestBreak]byte
	size    int
	before  int32 // wrapped in front of it
}

type span struct{ start, end int }

// Start begins a pass.
func (a *Automaton) Start() *Pass { return &Pass{a: a, last: -minColumns} }

// Next reads a byte. It returns where the longest text begins that ends with it, counted from the begin of the pass.
func (p *Pass) Next(b byte) (start int, found bool) {
	at, before := p.at, p.wrapped
	p.at = p.a.Next(at, b)
	if p.wrapped = p.at; before != at {
		p.wrapped = p.a.Next(before, b)
	}
	p.read++
	if p.size > 0 || beginsBreak[b] {
		p.breaking(b, before)
	}
	if p.at == 0 && p.wrapped == 0 {
		return p.read, false
	}
	start = p.read - p.a.Match(p.at)
	if p.wrapped != p.at {
		if match := p.a.Match(p.wrapped); match >= minWrapped {
			start = min(start, p.back(p.read, match))
		}
	}
	return start, start < p.read
}

// breaking looks whether b ends a line. before is what wrapped was in front of b.
func (p *Pass) breaking(b byte, before int32) {
	begins := func() bool {
		return slices.ContainsFunc(breaks, func(s string) bool { return strings.HasPrefix(s, string(p.partial[:p.size])) })
	}
	p.partial[p.size] = b
	if p.size++; !begins() {
		p.partial[0], p.size = b, 1
	}
	if p.size == 1 {
		p.before = before
	}
	switch {
	case !begins():
		p.size = 0
		return
	case !slices.Contains(breaks, string(p.partial[:p.size])):
		return
	}
	s := span{p.read - p.size, p.read}
	p.size = 0
	p.wrapped = p.before
	if s.start-p.last < minColumns {
		p.wrapped = 0
	}
	p.last = s.end
	// Those that are no longer inside:
	begin := p.back(s.start, p.a.Depth(p.wrapped))
	p.breaks = slices.DeleteFunc(p.breaks, func(s span) bool { return s.end <= begin })
	if p.wrapped != 0 {
		p.breaks = append(p.breaks, s)
	}
}

// back is where the last n bytes before a position begin that are of no line break.
func (p *Pass) back(from, n int) int {
	start := from - n
	for _, b := range slices.Backward(p.breaks) {
		if b.end <= start {
			break
		}
		start -= b.end - b.start
	}
	return start
}

// Open is from where on something may have begun that has not ended.
func (p *Pass) Open() int {
	open := min(p.read-p.a.Depth(p.at), p.back(p.read, p.a.Depth(p.wrapped)))
	if p.size > 0 && p.before != 0 {
		open = min(open, p.back(p.read-p.size, p.a.Depth(p.before)))
	}
	return open
}
