package workspace

import (
	"fmt"
	"strings"
	"testing"
)

// TestForget leaves nothing of a workspace, and all of another.
func TestForget(t *testing.T) {
	s := opened(t, Options{})
	for _, name := range []string{"gone", "stays"} {
		d := s.Workspace(name)
		for i := range 30 {
			write(t, d, fmt.Sprintf("a/%d/f", i%7), strings.Repeat("x", 1000*i))
		}
		write(t, d, "large", strings.Repeat("y", 200_000))
		if _, err := d.Snapshot(t.Context()); err != nil {
			t.Fatal(err)
		}
		write(t, d, "large", "small")
		if err := d.MakeLink(t.Context(), "link", "a"); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Forget(t.Context(), "gone"); err != nil {
		t.Fatal(err)
	}
	if has, err := s.Has(t.Context(), "gone"); has || err != nil {
		t.Errorf("something is left: %v, %v", has, err)
	}
	if has, err := s.Has(t.Context(), "stays"); !has || err != nil {
		t.Errorf("the other workspace: %v, %v", has, err)
	}
	if err := s.Check(t.Context()); err != nil {
		t.Error(err)
	}
	if err := s.Forget(t.Context(), "never was"); err != nil {
		t.Error(err)
	}
}
