package tserase_test

import (
	"cmp"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/evanw/esbuild/pkg/api"
	"pgregory.net/rapid"

	"github.com/stilehost/stile/internal/jslex"
	"github.com/stilehost/stile/internal/tserase"
)

// compiled is a body as esbuild writes it, or its first error. It compiles what it has written until nothing changes: one pass leaves more where a
// type was among the statements of a switch than where an empty statement was.
func compiled(body string, loader api.Loader) (string, string) {
	code := "export default async (input, env, tools) => {{\n" + body + "\n}}"
	for {
		r := api.Transform(code, api.TransformOptions{
			Loader: loader, Format: api.FormatESModule, Target: api.ESNext, MinifyWhitespace: true, MinifySyntax: true, LogLevel: api.LogLevelSilent,
		})
		if len(r.Errors) > 0 {
			return "", r.Errors[0].Text
		}
		if string(r.Code) == code {
			return code, ""
		}
		code, loader = string(r.Code), api.LoaderJS
	}
}

// difference says in what erasing the types of a body differs from compiling it, or "". ok says whether they were erased at all.
func difference(body string) (different string, ok bool) {
	erased, ok := tserase.Body(body)
	if !ok {
		return "", false
	}
	if len(erased) != len(body) || strings.Count(erased, "\n") != strings.Count(body, "\n") {
		return "something has moved", true
	}
	want, mistake := compiled(body, api.LoaderTS)
	got, wrong := compiled(erased, api.LoaderJS)
	if mistake == "" && (wrong != "" || got != want) {
		return fmt.Sprintf("compiled:\n%s\nerased:\n%s%s", want, got, wrong), true
	}
	if mistake != "" && wrong == "" {
		return "it has a mistake: " + mistake, true
	}
	return "", true
}

// bodiesOf are what stands between braces in a file.
func bodiesOf(text string) (bodies []string) {
	l := jslex.New(text, false)
	var open []int32
	for {
		t, more := l.Next()
		if !more || l.Doubt != "" {
			return bodies
		}
		if t.Kind != jslex.Mark && t.Kind != jslex.Template {
			continue
		}
		if t.Closes {
			from := open[len(open)-1]
			open = open[:len(open)-1]
			if text[t.Start] == '}' && text[from-1] == '{' && t.Start-from < 20_000 {
				bodies = append(bodies, text[from:t.Start])
			}
		}
		if t.Opens {
			open = append(open, t.End)
		}
	}
}

// corpus are the bodies of the TypeScript of this repository, or of the folder in STILE_CORPUS.
func corpus(t *testing.T) (bodies []string) {
	t.Helper()
	root := cmp.Or(os.Getenv("STILE_CORPUS"), "../..")
	err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && d.Name() == "node_modules" && os.Getenv("STILE_CORPUS") == "":
			return fs.SkipDir
		case d.IsDir() || !strings.HasSuffix(name, ".ts") || strings.HasSuffix(name, ".d.ts"):
			return nil
		}
		text, err := os.ReadFile(name)
		bodies = append(bodies, bodiesOf(string(text))...)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return bodies
}

// What a compiler makes of code without its types is what it makes of the code.
func TestCorpus(t *testing.T) {
	all, erased := corpus(t), 0
	for _, body := range all {
		different, ok := difference(body)
		if different != "" {
			t.Errorf("%s\n%s", body, different)
		}
		if ok {
			erased++
		}
	}
	t.Logf("%d of %d bodies", erased, len(all))
	if 10*erased < 6*len(all) {
		t.Errorf("only %d of %d bodies", erased, len(all))
	}
}

// The same for code with a few mistakes, most of which no parser accepts.
func TestMutations(t *testing.T) {
	all := corpus(t)
	rapid.Check(t, func(r *rapid.T) {
		body := rapid.SampledFrom(all).Draw(r, "body")
		for range rapid.IntRange(1, 3).Draw(r, "mistakes") {
			body = mutated(r, body)
		}
		if different, _ := difference(body); different != "" && !strings.HasPrefix(different, "it has a mistake") {
			r.Errorf("%s\n%s", body, different)
		}
	})
}

// words are what makes a difference between the languages.
var words = []string{"<", ">", "?", ":", "=>", "(", ")", "!", "as", "as any", "\n", ";", "{", "}", "=", ",", "async", "type A = 1", "interface B {}", "<T>", "x", "satisfies", "let", "function", "\n(", "[0]", "is", "??", "/", "`${x}`", "extends"}

// mutated removes a token, puts a word before one, or replaces one by a word.
func mutated(r *rapid.T, body string) string {
	l := jslex.New(body, false)
	var tokens []jslex.Token
	for t, more := l.Next(); more; t, more = l.Next() {
		tokens = append(tokens, t)
	}
	if len(tokens) == 0 {
		return body
	}
	at := rapid.SampledFrom(tokens).Draw(r, "token")
	word := " " + rapid.SampledFrom(append([]string{""}, words...)).Draw(r, "word") + " "
	end := at.Start
	if rapid.Bool().Draw(r, "replaces") {
		end = at.End
	}
	return body[:at.Start] + word + body[end:]
}
