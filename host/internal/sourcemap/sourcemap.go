// Package sourcemap maps the stacks of the JavaScript engine to the author's files, by a source map that comes from the guest.
package sourcemap

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"path"
	"sort"
	"strconv"
	"strings"

	"github.com/stilehost/stile/internal/jsonform"
	"github.com/stilehost/stile/internal/lazyregexp"
	"github.com/stilehost/stile/internal/printable"
)

// Bounds of a source map, which comes from the guest and is read by the host.
const (
	maxSourceMap = 8 << 20
	maxSources   = 1 << 16
	maxSource    = 1 << 10 // bytes of a file's path
	maxMappings  = 1 << 20
)

// Map maps positions in a bundle to the author's files.
type Map struct {
	sources  []string
	known    map[string]bool // sources, as a set
	mappings []mapping       // in order of row and column
}

// mapping gives the origin of the text at a position of the bundle. Rows count from 1, everything else from 0.
type mapping struct {
	row, column            int32
	source, line, original int32 // index of the file, and the position in it
}

// sourceList is the files of a source map, counted before they are decoded.
type sourceList []string

// UnmarshalJSON implements [json.Unmarshaler].
func (l *sourceList) UnmarshalJSON(text []byte) error {
	if n := jsonform.Values(text) - 1; n > maxSources {
		return fmt.Errorf("%d files, more than %d", n, maxSources)
	}
	return json.Unmarshal(text, (*[]string)(l))
}

// Read reads a source map of version 3 without sections.
func Read(text []byte) (*Map, error) {
	if len(text) > maxSourceMap {
		return nil, errors.New("source map: more than " + printable.Size(maxSourceMap))
	}
	var m struct {
		Version    int             `json:"version"`
		Sections   json.RawMessage `json:"sections"`
		SourceRoot string          `json:"sourceRoot"`
		Sources    sourceList      `json:"sources"`
		Mappings   string          `json:"mappings"`
	}
	if err := json.Unmarshal(text, &m); err != nil {
		return nil, fmt.Errorf("source map: %w", err)
	}
	if m.Version != 3 || m.Sections != nil {
		return nil, errors.New("source map: not of version 3, or in sections")
	}
	length := 0
	for i, source := range m.Sources {
		if len(m.SourceRoot)+len(source) > maxSource {
			return nil, errors.New("source map: the path of a file has more than " + printable.Size(maxSource))
		}
		if m.SourceRoot != "" && !path.IsAbs(source) {
			m.Sources[i] = path.Join(m.SourceRoot, source)
		}
		if length += len(m.Sources[i]); length > maxSourceMap {
			return nil, errors.New("source map: the paths of all files have more than " + printable.Size(maxSourceMap))
		}
	}
	mappings, err := readMappings(m.Mappings, len(m.Sources))
	if err != nil {
		return nil, fmt.Errorf("source map: %w", err)
	}
	known := make(map[string]bool, len(m.Sources))
	for _, source := range m.Sources {
		known[source] = true
	}
	return &Map{m.Sources, known, mappings}, nil
}

func readMappings(text string, sources int) ([]mapping, error) {
	var list []mapping
	var at mapping
	for row := range strings.SplitSeq(text, ";") {
		at.row++
		at.column = 0
		for segment := range strings.SplitSeq(row, ",") {
			deltas, n, err := readSegment(segment)
			switch {
			case err != nil:
				return nil, err
			case n == 0:
				continue
			case !add(&at.column, deltas[0]) || !add(&at.source, deltas[1]) || !add(&at.line, deltas[2]) || !add(&at.original, deltas[3]):
				return nil, errors.New("a position out of range")
			case n == 1:
				continue // text that comes from no file
			case int(at.source) >= sources:
				return nil, errors.New("a file out of range")
			case len(list) == maxMappings:
				return nil, errors.New("too many mappings")
			}
			list = append(list, at)
		}
	}
	return list, nil
}

// readSegment reads one, four or five numbers in base 64 VLQ. n is how many there were. The fifth, a name, is not used.
func readSegment(text string) (deltas [5]int64, n int, err error) {
	const digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
	for text != "" {
		var value int64
		for shift, more := 0, true; more; shift += 5 {
			if text == "" || shift > 30 {
				return deltas, 0, errors.New("a number that does not end")
			}
			digit := strings.IndexByte(digits, text[0])
			if digit < 0 {
				return deltas, 0, errors.New("not base 64")
			}
			text = text[1:]
			value |= int64(digit&31) << shift
			more = digit&32 != 0
		}
		if n == len(deltas) {
			return deltas, 0, errors.New("a segment of six numbers")
		}
		if deltas[n] = value >> 1; value&1 != 0 {
			deltas[n] = -deltas[n]
		}
		n++
	}
	if n == 2 || n == 3 {
		return deltas, 0, errors.New("a segment of two or three numbers")
	}
	return deltas, n, nil
}

// add moves a position and reports whether it is still valid.
func add(position *int32, delta int64) bool {
	moved := int64(*position) + delta
	*position = int32(moved)
	return 0 <= moved && moved <= math.MaxInt32
}

// find returns where the text at a position of the bundle comes from: the nearest mapping at or before it in its row.
func (m *Map) find(row, column int) (mapping, bool) {
	i := sort.Search(len(m.mappings), func(i int) bool {
		at := m.mappings[i]
		return int(at.row) > row || int(at.row) == row && int(at.column) > column
	}) - 1
	if i < 0 || int(m.mappings[i].row) != row {
		return mapping{}, false
	}
	return m.mappings[i], true
}

// BundleName is the name of the bundle in stacks.
const BundleName = "extension.js"

// Frame is a place in a stack.
type Frame struct {
	// Call is the stack's text before the place, such as "at run".
	Call string
	// File is a path in the source tree; Line and Column count from 1.
	File         string
	Line, Column int
}

// String returns a line of a stack, without its end.
func (f Frame) String() string {
	return fmt.Sprintf("    %s (%s:%d:%d)", f.Call, f.File, f.Line, f.Column)
}

// A file's name may have pairs of parentheses.
var frame = lazyregexp.New(`^    (at(?: .*)?) (?:\(((?:[^()]|\([^()]*\))+):(\d{1,9}):(\d{1,9})\)|([^\s()]+):(\d{1,9}):(\d{1,9}))$`)

// ReadFrame reads a line of a stack. ok is false if the line has no place in a file.
func ReadFrame(line string) (_ Frame, ok bool) {
	m := frame.FindStringSubmatch(strings.TrimSuffix(line, "\n"))
	if m == nil {
		return Frame{}, false
	}
	place := m[2:5]
	if place[0] == "" {
		place = m[5:]
	}
	row, _ := strconv.Atoi(place[1]) // nine digits at most
	column, _ := strconv.Atoi(place[2])
	return Frame{m[1], place[0], row, column}, true
}

// Frames reads a stack and maps its positions to the author's files. It leaves out frames of the runtime itself, and those of files without a name.
func (m *Map) Frames(stack string) []Frame {
	var frames []Frame
	for line := range strings.Lines(stack) {
		at, ok := ReadFrame(line)
		if !ok || at.File != BundleName {
			continue
		}
		if from, ok := m.find(at.Line, max(at.Column-1, 0)); ok && m.sources[from.source] != "" {
			frames = append(frames, Frame{at.Call, m.sources[from.source], int(from.line) + 1, int(from.original) + 1})
		}
	}
	return frames
}

// mapped reports whether a line of a stack is a frame that the guest has already mapped to an author's file, as in a copied stack.
func (m *Map) mapped(line string) bool {
	at, ok := ReadFrame(line)
	return ok && m.known[strings.TrimPrefix(at.File, "./")]
}

// Rewrite writes a stack for the author.
func (m *Map) Rewrite(stack string) string {
	var b strings.Builder
	for line := range strings.Lines(stack) {
		frames := m.Frames(line)
		if len(frames) == 0 && (!strings.HasPrefix(line, "    at ") || m.mapped(line)) {
			b.WriteString(line) // or a line about the error's cause
		}
		for _, f := range frames {
			b.WriteString(f.String() + "\n")
		}
	}
	return b.String()
}
