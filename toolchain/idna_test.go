package toolchain

import (
	"io/fs"
	"strings"
	"testing"
)

// Tables in another format than the pinned package's are refused, not misread.
func TestRepackRefuses(t *testing.T) {
	modules := testEngine(t).modules
	for name, pack := range repack {
		text, err := fs.ReadFile(modules, name)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := pack(text); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, c := range []struct{ name, text, want string }{
		{"index.js", "function lookUp(val) {\n}\n", "in an unknown way"},
		{"lib/regexes.js", "const a = /[b]/u;\nconst c = new RegExp(\"d\");\nmodule.exports = {\n  a,\n  c\n};\n", "unknown form"},
		{"lib/regexes.js", "", "unknown form"},
		{"lib/mappingTable.json", "{}", "cannot unmarshal"},
		{"lib/mappingTable.json", "[]", "ends before U+0000"},
		{"lib/mappingTable.json", "[[[0,1113000],2]]", "ends before U+10FBA9"},
		{"lib/mappingTable.json", "[[[0,9],2],[[11,1114111],2]]", "cannot be packed"},
		{"lib/mappingTable.json", "[[[0,1114111],8]]", "cannot be packed"},
		{"lib/mappingTable.json", `[[[0,1114111],1,"` + strings.Repeat("a", 256) + `"]]`, "cannot be packed"},
		{"lib/mappingTable.json", `[["0",2]]`, "a row is"},
		{"lib/mappingTable.json", `[[0]]`, "a row is"},
	} {
		if _, err := repack["node_modules/tr46/"+c.name]([]byte(c.text)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s of %.60q: %v, want %q", c.name, c.text, err, c.want)
		}
	}
}
