package protocol_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stilehost/stile/conformance/protocol"
)

const greeting = `read line; echo '{"id":1,"hello":{"protocol":1,"name":"x","version":"1","kinds":[]}}'; `

// TestCloseEnds closes hosts that leave something behind that has their output.
func TestCloseEnds(t *testing.T) {
	for name, script := range map[string]string{
		"a child that keeps the output": "sleep 100 & " + greeting + "exit 0",
		"a host that does not end":      greeting + "sleep 100; true",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h, err := protocol.Start(t.Context(), []string{"sh", "-c", script}, nil, 10*time.Second)
			if err != nil {
				t.Fatal(err)
			}
			done := make(chan struct{})
			go func() { defer close(done); h.Kill() }()
			select {
			case <-done:
			case <-time.After(20 * time.Second):
				t.Error("Kill does not return")
			}
		})
	}
}

// TestHostileHosts starts programs that are no hosts.
func TestHostileHosts(t *testing.T) {
	for name, script := range map[string]string{
		"garbage":   "yes",
		"no lines":  "tr '\\0' x </dev/zero",
		"long text": "echo '\x1b]0;title\x07' >&2; echo nothing",
		"another":   `read line; echo '{"id":7}'`,
		"nameless":  `read line; echo '{"id":1,"hello":{"protocol":1,"name":""}}'`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := protocol.Start(t.Context(), []string{"sh", "-c", script}, nil, 10*time.Second)
			var broken *protocol.HostError
			if !errors.As(err, &broken) || strings.ContainsAny(err.Error(), "\x1b\x07") {
				t.Errorf("ended with %q", err)
			}
		})
	}
}

// TestNames starts a host whose name is not to be shown.
func TestNames(t *testing.T) {
	h, err := protocol.Start(t.Context(), []string{"sh", "-c", `read line; printf '%s\n' '{"id":1,"hello":{"protocol":1,"name":"a\u001b[2J\nb","version":"\u202e1"}}'; read line`}, nil, 10*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	if got := h.Hello(); got.Name != `a\x1b[2J b` || got.Version != `\u202e1` {
		t.Errorf("the host is %q of version %q", got.Name, got.Version)
	}
}
