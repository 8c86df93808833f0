package mcp

import (
	"encoding/base64"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/stilehost/stile/toolchain/guesttest"
)

// What an agent adds as a component waits for a person, even if the policy approves all that it asks for.
func TestComponent(t *testing.T) {
	h := newHome(t, preApproved)
	c := h.client()
	component := func(g guesttest.Guest) object {
		d := draft("opaque", "", nil)
		delete(d, "source")
		d["component"] = base64.StdEncoding.EncodeToString(g.Component(t))
		return d
	}
	d := component(guesttest.Guest{})
	w := does[writeOutput](c, "extension_write", d)
	if w.State != "pending" || !strings.Contains(w.Message, "without source") || c.offers("opaque_get") {
		t.Fatalf("got %+v", w)
	}
	h.approve(w.Release, w.Digest)
	if r := c.tool("opaque_get", object{}); r.IsError || !strings.Contains(r.Content[0].(*sdk.TextContent).Text, "ok") {
		t.Errorf("got %+v", r)
	}
	if again := does[writeOutput](c, "extension_write", d); !again.Unchanged {
		t.Errorf("got %+v", again)
	}
	source := does[sourceOutput](c, "extension_source", object{"extension": "opaque"})
	if len(source.Files) > 0 || !strings.Contains(source.Component, "no source to read") || source.Entry != "" {
		t.Errorf("got %+v", source)
	}
	list := does[listOutput](c, "extension_list", object{})
	if len(list.Extensions) != 1 || !list.Extensions[0].NoSource {
		t.Errorf("got %+v", list)
	}
	if w := does[writeOutput](c, "extension_write", component(guesttest.Guest{Result: "2"})); w.State != "pending" {
		t.Errorf("got %+v", w)
	}
	for says, change := range map[string]func(object){
		"base64":      func(d object) { d["component"] = "AGFzbQ" },
		"not both":    func(d object) { d["source"] = "export function get() {}" },
		"core module": func(d object) { d["component"] = base64.StdEncoding.EncodeToString([]byte("\x00asm\x01\x00\x00\x00")) },
	} {
		d := component(guesttest.Guest{})
		change(d)
		if f := failed(t, c.tool("extension_write", d)); !strings.Contains(f.Message, says) {
			t.Errorf("got %+v, want %q", f, says)
		}
	}
}

// The question to a person says that there is no source, and what the component imports.
func TestQuestionAboutComponent(t *testing.T) {
	h := newHome(t, withPersons)
	asked := ""
	c := h.person(alice, "editor", func(p *sdk.ElicitParams) *sdk.ElicitResult {
		asked = p.Message
		return &sdk.ElicitResult{Action: "decline"}
	})
	d := draft("opaque", "", nil)
	delete(d, "source")
	d["component"] = base64.StdEncoding.EncodeToString(guesttest.Guest{
		Imports: `(import "stile:capability/kv@0.1.0" "get" (func $get (param i32 i32 i32 i32)))`,
	}.Component(t))
	if w := does[writeOutput](c, "extension_write", d); w.State != "denied" {
		t.Errorf("got %+v", w)
	}
	for _, want := range []string{"no source to read", "imports stile:capability/kv@0.1.0 (no binding of the manifest): get", "code that nobody can read"} {
		if !strings.Contains(asked, want) {
			t.Errorf("the question does not say %q:\n%s", want, asked)
		}
	}
	if strings.Contains(asked, "shows the code") {
		t.Error(asked)
	}
}
