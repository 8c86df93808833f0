package toolchain

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/evanw/esbuild/pkg/api"

	"github.com/stilehost/stile/internal/usagetest"
)

// slowShapes make esbuild slow for their size: the beginning, the repeated part, the middle, and the end of each.
var slowShapes = map[string]slowShape{
	"conditions":              {"x=", "a?(b):c=>", "d", ""},
	"paired conditions":       {"x=", "a?(b):c=>", "d", ":e"},
	"conditions in blocks":    {"x=", "a?(b):c=>{", "d", "}"},
	"conditions in functions": {"x=", "a?(b):c=>function(){return ", "d", "}"},
	"conditions apart":        {"x=", "a ?/**/\n( b ) : Foo<x,y> => ", "d", ""},
	"conditions in calls":     {"x=", "a?(b):c=>f<x,y>(", "d", ")"},
	"conditions in types":     {"x=", "a?({b}):{c:d}=>[", "d", "]"},
	"conditions with this":    {"x=", "a?(...b):this=>`${", "d", "}`"},
	"conditions in classes":   {"x=", "a?():c=>class{b=", "d", "}"},
	"inferred":                {"type X=a extends ", "[infer A extends ", "b", "?c:d]"},
	"inferred lists":          {"type X=", "a extends [infer A extends [", "b", "]?c:d]?c:d"},
	"inferred, broken":        {"type X=", "[infer A extends ", "!", "]"},
	"inferred objects":        {"type X=", "a extends{b:infer\nA/**/extends{c:", "b", "}?c:d}?c:d"},
	"comparisons":             {"x=", "a<", "b", ""},
	"compared lists":          {"x=", "a<[", "b", "]"},
	"comparisons in a list":   {"x=[", "a<b,", "c]", ""},
	"default arguments":       {"x=", "(a=", "b", ")=>c"},
	"namespaces":              {"", "namespace a{", "b", "}"},
	"exporting namespaces":    {"", "namespace a{export let x=1;", "b", "}"},
	"dotted namespaces":       {"namespace a", ".a", "{export let b=1}", ""},
	"classes":                 {"", "class a{b=class{c=", "1", "}}"},
	"private classes":         {"x=", "class{#a;b=", "c", "}"},
	"one name":                {"", "{let a;", "a", "}"},
	"functions":               {"x=", "(()=>(", "a", "))"},
	"arrows":                  {"x=", "a=>", "b", ""},
	"blocks":                  {"", "{var a;", "b", "}"},
	"evals":                   {"", "{let a;eval(1);", "b", "}"},
	"additions":               {"x='a'", "+'a'", "", ""},
	"commas":                  {"", "a,", "b", ""},
	"elses":                   {"", "if(a){}else ", "b", ""},
	"labels":                  {"", "a:{", "b", "}"},
}

func (s slowShape) of(n int) string {
	return s[0] + strings.Repeat(s[1], n) + s[2] + strings.Repeat(s[3], n)
}

type slowShape [4]string

func parsed(text string) time.Duration {
	start := usagetest.Processor()
	api.Transform(text, api.TransformOptions{Loader: api.LoaderTS, Format: api.FormatESModule, Target: api.ESNext, Supported: map[string]bool{"decorators": false}, MinifyWhitespace: true, Sourcemap: api.SourceMapExternal, LogLevel: api.LogLevelSilent})
	return usagetest.Processor() - start
}

// tolerance is how far work may exceed its estimate.
type tolerance struct {
	always time.Duration
	factor float64
}

// loose is what a slow machine keeps, too. An estimate that is far too low does not: the shapes take exponential time, or square. TestLongWork is
// strict.
var loose = tolerance{2 * time.Second, 40}

func (o tolerance) allows(took, estimate time.Duration) bool {
	return took <= o.always+time.Duration(o.factor*float64(estimate))
}

// fits reports whether code takes no longer than estimated.
func (o tolerance) fits(text string) error {
	n := nestingOf(text, api.LoaderTS)
	if took := parsed(text); !o.allows(took, n.work) {
		return fmt.Errorf("%.100s...: took %v, estimated at %v (%s)", text, took, n.work, n.unclear)
	}
	return nil
}

// TestWorkIsEstimated parses each kind of slow code up to the size with an estimate of a tenth of a second.
func TestWorkIsEstimated(t *testing.T) { loose.shapes(t) }

func (o tolerance) shapes(t *testing.T) {
	for name, s := range slowShapes {
		for n := 1; nestingOf(s.of(n), api.LoaderTS).work < 100*time.Millisecond; n += n + 1 {
			if err := o.fits(s.of(n)); err != nil {
				t.Errorf("%s, %d times: %v", name, n, err)
			}
		}
	}
}

// TestWorkOfMixtures parses constructs nested in one another at random.
func TestWorkOfMixtures(t *testing.T) { loose.mixtures(t) }

func (o tolerance) mixtures(t *testing.T) {
	r := rand.New(rand.NewPCG(11, 1))
	expressions := []slowShape{
		{"a?(b):c=>", "", "", ""},
		{"a?(b):c=>", ":e", "", ""},
		{"a?([b]):c=>{return ", "}", "", ""},
		{"f<x,y>(", ")", "", ""},
		{"a<", "", "", ""},
		{"[a,", ",b]", "", ""},
		{"{a:", "}", "", ""},
		{"(a=", ")=>b", "", ""},
		{"a?(b):Foo<c,d>=>", "", "", ""},
		{"(b as ", ")", "type", ""},
		{"`${", "}`", "", ""},
		{"class{a=", "}", "", ""},
		{"a?(", "):b", "", ""},
		{"a?b:", "", "", ""},
		{"function<T extends ", ">(){}", "type", ""},
		{"(a):", "=>b", "type", ""},
	}
	types := []slowShape{
		{"[infer A extends ", "?c:d]", "", ""},
		{"a extends[infer A extends ", "]?c:d", "", ""},
		{"infer A extends ", "", "", ""},
		{"(a:", ")=>b", "", ""},
		{"(", ")", "", ""},
		{"Foo<a,", ",b>", "", ""},
		{"Foo<infer A extends ", ">", "", ""},
		{"{a:", ";b:c}", "", ""},
		{"keyof ", "", "", ""},
		{"a is ", "", "", ""},
		{"`${", "}`", "", ""},
		{"()=>", "", "", ""},
		{"a extends ", "?b:c", "", ""},
		{"a extends b?", ":c", "", ""},
	}
	for range 150 {
		text, end, of := "x = ", "", expressions
		if r.IntN(3) == 0 {
			text, of = "type X = ", types
		}
		few := of[:0:0]
		for range 1 + r.IntN(4) {
			few = append(few, of[r.IntN(len(of))])
		}
		for range 200 {
			s := few[r.IntN(len(few))]
			before, after := text, end
			if text, end = text+s[0], s[1]+end; s[2] == "type" {
				text, end = before+s[0], s[1]+after
				few = append(few[:0:0], types[r.IntN(len(types))], types[r.IntN(len(types))])
			}
			if nestingOf(text+"a"+end, api.LoaderTS).work > 50*time.Millisecond {
				break
			}
		}
		if err := o.fits(text + "a" + end); err != nil {
			t.Fatal(err)
		}
	}
}

// TestSlowSources has sources, mostly of some hundred bytes, that esbuild would take minutes or forever to parse. They are refused, and
// the error says where.
func TestSlowSources(t *testing.T) {
	for name, s := range slowShapes {
		n := 8
		for work := time.Duration(0); work <= 2*maxBundleWork; n += n / 3 {
			work = nestingOf(s.of(n), api.LoaderTS).work
		}
		text := "// a comment\n" + s.of(n)
		start := usagetest.Processor()
		for _, files := range []map[string]string{
			{"main.ts": text},
			{"main.ts": "import 'p'", "node_modules/p/package.json": `{"main": "p.ts"}`, "node_modules/p/p.ts": text},
		} {
			_, err := bundleTree(t, "main.ts", files)
			refusesWork(t, name, err, !strings.Contains(text, "<!"))
		}
		_, err := Program{Name: "code.ts", Text: text}.transform(t.Context(), api.SourceMapNone, nil)
		refusesWork(t, name, err, true)
		if took := usagetest.Processor() - start; took > 20*time.Second { // parsing takes longer
			t.Errorf("%s: it took %v to refuse %d bytes", name, took, len(text))
		}
	}
	conditions := "x=" + strings.Repeat("a?(b):c=>", 40) + "d"
	for name, file := range map[string][2]string{
		"JSX":               {"code.tsx", "<a>don't</a>;" + conditions},
		"behind a slash":    {"code.ts", "x = a\n++/b/.c;" + conditions},
		"behind an escape":  {"code.ts", "\\u0061 = 1;" + conditions},
		"behind a division": {"code.ts", "x = a! / b; y = {} / 1; " + conditions},
		"inferred":          {"code.tsx", "type X=" + strings.Repeat("[infer A extends ", 50) + "b" + strings.Repeat("?c:d]", 50)},
	} {
		_, err := Program{Name: file[0], Text: file[1]}.transform(t.Context(), api.SourceMapNone, nil)
		refusesWork(t, name, err, false)
	}
	// None of them took enough alone. esbuild parses these much faster than estimated.
	files := map[string]string{"main.ts": ""}
	for i := range 20 {
		files[fmt.Sprintf("m%d.ts", i)] = slowShapes["conditions in types"].of(14)
		files["main.ts"] += fmt.Sprintf("import './m%d';", i)
	}
	_, err := bundleTree(t, "main.ts", files)
	refusesWork(t, "many files", err, true)
}

func refusesWork(t *testing.T, name string, err error, located bool) {
	t.Helper()
	bad, ok := errors.AsType[*BuildError](err)
	if !ok {
		t.Errorf("%s: %v", name, err)
		return
	}
	p := bad.Problems[0]
	if !strings.Contains(p.Text, "parsing") && !strings.Contains(p.Text, "nest") || located && strings.Contains(p.Text, "parsing") && (p.Line == 0 || p.Column == 0 || p.Snippet == "") {
		t.Errorf("%s: %+v", name, p)
	}
}

// TestUsualWork has code as people write it, much more of it in a file than there usually is.
func TestUsualWork(t *testing.T) {
	for name, code := range map[string]string{
		"chains of conditions": "const a = " + strings.Repeat("x === 1 ? (y) : z ? (\n 'b') : ", 60) + "(c) => d;",
		"rows of conditions":   "const a = [" + strings.Repeat("x ? (y) : z,", 1000) + "(c) => d];",
		"arrow functions":      strings.Repeat("const f = (a: string): Promise<Foo<string>> => g(a, (b): number => b < 1 ? (b) : 2);\n", 1000),
		"inferred types":       strings.Repeat("type T<X> = X extends [infer A extends string, ...infer B extends string[]] ? Foo<A, B> : X extends Bar<infer C extends number> ? C : never\n", 1000),
		"comparisons":          strings.Repeat("for (let i = 0; i < n; i++) if (a < b && c < d) f(i < 1);\n", 1000),
	} {
		if n := nestingOf(code, api.LoaderTS); n.work > time.Second || n.unclear != "" {
			t.Errorf("%s: %v, %s", name, n.work, n.unclear)
		}
	}
	table := "{" + strings.Repeat(`"key": [1, {"a": null}],`, 100_000) + `"last": {}}`
	if n := nestingOf(table, api.LoaderJSON); n.work > time.Second || n.levels > 20 || n.unclear != "" {
		t.Errorf("a table in JSON: %v, %d levels, %s", n.work, n.levels, n.unclear)
	}
}
