package extension_test

import (
	"testing"

	"github.com/stilehost/stile/capabilities"
	"github.com/stilehost/stile/extension"
)

func TestShortRemedy(t *testing.T) {
	for _, c := range []struct {
		name, line, want string
		moves            bool
	}{
		{"network", `"bindings": { "network": {"http":[{"host":"api.example.com","path":"/a"}]} }`, `"permissions": { "network": ["api.example.com"] }`, false},
		{"network", `"bindings": { "network": {"http":[{"host":"api.example.com","methods":["POST"]}]} }`, `"permissions": { "network": ["api.example.com"] }`, false},
		{"network", `"bindings": { "network": {"http":[{"scheme":"http","host":"api.example.com"}]} }`, "", true},
		{"workspace", `"bindings": { "workspace": {"workspace":{"path":"/","access":"read-write"}} }`, `"permissions": { "workspace": "read-write" }`, false},
		{"kv", `"bindings": { "kv": {"kv":true} }`, `"permissions": { "kv": true }`, false},
		{"kv", `"bindings": { "kv": {"blob":true} }`, "", true},
		{"api", `"bindings": { "api": {"http":[{"host":"api.example.com"}]} }`, "", false},
		{"network", "stile secret set token", "", false},
	} {
		if c.want == "" {
			c.want = c.line
		}
		if got, moves := extension.ShortRemedy(capabilities.Builtin, c.name, c.line); got != c.want || moves != c.moves {
			t.Errorf("ShortRemedy(%q, %s) = %s, %t; want %s, %t", c.name, c.line, got, moves, c.want, c.moves)
		}
	}
}
