package extension

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/stilehost/stile/capabilities/blob"
	"github.com/stilehost/stile/capabilities/clock"
	"github.com/stilehost/stile/capabilities/code"
	"github.com/stilehost/stile/capabilities/console"
	"github.com/stilehost/stile/capabilities/http"
	"github.com/stilehost/stile/capabilities/kv"
	"github.com/stilehost/stile/capabilities/random"
	"github.com/stilehost/stile/capabilities/sandbox"
	"github.com/stilehost/stile/capabilities/workspace"
	"github.com/stilehost/stile/capability"
)

const (
	exampleGrant = `one capability, like {"http": [{"host": "api.example.com"}]} or {"kv": true}`
	exampleRule  = `{"host": "api.example.com", "methods": ["GET"], "path": "/repos/**"}`
	exampleHTTP  = "NAME=http:https://api.example.com/repos/**,methods=GET+POST"
)

// with is a valid manifest with further fields, which start its second line.
func with(fields string) string {
	return `{"name": "notes", "version": "1.0.0", "description": "Keeps notes", "tools": ["add"],` + "\n" + fields + "}"
}

var valid = []struct {
	name, text string
	want       []Binding
}{
	{"nothing asked for", with(`"bindings": {}`), nil},
	{
		"short form",
		with(`"permissions": {"network": ["api.github.com", "*.Example.com"], "workspace": "read-write", "kv": true, "clock": true}`),
		[]Binding{
			{"clock", clock.Kind.On()},
			{"kv", kv.Rights{}},
			{"network", http.Rights{Rules: []http.Rule{
				{Host: "api.github.com", Methods: []string{"*"}},
				{Host: "*.Example.com", Methods: []string{"*"}},
			}}},
			{"workspace", workspace.Rights{Path: "/", Access: workspace.ReadWrite}},
		},
	},
	{
		"long form",
		with(`"bindings": {
				"github": {"http": [{"host": "api.github.com", "methods": ["GET", "POST"], "path": "/repos/**", "headers": ["x-id"], "credential": "github-token", "as": "header:x-key"},
				                    {"scheme": "http", "host": "127.0.0.1", "port": 8080, "maxResponse": 1024}]},
				"notes": {"workspace": {"path": "/notes", "access": "read-write"}},
				"docs": {"workspace": {}},
				"dice": {"random": true}, "log": {"console": true}, "bytes": {"blob": true},
				"crm": {"acme:crm/contacts@1.0.0": {"b": 1.50, "a": ["<&>"]}}}`),
		[]Binding{
			{"bytes", blob.Kind.On()},
			{"crm", capability.Custom{Name: "acme:crm/contacts@1.0.0", Config: json.RawMessage(`{"a":["<&>"],"b":1.50}`)}},
			{"dice", random.Kind.On()},
			{"docs", workspace.Rights{Path: "/", Access: workspace.Read}},
			{"github", http.Rights{Rules: []http.Rule{
				{Host: "api.github.com", Methods: []string{"GET", "POST"}, Path: "/repos/**", Headers: []string{"x-id"}, Credential: "github-token", As: "header:x-key"},
				{Scheme: "http", Host: "127.0.0.1", Port: 8080, MaxResponse: 1024},
			}}},
			{"log", console.Kind.On()},
			{"notes", workspace.Rights{Path: "/notes", Access: workspace.ReadWrite}},
		},
	},
	{
		"dependencies and tests",
		with(`"permissions": {"kv": true}, "dependencies": {"zod": "^4.0.0", "@scope/a.b_c": "1.x || >=2.0.0-rc.1 <3 || 1.2.3 - 2"},
				"tests": [{"tool": "add", "input": {"b": 1.0, "a": null}, "expect": null, "name": "adds", "env": {"kv": {"a": 1}}}, {"tool": "add", "input": 1, "error": "no\nsuch"}]`),
		[]Binding{{"kv", kv.Rights{}}},
	},
	{"tags", with(`"tags": ["issue-tracker", "a1", "` + strings.Repeat("a", 32) + `"]`), nil},
	{
		"both forms",
		with(`"permissions": {"workspace": "read"}, "bindings": {"cache": {"kv": true}}`),
		[]Binding{{"cache", kv.Rights{}}, {"workspace", workspace.Rights{Path: "/", Access: workspace.Read}}},
	},
	{
		"code",
		with(`"permissions": {"kv": true}, "bindings": {"bare": {"code": {}}, "docs": {"workspace": {}}, "runner": {"code": {"env": ["kv", "docs", "clock"], "runs": 3, "seconds": 2, "megabytes": 16, "bytes": 1000}}}`),
		[]Binding{
			{"bare", code.Rights{}},
			{"docs", workspace.Rights{Path: "/", Access: workspace.Read}},
			{"kv", kv.Rights{}},
			{"runner", code.Rights{Env: []string{"clock", "docs", "kv"}, Limits: code.Limits{Runs: 3, CPU: 2 * time.Second, Memory: 16 << 20, Bytes: 1000}}},
		},
	},
	{
		"network of a sandbox",
		with(`"bindings": {"box": {"sandbox": {"image": "host", "network": [{"scheme": "HTTPS", "host": "a.example.com"}]}}, "git": {"sandbox": {"image": "host", "network": [{"host": "a.example.com", "path": "/x", "credential": "c"}], "intercept": true}}}`),
		[]Binding{
			{"box", sandbox.Rights{Image: "host", Network: []http.Rule{{Scheme: "HTTPS", Host: "a.example.com"}}}},
			{"git", sandbox.Rights{Image: "host", Network: []http.Rule{{Host: "a.example.com", Path: "/x", Credential: "c"}}, Intercept: true}},
		},
	},
	{
		"a binding whose files node's fs has",
		with(`"permissions": {"workspace": "read"}, "fs": "workspace"`),
		[]Binding{{"workspace", workspace.Rights{Path: "/", Access: workspace.Read}}},
	},
	{
		"bindings that serve WASI",
		with(`"permissions": {"network": ["example.com"], "workspace": "read"}, "wasi": {"filesystem": {"/": "workspace", "/data": "workspace"}, "http": "network"}`),
		[]Binding{
			{"network", http.Rights{Rules: []http.Rule{{Host: "example.com", Methods: []string{"*"}}}}},
			{"workspace", workspace.Rights{Path: "/", Access: workspace.Read}},
		},
	},
	{"durable", with(`"durable": {"add": true}`), nil},
	{"durable with attempts", with(`"durable": {"add": {"retry": {"attempts": 100, "first": "1ms", "factor": 1, "longest": "720h", "outcomes": ["failed", "interrupted", "limit", "trap"]}}}`), nil},
	{"durable with a deadline", with(`"durable": {"add": {"deadline": "72h"}}`), nil},
	{"vars", with(`"vars": {
		"team": {"type": "string", "description": "Whose issues.", "default": "core", "enum": ["core", "web"]}, "limit": {"type": "integer", "minimum": 1, "maximum": 50, "default": 20},
		"max_tokens": {"type": "number"}, "dry": {"type": "boolean", "default": false}, "labels": {"type": "array", "items": {"type": "string"}, "maxItems": 3, "default": ["bug"]}, "title": {"type": "string", "minLength": 1, "maxLength": 9}
	}, "tests": [{"tool": "add", "input": {}, "expect": 1, "vars": {"team": "web", "limit": 3}}]`), nil},
}

func TestParse(t *testing.T) {
	for _, tt := range valid {
		t.Run(tt.name, func(t *testing.T) {
			m, err := Parse([]byte(tt.text))
			if err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(m.Bindings, tt.want) {
				t.Errorf("got  %+v\nwant %+v", m.Bindings, tt.want)
			}
			if m.Name != "notes" || m.Version != "1.0.0" || m.Description != "Keeps notes" || !reflect.DeepEqual(m.Tools, []string{"add"}) {
				t.Errorf("got %+v", m)
			}
		})
	}
}

var refused = []struct{ name, text, want string }{
	{"nothing", ``, `line 1, column 1: this is not JSON: unexpected end of JSON input; write one JSON object`},
	{"cut off", `{"name":`, `line 1, column 8: this is not JSON: unexpected end of JSON input; write one JSON object`},
	{"text after it", "{}\n {}", `line 2, column 2: this is not JSON: invalid character '{' after top-level value; write one JSON object`},
	{"a comment", "{\n  // hi\n}", `line 2, column 3: this is not JSON: invalid character '/' looking for beginning of object key string; write one JSON object`},
	{"a list", `[]`, `line 1, column 1: a list where an object belongs; write ` + exampleManifest},
	{"not UTF-8", "{\"näme\xff\": 1}", `line 1, column 7: the text is not UTF-8; write UTF-8 text`},
	{"too large", strings.Repeat(" ", 300_000), `line 1, column 262145: the manifest has 300000 bytes; write at most 262144 bytes`},
	{"too deep", strings.Repeat("[", 5000) + strings.Repeat("]", 5000), `line 1, column 17: ` + strings.Repeat("[0]", 16) + `: values are nested too deep; write at most 16 levels`},
	{"no version", `{"name": "a", "description": "d", "tools": ["t"]}`, `line 1, column 1: the field "version" is missing; write ` + exampleManifest},
	{"a typing error", with(`"permisssions": {}`), `line 2, column 1: permisssions: there is no such field; write "permissions"`},
	{"an unknown field", with(`"main": "x.ts"`), `line 2, column 1: main: there is no such field; write one of name, version, description, tools, tags, permissions, bindings, wasi, fs, vars, durable, dependencies, tests`},
	{"files of WASI without a binding", with(`"wasi": {"filesystem": {"/": "notes"}}`), `line 2, column 30: wasi.filesystem["/"]: the binding "notes" does not exist; write the name of a binding of this manifest`},
	{"files of node without a binding", with(`"fs": "notes"`), `line 2, column 7: fs: the binding "notes" does not exist; write the name of a binding of this manifest`},
	{"files of node of kv", with(`"permissions": {"kv": true}, "fs": "kv"`), `line 2, column 36: fs: the binding "kv" is of stile:capability/kv@0.1.0, not of stile:capability/workspace@0.1.0; write the name of a binding of this manifest`},
	{"files of node at paths", with(`"permissions": {"workspace": "read"}, "fs": {"/": "workspace"}`), `line 2, column 45: fs: an object where text belongs; write "notes"`},
	{"files of WASI of kv", with(`"permissions": {"kv": true}, "wasi": {"filesystem": {"/": "kv"}}`), `line 2, column 59: wasi.filesystem["/"]: the binding "kv" is of stile:capability/kv@0.1.0, not of stile:capability/workspace@0.1.0; write the name of a binding of this manifest`},
	{"files of WASI at dots", with(`"permissions": {"workspace": "read"}, "wasi": {"filesystem": {"/a/..": "workspace"}}`), `line 2, column 63: wasi.filesystem["/a/.."]: "/a/.." has empty names, "." or "..": "/" is the same; write a path like "/" or "/data"`},
	{"durable that is no object", with(`"durable": ["add"]`), `line 2, column 12: durable: a list where an object belongs; write ` + exampleDurable},
	{"a durable tool that is not there", with(`"durable": {"ad": true}`), `line 2, column 13: durable.ad: there is no tool "ad"; write one of add`},
	{"a tool that is not durable", with(`"durable": {"add": false}`), `line 2, column 20: durable.add: false says nothing; write ` + exampleDurable + `; leave out a tool that is not durable`},
	{"a deadline that is no time", with(`"durable": {"add": {"deadline": "soon"}}`), `line 2, column 33: durable.add.deadline: "soon" is no such time; write a time like "72h" or "90m", from 1s to 8784h`},
	{"a deadline that is too long", with(`"durable": {"add": {"deadline": "9000h"}}`), `line 2, column 33: durable.add.deadline: "9000h" is no such time; write a time like "72h" or "90m", from 1s to 8784h`},
	{"attempts that are no object", with(`"durable": {"add": {"retry": 5}}`), `line 2, column 30: durable.add.retry: a number where an object belongs; write {"attempts": 5, "first": "1s", "factor": 2, "longest": "1h", "outcomes": ["failed"]}; only attempts is needed`},
	{"attempts without a number", with(`"durable": {"add": {"retry": {}}}`), `line 2, column 30: durable.add.retry: the field "attempts" is missing; write {"attempts": 5, "first": "1s", "factor": 2, "longest": "1h", "outcomes": ["failed"]}; only attempts is needed`},
	{"a single attempt", with(`"durable": {"add": {"retry": {"attempts": 1}}}`), `line 2, column 43: durable.add.retry.attempts: this is no such number; write how many attempts there are in all: a whole number from 2 to 100`},
	{"too many attempts", with(`"durable": {"add": {"retry": {"attempts": 101}}}`), `line 2, column 43: durable.add.retry.attempts: this is no such number; write how many attempts there are in all: a whole number from 2 to 100`},
	{"half an attempt", with(`"durable": {"add": {"retry": {"attempts": 2.5}}}`), `line 2, column 43: durable.add.retry.attempts: this is no such number; write how many attempts there are in all: a whole number from 2 to 100`},
	{"attempts as text", with(`"durable": {"add": {"retry": {"attempts": "2"}}}`), `line 2, column 43: durable.add.retry.attempts: this is no such number; write how many attempts there are in all: a whole number from 2 to 100`},
	{"a first delay that is no time", with(`"durable": {"add": {"retry": {"attempts": 2, "first": "soon"}}}`), `line 2, column 55: durable.add.retry.first: "soon" is no such time; write the time before the second attempt, like "1s" or "5m", at most 720h`},
	{"a first delay that is too long", with(`"durable": {"add": {"retry": {"attempts": 2, "first": "721h"}}}`), `line 2, column 55: durable.add.retry.first: "721h" is no such time; write the time before the second attempt, like "1s" or "5m", at most 720h`},
	{"a longest delay of nothing", with(`"durable": {"add": {"retry": {"attempts": 2, "longest": "0s"}}}`), `line 2, column 57: durable.add.retry.longest: "0s" is no such time; write the longest delay, like "1h", at most 720h`},
	{"a factor below 1", with(`"durable": {"add": {"retry": {"attempts": 2, "factor": 0.5}}}`), `line 2, column 56: durable.add.retry.factor: this is no such number; write how many times longer each further delay is: a number from 1 to 100`},
	{"an outcome that is not retried", with(`"durable": {"add": {"retry": {"attempts": 2, "outcomes": ["cancelled"]}}}`), `line 2, column 59: durable.add.retry.outcomes[0]: "cancelled" is not retried; write some of failed, interrupted, limit, trap`},
	{"an outcome twice", with(`"durable": {"add": {"retry": {"attempts": 2, "outcomes": ["failed", "failed"]}}}`), `line 2, column 69: durable.add.retry.outcomes[1]: "failed" is there twice; write some of failed, interrupted, limit, trap`},
	{"vars that are no object", with(`"vars": ["team"]`), `line 2, column 9: vars: a list where an object belongs; write {"team": {"type": "string", "description": "whose issues", "default": "core"}}`},
	{"a var without a type", with(`"vars": {"team": {"default": "x"}}`), `line 2, column 18: vars.team: the field "type" is missing; write {"type": "string", "description": "what it is for", "default": "core"}`},
	{"a var of a type that forms lack", with(`"vars": {"team": {"type": "object"}}`), `line 2, column 27: vars.team.type: the type is "object"; write "string", "number", "integer", "boolean" or "array"`},
	{"a var with a pattern", with(`"vars": {"team": {"type": "string", "pattern": "(a+)+$"}}`), `line 2, column 37: vars.team.pattern: there is no such field; write one of type, description, default, enum, items, minimum, maximum, minLength, maxLength, maxItems`},
	{"a var with a default of another type", with(`"vars": {"n": {"type": "integer", "default": "1"}}`), `line 2, column 46: vars.n.default: the default must be a number; write a value that fits the schema`},
	{"a var with a default that is too small", with(`"vars": {"n": {"type": "integer", "minimum": 2, "default": 1}}`), `line 2, column 60: vars.n.default: the default must be at least 2; write a value that fits the schema`},
	{"a var with a length of a number", with(`"vars": {"n": {"type": "integer", "maxLength": 2}}`), `line 2, column 48: vars.n.maxLength: maxLength does not apply to the type "integer"; write it with the type string`},
	{"a var named like a promise", with(`"vars": {"then": {"type": "string"}}`), `line 2, column 10: vars.then: "then" means something else in JavaScript; write a lower-case name, like "team"`},
	{"a var that changes all objects", with(`"vars": {"__proto__": {"type": "string"}}`), `line 2, column 10: vars.__proto__: "__proto__" must start with a-z, and have only a-z, 0-9 and "_"; write a lower-case name, like "team"`},
	{"a var for a secret", with(`"vars": {"api_key": {"type": "string"}}`), `line 2, column 10: vars.api_key: "api_key" sounds like a secret, and vars are not secret; write a credential of an http binding, which the code never sees`},
	{"a var with text that hides", with(`"vars": {"team": {"type": "string", "description": "a\u202eb"}}`), `line 2, column 52: vars.team.description: the text holds the character '\u202e'; write printable text`},
	{"a var of lists of lists", with(`"vars": {"l": {"type": "array", "items": {"type": "array"}}}`), `line 2, column 51: vars.l.items.type: items are "array"; write "string"`},
	{"a var of lists of nothing", with(`"vars": {"l": {"type": "array"}}`), `line 2, column 15: vars.l: there are no items; write "items": {"type": "string"}`},
	{"a test of a var that is not there", with(`"vars": {"team": {"type": "string"}}, "tests": [{"tool": "create_pr", "input": 1, "expect": 1, "vars": {"tem": "x"}}]`), `line 2, column 58: tests[0].tool: "create_pr" is not among the tools; write one of tools`},
	{"a test of a var that does not fit", with(`"vars": {"team": {"type": "string"}}, "tests": [{"tool": "create_pr", "input": 1, "expect": 1, "vars": {"team": 1}}]`), `line 2, column 58: tests[0].tool: "create_pr" is not among the tools; write one of tools`},
	{"a test of vars where there are none", with(`"tests": [{"tool": "create_pr", "input": 1, "expect": 1, "vars": {}}]`), `line 2, column 20: tests[0].tool: "create_pr" is not among the tools; write one of tools`},
	{"files of WASI nowhere", with(`"permissions": {"workspace": "read"}, "wasi": {"filesystem": {"data": "workspace"}}`), `line 2, column 63: wasi.filesystem.data: "data" does not begin with "/"; write a path like "/" or "/data"`},
	{"more of WASI", with(`"wasi": {"sockets": "x"}`), `line 2, column 10: wasi.sockets: there is no such field; write one of filesystem, http`},
	{"http of WASI of a workspace", with(`"permissions": {"workspace": "read"}, "wasi": {"http": "workspace"}`), `line 2, column 56: wasi.http: the binding "workspace" is of stile:capability/workspace@0.1.0, not of stile:capability/http@0.1.0; write the name of a binding of this manifest`},
	{"a doubled field", with(`"tools": ["steal"]`), `line 2, column 1: tools: this field appears twice; write each field once`},
	{"a doubled field, escaped", with(`"t\u006fols": ["steal"]`), `line 2, column 1: tools: this field appears twice; write each field once`},
	{"code with a binding that is not there", with(`"bindings": {"runner": {"code": {"env": ["notes"]}}}`), `line 2, column 24: bindings.runner: the binding "runner" passes on "notes", and there is no such binding; write the names of bindings of this manifest`},
	{"code with itself", with(`"bindings": {"runner": {"code": {"env": ["runner"]}}}`), `line 2, column 24: bindings.runner: the binding "runner" passes on "runner", which cannot be passed on; write the names of other bindings`},
	{"code with what runs code", with(`"bindings": {"other": {"code": {}}, "runner": {"code": {"env": ["other"]}}}`), `line 2, column 47: bindings.runner: the binding "runner" passes on "other", which cannot be passed on; write the names of other bindings`},
	{"code with a binding twice", with(`"bindings": {"kv": {"kv": true}, "runner": {"code": {"env": ["kv", "kv"]}}}`), `line 2, column 68: bindings.runner.code.env[1]: the binding "kv" is here twice; write names of bindings, each once, like "notes"`},
	{"code with too many runs", with(`"bindings": {"runner": {"code": {"runs": 10001}}}`), `line 2, column 42: bindings.runner.code.runs: "10001" is no number of runs for code; write a number from 1 to 10000`},
	{"code without limits", with(`"bindings": {"runner": {"code": {"seconds": 0}}}`), `line 2, column 45: bindings.runner.code.seconds: "0" is no number of seconds for code; write a number from 1 to 600`},
	{"code with a binding under no name", with(`"bindings": {"runner": {"code": {"env": ["A b"]}}}`), `line 2, column 42: bindings.runner.code.env[0]: "A b" cannot name a binding; write names of bindings, each once, like "notes"`},
	{"a field that hides", with(`"a\u202eb": 1`), `line 2, column 1: ["a\u202eb"]: there is no such field; write one of name, version, description, tools, tags, permissions, bindings, wasi, fs, vars, durable, dependencies, tests`},

	{"name in capitals", `{"name": "Notes", "version": "1.0.0", "description": "d", "tools": ["t"]}`, `line 1, column 10: name: "Notes" does not have this form; write lower-case words with "-" between them, like "my-notes"`},
	{"name with escapes", `{"name": "a\u001b[2J", "version": "1.0.0", "description": "d", "tools": ["t"]}`, `line 1, column 10: name: "a\x1b[2J" does not have this form; write lower-case words with "-" between them, like "my-notes"`},
	{"name too long", `{"name": "` + strings.Repeat("a", 65) + `", "version": "1.0.0", "description": "d", "tools": ["t"]}`, `line 1, column 10: name: "` + strings.Repeat("a", 65) + `" has 65 bytes; write at most 64 bytes`},
	{"version of two numbers", `{"name": "a", "version": "1.0", "description": "d", "tools": ["t"]}`, `line 1, column 26: version: "1.0" does not have this form; write three numbers, like "1.2.0"`},
	{"version with a zero", `{"name": "a", "version": "1.02.0", "description": "d", "tools": ["t"]}`, `line 1, column 26: version: "1.02.0" does not have this form; write three numbers, like "1.2.0"`},
	{"version as a number", `{"name": "a", "version": 1, "description": "d", "tools": ["t"]}`, `line 1, column 26: version: a number where text belongs; write three numbers, like "1.2.0"`},
	{"empty description", `{"name": "a", "version": "1.0.0", "description": " ", "tools": ["t"]}`, `line 1, column 50: description: the description is empty; write what the extension does, in one paragraph`},
	{"description that hides", `{"name": "a", "version": "1.0.0", "description": "reads \u202e only", "tools": ["t"]}`, `line 1, column 50: description: the description holds the character '\u202e'; write printable text`},
	{"no tools", `{"name": "a", "version": "1.0.0", "description": "d", "tools": []}`, `line 1, column 64: tools: the list is empty; write ["create_pr"]`},
	{"a tool twice", `{"name": "a", "version": "1.0.0", "description": "d", "tools": ["t", "t"]}`, `line 1, column 70: tools[1]: the tool "t" is here twice; write each tool once`},
	{"a tool in kebab", `{"name": "a", "version": "1.0.0", "description": "d", "tools": ["create-pr"]}`, `line 1, column 65: tools[0]: "create-pr" does not have this form; write a lower-case name, like "create_pr"`},

	{"no tags", with(`"tags": []`), `line 2, column 9: tags: the list is empty; write ["issue-tracker"]`},
	{"a tag that is no list", with(`"tags": "a b"`), `line 2, column 9: tags: text where a list belongs; write ["issue-tracker"]`},
	{"a tag that is a number", with(`"tags": [1]`), `line 2, column 10: tags[0]: a number where text belongs; write a lower-case name, like "issue-tracker"`},
	{"a tag twice", with(`"tags": ["b", "a", "b"]`), `line 2, column 20: tags[2]: the tag "b" is here twice; write each tag once`},
	{"a tag twice, escaped", with(`"tags": ["ab", "a\u0062"]`), `line 2, column 16: tags[1]: the tag "ab" is here twice; write each tag once`},
	{"a tag too long", with(`"tags": ["` + strings.Repeat("a", 33) + `"]`), `line 2, column 10: tags[0]: "` + strings.Repeat("a", 33) + `" has 33 bytes; write at most 32 bytes`},
	{"an empty tag", with(`"tags": [""]`), `line 2, column 10: tags[0]: "" does not have this form; write a lower-case name, like "issue-tracker"`},
	{"a tag in capitals", with(`"tags": ["a", "Weather"]`), `line 2, column 15: tags[1]: "Weather" does not have this form; write a lower-case name, like "issue-tracker"`},
	{"a tag of two words", with(`"tags": ["a b"]`), `line 2, column 10: tags[0]: "a b" does not have this form; write a lower-case name, like "issue-tracker"`},
	{"a tag with escapes", with(`"tags": ["a\u001b[2J"]`), `line 2, column 10: tags[0]: "a\x1b[2J" does not have this form; write a lower-case name, like "issue-tracker"`},
	{"a tag with a new line", with(`"tags": ["a\n"]`), `line 2, column 10: tags[0]: "a\n" does not have this form; write a lower-case name, like "issue-tracker"`},
	{"a tag that hides", with(`"tags": ["a\u200b"]`), `line 2, column 10: tags[0]: "a\u200b" does not have this form; write a lower-case name, like "issue-tracker"`},
	{"a tag with a Cyrillic letter", with(`"tags": ["wеather"]`), `line 2, column 10: tags[0]: "wеather" does not have this form; write a lower-case name, like "issue-tracker"`},
	{"a tag that is an operator", with(`"tags": ["\" OR *"]`), `line 2, column 10: tags[0]: "\" OR *" does not have this form; write a lower-case name, like "issue-tracker"`},

	{"a permission mistyped", with(`"permissions": {"netwrk": []}`), `line 2, column 17: permissions.netwrk: there is no such field; write "network"`},
	{"browser", with(`"permissions": {"browser": ["*"]}`), `line 2, column 29: permissions.browser[0]: "*" is not a host; write a host, like "docs.example.com" or "*.example.com"`},
	{"path of a browser", with(`"bindings": {"web": {"browser": [{"host": "example.com", "path": "/x"}]}}`), `line 2, column 66: bindings.web.browser[0].path: a rule of browser has no path: inside TLS, a proxy sees the host and the port only; write a rule of scheme, host and port, or "intercept": true beside the rules`},
	{"path of a sandbox", with(`"bindings": {"box": {"sandbox": {"image": "host", "network": [{"host": "example.com", "path": "/x"}]}}}`), `line 2, column 95: bindings.box.sandbox.network[0].path: a rule of sandbox has no path: inside TLS, a proxy sees the host and the port only; write a rule of scheme, host and port, or "intercept": true beside the rules`},
	{"interception of nothing", with(`"bindings": {"box": {"sandbox": {"image": "host", "intercept": true}}}`), `line 2, column 64: bindings.box.sandbox.intercept: there is nothing to intercept; write rules in "network", or leave it out`},
	{"network true", with(`"permissions": {"network": true}`), `line 2, column 28: permissions.network: true where a list belongs; write ["api.example.com"]`},
	{"network with a URL", with(`"permissions": {"network": ["https://api.github.com/repos"]}`), `line 2, column 29: permissions.network[0]: "https://api.github.com/repos" is more than a host; write "api.github.com", or a rule with scheme and path in bindings`},
	{"network with a star", with(`"permissions": {"network": ["*"]}`), `line 2, column 29: permissions.network[0]: the short form has no rule for every host; write in bindings {"network": {"http": [{"scheme": "https", "host": "*", "port": 443}]}}`},
	{"network with a bad host", with(`"permissions": {"network": ["a b"]}`), `line 2, column 29: permissions.network[0]: http rule: the host "a b" is not a valid name; write a host, like "api.example.com" or "*.example.com"`},
	{"workspace of another access", with(`"permissions": {"workspace": "write"}`), `line 2, column 30: permissions.workspace: "write" is not an access; write "read" or "read-write"`},
	{"kv false", with(`"permissions": {"kv": false}`), `line 2, column 23: permissions.kv: false where true belongs; write true, or leave the field out`},

	{"a name twice, in two forms", with(`"permissions": {"workspace": "read"}, "bindings": {"workspace": {"workspace": {"access": "read-write"}}}`), `line 2, column 65: bindings.workspace: the binding "workspace" is also made by permissions; write it under another name, or in one place only`},
	{"a name in camel case", with(`"bindings": {"myNotes": {"kv": true}}`), `line 2, column 14: bindings.myNotes: "myNotes" must start with a-z, and have only a-z, 0-9 and "_"; write a lower-case name, like "notes"`},
	{"a prototype", with(`"bindings": {"__proto__": {"kv": true}}`), `line 2, column 14: bindings.__proto__: "__proto__" must start with a-z, and have only a-z, 0-9 and "_"; write a lower-case name, like "notes"`},
	{"a promise", with(`"bindings": {"then": {"kv": true}}`), `line 2, column 14: bindings.then: "then" means something else in JavaScript; write a lower-case name, like "notes"`},
	{"no capability", with(`"bindings": {"a": {}}`), `line 2, column 19: bindings.a: a binding is one capability, and this one names 0; write ` + exampleGrant},
	{"two capabilities", with(`"bindings": {"a": {"kv": true, "clock": true}}`), `line 2, column 19: bindings.a: a binding is one capability, and this one names 2; write ` + exampleGrant},
	{"a capability mistyped", with(`"bindings": {"a": {"htttp": []}}`), `line 2, column 20: bindings.a.htttp: there is no such field; write "http"`},
	{"kv with options", with(`"bindings": {"a": {"kv": {}}}`), `line 2, column 26: bindings.a.kv: an object where true belongs; write true, or leave the field out`},
	{"a path that climbs", with(`"bindings": {"a": {"workspace": {"path": "/a/../../b"}}}`), `line 2, column 42: bindings.a.workspace.path: "/a/../../b" holds the segment ".."; write a path from the top of the workspace, like "/notes"`},
	{"a relative path", with(`"bindings": {"a": {"workspace": {"path": "notes"}}}`), `line 2, column 42: bindings.a.workspace.path: "notes" does not start with /; write a path from the top of the workspace, like "/notes"`},
	{"a path with a zero", with(`"bindings": {"a": {"workspace": {"path": "/a\u0000"}}}`), `line 2, column 42: bindings.a.workspace.path: "/a\x00" holds an invisible character; write a path from the top of the workspace, like "/notes"`},

	{"a rule without host", with(`"bindings": {"a": {"http": [{"path": "/x"}]}}`), `line 2, column 29: bindings.a.http[0]: the field "host" is missing; write ` + exampleRule},
	{"no rules", with(`"bindings": {"a": {"http": []}}`), `line 2, column 28: bindings.a.http: the list is empty; write [{"host": "api.example.com"}]`},
	{"addresses", with(`"bindings": {"a": {"http": [{"host": "x.com", "addresses": ["10.0.0.0/8"]}]}}`), `line 2, column 47: bindings.a.http[0].addresses: there is no such field; write one of scheme, host, port, methods, path, headers, credential, as, idempotency, maxResponse`},
	{"a credential that is no name", with(`"bindings": {"a": {"http": [{"host": "x.com", "credential": "ghp_ABC"}]}}`), `line 2, column 61: bindings.a.http[0].credential: http rule: credential is not a name of a-z, 0-9, - and _; write the name of a secret, like "github-token"`},
	{"a credential in an unknown place", with(`"bindings": {"a": {"http": [{"host": "x.com", "credential": "a", "as": "cookie"}]}}`), `line 2, column 72: bindings.a.http[0].as: http rule: as is not bearer, basic, header:NAME or query:NAME; write "bearer", "basic", "header:NAME" or "query:NAME", beside a credential`},
	{"a credential for any host", with(`"bindings": {"a": {"http": [{"scheme": "https", "host": "*", "port": 443, "credential": "a"}]}}`), `line 2, column 29: bindings.a.http[0]: http rule: a credential needs a rule that names its host; write ` + exampleRule},
	{"a rule with another scheme", with(`"bindings": {"a": {"http": [{"host": "x.com", "scheme": "file"}]}}`), `line 2, column 57: bindings.a.http[0].scheme: http rule: the scheme "file" is not https or http; write "https" or "http"`},
	{"a rule with a large port", with(`"bindings": {"a": {"http": [{"host": "x.com", "port": 70000}]}}`), `line 2, column 55: bindings.a.http[0].port: http rule: port: a value of the wrong kind: number 70000; write a number from 1 to 65535`},
	{"any host without port", with(`"bindings": {"a": {"http": [{"host": "*"}]}}`), `line 2, column 29: bindings.a.http[0]: http rule: the host * needs a scheme and a port; write ` + exampleRule},

	{"an interface of ours", with(`"bindings": {"a": {"stile:capability/kv@0.1.0": {}}}`), `line 2, column 20: bindings.a["stile:capability/kv@0.1.0"]: names that begin with stile: or wasi: are reserved; write ` + oneOf(func(k *capability.Kind) bool { return k.Parse != nil })},
	{"an interface misnamed", with(`"bindings": {"a": {"acme:crm": {}}}`), `line 2, column 20: bindings.a["acme:crm"]: this is not the name of a WIT interface; write "acme:crm/contacts@1.0.0"`},
	{"a dependency in a list", with(`"dependencies": ["zod"]`), `line 2, column 17: dependencies: a list where an object belongs; write {"zod": "^4.0.0"}`},
	{"a package in capitals", with(`"dependencies": {"Zod": "1"}`), `line 2, column 18: dependencies.Zod: "Zod" is not the name of an npm package; write the name of an npm package, like "zod" or "@scope/name"`},
	{"a package that is a path", with(`"dependencies": {"../zod": "1"}`), `line 2, column 18: dependencies["../zod"]: "../zod" is not the name of an npm package; write the name of an npm package, like "zod" or "@scope/name"`},
	{"a package in a scope that is a path", with(`"dependencies": {"@a/..": "1"}`), `line 2, column 18: dependencies["@a/.."]: "@a/.." is not the name of an npm package; write the name of an npm package, like "zod" or "@scope/name"`},
	{"a package that is an option", with(`"dependencies": {"--registry": "1"}`), `line 2, column 18: dependencies["--registry"]: "--registry" is not the name of an npm package; write the name of an npm package, like "zod" or "@scope/name"`},
	{"a package that is a folder", with(`"dependencies": {"node_modules": "1"}`), `line 2, column 18: dependencies.node_modules: "node_modules" is not the name of an npm package; write the name of an npm package, like "zod" or "@scope/name"`},
	{"a package with a Cyrillic letter", with(`"dependencies": {"zоd": "1"}`), `line 2, column 18: dependencies["zоd"]: "zоd" is not the name of an npm package; write the name of an npm package, like "zod" or "@scope/name"`},
	{"a package with a long name", with(`"dependencies": {"` + strings.Repeat("a", 215) + `": "1"}`), `line 2, column 18: dependencies["` + strings.Repeat("a", 80) + `..."]: "` + strings.Repeat("a", 80) + `..." has 215 bytes; 214 are allowed; write the name of an npm package, like "zod" or "@scope/name"`},
	{"a range that is a number", with(`"dependencies": {"zod": 1}`), `line 2, column 25: dependencies.zod: a number where text belongs; write a range of versions, like "^1.2.3"`},
	{"a range that is long", with(`"dependencies": {"zod": "1` + strings.Repeat(" || 1", 60) + `"}`), `line 2, column 25: dependencies.zod: "1` + strings.Repeat(" || 1", 15) + ` || ..." has 301 bytes; 256 are allowed; write a range of versions, like "^1.2.3"`},

	{"no tests", with(`"tests": []`), `line 2, column 10: tests: the list is empty; write [` + exampleTest + `]`},
	{"a test of nothing", with(`"tests": [{"input": 1, "expect": 1}]`), `line 2, column 11: tests[0]: the field "tool" is missing; write ` + exampleTest},
	{"a test of another tool", with(`"tests": [{"tool": "ad", "input": 1, "expect": 1}]`), `line 2, column 20: tests[0].tool: "ad" is not among the tools; write "add"`},
	{"a test of no tool", with(`"tests": [{"tool": "remove", "input": 1, "expect": 1}]`), `line 2, column 20: tests[0].tool: "remove" is not among the tools; write one of tools`},
	{"a test that expects nothing", with(`"tests": [{"tool": "add", "input": 1}]`), `line 2, column 11: tests[0]: a test has one of "expect" and "error"; write ` + exampleTest},
	{"a test that expects two things", with(`"tests": [{"tool": "add", "input": 1, "expect": null, "error": "x"}]`), `line 2, column 11: tests[0]: a test has one of "expect" and "error"; write ` + exampleTest},
	{"a test of any failure", with(`"tests": [{"tool": "add", "input": 1, "error": ""}]`), `line 2, column 48: tests[0].error: every message contains the empty text; write text that the message contains`},
	{"a test of a long failure", with(`"tests": [{"tool": "add", "input": 1, "error": "` + strings.Repeat("a", 1001) + `"}]`), `line 2, column 48: tests[0].error: the text has 1001 bytes; write at most 1000 bytes`},
	{"a test with a name that hides", with(`"tests": [{"tool": "add", "input": 1, "expect": 1, "name": "a\u200bb"}]`), `line 2, column 60: tests[0].name: the name of the test holds the character '\u200b'; write printable text`},
	{"a test with an empty name", with(`"tests": [{"tool": "add", "input": 1, "expect": 1, "name": ""}]`), `line 2, column 60: tests[0].name: the name of the test is empty; write "adds two numbers"`},
	{"a test with a binding that is not there", with(`"permissions": {"kv": true}, "tests": [{"tool": "add", "input": 1, "expect": 1, "env": {"notes": 1}}]`), `line 2, column 89: tests[0].env.notes: there is no such field; write one of clock, console, kv, random`},
	{"a test with bindings where there are none", with(`"tests": [{"tool": "add", "input": 1, "expect": 1, "env": {"notes": 1}}]`), `line 2, column 60: tests[0].env.notes: there is no such field; write one of clock, console, random`},

	{"an interface with a list", with(`"bindings": {"a": {"acme:crm/c": []}}`), `line 2, column 34: bindings.a["acme:crm/c"]: a list where an object belongs; write {}`},
}

func TestParseRefuses(t *testing.T) {
	for _, tt := range refused {
		t.Run(tt.name, func(t *testing.T) {
			m, err := Parse([]byte(tt.text))
			var problem *ManifestError
			if !errors.As(err, &problem) || m != nil {
				t.Fatalf("got %v, %v", m, err)
			}
			if got := strings.TrimPrefix(err.Error(), "manifest "); got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
		})
	}
}

func TestParseCounts(t *testing.T) {
	list := func(n int, format string) string {
		items := make([]string, n)
		for i := range items {
			items[i] = fmt.Sprintf(format, i)
		}
		return strings.Join(items, ",")
	}
	for name, text := range map[string]string{
		"dependencies":             with(`"dependencies": {` + list(101, `"p%d": "1"`) + `}`),
		"tests[100]":               with(`"tests": [` + list(101, `{"tool": "add", "input": %d, "expect": 1}`) + `]`),
		"tools[1000]":              `{"name": "a", "version": "1.0.0", "description": "d", "tools": [` + list(1001, `"t%d"`) + `]}`,
		"tags[16]":                 with(`"tags": [` + list(17, `"t%d"`) + `]`),
		"bindings":                 with(`"bindings": {` + list(65, `"b%d": {"kv": true}`) + `}`),
		"bindings.a.http[256]":     with(`"bindings": {"a": {"http": [` + list(257, `{"host": "h%d.com"}`) + `]}}`),
		"permissions.network[256]": with(`"permissions": {"network": [` + list(257, `"h%d.com"`) + `]}`),
	} {
		var problem *ManifestError
		if _, err := Parse([]byte(text)); !errors.As(err, &problem) || problem.Path != name || !strings.Contains(problem.Instead, "at most") {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

func TestCanonical(t *testing.T) {
	short := `{"tools": ["b", "a"], "description": "<d>", "version": "1.0.0-rc.1+x", "name": "a", "permissions": {"network": ["x.com"], "kv": true}}`
	long := `{"name": "a", "version": "1.0.0-rc.1+x", "description": "<d>", "tools": ["a", "b"],
		"bindings": {"network": {"http": [{"methods": ["*"], "host": "x.com"}]}, "kv": {"kv": true}}}`
	want := `{"name":"a","version":"1.0.0-rc.1+x","description":"<d>","tools":["a","b"],` +
		`"bindings":{"kv":{"kv":true},"network":{"http":[{"host":"x.com","methods":["*"]}]}}}`
	tested := strings.TrimSuffix(short, "}") + `, "dependencies": {}, "tests": [{"tool": "a", "input": 1, "expect": 1}]}`
	for _, text := range []string{short, long, want, tested} {
		m, err := Parse([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		if got := string(m.Canonical()); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
}

func TestTags(t *testing.T) {
	m, err := Parse([]byte(with(`"tags": ["weather", "a-1", "forecast"]`)))
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"a-1", "forecast", "weather"}; !reflect.DeepEqual(m.Tags, want) {
		t.Errorf("got %q", m.Tags)
	}
	if got := string(m.Canonical()); !strings.HasSuffix(got, `"tools":["add"],"tags":["a-1","forecast","weather"],"bindings":{}}`) {
		t.Errorf("got %s", got)
	}
}

// A dependency always comes from the registry, whatever npm would make of its text.
func TestDependencies(t *testing.T) {
	for text, ok := range map[string]bool{
		"1": true, "1.2": true, "1.2.3": true, "v1.2.3": true, "=1.2.3": true, "^1.2.3": true, "~1.2": true, ">=1 <2": true, ">= 1.2.3": true, "*": true,
		"1.x": true, "1.2.X": true, "1.2.3-beta.1": true, "1.2.3+build": true, "^0.0.1 || ^1": true, "1||2": true, "1.2.3 - 2.3.4": true, "1.0.0-tgz": true,
		"": false, " ": false, "latest": false, "next": false, "beta.tgz": false, "1.0.0-a.tgz": false, "1.0.0-a.TGZ": false, "1 || 2.0.0-a.tar.gz": false, "1.0.0+a.tar": false,
		"file:../x": false, "link:../x": false, "./x": false, "/x": false, "~/x": false, `C:\x`: false, `..\x`: false, "npm:zod@1": false, "npm:1": false,
		"workspace:*": false, "workspace:^1": false, "git+ssh://git@github.com/a/b": false, "git@github.com:a/b": false, "github:a/b": false, "a/b": false,
		"a/b#semver:1": false, "https://example.com/a.tgz": false, "HTTP://example.com": false, "1 2\n3": false, "1\n": false, "01": false, "1.2.3.4": false,
		">1 ||": false, "|| 1": false, "1, 2": false, "!=1": false, "=>1": false, "^": false, "\u0661": false, "1.2.3-": false, "$x": false, "${x}": false, "`x`": false, "1 -2": false,
		"9999999999999999": false,
	} {
		quoted, _ := json.Marshal(text)
		m, err := Parse([]byte(with(`"dependencies": {"zod": ` + string(quoted) + `}`)))
		if (err == nil) != ok || ok && m.Dependencies["zod"] != text {
			t.Errorf("%q: %v", text, err)
		}
		var problem *ManifestError
		if err != nil && (!errors.As(err, &problem) || problem.Path != "dependencies.zod" || !strings.Contains(problem.Instead, "^1.2.3")) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestTests(t *testing.T) {
	m, err := Parse([]byte(valid[3].text))
	if err != nil {
		t.Fatal(err)
	}
	want := []Test{
		{Name: "adds", Tool: "add", Input: json.RawMessage(`{"a":null,"b":1.0}`), Expect: json.RawMessage("null"), Env: map[string]json.RawMessage{"kv": json.RawMessage(`{"a":1}`)}},
		{Tool: "add", Input: json.RawMessage("1"), Error: "no\nsuch"},
	}
	if !reflect.DeepEqual(m.Tests, want) {
		t.Errorf("got %+v", m.Tests)
	}
	if got := string(m.Canonical()); !strings.HasSuffix(got, `"dependencies":{"@scope/a.b_c":"1.x || >=2.0.0-rc.1 <3 || 1.2.3 - 2","zod":"^4.0.0"}}`) {
		t.Errorf("got %s", got)
	}
}

func TestProblem(t *testing.T) {
	_, err := Parse([]byte(with(`"permisssions": {}`)))
	var problem *ManifestError
	if !errors.As(err, &problem) || problem.Problem() != (Problem{File: "manifest.json", Line: 2, Column: 1, Text: "permisssions: there is no such field", Fix: `"permissions"`}) {
		t.Errorf("got %+v", err)
	}
}

// A manifest with more problems than are told still says whether its bindings could be read, and has none that could not.
func TestManyProblems(t *testing.T) {
	var unknown, many strings.Builder
	for i := range 25 {
		fmt.Fprintf(&unknown, `"x%d": 1, `, i)
	}
	for i := range 70 {
		fmt.Fprintf(&many, `"b%d": {"workspace": {"path": "/a"}}, `, i)
	}
	for _, before := range []string{"", unknown.String()} {
		for bindings, bound := range map[string]bool{
			`{"a": {"workspace": {"path": "/a"}}}`:                                true,
			`{"a": {"kv": 1}, "t": {"tools": {"allow": ["b_c"], "pass": ["a"]}}}`: false,
			`{` + many.String() + `"t": {"tools": {"allow": ["b_c"]}}}`:           false,
		} {
			_, err := Parse([]byte(`{` + before + `"name": 1, "bindings": ` + bindings + `}`))
			var problem *ManifestError
			if !errors.As(err, &problem) {
				t.Fatal(err)
			}
			gaps := problem.Gaps
			if (!gaps.AnyBinding && len(gaps.Bindings) == 0) != bound || len(Known(problem.Partial.Bindings)) > 0 != bound || len(problem.Problems()) > 20 {
				t.Errorf("%.60s %.60s: %v, %d problems, %v", before, bindings, gaps, len(problem.Problems()), problem.Partial.Bindings)
			}
		}
	}
}

func FuzzManifest(f *testing.F) {
	f.Add([]byte(with(`"permissions": {"network": ["a.com"], "workspace": "read"}`)))
	f.Add([]byte(with(`"bindings": {"a": {"http": [{"host": "*.b.com", "port": 1, "path": "/a*/**"}]}, "b": {"x:y/z": {"q": [1e400]}}}`)))
	f.Add([]byte(with(`"dependencies": {"@a/b": "^1.2.3-a.b+c || 1 - 2"}, "tests": [{"tool": "add", "input": 1e9, "error": "x", "env": {}}]`)))
	f.Add([]byte(with(`"tags": ["weather", "a-1"]`)))
	schema := compileSchema(f)
	f.Add([]byte("{\"a\xff\": [[[[\"\\ud800\"]]]]}"))
	f.Fuzz(func(t *testing.T, text []byte) {
		m, err := Parse(text)
		if err != nil {
			var problem *ManifestError
			if !errors.As(err, &problem) || problem.Line < 1 || problem.Column < 1 || problem.Instead == "" {
				t.Fatalf("%#v", err)
			}
			if problem.Partial != nil {
				Known(problem.Partial.Bindings)
			}
			return
		}
		if !accepts(t, schema, text) {
			t.Fatalf("the schema refuses %s", text)
		}
		m.Tests = nil
		again, err := Parse(m.Canonical())
		if err != nil || !reflect.DeepEqual(m, again) || !bytes.Equal(m.Canonical(), again.Canonical()) {
			t.Fatalf("%s\nagain %+v, %v", m.Canonical(), again, err)
		}
	})
}
