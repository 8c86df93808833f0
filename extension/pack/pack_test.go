package pack_test

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stilehost/stile/extension/pack"
)

// sample returns a pack with every part.
func sample() *pack.Pack {
	return &pack.Pack{
		Manifest:    []byte(`{"name":"notes","version":"1.0.0"}`),
		Files:       map[string][]byte{"tool.ts": []byte("export default 1;\n"), "lib/größe.ts": {}, strings.Repeat("long/", 30) + "a.ts": []byte("//")},
		Entry:       "tool.ts",
		Component:   []byte("\x00asm component"),
		Engine:      "engine-x0123",
		Lock:        []byte(`{"lockfileVersion":3}`),
		SBOM:        []byte(`{"bomFormat":"CycloneDX"}`),
		Definitions: []byte(`[]`),
	}
}

// TestDigest makes the description by hand, as the documentation has it.
func TestDigest(t *testing.T) {
	hash := func(s string) string { return fmt.Sprintf("sha256:%x", sha256.Sum256([]byte(s))) }
	p := &pack.Pack{Manifest: []byte("{}"), Files: map[string][]byte{"b.ts": []byte("b"), "a<.ts": nil}, Entry: "b.ts", Component: []byte("c")}
	want := hash(`{"type":"application/vnd.stile.extension.v1","entry":"b.ts","parts":{"component":"` + hash("c") + `","manifest":"` + hash("{}") +
		`"},"files":{"a\u003c.ts":"` + hash("") + `","b.ts":"` + hash("b") + `"}}`)
	if got := digest(t, p); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// A pack without source has the component alone, and a pack with source never turns into one.
func TestWithoutSource(t *testing.T) {
	hash := func(s string) string { return fmt.Sprintf("sha256:%x", sha256.Sum256([]byte(s))) }
	p := &pack.Pack{Manifest: []byte("{}"), Component: []byte("c")}
	if got, want := digest(t, p), hash(`{"type":"application/vnd.stile.extension.v1","entry":"","parts":{"component":"`+hash("c")+`","manifest":"`+hash("{}")+`"},"files":{}}`); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	var file bytes.Buffer
	if err := pack.Write(&file, p); err != nil {
		t.Fatal(err)
	}
	read, _, err := pack.Read(bytes.NewReader(file.Bytes()), pack.Limits{})
	if err != nil || read.HasSource() || !reflect.DeepEqual(read, p) {
		t.Errorf("got %+v, %v", read, err)
	}
	for name, change := range map[string]func(*pack.Pack){
		"an entry alone":   func(p *pack.Pack) { p.Entry = "tool.ts" },
		"files alone":      func(p *pack.Pack) { p.Files = map[string][]byte{"tool.ts": nil} },
		"no component":     func(p *pack.Pack) { p.Component = nil },
		"no source at all": func(p *pack.Pack) { p.Component, p.Manifest = nil, nil },
	} {
		q := *p
		if change(&q); pack.Write(&bytes.Buffer{}, &q) == nil {
			t.Errorf("%s: it was written", name)
		}
	}
	// Without its layer of source, a pack with source is broken, and not another pack.
	a, err := sample().Artifact()
	if err != nil {
		t.Fatal(err)
	}
	if b, err := p.Artifact(); err != nil || len(b.Blobs) != 4 || len(a.Blobs) != 8 {
		t.Errorf("got %d blobs, %d, %v", len(b.Blobs), len(a.Blobs), err)
	}
}

func TestDigestCoversEachPart(t *testing.T) {
	seen := map[string]string{digest(t, sample()): "nothing changed"}
	for name, change := range map[string]func(*pack.Pack){
		"manifest":       func(p *pack.Pack) { p.Manifest = []byte("{}") },
		"component":      func(p *pack.Pack) { p.Component = []byte("{}") },
		"engine":         func(p *pack.Pack) { p.Engine = "other" },
		"no engine":      func(p *pack.Pack) { p.Engine = "" },
		"lock":           func(p *pack.Pack) { p.Lock = []byte("{}") },
		"no lock":        func(p *pack.Pack) { p.Lock = nil },
		"sbom":           func(p *pack.Pack) { p.SBOM = []byte("{}") },
		"no sbom":        func(p *pack.Pack) { p.SBOM = nil },
		"definitions":    func(p *pack.Pack) { p.Definitions = []byte("{}") },
		"no definitions": func(p *pack.Pack) { p.Definitions = nil },
		"lock as sbom":   func(p *pack.Pack) { p.Lock, p.SBOM = p.SBOM, p.Lock },
		"entry":          func(p *pack.Pack) { p.Entry = "lib/größe.ts" },
		"content":        func(p *pack.Pack) { p.Files["tool.ts"] = []byte("x") },
		"file more":      func(p *pack.Pack) { p.Files["b.ts"] = nil },
		"file fewer":     func(p *pack.Pack) { delete(p.Files, "lib/größe.ts") },
		"file moved":     func(p *pack.Pack) { delete(p.Files, "lib/größe.ts"); p.Files["lib/grosse.ts"] = nil },
	} {
		p := sample()
		change(p)
		d := digest(t, p)
		if other, ok := seen[d]; ok {
			t.Errorf("%s: the digest is that of: %s", name, other)
		}
		seen[d] = name
	}
}

func TestWhatNoPackMayHave(t *testing.T) {
	file := func(name string) func(*pack.Pack) { return func(p *pack.Pack) { p.Files[name] = nil } }
	for _, c := range []struct {
		name   string
		change func(*pack.Pack)
		part   string
		want   error
	}{
		{"no manifest", func(p *pack.Pack) { p.Manifest = nil }, "manifest", pack.ErrMissing},
		{"no component", func(p *pack.Pack) { p.Component = []byte{} }, "component", pack.ErrMissing},
		{"no files", func(p *pack.Pack) { p.Files = nil }, "entry", pack.ErrMissing},
		{"entry elsewhere", func(p *pack.Pack) { p.Entry = "../tool.ts" }, "entry", pack.ErrMissing},
		{"engine with an escape", func(p *pack.Pack) { p.Engine = "e\x1b[2J" }, "engine", pack.ErrName},
		{"engine too long", func(p *pack.Pack) { p.Engine = strings.Repeat("e", 257) }, "engine", pack.ErrName},
		{"up", file("../a"), `file "../a"`, pack.ErrName},
		{"up inside", file("a/../b"), `file "a/../b"`, pack.ErrName},
		{"absolute", file("/a"), `file "/a"`, pack.ErrName},
		{"empty", file(""), `file ""`, pack.ErrName},
		{"dot", file("."), `file "."`, pack.ErrName},
		{"folder", file("a/"), `file "a/"`, pack.ErrName},
		{"backslash", file(`..\a`), `file "..\\a"`, pack.ErrName},
		{"drive", file("c:a"), `file "c:a"`, pack.ErrName},
		{"NUL", file("a\x00b"), `file "a\x00b"`, pack.ErrName},
		{"bidi", file("a\u202ets.b"), `file "a\u202ets.b"`, pack.ErrName},
		{"not UTF-8", file("a\xff"), `file "a\xff"`, pack.ErrName},
		{"too long", file(strings.Repeat("a", 513)), `file "` + strings.Repeat("a", 100) + `"`, pack.ErrName},
		{"file and folder", file("tool.ts/a"), `file "tool.ts"`, pack.ErrName},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := sample()
			c.change(p)
			_, err := p.Digest()
			refused(t, err, c.part, c.want)
			var b bytes.Buffer
			refused(t, pack.Write(&b, p), c.part, c.want)
			if b.Len() > 0 {
				t.Errorf("%d bytes were written", b.Len())
			}
		})
	}
}

func digest(t *testing.T, p *pack.Pack) string {
	t.Helper()
	d, err := p.Digest()
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// refused checks the error, and that nothing in it could mislead a terminal.
func refused(t *testing.T, err error, part string, want error) {
	t.Helper()
	p, ok := errors.AsType[*pack.PartError](err)
	if !ok || p.Part != part || !errors.Is(err, want) {
		t.Errorf("got %v, want %s: %v", err, part, want)
	}
	if err != nil && (strings.ContainsAny(err.Error(), "\x00\x1b\u202e") || !utf8.ValidString(err.Error())) {
		t.Errorf("%q", err)
	}
}

func equal(a, b *pack.Pack) bool {
	same := func(a, b []byte) bool { return bytes.Equal(a, b) }
	return same(a.Manifest, b.Manifest) && same(a.Component, b.Component) && same(a.Lock, b.Lock) && same(a.SBOM, b.SBOM) &&
		same(a.Definitions, b.Definitions) && a.Entry == b.Entry && a.Engine == b.Engine && maps.EqualFunc(a.Files, b.Files, same)
}

// TestEqual keeps equal from overlooking a field.
func TestEqual(t *testing.T) {
	if n := reflect.TypeFor[pack.Pack]().NumField(); n != 8 {
		t.Errorf("a pack has %d fields", n)
	}
}
