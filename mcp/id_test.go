package mcp

import (
	"bytes"
	"reflect"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// Messages that would take far more memory than their size are refused before they are decoded.
func TestLargeMessages(t *testing.T) {
	call := func(arguments string) string {
		return `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"_meta":` + arguments + `}}`
	}
	for _, c := range []struct{ name, body, want string }{
		{"many values", call("[" + strings.Repeat("{},", maxValues) + "{}]"), "JSON values"},
		{"lists of lists", call("[" + strings.Repeat("[],", maxValues) + "[]]"), "JSON values"},
		{"a batch of many", "[" + call("["+strings.Repeat("1,", maxValues)+"1]") + "]", "JSON values"},
		{"values in _meta", call("[" + strings.Repeat("{},", maxOther) + "{}]"), "besides the arguments"},
		{"a field like arguments", strings.Replace(call("["+strings.Repeat("{},", maxOther)+"{}]"), "_meta", "Arguments", 1), "besides the arguments"},
		{"arguments of another method", strings.NewReplacer("_meta", "arguments", "tools/call", "ping").Replace(call("[" + strings.Repeat("{},", maxOther) + "{}]")), "besides the arguments"},
		{"arguments", strings.Replace(call("["+strings.Repeat("{},", maxOther)+"{}]"), "_meta", "arguments", 1), ""},
		{"arguments in a batch", "[" + strings.Replace(call("["+strings.Repeat("{},", maxOther)+"{}]"), "_meta", "arguments", 1) + "," + call("1") + "]", ""},
		{"a large initialize of many values", `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"capabilities":{"experimental":{"a":[` + strings.Repeat("{},", maxOther) + `0]}}}}`, "besides the arguments"},
		{"a large text", call(`"` + strings.Repeat("[,", 1<<20) + `"`), ""},
		{"a large initialize", `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"a":"` + strings.Repeat("x", maxInitialize) + `"}}`, "params of initialize"},
		{"an initialize", `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"capabilities":{}}}`, ""},
	} {
		id, bad := checkIDs([]byte(c.body))
		if (bad != nil) != (c.want != "") || bad != nil && !strings.Contains(bad.Message, c.want) {
			t.Errorf("%s: %v, want %q", c.name, bad, c.want)
		}
		if batch := c.body[0] == '['; bad != nil && (string(id) == "1") == batch { // without an id, a client waits forever
			t.Errorf("%s: answered under the id %q", c.name, id)
		}
	}
}

// The answer to a refused message has its id only if that id can be returned.
func TestIDsOfRefusedMessages(t *testing.T) {
	large := "[" + strings.Repeat("1,", maxValues) + "1]"
	for id, want := range map[string]string{
		`7`: `7`, `-1`: `-1`, `"a"`: `"a"`, `0`: `0`,
		`9007199254740993`: "", `1.5`: "", `1e400`: "", `true`: "", `null`: "", `{"a":1}`: "", `[]`: "", `"` + strings.Repeat("x", maxEcho) + `"`: "",
	} {
		for _, body := range []string{`{"id":` + id + `,"method":"ping","params":` + large + `}`, `{"method":"ping","params":` + large + `,"id":` + id + `}`} {
			if got, bad := checkIDs([]byte(body)); bad == nil || string(got) != want {
				t.Errorf("the id %.20s: got %.20q and %v, want %q", id, got, bad, want)
			}
		}
	}
}

// FuzzRequests decodes requests as the SDK does.
func FuzzRequests(f *testing.F) {
	for _, line := range []string{
		initializeLine, pingLine,
		`{"jsonrpc":"2.0","id":"a\u0041\ud800","method":"tools\/call","params":{"name":"x", "arguments":{"a":[1]}}}`,
		`{"jsonrpc":"2.0","id":-0.0,"method":"","params":[1]}`,
		`{"jsonrpc":"2.0","id":1e3,"method":"a","params":null,"Method":"b"}`,
		`{"jsonrpc":"2.0","id":null,"method":"a","params":{}}`,
		`{"jsonrpc":"2.0","id":7,"id":8,"method":"a","method":"b","params":{},"params":{"c":1},"result":1,"error":2}`,
		`{"jsonrpc":"2.0","id":7,"method":"a","params":` + strings.Repeat("[", 999) + strings.Repeat("]", 999) + `}`,
		`{"jsonrpc":"2.0","id":7,"method":"a","params":` + strings.Repeat("[", 1000) + strings.Repeat("]", 1000) + `}`,
	} {
		f.Add([]byte(line))
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		line = bytes.TrimSpace(line)
		if len(line) == 0 || len(line) > maxRest {
			return
		}
		got, _, _, bad := readLine(line)
		want, err := jsonrpc.DecodeMessage(line)
		switch {
		case bad == nil && err != nil:
			t.Errorf("got %v, and the SDK's error is %v", got, err)
		case bad == nil && !reflect.DeepEqual(got, want):
			t.Errorf("got %#v, the SDK %#v", got, want)
		}
	})
}
