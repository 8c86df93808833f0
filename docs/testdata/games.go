// Command games calls tools with the capabilities of docs/capabilities.md. A test builds it with the blocks of the documents.
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"slices"
	"testing/fstest"
	"time"

	"github.com/stilehost/stile/docs/blocks/dice"
	"github.com/stilehost/stile/docs/blocks/slow"
	"github.com/stilehost/stile/host"
	"github.com/stilehost/stile/toolchain"
)

const roll = `
	import { extension } from "stile";
	export default extension({ tools: { roll: {
		description: "Roll dice", input: { type: "object" }, run: async (_, env) => (await env.dice.roll(3)).length,
	} } });`

func main() {
	if err := run(context.Background()); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context) error {
	dir, err := os.UserCacheDir()
	if err != nil {
		return err
	}
	var wit []string
	for _, file := range []string{"dice.wit", "slow.wit"} {
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		wit = append(wit, string(text))
	}
	cache, key := filepath.Join(dir, "my-program", "cache"), filepath.Join(dir, "my-program", "key")
	h, err := host.New(ctx, host.Options{CacheDir: cache, KeyDir: key, WIT: wit})
	if err != nil {
		return err
	}
	defer h.Close()
	tools, err := toolchain.New(ctx, h, toolchain.Options{CacheDir: cache, KeyDir: key})
	if err != nil {
		return err
	}
	defer tools.Close()

	roller, err := tools.Build(ctx, toolchain.Source{FS: fstest.MapFS{"roll.ts": {Data: []byte(roll)}}, Entry: "roll.ts"})
	if err != nil {
		return err
	}
	defer roller.Close()
	rolled, err := roller.Call(ctx, "roll", nil, host.Env{"dice": dice.Cup{Sides: 6}})
	if err != nil {
		return err
	}

	source, tree, err := toolchain.Open("slow.ts")
	if err != nil {
		return err
	}
	defer tree.Close()
	thrower, err := tools.Build(ctx, source)
	if err != nil {
		return err
	}
	defer thrower.Close()
	inputs := slices.Repeat([][]byte{[]byte(`{"count": 2}`)}, 1000)
	outputs, err := all(ctx, thrower, "throw", inputs, host.Env{"dice": slow.Cup{Rolling: 20 * time.Millisecond}})
	if err != nil {
		return err
	}
	for _, output := range outputs {
		if string(output) != string(outputs[0]) {
			return fmt.Errorf("got %s and %s", output, outputs[0])
		}
	}
	_, err = fmt.Printf("rolled %s, threw %s %d times\n", rolled, outputs[0], len(outputs))
	return err
}
