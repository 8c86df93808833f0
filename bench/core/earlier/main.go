// Command earlier makes calls for a comparison of two revisions. It is compiled in both, so it uses only what both have. For each line of
// its input it makes a round of calls, and prints what they took as JSON.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	nethttp "net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"os"
	"slices"
	"sync"
	"testing/fstest"
	"time"

	"github.com/stilehost/stile/capabilities/clock"
	"github.com/stilehost/stile/capabilities/http"
	"github.com/stilehost/stile/host"
	"github.com/stilehost/stile/toolchain"
)

// plain uses no binding and no web API.
const plain = `import { extension } from "stile";
export default extension({ tools: { none: { description: "Does not wait", input: { type: "object" }, run: () => "ended" } } });`

const code = `import { extension } from "stile";
export default extension({ tools: {
  none: { description: "Does not wait", input: { type: "object" }, run: () => "ended" },
  get: {
    description: "Makes a request",
    input: { type: "object", properties: { url: { type: "string" } }, required: ["url"] },
    run: async ({ url }, env) => await (await env.web.fetch(url)).text(),
  },
} });`

func main() {
	if err := run(context.Background(), os.Args[1], os.Args[2]); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, caches, engine string) (err error) {
	h, err := host.New(ctx, host.Options{CacheDir: caches, KeyDir: caches})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, h.Close()) }()
	tools, err := toolchain.New(ctx, h, toolchain.Options{CacheDir: caches, KeyDir: caches, Engine: engine})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, tools.Close()) }()
	build := func(code string, bindings map[string]string) (*host.Component, error) {
		return tools.Build(ctx, toolchain.Source{FS: fstest.MapFS{"calls.ts": {Data: []byte(code)}}, Entry: "calls.ts", Bindings: bindings})
	}
	component, err := build(code, map[string]string{"web": http.Interface, "clock": clock.Interface})
	if err != nil {
		return err
	}
	alone, err := build(plain, map[string]string{"clock": clock.Interface})
	if err != nil {
		return err
	}
	server := httptest.NewServer(nethttp.HandlerFunc(func(w nethttp.ResponseWriter, _ *nethttp.Request) { _, _ = io.WriteString(w, "hello") }))
	defer server.Close()
	at, err := url.Parse(server.URL)
	if err != nil {
		return err
	}
	port, err := netip.ParseAddrPort(at.Host)
	if err != nil {
		return err
	}
	const calls = 1000
	web, err := http.New(http.Options{Rules: []http.Rule{{Scheme: "http", Host: port.Addr().String(), Port: port.Port()}}, Pending: calls})
	if err != nil {
		return err
	}
	env := host.Env{"web": web, "clock": clock.System()}
	input := fmt.Appendf(nil, `{"url":%q}`, server.URL+"/")
	call := func(component *host.Component, tool, want string) error {
		out, err := component.Call(ctx, tool, input, env)
		if err == nil && string(out) != want {
			err = fmt.Errorf("a wrong answer: %s", out)
		}
		return err
	}
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		took, errs := make([]time.Duration, calls), make([]error, calls)
		var cold [2]time.Duration
		for n, component := range []*host.Component{alone, component} {
			for i := range calls {
				start := time.Now()
				if err := call(component, "none", `"ended"`); err != nil {
					return err
				}
				took[i] = time.Since(start)
			}
			slices.Sort(took)
			cold[n] = took[calls/2]
		}
		start := time.Now()
		var running sync.WaitGroup
		for i := range calls {
			running.Go(func() {
				errs[i] = call(component, "get", `"hello"`)
				took[i] = time.Since(start)
			})
		}
		running.Wait()
		all := time.Since(start)
		if err := errors.Join(errs...); err != nil {
			return err
		}
		slices.Sort(took)
		if err := json.NewEncoder(os.Stdout).Encode(map[string]float64{
			"cold": cold[0].Seconds(), "web": cold[1].Seconds(), "rate": calls / all.Seconds(), "p99": took[calls*99/100].Seconds(),
		}); err != nil {
			return err
		}
	}
	return nil
}
