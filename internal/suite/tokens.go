package suite

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// tokenizer are the files of gpt-tokenizer that the encoding o200k_base needs.
var tokenizer = func() (files []string) {
	for name := range strings.FieldsSeq(`BytePairEncodingCore GptEncoding constants mapping modelParams modelTypes models models.gen modelsChatEnabled.gen modelsMap
		functionCalling specialTokens utfUtil util _virtual/_rolldown/runtime bpeRanks/o200k_base encoding/o200k_base encodingParams/constants encodingParams/o200k_base
		encodingParams/cl100k_base encodingParams/p50k_base encodingParams/p50k_edit encodingParams/r50k_base encodingParams/o200k_harmony`) {
		files = append(files, "cjs/"+name+".js")
	}
	return append(files, "cjs/package.json")
}()

const countTokens = `const { encode } = require("./cjs/encoding/o200k_base.js");
let text = "";
process.stdin.on("data", (d) => (text += d)).on("end", () => console.log(JSON.stringify(JSON.parse(text).map((t) => encode(t).length))));`

// Tokens counts the tokens of texts in the encoding o200k_base, with Node.js.
func Tokens(t testing.TB, texts ...string) (counts []int) {
	t.Helper()
	folder := t.TempDir()
	for name, data := range Package(t, "gpt-tokenizer", tokenizer...) {
		file := filepath.Join(folder, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	input, err := json.Marshal(texts)
	if err != nil {
		t.Fatal(err)
	}
	node := exec.CommandContext(t.Context(), "node", "-e", countTokens)
	node.Dir, node.Stdin = folder, bytes.NewReader(input)
	out, err := node.Output()
	if err != nil {
		t.Fatalf("count tokens with node: %v", err)
	}
	if err := json.Unmarshal(out, &counts); err != nil {
		t.Fatal(err)
	}
	return counts
}
