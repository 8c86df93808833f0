package http

import "testing"

// TestReopen has a call go on in another process: it has what was left of its limits, however many bindings it has.
func TestReopen(t *testing.T) {
	g, err := New(Options{Rules: []Rule{{Scheme: "https", Host: "a.test", Path: "/**"}}})
	if err != nil {
		t.Fatal(err)
	}
	opened, err := g.Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	c := opened.(*Client)
	c.call.requests.Store(7)
	if err := c.call.received.Reserve(1000); err != nil {
		t.Fatal(err)
	}
	state, ok := c.Save()
	if !ok {
		t.Fatal("it cannot be saved")
	}
	again, err := g.Reopen(t.Context(), state)
	if err != nil {
		t.Fatal(err)
	}
	b := again.(*Client).call.budget
	if n, used := b.requests.Load(), b.received.Limit()-b.received.Free(); n != 7 || used != 1000 {
		t.Errorf("%d requests and %d bytes", n, used)
	}
	if _, err := g.Reopen(t.Context(), []byte(`{"requests":-1,"received":9223372036854775807}`)); err != nil {
		t.Error(err)
	}
	if _, err := g.Reopen(t.Context(), []byte("{")); err == nil {
		t.Error("a state that nobody saved was read")
	}
}
