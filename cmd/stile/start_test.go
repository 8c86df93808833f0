package main

import (
	"bytes"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// TestStart holds what each package of this module does before main, which every command waits for: the runtime counts the memory.
func TestStart(t *testing.T) {
	const maxBytes = 32 << 10 // a dozen regular expressions have as much
	cmd := exec.CommandContext(t.Context(), "stile", "version")
	cmd.Env = append(os.Environ(), "GODEBUG=inittrace=1")
	var trace bytes.Buffer
	cmd.Stderr = &trace
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v: %s", err, trace.Bytes())
	}
	line := regexp.MustCompile(`(?m)^init (\S+) .* (\d+) bytes, (\d+) allocs$`)
	ours := 0
	for _, found := range line.FindAllStringSubmatch(trace.String(), -1) {
		name := found[1]
		if name != "main" && !strings.HasPrefix(name, "github.com/stilehost/stile/") {
			continue
		}
		ours++
		if n, err := strconv.Atoi(found[2]); err != nil || n > maxBytes {
			t.Errorf("the package %s allocates %s bytes in %s pieces before main, more than %d: do it when it is first needed, see internal/lazyregexp", name, found[2], found[3], maxBytes)
		}
	}
	if ours == 0 {
		t.Errorf("no package of ours is in the trace:\n%s", trace.String())
	}
}
