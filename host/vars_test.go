package host_test

import (
	"strings"
	"testing"

	"github.com/stilehost/stile/host"
)

// varsGuest returns its vars.
var varsGuest = guest{uses: "vars", call: `
	(call $vars (local.get $env) (i32.const 256))
	(call $ok (i32.load (i32.const 256)) (i32.load (i32.const 260)))`}

// TestVars gives a call its vars, and refuses those that are too large or no object. A replay has them from the recording.
func TestVars(t *testing.T) {
	h := newHost(t, host.Options{})
	c := varsGuest.load(t, h)
	for text, want := range map[string]string{
		"": "{}", `{"a": 1}`: `{"a": 1}`, "[]": "no JSON object", "{": "no JSON object", "  ": "no JSON object", `{"a":1} x`: "no JSON object",
		`{"a":"` + strings.Repeat("x", host.MaxVars) + `"}`: "65536 are allowed",
	} {
		r, err := c.Do(t.Context(), host.Request{Tool: "t", Vars: []byte(text)})
		got := string(r.Output)
		if err != nil {
			got = err.Error()
		}
		if !strings.Contains(got, want) {
			t.Errorf("%.40s: got %.200s", text, got)
		}
	}
}
