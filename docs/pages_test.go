package docs

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stilehost/stile/internal/cache/cachetest"
)

var (
	block   = regexp.MustCompile("(?ms)^```(\\w+) ?([^\n]*)\n(.*?)^```$")
	link    = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading = regexp.MustCompile(`(?m)^#+ (.*)$`)
)

// pages are all documents, by their path from here.
func pages(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, pattern := range []string{"*.md", "../*.md", "../bench/*.md"} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			all[filepath.ToSlash(file)] = read(t, file)
		}
	}
	if len(all) < 15 {
		t.Fatalf("only %d documents were found", len(all))
	}
	return all
}

// blocks are the blocks of a language in the documents, by the page and the name of the file, or a number where there is none.
func blocks(t *testing.T, language string) map[string]string {
	t.Helper()
	all := map[string]string{}
	for page, text := range pages(t) {
		for i, found := range block.FindAllStringSubmatch(text, -1) {
			if found[1] == language {
				name := cmp.Or(found[2], fmt.Sprintf("%d/block.%s", i, language))
				all[strings.NewReplacer("/", "", ".", "").Replace(page)+"_"+name] = found[3]
			}
		}
	}
	return all
}

// TestGoBlocks compiles the Go code of all documents: the blocks of one folder are a package, and any other block is one. No
// program is linked.
func TestGoBlocks(t *testing.T) {
	dir := t.TempDir()
	root, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	overlay := map[string]string{}
	args := []string{"build", "-overlay", filepath.Join(dir, "overlay.json")}
	for name, code := range blocks(t, "go") {
		file := filepath.Join(dir, strings.ReplaceAll(name, "/", "_"))
		if err := os.WriteFile(file, []byte(strings.Replace(code, "package main\n", "package program\n", 1)), 0o600); err != nil {
			t.Fatal(err)
		}
		overlay[filepath.Join(root, "docs", "blocks", name)] = file
		if folder := "./docs/blocks/" + path.Dir(name); !slices.Contains(args, folder) {
			args = append(args, folder)
		}
	}
	if len(overlay) < 5 {
		t.Fatalf("only %d blocks were found", len(overlay))
	}
	text, err := json.Marshal(map[string]any{"Replace": overlay})
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "overlay.json"), text, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	build := exec.CommandContext(t.Context(), "go", args...)
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// TestFirstProgram runs the first program of embedding.md beside the extension that it calls.
func TestFirstProgram(t *testing.T) {
	source, tool := blocks(t, "go")["embeddingmd_first/main.go"], blocks(t, "ts")["writing-toolsmd_issues.ts"]
	if source == "" || tool == "" {
		t.Fatal("the blocks are not there")
	}
	got := runProgram(t, map[string]string{"blocks/main.go": source}, map[string]string{"issues.ts": tool})
	if got != "false\n" {
		t.Errorf("got\n%s", got)
	}
}

// TestOwnCapabilities calls tools with the capabilities of capabilities.md, with the function of embedding.md that calls in the
// background.
func TestOwnCapabilities(t *testing.T) {
	code, wit := blocks(t, "go"), blocks(t, "wit")
	sources := map[string]string{
		"blocks/main.go":     read(t, "testdata/games.go"),
		"blocks/all.go":      code["embeddingmd_background/all.go"],
		"blocks/dice/cup.go": code["capabilitiesmd_dice/cup.go"],
		"blocks/slow/cup.go": code["capabilitiesmd_slow/cup.go"],
	}
	beside := map[string]string{
		"dice.wit": wit["capabilitiesmd_dice.wit"],
		"slow.wit": wit["capabilitiesmd_slow.wit"],
		"slow.ts":  blocks(t, "ts")["capabilitiesmd_slow.ts"],
	}
	for _, files := range []map[string]string{sources, beside} {
		for name, text := range files {
			if text == "" {
				t.Fatalf("there is no block for %s", name)
			}
		}
	}
	if got := runProgram(t, sources, beside); got != "rolled 3, threw 2 1000 times\n" {
		t.Errorf("got\n%s", got)
	}
}

// runProgram builds a program from sources below this folder, which need not exist there, runs it in a folder with the other files,
// and returns what it prints. It gets the engine from the cache of the tests, because its own folder would have none.
func runProgram(t *testing.T, sources, beside map[string]string) string {
	t.Helper()
	dir, cacheHome := t.TempDir(), t.TempDir()
	write := func(name, text string) string {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	for name, text := range beside {
		write(name, text)
	}
	root, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	replace := map[string]string{}
	for name, text := range sources {
		replace[filepath.Join(root, "docs", name)] = write(strings.ReplaceAll(name, "/", "_"), text)
	}
	overlay, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		t.Fatal(err)
	}
	build := exec.CommandContext(t.Context(), "go", "build", "-ldflags=-s -w", "-overlay", write("overlay.json", string(overlay)), "-o", filepath.Join(dir, "program"), "./docs/blocks")
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	shared, keys := cachetest.Dirs(t)
	mine := filepath.Join(cacheHome, "my-program")
	if err := errors.Join(os.MkdirAll(shared, 0o700), os.MkdirAll(keys, 0o700), os.Mkdir(mine, 0o700),
		os.Symlink(shared, filepath.Join(mine, "cache")), os.Symlink(keys, filepath.Join(mine, "key"))); err != nil {
		t.Fatal(err)
	}
	program := exec.CommandContext(t.Context(), filepath.Join(dir, "program"))
	program.Dir, program.Env = dir, append(os.Environ(), "XDG_CACHE_HOME="+cacheHome)
	out, err := program.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return string(out)
}

// A block of JSON is a value, or fields of an object.
func TestJSONBlocks(t *testing.T) {
	found := blocks(t, "json")
	if len(found) < 10 {
		t.Fatalf("only %d blocks were found", len(found))
	}
	for name, text := range found {
		var value any
		if json.Unmarshal([]byte(text), &value) != nil && json.Unmarshal([]byte("{"+text+"}"), &value) != nil {
			t.Errorf("%s is not JSON:\n%s", name, text)
		}
	}
}

// anchor is what GitHub calls a heading in links.
func anchor(heading string) string {
	var b strings.Builder
	for _, r := range strings.ToLower(strings.ReplaceAll(heading, "`", "")) {
		switch {
		case r == ' ':
			b.WriteByte('-')
		case r == '-' || r == '_' || r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r > 127:
			b.WriteRune(r)
		}
	}
	return b.String()
}

// TestLinks follows the links between files, and those to headings.
func TestLinks(t *testing.T) {
	found := 0
	for page, text := range pages(t) {
		text = block.ReplaceAllString(text, "")
		for _, l := range link.FindAllStringSubmatch(text, -1) {
			u, err := url.Parse(l[1])
			if err != nil || u.Scheme != "" {
				continue
			}
			found++
			target := filepath.ToSlash(filepath.Join(filepath.Dir(page), u.Path))
			if u.Path == "" {
				target = page
			}
			if _, err := os.Stat(target); err != nil {
				t.Errorf("%s links to %s, which is not there", page, l[1])
				continue
			}
			if u.Fragment == "" || !strings.HasSuffix(target, ".md") {
				continue
			}
			var anchors []string
			for _, h := range heading.FindAllStringSubmatch(read(t, target), -1) {
				anchors = append(anchors, anchor(h[1]))
			}
			if !slices.Contains(anchors, u.Fragment) {
				t.Errorf("%s links to %s, which has no such heading", page, l[1])
			}
		}
	}
	if found < 80 {
		t.Errorf("only %d links were found", found)
	}
}

// TestIndex holds the README to its length, and the index to the pages.
func TestIndex(t *testing.T) {
	all := pages(t)
	if n := strings.Count(all["../README.md"], "\n"); n > 160 {
		t.Errorf("README.md has %d lines, and 160 at most", n)
	}
	for page := range all {
		if !strings.Contains(page, "/") && page != "README.md" && !strings.Contains(all["README.md"], "]("+page+")") {
			t.Errorf("docs/README.md does not list %s", page)
		}
	}
}
