package lifecycle

import "testing"

// BenchmarkRefresh measures a check for decisions when there are none, and for comparison the shortest call, which makes two checks.
func BenchmarkRefresh(b *testing.B) {
	h := newHome(b)
	m := h.open()
	if _, err := m.Write(b.Context(), draft("answer", "42", "")); err != nil {
		b.Fatal(err)
	}
	if err := m.settle(b.Context()); err != nil {
		b.Fatal(err)
	}
	b.Run("check", func(b *testing.B) {
		for b.Loop() {
			if err := m.Refresh(b.Context()); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("check-in-store", func(b *testing.B) {
		for b.Loop() {
			if err := m.look(b.Context()); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("call", func(b *testing.B) {
		for b.Loop() {
			if _, err := m.Call(b.Context(), Call{Viewer: agent, Tool: "answer_get"}); err != nil {
				b.Fatal(err)
			}
		}
	})
}
