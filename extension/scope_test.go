package extension

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/stilehost/stile/capabilities"
	"github.com/stilehost/stile/capabilities/kv"
	"github.com/stilehost/stile/capabilities/workspace"
	"github.com/stilehost/stile/capability"
)

func TestParseScope(t *testing.T) {
	for text, want := range map[string]Scope{
		"shared": {Kind: Shared}, "user:tom": {User, "tom"}, "agent:claude-4_5": {Agent, "claude-4_5"}, "user:" + strings.Repeat("a", 64): {User, strings.Repeat("a", 64)},
	} {
		got, err := ParseScope(text)
		if err != nil || got != want || got.String() != text {
			t.Errorf("%s: got %v, %v", text, got, err)
		}
		encoded, err := json.Marshal(got)
		var again Scope
		if err != nil || json.Unmarshal(encoded, &again) != nil || again != got {
			t.Errorf("%s: got %s, %v", text, encoded, err)
		}
	}
	for _, text := range []string{
		"", "Shared", "shared:", "shared:tom", "user", "user:", "user:Tom", "user: tom", "user:tom ", "user:tom\n", "agent:a.b", "agent:a/b", "agent:a:b", "group:a",
		"user:\u0442om", "user:" + strings.Repeat("a", 65), "user:-a", "agent:\x1b[2J",
	} {
		var problem *ScopeError
		if got, err := ParseScope(text); !errors.As(err, &problem) || got != (Scope{}) || strings.ContainsAny(err.Error(), "\n\x1b") {
			t.Errorf("%q: got %v, %v", text, got, err)
		}
	}
	for _, s := range []Scope{{}, {Kind: User}, {User, "a:b"}, {Shared, "x"}} {
		if text, err := s.MarshalText(); (err == nil) != (s.Kind == Shared) {
			t.Errorf("%+v: got %s, %v", s, text, err)
		}
	}
}

func TestScopeOrder(t *testing.T) {
	if got, want := Visible("tom", "claude"), []Scope{{Agent, "claude"}, {User, "tom"}, {Kind: Shared}}; !slices.Equal(got, want) {
		t.Errorf("got %v", got)
	}
	if got := Visible("", ""); !slices.Equal(got, []Scope{{Kind: Shared}}) {
		t.Errorf("got %v", got)
	}
	ordered := []Scope{{Agent, "a"}, {Agent, "b"}, {User, "a"}, {User, "b"}, {Kind: Shared}}
	for i, a := range ordered {
		for j, b := range ordered {
			if got := a.Compare(b); (got < 0) != (i < j) || (got == 0) != (i == j) {
				t.Errorf("%v and %v: %d", a, b, got)
			}
			if a.Narrower(b) != (a.Kind != b.Kind && i < j) {
				t.Errorf("%v and %v", a, b)
			}
		}
	}
}

// An extension has no store of another scope's extension, whatever their names.
func TestOwnByScope(t *testing.T) {
	names := []string{"notes", "agent", "user-a-notes", "a-notes"}
	scopes := []Scope{{Kind: Shared}, {User, Local}, {User, "a"}, {User, "b"}, {Agent, "a"}, {Agent, "a-notes"}, {Agent, "a_b"}, {User, "notes"}}
	seen := map[string]string{}
	for _, name := range names {
		m := &Manifest{Name: name, Bindings: []Binding{{"kv", kv.Rights{}}, {"w", workspace.Rights{Path: "/", Access: workspace.Read}}}}
		owned := map[string][]Binding{}
		for _, scope := range scopes {
			owned[name+" in "+scope.String()] = m.Own(scope)
		}
		for _, file := range []string{"/a/notes.json", "/a/manifest.json", "/b/manifest.json", "/manifest.json", "/shared/notes.json", "/" + strings.Repeat("é", 100) + "/notes.json", "/" + strings.Repeat("a", 100) + "/notes.json"} {
			owned[name+" of "+file] = m.OwnRun(file)
		}
		for who, own := range owned {
			for _, store := range []string{own[0].Grant.(kv.Rights).Store, own[1].Grant.(workspace.Rights).Store} {
				if other := seen[store]; other != "" {
					t.Errorf("%s has the store %s of %s", who, store, other)
				}
				seen[store] = who
				if !strings.Contains(store, ".") {
					t.Errorf("%s has the store %s, which is a person's", who, store)
				}
			}
			// A person reaches it by name.
			b, err := ParseSpec(capabilities.Builtin, "x=workspace:"+own[1].Grant.(workspace.Rights).Store)
			if err != nil || b.Grant != own[1].Grant {
				t.Errorf("%s: %v, %v", who, b, err)
			}
			if _, err := ParseSpec(capabilities.Builtin, "x=kv:"+own[0].Grant.(kv.Rights).Store); err == nil {
				t.Errorf("a command line binds the bucket of %s", who)
			}
		}
	}
	for _, bad := range []string{"a.notes", "agent..notes", "agent.a.b.notes", ".notes", "agent.a.", "shared.a.notes", "agent.A.notes", "agent.a.no\ntes"} {
		if _, err := ParseSpec(capabilities.Builtin, "x=workspace:"+bad); err == nil {
			t.Errorf("%q names a workspace", bad)
		}
	}
}

func FuzzScope(f *testing.F) {
	f.Add("shared")
	f.Add("user:tom")
	f.Add("agent:a.b")
	f.Fuzz(func(t *testing.T, text string) {
		s, err := ParseScope(text)
		if err == nil && (s.String() != text || !capability.IsStoreName(s.store()+"notes")) || err != nil && s != (Scope{}) {
			t.Fatalf("%+v, %v", s, err)
		}
	})
}
