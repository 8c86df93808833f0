package extension

import (
	"encoding/json"
	"errors"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/stilehost/stile/capabilities"
	"github.com/stilehost/stile/capabilities/blob"
	"github.com/stilehost/stile/capabilities/clock"
	"github.com/stilehost/stile/capabilities/console"
	"github.com/stilehost/stile/capabilities/http"
	"github.com/stilehost/stile/capabilities/kv"
	"github.com/stilehost/stile/capabilities/random"
	"github.com/stilehost/stile/capabilities/tools"
	"github.com/stilehost/stile/capabilities/workspace"
	"github.com/stilehost/stile/capability"
)

func TestParseSpecs(t *testing.T) {
	tests := []struct {
		name  string
		specs []string
		want  []Binding
	}{
		{"none", nil, nil},
		{
			"each kind",
			[]string{"help=tools:./a.ts,b.wasm", "time=clock", "notes=workspace:my-notes/a/b,rw", "docs=workspace:docs", "cache=kv:c1", "dice=random", "log=console", "bytes=blob"},
			[]Binding{
				{"bytes", blob.Kind.On()},
				{"cache", kv.Rights{Store: "c1"}},
				{"dice", random.Kind.On()},
				{"docs", workspace.Rights{Store: "docs", Path: "/", Access: workspace.Read}},
				{"help", tools.Rights{Files: []string{"./a.ts", "b.wasm"}, Name: "help", Inner: map[string]capability.Grant{}}},
				{"log", console.Kind.On()},
				{"notes", workspace.Rights{Store: "my-notes", Path: "/a/b", Access: workspace.ReadWrite}},
				{"time", clock.Kind.On()},
			},
		},
		{
			"http",
			[]string{"github=http:https://api.github.com/repos/**,methods=GET+POST,credential=github-token,as=query:key"},
			[]Binding{{"github", http.Rights{Rules: []http.Rule{{
				Scheme: "https", Host: "api.github.com", Path: "/repos/**", Methods: []string{"GET", "POST"}, Credential: "github-token", As: "query:key",
			}}}}},
		},
		{
			"bindings of tools",
			[]string{"h.k=kv:x", "h.api=http:https://a.example.com", "h.api=http:https://b.example.com", "h=tools:a.ts", "h.h.k=kv:y", "h.h=tools:b.ts", "k=kv:z"},
			[]Binding{
				{"h", tools.Rights{Files: []string{"a.ts"}, Name: "h", Inner: map[string]capability.Grant{
					"k":   kv.Rights{Store: "x"},
					"api": http.Rights{Rules: []http.Rule{{Scheme: "https", Host: "a.example.com"}, {Scheme: "https", Host: "b.example.com"}}},
					"h":   tools.Rights{Files: []string{"b.ts"}, Name: "h.h", Inner: map[string]capability.Grant{"k": kv.Rights{Store: "y"}}},
				}}},
				{"k", kv.Rights{Store: "z"}},
			},
		},
		{"directories", []string{"a=dir:.", "b=dir:/tmp/x:y,rw"}, []Binding{{"a", workspace.DiskRights{Path: ".", Access: workspace.Read}}, {"b", workspace.DiskRights{Path: "/tmp/x:y", Access: workspace.ReadWrite}}}},
		{
			"several rules",
			[]string{"a=http:http://*:8080/**", "a=http:http://127.0.0.1:8080/ok/**", "a=http:https://[::1]:1,addresses=10.0.0.0/8"},
			[]Binding{{"a", http.Rights{Rules: []http.Rule{
				{Scheme: "http", Host: "*", Port: 8080, Path: "/**"},
				{Scheme: "http", Host: "127.0.0.1", Port: 8080, Path: "/ok/**"},
				{Scheme: "https", Host: "[::1]", Port: 1, Addresses: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}},
			}}}},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := ParseSpecs(capabilities.Builtin, tt.specs)
			if err != nil || !reflect.DeepEqual(got, tt.want) {
				t.Errorf("got  %+v, %v\nwant %+v", got, err, tt.want)
			}
		})
	}
}

// oneOf names the built-in kinds that a text can have, as problems do.
func oneOf(has func(*capability.Kind) bool) string {
	var names []string
	for _, k := range capabilities.Builtin.All() {
		if has(k) {
			names = append(names, k.Name)
		}
	}
	return "one of " + strings.Join(names, ", ")
}

func TestParseSpecsRefuses(t *testing.T) {
	all := oneOf(func(k *capability.Kind) bool { return k.ParseSpec != nil })
	tests := []struct {
		specs []string
		want  string
	}{
		{[]string{""}, `binding "": there is no "="; write ` + exampleSpec},
		{[]string{"clock"}, `binding "clock": there is no "="; write ` + exampleSpec},
		{[]string{"=clock"}, `binding "=clock": the name "" must start with a-z, and have only a-z, 0-9 and "_"; write a lower-case name, like "notes"`},
		{[]string{"my-clock=clock"}, `binding "my-clock=clock": the name "my-clock" must start with a-z, and have only a-z, 0-9 and "_"; write a lower-case name, like "notes"`},
		{[]string{"then=clock"}, `binding "then=clock": the name "then" means something else in JavaScript; write a lower-case name, like "notes"`},
		{[]string{"vars=clock"}, `binding "vars=clock": the binding vars cannot be granted: env.vars is reserved for Stile; write another name for the binding`},
		{[]string{"a=clock", "progress=console"}, `binding "progress=console": the binding progress cannot be granted: env.progress is reserved for Stile; write another name for the binding`},
		{[]string{"agents=kv:x"}, `binding "agents=kv:x": the binding agents cannot be granted: env.agents is reserved for Stile; write another name for the binding`},
		{[]string{"runs="}, `binding "runs=": the binding runs cannot be granted: env.runs is reserved for Stile; write another name for the binding`},
		{[]string{"a="}, `binding "a=": there is no kind ""; write ` + all},
		{[]string{"a=workspcae:x"}, `binding "a=workspcae:x": there is no kind "workspcae"; write workspace`},
		{[]string{"a=\x1b[2J"}, `binding "a=\x1b[2J": there is no kind "\x1b[2J"; write ` + all},
		{[]string{"a=clock:x"}, `binding "a=clock:x": clock takes neither an argument nor options; write a=clock`},
		{[]string{"a=random,rw"}, `binding "a=random,rw": random takes neither an argument nor options; write a=random`},
		{[]string{"a=dir"}, `binding "a=dir": there is no path; write dir:PATH[,rw]`},
		{[]string{"a=dir:"}, `binding "a=dir:": there is no path; write dir:PATH[,rw]`},
		{[]string{"a=dir:/tmp,wr"}, `binding "a=dir:/tmp,wr": a directory has no option "wr"; write dir:PATH[,rw]`},
		{[]string{"a=dir:/tmp,rw,rw"}, `binding "a=dir:/tmp,rw,rw": a directory has no option "rw,rw"; write dir:PATH[,rw]`},
		{[]string{"a=browser:https://example.com/**"}, `binding "a=browser:https://example.com/**": "https://example.com/**" has a path, and inside TLS a proxy sees the host and the port only: add the option intercept; write NAME=browser:https://docs.example.com`},
		{[]string{"a=workspace"}, `binding "a=workspace": "" cannot name a workspace, a-z, 0-9, "_" and "-" can; write workspace:NAME[/path][,rw]`},
		{[]string{"a=workspace:../x"}, `binding "a=workspace:../x": ".." cannot name a workspace, a-z, 0-9, "_" and "-" can; write workspace:NAME[/path][,rw]`},
		{[]string{"a=workspace:x/../../y"}, `binding "a=workspace:x/../../y": the path "/../../y" holds the segment ".."; write workspace:NAME[/path][,rw]`},
		{[]string{"a=workspace:x//y"}, `binding "a=workspace:x//y": the path "//y" holds the segment ""; write workspace:NAME[/path][,rw]`},
		{[]string{"a=workspace:x,wr"}, `binding "a=workspace:x,wr": a workspace has no option "wr"; write workspace:NAME[/path][,rw]`},
		{[]string{"a=workspace:x,rw,rw"}, `binding "a=workspace:x,rw,rw": a workspace has no option "rw,rw"; write workspace:NAME[/path][,rw]`},
		{[]string{"a=kv:"}, `binding "a=kv:": "" cannot name a bucket, a-z, 0-9, "_" and "-" can; write kv:NAME`},
		{[]string{"a=kv:x,rw"}, `binding "a=kv:x,rw": a bucket has no option "rw"; write kv:NAME`},
		{[]string{"a=kv:a/b"}, `binding "a=kv:a/b": "a/b" cannot name a bucket, a-z, 0-9, "_" and "-" can; write kv:NAME`},
		{[]string{"a=http"}, `binding "a=http": http rule "": it does not start with https:// or http://; write ` + exampleHTTP},
		{[]string{"a=http:https://x.com,method=GET"}, `binding "a=http:https://x.com,method=GET": http rule "https://x.com,method=GET": unknown option "method"; the options are methods, headers, credential, as, idempotency, max-response and addresses; write ` + exampleHTTP},
		{[]string{"a.b=kv:x"}, `binding "a.b=kv:x": no binding "a" gives tools that could have it; write a=tools:FILE beside it`},
		{[]string{"a=kv:x", "a.b=kv:x"}, `binding "a.b=kv:x": no binding "a" gives tools that could have it; write a=tools:FILE beside it`},
		{[]string{"a=tools:x", "a.b.c=kv:x"}, `binding "a.b.c=kv:x": no binding "a.b" gives tools that could have it; write a.b=tools:FILE beside it`},
		{[]string{"a=tools:x", "a.b=kv:"}, `binding "a.b=kv:": "" cannot name a bucket, a-z, 0-9, "_" and "-" can; write kv:NAME`},
		{[]string{"a=tools:x", "a.b=kv:x", "a.b=kv:y"}, `binding "a.b=kv:y": the name "b" is taken by another binding; write another name`},
		{[]string{"a=tools:x", "a.=kv:y"}, `binding "a.=kv:y": the name "" must start with a-z, and have only a-z, 0-9 and "_"; write a lower-case name, like "notes"`},
		{[]string{".b=kv:y"}, `binding ".b=kv:y": the name ".b" must start with a-z, and have only a-z, 0-9 and "_"; write a lower-case name, like "notes"`},
		{[]string{"a=kv:x", "a=kv:y"}, `binding "a=kv:y": the name "a" is taken by another binding; write another name`},
		{[]string{"a=kv:x", "a=http:https://x.com"}, `binding "a=http:https://x.com": the name "a" is taken by another binding; write another name`},
	}
	for _, tt := range tests {
		t.Run(strings.Join(tt.specs, " "), func(t *testing.T) {
			got, err := ParseSpecs(capabilities.Builtin, tt.specs)
			var problem *SpecError
			if !errors.As(err, &problem) || got != nil {
				t.Fatalf("got %v, %v", got, err)
			}
			if err.Error() != tt.want {
				t.Errorf("got  %s\nwant %s", err, tt.want)
			}
		})
	}
}

func FuzzSpec(f *testing.F) {
	f.Add("github=http:https://api.github.com/repos/**,methods=GET+POST")
	f.Add("notes=workspace:NAME/path,rw")
	f.Add("cache=kv:x")
	f.Fuzz(func(t *testing.T, spec string) {
		b, err := ParseSpec(capabilities.Builtin, spec)
		if err != nil {
			var problem *SpecError
			if !errors.As(err, &problem) || problem.Instead == "" {
				t.Fatalf("%#v", err)
			}
			return
		}
		if bindingNameProblem(b.Name) != "" || b.Grant == nil {
			t.Fatalf("%+v", b)
		}
		if _, err := json.Marshal(b); err != nil {
			t.Fatal(err)
		}
	})
}

// What a manifest asks for with secrets, a person can bind with flags.
func TestSpecsOfSecrets(t *testing.T) {
	m, err := Parse([]byte(`{"name": "n", "version": "1.0.0", "description": "d", "tools": ["t"], "bindings": {
		"api": {"http": [
			{"host": "api.example.com", "credential": "one", "path": "/a,b/**", "methods": ["POST", "GET"], "headers": ["x-a", "*"], "maxResponse": 7},
			{"scheme": "http", "host": "*", "port": 8080},
			{"host": "b.example.com", "port": 444, "credential": "two", "as": "query:key"},
			{"host": "c.example.com", "credential": "one", "as": "basic"}
		]},
		"web": {"browser": {"rules": [{"host": "a.example.com", "credential": "one", "path": "/x"}, {"host": "b.example.com"}], "pages": 3, "intercept": true}},
		"box": {"sandbox": {"image": "host", "memory": "1GiB", "disk": "1GiB", "cpu": 1.5, "processes": 64, "time": "1m", "traffic": "2GiB",
			"network": [{"host": "a.example.com", "credential": "one", "methods": ["POST"]}, {"host": "b.example.com", "path": "/y"}], "intercept": true, "allow": ["a", "b/c"]}}
	}}`))
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range m.Bindings {
		g := b.Grant.(capability.SecretUser)
		if want := map[string][]string{"api": {"one", "two"}, "web": {"one"}, "box": {"one"}}[b.Name]; !slices.Equal(g.Secrets(), want) {
			t.Errorf("%s uses %v, want %v", b.Name, g.Secrets(), want)
		}
		var specs []string
		for _, spec := range g.Specs() {
			specs = append(specs, b.Name+"="+g.Kind().Name+":"+spec)
		}
		got, err := ParseSpecs(capabilities.Builtin, specs)
		if err != nil || !Covers(got, []Binding{b}) || !Covers([]Binding{b}, got) {
			t.Errorf("%s: %v, %v", b.Name, specs, err)
		}
	}
}
