package host

import (
	"slices"
	"strings"
	"testing"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/wit"
)

// TestEveryFunctionPassesTheGate checks that each function of stile:capability can be executed, and that none can be called without a handle.
func TestEveryFunctionPassesTheGate(t *testing.T) {
	known, err := abi.ParseCapability(wit.Capability(), wit.Extension())
	if err != nil {
		t.Fatal(err)
	}
	h := &Host{known: known}
	for _, i := range known.Interfaces() {
		if !strings.HasPrefix(i.Name, abi.CapabilityPackage) {
			continue
		}
		for _, f := range i.Funcs {
			if authority(f) == "" {
				t.Errorf("%s#%s takes no handle", i.Name, f.Name)
			}
			if op, err := h.operation(f); err != nil || op.execute == nil {
				t.Errorf("%s#%s cannot be executed: %v", i.Name, f.Name, err)
			}
		}
	}
	// A function that the gate cannot execute cannot be linked.
	for name, iface := range map[string]string{"steal": "kv", "[static]bucket.steal": "kv", "[method]env.steal": "env", "steal-all": "poll"} {
		unknown := *funcNamed(known.Interface("stile:capability/kv@0.1.0"), "get")
		unknown.Name, unknown.Interface = name, known.Interface(abi.CapabilityPackage+iface+abi.ContractVersion)
		if _, err := h.operation(&unknown); err == nil {
			t.Errorf("the function %s of %s was linked", name, iface)
		}
	}
}

// TestUngrantedCostsNothing checks that the gate allocates nothing for an operation whose handles belong to no grant.
func TestUngrantedCostsNothing(t *testing.T) {
	known, err := abi.ParseCapability(wit.Capability(), wit.Extension())
	if err != nil {
		t.Fatal(err)
	}
	set := known.Interface("stile:capability/kv@0.1.0").Funcs
	f := set[slices.IndexFunc(set, func(f *abi.Func) bool { return f.Name == "[method]bucket.set" })]
	op, err := (&Host{known: known}).operation(f)
	if err != nil {
		t.Fatal(err)
	}
	c := &call{host: &Host{}, ctx: t.Context(), handles: handles{open: map[abi.Rep]*handle{}, limit: 1}}
	rep, err := c.handles.add(&handle{resource: f.Resource})
	if err != nil {
		t.Fatal(err)
	}
	op.execute = func(*call, []abi.Value) (abi.Value, error) { return nil, nil }
	op.polls = true // there is no store here
	args := []abi.Value{rep, "key", "value"}
	if n := testing.AllocsPerRun(100, func() {
		if _, err := c.gate(op, args); err != nil {
			t.Fatal(err)
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// TestDiffer detects every way in which two function types can differ.
func TestDiffer(t *testing.T) {
	parse := func(signature string) *abi.Func {
		r, err := abi.Parse("package a:b@1.0.0;\ninterface i { resource r {} resource s {} record p { a: u8, b: string } record q { a: u8, c: string } variant v { x, y(u8) } variant w { x, y(u16) } flags f { a, b } flags g { b, a } enum e { a, b } enum d { a, c }\n x: " + signature + "; }")
		if err != nil {
			t.Fatal(err)
		}
		return funcNamed(r.Interface("a:b/i@1.0.0"), "x")
	}
	same := []string{
		"func()", "func(a: u8)", "func(a: string) -> string", "func(a: p) -> v", "func(a: f, b: e)", "func(a: borrow<r>) -> r",
		"func() -> result<u8, string>", "func() -> result<_, string>", "func() -> option<list<tuple<u8, char>>>",
	}
	other := []string{
		"func() -> u8", "func(b: u8)", "func(a: string) -> list<u8>", "func(a: q) -> v", "func(a: p) -> w", "func(a: g, b: e)",
		"func(a: f, b: d)", "func(a: borrow<s>) -> r", "func(a: borrow<r>) -> s", "func(a: r) -> r", "func() -> result<u8>",
		"func() -> result<u8, u8>", "func() -> option<list<tuple<u8, u8>>>", "func() -> option<list<tuple<u8>>>", "func(a: u8, b: u8)",
	}
	for _, a := range same {
		for _, b := range slices.Concat(same, other) {
			if d := differ(parse(a), parse(b)); (d == "") != (a == b) {
				t.Errorf("%s and %s: %q", a, b, d)
			}
		}
	}
	now, before := parse("func(length: u32)"), parse("func(len: u32)")
	if d := differ(now, before); d != "" {
		t.Errorf("a component of before is refused: %s", d)
	}
	if differ(before, now) == "" {
		t.Error("an embedder's parameter can have another name")
	}
}
