package guests

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/capabilities/workspace"
	"github.com/stilehost/stile/host"
	"github.com/stilehost/stile/toolchain"
)

// filePlaces are a workspace and a directory on disk.
func filePlaces(t *testing.T) map[string]*workspace.Directory {
	t.Helper()
	store, err := workspace.Open(t.Context(), filepath.Join(t.TempDir(), "workspaces.db"), workspace.Options{})
	if err != nil {
		t.Fatal(err)
	}
	disk, err := workspace.OpenDisk(t.TempDir(), workspace.DiskOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(store.Close(), disk.Close()); err != nil {
			t.Error(err)
		}
	})
	return map[string]*workspace.Directory{"workspace": store.Workspace("files"), "disk": disk.Directory()}
}

// An unmodified program of Go uses most of package os.
func TestFilesGo(t *testing.T) {
	l := newLanguages(t)
	core, err := os.ReadFile(buildGo(t, filepath.Join("testdata", "wasi", "go")))
	if err != nil {
		t.Fatal(err)
	}
	made, err := toolchain.Preinitialize(t.Context(), toolchain.ExtensionWorld(l.host.WIT()), core)
	if err != nil {
		t.Fatal(err)
	}
	if made.Initialized || !strings.Contains(made.Begins, "looks for directories") { // which only a call has
		t.Errorf("it begins %q", made.Begins)
	}
	c := l.load(t, made.Component)
	for name, place := range filePlaces(t) {
		testFiles(t, name, c, place, func(path string) string { return fmt.Sprintf(`{"path": %q}`, path) })
	}
}

// testFiles has a program use files in all ways it knows, then with bindings that only read, and with none.
func testFiles(t *testing.T, name string, c *host.Component, place *workspace.Directory, input func(path string) string) {
	t.Helper()
	at := abi.WASI{Filesystem: map[string]string{"/data": "files"}}
	do := func(tool, path string, env host.Env, w abi.WASI) (string, error) {
		result, err := c.Do(t.Context(), host.Request{Tool: tool, Input: []byte(input(path)), Env: env, WASI: w})
		return string(result.Output), err
	}
	if got, err := do("files", "/data", host.Env{"files": place}, at); err != nil || got != `"ok"` {
		t.Errorf("%s: %s, %v", name, got, err)
	}
	if err := place.Write(t.Context(), "note.md", "hello"); err != nil {
		t.Fatal(err)
	}
	reads := host.Env{"files": place.AsReadOnly()}
	if got, err := do("read", "/data/note.md", reads, at); err != nil || got != `"hello"` {
		t.Errorf("%s: %s, %v", name, got, err)
	}
	if got, err := do("list", "/data", reads, at); err != nil || got != `"note.md"` {
		t.Errorf("%s: %s, %v", name, got, err)
	}
	_, err := do("write", "/data/note.md", reads, at)
	if err == nil || !strings.Contains(err.Error(), "denied: write /note.md through \"files\": this handle can only read") {
		t.Errorf("%s: a write ended with %v", name, err)
	}
	for tool, path := range map[string]string{"read": "/data/../etc/passwd", "list": "/", "write": "/elsewhere"} {
		if got, err := do(tool, path, host.Env{"files": place}, at); err == nil {
			t.Errorf("%s: %s of %s: %s", name, tool, path, got)
		}
	}
	if got, err := do("read", "/data/note.md", host.Env{"files": place}, abi.WASI{}); err == nil {
		t.Errorf("%s: a file of a binding that nothing names: %s", name, got)
	}
}
