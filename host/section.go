package host

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

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
		return nil, errors.New("a core module, not a component; build it with a component toolchain")
	case string(wasm[:8]) != wasmbin.ComponentHeader:
		return nil, errors.New("a component of another version of the binary format")
	}
	found, count := map[string][]byte{}, 0
	err := sections(wasm, func(id byte, r *wasmbin.Reader) error {
		if id != wasmbin.SectionCustom {
			return nil
		}
		name, content := r.Vector(), r.Rest()
		if r.Err != nil {
			return fmt.Errorf("custom section: %w", r.Err)
		}
		if sectionName.Match(name) {
			if count++; count > maxSections {
				return fmt.Errorf("more than %d custom sections of the form stile:*", maxSections)
			}
			found[string(name)] = bytes.Clone(content)
		}
		return nil
	})
	return found, err
}

// maxFunctionName is the longest name of a function, in bytes. The engine writes 20 names into the backtrace of a trap.
const maxFunctionName = 16 * kib

// unmangle changes names in a module that the engine would demangle as C++, or as Rust with a much longer result. The engine
// demangles names for the backtrace of a trap, and 300 bytes can expand to terabytes. If a name is too long, unmangle hides the
// names of all functions of the module.
func unmangle(r *wasmbin.Reader) {
	const functions, unknown = 1, 0x7f
	if r.Name() != "name" {
		return
	}
	for r.Len() > 0 {
		id := &r.Bytes[r.Pos]
		r.Byte()
		part := r.Sub()
		if *id != functions {
			continue
		}
		for left := int(part.U32()); left > 0 && part.Len() > 0; left-- { // the engine, too, takes what there is
			part.U32()
			name := part.Vector()
			if len(name) > maxFunctionName {
				*id = unknown
				break
			}
			if !plainName(name) {
				for i := bytes.Index(name, mangled); i >= 0; i = bytes.Index(name, mangled) {
					name[i+1] = 'z'
				}
			}
			if repeats(name) {
				name[bytes.IndexByte(name, 'R')] = 'r'
			}
		}
	}
}

var mangled = []byte("_Z")

var newerRust = lazyregexp.New(`^_{0,2}R[A-Z]`)

// repeats reports whether a name has Rust's newer form and may expand to a much longer text. A B refers back to an earlier place,
// which can contain the B itself.
func repeats(name []byte) bool {
	const short = 200
	n := bytes.Count(name, []byte("B"))
	return newerRust.Match(name) && (n > 1 || n == 1 && len(name) > short)
}

// plainName reports whether a mangled name is only a path, such as _ZN4core5panic17h0123456789abcdefE, like the names of Rust.
func plainName(name []byte) bool {
	rest, ok := bytes.CutPrefix(name, []byte("_ZN"))
	for ok && len(rest) > 1 {
		n, digits := 0, 0
		for ; digits < min(3, len(rest)) && '0' <= rest[digits] && rest[digits] <= '9'; digits++ {
			n = 10*n + int(rest[digits]-'0')
		}
		if ok = digits > 0 && digits+n < len(rest); ok {
			rest = rest[digits+n:]
		}
	}
	return ok && string(rest) == "E"
}

// Names that a toolchain and the host share, so that stacks name the author's files.
const (
	// SourceMapSection is the custom section with the source map from the bundle to the author's files.
	SourceMapSection = "stile:source-map"
	// BundleName is the name of the bundle in stacks.
	BundleName = "extension.js"
)

var bundlePosition = lazyregexp.New(`(?:^|[\s(])` + regexp.QuoteMeta(BundleName) + `:(\d+):(\d+)\)?`)

// Frame is a place in an author's source.
type Frame struct {
	// Call is the stack's text before the place, such as "at run".
	Call string
	// File is a path in the source tree; Line and Column count from 1.
	File         string
	Line, Column int
}

// MapStack reads a stack of the JavaScript engine and maps its positions to the author's files. It leaves out frames of the runtime
// itself. sourceMap is the bundle's; an unreadable one maps nothing.
func MapStack(sourceMap []byte, stack string) []Frame {
	m, err := readSourceMap(sourceMap)
	if err != nil {
		return nil
	}
	return m.frames(stack)
}

func (m *sourceMap) frames(stack string) []Frame {
	var frames []Frame
	for line := range strings.Lines(stack) {
		at := bundlePosition.FindStringSubmatchIndex(line)
		if at == nil {
			continue
		}
		row, _ := strconv.Atoi(line[at[2]:at[3]])
		column, _ := strconv.Atoi(line[at[4]:at[5]])
		if from, ok := m.find(row, max(column-1, 0)); ok {
			frames = append(frames, Frame{strings.TrimSpace(line[:at[0]]), m.sources[from.source], int(from.line) + 1, int(from.original) + 1})
		}
	}
	return frames
}

// mapped reports whether a line of a stack is a frame that the guest has already mapped to an author's file, as in a copied stack.
func (m *sourceMap) mapped(line string) bool {
	at := authorPlace.FindStringSubmatch(line)
	return at != nil && m.known[strings.TrimPrefix(at[1], "./")]
}

var authorPlace = lazyregexp.New(`^    at [^()]* \(([^()]+):\d+:\d+\)$`)

// mapStack rewrites a stack for the author of the component or of code that came with the call. Without a source map, it stays
// unchanged.
func (c *Component) mapStack(code *Code, stack string) string {
	c.stack.Do(func() {
		if text := c.sections[SourceMapSection]; text != nil {
			// An unreadable map loses positions, not the error itself.
			c.stack.sources, _ = readSourceMap(text)
		}
	})
	sources := c.stack.sources
	if code != nil {
		sources, _ = readSourceMap(code.sourceMap()) // likewise
	}
	if sources == nil {
		return stack
	}
	var b strings.Builder
	for line := range strings.Lines(stack) {
		frames := sources.frames(line)
		if len(frames) == 0 && (!strings.HasPrefix(line, "    at ") || sources.mapped(strings.TrimSuffix(line, "\n"))) {
			b.WriteString(line) // or a line about the error's cause
		}
		for _, f := range frames {
			fmt.Fprintf(&b, "    %s (%s:%d:%d)\n", f.Call, f.File, f.Line, f.Column)
		}
	}
	return b.String()
}
