package wasmtime

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestDeclarations compiles our header together with the real ones: prototypes must agree, and sizes and offsets too.
func TestDeclarations(t *testing.T) {
	dir, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", "github.com/bytecodealliance/wasmtime-go/v44").Output()
	if err != nil {
		t.Fatalf("find wasmtime-go: %v", err)
	}
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	include := filepath.Join(strings.TrimSpace(string(dir)), "build", "include")
	for _, c := range []struct {
		name, source, want string
	}{
		{"agrees", "", ""},
		{"notices a prototype", "int wasmtime_component_val_delete(int);\n", "conflicting types"},
		{"notices a layout", "STILE_SIZE(wasmtime_component_val_t, 40);\n", "static assertion failed"},
	} {
		t.Run(c.name, func(t *testing.T) {
			// Our header has the name of one of the real ones, so it is included by its folder.
			source := "#include <wasm.h>\n#include <wasmtime.h>\n#include <wasmtime/component.h>\n" +
				"#include \"" + here + "/wasmtime.h\"\n#include \"" + here + "/layout.h\"\n" + c.source
			file := filepath.Join(t.TempDir(), "drift.c")
			if err := os.WriteFile(file, []byte(source), 0o600); err != nil {
				t.Fatal(err)
			}
			out, err := exec.CommandContext(t.Context(), "cc", "-std=gnu11", "-fsyntax-only", "-I", include, file).CombinedOutput()
			if c.want == "" && err != nil || c.want != "" && !strings.Contains(string(out), c.want) {
				t.Errorf("cc: %v\n%s", err, out)
			}
		})
	}
}
