package toolchain

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"regexp"
	"testing"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/host"
	"github.com/stilehost/stile/internal/cache/cachetest"
	"github.com/stilehost/stile/wit"
)

// echo implements the resource `echo` of testdata/values/values.wit.
type echo struct{}

type (
	point struct {
		XPosition int32
		Y         int64
		Label     *string
		Tags      []string
	}
	pair struct {
		First  uint8
		Second float64
	}
	shape struct {
		Case    int
		Dot     *point
		Number  *uint64
		Float   *float32
		Double  *float64
		Pair    *pair
		Names   *[]string
		FarAway **uint8
	}
	rights struct{ Read, WriteAll, Run bool }
	many   struct {
		A0, A1, A2, A3, A4, A5, A6, A7, A8, A9, A10, A11, A12, A13, A14, A15           bool
		A16, A17, A18, A19, A20, A21, A22, A23, A24, A25, A26, A27, A28, A29, A30, A31 bool
	}
	wide struct {
		A, B, C, D, E, F, G, H, I, J, K, L, M, N, O uint64
		P                                           string
	}
	choice struct {
		Case int
		Ok   *uint8
		Err  *string
	}
	triple struct {
		Number uint8
		Text   string
		Truth  bool
	}
	mixed struct {
		A uint8
		B string
		C float64
		D shape
		E []byte
	}
	token struct{ number uint32 }
)

func (echo) Interface() string { return "test:values/values@1.0.0" }

func (echo) Bool(_ context.Context, v bool) bool               { return v }
func (echo) S8(_ context.Context, v int8) int8                 { return v }
func (echo) U8(_ context.Context, v uint8) uint8               { return v }
func (echo) S16(_ context.Context, v int16) int16              { return v }
func (echo) U16(_ context.Context, v uint16) uint16            { return v }
func (echo) S32(_ context.Context, v int32) int32              { return v }
func (echo) U32(_ context.Context, v uint32) uint32            { return v }
func (echo) S64(_ context.Context, v int64) int64              { return v }
func (echo) U64(_ context.Context, v uint64) uint64            { return v }
func (echo) F32(_ context.Context, v float32) float32          { return v }
func (echo) F64(_ context.Context, v float64) float64          { return v }
func (echo) Char(_ context.Context, v rune) rune               { return v }
func (echo) String(_ context.Context, v string) string         { return v }
func (echo) Bytes(_ context.Context, v []byte) []byte          { return v }
func (echo) Numbers(_ context.Context, v []int16) []int16      { return v }
func (echo) Nested(_ context.Context, v [][]string) [][]string { return v }
func (echo) Points(_ context.Context, v []point) []point       { return v }
func (echo) Shape(_ context.Context, v shape) shape            { return v }
func (echo) Shapes(_ context.Context, v []shape) []shape       { return v }
func (echo) Color(_ context.Context, v string) string          { return v }
func (echo) Rights(_ context.Context, v rights) rights         { return v }
func (echo) Many(_ context.Context, v many) many               { return v }
func (echo) Maybe(_ context.Context, v **uint8) **uint8        { return v }
func (echo) Either(_ context.Context, v []choice) []choice     { return v }
func (echo) Tuple(_ context.Context, v triple) triple          { return v }
func (echo) Spilled(_ context.Context, v wide) wide            { return v }
func (echo) Fail(_ context.Context, v error) error             { return v }
func (echo) Refuse(_ context.Context, v string) (uint8, error) { return 0, errors.New(v) }
func (echo) Nothing(context.Context)                           {}
func (echo) Make(_ context.Context, number uint32) *token      { return &token{number} }
func (echo) Read(_ context.Context, t *token) uint32           { return t.number }
func (echo) Mixed(_ context.Context, a uint8, b string, c float64, d shape, e []byte) mixed {
	return mixed{a, b, c, d, e}
}

func (echo) Take(_ context.Context, tokens []*token) (sum uint32) {
	for _, t := range tokens {
		sum += t.number
	}
	return sum
}

func (t *token) Number(context.Context) uint32 { return t.number }

// Values of every type reach the host and return, in a component that imports the engine and in one that contains it.
func TestValuesCrossBothWays(t *testing.T) {
	text, err := os.ReadFile("testdata/values/values.wit")
	if err != nil {
		t.Fatal(err)
	}
	code, err := os.ReadFile("testdata/values/values.js")
	if err != nil {
		t.Fatal(err)
	}
	cacheDir, keyDir := cachetest.Dirs(t)
	h, err := host.New(t.Context(), host.Options{WIT: []string{string(text)}, CacheDir: cacheDir, KeyDir: keyDir})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := h.Close(); err != nil {
			t.Error(err)
		}
	})
	known := h.WIT()
	l, err := newLinkage(&abi.World{Name: "test", Imports: []*abi.Interface{
		known.Interface("stile:capability/env@0.1.0"), known.Interface("test:values/values@1.0.0"),
	}, Exports: []*abi.Interface{known.Interface(abi.ExtensionTools)}})
	if err != nil {
		t.Fatal(err)
	}
	m := testImager(t, imageLimits{})
	img, _, err := m.extension(t.Context(), testBase(t, m), nil, testDescriptor(t, l), code, "extension.js", false)
	if err != nil {
		t.Fatal(err)
	}
	whole, err := m.whole(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	engine, err := h.AddModule(t.Context(), whole.shared)
	if err != nil {
		t.Fatal(err)
	}
	for name, a := range map[string]*assembly{
		"shared engine": {linkage: l, image: img, shape: m.shape, engine: engine},
		"standalone":    {linkage: l, image: img, shape: m.shape, inline: whole.module},
	} {
		t.Run(name, func(t *testing.T) {
			a.custom = []customContent{{"stile:meta", []byte(`{"version":1}`)}}
			wasm, err := a.assemble()
			if err != nil {
				t.Fatal(err)
			}
			c, err := h.Load(t.Context(), wasm)
			if err != nil {
				t.Fatal(err)
			}
			defer func() {
				if err := c.Close(); err != nil {
					t.Error(err)
				}
			}()
			if got := string(c.Section("stile:meta")); got != `{"version":1}` {
				t.Errorf("custom section %q", got)
			}
			out, err := c.Call(t.Context(), "run", []byte("{}"), host.Env{"echo": echo{}})
			if err != nil {
				t.Fatal(err)
			}
			var problems []string
			if err := json.Unmarshal(out, &problems); err != nil {
				t.Fatal(err)
			}
			for _, p := range problems {
				t.Error(p)
			}
		})
	}
}

func TestLinkageRefuses(t *testing.T) {
	for _, test := range []struct{ name, text string }{
		{"a free function", `package a:b; world w { import f: func(); }`},
		{"an exported free function", `package a:b; world w { export f: func(); }`},
		{"an exported resource", `package a:b; interface i { resource r { } } world w { export i; }`},
		{"one interface on both sides", `package a:b; interface i { f: func(); } world w { import i; export i; }`},
	} {
		t.Run(test.name, func(t *testing.T) {
			known, err := abi.Parse(test.text)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := newLinkage(known.World("a:b/w")); err == nil {
				t.Error("no error")
			}
		})
	}
}

// An interface is imported after the interfaces whose types it uses, with only the types in use.
func TestLinkageOrder(t *testing.T) {
	known, err := abi.Parse(wit.Capability(), wit.Extension())
	if err != nil {
		t.Fatal(err)
	}
	kv := *known.Interface("stile:capability/kv@0.1.0")
	kv.Funcs = kv.Funcs[:1]
	l, err := newLinkage(&abi.World{Imports: []*abi.Interface{&kv}, Exports: []*abi.Interface{known.Interface(abi.ExtensionTools)}})
	if err != nil {
		t.Fatal(err)
	}
	got := map[string][]string{}
	var order []string
	for _, i := range l.imports {
		order = append(order, i.Name)
		for _, d := range l.declared[i.Name] {
			got[i.Name] = append(got[i.Name], d.name())
		}
	}
	want := `["stile:capability/types@0.1.0","stile:capability/kv@0.1.0","stile:capability/env@0.1.0"]
{"stile:capability/env@0.1.0":["env"],"stile:capability/kv@0.1.0":["bucket"],"stile:capability/types@0.1.0":["denial","error"]}`
	orderText, _ := json.Marshal(order)
	gotText, _ := json.Marshal(got)
	if string(orderText)+"\n"+string(gotText) != want {
		t.Errorf("%s\n%s", orderText, gotText)
	}
}

// TestNothingIsWatched checks that the host adds no code to the modules of an image. It adds code for instructions that grow memory or
// work on ranges of it, separately in each component.
func TestNothingIsWatched(t *testing.T) {
	m := testImager(t, imageLimits{})
	base := testBase(t, m)
	l := testLinkage(t, "env", "kv", "http", "workspace")
	text := (&assembly{linkage: l, image: &base.image, shape: m.shape, engine: "engine-x0"}).text()
	found := regexp.MustCompile(`(memory|table|elem|data)\.(grow|fill|copy|init|drop)`).FindAllString(text, -1)
	if len(found) != 1 || found[0] != "memory.grow" { // that of stile:extension/memory
		t.Errorf("the text has %s", found)
	}
}

// TestRealloc grows and shrinks a block, as the engine's component model may do while it converts a text.
func TestRealloc(t *testing.T) {
	m := testImager(t, imageLimits{})
	base := testBase(t, m)
	g, err := m.newGuest(t.Context(), base.memory, m.limits)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(g.close)
	g.bind(base.bindings, base.roots)
	if g.err != nil {
		t.Fatal(g.err)
	}
	realloc := g.linker.Get(g.store, "env", "realloc").Func()
	block := func(old, size, n int32) int32 {
		p, err := realloc.Call(g.store, old, size, int32(1), n)
		if err != nil {
			t.Fatal(err)
		}
		return p.(int32)
	}
	p := block(0, 0, 11)
	g.write(uint32(p), []byte("hello world"))
	longer := block(p, 11, 400)
	if got := string(g.memory.UnsafeData(g.store)[longer:][:11]); got != "hello world" {
		t.Errorf("a longer block has %q", got)
	}
	if got := string(g.memory.UnsafeData(g.store)[block(longer, 400, 5):][:5]); got != "hello" {
		t.Errorf("a shorter block has %q", got)
	}
	if p := block(0, 0, 0); p != 1 {
		t.Errorf("an empty block is at %d, want its alignment", p)
	}
}

func BenchmarkAssemble(b *testing.B) {
	m := testImager(b, imageLimits{})
	base := testBase(b, m)
	l := testLinkage(b, "env", "kv")
	img, _, err := m.extension(b.Context(), base, nil, testDescriptor(b, l), oneTool(""), "extension.js", false)
	if err != nil {
		b.Fatal(err)
	}
	a := &assembly{linkage: l, image: img, shape: m.shape, engine: "engine-x0"}
	for b.Loop() {
		if _, err := a.assemble(); err != nil {
			b.Fatal(err)
		}
	}
}
