package toolchain

import (
	"fmt"
	"slices"
	"testing"
	"testing/fstest"
	"time"

	"github.com/evanw/esbuild/pkg/api"

	"github.com/stilehost/stile/capabilities/clock"
	"github.com/stilehost/stile/capabilities/console"
	"github.com/stilehost/stile/capabilities/random"
	"github.com/stilehost/stile/host"
	"github.com/stilehost/stile/internal/cache/cachetest"
)

// route is a typical tool of 1 KB.
const route = `import { extension } from "stile";

interface Place { lat: number; lon: number }
interface Leg { from: Place; to: Place; kilometres: number }

const radius = 6371.0088;
const radians = (degrees: number): number => (degrees * Math.PI) / 180;

function distance(a: Place, b: Place): number {
  const dLat = radians(b.lat - a.lat), dLon = radians(b.lon - a.lon);
  const h = Math.sin(dLat / 2) ** 2 + Math.cos(radians(a.lat)) * Math.cos(radians(b.lat)) * Math.sin(dLon / 2) ** 2;
  return 2 * radius * Math.asin(Math.sqrt(h));
}

export default extension({
  tools: {
    route: {
      description: "Length of a route over places",
      input: {
        type: "object",
        properties: { places: { type: "array", items: { type: "object", required: ["lat", "lon"] } } },
        required: ["places"],
      },
      run: async ({ places }: { places: Place[] }) => {
        const legs: Leg[] = places.slice(1).map((to, i) => ({ from: places[i], to, kilometres: distance(places[i], to) }));
        return Math.round(legs.reduce((sum, leg) => sum + leg.kilometres, 0));
      },
    },
  },
});
`

// benched is a toolchain and a request for the tool above.
func benched(b *testing.B) (*Toolchain, host.Request) {
	b.Helper()
	cacheDir, keyDir := cachetest.Dirs(b)
	h, err := host.New(b.Context(), host.Options{CacheDir: cacheDir, KeyDir: keyDir})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = h.Close() })
	t, err := New(b.Context(), h, Options{CacheDir: cacheDir, KeyDir: keyDir})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = t.Close() })
	env := host.Env{"clock": clock.System(), "random": random.System(), "console": console.To(func(console.Level, string) {})}
	return t, host.Request{Tool: "route", Input: []byte(`{"places":[{"lat":48.8566,"lon":2.3522},{"lat":51.5074,"lon":-0.1278}]}`), Env: env}
}

// BenchmarkBuild measures the way from a new source to a callable component.
func BenchmarkBuild(b *testing.B) {
	t, _ := benched(b)
	b.ReportAllocs()
	for n := 0; b.Loop(); n++ {
		text := route + fmt.Sprintf("\nexport const id = %d;\n", n)
		c, err := t.Build(b.Context(), Source{FS: fstest.MapFS{"route.ts": {Data: []byte(text)}}, Entry: "route.ts", Bindings: map[string]string{}})
		if err != nil {
			b.Fatal(err)
		}
		if err := c.Close(); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkCall measures a cold call of a component, and its parts as medians.
func BenchmarkCall(b *testing.B) {
	t, request := benched(b)
	c, err := t.Build(b.Context(), Source{FS: fstest.MapFS{"route.ts": {Data: []byte(route)}}, Entry: "route.ts", Bindings: map[string]string{}})
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	parts := map[string][]time.Duration{}
	for b.Loop() {
		r, err := c.Do(b.Context(), request)
		if err != nil || string(r.Output) != "344" {
			b.Fatalf("%s, %v", r.Output, err)
		}
		for name, d := range map[string]time.Duration{"open": r.Phases.Open, "instantiate": r.Phases.Instantiate, "run": r.Phases.Run, "close": r.Phases.Close} {
			parts[name] = append(parts[name], d)
		}
	}
	for name, took := range parts {
		slices.Sort(took)
		b.ReportMetric(float64(took[len(took)/2])/1e3, name+"-us")
	}
}

// BenchmarkEvaluate measures the way from source text to result, and each half of it. The metrics are medians.
func BenchmarkEvaluate(b *testing.B) {
	t, request := benched(b)
	e, err := t.Evaluator(b.Context(), map[string]string{"clock": clock.Interface, "random": random.Interface, "console": console.Interface}, false)
	if err != nil {
		b.Fatal(err)
	}
	program := Program{Name: "code.ts", Text: route}
	transformed, err := program.transform(b.Context(), api.SourceMapNone, nil)
	if err != nil {
		b.Fatal(err)
	}
	for _, c := range []struct {
		name string
		do   func() (host.Result, error)
	}{
		{"whole", func() (host.Result, error) { return e.Do(b.Context(), program, request) }},
		{"transform", func() (host.Result, error) {
			_, err := program.transform(b.Context(), api.SourceMapNone, nil)
			return host.Result{Output: []byte("344")}, err
		}},
		{"call", func() (host.Result, error) {
			r := request
			r.Code = &host.Code{Text: string(transformed.Code)}
			return e.component.Do(b.Context(), r)
		}},
	} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			var took []time.Duration
			for b.Loop() {
				start := time.Now()
				r, err := c.do()
				took = append(took, time.Since(start))
				if err != nil || string(r.Output) != "344" {
					b.Fatalf("%s, %v", r.Output, err)
				}
			}
			slices.Sort(took)
			b.ReportMetric(float64(took[len(took)/2])/1e3, "median-us")
		})
	}
}

// BenchmarkResult measures a call whose result is 10,000 rows.
func BenchmarkResult(b *testing.B) {
	t, request := benched(b)
	const rows = `import { extension } from "stile"; export default extension({ tools: { route: { description: "Rows", run: () =>
		Array.from({ length: 10_000 }, (_, id) => ({ id, name: "row " + id, total: id / 3, tags: ["a", "b"], ok: true, none: null })) } } });`
	c, err := t.Build(b.Context(), Source{FS: fstest.MapFS{"rows.ts": {Data: []byte(rows)}}, Entry: "rows.ts", Bindings: map[string]string{}})
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if r, err := c.Do(b.Context(), request); err != nil || len(r.Output) < 500_000 {
			b.Fatalf("%d bytes, %v", len(r.Output), err)
		}
	}
}
