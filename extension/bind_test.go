package extension

import (
	"context"
	"errors"
	"maps"
	"reflect"
	"strings"
	"testing"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/capabilities"
	"github.com/stilehost/stile/capabilities/console"
	"github.com/stilehost/stile/capabilities/http"
	"github.com/stilehost/stile/capabilities/kv"
	"github.com/stilehost/stile/capabilities/random"
	"github.com/stilehost/stile/capabilities/workspace"
	"github.com/stilehost/stile/capability"
)

func TestMerge(t *testing.T) {
	given := []Binding{{"notes", kv.Rights{Store: "mine"}}, {"clock", random.Kind.On()}}
	asked := []Binding{{"notes", workspace.Rights{}}, {"api", http.Rights{}}}
	got := Merge(given, asked, Defaults(capabilities.Builtin))
	want := []Binding{{"api", http.Rights{}}, {"clock", random.Kind.On()}, {"console", console.Kind.On()}, {"notes", kv.Rights{Store: "mine"}}, {"random", random.Kind.On()}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	known := map[string]string{
		"api": http.Rights{}.Interface(), "clock": random.Kind.On().Interface(), "console": console.Kind.On().Interface(), "notes": kv.Rights{}.Interface(), "random": random.Kind.On().Interface(),
	}
	if got := Known(got); !maps.Equal(got, known) {
		t.Errorf("got %v, want %v", got, known)
	}
}

// An extension's data is stored under its scope and its own name, and no command-line binding reaches its buckets by accident.
func TestOwn(t *testing.T) {
	m, err := Parse([]byte(`{"name": "my-notes", "version": "1.0.0", "description": "d", "tools": ["t"],
		"permissions": {"kv": true}, "bindings": {"a": {"workspace": {"path": "/a"}}, "b": {"kv": true}}}`))
	if err != nil {
		t.Fatal(err)
	}
	want := []Binding{
		{"a", workspace.Rights{Store: "shared.my-notes", Path: "/a", Access: workspace.Read}},
		{"b", kv.Rights{Store: "shared.my-notes/b"}},
		{"kv", kv.Rights{Store: "shared.my-notes/kv"}},
	}
	if got := m.Own(Scope{Kind: Shared}); !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if m.Bindings[0].Grant != (workspace.Rights{Path: "/a", Access: workspace.Read}) {
		t.Error("the manifest was changed")
	}
	if _, err := ParseSpec(capabilities.Builtin, "x=kv:shared.my-notes/b"); err == nil {
		t.Error("a binding of the command line names an extension's bucket")
	}
}

func TestCheckTools(t *testing.T) {
	m := &Manifest{Tools: []string{"a", "b"}}
	if err := m.CheckTools([]string{"b", "a"}); err != nil {
		t.Error(err)
	}
	err := m.CheckTools([]string{"c", "b", "\x1b[2J"})
	want := &ToolsError{Missing: []string{"a"}, Extra: []string{"\x1b[2J", "c"}}
	if !reflect.DeepEqual(err, want) || strings.Contains(err.Error(), "\x1b") {
		t.Errorf("got %v, want %v", err, want)
	}
}

func TestStateEnv(t *testing.T) {
	ctx, dir := t.Context(), t.TempDir()
	bindings, err := ParseSpecs(capabilities.Builtin, []string{
		"api=http:https://example.com/**", "b=blob", "clock=clock", "console=console", "random=random",
		"read=workspace:w/d", "store=kv:k", "write=workspace:w,rw",
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, round := range []string{"first", "second"} { // the second round finds the first one's data
		s := NewState(dir, func(console.Level, string) {})
		env, err := s.Env(ctx, bindings)
		if err != nil {
			t.Fatal(err)
		}
		for _, b := range bindings {
			if c := env[b.Name]; c == nil || c.Interface() != b.Grant.Interface() {
				t.Errorf("%s: got %v", b.Name, c)
			}
		}
		read, write := env["read"].(*workspace.Directory), env["write"].(*workspace.Directory)
		if round == "first" {
			if err := write.Write(ctx, "d/a", "kept"); err != nil {
				t.Fatal(err)
			}
			if err := env["store"].(*kv.Bucket).Set(ctx, "a", "kept"); err != nil {
				t.Fatal(err)
			}
		}
		if text, err := read.Read(ctx, "a"); text != "kept" || err != nil {
			t.Errorf("%s: got %q, %v", round, text, err)
		}
		if err := read.Write(ctx, "a", "lost"); !errors.Is(err, abi.ErrDenied) {
			t.Errorf("a read-only binding writes: %v", err)
		}
		if v, err := env["store"].(*kv.Bucket).Get(ctx, "a"); v == nil || *v != "kept" || err != nil {
			t.Errorf("%s: got %v, %v", round, v, err)
		}
		if err := errors.Join(s.Close(), s.Close()); err != nil {
			t.Error(err)
		}
	}

	s := NewState(dir, nil)
	t.Cleanup(func() { _ = s.Close() })
	var unbound *UnboundError
	if _, err := s.Env(ctx, []Binding{{"crm", capability.Custom{Name: "acme:crm/contacts@1.0.0"}}}); !errors.As(err, &unbound) {
		t.Errorf("got %v, want an UnboundError", err)
	}
	secret := []Binding{{"api", http.Rights{Rules: []http.Rule{{Host: "example.com", Credential: "token"}}}}}
	if _, err := s.Env(ctx, secret); err == nil {
		t.Error("a credential comes from nowhere")
	}
	s.Configure(http.Kind, http.Options{Credentials: noCredentials{}})
	if _, err := s.Env(ctx, secret); err != nil {
		t.Error(err)
	}
	if _, err := NewState(dir+"/none", nil).Env(ctx, []Binding{{"store", kv.Rights{Store: "k"}}}); err == nil {
		t.Error("a folder that is not there is used")
	}
}

type noCredentials struct{}

func (noCredentials) Get(context.Context, string) (string, error) { return "", errors.New("none") }

// Closing an env closes its values, and none of another env.
func TestStateRelease(t *testing.T) {
	ctx := t.Context()
	bindings, err := ParseSpecs(capabilities.Builtin, []string{"api=http:https://example.com/**", "console=console", "files=dir:" + t.TempDir() + ",rw", "kept=workspace:w,rw"})
	if err != nil {
		t.Fatal(err)
	}
	s := NewState(t.TempDir(), func(console.Level, string) {})
	t.Cleanup(func() { _ = s.Close() })
	open := func() map[string]abi.Capability {
		t.Helper()
		env, err := s.Env(ctx, bindings)
		if err != nil {
			t.Fatal(err)
		}
		return env
	}
	one, other := open(), open()
	if err := errors.Join(s.Release(one), s.Release(one), s.Release(nil)); err != nil {
		t.Error(err)
	}
	if err := one["files"].(*workspace.Directory).Write(ctx, "a", "x"); err == nil {
		t.Error("the directory of an env that was released is open")
	}
	for _, name := range []string{"files", "kept"} {
		if err := other[name].(*workspace.Directory).Write(ctx, "a", "x"); err != nil {
			t.Error(err)
		}
	}
	bindings = append(bindings, Binding{"no", capability.Custom{Name: "acme:crm/contacts@1.0.0"}})
	if _, err := s.Env(ctx, bindings); err == nil {
		t.Error("there is a capability that nobody made")
	}
	if s.Held() != 2 {
		t.Errorf("%d capabilities are held, want those of one env", s.Held())
	}
}
