package workspace

import (
	"bytes"
	"context"
	"errors"
	"iter"
	"math"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/stilehost/stile/abi"
)

const (
	// maxLine is how many bytes of a line are searched.
	maxLine = 16 << 10
	// maxShown is how many bytes of a line are shown.
	maxShown = 2000
	// MaxContext is the most lines shown before a match, and after it.
	MaxContext = 20
	// maxMatched is how many bytes of text and paths fill a page.
	maxMatched = 1 << 20
	// maxProgram is how many instructions a compiled regular expression may have.
	maxProgram = 1000
	// maxSteps bounds the steps for one line. A regular expression with more instructions searches fewer bytes of a line.
	maxSteps = 256 * maxLine
)

// Search configures what [Directory.Grep] searches and shows.
type Search struct {
	// Include and Exclude are globs as in [Directory.Find]. A file must match one of Include, if there are any, and none of Exclude.
	Include []string
	Exclude []string
	// Context is how many lines before and after a match are shown, at most 20.
	Context uint32
}

// Match is a line that matches.
type Match struct {
	Path string
	// Line counts from 1. Column also counts from 1: the byte in the line where the first match begins.
	Line   uint32
	Column uint32
	// Text is the line without its end. For a line over 2,000 bytes, it is a part with the match. Bytes that are not UTF-8 are
	// replaced. Before and After are the surrounding lines.
	Text   string
	Before []string
	After  []string
}

// Matches is a part of the result of [Directory.Grep]. Cursor is set if there may be more.
type Matches struct {
	Matches []Match
	// Partial is how many files of this page were not searched completely. Files with a NUL in their first 64 KiB are not searched.
	// Of a line, the first 16 KiB are searched; with a regular expression of over 256 instructions fewer, down to 4 KiB for the
	// largest.
	Partial uint32
	Cursor  *string
}

// Grep returns the lines below d that match a regular expression (RE2), file by file in the order of [Directory.Find]: at most
// limit, at most 1,000, and about 1 MiB of text and paths. It does not follow links. A call ends after some work, perhaps without a match;
// cursor continues after an earlier page, whose other arguments must be the same.
func (d *Directory) Grep(ctx context.Context, pattern string, search Search, limit uint32, cursor *string) (Matches, error) {
	from, err := d.place("grep", limit, cursor)
	if err != nil {
		return Matches{}, err
	}
	var page Matches
	text := 0
	err = abi.WithinRoom(ctx, func(room int64) (wants int64, err error) {
		err = d.search(ctx, "grep", func(o *op) error {
			s, err := d.searcher(pattern, search, limit) // here, so that what waits holds no patterns
			if err != nil {
				return err
			}
			s.room = room
			if err = s.search(walk{op: o, budget: d.budget()}, from); errors.Is(err, errNoRoom) {
				wants = int64(maxMatched+(2*MaxContext+1)*maxShown+maxPath) + int64(s.limit)*s.perMatch()
				return nil
			}
			page, text = s.page, s.text
			return err
		})
		return wants, err
	})
	if err == nil {
		err = abi.Charge(ctx, text)
	}
	if err != nil {
		return Matches{}, err
	}
	return page, nil
}

// search makes a page that begins at a place.
func (s *searcher) search(w walk, from place) error {
	s.walk = w
	if from.from > 0 { // in the middle of a file
		n, err := s.lookup(from.path)
		if err == nil && n != nil && n.is(KindFile) {
			err = s.file(from, n)
		}
		if errors.Is(err, errPageFull) {
			return nil
		}
		if err != nil {
			return err
		}
	}
	return s.run(s.prefix, from.path, s.entry)
}

// errNoRoom is the error of a page that has more bytes than there is room for.
var errNoRoom = errors.New("there is no room for the page yet")

// perMatch is how many bytes a match takes at most besides its texts and path.
func (s *searcher) perMatch() int64 { return 800 + 2*perText*int64(s.context) }

type searcher struct {
	walk
	pattern          *regexp.Regexp
	literal          []byte // occurs in every match
	program          int    // instructions in pattern
	longest          int    // bytes of a line that are searched
	include, exclude globs
	prefix           string
	context, limit   int
	page             Matches
	text             int              // bytes of lines in page
	paths            int              // bytes of paths in page
	room             int64            // how many the page may take
	together         []*node          // files that were read together last
	ahead            map[int64][]byte // their contents
}

func (d *Directory) searcher(pattern string, search Search, limit uint32) (*searcher, error) {
	s := &searcher{context: int(search.Context), limit: int(min(limit, maxEntries)), room: math.MaxInt64, ahead: map[int64][]byte{}}
	var err error
	if s.include, err = d.globs(search.Include...); err != nil {
		return nil, err
	}
	if s.exclude, err = d.globs(search.Exclude...); err != nil {
		return nil, err
	}
	if err = checkGlobs(s.include, s.exclude); err != nil {
		return nil, err
	}
	if len(s.include.all) == 1 {
		s.prefix = s.include.all[0].prefix
	}
	if search.Context > MaxContext {
		return nil, abi.Errorf(abi.CodeInvalid, "context: %d lines; at most %d", search.Context, MaxContext)
	}
	if s.pattern, s.program, err = parsePattern(pattern); err != nil {
		return nil, err
	}
	s.longest = min(maxLine, maxSteps/s.program)
	prefix, _ := s.pattern.LiteralPrefix()
	s.literal = []byte(prefix)
	return s, nil
}

func parsePattern(text string) (*regexp.Regexp, int, error) {
	if len(text) > maxPattern {
		return nil, 0, abi.Errorf(abi.CodeInvalid, "pattern: %d bytes; at most %d", len(text), maxPattern)
	}
	pattern, program, err := compile(text)
	if err != nil {
		return nil, 0, abi.Errorf(abi.CodeInvalid, "pattern: %v", err)
	}
	if program > maxProgram {
		return nil, 0, abi.Errorf(abi.CodeInvalid, "pattern: it repeats too much: %d instructions; at most %d", program, maxProgram)
	}
	return pattern, program, nil
}

const (
	// aheadBytes is how many bytes of small files are read together, and aheadFiles of how many files.
	aheadBytes = 256 << 10
	aheadFiles = 256
)

// wants reports whether to search a file.
func (s *searcher) wants(path string, c dirent) bool {
	return c.Status.Kind == KindFile && (len(s.include.all) == 0 || s.include.match(path)) && !s.exclude.match(path)
}

// open finds the node of a file, the first of the next entries. It reads that file and those after it together, if they are small.
func (s *searcher) open(path string, next []dirent) (*node, error) {
	n := next[0].node
	if n == nil {
		return s.lookup(path)
	}
	if _, has := s.ahead[n.bytes]; has || n.status.Size > chunkSize {
		return n, nil
	}
	directory, _ := split(path)
	everything := len(s.include.all) == 0 && len(s.exclude.all) == 0 // then no paths need to be made
	some := s.together[:0]
	size := uint64(0)
	for _, c := range next {
		if c.Status.Size > chunkSize || c.Status.Kind != KindFile || !everything && !s.wants(directory+"/"+c.Name, c) {
			continue
		}
		if size += c.Status.Size; size > aheadBytes && len(some) > 0 || len(some) == aheadFiles {
			break
		}
		some = append(some, c.node)
	}
	s.together = some
	clear(s.ahead)
	return n, s.contents(some, s.ahead)
}

// pieces are those of the content of a file from an offset on.
func (s *searcher) pieces(path string, n *node, offset int64) iter.Seq2[[]byte, error] {
	if bytes, has := s.ahead[n.bytes]; has && offset == 0 {
		return func(yield func([]byte, error) bool) { yield(bytes, nil) }
	}
	return s.content(path, n, offset)
}

// entry searches a file that the walk meets.
func (s *searcher) entry(path string, next []dirent) error {
	if s.wants(path, next[0]) {
		n, err := s.open(path, next)
		if err != nil {
			return err
		}
		if n != nil && n.is(KindFile) && !s.skip(n) { // on disk it may have changed
			if err := s.file(place{path: path, line: 1, from: 1}, n); err != nil {
				return err
			}
		}
	}
	if s.spent(entryWork + len(path)*(s.include.program+s.exclude.program)) {
		s.page.Cursor = place{path: path}.cursor()
		return errPageFull
	}
	return nil
}

// skip reports whether a file was read and cannot match, and counts the work of that. Most files are such files.
func (s *searcher) skip(n *node) bool {
	whole, has := s.ahead[n.bytes]
	if !has || !s.misses(whole, n) || bytes.IndexByte(whole, 0) >= 0 {
		return false
	}
	s.work += pieceWork(whole)
	return true
}

// misses reports whether a piece is a whole file, of which every byte is searched, and no line of it matches.
func (s *searcher) misses(piece []byte, n *node) bool {
	return len(piece) <= s.longest && uint64(len(piece)) == n.status.Size && !bytes.Contains(piece, s.literal)
}

// pieceWork is how many steps reading a piece of a file counts.
func pieceWork(piece []byte) int { return entryWork * (1 + len(piece)>>10) }

// line is one line of a file, and where it begins.
type line struct {
	place
	text []byte
	long bool
}

// file searches one file from a place on.
func (s *searcher) file(from place, n *node) error {
	now := line{place: from}
	at := from.offset // the reading position; now.offset is where the line begins
	var before []line // the known lines before now that could be context
	full := false     // no match is added any more, but the last ones still get their lines after
	partial := false
	first := from.offset == 0
	var resume place
	open := len(s.page.Matches) // the first match that may want more lines after

	end := func() error {
		text := bytes.TrimSuffix(now.text, []byte{'\r'})
		for i := open; i < len(s.page.Matches); i++ {
			m := &s.page.Matches[i]
			if len(m.After) == s.context {
				open = i + 1
				continue
			}
			m.After = append(m.After, s.show(text, 0))
		}
		steps := 0
		if !full && now.line >= from.from {
			steps = len(text) * s.program
			s.work += steps
			if found := s.pattern.FindIndex(text); found != nil {
				m := Match{Path: from.path[1:], Line: uint32(now.line), Column: uint32(found[0]) + 1, Text: s.show(text, found[0])}
				for _, b := range before {
					m.Before = append(m.Before, s.show(b.text, 0))
				}
				s.page.Matches = append(s.page.Matches, m)
				s.paths += len(m.Path)
			}
		}
		if int64(s.text+s.paths)+int64(len(s.page.Matches))*s.perMatch() > s.room {
			return errNoRoom
		}
		if s.context > 0 {
			if len(before) == s.context {
				before = append(before[:0], before[1:]...)
			}
			before = append(before, line{place: now.place, text: bytes.Clone(text)})
		}
		partial = partial || now.long
		now.line++
		now.offset = at
		if !full && (len(s.page.Matches) >= s.limit || s.text+s.paths > maxMatched || (now.line%64 == 0 || steps > leastWork/64) && s.spent(0)) {
			full = true
			resume = place{path: from.path, offset: now.offset, line: now.line, from: max(now.line, from.from)}
			if len(before) > 0 {
				resume.offset, resume.line = before[0].offset, before[0].line
			}
		}
		now.text, now.long = now.text[:0], false
		if full && (open == len(s.page.Matches) || s.context == 0) {
			return errPageFull
		}
		return s.ctx.Err()
	}

	err := func() error {
		for piece, err := range s.pieces(from.path, n, from.offset) {
			if err != nil {
				return err
			}
			s.work += pieceWork(piece)
			if first && bytes.IndexByte(piece, 0) >= 0 {
				partial = true
				return nil
			}
			if first && s.misses(piece, n) {
				return nil
			}
			first = false
			for len(piece) > 0 {
				size := bytes.IndexByte(piece, '\n')
				whole := size >= 0
				if !whole {
					size = len(piece)
				}
				room := s.longest - len(now.text)
				now.text = append(now.text, piece[:min(size, room)]...)
				now.long = now.long || size > room
				at += int64(size)
				if !whole {
					break
				}
				at++
				if err := end(); err != nil {
					return err
				}
				piece = piece[size+1:]
			}
		}
		if len(now.text) == 0 {
			return nil
		}
		return end()
	}()
	if partial {
		s.page.Partial++
	}
	switch {
	case errors.Is(err, abi.ErrNotFound): // on disk: it has gone meanwhile
		return nil
	case err != nil && !errors.Is(err, errPageFull):
		return err
	case full:
		s.page.Cursor = resume.cursor()
		return errPageFull
	default:
		return nil
	}
}

// show makes a line safe to show. It keeps the part at an offset.
func (s *searcher) show(text []byte, at int) string {
	if len(text) > maxShown {
		start := max(0, min(at-maxShown/4, len(text)-maxShown))
		for range utf8.UTFMax - 1 {
			if start > 0 && !utf8.RuneStart(text[start]) {
				start--
			}
		}
		text = text[start:min(start+maxShown, len(text))]
	}
	s.text += len(text)
	return strings.ToValidUTF8(string(text), "\uFFFD")
}
