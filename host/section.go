package host

import (
	"encoding/binary"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/go-sourcemap/sourcemap"
)

// customSections finds the custom sections whose names begin with "stile:" at the top of a component, without copying.
func customSections(wasm []byte) (map[string][]byte, error) {
	const header = "\x00asm\x0d\x00\x01\x00"
	switch {
	case len(wasm) < 8 || string(wasm[:4]) != header[:4]:
		return nil, errors.New("not WebAssembly")
	case string(wasm[4:8]) == "\x01\x00\x00\x00":
		return nil, errors.New("a core module, not a component; build it with a component toolchain")
	case string(wasm[:8]) != header:
		return nil, errors.New("a component of another version of the binary format")
	}
	sections := map[string][]byte{}
	for rest := wasm[8:]; len(rest) > 0; {
		id := rest[0]
		body, after, err := vector(rest[1:])
		if err != nil {
			return nil, fmt.Errorf("section %d: %w", id, err)
		}
		if id == 0 {
			name, content, err := vector(body)
			if err != nil {
				return nil, fmt.Errorf("custom section: %w", err)
			}
			if strings.HasPrefix(string(name), "stile:") {
				sections[string(name)] = append([]byte(nil), content...)
			}
		}
		rest = after
	}
	return sections, nil
}

// vector reads a length and that many bytes.
func vector(b []byte) (content, rest []byte, err error) {
	n, k := binary.Uvarint(b)
	if k <= 0 || n > uint64(len(b)-k) {
		return nil, nil, errors.New("truncated")
	}
	return b[k : uint64(k)+n], b[uint64(k)+n:], nil
}

// The custom section with the source map from the bundle to the author's files, and the bundle's name in stacks.
const (
	sourceMapSection = "stile:source-map"
	bundleName       = "extension.js"
)

var bundlePosition = regexp.MustCompile(`\(?` + regexp.QuoteMeta(bundleName) + `:(\d+):(\d+)\)?`)

// Frame is a place in an author's source.
type Frame struct {
	// Call is what the stack says before the place, such as "at run".
	Call string
	// File is a path in the source tree; Line and Column count from 1.
	File         string
	Line, Column int
}

// MapStack reads a stack of the JavaScript engine and maps its positions to the author's files. Frames of the runtime
// itself are left out. sourceMap is that of the bundle; one that cannot be read maps nothing.
func MapStack(sourceMap []byte, stack string) []Frame {
	consumer, err := sourcemap.Parse("", sourceMap)
	if err != nil {
		return nil
	}
	return mapFrames(consumer, stack)
}

func mapFrames(consumer *sourcemap.Consumer, stack string) []Frame {
	var frames []Frame
	for line := range strings.Lines(stack) {
		m := bundlePosition.FindStringSubmatchIndex(line)
		if m == nil {
			continue
		}
		row, _ := strconv.Atoi(line[m[2]:m[3]])
		column, _ := strconv.Atoi(line[m[4]:m[5]])
		if file, _, row, column, ok := consumer.Source(row, max(column-1, 0)); ok {
			frames = append(frames, Frame{strings.TrimSpace(line[:m[0]]), file, row, column + 1})
		}
	}
	return frames
}

// mapStack rewrites a stack for the author; without a source map it stays as it is.
func (c *Component) mapStack(stack string) string {
	c.stack.Do(func() {
		if m := c.sections[sourceMapSection]; m != nil {
			// A map that cannot be read costs positions, not the error itself.
			c.stack.consumer, _ = sourcemap.Parse("", m)
		}
	})
	if c.stack.consumer == nil {
		return stack
	}
	var b strings.Builder
	for _, f := range mapFrames(c.stack.consumer, stack) {
		fmt.Fprintf(&b, "    %s (%s:%d:%d)\n", f.Call, f.File, f.Line, f.Column)
	}
	return b.String()
}
