package mcp

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/stilehost/stile/internal/toolcontent"
)

// Output that exceeds the limit is cut as JSON. The whole of it can be read, but only in this session.
func TestLargeOutput(t *testing.T) {
	h := newHome(t, preApproved).with(func(o *Options) { o.MaxOutput = 2000 })
	c, other := h.client(), h.client()
	does[writeOutput](c, "extension_write", tools("large", nil, object{
		"list": `Array.from({ length: 1000 }, (_, i) => ({ i }))`, "object": `({ small: 1, long: "x".repeat(5000), more: "y".repeat(5000) })`,
		"deep": `(() => { let v: any = 1; for (let i = 0; i < 150; i++) v = [v]; return v })()`, "fits": `"x".repeat(1900)`,
	}))
	for _, tool := range []string{"list", "object", "deep"} {
		t.Run(tool, func(t *testing.T) {
			r := c.tool("large_"+tool, nil)
			if r.IsError || len(r.Content) != 3 {
				t.Fatalf("got %s", text(r))
			}
			shown := r.Content[0].(*sdk.TextContent).Text
			if len(shown) > 2000 || !json.Valid([]byte(shown)) || deep([]byte(shown)) {
				t.Errorf("shown is %s", shown)
			}
			link := r.Content[1].(*sdk.ResourceLink)
			read, err := c.ReadResource(t.Context(), &sdk.ReadResourceParams{URI: link.URI})
			if err != nil {
				t.Fatal(err)
			}
			whole := read.Contents[0].Text
			if !json.Valid([]byte(whole)) || int64(len(whole)) != *link.Size || tool != "deep" && len(whole) < 5000 {
				t.Errorf("the whole has %d bytes", len(whole))
			}
			for _, uri := range []string{link.URI + "x", outputURI, outputURI + "..%2f", "file:///etc/passwd"} {
				if _, err := c.ReadResource(t.Context(), &sdk.ReadResourceParams{URI: uri}); err == nil {
					t.Errorf("%s can be read", uri)
				}
			}
			if _, err := other.ReadResource(t.Context(), &sdk.ReadResourceParams{URI: link.URI}); err == nil {
				t.Error("another session reads it")
			}
		})
	}
	r := c.tool("large_object", nil)
	structured, _ := r.StructuredContent.(map[string]any)
	if structured["small"] != 1.0 || !strings.Contains(fmt.Sprint(structured["long"]), "more characters") || structured["more"] == nil {
		t.Errorf("got %v", structured)
	}
	if r := c.tool("large_fits", nil); len(r.Content) != 1 {
		t.Errorf("what fits is cut: %s", text(r))
	}
	if s := does[sourceOutput](c, "extension_source", object{"extension": "large"}); len(s.Files["tool.ts"]) == 0 || s.Digest == "" {
		t.Errorf("got %+v", s)
	}
}

// A tool that declares an output schema either matches it or fails, because clients check it.
func TestPromisedOutput(t *testing.T) {
	h := newHome(t, preApproved).with(func(o *Options) { o.MaxOutput = 500 })
	c := h.client()
	does[writeOutput](c, "extension_write", object{
		"manifest": object{"name": "p", "version": "1.0.0", "description": "d", "tools": []string{"keeps", "large", "least", "fails", "number", "breaks"}},
		"source": `import { extension } from "stile";
const output = { type: "object", properties: { text: { type: "string", maxLength: 100000 } }, required: ["text"] };
export default extension({ tools: {
  keeps: { description: "d", output, run: () => ({ text: "x" }) },
  large: { description: "d", output, run: () => ({ text: "x".repeat(1000) }) },
  least: { description: "d", output: { ...output, properties: { text: { type: "string", minLength: 1000 } } }, run: () => ({ text: "x".repeat(1000) }) },
  fails: { description: "d", output, run: () => { throw new Error("no") } },
  breaks: { description: "d", output, run: () => ({ text: null }) },
  number: { description: "d", output: { type: "number" }, run: () => 1 },
} });`,
	})
	for tool, want := range map[string]struct{ fails, structured bool }{"keeps": {false, true}, "large": {false, true}, "least": {true, false}, "fails": {true, false}, "number": {false, false}, "breaks": {true, false}} {
		if r := c.tool("p_"+tool, nil); r.IsError != want.fails || (r.StructuredContent != nil) != want.structured {
			t.Errorf("%s: got %v, %v", tool, r.IsError, r.StructuredContent)
		}
	}
	if said := text(c.tool("p_breaks", nil)); !strings.Contains(said, "result does not match its output schema") || !strings.Contains(said, "/text: got null, want string") {
		t.Errorf("got %s", said)
	}
	for tool, err := range c.Tools(t.Context(), nil) {
		if err != nil {
			t.Fatal(err)
		}
		if promises := tool.OutputSchema != nil; strings.HasPrefix(tool.Name, "p_") && promises == (tool.Name == "p_number") {
			t.Errorf("%s promises %v", tool.Name, tool.OutputSchema)
		}
	}
	_ = c.Close()
	h.close() // it writes the collected statistics
	h.open()
	for _, s := range does[statsOutput](h.client(), "extension_stats", object{}).Tools {
		if s.Name == "p_breaks" && (s.Calls != 2 || s.Failures != 2) {
			t.Errorf("got %+v", s)
		}
	}
}

func TestCutJSON(t *testing.T) {
	long := strings.Repeat("é", 1000)
	for _, c := range []struct {
		name, whole string
		room        int
		marks       bool
		want        string // a part; empty: anything
	}{
		{"it fits", `{"a":1}`, 100, true, `{"a":1}`},
		{"a text", `"` + long + `"`, 200, false, "more characters"},
		{"a list", "[" + strings.Repeat("1,", 1000) + "1]", 200, true, `more)"]`},
		{"a list without marks", "[" + strings.Repeat("1,", 1000) + "1]", 200, false, "1,1]"},
		{"many fields", func() string {
			m := map[string]int{}
			for i := range 1000 {
				m[fmt.Sprintf("field%d", i)] = i
			}
			data, _ := json.Marshal(m)
			return string(data)
		}(), 300, true, `more fields"`},
		{"a long key", `{"` + long + `":1}`, 100, true, "1 more fields"},
		{"small beside large", `{"a":"` + long + `","b":true,"c":"` + long + `"}`, 300, true, `"b":true`},
		{"a list in an object", `{"n":3,"rows":[` + strings.Repeat(`{"id":1},`, 500) + `{"id":2}]}`, 300, true, `{"n":3,"rows":[{"id":1},{"id":1}`},
		{"deep", strings.Repeat("[", 500) + strings.Repeat("]", 500), 5000, true, "[]"},
		{"deeper than a decoder goes", strings.Repeat("[", 20_000) + strings.Repeat("]", 20_000), 5000, true, "more characters"},
		{"a long number", strings.Repeat("9", 1000), 100, true, "more characters"},
		{"a number that stays", "12345678901234567890", 100, true, "12345678901234567890"},
		{"what HTML escapes", `"<&>` + long + `"`, 200, true, "<&>"},
		{"escapes", `"` + strings.Repeat(`\u0000`, 1000) + `"`, 200, true, "more characters"},
		{"next to no room", `{"a":"` + long + `"}`, 1, true, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := cutJSON([]byte(c.whole), c.room, c.marks)
			if !json.Valid(got) || len(got) > max(c.room, 2*scrap) || !strings.Contains(string(got), c.want) {
				t.Errorf("got %d bytes: %s", len(got), got)
			}
		})
	}
}

// A part of JSON is valid JSON, within the limits of size and depth. Without marks, each value keeps its type.
func FuzzCutJSON(f *testing.F) {
	f.Add([]byte(`{"a":[1,2,{"b":"c"}],"d":null,"e":true}`), 100)
	f.Add([]byte(`["`+strings.Repeat(`\ud83d\ude00`, 100)+`",1e400]`), 120)
	f.Add([]byte(strings.Repeat(`{"":[`, 100)+strings.Repeat(`]}`, 100)), 1000)
	f.Fuzz(func(t *testing.T, text []byte, room int) {
		if !json.Valid(text) || room < 0 || room > 1<<20 {
			return
		}
		for _, marks := range []bool{true, false} {
			got := cutJSON(text, room, marks)
			if !json.Valid(got) || len(got) > max(room, 2*scrap) || deep(got) {
				t.Fatalf("%s, %d: got %s", text, room, got)
			}
			if !marks {
				sameKinds(t, decoded(t, text), decoded(t, got))
			}
		}
	})
}

func decoded(t *testing.T, text []byte) (v any) {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	if err := d.Decode(&v); err != nil {
		t.Fatal(err)
	}
	return v
}

func sameKinds(t *testing.T, whole, part any) {
	t.Helper()
	if number, ok := whole.(json.Number); ok && len(number) > scrap {
		return // becomes text
	}
	if reflect.TypeOf(whole) != reflect.TypeOf(part) {
		t.Fatalf("%v became %v", whole, part)
	}
	switch part := part.(type) {
	case []any:
		for i := range part {
			sameKinds(t, whole.([]any)[i], part[i])
		}
	case map[string]any:
		for key := range part {
			of, ok := whole.(map[string]any)[key]
			if !ok {
				t.Fatalf("%q came from nowhere", key)
			}
			sameKinds(t, of, part[key])
		}
	}
}

// A shelf stores the latest outputs for a while, up to its limit.
// However many sessions an agent has, the total stored for it is limited, and each session reads only its own.
func TestKeptIsBounded(t *testing.T) {
	h := newHome(t, preApproved)
	a, b := h.client(), h.client()
	link := func(c *client) (uri string) {
		t.Helper()
		for _, part := range c.tool("code_run", object{"code": `return "x".repeat(1_000_000)`}).Content {
			if l, ok := part.(*sdk.ResourceLink); ok {
				uri = l.URI
			}
		}
		return uri
	}
	reads := func(c *client, uri string) bool {
		_, err := c.ReadResource(t.Context(), &sdk.ReadResourceParams{URI: uri})
		return err == nil
	}
	first := link(a)
	if !reads(a, first) || reads(b, first) {
		t.Errorf("the session reads its output: %v; another one: %v", reads(a, first), reads(b, first))
	}
	for range maxKept / 1_000_000 {
		link(b)
	}
	if reads(a, first) {
		t.Error("more is kept than there is room for")
	}
}

// TestPagesOfLargeTools lists tools whose definitions take more than a page. Each is listed once.
func TestPagesOfLargeTools(t *testing.T) {
	h := newHome(t, preApproved)
	c := h.client()
	const each, size = 4, 250_000
	for _, name := range []string{"a", "b", "c"} {
		d := tools(name, nil, object{"one": "1", "two": "2", "three": "3", "four": "4"})
		d["source"] = strings.Replace(d["source"].(string), `{ type: "object" }`, fmt.Sprintf(`{ type: "object", default: "x".repeat(%d) }`, size), 1)
		does[writeOutput](c, "extension_write", d)
	}
	seen, cursor := map[string]int{}, ""
	for pages := 1; ; pages++ {
		page, err := c.ListTools(t.Context(), &sdk.ListToolsParams{Cursor: cursor})
		if err != nil {
			t.Fatal(err)
		}
		large := 0
		for _, tool := range page.Tools {
			seen[tool.Name]++
			if strings.Contains(tool.Name, "_") && !slices.Contains(builtin, tool.Name) {
				large++
			}
		}
		if large*size > maxPage {
			t.Errorf("a page has %d large tools", large)
		}
		if cursor = page.NextCursor; cursor == "" {
			if pages < 2 {
				t.Errorf("there is %d page", pages)
			}
			break
		}
	}
	for _, name := range []string{"a_one", "b_four", "c_two", "extension_write", "code_run"} {
		if seen[name] != 1 {
			t.Errorf("%s is listed %d times", name, seen[name])
		}
	}
	if seen["code_run"]+3*each > len(seen) {
		t.Errorf("only %d tools are listed", len(seen))
	}
}

// TestCabinet fills a cabinet. The fullest shelf makes room.
func TestCabinet(t *testing.T) {
	c := newCabinet[string](10)
	small, large := c.shelf(8), c.shelf(8)
	kept, first := small.put("kept", 3), large.put("first", 3)
	second, third := large.put("second", 4), small.put("third", 2)
	for name, want := range map[string]bool{first: false, second: true} {
		if _, ok := large.get(name, false); ok != want {
			t.Errorf("it is there: %v, want %v", ok, want)
		}
	}
	for _, name := range []string{kept, third} {
		if _, ok := small.get(name, true); !ok {
			t.Error("a smaller shelf lost something")
		}
	}
	if c.used != 4 {
		t.Errorf("it holds %d", c.used)
	}
}

func TestShelf(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShelf[string](10)
		if name := s.put("large", 11); name != "" {
			t.Error("it takes what it has no room for")
		}
		one, two := s.put("one", 4), s.put("two", 4)
		if v, ok := s.get(one, false); !ok || v != "one" {
			t.Errorf("got %q, %v", v, ok)
		}
		three := s.put("three", 4)
		if _, ok := s.get(one, false); ok {
			t.Error("the oldest did not make room")
		}
		if v, ok := s.get(two, true); !ok || v != "two" {
			t.Errorf("got %q, %v", v, ok)
		}
		if _, ok := s.get(two, true); ok {
			t.Error("it is taken twice")
		}
		if s.used != 4 || len(s.items) != 1 {
			t.Errorf("it holds %d in %d", s.used, len(s.items))
		}
		time.Sleep(keepFor + time.Second)
		if _, ok := s.get(three, false); ok {
			t.Error("it is there for ever")
		}
		s.put("four", 1)
		if len(s.items) != 1 || s.used != 1 {
			t.Errorf("it holds %d in %d", s.used, len(s.items))
		}
	})
}

// Files of a tool that are empty do not pile up: each counts.
func TestEmptyFilesAreBounded(t *testing.T) {
	r := &request{endpoint: &endpoint{kept: newShelf[output](maxKept)}}
	var first string
	for range maxKept / 2048 {
		uri := r.keepFile(toolcontent.Part{Type: "file", MIMEType: "text/plain", Name: "a", Data: []byte{}})
		if uri == "" {
			t.Fatal("it is not kept")
		}
		if first == "" {
			first = strings.TrimPrefix(uri, outputURI)
		}
	}
	if _, ok := r.kept.get(first, false); ok {
		t.Errorf("%d empty files are kept", len(r.kept.items))
	}
}

// A result that is a list of pictures and texts is shown as such, and anything that only looks like one as JSON.
func TestPictures(t *testing.T) {
	const png = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=="
	for output, want := range map[string][]string{
		`{"content":[{"type":"image","data":"` + png + `","mimeType":"image/png"},{"type":"text","text":"a dot"}]}`:                                  {"image/png", "a dot"},
		` { "content":[{"type":"text","text":"a dot"}]}`:                                                                                             nil,
		`{"content":[{"type":"file","data":"aGk=","mimeType":"text/csv","name":"a.csv"},{"type":"audio","data":"T2dnUw==","mimeType":"audio/ogg"}]}`: {"stile://output/a.csv", "text/csv", "audio/ogg"},
		`{"content":[{"type":"file","data":"aGk=","mimeType":"text/csv","name":"a/b.csv"}]}`:                                                         nil,
		`{"content":[]}`: nil,
		`{"content":[{"type":"text","text":"a"}],"more":1}`:                                      nil,
		`{"content":[{"type":"image","data":"` + png + `","mimeType":"text/html"}]}`:             nil,
		`{"content":[{"type":"image","data":"aGVsbG8=","mimeType":"image/png"}]}`:                nil,
		`{"content":[{"type":"image","data":"` + png + `","mimeType":"image/jpeg"}]}`:            nil,
		`{"content":[{"type":"image","data":"!","mimeType":"image/png"}]}`:                       nil,
		`{"content":[{"type":"resource","text":"a"}]}`:                                           nil,
		`{"content":[{"type":"text","text":"a","uri":"file:///etc/passwd"}]}`:                    nil,
		`{"content":[` + strings.Repeat(`{"type":"text","text":"a"},`, 16) + `{"type":"text"}]}`: nil,
		`{"content":"text"}`: nil,
		`{"content":[{"type":"text","text":"a little"},{"type":"text","text":"too much"}]}`: nil,
	} {
		var got []string
		for _, c := range contentOf([]byte(output), 10, func(p toolcontent.Part) string { return outputURI + p.Name }) {
			switch c := c.(type) {
			case *sdk.TextContent:
				got = append(got, c.Text)
			case *sdk.ImageContent:
				got = append(got, c.MIMEType)
			case *sdk.AudioContent:
				got = append(got, c.MIMEType)
			case *sdk.ResourceLink:
				got = append(got, c.URI, c.MIMEType)
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("%.80s: got %q, want %q", output, got, want)
		}
	}
}
