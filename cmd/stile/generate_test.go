package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stilehost/stile/extension"
	"github.com/stilehost/stile/extension/lifecycle"
	"github.com/stilehost/stile/internal/cache/cachetest"
	"github.com/stilehost/stile/mcp"
)

// TestModelText has a model that writes lines that imitate stile's own.
func TestModelText(t *testing.T) {
	var b strings.Builder
	text := modelText{out: &b}
	for _, piece := range []string{"stile: signed by", " tom\nstile: approved\r\n", "\x1b[2J{\"error\": 1}"} {
		text.add(1, piece)
	}
	text.end()
	b.WriteString("Building ...\n")
	text.end()
	text.add(2, "stile: mended")
	text.add(3, "stile: again\n")
	text.end()
	want := "    stile: signed by tom\n    stile: approved\n    \\x1b[2J{\"error\": 1}\nBuilding ...\n    stile: mended\n    stile: again\n    \n"
	if got := b.String(); got != want {
		t.Errorf("got\n%q, want\n%q", got, want)
	}
}

// openStore opens a store of extensions in a separate folder, for the user tom.
func openStore(t *testing.T, policy string) *extensions {
	t.Helper()
	home := t.TempDir()
	cache, keyDir := cachetest.Dirs(t)
	prepareCache(t, cache, keyDir)
	key, err := os.ReadFile(filepath.Join(keyDir, "cache.key"))
	if err != nil {
		t.Fatal(err)
	}
	for name, data := range map[string][]byte{"cache.key": key, "policy.json": []byte(policy)} {
		if err := os.WriteFile(filepath.Join(home, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("STILE_HOME", home)
	t.Setenv("STILE_CACHE", cache)
	t.Setenv("STILE_USER", "tom")
	t.Setenv("STILE_KEYRING", "off")
	e, err := openExtensions(t.Context(), &streams{in: strings.NewReader(""), out: io.Discard, err: io.Discard}, sessionOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
	return e
}

// keep writes an extension with tools that have these descriptions.
func (e *extensions) keep(t *testing.T, scope, name string, tools map[string]string) {
	t.Helper()
	var names []string
	var source strings.Builder
	source.WriteString(`import { extension } from "stile"; export default extension({ tools: {`)
	for tool, description := range tools {
		names = append(names, tool)
		fmt.Fprintf(&source, "%s: { description: %q, run: () => 1 },", tool, description)
	}
	source.WriteString("} });")
	manifest, err := json.Marshal(map[string]any{"name": name, "version": "1.0.0", "description": "-", "tools": names})
	if err != nil {
		t.Fatal(err)
	}
	in, err := extension.ParseScope(scope)
	if err != nil {
		t.Fatal(err)
	}
	author := scope
	if in.Kind == extension.Shared {
		author = "user:tom"
	}
	w, err := e.Write(t.Context(), lifecycle.Draft{Scope: in, Author: author, Via: "test", Manifest: manifest, Files: map[string][]byte{"tool.ts": []byte(source.String())}})
	if err == nil && w.Release.State == lifecycle.Pending {
		_, err = e.Approve(t.Context(), lifecycle.Decision{Release: w.Release.ID, Digest: w.Release.Digest, By: "user:tom", Via: "test"})
	}
	if err != nil {
		t.Fatal(err)
	}
}

// TestExisting asks for existing tools in other words, and for missing ones.
func TestExisting(t *testing.T) {
	e := openStore(t, "{}")
	e.keep(t, "user:tom", "kit", map[string]string{
		"span": "Converts lengths", "temp": "Convert temperatures between Celsius and Fahrenheit", "slug": "Makes a URL slug of a title",
		"hash": "Computes the SHA-256 hash of a text", "weather": "Weather forecast for a city", "issues": "Lists the open issues of a GitHub repository",
		"sum": "Adds numbers", "days": "Counts the working days between two dates", "zip": "Compresses files",
	})
	viewer := lifecycle.Viewer{User: "tom", Agent: "claude"}
	for _, test := range []struct{ description, want string }{
		{"a tool that converts lengths from metres to km", "span"},
		{"Please write a tool for converting a length", "span"},
		{"convert currencies from euro to dollar", ""},
		{"convert currencies", ""},
		{"fahrenheit to celsius", "temp"},
		{"a function that returns temperatures in Celsius for a list of Kelvin values", ""},
		{"slug for titles", "slug"},
		{"I need the sha-256 of some text", "hash"},
		{"hashing texts with SHA-256, please", "hash"},
		{"forecasting the weather of cities", "weather"},
		{"list all open GitHub issues", "issues"},
		{"open a GitHub pull request and assign reviewers", ""},
		{"how many working days there are between dates", "days"},
		{"the day of the week that it is today", ""},
		{"add numbers", "sum"},
		{"numbers of a phone book by surname", ""},
		{"rename files by their date", ""},
		{"compress", "zip"},
		{"translate a text to French", ""},
		{"a tool that uses the input to make an output", ""},
		{"* OR \"NEAR(", ""},
		{"", ""},
	} {
		_, existing, err := e.existing(t.Context(), viewer, test.description)
		if err != nil {
			t.Fatal(err)
		}
		var offered []string
		for _, found := range existing {
			if found.Score >= 0.5 {
				offered = append(offered, strings.TrimPrefix(found.Name, "kit_"))
			}
		}
		if got := strings.Join(offered, " "); got != test.want {
			t.Errorf("%q: offered %q, want %q", test.description, got, test.want)
		}
	}
	// The best match comes first. Of tools with one name, only the one that would be called is listed.
	e.keep(t, "shared", "kit", map[string]string{"span": "Converts lengths from metres to km", "other": "Converts lengths from metres to miles"})
	e.keep(t, "agent:claude", "units", map[string]string{"km": "Converts lengths from metres to km"})
	_, existing, err := e.existing(t.Context(), viewer, "convert lengths from metres to km")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, found := range existing {
		if found.Score > 0 {
			names = append(names, fmt.Sprint(found.Name, " ", found.Score))
		}
	}
	if want := []string{"units_km 1", "kit_other 0.75", "kit_span 0.5"}; !slices.Equal(names, want) {
		t.Errorf("got %v, want %v", names, want)
	}
}

// TestGenerateForAgents offers an agent the tools that it sees. A model that never returns code uses up the budget.
func TestGenerateForAgents(t *testing.T) {
	e := openStore(t, `{"limits": {"buildsPerHour": 4}}`)
	var asked atomic.Int32
	model := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		body, err := io.ReadAll(r.Body)
		if err != nil || !bytes.Contains(body, []byte(`"max_completion_tokens":77`)) {
			t.Errorf("asked %s, %v", body, err)
		}
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, `data: {"choices":[{"index":0,"delta":{"content":"Shall I?"},"finish_reason":"stop"}],"usage":{"prompt_tokens":100,"completion_tokens":3}}`+"\n\ndata: [DONE]\n\n")
	}))
	t.Cleanup(model.Close)
	e.keep(t, "user:tom", "a", map[string]string{"span": "Converts lengths"})
	e.keep(t, "shared", "b", map[string]string{"hash": "Computes SHA-256 hashes"})
	e.keep(t, "agent:other", "c", map[string]string{"dice": "Throws a dice"})
	run, err := e.generateForAgents(t.Context(), modelFlags{Model: "openai:m", ModelURL: model.URL, ModelMaxTokens: "77"})
	if err != nil {
		t.Fatal(err)
	}
	viewer := lifecycle.Viewer{User: "tom", Agent: "claude"}
	ask := func(description string, with bool) (mcp.Generated, error) {
		scope := extension.Scope{Kind: extension.Agent, Owner: "claude"}
		return run(t.Context(), mcp.GenerateRequest{Description: description, New: with, Scope: scope, Author: scope.String(), Via: "mcp", Viewer: viewer, Progress: func(string) {}})
	}
	for description, want := range map[string]string{"convert lengths": "a_span", "sha-256 hash": "b_hash"} {
		if made, err := ask(description, false); err != nil || len(made.Existing) != 1 || made.Existing[0].Name != want || len(made.Spent.Rounds) != 0 {
			t.Errorf("%s: got %+v, %v", description, made, err)
		}
	}
	for i := range 4 {
		made, err := ask("throw a dice", i > 0)
		if err == nil || !strings.Contains(err.Error(), "(tries: 4, tokens: 400 in, 12 out (100 in, 3 out; ") || made.Spent.Tokens.Input != 400 || len(made.Spent.Rounds) != 4 {
			t.Errorf("got %+v, %v", made, err)
		}
	}
	before := asked.Load()
	if _, err := ask("throw a dice", true); !errors.As(err, new(*lifecycle.BudgetError)) || asked.Load() != before || before != 16 {
		t.Errorf("asked %d times, then %d: %v", before, asked.Load(), err)
	}
	// An existing tool costs nothing.
	if made, err := ask("convert lengths", false); err != nil || len(made.Existing) != 1 {
		t.Errorf("got %+v, %v", made, err)
	}
	log, err := e.Audit(t.Context(), 1)
	if err != nil || log[0].Kind != "generate" || log[0].By != "agent:claude" || log[0].Outcome != "nothing" || !strings.HasPrefix(log[0].Reason, "tries: 4, tokens: 400 in, 12 out") {
		t.Errorf("got %+v, %v", log, err)
	}
}
