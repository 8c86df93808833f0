package automaton

import "slices"

// breaks are the ends of lines: raw, and as JSON strings and URLs spell them. None is the beginning of another.
var breaks = []string{"\n", "\r\n", `\n`, `\r\n`, "%0A", "%0D%0A", "%0a", "%0d%0a"}

var findBreak = New(breaks)

const (
	// minColumns is the shortest line between two others that may belong to one text. Encoders wrap at 60 bytes or more.
	minColumns = 16
	// minWrapped is the shortest text that is looked for across lines. Shorter ones occur there by chance.
	minWrapped = 8
)

// Pass reads a text byte by byte and finds the automaton's texts, even if they are wrapped into lines. Each byte takes constant
// time on average, and the end of a wrapped match takes one more step for each of its lines.
type Pass struct {
	a    *Automaton
	read int
	at   int32 // state for the text itself

	wrapped int32  // state for the text without line breaks and without partial
	breaks  []span // breaks inside a possible wrapped match, in order
	last    int    // end of the last break
	partial []byte // the end of the input, if it may begin a break
	inBreak int32  // state of findBreak for partial
}

type span struct{ start, end int }

// Start begins a pass.
func (a *Automaton) Start() *Pass { return &Pass{a: a, last: -minColumns} }

// Next reads a byte. It returns the start of the longest text that ends with the byte, counted from the start of the pass.
func (p *Pass) Next(b byte) (start int, found bool) {
	p.read++
	same := p.at == p.wrapped
	p.at = p.a.Next(p.at, b)
	start = p.read - p.a.Match(p.at)
	switch {
	case len(p.partial) > 0 || findBreak.root[b] != 0:
		p.partial = append(p.partial, b)
		p.inBreak = findBreak.Next(p.inBreak, b)
		for len(p.partial) > findBreak.Depth(p.inBreak) {
			first := p.partial[0]
			p.partial = append(p.partial[:0], p.partial[1:]...)
			p.wrapped = p.a.Next(p.wrapped, first)
			start = min(start, p.wrappedStart())
		}
		if findBreak.Match(p.inBreak) > 0 {
			p.lineBreak()
		}
	case same:
		p.wrapped = p.at
		start = min(start, p.wrappedStart())
	default:
		p.wrapped = p.a.Next(p.wrapped, b)
		start = min(start, p.wrappedStart())
	}
	return start, start < p.read
}

// wrappedStart returns where the wrapped match begins that ends at the current position. If there is none, it returns the end of the
// input.
func (p *Pass) wrappedStart() int {
	if len(p.breaks) > 0 {
		if match := p.a.Match(p.wrapped); match >= minWrapped {
			return p.back(p.read-len(p.partial), match)
		}
	}
	return p.read
}

// lineBreak handles partial, which is a complete break.
func (p *Pass) lineBreak() {
	s := span{p.read - len(p.partial), p.read}
	p.partial, p.inBreak = p.partial[:0], 0
	if s.start-p.last < minColumns {
		p.wrapped = 0
	}
	p.last = s.end
	// Drop the breaks that are no longer inside:
	begin := p.back(s.start, p.a.Depth(p.wrapped))
	p.breaks = slices.DeleteFunc(p.breaks, func(s span) bool { return s.end <= begin })
	if p.wrapped != 0 {
		p.breaks = append(p.breaks, s)
	}
}

// back returns where the last n bytes before a position begin, not counting line breaks.
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

// Open returns the position where an unfinished match may have begun.
func (p *Pass) Open() int {
	open := p.read - p.a.Depth(p.at)
	if p.wrapped != 0 {
		open = min(open, p.back(p.read-len(p.partial), p.a.Depth(p.wrapped)))
	}
	return open
}
