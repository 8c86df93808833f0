package toolchain

import (
	"bytes"
	"context"
	"encoding/gob"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/evanw/esbuild/pkg/api"

	"github.com/stilehost/stile/internal/child"
	"github.com/stilehost/stile/internal/usagetest"
)

// helper runs this program as a bundler that works or misbehaves in the given way.
func helper(does string) []string { return []string{os.Args[0], "as-bundler", does} }

func init() {
	if len(os.Args) != 3 || os.Args[1] != "as-bundler" {
		return
	}
	tight := child.Limits{Time: time.Second, Memory: 512 << 20}
	switch os.Args[2] {
	case "bundle":
		if err := Bundle(os.Stdin, os.Stdout); err != nil {
			panic(err)
		}
	case "spin":
		_ = child.Confine(tight)
		for n := 0; ; n++ {
			_ = n
		}
	case "eat":
		_ = child.Confine(tight)
		for all := [][]byte{}; ; all = append(all, bytes.Repeat([]byte{1}, 1<<20)) {
			_ = all
		}
	case "block":
		select {}
	case "chatter":
		for range 20 {
			_, _ = os.Stderr.Write(bytes.Repeat([]byte("words\x1b "), 10_000))
		}
		os.Exit(3)
	case "flood":
		for {
			if _, err := os.Stdout.Write(make([]byte, 1<<20)); err != nil {
				os.Exit(4)
			}
		}
	case "ask": // for files, without end
		for to := gob.NewEncoder(os.Stdout); ; {
			if to.Encode(message{Name: "main.ts", Read: true}) != nil {
				os.Exit(4)
			}
		}
	case "open": // what it can do once it is confined
		_ = child.Confine(tight)
		_, err := os.Open("/etc/passwd")
		_ = gob.NewEncoder(os.Stdout).Encode(message{Answer: &answer{Fault: fmt.Sprint(err, os.Environ())}})
	case "write nothing":
	case "write something":
		_, _ = os.Stdout.WriteString("something")
	}
	os.Exit(0)
}

// flatShapes make esbuild slow for their size without any nesting: the files, with a part of them n times.
var flatShapes = map[string]func(n int) map[string]string{
	"missing imports": func(n int) map[string]string {
		return map[string]string{"main.ts": numbered(n, "import {a%[1]d} from './b';a%[1]d();"), "b.ts": "export {}"}
	},
	"chained exports": func(n int) map[string]string {
		return map[string]string{"main.ts": numbered(n, "export {a%d as a%d} from './main';\n")}
	},
	"chained names": func(n int) map[string]string {
		return map[string]string{"main.ts": "export {" + numbered(n, "a%d as a%d,") + "} from './main';\n"}
	},
	"chained names, hidden": func(n int) map[string]string {
		return map[string]string{"main.ts": "export/*;*/{/*}*/" + numbered(n, "a%d as a%d,") + "} from './main';\n"}
	},
	"chained imports": func(n int) map[string]string {
		return map[string]string{"main.ts": "import {" + numbered(n, "a%d as b%d,") + "} from './main';export{" + numbered(n, "b%d as a%d,") + "};export let a0=1;"}
	},
	"names twice": func(n int) map[string]string {
		return map[string]string{"main.ts": "export {" + strings.Repeat("x as y,", n) + "};let x"}
	},
	"keys twice": func(n int) map[string]string {
		return map[string]string{"main.ts": "import './x.json'", "x.json": "{" + strings.Repeat(`"":0,`, n) + `"b":1}`}
	},
	"cases twice": func(n int) map[string]string {
		return map[string]string{"main.ts": "switch(x){" + strings.Repeat("case 0:", n) + "}"}
	},
	"kept comments": func(n int) map[string]string { return map[string]string{"main.ts": strings.Repeat("/*!*/x;", n)} },
	"declarations":  func(n int) map[string]string { return map[string]string{"main.ts": strings.Repeat("let a;", n)} },
	"private names": func(n int) map[string]string {
		return map[string]string{"main.ts": "class A{" + strings.Repeat("#a;", n) + "}"}
	},
	"octal numbers": func(n int) map[string]string {
		return map[string]string{"main.ts": "export {};" + strings.Repeat("00;", n)}
	},
	"constants": func(n int) map[string]string {
		return map[string]string{"main.ts": "const a=1;" + strings.Repeat("a=1;", n)}
	},
}

func numbered(n int, format string) string {
	var b strings.Builder
	for i := range n {
		_, _ = b.WriteString(strings.ReplaceAll(fmt.Sprintf(format, i, i+1), "%!(EXTRA int="+fmt.Sprint(i+1)+")", ""))
	}
	return b.String()
}

// sized is a shape whose files have about this size.
func sized(shape func(n int) map[string]string, size int) map[string]string {
	for n := 8; ; n += n / 8 {
		total := 0
		files := shape(n)
		for _, text := range files {
			total += len(text)
		}
		if total >= size {
			return files
		}
	}
}

// TestFlatWork bundles flat shapes of a size that takes little time, and compares with the estimate.
func TestFlatWork(t *testing.T) { loose.flat(t) }

func (o tolerance) flat(t *testing.T) {
	for name, shape := range flatShapes {
		files := sized(shape, maxInside/8)
		flat, work := flatWork{}, time.Duration(0)
		for _, text := range files {
			work = flat.add(text)
		}
		b := newBundler(Source{FS: tree(files), Entry: "main.ts"}, nil)
		start := usagetest.Processor()
		_, _ = b.bundle(t.Context())
		if took := usagetest.Processor() - start; !o.allows(took, work) {
			t.Errorf("%s: took %v, estimated at %v", name, took, work)
		}
		if large := sized(shape, 200_000); name != "cases twice" {
			start := usagetest.Processor()
			_, err := bundleTree(t, "main.ts", large)
			if bad, ok := errors.AsType[*BuildError](err); !ok || !strings.Contains(bad.Problems[0].Text, "can take longer than the limit of 1m0s") {
				t.Errorf("%s, 200 KB of it, without a bundler: %.200v", name, err)
			}
			if took := usagetest.Processor() - start; took > 20*time.Second {
				t.Errorf("%s: it took %v to refuse", name, took)
			}
		}
	}
}

// TestFlatSources bundles sources that would take minutes, and cancels the builds. Nothing of a build is left.
func TestFlatSources(t *testing.T) {
	for name, size := range map[string]int{"chained exports": 140_000, "missing imports": 4 << 20, "keys twice": 4 << 20} {
		for _, limit := range []bool{true, false} {
			b := newBundler(Source{FS: tree(sized(flatShapes[name], size)), Entry: "main.ts"}, helper("bundle"))
			ctx := t.Context()
			if limit {
				b.time = 200 * time.Millisecond
			} else {
				var cancel context.CancelFunc
				ctx, cancel = context.WithTimeout(ctx, 200*time.Millisecond)
				defer cancel()
			}
			_, err := b.run(ctx)
			_, bad := errors.AsType[*BuildError](err)
			if limit && (!bad || !strings.Contains(err.Error(), "make it smaller")) || !limit && !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%s: %v", name, err)
			}
			allBuildsEnd(t)
		}
	}
	text := flatShapes["octal numbers"](80_000)["main.ts"]
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	if _, err := (Program{Name: "code.ts", Text: text}).transform(ctx, api.SourceMapNone, helper("bundle")); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("code: %v", err)
	}
	allBuildsEnd(t)
	if _, err := (Program{Name: "code.ts", Text: text}).transform(t.Context(), api.SourceMapNone, nil); err == nil || !strings.Contains(err.Error(), "set the option Bundler") {
		t.Errorf("code without a bundler: %v", err)
	}
}

// allBuildsEnd waits for the cancelled builds. A build ends with its process.
func allBuildsEnd(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	for range maxBuilds {
		if building.Take(ctx) != nil {
			t.Fatal("a build goes on that was given up")
		}
		defer building.Give()
	}
}

func TestBundlerFails(t *testing.T) {
	large := tree(map[string]string{"main.ts": strings.Repeat("a();", maxInside)})
	for does, want := range map[string]string{
		"spin":            "the bundler works longer than the limit of 1s",
		"eat":             "takes more than 2048 MiB of memory",
		"chatter":         `exit status 3: words\x1b words`,
		"write nothing":   "name a program that calls toolchain.Bundle: EOF",
		"write something": "name a program that calls toolchain.Bundle: unexpected EOF",
		"flood":           "name a program that calls toolchain.Bundle",
		"ask":             "bundling takes longer than the limit of 500ms",
		"block":           "bundling takes longer than the limit of 500ms",
		"open":            "too many open files [GOMEMLIMIT=1610612736]",
	} {
		t.Run(does, func(t *testing.T) {
			if does == "spin" {
				defer func(l child.Limits) { bundlerLimits = l }(bundlerLimits)
				bundlerLimits.Time = time.Second
			}
			b := newBundler(Source{FS: large, Entry: "main.ts"}, helper(does))
			b.time = 2 * time.Minute
			if strings.Contains(want, "500ms") {
				b.time = 500 * time.Millisecond
			}
			_, err := b.run(t.Context())
			_, bad := errors.AsType[*BuildError](err)
			_, failed := errors.AsType[*BundlerError](err)
			if err == nil || !strings.Contains(err.Error(), want) || bad != strings.Contains(want, " than ") || failed == bad || len(err.Error()) > 2*child.MaxWords {
				t.Fatalf("got %.300v, want %q", err, want)
			}
			allBuildsEnd(t)
		})
	}
	_, err := bundle(t.Context(), Source{FS: large, Entry: "main.ts"}, []string{"/nowhere/stile"})
	if failed, ok := errors.AsType[*BundlerError](err); !ok || !strings.Contains(failed.Reason, "/nowhere/stile: no such file") {
		t.Errorf("got %v", err)
	}
}

// alike bundles as a bundler's process does, and compares the result with a bundle made here.
func alike(t *testing.T, source Source, here *bundled, failure error) {
	t.Helper()
	there := newBundler(source, nil)
	toChild, orders := io.Pipe()
	answers, fromChild := io.Pipe()
	go func() { _ = fromChild.CloseWithError(carryOut(toChild, fromChild)) }()
	a, err := give(order{Entry: source.Entry, Node: source.node != nil}, source, orders, answers)
	if err != nil {
		t.Fatal(err)
	}
	if err := a.err(); err != nil || failure != nil {
		if err == nil || failure == nil || err.Error() != failure.Error() {
			t.Errorf("in another process: %v, here: %v", err, failure)
		}
		return
	}
	there.files = a.Files
	b, err := there.result(a.Outputs)
	if err != nil || !bytes.Equal(b.code, here.code) || !bytes.Equal(b.sourceMap, here.sourceMap) || !slices.Equal(b.files, here.files) {
		t.Errorf("in another process, %v:\n%s\nhere:\n%s", err, b.code, here.code)
	}
}

// TestLargeSource checks that a separate process bundles and transforms exactly as this process would.
func TestLargeSource(t *testing.T) {
	files := mod(`import p from "p"; import x from "q"; import s from "./s.txt"; export default [p, s, x, require("node:path")]`, map[string]string{
		"package.json": `{"exports": {"import": "./p.mjs"}}`, "p.mjs": "export default [\n" + strings.Repeat("f('ä'),\n", maxInside/4) + "]",
	})
	files["s.txt"] = strings.Repeat("text ", 1000)
	source := Source{FS: tree(files), Entry: "main.ts"}
	for _, program := range [][]string{nil, helper("bundle")} {
		found, err := FindImports(t.Context(), source, program)
		if err != nil || !slices.Equal(found.Packages, []string{"p", "q"}) {
			t.Errorf("%v: %v, %v", program, found, err)
		}
	}
	maps.Copy(files, map[string]string{"node_modules/q/index.js": "module.exports = 1"})
	source.FS, source.node = tree(files), fakeNode
	var all []*bundled
	for _, program := range [][]string{nil, helper("bundle")} {
		b, err := bundle(t.Context(), source, program)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, b)
	}
	if !bytes.Equal(all[0].code, all[1].code) || !bytes.Equal(all[0].sourceMap, all[1].sourceMap) || !slices.Equal(all[0].files, all[1].files) {
		t.Error("they differ")
	}
	for text, want := range map[string]string{
		strings.Repeat("a(1);\n", 10_000):                  "",
		strings.Repeat("a(1);\n", 10_000) + "let b; let b": "code.ts:10001:12: The symbol \"b\"",
	} {
		p := Program{Name: "code.ts", Text: text}
		here, failure := p.transform(t.Context(), api.SourceMapExternal, nil)
		there, err := p.transform(t.Context(), api.SourceMapExternal, helper("bundle"))
		if !bytes.Equal(here.Code, there.Code) || !bytes.Equal(here.Map, there.Map) || fmt.Sprint(failure) != fmt.Sprint(err) || want != "" && !strings.HasPrefix(fmt.Sprint(err), want) {
			t.Errorf("here %v, there %v", failure, err)
		}
	}
}

// TestSmallSources checks that typical sources are bundled without a process.
func TestSmallSources(t *testing.T) {
	text := strings.Repeat("export const a = (b: number): string => c(b, `${b}`)\n", 1)
	if _, err := bundle(t.Context(), Source{FS: tree(map[string]string{"main.ts": text}), Entry: "main.ts"}, helper("write nothing")); err != nil {
		t.Error(err)
	}
	if _, err := (Program{Name: "code.ts", Text: text}).transform(t.Context(), api.SourceMapNone, helper("write nothing")); err != nil {
		t.Error(err)
	}
}
