// Package docs tests what the documents say.
package docs

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	command  = regexp.MustCompile("`(go test [^`]*)`")
	word     = regexp.MustCompile(`'[^']*'|\S+`)
	named    = regexp.MustCompile("`((?:Test|Fuzz)\\w+)(?:/([^`]*))?`")
	function = regexp.MustCompile(`(?m)^func ((?:Test|Fuzz|Benchmark)\w+)\(`)
)

// suite is what the tests of a folder are called. Subtests that a document can name are of files in testdata.
type suite struct{ tests, subtests []string }

// suites reads the names of all tests, by folder with "./" first.
func suites(t *testing.T) map[string]*suite {
	t.Helper()
	all := map[string]*suite{}
	err := filepath.WalkDir("..", func(file string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() && (e.Name() == "node_modules" || strings.HasPrefix(e.Name(), ".") && file != "..") {
			return filepath.SkipDir
		}
		folder, script, inTestdata := strings.Cut("./"+strings.TrimPrefix(filepath.ToSlash(filepath.Dir(file)), "../"), "/testdata")
		s := all[folder]
		if s == nil {
			s = &suite{}
			all[folder] = s
		}
		switch {
		case inTestdata && script != "" && !e.IsDir():
			s.subtests = append(s.subtests, strings.TrimSuffix(e.Name(), filepath.Ext(e.Name())))
		case strings.HasSuffix(file, "_test.go"):
			text, err := os.ReadFile(file)
			if err != nil {
				return err
			}
			for _, found := range function.FindAllStringSubmatch(string(text), -1) {
				s.tests = append(s.tests, found[1])
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// alternatives splits a pattern at each "|" outside of parentheses.
func alternatives(pattern string) (parts []string) {
	depth, start := 0, 0
	for i, c := range pattern {
		switch c {
		case '(':
			depth++
		case ')':
			depth--
		case '|':
			if depth == 0 {
				parts, start = append(parts, pattern[start:i]), i+1
			}
		}
	}
	return append(parts, pattern[start:])
}

// matches reports whether a pattern of go test, without alternatives, runs anything of a suite.
func (s *suite) matches(t *testing.T, pattern string) bool {
	t.Helper()
	test, sub, hasSub := strings.Cut(pattern, "/")
	has := func(names []string, pattern string) bool {
		is, err := regexp.Compile(pattern)
		if err != nil {
			t.Errorf("%s: %v", pattern, err)
			return true
		}
		return slices.ContainsFunc(names, is.MatchString)
	}
	if !has(s.tests, test) {
		return false
	}
	for _, part := range alternatives(strings.NewReplacer("(", "", ")", "").Replace(sub)) {
		if hasSub && !has(s.subtests, part) {
			return false
		}
	}
	return true
}

func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// A command of docs/verify.md that runs no test would pass: each of its patterns has a test, and each of its packages has one too.
func TestCommandsRunTests(t *testing.T) {
	all := suites(t)
	found := 0
	for _, c := range command.FindAllStringSubmatch(read(t, "verify.md"), -1) {
		words := word.FindAllString(c[1], -1)
		var patterns, packages []string
		for i, w := range words {
			switch {
			case strings.HasPrefix(w, "./"):
				packages = append(packages, w)
			case i > 0 && (words[i-1] == "-run" || words[i-1] == "-bench" || words[i-1] == "-fuzz"):
				patterns = append(patterns, alternatives(strings.Trim(w, "'"))...)
			}
		}
		patterns = slices.DeleteFunc(patterns, func(p string) bool { return p == "^$" }) // besides a benchmark
		found += len(patterns)
		used := map[string]bool{}
		for _, p := range packages {
			prefix, tree := strings.CutSuffix(p, "/...")
			there := len(patterns) == 0
			for folder, s := range all {
				if folder != prefix && (!tree || !strings.HasPrefix(folder, prefix+"/")) {
					continue
				}
				for _, pattern := range patterns {
					if s.matches(t, pattern) {
						used[pattern], there = true, true
					}
				}
			}
			if !there {
				t.Errorf("%s: nothing in %s matches", c[1], p)
			}
		}
		for _, pattern := range patterns {
			if !used[pattern] {
				t.Errorf("%s: no test matches %s", c[1], pattern)
			}
		}
	}
	if found < 100 {
		t.Errorf("only %d names of tests were found in verify.md", found)
	}
}

func TestNamedTestsExist(t *testing.T) {
	all := suites(t)
	for _, name := range named.FindAllStringSubmatch(read(t, "../SECURITY.md"), -1) {
		there := false
		for _, s := range all {
			there = there || slices.Contains(s.tests, name[1]) && (name[2] == "" || slices.Contains(s.subtests, name[2]))
		}
		if !there {
			t.Errorf("SECURITY.md: there is no test %s", strings.Trim(name[0], "`"))
		}
	}
}

// The check finds names that do not exist, at every place in a pattern.
func TestMissingTestsAreSeen(t *testing.T) {
	s := &suite{tests: []string{"TestScripts", "FuzzGlob"}, subtests: []string{"ws", "dir", "ext_full"}}
	for pattern, want := range map[string]bool{
		"TestScripts": true, "Script": true, "TestScripts/ws": true, "TestScripts/(ws|dir)$": true, "TestScripts/ext": true, "FuzzGlob": true,
		"TestScript$": false, "TestScripts/eval": false, "TestScripts/(ws|eval)": false, "TestScripts/ext$": false, "TestNone": false,
	} {
		if s.matches(t, pattern) != want {
			t.Errorf("%s: got %v", pattern, !want)
		}
	}
	if got := alternatives("TestA|TestB/(c|d)|E"); !slices.Equal(got, []string{"TestA", "TestB/(c|d)", "E"}) {
		t.Errorf("got %q", got)
	}
}
