//go:build long

package main

import (
	"os/exec"
	"testing"

	"github.com/stilehost/stile/extension/project"
)

// New projects of languages whose toolchains fetch packages, and take minutes.
func TestLongNew(t *testing.T) {
	for language, program := range map[string]string{"rust": "cargo", "python": "python3", "javascript": "npm"} {
		t.Run(language, func(t *testing.T) {
			if _, err := exec.LookPath(program); err != nil {
				t.Skipf("%s is not installed", program)
			}
			testNew(t, language, project.Basic)
		})
	}
}
