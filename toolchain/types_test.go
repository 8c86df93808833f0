package toolchain

import (
	"flag"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stilehost/stile"
	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/wit"
)

var update = flag.Bool("update", false, "write generated and golden files anew")

// golden compares text with a file, or writes the file.
func golden(t *testing.T, file, text string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if string(want) != text {
		t.Errorf("%s is not what is generated now; run go test -update and look at the difference", file)
	}
}

func parse(t *testing.T, texts ...string) *abi.Resolve {
	t.Helper()
	r, err := abi.Parse(texts...)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// The types of the capabilities in the guest SDK are those of the WIT.
func TestDeclarationsOfCapabilities(t *testing.T) {
	var b strings.Builder
	b.WriteString("// Generated from wit; do not edit.\n")
	for _, i := range parse(t, wit.Capability()).Interfaces() {
		text, _ := declare(i)
		b.WriteString("\n" + text)
	}
	golden(t, filepath.Join("..", "guest-sdk", "typescript", "capabilities.d.ts"), b.String())
}

// The guest SDK declares the object of every kind as in the kind's folder.
func TestDeclarationsOfBindings(t *testing.T) {
	const mark = "\n// Generated from capabilities/*/types.d.ts; do not edit below.\n"
	file := filepath.Join("..", "guest-sdk", "typescript", "index.d.ts")
	index, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	text, _, _ := strings.Cut(string(index), mark)
	text += mark
	all := sugars()
	for _, kind := range slices.Sorted(maps.Keys(all)) {
		types, err := stile.TypeScript().ReadFile("capabilities/" + kind + "/types.d.ts")
		if err != nil {
			t.Fatal(err)
		}
		text += "\n" + string(types)
		if !regexp.MustCompile(`(?m)^export (interface|type) ` + all[kind].Type + `\b`).Match(types) {
			t.Errorf("the types of %s do not declare %s, which its sugar.json names", kind, all[kind].Type)
		}
	}
	golden(t, file, text)
}

// Every WIT type, names that are invalid in TypeScript, and text that would end a comment.
const everything = `package acme:all-of-it@2.1.0;

interface the-lot {
  use stile:capability/types@0.1.0.{error, denial};
  use stile:capability/env@0.1.0.{env};
  use stile:capability/poll@0.1.0.{pollable};
  use stile:capability/blob@0.1.0.{blob};

  /// Ends here? */ no.
  /// Second line.
  record promise { default: bool, if-any: option<u8>, both: option<option<string>>, %list: list<list<u8>>, pair: tuple<s64, f32, char> }
  flags array { one, two-three }
  enum colour { red, blue-green }
  /// A choice.
  variant choice {
    /// Nothing to say.
    none,
    some(promise),
    other(result<u32, string>),
    last(result),
  }
  resource thing {
    /// Makes no sense.
    %new: func(delete: string, optional: option<u32>, %in: option<colour>) -> result<thing, error>;
    middle: func(a: option<u32>, b: denial) -> result<_, string>;
    merge: func(other: borrow<thing>, all: list<thing>) -> list<pollable>;
    ready-when: func() -> pollable;
    content: func() -> option<blob>;
    %flags: func() -> array;
    nothing: func();
  }
  get: func(env: borrow<env>, name: string) -> result<thing, error>;
  put: func(env: borrow<env>, name: string, thing: thing) -> result<_, error>;
}
`

func TestEnvTypes(t *testing.T) {
	of := map[string]string{
		"network": "stile:capability/http@0.1.0",
		"notes":   "stile:capability/workspace@0.1.0",
		"all":     "acme:all-of-it/the-lot@2.1.0",
		"my-log":  "stile:capability/console",
		"odd":     "who:knows/what@1.0.0",
		`q"uote`:  "stile:capability/kv@0.1.0",
	}
	golden(t, filepath.Join("testdata", "stile-env.d.ts"), EnvTypes(of, nil, []string{"readonly team: string;", "readonly limit?: number;"}, parse(t, wit.Capability(), everything)))
}

// TestParseSugar has files sugar.json that are missing or wrong. The error names the file and what it lacks.
func TestParseSugar(t *testing.T) {
	const name = "capabilities/counter/sugar.json"
	for text, want := range map[string]string{
		`{"type": "Counter", "words": {"a.b": ["c"]}}`: "",
		`{}`:                           `lacks "type"`,
		`{"type": 1}`:                  "cannot unmarshal number",
		`{"type": "Counter", "wrd":1}`: `unknown field "wrd"; its fields are type, words, net and passes`,
		`{"type": "Counter"`:           "unexpected EOF",
		`{"type": "Counter"} {}`:       "more than one value",
		"":                             "EOF",
	} {
		s, err := parseSugar(fstest.MapFS{name: {Data: []byte(text)}}, name)
		if (err == nil) != (want == "") || err != nil && (!strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), name)) {
			t.Errorf("%s: got %v, want %q", text, err, want)
		}
		if want == "" && s.Type != "Counter" {
			t.Errorf("got %+v", s)
		}
	}
	if _, err := parseSugar(fstest.MapFS{}, name); err == nil || !strings.Contains(err.Error(), name) {
		t.Errorf("got %v", err)
	}
}
