package sandbox_test

import (
	"strings"
	"testing"

	"github.com/stilehost/stile/capabilities/sandbox"
)

// TestLimits asks a sandbox, and the machine, which limits hold.
func TestLimits(t *testing.T) {
	each(t, func(t *testing.T, o sandbox.Options) {
		s := open(t, o, sandbox.Rights{})
		notes, err := s.Limits(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		names := map[string]bool{}
		for _, n := range notes {
			names[n.Path] = strings.HasPrefix(n.Reason, "holds: ")
		}
		for _, name := range []string{"memory", "swap", "processes", "cpu", "disk"} {
			if !names[name] {
				t.Errorf("%s: %+v", name, notes)
			}
		}
		checks, err := sandbox.Probe(t.Context(), o)
		if err != nil || len(checks) != 6 || !checks[0].OK || !strings.Contains(checks[0].Detail, "in a user namespace") {
			t.Errorf("%+v, %v", checks, err)
		}
	})
}

// TestTwoSandboxes has two sandboxes at once. Neither sees the other.
func TestTwoSandboxes(t *testing.T) {
	each(t, func(t *testing.T, o sandbox.Options) {
		a, b := open(t, o, sandbox.Rights{}), open(t, o, sandbox.Rights{})
		must(t, a, "echo a > x; echo secret > /tmp/secret; chmod 666 /tmp/secret")
		if got := must(t, b, "ls /work /tmp; cat /proc/self/uid_map"); strings.Contains(got, "secret") || got == must(t, a, "ls /work /tmp; cat /proc/self/uid_map") {
			t.Errorf("got %s", got)
		}
	})
}

// TestUnknownImage starts a sandbox of an image that is not there.
func TestUnknownImage(t *testing.T) {
	s := open(t, home(t), sandbox.Rights{Image: "nothing"})
	if _, err := try(t.Context(), s, sandbox.Command{Argv: []string{"true"}}); err == nil || !strings.Contains(err.Error(), `not found: the sandbox image "nothing"`) {
		t.Errorf("got %v", err)
	}
}
