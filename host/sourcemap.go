package host

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"path"
	"sort"
	"strings"

	"github.com/stilehost/stile/internal/jsonform"
)

// Bounds of a source map, which comes from the guest and is read by the host.
const (
	maxSourceMap = 8 * mib
	maxSources   = 1 << 16
	maxSource    = kib // bytes of a file's path
	maxMappings  = 1 << 20
)

// sourceMap maps positions in a bundle to the author's files.
type sourceMap struct {
	sources  []string
	known    map[string]bool // sources, as a set
	mappings []mapping       // in order of row and column
}

// mapping says where the text at a position of the bundle comes from. Rows count from 1, everything else from 0.
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

// readSourceMap reads a source map of version 3 without sections.
func readSourceMap(text []byte) (*sourceMap, error) {
	if len(text) > maxSourceMap {
		return nil, errors.New("source map: more than " + size(maxSourceMap))
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
			return nil, errors.New("source map: the path of a file has more than " + size(maxSource))
		}
		if m.SourceRoot != "" && !path.IsAbs(source) {
			m.Sources[i] = path.Join(m.SourceRoot, source)
		}
		if length += len(m.Sources[i]); length > maxSourceMap {
			return nil, errors.New("source map: the paths of all files have more than " + size(maxSourceMap))
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
	return &sourceMap{m.Sources, known, mappings}, nil
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
func (m *sourceMap) find(row, column int) (mapping, bool) {
	i := sort.Search(len(m.mappings), func(i int) bool {
		at := m.mappings[i]
		return int(at.row) > row || int(at.row) == row && int(at.column) > column
	}) - 1
	if i < 0 || int(m.mappings[i].row) != row {
		return mapping{}, false
	}
	return m.mappings[i], true
}
