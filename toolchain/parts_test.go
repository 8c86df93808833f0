package toolchain

import (
	"io/fs"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stilehost/stile"
	"github.com/stilehost/stile/host"
	"github.com/stilehost/stile/internal/cache/cachetest"
)

// Every file of parts is a part, and names of modules exist.
func TestParts(t *testing.T) {
	files, err := fs.Glob(stile.TypeScript(), "toolchain/prelude/parts/*.ts")
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range parts {
		name := "toolchain/prelude/parts/" + p.name + ".ts"
		if !slices.Contains(files, name) {
			t.Errorf("the part %s has no file %s", p.name, name)
		}
		if len(p.words) == 0 {
			t.Errorf("nothing leads to the part %s", p.name)
		}
		text, err := partSource(testEngine(t).modules, p.name)
		if err != nil {
			t.Error(err)
		}
		for _, s := range sharedModules {
			if !p.net && s.net && strings.Contains(text, "shared."+s.module+"_") {
				t.Errorf("the part %s imports %s, which only base images with the web APIs of the network have", p.name, s.module)
			}
		}
	}
}

func TestPartsOf(t *testing.T) {
	for text, want := range map[string]Parts{
		"":                              false,
		"return 1":                      false,
		"listFiles(); MyFile; File_":    false,
		"return new File([], 'a')":      true,
		"profile; aFile(File)":          true,
		"'File'":                        true,
		strings.Repeat("xFile ", 1_000): false,
	} {
		if got := PartsOf(text); got != want {
			t.Errorf("%.40q: got %v, want %v", text, got, want)
		}
	}
}

// Labels of encodings lead to these, for the stream as for the decoder.
func TestPartsOfEncodings(t *testing.T) {
	for text, want := range map[string]bool{
		"new TextDecoderStream('shift_jis')": true, "new TextDecoder('euc-kr')": true, "body.pipeThrough(new TextDecoderStream(label))": true, "new TextDecoder()": false, "new TextDecoderStream('utf-8')": false,
	} {
		found := partsFor(func(word string) bool { return hasWord(text, word) })
		if got := slices.ContainsFunc(found, func(p part) bool { return p.name == "multibyte" }); got != want {
			t.Errorf("%s: got %t, want %t", text, got, want)
		}
	}
}

// Code that names none of a part's words has the image that it has without parts, built or evaluated; other code has the part.
func TestPartsAreOnDemand(t *testing.T) {
	cacheDir, keyDir := cachetest.Dirs(t)
	h, err := host.New(t.Context(), host.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = h.Close() })
	tools, err := New(t.Context(), h, Options{CacheDir: cacheDir, KeyDir: keyDir})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tools.Close() })
	source := func(body string) Source {
		return Source{Entry: "a.ts", FS: fstest.MapFS{"a.ts": {Data: []byte(`import { extension } from "stile";
export default extension({ tools: { t: { description: "test", run: async () => {` + body + `} } } });`)}}}
	}
	const without, with = `return typeof (globalThis as any)["F,ile".replace(",", "")]`, `return typeof File`
	for body, want := range map[string]string{without: `"undefined"`, with: `"function"`} {
		c, err := tools.Build(t.Context(), source(body))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		if out, err := c.Call(t.Context(), "t", nil, nil); err != nil || string(out) != want {
			t.Errorf("%s, built: got %s, %v", body, out, err)
		}
		e, err := tools.Evaluator(t.Context(), map[string]string{}, PartsOf(body))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = e.Close() })
		if r, err := e.Do(t.Context(), Body(Program{Text: body}), host.Request{Tool: BodyTool}); err != nil || string(r.Output) != want {
			t.Errorf("%s, evaluated: got %s, %v", body, r.Output, err)
		}
	}
	plain, err := tools.Assemble(t.Context(), source(without), false)
	if err != nil {
		t.Fatal(err)
	}
	defer func(all []part) { parts = all }(parts)
	parts = nil
	if again, err := tools.Assemble(t.Context(), source(without), false); err != nil || string(again) != string(plain) {
		t.Errorf("an image is another one because of parts that it does not have: %v", err)
	}
}
