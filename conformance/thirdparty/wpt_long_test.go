//go:build long

package thirdparty

import (
	"fmt"
	"io/fs"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stilehost/stile/internal/suite"
)

// page is a test file with one of its variants.
type page struct{ file, variant string }

// metadata is a comment at the start of a test file: which scripts it needs, and in which variants it is run.
var metadata = regexp.MustCompile(`(?m)^// META: (script|variant)=(\S*)`)

// TestLongWebPlatform runs the test files of web-platform-tests that need no document, in the global environment of an extension.
func TestLongWebPlatform(t *testing.T) {
	record, folder := suite.Open(t, "wpt.json")
	files := os.DirFS(folder)
	var pages []page
	var outcomes []suite.Outcome
	served := map[string]string{}
	for _, below := range record.Paths {
		err := fs.WalkDir(files, below, func(name string, e fs.DirEntry, err error) error {
			if err != nil || e.IsDir() {
				return err
			}
			text, err := fs.ReadFile(files, name)
			if err != nil {
				return err
			}
			why := record.Omits(name)
			switch {
			case why != "":
				outcomes = append(outcomes, suite.Outcome{Name: name, Skipped: why})
			case strings.HasSuffix(name, ".any.js"):
				variants := []string{""}
				for _, found := range metadata.FindAllStringSubmatch(string(text), -1) {
					if found[1] == "variant" {
						variants = append(variants, found[2])
					}
				}
				if len(variants) > 1 {
					variants = variants[1:]
				}
				for _, v := range variants {
					pages = append(pages, page{name, v})
				}
			case strings.HasSuffix(name, ".html"), strings.HasSuffix(name, ".htm"), strings.HasSuffix(name, ".xhtml"), strings.HasSuffix(name, ".window.js"), strings.HasSuffix(name, ".worker.js"):
				if !strings.Contains(name, "/resources/") {
					outcomes = append(outcomes, suite.Outcome{Name: name, Skipped: "files that need a document or a worker"})
				}
			case strings.HasSuffix(name, ".json"), strings.HasSuffix(name, ".idl"), strings.HasSuffix(name, ".txt"):
				served["/"+name] = string(text)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	h := newHarness(t, "wpt.ts", nil)
	var mu sync.Mutex
	each(pages, func(_ int, p page) {
		ended := p.run(t, h, files, served)
		mu.Lock()
		defer mu.Unlock()
		outcomes = append(outcomes, ended...)
	})
	slices.SortFunc(outcomes, func(a, b suite.Outcome) int { return strings.Compare(a.Name, b.Name) })
	record.Judge(t, outcomes)
}

func (p page) run(t *testing.T, h *harness, files fs.FS, served map[string]string) []suite.Outcome {
	name := p.file + p.variant
	type script struct {
		Name string `json:"name"`
		Text string `json:"text"`
	}
	var scripts []script
	add := func(file string) error {
		text, err := fs.ReadFile(files, file)
		scripts = append(scripts, script{file, string(text)})
		return err
	}
	test, err := fs.ReadFile(files, p.file)
	if err == nil {
		err = add("resources/testharness.js")
	}
	for _, found := range metadata.FindAllStringSubmatch(string(test), -1) {
		if found[1] != "script" || err != nil {
			continue
		}
		needs := found[2]
		if strings.HasPrefix(needs, "/") {
			needs = needs[1:]
		} else {
			needs = path.Join(path.Dir(p.file), needs)
		}
		if needs == "resources/WebIDLParser.js" {
			needs = "resources/webidl2/lib/webidl2.js"
		}
		err = add(needs)
	}
	if err == nil {
		err = add(p.file)
	}
	if err != nil {
		return []suite.Outcome{{Name: name, Failed: first(err)}}
	}
	var result struct {
		Status  int
		Message string
		Tests   []struct {
			Name, Message string
			Status        int
		}
	}
	input := map[string]any{"url": "https://web-platform.test/" + name, "scripts": scripts, "files": served}
	if err := h.run(t, input, &result); err != nil {
		return []suite.Outcome{{Name: name, Failed: first(err)}}
	}
	if result.Status != 0 {
		return []suite.Outcome{{Name: name, Failed: fmt.Sprintf("the file fails with status %d: %s", result.Status, result.Message)}}
	}
	var outcomes []suite.Outcome
	seen := map[string]int{}
	for _, test := range result.Tests {
		o := suite.Outcome{Name: name + ": " + test.Name}
		if seen[test.Name]++; seen[test.Name] > 1 {
			o.Name += fmt.Sprintf(" (%d)", seen[test.Name])
		}
		switch test.Status {
		case 0:
		case 4:
			o.Skipped = "optional features that are not there"
		default:
			o.Failed = fmt.Sprintf("status %d: %s", test.Status, test.Message)
		}
		outcomes = append(outcomes, o)
	}
	if len(outcomes) == 0 {
		outcomes = []suite.Outcome{{Name: name, Failed: "it has no tests"}}
	}
	return outcomes
}
