package typecheck

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

func TestShortened(t *testing.T) {
	row := func(i int) string {
		return fmt.Sprintf(`{ "id": %d, name: "n%d", at: [%d, -1.5], no: null, "yes": true }`, i, i, i)
	}
	rows := func(n int, more ...string) string {
		var all []string
		for i := range n {
			all = append(all, row(i))
		}
		return strings.Join(append(all, more...), ",\n")
	}
	kept := rows(minRows+1) + ","
	blank := strings.Repeat("\n", 982)
	for name, test := range map[string]struct {
		text, want string
		json       bool
	}{
		"a table":            {"const a = [" + rows(1000) + "];\nb()", "const a = [" + kept + blank + "\n" + row(999) + "];\nb()", false},
		"in JSON":            {"{ \"a\": [" + rows(1000) + "] }", "{ \"a\": [" + kept + "\n" + row(999) + "] }", true},
		"another type":       {"a = [" + rows(1000, `{ id: "x" }`, row(0)) + "]", "a = [" + kept + blank + "\n\n" + `{ id: "x" },` + "\n" + row(0) + "]", false},
		"as const":           {"const a = [" + rows(1000) + "] as const;", "", false},
		"in it, as const":    {"const a = { b: [" + rows(1000) + "] } as const;", "", false},
		"a short array":      {"a = [" + rows(minRows) + "]", "", false},
		"code":               {"a = [" + strings.Repeat("f(1),", 100) + "]", "", false},
		"names":              {"a = [" + strings.Repeat("{ a },", 100) + "]", "", false},
		"arguments":          {"f(" + strings.Repeat("1,", 100) + "1)", "", false},
		"a long text":        {"a = `" + strings.Repeat("x\n", 2000) + "`; b", "a = `" + strings.Repeat("\n", 2000) + "`; b", false},
		"a template":         {"a = `" + strings.Repeat("x${[1]}", 1000) + "`", "", false},
		"tables in a row":    {"a = [" + strings.Repeat("[1, [2]],", 100) + "[1, [2]]]; b = [" + strings.Repeat("1,", 100) + "1]", "a = [" + strings.Repeat("[1, [2]],", 17) + "[1, [2]]]; b = [" + strings.Repeat("1,", 17) + "1]", false},
		"no certain reading": {"a = [" + strings.Repeat("1,", 100) + "}" + strings.Repeat("[1,", 100), "a = [" + strings.Repeat("1,", 17) + "}" + strings.Repeat("[1,", 100), false},
		"nothing closes":     {"}]", "", false},
	} {
		want := test.want
		if want == "" {
			want = test.text
		}
		if got := shortened(test.text, test.json, false); got != want {
			t.Errorf("%s:\n got %.3000s\nwant %.3000s", name, got, want)
		}
	}
}

// TestLargeTables checks sources with tables of 10 MB, and finds what is wrong with their use.
func TestLargeTables(t *testing.T) {
	t.Parallel()
	c := newChecker(t, 5*time.Second)
	var rows strings.Builder
	for i := range 100_000 {
		fmt.Fprintf(&rows, "{ \"id\": %d, \"name\": \"the name of row %d\", \"score\": %d.5, \"tags\": [\"t%d\", \"u\"], \"on\": true },\n", i, i, i, i%100)
	}
	table := strings.TrimSuffix(rows.String(), ",\n")
	const use = "export function find(id: number): string { return rows[id]!.nme; }\n"
	const wrong = "Property 'nme' does not exist on type"
	for name, test := range map[string]struct {
		files map[string]string
		want  string
	}{
		"TypeScript":    {map[string]string{"tool.ts": `import { rows } from "./data.js"; ` + use, "data.ts": "export const rows = [" + table + "];"}, "tool.ts:1:95: " + wrong},
		"JSON":          {map[string]string{"tool.ts": `import rows from "./data.json"; ` + use, "data.json": "[" + table + "]"}, "tool.ts:1:93: " + wrong},
		"the entry":     {map[string]string{"tool.ts": "const rows = [" + table + "];\n" + use}, "tool.ts:100001:61: " + wrong},
		"right":         {map[string]string{"tool.ts": "const rows = [" + table + "];\n" + strings.Replace(use, "nme", "name", 1)}, ""},
		"code":          {map[string]string{"tool.ts": `import { rows } from "./data.js"; ` + use, "data.js": "export const rows = [" + strings.Repeat("Math.random(),\n", 100_000) + "];"}, "data.js was not used"},
		"a large entry": {map[string]string{"tool.ts": "//" + strings.Repeat(" ", maxSource)}, "types were not checked: tool.ts has 1024 KiB without the rows of its tables, and 1024 are checked at most"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			files := map[string][]byte{}
			for name, text := range test.files {
				files[name] = []byte(text)
			}
			warned := ""
			err := c.Check(t.Context(), Request{Files: files, Entry: "tool.ts", Warn: func(text string) { warned = text }})
			got := warned
			if err != nil {
				got = err.Error()
			}
			if !strings.Contains(got, test.want) || test.want == "" && got != "" {
				t.Errorf("got %.300q, want %q", got, test.want)
			}
		})
	}
}

// FuzzShortened holds that a text keeps its lines, and gets no longer.
func FuzzShortened(f *testing.F) {
	f.Add("a = [" + strings.Repeat("{ a: [1, 'x'] },\n", 40) + "] as const; `${1}`")
	f.Fuzz(func(t *testing.T, text string) {
		got := shortened(text, false, false)
		if len(got) > len(text) || strings.Count(got, "\n") != strings.Count(text, "\n") {
			t.Errorf("%q becomes %q", text, got)
		}
		shortened(text, true, true)
	})
}
