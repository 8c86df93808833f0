// Package docs tests what the documents say.
package docs

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	command  = regexp.MustCompile("`(go test [^`]*)`")
	word     = regexp.MustCompile(`'[^']*'|\S+`)
	subtests = regexp.MustCompile(`/\([^)]*\)`)
	function = regexp.MustCompile(`(?m)^func ((?:Test|Fuzz|Benchmark)\w+)\(`)
)

// A command that runs no test passes: so the tests that docs/verify.md and SECURITY.md name are there.
func TestNamedTestsExist(t *testing.T) {
	known := map[string][]string{} // the names of tests by folder, "./" first
	all := map[string]bool{}
	err := filepath.WalkDir("..", func(file string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() && (e.Name() == "node_modules" || strings.HasPrefix(e.Name(), ".") && file != "..") {
			return filepath.SkipDir
		}
		if !strings.HasSuffix(file, "_test.go") {
			return nil
		}
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		folder := "./" + strings.TrimPrefix(filepath.ToSlash(filepath.Dir(file)), "../")
		for _, found := range function.FindAllStringSubmatch(string(text), -1) {
			known[folder] = append(known[folder], found[1])
			all[found[1]] = true
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	read := func(file string) string {
		t.Helper()
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	found := 0
	for _, c := range command.FindAllStringSubmatch(read("verify.md"), -1) {
		var names []string
		words := word.FindAllString(c[1], -1)
		for i, w := range words {
			if prefix, tree := strings.CutSuffix(w, "/..."); strings.HasPrefix(w, "./") {
				for folder, tests := range known {
					if folder == prefix || tree && strings.HasPrefix(folder, prefix+"/") {
						names = append(names, tests...)
					}
				}
			}
			if i == 0 || words[i-1] != "-run" && words[i-1] != "-bench" && words[i-1] != "-fuzz" {
				continue
			}
			for alternative := range strings.SplitSeq(subtests.ReplaceAllString(strings.Trim(w, "'"), "/"), "|") {
				name, _, _ := strings.Cut(alternative, "/")
				if name == "^$" {
					continue
				}
				found++
				is, err := regexp.Compile(name)
				if err != nil {
					t.Errorf("%s: %v", c[1], err)
					continue
				}
				there := false
				for _, test := range names {
					there = there || is.MatchString(test)
				}
				if !there {
					t.Errorf("%s: there is no test %s", c[1], name)
				}
			}
		}
	}
	if found < 100 {
		t.Errorf("only %d names of tests were found in verify.md", found)
	}
	for _, name := range regexp.MustCompile("`((?:Test|Fuzz)\\w+)(?:/[^`]*)?`").FindAllStringSubmatch(read("../SECURITY.md"), -1) {
		if !all[name[1]] {
			t.Errorf("SECURITY.md: there is no test %s", name[1])
		}
	}
}
