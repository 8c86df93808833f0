package lifecycle

import (
	"runtime"
	"strings"
	"testing"

	"github.com/stilehost/stile/extension"
)

// TestDiffTakesLittle compares the largest sources, of the shortest lines.
func TestDiffTakesLittle(t *testing.T) {
	version := func(text string) *Version {
		return &Version{Files: map[string][]byte{"a.ts": []byte(strings.Repeat(text, extension.MaxSource/len(text)))}}
	}
	for name, c := range map[string]struct{ before, after *Version }{
		"a first version": {nil, version("\n")}, "another text": {version("a\n"), version("b\n")}, "shifted": {version("a\nb\nc\n"), version("b\nc\nd\na\n")},
	} {
		var began, ended runtime.MemStats
		runtime.ReadMemStats(&began)
		text := Diff(c.before, c.after)
		runtime.ReadMemStats(&ended)
		if !strings.HasPrefix(text, "--- a/a.ts\n+++ b/a.ts\n@@ ") {
			t.Errorf("%s: got %.60q", name, text)
		}
		if took := (ended.TotalAlloc - began.TotalAlloc) >> 20; took > 600 {
			t.Errorf("%s: it took %d MiB", name, took)
		}
	}
}
