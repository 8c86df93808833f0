package mcp

import (
	"runtime"
	"testing"

	"github.com/stilehost/stile/extension/lifecycle"
	"github.com/stilehost/stile/internal/turns"
)

// TestReadersTakeTurns has an agent take all places of a kind and call a tool. When a place is free, another agent's call comes first.
func TestReadersTakeTurns(t *testing.T) {
	for tool, arguments := range map[string]object{
		"extension_list": {}, "extension_source": {"extension": "answer"}, "extension_stats": {}, "extension_test": {"extension": "answer"},
	} {
		t.Run(tool, func(t *testing.T) {
			h := newHome(t, preApproved)
			first, second := h.client(), h.person(lifecycle.Viewer{Agent: "bob"}, "test", nil)
			for _, c := range []*client{first, second} {
				does[writeOutput](c, "extension_write", draft("answer", "42", nil))
			}
			places := h.server.places.reading
			if tool == "extension_test" {
				places = h.server.places.testing
			}
			for range 2 {
				if err := places.Take(turns.For(t.Context(), alice.String())); err != nil {
					t.Fatal(err)
				}
			}
			answered := make(chan string, 2)
			call := func(c *client, who string, waiting int) {
				go func() {
					if r := c.tool(tool, arguments); r.IsError {
						t.Errorf("%s: %s", who, text(r))
					}
					answered <- who
				}()
				for places.Waiting() < waiting {
					if len(answered) > 0 {
						t.Fatalf("%s did not wait for a place", who)
					}
					runtime.Gosched()
				}
			}
			call(first, "alice", 1)
			call(second, "bob", 2)
			taken := make(chan error, 1)
			go func() { taken <- places.Take(turns.For(t.Context(), "carol")) }() // a place that bob has given back
			for places.Waiting() < 3 {
				runtime.Gosched()
			}
			places.Give()
			if err := <-taken; err != nil {
				t.Fatal(err)
			}
			if who := <-answered; who != "bob" {
				t.Errorf("%s was answered first", who)
			}
			places.Give()
			<-answered
			places.Give()
		})
	}
}
