package guests

import (
	"os"
	"path/filepath"
	"testing"
)

// The SDKs that stile new writes are those of this folder, whole: the copy of the Go module is the newest, and no file of Rust's is left out.
func TestFiles(t *testing.T) {
	for _, language := range []string{"c", "go", "rust", "typescript"} {
		sdk, err := Files(language)
		if err != nil {
			t.Fatal(err)
		}
		for name, have := range sdk {
			want, err := os.ReadFile(filepath.Join(language, name))
			if err != nil {
				t.Fatal(err)
			}
			if have != string(want) {
				t.Errorf("%s/%s is not what it should be: go generate ./guest-sdk/generate writes it", language, name)
			}
		}
		sources := 0
		for _, pattern := range map[string][]string{
			"c": {"*.[ch]"}, "go": {"*.go", "go.mod"}, "typescript": {"*.d.ts"},
			"rust": {"Cargo.toml", "README.md", "src/*", "macros/Cargo.toml", "macros/src/*"},
		}[language] {
			names, err := filepath.Glob(filepath.Join(language, pattern))
			if err != nil {
				t.Fatal(err)
			}
			sources += len(names)
		}
		if len(sdk) != sources {
			t.Errorf("the SDK of %s has %d files of %d", language, len(sdk), sources)
		}
	}
	if _, err := Files("cobol"); err == nil {
		t.Error("there is an SDK for cobol")
	}
}
