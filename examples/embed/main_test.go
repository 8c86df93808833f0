package main

import (
	"os"
	"strings"
	"testing"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/toolchain"
	"github.com/stilehost/stile/wit"
)

func TestRun(t *testing.T) {
	for input, want := range map[string]string{
		`{"name":"Alan"}`:  `{"to":"Alan Turing <alan@example.com>","phone":null}`,
		`{"name":"Ada L"}`: `{"to":"Ada Lovelace <ada@example.com>","phone":"+44 20 7946 0000"}`,
	} {
		var out strings.Builder
		if err := run(t.Context(), input, &out); err != nil {
			t.Fatal(err)
		}
		if out.String() != want+"\n" {
			t.Errorf("%s: got %s, want %s", input, out.String(), want)
		}
	}
	for input, want := range map[string]string{`{"name":"Grace"}`: "nobody is called Grace", `{}`: "name", `]`: "JSON"} {
		var out strings.Builder
		if err := run(t.Context(), input, &out); err == nil || !strings.Contains(err.Error(), want) || out.Len() > 0 {
			t.Errorf("%s: got %v and %q, want %q", input, err, out.String(), want)
		}
	}
}

// TestTypes holds the types that lookup.ts is checked with to the WIT text that the program gives the host.
func TestTypes(t *testing.T) {
	known, err := abi.ParseCapability(wit.Capability(), contactsWIT)
	if err != nil {
		t.Fatal(err)
	}
	name := Book{}.Interface()
	have, err := os.ReadFile("stile-env.d.ts")
	if err != nil {
		t.Fatal(err)
	}
	_, types, _ := strings.Cut(toolchain.EnvTypes(map[string]string{"crm": name}, nil, nil, known), "\n")
	if want := toolchain.EnvTypesMark + ": the bindings of \"lookup.json\".\n" + types; string(have) != want {
		t.Errorf("stile-env.d.ts is not what `stile types lookup.json --wit contacts.wit --no-defaults` writes:\n%s", want)
	}
}
