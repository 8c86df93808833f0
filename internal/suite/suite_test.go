package suite

import (
	"io/fs"
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
