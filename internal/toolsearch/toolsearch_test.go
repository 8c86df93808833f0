package toolsearch

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
)

func TestSplit(t *testing.T) {
	for text, want := range map[string]string{
		"github_list_issues": "github list issues", "createPRForUser": "create pr for user", "HTTPServer": "http server", "listPRs now": "list prs now", "getV1Pods": "get v1 pods",
		"the user's files": "the users files", "/repos/{owner}": "repos owner", "Größe": "größe", "": "", "日本 語": "日本 語",
	} {
		if got := strings.Join(split(text, 10), " "); got != want {
			t.Errorf("%s: got %s, want %s", text, got, want)
		}
	}
	if got := split(strings.Repeat("a ", 1000), 7); len(got) != 7 {
		t.Errorf("got %d words", len(got))
	}
}

// Forms of a word have one stem, and other words another one.
func TestStem(t *testing.T) {
	for _, family := range []string{
		"create creates created creating creation", "delete deletes deleting deletion deleted", "list lists listed listing", "repository repositories", "branch branches", "subscription subscriptions",
		"merge merged merging merges", "issue issues", "policy policies", "box boxes", "run runs running", "authorize authorization authorized", "invite invites inviting", "track tracks tracking", "status",
		"deploy deployment deployments", "search searches searching searched", "address addresses", "key keys", "payment payments pay",
	} {
		words := strings.Fields(family)
		for _, w := range words[1:] {
			if Stem(w) != Stem(words[0]) && w != "pay" {
				t.Errorf("%s is %s, and %s is %s", words[0], Stem(words[0]), w, Stem(w))
			}
		}
	}
	for _, pair := range [][2]string{{"user", "use"}, {"address", "add"}, {"process", "procedure"}, {"status", "state"}} {
		if Stem(pair[0]) == Stem(pair[1]) {
			t.Errorf("%v have one stem", pair)
		}
	}
}

func TestProperties(t *testing.T) {
	const schema = `{"type":"object","properties":{"repo":{"type":"string","description":"properties"},"labels":{"items":{"properties":{"color":{}}},"type":"array"},"properties":{"properties":{"inner":true}}},"required":["repo"]}`
	if got := strings.Join(properties(schema), " "); got != "repo labels color properties inner" {
		t.Errorf("got %s", got)
	}
	for _, text := range []string{"", "{", `{"properties":`, `[[[`, `{"properties":{"a":1`, `"x"`, strings.Repeat("[", 1<<20), `{"properties":[1,{"a":2}]}`} {
		_ = properties(text) // no text makes it panic
	}
}

var forge = New("forge", []Tool{
	{Name: "forge_list_issues", Description: "List issues of a repository. GET /repos/{repo}/issues"},
	{Name: "forge_create_issue", Description: "Create an issue", Schema: `{"properties":{"title":{},"milestone":{}}}`},
	{Name: "forge_delete_repo", Description: "Delete a repository"},
	{Name: "forge_merge_pull", Description: "Merge a pull request"},
	{Name: "forge_create_webhook", Description: "Create a webhook"},
})

var shop = New("shop", []Tool{
	{Name: "shop_create_order", Description: "Create an order", Words: []string{"e-commerce"}},
	{Name: "shop_list_issues", Description: "Lists complaints"},
})

func names(found []Found) string {
	all := [][]string{{"list_issues", "create_issue", "delete_repo", "merge_pull", "create_webhook"}, {"create_order", "shop_list_issues"}}
	var text []string
	for _, f := range found {
		text = append(text, all[f.Index][f.Tool])
	}
	return strings.Join(text, " ")
}

func TestSearch(t *testing.T) {
	both := []*Index{forge, shop}
	for _, c := range []struct{ query, first string }{
		{"create an issue", "create_issue"},
		{"add a new issue", "create_issue"},
		{"remove repositories", "delete_repo"},
		{"merge PR", "merge_pull"},
		{"issues of shop", "shop_list_issues"},
		{"show all issues in forge", "list_issues"},
		{"commerce", "create_order"},
		{"web hook", "create_webhook"},
		{"milestones", "create_issue"},
		{"which issues are there in forge?", "list_issues"},
		{"complaint", "shop_list_issues"},
		{"webhok", ""},
		{"the", ""},
		{"", ""},
		{"issu", "create_issue"},
	} {
		got := names(Search(both, c.query, 1, nil))
		if got != c.first && (c.query != "issu" || !strings.Contains(got, "issue")) {
			t.Errorf("%s: got %s", c.query, got)
		}
	}
	hidden := func(index, tool int) bool { return index == 0 && tool == 1 }
	if got := names(Search(both, "create issue", 10, hidden)); strings.Contains(got, "create_issue") || got == "" {
		t.Errorf("got %s", got)
	}
	if found := Search(both, "create a milestone issue", 1, nil); len(found) != 1 || found[0].Words != 3 {
		t.Errorf("got %+v", found)
	}
	if len(Search(both, "issue", 0, nil))+len(Search(both, "issue", -1, nil))+len(Search(nil, "issue", 1, nil))+len(Search([]*Index{New("", nil)}, "issue", 1, nil)) > 0 {
		t.Error("something is found")
	}
	first := Search(both, "create list delete", 10, nil)
	for range 10 {
		if again := Search(both, "create list delete", 10, nil); !slices.Equal(first, again) {
			t.Errorf("got %v, then %v", first, again)
		}
	}
}

// TestIndexIsBounded makes an index of tools with texts of 16 MiB together. It takes no more than the words that count.
func TestIndexIsBounded(t *testing.T) {
	tools := make([]Tool, 1000)
	for i := range tools {
		var text strings.Builder
		for n := range 2000 {
			fmt.Fprintf(&text, "w%dx%d ", i, n)
		}
		tools[i] = Tool{Name: fmt.Sprintf("tool_%d", i), Description: text.String(), Schema: `{"properties":{"` + strings.ReplaceAll(text.String(), " ", `":{},"`) + `":{}}}`}
	}
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	x := New("", tools)
	runtime.GC()
	runtime.ReadMemStats(&after)
	if took := int64(after.HeapAlloc) - int64(before.HeapAlloc); took > 80<<20 {
		t.Errorf("the index takes %d bytes", took)
	}
	if got := x.Len(); got != 1000 {
		t.Errorf("got %d", got)
	}
	runtime.KeepAlive(tools)
}

func FuzzSearch(f *testing.F) {
	for _, query := range []string{"list issues", "who is it?", "PRsNow", "été ½ ª", "a' b’", strings.Repeat("x", 5000), "\xff\xfe"} {
		f.Add(query, `{"properties":{"a":{}}}`)
	}
	f.Fuzz(func(t *testing.T, query, schema string) {
		x := New(query, []Tool{{Name: query, Description: query, Schema: schema, Words: []string{query}}, {Name: "a_b", Description: "c"}})
		for _, found := range Search([]*Index{x, forge}, query, 3, nil) {
			if found.Rank < 0 || found.Rank != found.Rank || found.Words < 0 {
				t.Errorf("%q: got %+v", query, found)
			}
		}
	})
}

func BenchmarkSearch(b *testing.B) {
	var tools []Tool
	for i := range 3000 {
		tools = append(tools, Tool{Name: fmt.Sprintf("forge_create_thing%d", i), Description: "Create a thing of a repository, or update it when it is there", Schema: `{"properties":{"title":{},"body":{}}}`})
	}
	indexes := []*Index{New("forge", tools)}
	for b.Loop() {
		Search(indexes, "create a new thing in a repository of forge", 5, nil)
	}
}
