package toolchain

import (
	"errors"
	"math/bits"
	"strings"
	"sync"

	"github.com/evanw/esbuild/pkg/api"

	"github.com/stilehost/stile/internal/jslex"
	"github.com/stilehost/stile/internal/lazyregexp"
)

// between matches a space or comment. A comment ends where esbuild ends it, and no later: at a carriage return, too.
const between = `(?:[\s\v\x{80}-\x{10FFFF}]|/\*(?:[^*]|\*+[^*/])*\*+/|(?://|<!--|-->)[^\n\r\x{2028}\x{2029}]*[\n\r\x{2028}\x{2029}])`

// maxFolded bounds the bytes of one enum member. esbuild evaluates members and joins their texts. If each is the previous one twice,
// thirty of them take more memory than there is.
const maxFolded = 4 << 20

// maxInlined bounds the bytes that enum texts may add to a build, because esbuild writes the text of a member wherever it is named.
const maxInlined = 32 << 20

var (
	errInlined = errors.New("names members of enums that are too long to write out each time; make them constants outside of the enum")
	errFolded  = errors.New("has an enum whose members combine too many others; make them constants outside the enum")
	// enumHead matches the beginning of an enum.
	enumHead = lazyregexp.New(`\benum` + between + `+(?:\\u\{[0-9a-fA-F]+\}|[^\s{}()/;,"'` + "`" + `])+` + between + `*\{`)
	joining  = lazyregexp.New(`[+]|\$\{`)
	// literal matches a text that is joined to what comes before: it adds to a member and does not multiply it.
	literal = lazyregexp.New(`\+\s*(?:"[^"\\\n]*"|'[^'\\\n]*')\s*(?:[,}\n]|$)`)
)

// quoted matches a text in the body of an enum.
var quoted = lazyregexp.New(`"(?:[^"\\\n]|\\(?s:.))*"|'(?:[^'\\\n]|\\(?s:.))*'|` + "`[^`]*`")

// search finds matches in code, one after the other. What that reads is bounded by a few times the code, because each match can take a look at
// all that follows, if something before it could still become one: after enum, a comment that does not end.
type search struct {
	code       string
	expression *lazyregexp.Regexp
	at, read   int
}

var errSearch = errors.New("has too much that looks like unfinished enums or exports, or like enums within others")

// reads counts bytes that were read.
func (s *search) reads(n int) error {
	if s.read += n; s.read > 8*len(s.code)+256<<10 {
		return errSearch
	}
	return nil
}

// next returns the indexes of a match and its parts in the code, or nil.
func (s *search) next() ([]int, error) {
	r := runes{Reader: strings.NewReader(s.code[s.at:])}
	found := s.expression.FindReaderSubmatchIndex(&r)
	for i := range found {
		found[i] += s.at
	}
	if found != nil {
		s.at = found[1]
	}
	return found, s.reads(r.read)
}

// runes counts what is read.
type runes struct {
	*strings.Reader
	read int
}

// ReadRune implements [io.RuneReader].
func (r *runes) ReadRune() (rune, int, error) {
	c, size, err := r.Reader.ReadRune()
	r.read += size
	return c, size, err
}

// folding bounds the cost of a build's enums. It belongs to one build, whose files may come concurrently.
type folding struct {
	mu      sync.Mutex
	longest int // bytes of a member, at most
	uses    int // of members, at most
}

// admit refuses enums that would take esbuild too much memory. It bounds from above how long the longest member of any enum can be: as
// long as all bodies of the file together, times the members that each one joins; and how often any is named.
func (f *folding) admit(code string, loader api.Loader) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.uses += strings.Count(code, ".") + strings.Count(code, "[")
	if loader != api.LoaderTS && loader != api.LoaderTSX {
		return f.inlined()
	}
	if !strings.Contains(code, "enum") {
		return f.inlined()
	}
	size, doublings := 1, 0
	heads := search{code: code, expression: enumHead}
	for {
		head, err := heads.next()
		if err != nil {
			return err
		}
		if head == nil {
			return f.inlined()
		}
		at := head[1] // what looks like a head could hide another one
		body := code[at:enumEnd(code, at)]
		if size += len(body); heads.reads(len(body)) != nil {
			return errSearch
		}
		joins := 0
		for member := range strings.SplitSeq(body, ",") {
			f.uses++ // a member may refer to another one
			n := len(joining.FindAllStringIndex(member, -1))
			joins += n
			if n > 1 || n == 1 && !literal.MatchString(member) {
				doublings += bits.Len(uint(n))
			}
		}
		if doublings > 40 || doublings > 0 && size<<doublings > maxFolded || size > 16*MaxSource {
			return errFolded
		}
		longest, all := 0, 0
		for _, found := range quoted.FindAllStringIndex(body, -1) {
			longest, all = max(longest, found[1]-found[0]), all+found[1]-found[0]
		}
		if joins > 0 {
			longest = all << doublings
		}
		f.longest = max(f.longest, longest)
	}
}

func (f *folding) inlined() error {
	if f.longest > maxInlined || f.longest*f.uses > maxInlined {
		return errInlined
	}
	return nil
}

// enumEnd returns where the body of an enum ends: at its closing bracket, or at the end of the text if that is unclear.
func enumEnd(code string, at int) int {
	l := jslex.New(code[at:], false)
	for {
		t, more := l.Next()
		switch {
		case l.Doubt == jslex.Mismatch && len(l.Open()) == 0 && code[at+int(t.Start)] == '}':
			return at + int(t.Start)
		case l.Doubt != "" || !more:
			return len(code)
		}
	}
}
