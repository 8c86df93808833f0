//go:build long

package thirdparty

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"github.com/stilehost/stile/capabilities/clock"
	"github.com/stilehost/stile/capabilities/console"
	"github.com/stilehost/stile/capabilities/random"
	"github.com/stilehost/stile/host"
	"github.com/stilehost/stile/internal/cache/cachetest"
	"github.com/stilehost/stile/toolchain"
)

// harness is an extension that runs the scripts of a suite. Every call has a fresh instance of it.
type harness struct {
	component *host.Component
}

// newHarness builds the extension from a file of testdata, and from more files.
func newHarness(t *testing.T, file string, more fstest.MapFS) *harness {
	t.Helper()
	source, err := os.ReadFile(filepath.Join("testdata", file))
	if err != nil {
		t.Fatal(err)
	}
	h, err := host.New(t.Context(), host.Options{Limits: host.Limits{CPU: 20 * time.Second, Wall: 2 * time.Minute, Memory: 256 << 20, Input: 16 << 20, Output: 16 << 20}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = h.Close() })
	dir, keys := cachetest.Dirs(t)
	tools, err := toolchain.New(t.Context(), h, toolchain.Options{CacheDir: dir, KeyDir: keys})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tools.Close() })
	files := fstest.MapFS{file: {Data: source}}
	maps.Copy(files, more)
	c, err := tools.Build(t.Context(), toolchain.Source{FS: files, Entry: file, Bindings: map[string]string{
		"clock": clock.Interface, "random": random.Interface, "console": console.Interface,
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return &harness{c}
}

// run calls the tool "run", and reads its result.
func (h *harness) run(t *testing.T, input, result any) error {
	text, err := json.Marshal(input)
	if err != nil {
		return err
	}
	env := host.Env{"clock": clock.System(), "random": random.System(), "console": console.To(func(console.Level, string) {})}
	done, err := h.component.Do(t.Context(), host.Request{Tool: "run", Input: text, Env: env})
	if err != nil {
		return err
	}
	return json.Unmarshal(done.Output, result)
}

// each calls do for all values, as many at a time as there are processors.
func each[T any](values []T, do func(int, T)) {
	var group sync.WaitGroup
	queue := make(chan int)
	for range runtime.GOMAXPROCS(0) {
		group.Go(func() {
			for n := range queue {
				do(n, values[n])
			}
		})
	}
	for n := range values {
		queue <- n
	}
	close(queue)
	group.Wait()
}

// first is the first line of an error's text.
func first(err error) string {
	line, _, _ := strings.Cut(err.Error(), "\n")
	return line
}
