package openapi_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stilehost/stile/capabilities/http"
	"github.com/stilehost/stile/extension"
	"github.com/stilehost/stile/extension/openapi"
	"github.com/stilehost/stile/internal/printable"
	"github.com/stilehost/stile/internal/usagetest"
)

const pets = `
openapi: 3.0.3
info: {title: "The Pet Store API", version: 2.1.0}
servers: [{url: "https://{region}.pets.example.com/v1/", variables: {region: {default: eu}}}]
paths:
  /pets/{petId}:
    parameters: [{name: petId, in: path, required: true, schema: {type: integer}}]
    get:
      operationId: getPetById
      summary: Find a pet
      description: "Finds a <b>pet</b> by its [number](https://docs.example.com). More follows."
      tags: [pet]
    post:
      operationId: updatePet
      tags: [pet]
      requestBody: {$ref: "#/components/requestBodies/pet"}
  /pets:
    get:
      tags: [store]
      parameters:
        - {name: filter, in: query, style: deepObject, explode: true, schema: {type: object, properties: {kind: {type: string, enum: [cat, dog]}}}}
        - {name: ids, in: query, explode: false, schema: {type: array, items: {type: integer}}}
        - {name: X-Trace, in: header, schema: {type: string, enum: [7], format: uuid, pattern: "(a+)+$"}}
        - {name: session, in: cookie, schema: {type: string}}
        - {name: Authorization, in: header, schema: {type: string}}
  /upload:
    post: {operationId: upload, requestBody: {content: {image/png: {schema: {type: string, format: binary}}}}}
components:
  securitySchemes: {key: {type: apiKey, in: header, name: X-Pet-Key}}
  requestBodies:
    pet: {required: true, content: {application/json: {schema: {$ref: "#/components/schemas/Pet"}}}}
  schemas:
    Pet:
      type: object
      required: [name, id]
      properties:
        id: {type: integer, readOnly: true}
        name: {type: string, nullable: true, minLength: 3}
        parent: {$ref: "#/components/schemas/Pet"}
        age: {type: number, minimum: 0, exclusiveMinimum: true}
`

type row struct {
	Name, Method, Path, Body, Description string
	Whole                                 bool
	Parameters                            []struct{ Key, In, Name, Style string }
	Input                                 json.RawMessage
}

func table(t *testing.T, d openapi.Draft) (server string, rows []row) {
	t.Helper()
	var made struct {
		Server     string
		Operations []row
	}
	if err := json.Unmarshal(d.Files[openapi.TableFile], &made); err != nil {
		t.Fatal(err)
	}
	return made.Server, made.Operations
}

// TestGenerate makes an extension of a document in YAML.
func TestGenerate(t *testing.T) {
	made, err := openapi.Generate([]byte(pets), openapi.Options{Credential: "pet-key"})
	if err != nil {
		t.Fatal(err)
	}
	if len(made.Drafts) != 1 || made.Drafts[0].Name != "pet-store" || made.As != "header:x-pet-key" || len(made.LeftOut) != 1 || !strings.Contains(made.LeftOut[0].Reason, "neither JSON") {
		t.Errorf("got %+v", made)
	}
	m, err := extension.Parse(made.Drafts[0].Manifest)
	if err != nil {
		t.Fatalf("%v\n%s", err, made.Drafts[0].Manifest)
	}
	binding, err := json.Marshal(m.Bindings[0])
	if err != nil {
		t.Fatal(err)
	}
	const rule = `{"http":[{"host":"eu.pets.example.com","methods":["GET","POST"],"path":"/v1/**","headers":["x-trace"],"credential":"pet-key","as":"header:x-pet-key"}]}`
	if string(binding) != rule || m.Version != "2.1.0" || strings.Join(m.Tools, " ") != "get_pet_by_id get_pets update_pet" {
		t.Errorf("got %s, %s, %v", binding, m.Version, m.Tools)
	}
	server, rows := table(t, made.Drafts[0])
	var got []string
	for _, r := range rows {
		got = append(got, fmt.Sprintf("%s %s %s %s %v %v %q %s", r.Name, r.Method, r.Path, r.Body, r.Whole, r.Parameters, r.Description, r.Input))
	}
	want := []string{
		`get_pets GET /pets  false [{filter query  deep} {ids query  comma} {X-Trace header  }] "GET /pets" {"additionalProperties":false,"properties":{"X-Trace":{"description":"One of 7","type":"string"},"filter":{"properties":{"kind":{"enum":["cat","dog"],"type":"string"}},"type":"object"},"ids":{"items":{"type":"integer"},"type":"array"}},"type":"object"}`,
		`get_pet_by_id GET /pets/{petId}  false [{petId path  }] "Find a pet. Finds a pet by its number. GET /pets/{petId}" {"additionalProperties":false,"properties":{"petId":{"type":"integer"}},"required":["petId"],"type":"object"}`,
		`update_pet POST /pets/{petId} json false [{petId path  }] "POST /pets/{petId}" {"properties":{"age":{"exclusiveMinimum":0,"type":"number"},"name":{"type":["string","null"]},"parent":{},"petId":{"type":"integer"}},"required":["petId","name"],"type":"object"}`,
	}
	if server != "https://eu.pets.example.com/v1" || !slices.Equal(got, want) {
		t.Errorf("got %s\n%s\nwant\n%s", server, strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// TestSwagger makes an extension of a document of version 2.0.
func TestSwagger(t *testing.T) {
	made, err := openapi.Generate([]byte(`{"swagger": "2.0", "info": {"title": "Workspace"}, "host": "API.example.com:8443", "basePath": "/v2", "schemes": ["http", "https"],
		"securityDefinitions": {"b": {"type": "basic"}},
		"paths": {"/a/{id}": {"post": {"operationId": "a", "parameters": [
			{"in": "path", "name": "id", "required": true, "type": "string"}, {"in": "query", "name": "tags", "type": "array", "items": {"type": "string"}, "collectionFormat": "pipes"},
			{"in": "formData", "name": "id", "type": "string"}, {"in": "formData", "name": "size", "type": "integer", "required": true}]}},
		"/b": {"post": {"parameters": [{"in": "body", "name": "b", "required": true, "schema": {"type": "array", "items": {"type": "string"}}}]}}}}`), openapi.Options{})
	if err != nil {
		t.Fatal(err)
	}
	server, rows := table(t, made.Drafts[0])
	if server != "https://api.example.com:8443/v2" || made.Drafts[0].Name != "api-workspace" || made.Auth[0].As != "basic" || len(rows) != 2 {
		t.Fatalf("got %s, %+v", server, made)
	}
	if a := rows[0]; a.Body != "form" || a.Parameters[1].Style != "pipe" || !strings.Contains(string(a.Input), `"required":["id","size"]`) {
		t.Errorf("got %+v %s", a, a.Input)
	}
	if b := rows[1]; b.Name != "post_b" || !b.Whole || !strings.Contains(string(b.Input), `"body":{"items":{"type":"string"},"type":"array"}`) {
		t.Errorf("got %+v %s", b, b.Input)
	}
}

// document is a document with some paths and other parts.
func document(paths, more string) []byte {
	return fmt.Appendf(nil, `{"openapi": "3.1.0", "info": {"title": "x"}, "servers": [{"url": "https://api.example.com/v1"}], "paths": {%s}%s}`, paths, more)
}

// TestRefused refuses documents that are none, that take too much, or whose server cannot be one.
func TestRefused(t *testing.T) {
	bomb := "a: &a [x,x,x,x,x,x,x,x,x,x]\n"
	for i := range 9 {
		c := 'a' + rune(i)
		bomb += fmt.Sprintf("%c: &%[1]c [%s*%c]\n", c+1, strings.Repeat(fmt.Sprintf("*%c,", c), 9), c)
	}
	server := func(url string) []byte {
		return fmt.Appendf(nil, `{"openapi": "3.0.0", "servers": [{"url": %q}], "paths": {"/a": {"get": {}}}}`, url)
	}
	for name, c := range map[string]struct {
		text string
		o    openapi.Options
		want string
	}{
		"empty":               {"", openapi.Options{}, "not an object"},
		"text":                {"hello", openapi.Options{}, "not an object"},
		"broken JSON":         {`{"openapi": `, openapi.Options{}, "not JSON"},
		"more after the end":  {`{"openapi": "3.0.0"} {}`, openapi.Options{}, "more after the end"},
		"broken YAML":         {"a: [b", openapi.Options{}, "not YAML"},
		"not UTF-8":           {"{\"a\": \"\xff\"}", openapi.Options{}, "UTF-8"},
		"too large":           {strings.Repeat(" ", openapi.MaxDocument+1), openapi.Options{}, "at most"},
		"large YAML":          {strings.Repeat("# \n", 3<<20), openapi.Options{}, "as YAML"},
		"aliases":             {bomb, openapi.Options{}, "more than 3000000 values"},
		"an alias of itself":  {"a: &a [*a]", openapi.Options{}, "not YAML|nested"},
		"deep JSON":           {strings.Repeat(`{"a":`, 5000) + "1" + strings.Repeat("}", 5000), openapi.Options{}, "nested"},
		"deep YAML":           {"a: " + strings.Repeat("[", 500_000), openapi.Options{}, "nested"},
		"deep lists":          {strings.Repeat("- ", 1<<20) + "a", openapi.Options{}, "not YAML|nested"},
		"deep keys":           {strings.Repeat("? ", 1<<20) + "a", openapi.Options{}, "not YAML|nested|not text"},
		"many values":         {`{"a": [` + strings.Repeat("1,", 4_000_000) + "1]}", openapi.Options{}, "more than"},
		"no version":          {`{"paths": {}}`, openapi.Options{}, "neither"},
		"another version":     {`{"openapi": "4.0.0"}`, openapi.Options{}, "not known"},
		"an old version":      {`{"swagger": "1.2"}`, openapi.Options{}, "not known"},
		"no server":           {`{"openapi": "3.0.0", "paths": {"/a": {"get": {}}}}`, openapi.Options{}, "no server"},
		"relative server":     {string(server("/v1")), openapi.Options{}, "not an absolute URL"},
		"userinfo":            {string(server("https://user:pass@example.com")), openapi.Options{}, "user name"},
		"a query":             {string(server("https://example.com/?a=b")), openapi.Options{}, "query"},
		"a wildcard":          {string(server("https://*.example.com")), openapi.Options{}, "no plain host"},
		"a glob":              {string(server("https://example.com/**")), openapi.Options{}, "not plain"},
		"dots":                {string(server("https://example.com/a/../b")), openapi.Options{}, "not plain"},
		"encoded dots":        {string(server("https://example.com/%2e%2e/b")), openapi.Options{}, "not plain"},
		"open variable":       {string(server("https://{host}/v1")), openapi.Options{}, "not a URL"},
		"another scheme":      {string(server("file:///etc/passwd")), openapi.Options{}, "not an absolute URL|not https"},
		"a bad port":          {string(server("https://example.com:99999")), openapi.Options{}, "port"},
		"nothing in it":       {string(document("", "")), openapi.Options{}, "no operation"},
		"nothing chosen":      {string(document(`"/a": {"get": {"tags": ["t"]}}`, "")), openapi.Options{Tags: []string{"u"}}, "the tags are: t"},
		"a bad name":          {string(document(`"/a": {"get": {}}`, "")), openapi.Options{Name: "A b"}, "--name"},
		"a long name":         {string(document(`"/a": {"get": {}}`, "")), openapi.Options{Name: strings.Repeat("a", 40)}, "--name"},
		"a bad glob":          {string(document(`"/a": {"get": {}}`, "")), openapi.Options{Include: []string{"["}}, "--include"},
		"as alone":            {string(document(`"/a": {"get": {}}`, "")), openapi.Options{As: "bearer"}, "--credential"},
		"a bad server option": {string(document(`"/a": {"get": {}}`, "")), openapi.Options{Server: "example.com"}, "--server"},
	} {
		made, err := openapi.Generate([]byte(c.text), c.o)
		said := (*openapi.DocumentError)(nil)
		option := (*openapi.OptionError)(nil)
		if !errors.As(err, &said) && !errors.As(err, &option) {
			t.Errorf("%s: got %+v, %v", name, made, err)
			continue
		}
		if !slices.ContainsFunc(strings.Split(c.want, "|"), func(want string) bool { return strings.Contains(err.Error(), want) }) || len(err.Error()) > 2000 {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

// TestHostileOperations leaves out what could reach another path, and bounds the rest.
func TestHostileOperations(t *testing.T) {
	var paths []string
	for _, p := range []string{
		"/../admin", "//evil.example.com/a", "/a/%2e%2e/b", "/a?b=c", "/a\\b", "/a b", "/a/./b", "/a//b", "a", "/{a", "/a}", "/{}", "/{{a}}", "/a\u202eb", "/{missing}", "/http://evil.example.com",
	} {
		paths = append(paths, fmt.Sprintf(`%q: {"get": {}}`, p))
	}
	paths = append(paths,
		`"/ok": {"get": {"operationId": "same", "summary": "One\u202e\u0007 */ two"}, "post": {"operationId": "same", "requestBody": {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/a"}}}}}, "put": {"operationId": "\u202e"}}`,
		`"/external": {"$ref": "https://evil.example.com/paths.json"}`, `"/param": {"get": {"parameters": [{"$ref": "other.yaml#/x"}]}}`, `"/body": {"post": {"requestBody": {"$ref": "file:///etc/passwd"}}}`,
		`"/cycle": {"get": {"parameters": [{"$ref": "#/components/parameters/c"}]}}`, `"/else": {"get": {"servers": [{"url": "https://evil.example.com"}]}}`,
		`"/proto": {"post": {"operationId": "__proto__", "requestBody": {"content": {"application/json": {"schema": {"properties": {"__proto__": {"type": "string"}, "a\u202e": {}, "ok": {}}}}}}}}`,
		`"/crlf": {"get": {"parameters": [{"in": "header", "name": "a\r\nb", "required": true}]}}`, `"/two/{id}": {"get": {"parameters": [{"in": "path", "name": "id"}, {"in": "query", "name": "id"}]}}`,
	)
	wide := []string{}
	for i := range 3000 {
		wide = append(wide, fmt.Sprintf(`"p%d": {"$ref": "#/components/schemas/a"}`, i))
	}
	more := `, "components": {"parameters": {"c": {"$ref": "#/components/parameters/c"}}, "schemas": {"a": {"type": "object", "properties": {` + strings.Join(wide, ",") + `}}}}`
	made, err := openapi.Generate(document(strings.Join(paths, ","), more), openapi.Options{})
	if err != nil {
		t.Fatal(err)
	}
	_, rows := table(t, made.Drafts[0])
	var names []string
	for _, r := range rows {
		names = append(names, r.Name)
		if strings.Contains(string(r.Input), "__proto__") || len(r.Input) > 10_000 {
			t.Errorf("%s: the input is %.300s", r.Name, r.Input)
		}
	}
	if got := strings.Join(names, " "); got != "same put_ok same_2 proto get_two_id" {
		t.Errorf("got %s", got)
	}
	if i := slices.IndexFunc(rows, func(r row) bool { return r.Name == "get_two_id" }); i < 0 || rows[i].Parameters[1].Key != "query_id" || rows[i].Parameters[1].Name != "id" {
		t.Errorf("got %+v", rows)
	}
	t.Logf("left out: %+v", made.LeftOut)
}

// TestMany makes several extensions of many operations, by tags, and lets the caller choose.
func TestMany(t *testing.T) {
	var paths []string
	for i := range 3200 {
		paths = append(paths, fmt.Sprintf(`"/%05d/{id}": {"get": {"operationId": "op_%d", "tags": ["t%d"], "parameters": [{"in": "path", "name": "id", "required": true, "schema": {"type": "string", "description": %q}}]}}`,
			i, i, i%7, strings.Repeat("long ", 300)))
	}
	text := document(strings.Join(paths, ","), "")
	made, err := openapi.Generate(text, openapi.Options{Name: "many"})
	if err != nil {
		t.Fatal(err)
	}
	all, shape := map[string]bool{}, ""
	for _, d := range made.Drafts {
		shape += fmt.Sprintf("%s:%d:%s ", d.Name, d.Tools, strings.Join(d.Tags, ","))
		m, err := extension.Parse(d.Manifest)
		if err != nil {
			t.Fatal(err)
		}
		if problems := m.CheckNames(nil, func(string) string { return "" }); len(problems) > 0 {
			t.Errorf("got %v", problems)
		}
		for _, name := range m.Tools {
			all[name] = true
		}
	}
	if len(all) != 3200 || shape != "many:915:t0,t1 many-2:914:t2,t3 many-3:914:t4,t5 many-4:457:t6 " {
		t.Errorf("%d tools in %s", len(all), shape)
	}
	made, err = openapi.Generate(text, openapi.Options{Name: "many", Tags: []string{"T3"}, Include: []string{"op_1?", "/00024/**"}})
	if err != nil || len(made.Drafts) != 1 || made.Drafts[0].Tools != 3 { // 10, 17 and 24
		t.Errorf("got %+v, %v", made, err)
	}
}

// TestManyOfOneName has operations that all want the same name, or names that are the same once they are cut.
func TestManyOfOneName(t *testing.T) {
	const many = 100_000
	for _, id := range []string{"same", strings.Repeat("long", 30)} {
		var paths []string
		for i := range many {
			paths = append(paths, fmt.Sprintf(`"/%d": {"get": {"operationId": %q}}`, i, id))
		}
		before := usagetest.Processor()
		_, err := openapi.Generate(document(strings.Join(paths, ","), ""), openapi.Options{Name: "many"})
		if err == nil || !strings.Contains(err.Error(), "100000 operations are more than 16 extensions can have") {
			t.Errorf("got %v", err)
		}
		if took := usagetest.Processor() - before; took > 15*time.Second {
			t.Errorf("it took %v", took)
		}
	}
}

// TestManyParameters has operations with many parameters, which are made again with less and less detail.
func TestManyParameters(t *testing.T) {
	var shared, paths []string
	for i := range 190 {
		shared = append(shared, fmt.Sprintf(`{"in": "query", "name": "p%d", "schema": {"type": "string"}}`, i))
	}
	for i := range 1000 {
		paths = append(paths, fmt.Sprintf(`"/%d": {"parameters": [%s], "get": {}}`, i, strings.Join(shared, ",")))
	}
	_, err := openapi.Generate(document(strings.Join(paths, ","), ""), openapi.Options{Name: "many"})
	if err == nil || !strings.Contains(err.Error(), "takes too long") {
		t.Errorf("got %v", err)
	}
}

// TestWorkIsBounded has operations share parts that take long to visit: large lists and objects, long texts, and references of many steps. What
// is not counted makes any of these take minutes or hours.
func TestWorkIsBounded(t *testing.T) {
	repeat := func(n int, part string) string {
		parts := make([]string, n)
		for i := range parts {
			parts[i] = strings.ReplaceAll(part, "@", fmt.Sprint(i))
		}
		return strings.Join(parts, ",")
	}
	const deep, steps = 120, 30
	links := ""
	for i := range steps {
		links += fmt.Sprintf(`"r%d": {"$ref": "#/d%s/r%d"}, `, i, strings.Repeat("/a", deep), i+1)
	}
	chain := `, "d": ` + strings.Repeat(`{"a": `, deep) + "{" + links + `"r30": {}}` + strings.Repeat("}", deep)
	parameter := func(schema string) string { return `, "P": {"in": "query", "name": "q", "schema": ` + schema + "}" }
	properties := func(n int, schema string) string {
		return parameter(`{"type": "object", "properties": {` + repeat(n, `"p@": `+schema) + "}}")
	}
	const get, post, item = `{"get": {"parameters": [{"$ref": "#/P"}]}}`, `{"post": {"requestBody": {"$ref": "#/B"}}}`, `{"$ref": "#/I"}`
	openapi.SetMaxWork(t, 2_000_000)
	for name, c := range map[string]struct{ operation, more string }{
		"texts":      {get, properties(180, `{"$ref": "#/D"}`) + `, "D": {"description": "` + strings.Repeat("ab ", 700) + `"}`},
		"types":      {get, properties(180, `{"$ref": "#/D"}`) + `, "D": {"type": [` + repeat(100_000, `"x"`) + "]}"},
		"references": {get, properties(180, `{"$ref": "#/d`+strings.Repeat("/a", deep)+`/r0"}`) + chain},
		"properties": {get, properties(500_000, "0")},
		"values":     {get, parameter(`{"enum": [` + repeat(199, `"x@"`) + "," + repeat(500_000, `"x198"`) + "]}")},
		"media":      {post, `, "B": {"content": {` + repeat(300_000, `"m@": 0`) + "}}"},
		"parameters": {item, `, "I": {"get": {}, "parameters": [` + repeat(300_000, `{"$ref": "#/P"}`) + "]}" + parameter("{}")},
		"tags":       {item, `, "I": {"get": {"tags": [` + repeat(300_000, `"t"`) + "]}}"},
		"variables":  {item, `, "I": {"get": {"servers": [{"url": "/x", "variables": {` + repeat(300_000, `"v@": 0`) + "}}]}}"},
	} {
		before := usagetest.Processor()
		_, err := openapi.Generate(document(repeat(1000, `"/p@": `+c.operation), c.more), openapi.Options{})
		if err == nil || !strings.Contains(err.Error(), "takes too long") {
			t.Errorf("%s: %v", name, err)
		}
		if took := usagetest.Processor() - before; took > 10*time.Second {
			t.Errorf("%s: it took %v", name, took)
		}
	}
}

// FuzzGenerate makes drafts that the next stages can take, or a typed error.
func FuzzGenerate(f *testing.F) {
	f.Add([]byte(pets))
	f.Add(document(`"/a/{b}": {"get": {"parameters": [{"in": "path", "name": "b", "schema": {"allOf": [{"$ref": "#/x"}, {"enum": [1, null]}]}}]}}`, `, "x": {"oneOf": [{"$ref": "#/x"}]}`))
	f.Add([]byte("swagger: '2.0'\nhost: a.example.com\npaths: {/a: {post: {parameters: [{in: body, schema: {type: [object, 'null']}}, &a {in: query, name: q}, *a]}}}\n<<: {x: 1}"))
	f.Fuzz(func(t *testing.T, text []byte) {
		made, err := openapi.Generate(text, openapi.Options{Credential: "secret"})
		if err != nil {
			if said := (*openapi.DocumentError)(nil); !errors.As(err, &said) {
				t.Fatalf("got %v", err)
			}
			return
		}
		for _, d := range made.Drafts {
			m, err := extension.Parse(d.Manifest)
			if err != nil {
				t.Fatalf("%v\n%s", err, d.Manifest)
			}
			if problems := m.CheckNames(nil, func(string) string { return "" }); len(problems) > 0 {
				t.Fatalf("got %v", problems)
			}
			if rule := m.Bindings[0].Grant.(http.Rights); len(m.Bindings) != 1 || len(rule.Rules) != 1 {
				t.Fatalf("got %+v", m.Bindings)
			}
			_, rows := table(t, d)
			for _, r := range rows {
				if path.Clean(r.Path) != strings.TrimRight(r.Path, "/") && r.Path != "/" || strings.ContainsAny(r.Path, "?#%\\") {
					t.Fatalf("the path is %q", r.Path)
				}
				if at := printable.NextUnseen(r.Description); at >= 0 {
					t.Fatalf("the description hides something: %q", r.Description)
				}
			}
		}
	})
}
