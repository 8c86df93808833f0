package suite

import (
	"archive/zip"
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestCrate(t *testing.T) {
	text, err := fs.ReadFile(Crate(t, "url"), "Cargo.toml")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(text), `name = "url"`) {
		t.Errorf("the manifest of the crate is that of another one:\n%s", text)
	}
}

func TestOtherDigest(t *testing.T) {
	Crate(t, "url")
	file := "url-" + crates["url"].version + ".crate"
	if _, err := cached(file, strings.Repeat("0", 64)); err == nil || !strings.Contains(err.Error(), "want 000") {
		t.Errorf("a crate of another digest: %v", err)
	}
}

func TestModule(t *testing.T) {
	const path = "github.com/kaptinlin/jsonschema"
	text, err := fs.ReadFile(Module(t, path), "go.mod")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(string(text), "module "+path) {
		t.Errorf("the module is another one:\n%s", text)
	}
}

func TestModuleOfOtherDigest(t *testing.T) {
	file := filepath.Join(t.TempDir(), "module.zip")
	var packed bytes.Buffer
	if err := zip.NewWriter(&packed).Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, packed.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := openModule(file, "h1:other"); err == nil || !strings.Contains(err.Error(), "want h1:other") {
		t.Errorf("a module of another digest: %v", err)
	}
}

func TestTokens(t *testing.T) {
	if counts := Tokens(t, "hello world", strings.Repeat("hello ", 100)); len(counts) != 2 || counts[0] != 2 || counts[1] < 100 || counts[1] > 102 {
		t.Errorf("got %d", counts)
	}
}
