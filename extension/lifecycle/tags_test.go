package lifecycle

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stilehost/stile/extension"
)

// tagged is a draft with tags.
func tagged(d Draft, tags ...string) Draft {
	quoted, _ := json.Marshal(tags)
	d.Manifest = fmt.Appendf(nil, `%s, "tags": %s}`, bytes.TrimSuffix(d.Manifest, []byte("}")), quoted)
	return d
}

// Tags are shown with the tools, and a search by tag finds only tools of the active version.
func TestTags(t *testing.T) {
	h := newHome(t)
	m := h.open()
	write(t, m, draft("plain", "1", ""))
	write(t, m, tagged(draft("answer", "1", ""), "trivia", "deep-thought"))
	want := []string{"deep-thought", "trivia"}
	check := func(m *Manager) {
		t.Helper()
		list, err := m.List(t.Context(), agent)
		if err != nil || len(list) != 2 || !slices.Equal(list[0].Tags, want) || len(list[1].Tags) != 0 {
			t.Errorf("got %+v, %v", list, err)
		}
		if tools := offered(t, m, agent); len(tools) != 2 || !slices.Equal(tools[0].Tags, want) || len(tools[1].Tags) != 0 {
			t.Errorf("got %+v", tools)
		}
		for _, query := range []string{"trivia", "thoughts", "deep-thought"} {
			if found, err := m.Search(t.Context(), agent, query, 5); err != nil || len(found) != 1 || found[0].Name != "answer_get" || !slices.Equal(found[0].Tags, want) {
				t.Errorf("%s: got %+v, %v", query, found, err)
			}
		}
	}
	check(m)
	check(h.open())

	write(t, m, tagged(draft("answer", "1", ""), "numbers"))
	if found, err := m.Search(t.Context(), agent, "trivia", 5); err != nil || len(found) != 0 {
		t.Errorf("got %+v, %v", found, err)
	}
	if found, err := m.Search(t.Context(), agent, "number", 5); err != nil || len(found) != 1 || !slices.Equal(found[0].Tags, []string{"numbers"}) {
		t.Errorf("got %+v, %v", found, err)
	}
}

// An invalid tag is refused before anything is stored.
func TestHostileTags(t *testing.T) {
	m := newHome(t).open()
	for _, tags := range [][]string{{"a\x1b[2J"}, {"a", "a"}, {strings.Repeat("a", 33)}, strings.Fields(strings.Repeat("a ", 17)), {"a b"}, {"'); DROP TABLE release; --"}, {"\u202e"}} {
		var problems *extension.ProblemsError
		_, err := m.Write(t.Context(), tagged(draft("answer", "1", ""), tags...))
		if !errors.As(err, &problems) || problems.Problems[0].Line != 1 || problems.Problems[0].Column == 0 || problems.Problems[0].Fix == "" || strings.ContainsAny(err.Error(), "\x1b\u202e") {
			t.Errorf("%q: got %v", tags, err)
		}
	}
	if list, err := m.List(t.Context(), agent); err != nil || len(list) != 0 {
		t.Errorf("got %+v, %v", list, err)
	}
}
