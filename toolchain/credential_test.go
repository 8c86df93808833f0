package toolchain

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stilehost/stile/capabilities/console"
	httpcap "github.com/stilehost/stile/capabilities/http"
	"github.com/stilehost/stile/host"
)

const looksEverywhere = `import { extension } from "stile";
const seen = async (run: () => Promise<Response>) => {
	try {
		const response = await run();
		const copy = response.clone();
		const pieces = [];
		for await (const piece of response.body!) pieces.push(new TextDecoder().decode(piece));
		const blob = await copy.blob();
		return [response.url, response.status, [...response.headers], pieces, await blob.text(), blob.type];
	} catch (error: any) {
		return [String(error), error.stack, error.payload ?? null, error.denial ?? null];
	}
};
export default extension({ tools: { look: { description: "Looks", run: async ({ site }: any, env: any) => {
	const all = [
		await seen(() => env.api.fetch(site + "/echo")),
		await seen(() => env.api.fetch(site + "/moved")),
		await seen(() => env.api.fetch(site + "/moved", { redirect: "error" })),
		await seen(() => env.api.fetch(site + "/echo", { method: "DELETE" })),
		await seen(() => env.api.fetch(site + "/echo", { headers: { authorization: "mine" } })),
		await seen(() => env.api.fetch(site + "/echo", { headers: { range: "bytes=0-1" } })),
		await seen(() => env.unset.fetch(site + "/echo")),
		env.api.rules(), env.api.narrow(env.api.rules()).rules(),
	];
	console.log(JSON.stringify(all));
	return all;
} } } });`

type oneSecret string

func (s oneSecret) Get(_ context.Context, name string) (string, error) {
	if name == "token" {
		return string(s), nil
	}
	return "", fmt.Errorf("beside %s there is no %s", string(s), name)
}

// TestCredentialStaysOutOfTheGuest checks that the secret is sent, and that it is not in anything that an extension sees, returns or logs, nor in
// the events of an observer.
func TestCredentialStaysOutOfTheGuest(t *testing.T) {
	const secret = "sk-0123456789/abc"
	s := newScripts(t)
	c, err := s.toolchain.Build(t.Context(), Source{FS: fstest.MapFS{"look.ts": {Data: []byte(looksEverywhere)}}, Entry: "look.ts"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	env := host.Env{}
	var shown strings.Builder
	env["console"] = console.To(func(_ console.Level, message string) { shown.WriteString(message) })
	for name, credential := range map[string]string{"api": "token", "unset": "other"} {
		rule, err := httpcap.ParseRule(s.site + "/**,credential=" + credential)
		if err != nil {
			t.Fatal(err)
		}
		if env[name], err = httpcap.New(httpcap.Options{Rules: []httpcap.Rule{rule}, Credentials: oneSecret(secret)}); err != nil {
			t.Fatal(err)
		}
	}
	out, err := c.Do(t.Context(), host.Request{
		Tool: "look", Input: fmt.Appendf(nil, `{"site": %q}`, s.site), Env: env,
		Observe: func(o host.Operation) { fmt.Fprintf(&shown, "%+v", o) },
	})
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprintf(&shown, "%s%+v", out.Output, out)
	if text := shown.String(); strings.Contains(text, secret) || strings.Contains(text, "0123456789") {
		t.Errorf("the secret is in %s", text)
	}
	if echoed := "Bearer " + strings.Repeat("*", len(secret)); !strings.Contains(string(out.Output), echoed) {
		t.Errorf("%s is not in %s", echoed, out.Output)
	}
	for _, denial := range out.Usage.Denials {
		if text := fmt.Sprintf("%+v", denial); strings.Contains(text, secret) {
			t.Errorf("a denial has the secret: %s", text)
		}
	}
}
