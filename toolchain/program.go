package toolchain

import (
	"debug/elf"
	"strings"
	"sync"
)

// program identifies the code of this program by the linker's build ID, which covers everything that was compiled. It is empty if
// there is none; then nothing is cached that only this code knows how to make.
var program = sync.OnceValue(func() string {
	f, err := elf.Open("/proc/self/exe")
	if err != nil {
		return ""
	}
	defer func() { _ = f.Close() }()
	s := f.Section(".note.go.buildid")
	if s == nil || s.Size > 4096 {
		return ""
	}
	note, err := s.Data()
	if err != nil {
		return ""
	}
	return buildID(note)
})

// buildID reads the ID in a note. It ignores one that was set by hand instead of by the linker.
func buildID(note []byte) string {
	const header, parts = 16, 4 // two lengths, the type and "Go"; what went into the steps of the build, and what came out
	if len(note) < header {
		return ""
	}
	id := strings.TrimRight(string(note[header:]), "\x00")
	if len(strings.Split(id, "/")) != parts || len(id) < 64 {
		return ""
	}
	return id
}
