//go:build long

package guests

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stilehost/stile/host"
)

// foreign makes a component by the command of another toolchain, which is run in a folder and writes to a file.
func (l *languages) foreign(t *testing.T, folder, program string, args ...string) *host.Component {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), program, args...)
	cmd.Dir = folder
	if output, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", program, err, output)
	}
	wasm, err := os.ReadFile(args[len(args)-1])
	if err != nil {
		t.Fatal(err)
	}
	return l.load(t, wasm)
}

// contract is the folder of the WIT.
func contract(t *testing.T) string {
	t.Helper()
	path, err := filepath.Abs(filepath.Join("..", "wit"))
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// The example in Python does the same as the others.
func TestLongNotesPython(t *testing.T) {
	program, err := exec.LookPath("componentize-py")
	if err != nil {
		t.Skip("componentize-py is not installed; to install it: pip install componentize-py==0.25.1")
	}
	l := newLanguages(t)
	testNotes(t, map[string]func(*testing.T) *host.Component{"python": func(t *testing.T) *host.Component {
		folder := filepath.Join("..", "examples", "notes", "python")
		return l.foreign(t, folder, program, "-d", contract(t), "-w", "with-everything", "componentize", "app", "-o", filepath.Join(t.TempDir(), "notes.wasm"))
	}})
}

// The example in JavaScript, on StarlingMonkey, does the same as the others.
func TestLongNotesJavaScript(t *testing.T) {
	program, err := exec.LookPath("componentize-js")
	if err != nil {
		t.Skip("componentize-js is not installed; to install it: npm install @bytecodealliance/componentize-js@0.23.0")
	}
	l := newLanguages(t)
	testNotes(t, map[string]func(*testing.T) *host.Component{"javascript": func(t *testing.T) *host.Component {
		folder := filepath.Join("..", "examples", "notes", "javascript")
		return l.foreign(t, folder, program, "app.js", "-w", contract(t), "-n", "with-everything", "-o", filepath.Join(t.TempDir(), "notes.wasm"))
	}})
}
