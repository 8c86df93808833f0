package jsonform

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
)

// TestIndent compares with json.Indent whatever nests no deeper than lines are broken.
func TestIndent(t *testing.T) {
	for _, text := range []string{
		`null`, `"a"`, ` 1e5 `, `{}`, `[]`, `[{},[],[[]]]`, `{"a":{},"b":[1,-2.5,true]}`, "{ \"a\" :\n [ 1 , 2 ] ,\t\"b\": null }",
		`{"a\\":"\"{[,:]}\"","":" x  y "}`, `["\\","\\\"",{"a":[{"b":[]}]}]`, "[ ]", "{\n}", `["<&>` + "\u2028" + `"]`,
		strings.Repeat(`{"a":[`, maxLevels/2) + `1,"x"` + strings.Repeat(`]}`, maxLevels/2),
	} {
		for _, indent := range []string{"", " ", "  ", "\t"} {
			var want bytes.Buffer
			if err := json.Indent(&want, []byte(strings.TrimSpace(text)), "", indent); err != nil {
				t.Fatal(err)
			}
			if got := string(Indent([]byte(text), indent)); got != want.String() {
				t.Errorf("%s with %q:\n%s\nwant\n%s", text, indent, got, want.String())
			}
		}
	}
}

// TestIndentIsBounded indents what nests deeper than a person reads: each value takes a bounded number of bytes, however deep it is.
func TestIndentIsBounded(t *testing.T) {
	for name, text := range map[string]string{
		"lists":   strings.Repeat("[", 5000) + strings.Repeat("1,", 5000) + "1" + strings.Repeat("]", 5000),
		"objects": strings.Repeat(`{"a":`, 5000) + "[" + strings.Repeat("{},", 5000) + "{}]" + strings.Repeat("}", 5000),
		"flat":    "[" + strings.Repeat("1,", 5000) + "1]",
		"edge":    strings.Repeat("[", maxLevels) + strings.Repeat("1,", 5000) + "1" + strings.Repeat("]", maxLevels),
	} {
		for _, v := range []any{json.RawMessage(text), map[string]any{"output": json.RawMessage(text)}} {
			got, err := Encode(v, "  ")
			if most := (2*maxLevels + 2) * len(text); err != nil || len(got) > most {
				t.Errorf("%s: %d bytes, more than %d, of %d; %v", name, len(got), most, len(text), err)
			}
			var back, want bytes.Buffer
			plain, err := Encode(v, "")
			if err != nil || json.Compact(&back, got) != nil || json.Compact(&want, plain) != nil || !bytes.Equal(back.Bytes(), want.Bytes()) {
				t.Errorf("%s: it is another value; %v", name, err)
			}
		}
	}
}

func FuzzIndent(f *testing.F) {
	f.Add([]byte(`{"a":[1,{"b":"\\\""}],"c":{}}`))
	f.Add([]byte(" [ ] "))
	f.Fuzz(func(t *testing.T, text []byte) {
		if !json.Valid(text) {
			return
		}
		var before, after bytes.Buffer
		indented := Indent(text, " ")
		if json.Compact(&before, text) != nil || json.Compact(&after, indented) != nil || !bytes.Equal(before.Bytes(), after.Bytes()) {
			t.Errorf("%q became %q", text, indented)
		}
	})
}
