package workspace

import (
	"context"
	"errors"
	"fmt"
	"math"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/internal/sqlite"
	"github.com/stilehost/stile/internal/turns"
)

// find returns all pages.
func findAll(t testing.TB, d *Directory, pattern string, limit uint32) []string {
	t.Helper()
	var all []string
	for cursor := (*string)(nil); ; {
		page, err := d.Find(t.Context(), pattern, limit, cursor)
		if err != nil {
			t.Fatal(err)
		}
		if len(page.Paths) > int(limit) {
			t.Fatalf("a page of %d", len(page.Paths))
		}
		all = append(all, page.Paths...)
		if cursor = page.Cursor; cursor == nil {
			return all
		}
	}
}

func grepAll(t testing.TB, d *Directory, pattern string, search Search, limit uint32) (all []Match, partial uint32) {
	t.Helper()
	for cursor := (*string)(nil); ; {
		page, err := d.Grep(t.Context(), pattern, search, limit, cursor)
		if err != nil {
			t.Fatal(err)
		}
		if len(page.Matches) > int(limit) {
			t.Fatalf("a page of %d", len(page.Matches))
		}
		all = append(all, page.Matches...)
		partial += page.Partial
		if cursor = page.Cursor; cursor == nil {
			return all, partial
		}
	}
}

func TestFind(t *testing.T) { onBoth(t, testFind) }

func testFind(t *testing.T, d *Directory) {
	for _, path := range []string{"a.ts", "b.md", "src/a.ts", "src/deep/a.ts", "src/deep/b.tsx", "src-not/a.ts", "é/日本.ts", "x/[1].ts", "x/a*b"} {
		write(t, d, path, "")
	}
	if err := errors.Join(d.MakeLink(t.Context(), "src/up", ".."), d.MakeLink(t.Context(), "link.ts", "a.ts")); err != nil {
		t.Fatal(err)
	}
	for pattern, want := range map[string]string{
		"*.ts":                 "a.ts link.ts src/a.ts src/deep/a.ts src-not/a.ts x/[1].ts é/日本.ts",
		"/*.ts":                "a.ts link.ts src/a.ts src/deep/a.ts src-not/a.ts x/[1].ts é/日本.ts",
		"**/*.ts":              "a.ts link.ts src/a.ts src/deep/a.ts src-not/a.ts x/[1].ts é/日本.ts",
		"src/*.ts":             "src/a.ts",
		"src/**":               "src/a.ts src/deep src/deep/a.ts src/deep/b.tsx src/up",
		"src/**/*.ts":          "src/a.ts src/deep/a.ts",
		"**/deep/*":            "src/deep/a.ts src/deep/b.tsx",
		"src/deep/b.ts?":       "src/deep/b.tsx",
		"*/a.ts":               "src/a.ts src-not/a.ts",
		"{src,x}/[!a]*":        "src/deep src/up x/[1].ts",
		"*.{md,tsx}":           "b.md src/deep/b.tsx",
		"{a,b}.{ts,md}":        "a.ts b.md src/a.ts src/deep/a.ts src-not/a.ts",
		"x/\\[1\\].ts":         "x/[1].ts",
		"x/a\\*b":              "x/a*b",
		"日*":                   "é/日本.ts",
		"?":                    "x é",
		"src[ -~]a.ts":         "", // a slash is no character of a name
		"s[ -~]c[ -~]not/*":    "src-not/a.ts",
		"é/[--本]本.ts":          "é/日本.ts",
		"[é]":                  "é",
		"src/up/**":            "", // not through a link
		"nothing/here/**":      "",
		"a.ts/**":              "",
		".":                    "",
		"a.ts\x00":             "",
		"(a|b).ts":             "",
		"**/**/**/**/**/b.tsx": "src/deep/b.tsx",
	} {
		got := findAll(t, d, pattern, 1000)
		sorted := slices.Clone(got)
		slices.Sort(sorted)
		wanted := strings.Fields(want)
		slices.Sort(wanted)
		if !slices.Equal(sorted, wanted) {
			t.Errorf("%s: got %q, want %q", pattern, got, want)
		}
		if paged := findAll(t, d, pattern, 1); !slices.Equal(paged, got) {
			t.Errorf("%s: %q by pages of 1, else %q", pattern, paged, got)
		}
	}
	for pattern, text := range map[string]string{
		"": "empty", "/": "empty", "[a": "without", "{a": "without", "[": "without", `a\`: "backslash", "[z-a]": "range",
		"../*": `".."`, "src/./a.ts": `"."`, "src/../../*": `".."`, strings.Repeat("a", 1025): "1,024", strings.Repeat("{", 1000) + "a" + strings.Repeat("}", 20): "without",
	} {
		_, err := d.Find(t.Context(), pattern, 10, nil)
		expect(t, fmt.Sprintf("%.20q", pattern), err, abi.ErrInvalid, text)
	}
	sub, err := d.Subdirectory(t.Context(), "src/deep")
	if err != nil {
		t.Fatal(err)
	}
	if got := findAll(t, sub, "**", 9); !slices.Equal(got, []string{"a.ts", "b.tsx"}) {
		t.Errorf("below a subdirectory: %q", got)
	}
}

// A glob is as slow as it is long, whatever it says.
// hostile are lists of globs that are slow for matchers of another kind, or were for this one.
func hostile() map[string][]string {
	many := func(pattern string) []string {
		var all []string
		for i := range maxGlobs {
			all = append(all, fmt.Sprint(pattern, i))
		}
		return all
	}
	return map[string][]string{
		"stars":                  {strings.Repeat("*a", 500) + "b"},
		"directories":            {strings.Repeat("**/", 300) + "b"},
		"directories apart":      {strings.Repeat("**/*/", 200) + "b"},
		"choices":                {strings.Repeat("{a,b}", 200) + "c"},
		"choices of stars":       {strings.Repeat("{*,a*}", 150) + "c"},
		"nested":                 {strings.Repeat("{", 400) + strings.Repeat("}", 400)},
		"classes":                {strings.Repeat("[!a]", 250)},
		"any":                    {strings.Repeat("?", 1000)},
		"32 of choices":          many("**/" + strings.Repeat("{a,aa,aaa,aaaa,aaaaa}", 45)),
		"32 of stars":            many(strings.Repeat("*a", 500) + "b"),
		"32 of choices of stars": many(strings.Repeat("{*a,*aa,*aaa}", 75) + "b"),
		"32 of directories":      many(strings.Repeat("**/", 330) + "zzz"),
		"32 short ones":          many("**/{*a*,*aa*}*a*[a-z]?"),
	}
}

// TestHostileGlobs refuses what would take too many steps for one path, and ends a page after so many steps.
func TestHostileGlobs(t *testing.T) {
	d := opened(t, Options{}).Workspace("w")
	deep := strings.Repeat(strings.Repeat("a", 100)+"/", 9) + strings.Repeat("a", 60)
	const files = 64
	for i := range files {
		write(t, d, fmt.Sprint(deep, i), "")
	}
	d.slice = 1 // a nanosecond: a page is over when its steps are done
	for name, patterns := range hostile() {
		t.Run(name, func(t *testing.T) {
			g, err := d.globs(patterns...)
			if err == nil {
				err = checkGlobs(g, g)
			}
			_, refused := d.Grep(t.Context(), "x", Search{Include: patterns, Exclude: patterns}, 10, nil)
			if err != nil {
				if !errors.Is(err, abi.ErrInvalid) || fmt.Sprint(err) != fmt.Sprint(refused) {
					t.Errorf("%v, %v", err, refused)
				}
			} else if refused != nil {
				t.Error(refused)
			}
			if 2*g.program > maxGlobProgram != (err != nil) && !strings.Contains(fmt.Sprint(err), "glob ") {
				t.Errorf("%d instructions in each list: %v", g.program, err)
			}
			if len(patterns) > 1 {
				return
			}
			var cursor *string
			pages := 0
			for {
				got, err := d.Find(t.Context(), patterns[0], 1000, cursor)
				if err != nil {
					expect(t, "find", err, abi.ErrInvalid, "")
					return
				}
				if len(got.Paths) > 0 {
					t.Errorf("found %q", got.Paths)
				}
				pages++
				if cursor = got.Cursor; cursor == nil {
					break
				}
			}
			if least := files * (len(deep)*g.program + entryWork) / (leastWork + maxPath*maxGlobProgram); pages <= least {
				t.Errorf("%d pages for %d instructions", pages, g.program)
			}
			if each := len(deep) * g.program; each > leastWork && pages < files {
				t.Errorf("%d pages for %d files that take %d steps each; a page has %d", pages, files, each, leastWork)
			}
		})
	}
	// All that may come together is what one path costs at most.
	if steps := maxPath * maxGlobProgram; steps > 16<<20 {
		t.Errorf("%d steps for one path", steps)
	}
	// A text is not normalised before it is measured.
	_, err := d.Find(t.Context(), strings.Repeat("\u0958", 1<<20), 1, nil)
	expect(t, "a long glob", err, abi.ErrInvalid, "longer than 1,024 bytes")
}

func FuzzGlob(f *testing.F) {
	for _, pattern := range []string{"**/*.ts", "{a,b{c,d}}/[!x-z]?", `\*[]]`, "[]", "[^]-a]", "é[é-ü]*", "a/**"} {
		f.Add(pattern, "a/b/c.ts")
	}
	f.Fuzz(func(t *testing.T, pattern, path string) {
		g, err := parseGlob(pattern)
		if err != nil {
			if !errors.Is(err, abi.ErrInvalid) {
				t.Fatal(err)
			}
			return
		}
		if g.match("/"+path) && g.prefix != "" && !inside("/"+path, g.prefix) && utf8.ValidString(path) && utf8.ValidString(pattern) {
			t.Fatalf("%q matches %q, which is not below %q", pattern, path, g.prefix)
		}
	})
}

func TestGrep(t *testing.T) { onBoth(t, testGrep) }

func testGrep(t *testing.T, d *Directory) {
	write(t, d, "a.txt", "one\ntwo needle\r\nthree\n\nneedle needle\nlast")
	write(t, d, "b/c.txt", "needle")
	write(t, d, "b/d.md", "needle\n")
	write(t, d, "empty", "")
	long := strings.Repeat("x", 5000) + "needle" + strings.Repeat("é", 2000)
	write(t, d, "long", "before\n"+long+"\nafter\n")
	write(t, d, "longer", strings.Repeat("x", maxLine)+"needle\nneedle\n")
	big := strings.Repeat("nothing here\n", 100_000)
	middle := strings.Repeat("\x80", 5000) // of characters, with no beginning
	write(t, d, "z/big", big+"needle\n"+big)
	if err := errors.Join(d.WriteBytes(t.Context(), "bin", []byte("needle\x00needle\n")), d.WriteBytes(t.Context(), "bin2", []byte("other\x00\n")), d.WriteBytes(t.Context(), "latin", []byte("caf\xe9 needle\n")),
		d.WriteBytes(t.Context(), "middle", []byte(middle+"needle"+middle)),
		d.MakeLink(t.Context(), "link", "a.txt"), d.MakeLink(t.Context(), "loop", ".")); err != nil {
		t.Fatal(err)
	}
	all, partial := grepAll(t, d, "needle", Search{}, 1000)
	var got []string
	for _, m := range all {
		got = append(got, fmt.Sprintf("%s:%d:%d", m.Path, m.Line, m.Column))
		if len(m.Text) > 2*maxShown || !strings.Contains(m.Text, "needle") || !utf8.ValidString(m.Text) || m.Before != nil || m.After != nil {
			t.Errorf("%+v", m)
		}
	}
	want := []string{"a.txt:2:5", "a.txt:5:1", "b/c.txt:1:1", "b/d.md:1:1", "latin:1:6", "long:2:5001", "longer:2:1", "middle:1:5001", "z/big:100001:1"}
	if !slices.Equal(got, want) || partial != 3 {
		t.Errorf("got %q and %d partial, want %q and 3", got, partial, want)
	}
	if all[0].Text != "two needle" || all[4].Text != "caf\uFFFD needle" {
		t.Errorf("%+v", all)
	}
	all, _ = grepAll(t, d, "needle", Search{Include: []string{"*.txt", "*.md"}, Exclude: []string{"b/*.md"}, Context: 2}, 1)
	wanted := []Match{
		{"a.txt", 2, 5, "two needle", []string{"one"}, []string{"three", ""}},
		{"a.txt", 5, 1, "needle needle", []string{"three", ""}, []string{"last"}},
		{"b/c.txt", 1, 1, "needle", nil, nil},
	}
	if fmt.Sprintf("%+v", all) != fmt.Sprintf("%+v", wanted) {
		t.Errorf("got %+v, want %+v", all, wanted)
	}
	if all, _ = grepAll(t, d, "needle", Search{Include: []string{"b/**"}}, 10); len(all) != 2 {
		t.Errorf("below b: %+v", all)
	}
	if all, _ = grepAll(t, d, `(?i)^NEEDLE$`, Search{}, 10); len(all) != 4 {
		t.Errorf("anchored: %+v", all)
	}
	for pattern, text := range map[string]string{
		"(": "missing", `(?=a)`: "invalid", `\1`: "invalid", "a{1001}": "invalid", strings.Repeat("a", 1025): "1025 bytes",
		"(abcdefgh){200}": "instructions", "\xff": "UTF-8",
	} {
		_, err := d.Grep(t.Context(), pattern, Search{}, 10, nil)
		expect(t, fmt.Sprintf("%.20q", pattern), err, abi.ErrInvalid, text)
	}
	_, err := d.Grep(t.Context(), "a", Search{Context: 21}, 10, nil)
	expect(t, "context", err, abi.ErrInvalid, "at most 20")
	_, err = d.Grep(t.Context(), "a", Search{Include: make([]string, 33)}, 10, nil)
	expect(t, "globs", err, abi.ErrInvalid, "33 globs")
	_, err = d.Grep(t.Context(), "a", Search{}, 0, nil)
	expect(t, "limit", err, abi.ErrInvalid, "limit")
}

// A search that is cut into slices of any length finds the same.
func TestSlicesFindTheSame(t *testing.T) { onBoth(t, testSlicesFindTheSame) }

func testSlicesFindTheSame(t *testing.T, d *Directory) {
	for i := range 400 {
		write(t, d, fmt.Sprintf("d%d/e%d/f%d", i%7, i%3, i), strings.Repeat("a line\n", i%5)+fmt.Sprintf("needle %d\n", i)+strings.Repeat("more\n", i%4))
	}
	write(t, d, "big", strings.Repeat("hay\nneedle\n", 100_000))
	paths := findAll(t, d, "**", 1000)
	matches, _ := grepAll(t, d, "needle", Search{Context: 2}, 1000)
	if len(paths) != 401+7+21 || len(matches) != 100_400 {
		t.Fatalf("%d paths, %d matches", len(paths), len(matches))
	}
	d.slice = 1 // a nanosecond: over when it is looked at
	if got := findAll(t, d, "**", 1000); !slices.Equal(got, paths) {
		t.Error("other paths")
	}
	got, _ := grepAll(t, d, "needle", Search{Context: 2}, 1000)
	if !slices.EqualFunc(got, matches, func(a, b Match) bool { return fmt.Sprint(a) == fmt.Sprint(b) }) {
		t.Error("other matches")
	}
	page, err := d.Find(t.Context(), "nothing", 10, nil)
	if err != nil || page.Paths != nil || page.Cursor == nil {
		t.Errorf("%+v, %v: a call that finds nothing must end too", page, err)
	}
}

func TestGrepAgainstModel(t *testing.T) {
	d := opened(t, Options{}).Workspace("w")
	rapid.Check(t, func(t *rapid.T) {
		text := strings.Join(rapid.SliceOfN(rapid.SampledFrom([]string{"a", "ab", "b", "", "\r", "é"}), 0, 40).Draw(t, "lines"), "\n")
		context, limit := rapid.IntRange(0, 4).Draw(t, "context"), rapid.Uint32Range(1, 5).Draw(t, "limit")
		if err := d.Write(t.Context(), "f", text); err != nil {
			t.Fatal(err)
		}
		lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
		if text == "" {
			lines = nil
		}
		for i := range lines {
			lines[i] = strings.TrimSuffix(lines[i], "\r")
		}
		var want []string
		for i, line := range lines {
			if at := strings.IndexByte(line, 'b'); at >= 0 {
				want = append(want, fmt.Sprintf("%d %d %q %q %q", i+1, at+1, line, lines[max(0, i-context):i], lines[i+1:min(len(lines), i+1+context)]))
			}
		}
		var got []string
		for cursor := (*string)(nil); ; {
			page, err := d.Grep(t.Context(), "b", Search{Context: uint32(context)}, limit, cursor)
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range page.Matches {
				got = append(got, fmt.Sprintf("%d %d %q %q %q", m.Line, m.Column, m.Text, m.Before, m.After))
			}
			if cursor = page.Cursor; cursor == nil {
				break
			}
		}
		if !slices.Equal(got, want) {
			t.Fatalf("got %s\nwant %s", got, want)
		}
	})
}

// A cursor is a guest's word.
func TestForgedCursors(t *testing.T) { onBoth(t, testForgedCursors) }

func testForgedCursors(t *testing.T, root *Directory) {
	write(t, root, "secret/s", "needle secret")
	write(t, root, "in/a", "needle\nneedle\n")
	d, err := root.Subdirectory(t.Context(), "in")
	if err != nil {
		t.Fatal(err)
	}
	if err := d.MakeLink(t.Context(), "b", "a"); err != nil {
		t.Fatal(err)
	}
	for _, p := range []place{
		{path: "/../secret/s", line: 1, from: 1},
		{path: "/../secret/a"},
		{path: "/a", offset: -1, line: 1, from: 1},
		{path: "/a/", line: 1, from: 1},
		{path: "//a"},
		{path: ""},
		{path: "/"},
		{path: "/a\x00"},
		{path: "/a", line: 5, from: 1},
		{path: "/a", line: -1, from: 1},
		{path: "/" + strings.Repeat("a/", 3000) + "a"},
	} {
		_, err := d.Grep(t.Context(), "needle", Search{}, 10, p.cursor())
		if !errors.Is(err, abi.ErrInvalid) {
			t.Errorf("%+v: %v", p, err)
		}
		if _, err := d.Find(t.Context(), "*", 10, p.cursor()); !errors.Is(err, abi.ErrInvalid) {
			t.Errorf("%+v: %v", p, err)
		}
	}
	for _, text := range []string{"", "?", "AA", "MCAwIDA", "MCAwIDAgYQ"} {
		if _, err := d.Find(t.Context(), "*", 10, &text); !errors.Is(err, abi.ErrInvalid) {
			t.Errorf("%s: %v", text, err)
		}
	}
	// What could be a cursor does no harm.
	for _, p := range []place{
		{path: "/a", offset: math.MaxInt64, line: 1, from: 1},
		{path: "/a", offset: 3, line: math.MaxInt64, from: math.MaxInt64},
		{path: "/b", line: 1, from: 1},
		{path: "/zzz", line: 1, from: 1},
		{path: "/a/b/c"},
		{path: "/a", from: math.MaxInt64},
	} {
		page, err := d.Grep(t.Context(), "needle", Search{Context: 20}, 10, p.cursor())
		if err != nil || strings.Contains(fmt.Sprint(page), "secret") {
			t.Errorf("%+v: %+v, %v", p, page, err)
		}
		if _, err := d.Find(t.Context(), "**", 10, p.cursor()); err != nil {
			t.Errorf("%+v: %v", p, err)
		}
	}
}

// The worst pattern that is let through, on the worst line, is over before a second is.
func TestPatternsAreBounded(t *testing.T) {
	pattern := `(x+x+)+y|` + strings.Repeat("(x?)", 200) + "z"
	if _, _, err := parsePattern(pattern); err != nil {
		t.Fatal(err)
	}
	d := opened(t, Options{}).Workspace("w")
	write(t, d, "f", strings.Repeat("x", maxLine))
	if page, err := d.Grep(t.Context(), pattern, Search{}, 10, nil); err != nil || len(page.Matches) != 0 || page.Partial != 1 {
		t.Errorf("%+v, %v", page, err)
	}
	// Instructions times bytes of a line are bounded, and a page ends after a line that takes many steps.
	d.slice = 1
	write(t, d, "g", strings.Repeat(strings.Repeat("x", 4000)+"\n", 100))
	for pattern, want := range map[string]int{"needle": maxLine, "(?:x?){450}y": 4 * maxLine / 16} {
		s, err := d.searcher(pattern, Search{}, 10)
		if err != nil || s.longest < want || s.longest*s.program > maxSteps && s.longest != maxLine {
			t.Errorf("%s: %d bytes of a line, %d instructions, %v", pattern, s.longest, s.program, err)
		}
		page, err := d.Grep(t.Context(), pattern, Search{Include: []string{"g"}}, 10, nil)
		if err != nil || page.Cursor == nil {
			t.Fatalf("%s: %+v, %v", pattern, page, err)
		}
		at, err := d.place("grep", 1, page.Cursor)
		if most := leastWork/(4000*s.program) + 65; err != nil || at.line > int64(most) {
			t.Errorf("%s: a page has %d lines, want at most %d", pattern, at.line, most)
		}
	}
}

// TestFindHoldsFewEntries goes down where each directory has many entries: what is held of all directories on the way is bounded.
func TestFindHoldsFewEntries(t *testing.T) {
	const depth, entries = 12, walkPage + 100
	s := opened(t, Options{})
	d := s.Workspace("w")
	if err := d.MakeDirectory(t.Context(), strings.Repeat("a/", depth)); err != nil {
		t.Fatal(err)
	}
	if err := s.db.Update(t.Context(), func(c *sqlite.Conn) error {
		_, err := c.Exec(t.Context(), `INSERT INTO node (workspace, parent, name, kind, size, modified) WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?)
			SELECT 'w', parent, 'b' || i, 2, 0, 0 FROM node, n WHERE parent <> ''`, entries)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	if err := d.SetMode(t.Context(), "a", 0o755); err != nil { // it counts what was inserted
		t.Fatal(err)
	}
	most, met := 0, 0
	if err := d.view(t.Context(), "find", func(o *op) error {
		w := walk{op: o}
		return w.run("", "", func(string, []dirent) error {
			most = max(most, w.held)
			met++
			return nil
		})
	}); err != nil {
		t.Fatal(err)
	}
	if want := (depth-1)*entries + depth; met != want || most < walkPage || most > 4*walkPage+depth*leastPage {
		t.Errorf("met %d, want %d; held %d at once", met, want, most)
	}
}

func TestSearchIsCancelled(t *testing.T) { onBoth(t, testSearchIsCancelled) }

func testSearchIsCancelled(t *testing.T, d *Directory) {
	write(t, d, "a", "a")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, errFind := d.Find(ctx, "*", 1, nil)
	_, errGrep := d.Grep(ctx, "a", Search{}, 1, nil)
	_, errDiff := d.Diff(ctx, "a", "a")
	for _, err := range []error{errFind, errGrep, errDiff} {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
	}
}

func TestDiff(t *testing.T) { onBoth(t, testDiff) }

func testDiff(t *testing.T, d *Directory) {
	write(t, d, "a", "one\ntwo\nthree\n")
	write(t, d, "b", "one\nTWO\nthree\nfour")
	write(t, d, "same", "one\ntwo\nthree\n")
	got, err := d.Diff(t.Context(), "a", "b")
	if want := "--- a/a\n+++ b/b\n@@ -1,3 +1,4 @@\n one\n-two\n+TWO\n three\n+four\n\\ No newline at end of file\n"; got != want || err != nil {
		t.Errorf("got %q, %v", got, err)
	}
	if got, err := d.Diff(t.Context(), "a", "same"); got != "" || err != nil {
		t.Errorf("got %q, %v", got, err)
	}
	if err := d.WriteBytes(t.Context(), "bin", []byte{0xff}); err != nil {
		t.Fatal(err)
	}
	write(t, d, "big", strings.Repeat("x\n", maxDiff/2+1))
	write(t, d, "worst", strings.Repeat("x\ny\n", maxDiff/4))
	write(t, d, "worst2", strings.Repeat("y\ny\nx\n", maxDiff/6))
	for path, want := range map[string]*abi.Error{"no": abi.ErrNotFound, "bin": abi.ErrInvalid, "big": abi.ErrTooLarge, "../a": abi.ErrDenied} {
		_, err := d.Diff(t.Context(), "a", path)
		expect(t, path, err, want, "")
	}
	if got, err := d.Diff(t.Context(), "worst", "worst2"); err != nil || !regexp.MustCompile(`\A--- a/worst\n`).MatchString(got) {
		t.Errorf("%v", err)
	}
}

// TestDiffTakesLittle has each byte of a text be a line.
func TestDiffTakesLittle(t *testing.T) {
	d := opened(t, Options{}).Workspace("w")
	write(t, d, "before", strings.Repeat("\n", maxDiff))
	write(t, d, "after", strings.Repeat("x\n", maxDiff/2))
	var started, ended runtime.MemStats
	runtime.ReadMemStats(&started)
	diff, err := d.Diff(t.Context(), "before", "after")
	runtime.ReadMemStats(&ended)
	if err != nil || !strings.HasPrefix(diff, "--- a/before\n+++ b/after\n@@ -1,1048576 +1,524288 @@\n-\n") {
		t.Fatalf("%.60q, %v", diff, err)
	}
	if took := ended.TotalAlloc - started.TotalAlloc; took > 80<<20 { // with what the text is grown by
		t.Errorf("a diff of 1 MiB took %d MiB", took>>20)
	}
}

// TestLargeTextsTakeTurns has more diffs and edits at once than there is room for.
func TestLargeTextsTakeTurns(t *testing.T) {
	d := opened(t, Options{}).Workspace("w")
	write(t, d, "file", "text")
	if err := large.TakeFor(t.Context(), "greedy", maxLarge); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, diff := d.Diff(ctx, "file", "file")
	edit := d.Edit(ctx, "file", []Replacement{{"text", "word"}})
	for what, err := range map[string]error{"diff": diff, "edit": edit} {
		if !errors.Is(err, context.Canceled) || err.Error() != what+": wait for others: context canceled" {
			t.Errorf("%s: %v", what, err)
		}
	}
	var all sync.WaitGroup
	var before atomic.Int64 // places that the user has had before the other one
	take := func(user string, do func()) {
		all.Go(func() {
			leave, err := hold(turns.For(t.Context(), user), "edit")
			if err != nil {
				t.Error(err)
				return
			}
			defer leave()
			do()
		})
	}
	const many = 40
	for range many {
		take("greedy", func() { before.Add(1) })
	}
	for large.Waiting() < many {
		runtime.Gosched()
	}
	take("other", func() {
		if n := before.Load(); n > 1 {
			t.Errorf("a user waited for %d places of another", n)
		}
	})
	for large.Waiting() < many+1 {
		runtime.Gosched()
	}
	large.GiveBack(1) // one at a time
	all.Wait()
	large.GiveBack(maxLarge - 1)
	if err := d.Edit(t.Context(), "file", []Replacement{{"text", "word"}}); err != nil {
		t.Error(err)
	}
	if !large.TryTake("", maxLarge) {
		t.Fatal("places are held by nobody")
	}
	large.GiveBack(maxLarge)
}

// TestSearchesTakeTurns has a user search in many guests at once: others can read meanwhile, and their searches do not wait for all of them.
func TestSearchesTakeTurns(t *testing.T) { onBoth(t, testSearchesTakeTurns) }

func testSearchesTakeTurns(t *testing.T, d *Directory) {
	write(t, d, "file", "text")
	greedy, other := turns.For(t.Context(), "greedy"), turns.For(t.Context(), "other")
	inside, end := make(chan struct{}, 40), make(chan struct{})
	var all sync.WaitGroup
	for range cap(inside) {
		all.Go(func() {
			err := d.search(greedy, "grep", func(*op) error {
				inside <- struct{}{}
				<-end
				return nil
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	waiting := func() int { return d.volume.searching().Waiting() }
	for len(inside)+waiting() < cap(inside) {
		runtime.Gosched()
	}
	if got := read(t, d, "file"); got != "text" {
		t.Errorf("got %q", got)
	}
	before, found := waiting(), make(chan struct{})
	all.Go(func() {
		defer close(found)
		if got, err := d.Find(other, "*", 10, nil); err != nil || len(got.Paths) != 1 {
			t.Errorf("got %v, %v", got, err)
		}
	})
	for waiting() == before {
		runtime.Gosched()
	}
	end <- struct{}{} // one search of the first user ends
	<-found
	close(end)
	all.Wait()
}

// TestWaitingSearchesHoldNoPatterns has searches wait for places: they have not compiled their patterns yet, which take megabytes.
func TestWaitingSearchesHoldNoPatterns(t *testing.T) { onBoth(t, testWaitingSearchesHoldNoPatterns) }

func testWaitingSearchesHoldNoPatterns(t *testing.T, d *Directory) {
	write(t, d, "file", "text")
	taken := int64(0)
	for d.volume.searching().TryTake("", 1) {
		taken++
	}
	for name, search := range map[string]func() error{
		"find": func() error { _, err := d.Find(t.Context(), "[", 10, nil); return err },
		"grep": func() error { _, err := d.Grep(t.Context(), "(", Search{}, 10, nil); return err },
		"glob": func() error { _, err := d.Grep(t.Context(), "x", Search{Include: []string{"["}}, 10, nil); return err },
	} {
		refused := make(chan error, 1)
		go func() { refused <- search() }()
		for d.volume.searching().Waiting() == 0 && len(refused) == 0 {
			runtime.Gosched()
		}
		if len(refused) > 0 {
			t.Errorf("%s: its pattern was compiled before it had a place", name)
		}
		d.volume.searching().GiveBack(1)
		if err := <-refused; !errors.Is(err, abi.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
		if !d.volume.searching().TryTake("", 1) {
			t.Fatalf("%s: it kept its place", name)
		}
	}
	d.volume.searching().GiveBack(taken)
}

// A diff makes one text of the other when each hunk is taken at its word, as git apply does.
func TestDiffApplies(t *testing.T) {
	d := opened(t, Options{}).Workspace("w")
	lines := rapid.SliceOfN(rapid.SampledFrom([]string{"a\n", "b\n", "c\n", "\n", "\r\n", "- é\n", "@@\n"}), 0, 60)
	end := rapid.SampledFrom([]string{"", "end"})
	rapid.Check(t, func(t *rapid.T) {
		old := lines.Draw(t, "old")
		var changed []string
		for _, line := range old {
			switch rapid.IntRange(0, 9).Draw(t, "change") {
			case 0:
			case 1:
				changed = append(changed, "new\n", line)
			default:
				changed = append(changed, line)
			}
		}
		before, after := strings.Join(old, "")+end.Draw(t, "end"), strings.Join(changed, "")+end.Draw(t, "new end")
		if err := errors.Join(d.Write(t.Context(), "before", before), d.Write(t.Context(), "after it", after)); err != nil {
			t.Fatal(err)
		}
		diff, err := d.Diff(t.Context(), "before", "after it")
		if err != nil {
			t.Fatal(err)
		}
		if got := apply(t, before, diff); got != after {
			t.Fatalf("%q becomes %q, not %q, by\n%s", before, got, after, diff)
		}
	})
}

// apply does what a diff says.
func apply(t *rapid.T, text, diff string) string {
	if diff == "" {
		return text
	}
	body, ok := strings.CutPrefix(diff, "--- a/before\n+++ b/after it\t\n") // where the tab is missing, patch finds no file
	if !ok {
		t.Fatalf("got %q", diff)
	}
	old := strings.SplitAfter(text, "\n")
	var made []string
	read := 0
	for line := range strings.Lines(strings.ReplaceAll(body, "\n\\ No newline at end of file\n", "")) {
		switch line[0] {
		case '@':
			var from, lost, to, won int
			if _, err := fmt.Sscanf(line, "@@ -%d,%d +%d,%d @@", &from, &lost, &to, &won); err != nil {
				t.Fatal(err)
			}
			for ; read < from-1; read++ {
				made = append(made, old[read])
			}
			if len(made) != max(to-1, 0) {
				t.Fatalf("%q, where %d lines are made, in\n%s", line, len(made), diff)
			}
		case '+':
			made = append(made, line[1:])
		default:
			if old[read] != line[1:] {
				t.Fatalf("%q, where %q is, in\n%s", line, old[read], diff)
			}
			if read++; line[0] == ' ' {
				made = append(made, line[1:])
			}
		}
	}
	return strings.Join(append(made, old[read:]...), "")
}
