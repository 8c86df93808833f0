package host

import (
	"slices"
	"strings"
	"testing"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/wit"
)

// TestEveryFunctionPassesTheGate holds the gate's table against the WIT: each function of stile:capability has an entry,
// each entry a function, and none can be called without a handle.
func TestEveryFunctionPassesTheGate(t *testing.T) {
	known, err := abi.ParseCapability(wit.Capability(), wit.Extension())
	if err != nil {
		t.Fatal(err)
	}
	h := &Host{known: known}
	missing := map[string]bool{}
	for name := range waits {
		missing[name] = true
	}
	for _, i := range known.Interfaces() {
		name, ok := strings.CutPrefix(i.Name, capabilityPackage)
		if !ok {
			continue
		}
		name, _, _ = strings.Cut(name, "@")
		for _, f := range i.Funcs {
			entry := name + "#" + f.Name
			delete(missing, entry)
			if _, ok := waits[entry]; !ok {
				t.Errorf("%s has no entry in the gate's table", entry)
			}
			if authority(f) == "" {
				t.Errorf("%s takes no handle", entry)
			}
			if op, err := h.operation(f); err != nil || op.execute == nil {
				t.Errorf("%s cannot be executed: %v", entry, err)
			}
		}
	}
	for name := range missing {
		t.Errorf("%s is in the gate's table and not in the WIT", name)
	}
	for _, name := range []string{
		"poll#poll", "poll#[method]pollable.block", "http#[method]exchange.head", "http#[method]exchange.text",
		"http#[method]exchange.blob", "tools#[method]pending.take", "kv#[method]bucket.set", "workspace#[method]directory.write",
	} {
		if !waits[name] {
			t.Errorf("%s must give up its turn", name)
		}
	}
	// What the gate has no entry for cannot be linked.
	unlisted := *funcNamed(known.Interface("stile:capability/kv@0.1.0"), "get")
	unlisted.Name = "steal"
	if _, err := h.operation(&unlisted); err == nil {
		t.Error("a function without an entry was linked")
	}
}

// TestUngrantedCostsNothing holds the gate to no allocation for an operation whose handles are of no grant.
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
	op.waits, op.polls = false, true // no store here
	args := []abi.Value{rep, "key", "value"}
	if n := testing.AllocsPerRun(100, func() {
		if _, err := c.gate(op, args); err != nil {
			t.Fatal(err)
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// TestDiffer finds every way in which two function types can differ.
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
}
