package contenders

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"syscall"
	"testing/fstest"
	"time"

	"github.com/stilehost/stile/bench"
	"github.com/stilehost/stile/bench/internal/measure"
	"github.com/stilehost/stile/capabilities/kv"
	"github.com/stilehost/stile/host"
	"github.com/stilehost/stile/internal/sqlite"
	"github.com/stilehost/stile/toolchain"
)

// Own are the measurements of this host alone, and of hosts of its protocol.
var Own = map[string]func(context.Context, *bench.Suite) error{
	"parts": measureParts,
	"cost":  measureCost,
	"idle":  measureIdle,
	"hosts": measureHosts,
}

// measureParts says where the time of a cold call goes.
func measureParts(ctx context.Context, s *bench.Suite) (err error) {
	o, err := openOurs(ctx, &s.Workbench, bench.Compute, 0)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, o.Close()) }()
	component, err := o.tools.Build(ctx, o.source(bench.Source(bench.Compute, bench.StoredID)))
	if err != nil {
		return err
	}
	for round := range s.Size.Rounds {
		s.Tell("parts", round, s.Size.Rounds)
		const calls = 200
		parts := map[string][]float64{}
		faults, system := kernel()
		for range calls {
			start := time.Now()
			result, err := component.Do(ctx, host.Request{Tool: "tool", Input: bench.HoldInput()})
			if err != nil {
				return err
			}
			whole, p := time.Since(start), result.Phases
			for name, part := range map[string]time.Duration{
				"open": p.Open, "instantiate": p.Instantiate, "run": p.Run, "drop": p.Close,
				"input and output": whole - p.Open - p.Instantiate - p.Run - p.Close, "whole": whole,
			} {
				parts[name] = append(parts[name], us(part))
			}
		}
		after, systemAfter := kernel()
		line := &bench.PartsRound{Round: round, US: map[string]float64{}, Faults: float64(after-faults) / calls, SystemUS: us(systemAfter-system) / calls}
		for name, part := range parts {
			line.US[name] = measure.Quantile(part, 0.5)
		}
		if err := s.Write(bench.Line{Parts: line}); err != nil {
			return err
		}
	}
	return nil
}

// kernel is how many pages were mapped for this process on first use, and the processor time of the kernel for it.
func kernel() (faults int64, system time.Duration) {
	var r syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &r); err != nil {
		return 0, 0
	}
	return r.Minflt, time.Duration(r.Stime.Nano())
}

func us(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }

// costs measures this host while something grows.
type costs struct {
	*ours
	suite *bench.Suite
}

func measureCost(ctx context.Context, s *bench.Suite) (err error) {
	o, err := openOurs(ctx, &s.Workbench, bench.Compute, 0)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, o.Close()) }()
	c := &costs{o, s}
	return errors.Join(c.stored(ctx), c.loaded(ctx), c.bundle(ctx), c.within(ctx))
}

// variant is a subject of size X.
type variant struct {
	x    float64
	call func() error
}

// compare times calls of the variants in turns.
func (c *costs) compare(what, unit string, variants []variant) error {
	const calls = 50
	took := make([]measure.Series, len(variants))
	faults := make([]float64, len(variants))
	for round := range c.suite.Size.Rounds {
		c.suite.Tell("cost: "+what, round, c.suite.Size.Rounds)
		for i, v := range variants {
			for range 5 {
				if err := v.call(); err != nil {
					return fmt.Errorf("%s, %v: %w", what, v.x, err)
				}
			}
			var trials []float64
			before, _ := kernel()
			for range calls {
				start := time.Now()
				if err := v.call(); err != nil {
					return fmt.Errorf("%s, %v: %w", what, v.x, err)
				}
				trials = append(trials, us(time.Since(start)))
			}
			after, _ := kernel()
			took[i] = append(took[i], trials)
			faults[i] += float64(after-before) / float64(calls*c.suite.Size.Rounds)
		}
	}
	for i, v := range variants {
		line := &bench.CostPoint{What: what, X: v.x, Unit: unit, CallUS: took[i].Estimate(), P95US: took[i].P95(), Faults: faults[i]}
		if err := c.suite.Write(bench.Line{Cost: line}); err != nil {
			return err
		}
	}
	return nil
}

// build builds and loads a tool whose answers have an id.
func (c *costs) build(ctx context.Context, id, more string) (*host.Component, error) {
	return c.tools.Build(ctx, c.source(bench.Source(bench.Compute, id)+more))
}

func call(ctx context.Context, component *host.Component, id string) error {
	out, err := component.Call(ctx, "tool", bench.HoldInput(), nil)
	if err == nil && !strings.Contains(string(out), `"id":"`+id+`"`) {
		err = fmt.Errorf("the answer of another tool: %s", out)
	}
	return err
}

// rows is a minimal store of extensions: it maps names to images.
var rows = sqlite.Schema{Kind: "rows of the benchmark", ID: 0x5374426e, Migrations: []string{`
CREATE TABLE extension (
	name  TEXT NOT NULL PRIMARY KEY,
	image INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
`}}

// stored calls extensions that are rows of a table. Many rows share an image. A call finds the row by name, takes the component and
// calls it. Tables of all sizes have the same components.
func (c *costs) stored(ctx context.Context) (err error) {
	images := min(100, c.suite.Size.Rows/10)
	var loaded []*host.Component
	var stores []*sqlite.DB
	defer func() {
		for _, component := range loaded {
			err = errors.Join(err, component.Close())
		}
		for _, db := range stores {
			err = errors.Join(err, db.Close())
		}
	}()
	for i := range images {
		component, err := c.build(ctx, fmt.Sprint("image-", i), "")
		if err != nil {
			return err
		}
		loaded = append(loaded, component)
	}
	dir, err := c.w.Folder("rows")
	if err != nil {
		return err
	}
	var variants []variant
	for n := 10; n <= c.suite.Size.Rows; n *= 10 {
		db, err := sqlite.Open(ctx, filepath.Join(dir, fmt.Sprint(n)), rows)
		if err != nil {
			return err
		}
		stores = append(stores, db)
		if err := db.Update(ctx, func(conn *sqlite.Conn) error {
			for i := range n {
				if _, err := conn.Exec(ctx, `INSERT INTO extension VALUES (?, ?)`, fmt.Sprint("extension-", i), i%images); err != nil {
					return err
				}
			}
			return nil
		}); err != nil {
			return err
		}
		variants = append(variants, variant{float64(n), func() error {
			name, image := fmt.Sprint("extension-", rand.IntN(n)), 0
			if err := db.Read(ctx, func(conn *sqlite.Conn) error {
				return conn.Row(ctx, `SELECT image FROM extension WHERE name = ?`, name).Scan(&image)
			}); err != nil {
				return err
			}
			return call(ctx, loaded[image], fmt.Sprint("image-", image))
		}})
	}
	return c.compare("stored", "rows sharing 100 images", variants)
}

// loaded calls random loaded components.
func (c *costs) loaded(ctx context.Context) error {
	var variants []variant
	var all []*host.Component
	most := min(1000, c.suite.Size.Rows/10)
	defer func() {
		for _, component := range all {
			_ = component.Close()
		}
	}()
	for i := range most {
		if i%20 == 0 {
			c.suite.Tell("cost: load", i, most)
		}
		component, err := c.build(ctx, fmt.Sprint("loaded-", i), "")
		if err != nil {
			return err
		}
		all = append(all, component)
	}
	for n := 1; n <= most; n *= 10 {
		variants = append(variants, variant{float64(n), func() error {
			at := rand.IntN(n)
			return call(ctx, all[at], fmt.Sprint("loaded-", at))
		}})
	}
	return c.compare("loaded", "components loaded", variants)
}

// bundle calls tools among more and more code.
func (c *costs) bundle(ctx context.Context) error {
	var variants []variant
	for _, kib := range []int{1, 10, 100, 1000, 5000} {
		var more strings.Builder
		for i := 0; more.Len() < kib<<10; i++ {
			fmt.Fprintf(&more, "export const table%d = %q;\n", i, strings.Repeat(fmt.Sprint("entry ", i, " "), 100))
		}
		id := fmt.Sprint("bundle-", kib)
		component, err := c.build(ctx, id, more.String())
		if err != nil {
			return fmt.Errorf("a bundle of %d KiB: %w", kib, err)
		}
		defer func() { _ = component.Close() }()
		variants = append(variants, variant{float64(kib), func() error { return call(ctx, component, id) }})
	}
	return c.compare("bundle", "KiB of source", variants)
}

const grower = `import { extension } from "stile";
export default extension({
  tools: {
    touch: { description: "Writes to memory", input: { type: "object" }, run: ({ kib }) => ({ last: kib && new Uint8Array(kib * 1024).fill(1).at(-1) }) },
    get: {
      description: "Gets a key, over and over", input: { type: "object" },
      run: async ({ times }, env) => { let last; for (let i = 0; i < times; i++) last = await env.store.get("key"); return { last }; },
    },
  },
});
`

// within calls tools that touch more and more memory, or make more and more operations.
func (c *costs) within(ctx context.Context) error {
	dir, err := c.w.Folder("kv")
	if err != nil {
		return err
	}
	store, err := kv.Open(ctx, filepath.Join(dir, "kv.sqlite"), kv.Options{})
	if err != nil {
		return err
	}
	defer func() { _ = store.Close() }()
	bucket := store.Bucket("bench")
	if err := bucket.Set(ctx, "key", "value"); err != nil {
		return err
	}
	component, err := c.tools.Build(ctx, toolchain.Source{
		FS: fstest.MapFS{"tool.ts": {Data: []byte(grower)}}, Entry: "tool.ts", Bindings: map[string]string{"store": kv.Interface},
	})
	if err != nil {
		return err
	}
	defer func() { _ = component.Close() }()
	of := func(tool, member string, values ...int) (variants []variant) {
		for _, x := range values {
			input := fmt.Appendf(nil, `{%q:%d}`, member, x)
			variants = append(variants, variant{float64(x), func() error {
				_, err := component.Call(ctx, tool, input, host.Env{"store": bucket})
				return err
			}})
		}
		return variants
	}
	return errors.Join(
		c.compare("memory", "KiB written", of("touch", "kib", 0, 64, 256, 1024, 4096, 16384)),
		c.compare("operations", "kv.get in a call", of("get", "times", 0, 1, 10, 100, 1000)),
	)
}
