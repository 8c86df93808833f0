package lifecycle

import (
	"fmt"
	"strings"
	"testing"
)

// TestKeptIsBounded has an agent write, use and remove extensions in a loop. What they leave in buckets and workspaces is bounded, another
// scope has room, and a new policy applies at once.
func TestKeptIsBounded(t *testing.T) {
	h := newHome(t)
	const text = `{"approve": [{"permissions": {"kv": true, "workspace": "read-write"}}], "limits": {"buildsPerHour": 1000, "keptPerScope": "%dMiB"}}`
	h.policyOf(fmt.Sprintf(text, 1))
	m := h.open()
	for _, binding := range []string{"kv", "workspace"} {
		t.Run(binding, func(t *testing.T) {
			permission, fill := `{"kv": true}`, `await env.kv.set("k", "v".repeat(300000))`
			if binding == "workspace" {
				permission, fill = `{"workspace": "read-write"}`, `await env.workspace.write("f", "v".repeat(300000))`
			}
			call := func(v Viewer, name string) string {
				t.Helper()
				r, err := m.Call(t.Context(), Call{Viewer: v, Tool: name + "_get"})
				if err != nil {
					return err.Error()
				}
				return string(r.Output)
			}
			full := ""
			for n := 0; full == "" || strings.HasPrefix(full, `"kept`); n++ {
				name := fmt.Sprintf("%s%d", binding, n)
				write(t, m, draft(name, fill+`, "kept"`, permission))
				full = call(agent, name)
				if _, err := m.Remove(t.Context(), own, name, Decision{By: "agent:a"}); err != nil {
					t.Fatal(err)
				}
				if n > 10 {
					t.Fatal("there is no end")
				}
			}
			if !strings.Contains(full, "in this scope: limit 1048576") {
				t.Error(full)
			}
			d := draft(binding+"s", fill+`, "kept"`, permission)
			d.Scope.Owner, d.Author = "b", "agent:b"
			write(t, m, d)
			if got := call(Viewer{User: "tom", Agent: "b"}, binding+"s"); got != `"kept"` {
				t.Errorf("another agent's extension: %s", got)
			}
			h.policyOf(fmt.Sprintf(text, 2))
			m.SetPolicy(h.options.Policy)
			write(t, m, draft(binding+"more", fill+`, "kept"`, permission))
			if got := call(agent, binding+"more"); got != `"kept"` {
				t.Errorf("with more room: %s", got)
			}
			h.policyOf(fmt.Sprintf(text, 1))
			m.SetPolicy(h.options.Policy)
		})
	}
}
