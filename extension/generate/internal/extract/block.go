package extract

import (
	"strings"

	"github.com/stilehost/stile/internal/lazyregexp"
)

// block is a part of a reply that is marked as something other than prose.
type block struct {
	// kind is the word after a fence or the name of a tag, in lower case. It is empty if there is none.
	kind string
	text string
}

// maxBlocks is how many lines of a reply are considered as the start of a block, because the search for its end takes time.
const maxBlocks = 32

// blocks splits a reply into the parts between fences or tags, and the lines outside them.
func blocks(reply string) (found []block, prose string) {
	s := splitter{left: maxBlocks}
	s.split(reply)
	return s.found, s.prose.String()
}

type splitter struct {
	found []block
	prose strings.Builder
	left  int
}

func (s *splitter) split(text string) {
	lines := strings.SplitAfter(strings.ReplaceAll(text, "\r\n", "\n"), "\n")
	for at := 0; at < len(lines); {
		open, first := opening(lines[at])
		if open != nil {
			s.left--
		}
		switch {
		case open == nil || s.left < 0:
			s.prose.WriteString(lines[at])
			at++
		case open.tag != "":
			at = s.element(open, first, lines, at)
		default:
			end, next := open.close(lines, at+1)
			text := strings.Join(lines[at+1:end], "")
			if end == len(lines) { // the end is missing, or stands behind code in the last line
				text = strings.TrimRight(text, "`~ \n")
			}
			s.found = append(s.found, block{open.kind, open.unindent(text)})
			at = next
		}
	}
}

// element reads the element that begins in a line, or reads the line as prose if there is none. It returns the line after it. The
// content of the element may be in a fence itself.
func (s *splitter) element(open *opener, first string, lines []string, at int) (next int) {
	end := at
	text := first
	if !open.closes(first) {
		if end, _ = open.close(lines, at+1); end == len(lines) || strings.Contains(first, "</"+open.tag) {
			s.prose.WriteString(lines[at])
			return at + 1
		}
		text += strings.Join(lines[at+1:end+1], "")
	}
	text = strings.TrimLeft(text[:strings.LastIndex(text, "</")], " \t\n")
	if whole, is := strings.CutPrefix(text, "<![CDATA["); is {
		text = strings.TrimSuffix(strings.TrimSpace(whole), "]]>")
	}
	if line, _, _ := strings.Cut(text, "\n"); fenceLine.MatchString(line) {
		s.split(text)
	} else {
		s.found = append(s.found, block{open.kind, text})
	}
	return end + 1
}

// opener is the line that opens a block: a fence, or the tag of an element.
type opener struct {
	kind   string
	fence  string // the run of ` or ~
	indent string
	tag    string
}

var (
	fenceLine = lazyregexp.New("^([ \\t]*)(`{3,}|~{3,})[ \\t]*([^`\\n]*)\\n?$")
	tagLine   = lazyregexp.New(`^[ \t]*<(manifest|source|code|typescript|javascript|ts|js|file|json|script)(?:\s[^<>\n]*)?>(.*\n?)$`)
	kindOf    = lazyregexp.New(`[A-Za-z][A-Za-z0-9+#_./:-]*`) // a language or the name of a file
)

// opening reads a line that opens a block, and returns the part of the block in that line. A fence around prose does not open
// a block: some models put one around the whole reply.
func opening(line string) (o *opener, first string) {
	if m := fenceLine.FindStringSubmatch(line); m != nil {
		kind := strings.ToLower(kindOf.FindString(m[3]))
		kind = kind[strings.LastIndexByte(kind, '.')+1:]
		if kind == "markdown" || kind == "md" {
			return nil, ""
		}
		return &opener{kind: kind, fence: m[2], indent: m[1]}, ""
	}
	if m := tagLine.FindStringSubmatch(line); m != nil {
		return &opener{kind: m[1], tag: m[1]}, m[2]
	}
	return nil, ""
}

// close finds the line that ends a block, and the line after it. It skips ends inside a template or comment of code, unless there is
// no other: then the lexer was wrong, or the code is.
func (o *opener) close(lines []string, from int) (end, next int) {
	code := newReader("")
	if isCode(o.kind) {
		code = newReader(strings.Join(lines[from:], ""))
	}
	spare, offset := -1, 0
	for at := from; at < len(lines); at++ {
		closes, follows := o.closes(lines[at]), o.follows(lines[at])
		switch {
		case !closes && !follows:
		case code.inText(offset):
			if closes && spare < 0 {
				spare = at
			}
		case follows:
			return at, at
		default:
			return at, at + 1
		}
		offset += len(lines[at])
	}
	if spare >= 0 {
		return spare, spare + 1
	}
	return len(lines), len(lines)
}

func (o *opener) closes(line string) bool {
	line = strings.TrimSpace(line)
	if o.tag != "" {
		return strings.HasSuffix(line, "</"+o.tag+">")
	}
	return strings.HasPrefix(line, o.fence) && strings.Trim(line, o.fence[:1]) == ""
}

// follows reports whether a line opens another block, which means that the open one has no end.
func (o *opener) follows(line string) bool {
	if o.fence == "" || !strings.HasPrefix(strings.TrimLeft(line, " \t"), o.fence) {
		return false
	}
	m := fenceLine.FindStringSubmatch(line)
	return m != nil && m[3] != ""
}

// unindent removes the indentation of a list item from each line.
func (o *opener) unindent(text string) string {
	if o.indent == "" {
		return text
	}
	return strings.TrimPrefix(strings.ReplaceAll("\n"+text, "\n"+o.indent, "\n"), "\n")
}

// isCode reports whether a block of this kind can be the source.
func isCode(kind string) bool {
	switch kind {
	case "", "ts", "typescript", "tsx", "js", "javascript", "mjs", "mts", "code", "source", "file", "script":
		return true
	default:
		return false
	}
}

// isData reports whether a block of this kind holds data, which can only be the manifest.
func isData(kind string) bool {
	switch kind {
	case "json", "jsonc", "json5", "yaml", "yml", "toml", "manifest":
		return true
	default:
		return false
	}
}
