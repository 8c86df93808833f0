//go:build long

package thirdparty

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"github.com/evanw/esbuild/pkg/api"

	"github.com/stilehost/stile/internal/suite"
)

// page is a test file with one of its variants.
type page struct{ file, variant string }

// metadata is a comment at the start of a test file: which scripts it needs, and in which variants it is run.
var metadata = regexp.MustCompile(`(?m)^// META: (script|variant)=(\S*)`)

// lacking is in the messages of tests that need what is not there, and is no part of what an extension has.
var lacking = regexp.MustCompile(`\b(document|window|FileReader|ShadowRealm|Worker|XMLHttpRequest) is not defined|there is no (server),`)

// TestLongWebPlatform runs the test files of web-platform-tests that need no document, in the global environment of an extension. If this
// machine's Node.js has the version of the record, or a record is written, it runs them in Node.js too.
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
			case strings.HasSuffix(name, ".any.js"), strings.HasSuffix(name, ".window.js"):
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
			case strings.HasSuffix(name, ".html"), strings.HasSuffix(name, ".htm"), strings.HasSuffix(name, ".xhtml"), strings.HasSuffix(name, ".worker.js"):
				if !strings.Contains(name, "/resources/") {
					outcomes = append(outcomes, suite.Outcome{Name: name, Skipped: "files that are a document or a worker"})
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
	glue, err := os.ReadFile("testdata/page.ts")
	if err != nil {
		t.Fatal(err)
	}
	h := newHarness(t, "wpt.ts", fstest.MapFS{"page.ts": {Data: glue}})
	run := func(in func(input, result any) error, outcomes []suite.Outcome) []suite.Outcome {
		var mu sync.Mutex
		each(pages, func(_ int, p page) {
			ended := p.run(in, files, served)
			mu.Lock()
			defer mu.Unlock()
			outcomes = append(outcomes, ended...)
		})
		slices.SortFunc(outcomes, func(a, b suite.Outcome) int { return strings.Compare(a.Name, b.Name) })
		return outcomes
	}
	outcomes = run(func(input, result any) error { return h.run(t, input, result) }, outcomes)
	for i, o := range outcomes {
		if found := lacking.FindStringSubmatch(o.Failed); found != nil {
			outcomes[i] = suite.Outcome{Name: o.Name, Skipped: "tests that need a " + strings.NewReplacer("window", "document").Replace(found[1]+found[2])}
		}
	}
	version, bundle := node(t)
	if version != record.Peer.Version && os.Getenv(suite.UpdateVariable) == "" {
		t.Logf("%s %s is not there, but %q: its outcomes are not compared", record.Peer.Name, record.Peer.Version, version)
		record.Judge(t, outcomes)
		return
	}
	record.JudgeBeside(t, outcomes, version, run(func(input, result any) error { return runNode(t.Context(), bundle, input, result) }, nil))
}

// node returns the version of this machine's Node.js, and the program that runs a page in it.
func node(t *testing.T) (version, bundle string) {
	t.Helper()
	text, err := exec.CommandContext(t.Context(), "node", "--version").Output()
	if err != nil {
		return "", ""
	}
	bundle = filepath.Join(t.TempDir(), "node.cjs")
	built := api.Build(api.BuildOptions{EntryPoints: []string{"testdata/node.ts"}, Bundle: true, Platform: api.PlatformNode, Outfile: bundle, Write: true})
	if len(built.Errors) > 0 {
		t.Fatal(built.Errors[0].Text)
	}
	return strings.TrimSpace(string(text)), bundle
}

func runNode(ctx context.Context, bundle string, input, result any) error {
	text, err := json.Marshal(input)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	c := exec.CommandContext(ctx, "node", "--expose-gc", bundle)
	c.Stdin = bytes.NewReader(text)
	out, err := c.Output()
	if err != nil {
		return fmt.Errorf("node: %w", err)
	}
	// A test may write to the console.
	return json.Unmarshal(out[bytes.LastIndexByte(bytes.TrimSpace(out), '\n')+1:], result)
}

func (p page) run(in func(input, result any) error, files fs.FS, served map[string]string) []suite.Outcome {
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
	// Of all that a server has, what the scripts name.
	wanted := map[string]string{}
	for file, text := range served {
		base := strings.TrimSuffix(path.Base(file), ".idl")
		if slices.ContainsFunc(scripts[1:], func(s script) bool { return strings.Contains(s.Text, base) }) {
			wanted[file] = text
		}
	}
	var result struct {
		Status  int
		Message string
		Tests   []struct {
			Name, Message string
			Status        int
		}
	}
	input := map[string]any{"url": "https://web-platform.test/" + name, "scripts": scripts, "files": wanted}
	if err := in(input, &result); err != nil {
		return []suite.Outcome{{Name: name, Failed: first(err)}}
	}
	var outcomes []suite.Outcome
	if result.Status != 0 {
		outcomes = append(outcomes, suite.Outcome{Name: name, Failed: fmt.Sprintf("the file ends with status %d: %s", result.Status, result.Message)})
	}
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
