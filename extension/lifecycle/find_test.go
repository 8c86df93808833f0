package lifecycle

import (
	"testing"

	"github.com/stilehost/stile/extension"
	"github.com/stilehost/stile/internal/toolsearch"
)

// Words are looked up once for a release, whoever searches, and again only for another release.
func TestWordsAreReadOnce(t *testing.T) {
	m := newHome(t).open()
	write(t, m, draft("answer", "1", ""))
	write(t, m, draft("other", "2", ""))
	index := func(v Viewer, name string) *toolsearch.Index {
		t.Helper()
		if found, err := m.Search(t.Context(), v, name, 1); err != nil || len(found) != 1 {
			t.Fatalf("found %v, %v", found, err)
		}
		releases, _ := m.visible(v)
		for _, a := range releases {
			if a.manifest.Name == name {
				return a.index
			}
		}
		return nil
	}
	answer, other := index(agent, "answer"), index(agent, "other")
	if answer == nil || index(agent, "answer") != answer {
		t.Error("the words are read again")
	}
	write(t, m, draft("answer", "3", ""))
	if index(agent, "answer") == answer || index(agent, "other") != other {
		t.Error("another version has the words of the last one, or others were read again")
	}
	r, err := m.Promote(t.Context(), own, extension.Scope{Kind: extension.Shared}, "other", "agent:a", "test")
	if err != nil {
		t.Fatal(err)
	}
	approve(t, m, r)
	b, c := Viewer{User: "tom", Agent: "b"}, Viewer{User: "eve", Agent: "c"}
	if index(b, "other") != index(c, "other") {
		t.Error("two agents have an index each for one release")
	}
	if _, ok := m.Finder(b).Find("answer_get"); ok {
		t.Error("another agent finds a tool by its name")
	}
	if d, ok := m.Finder(agent).Find("answer_get"); !ok || d.InputSchema == "" {
		t.Errorf("got %+v", d)
	}
}
