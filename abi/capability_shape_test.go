package abi_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/stilehost/stile/abi"
)

func TestParseCapability(t *testing.T) {
	r, err := abi.ParseCapability(append(contract(t), `package acme:crm@1.0.0;
		interface contacts {
			variant error { gone }
			resource book { find: func(name: string) -> result<person, error>; }
			resource person;
		}
		interface complete {
			use stile:capability/env@0.1.0.{env};
			resource first;
			resource second;
			get: func(env: borrow<env>, name: string) -> second;
		}
		interface words { type text = string; }
		world w { import contacts; }`)...)
	if err != nil {
		t.Fatal(err)
	}
	contacts := r.Interface("acme:crm/contacts@1.0.0")
	const want = `package acme:crm@1.0.0;

interface contacts {
  use stile:capability/env@0.1.0.{env};
  use stile:capability/types@0.1.0.{error as types-error};
  variant error {
    gone,
  }
  resource book {
    find: func(name: string) -> result<person, error>;
  }
  resource person;
  get: func(env: borrow<env>, name: string) -> result<book, types-error>;
  put: func(env: borrow<env>, name: string, handle: book) -> result<_, types-error>;
}
`
	if got := contacts.WIT(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	for name, handle := range map[string]string{
		"acme:crm/contacts@1.0.0":       "book",
		"acme:crm/complete@1.0.0":       "second",
		"stile:capability/kv@0.1.0":     "bucket",
		"stile:capability/http@0.1.0":   "client",
		"stile:capability/blob@0.1.0":   "store",
		"stile:capability/poll@0.1.0":   "pollable",
		"acme:crm/words@1.0.0":          "",
		"stile:extension/tools@0.1.0":   "",
		"stile:capability/types@0.1.0":  "",
		"stile:capability/tools@0.1.0":  "toolbox",
		"stile:capability/random@0.1.0": "random",
	} {
		got := ""
		if r := r.Interface(name).Handle(); r != nil {
			got = r.Name
		}
		if got != handle {
			t.Errorf("the handle of %s is %q, want %q", name, got, handle)
		}
	}
	imports := interfaceNames(r.World("acme:crm/w@1.0.0").Imports)
	if want := []string{"stile:capability/env@0.1.0", "stile:capability/types@0.1.0", contacts.Name}; !slices.Equal(imports, want) {
		t.Errorf("imports %q, want %q", imports, want)
	}
	poll := r.Interface("stile:capability/poll@0.1.0")
	if slices.ContainsFunc(poll.Funcs, func(f *abi.Func) bool { return f.Name == "get" }) {
		t.Error("stile:capability/poll got a `get`")
	}
	checkParsesBack(t, r)
}

func TestParseCapabilityRefuses(t *testing.T) {
	own := contract(t)
	resource := "package acme:crm; interface i { resource r; }"
	for name, test := range map[string]struct {
		texts   []string
		message string
	}{
		"without the contract":     {[]string{resource}, "stile:capability/env@0.1.0 is not among the texts"},
		"env is no resource":       {[]string{resource, "package stile:capability@0.1.0; interface env { type env = u8; } interface types { type error = u8; }"}, "must be a resource"},
		"no error":                 {[]string{resource, "package stile:capability@0.1.0; interface env { resource env; } interface types { }"}, "does not declare `error`"},
		"a type called get":        {append(own, "package acme:crm; interface i { resource r; type get = u8; }"), "declares `get`"},
		"put without get":          {append(own, "package acme:crm; interface i { resource r; put: func(); }"), "declares `put`"},
		"the contract needs it":    {[]string{"package acme:crm; interface i { resource r; }", "package stile:capability@0.1.0; interface env { use acme:crm/i.{r}; resource env; } interface types { type error = u8; }"}, "uses itself"},
		"an ordinary syntax error": {[]string{"package"}, "expected a name"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := abi.ParseCapability(test.texts...)
			if err == nil || !strings.Contains(err.Error(), test.message) {
				t.Errorf("error %v, want %q", err, test.message)
			}
		})
	}
}
