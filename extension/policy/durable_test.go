package policy

import (
	"strings"
	"testing"

	"github.com/stilehost/stile/extension"
)

// TestDurable has a person approve that calls go on after their caller has left, whatever is approved beforehand.
func TestDurable(t *testing.T) {
	own := extension.Scope{Kind: extension.Agent, Owner: "a"}
	p := Default()
	if d := p.Decide(Request{Scope: own, Author: own}); d.Verdict != Approved {
		t.Fatalf("got %+v", d)
	}
	d := p.Decide(Request{Scope: own, Author: own, Durable: []extension.Durable{{Tool: "order", Deadline: extension.DefaultDeadline}}})
	if d.Verdict != Pending || !strings.Contains(d.Reason, "calls of order may go on for up to 30 days after their caller has left") {
		t.Errorf("got %+v", d)
	}
}
