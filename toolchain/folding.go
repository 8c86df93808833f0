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

// between matches a space or comment.
const between = `(?:[\s\v\x{80}-\x{10FFFF}]|/\*(?s:.*?)\*/|(?://|<!--|-->)[^\n]*\n)`

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
	size, doublings := 1, 0
	for at := 0; ; {
		head := enumHead.FindStringIndex(code[at:])
		if head == nil {
			return f.inlined()
		}
		at += head[1] // what looks like a head could hide another one
		body := code[at:enumEnd(code, at)]
		size += len(body)
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
