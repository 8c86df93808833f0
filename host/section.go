package host

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/stilehost/stile/host/internal/codecheck"
	"github.com/stilehost/stile/host/internal/sourcemap"
	"github.com/stilehost/stile/internal/lazyregexp"
	"github.com/stilehost/stile/internal/wasmbin"
)

// maxSections is how many of our custom sections a component may have. Each is kept as long as the component.
const maxSections = 64

var sectionName = lazyregexp.New(`^stile:[a-z-]+$`)

// customSections copies the custom sections with names such as "stile:meta" at the top of a component.
func customSections(wasm []byte) (map[string][]byte, error) {
	switch {
	case len(wasm) < 8 || string(wasm[:4]) != wasmbin.CoreHeader[:4]:
		return nil, errors.New("not WebAssembly")
	case string(wasm[:8]) == wasmbin.CoreHeader:
		return nil, errors.New("a core module, not a component; stile componentize makes a component of it")
	case string(wasm[:8]) != wasmbin.ComponentHeader:
		return nil, errors.New("a component in an unsupported version of the binary format")
	}
	found, all, count := map[string][]byte{}, 0, 0
	err := wasmbin.EachSection(wasm, func(id byte, r *wasmbin.Reader) error {
		if all++; all > codecheck.MaxSections {
			return codecheck.ErrSections
		}
		if id != wasmbin.SectionCustom {
			return nil
		}
		name, content := r.Vector(), r.Rest()
		if r.Err == nil && sectionName.Match(name) {
			if count++; count > maxSections {
				return fmt.Errorf("more than %d custom sections of the form stile:*", maxSections)
			}
			found[string(name)] = bytes.Clone(content)
		}
		return nil
	})
	return found, err
}

// Names that a toolchain and the host share, so that stacks name the author's files.
const (
	// SourceMapSection is the custom section with the source map from the bundle to the author's files.
	SourceMapSection = "stile:source-map"
	// BundleName is the name of the bundle in stacks.
	BundleName = sourcemap.BundleName
)

// Frame is a place in an author's source.
type Frame struct {
	// Call is the stack's text before the place, such as "at run".
	Call string
	// File is a path in the source tree; Line and Column count from 1.
	File         string
	Line, Column int
}

// String returns the frame as a line of a stack, without its end.
func (f Frame) String() string { return sourcemap.Frame(f).String() }

// ReadFrame reads a line of a stack, such as one of [Failure.Stack]. ok is false if the line has no place in a file.
func ReadFrame(line string) (_ Frame, ok bool) {
	f, ok := sourcemap.ReadFrame(line)
	return Frame(f), ok
}

// MapStack reads a stack of the JavaScript engine and maps its positions to the author's files. It leaves out frames of the runtime
// itself. text is the source map of the bundle; an unreadable one maps nothing.
func MapStack(text []byte, stack string) []Frame {
	m, err := sourcemap.Read(text)
	if err != nil {
		return nil
	}
	var frames []Frame
	for _, f := range m.Frames(stack) {
		frames = append(frames, Frame(f))
	}
	return frames
}

// mapStack rewrites a stack for the author of the component or of code that came with the call. Without a source map, the stack
// stays unchanged.
func (c *Component) mapStack(code *Code, stack string) string {
	c.stack.Do(func() {
		if text := c.sections[SourceMapSection]; text != nil {
			// An unreadable map loses positions, not the error itself.
			c.stack.sources, _ = sourcemap.Read(text)
		}
	})
	sources := c.stack.sources
	if code != nil {
		sources, _ = sourcemap.Read(code.sourceMap()) // likewise
	}
	if sources == nil {
		return stack
	}
	return sources.Rewrite(stack)
}
