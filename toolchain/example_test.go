package toolchain_test

import (
	"context"
	"fmt"
	"log"
	"testing/fstest"

	"github.com/stilehost/stile/host"
	"github.com/stilehost/stile/toolchain"
)

func Example() {
	ctx := context.Background()
	h, err := host.New(ctx, host.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = h.Close() }()
	tools, err := toolchain.New(ctx, h, toolchain.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = tools.Close() }()
	c, err := tools.Build(ctx, toolchain.Source{Entry: "tool.ts", FS: fstest.MapFS{"tool.ts": {Data: []byte(`
		import { extension } from "stile";
		export default extension({ tools: { hello: { description: "Says hello", run: () => "Hello" } } });
	`)}}})
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	out, err := c.Call(ctx, "hello", []byte("{}"), nil)
	fmt.Println(string(out), err)
}
