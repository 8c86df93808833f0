//go:build long

package thirdparty

import (
	"encoding/json"
	"io/fs"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stilehost/stile/internal/suite"
)

// language is a test of test262 with what its head says.
type language struct {
	name, source       string
	includes, features []string
	flags              []string
	negative           string // the name of the error that must be thrown
}

var (
	heads      = regexp.MustCompile(`(?s)/\*---(.*?)---\*/`)
	headLists  = regexp.MustCompile(`(?m)^(includes|features|flags):[ \t]*(?:\[([^\]]*)\]|((?:\n[ \t]+-[^\n]*)+))`)
	negativeOf = regexp.MustCompile(`(?m)^negative:\n(?:[ \t]+[^\n]*\n)*?[ \t]+type:[ \t]*(\w+)`)
)

func readLanguage(name string, text []byte) language {
	l := language{name: strings.TrimPrefix(name, "test/"), source: string(text)}
	head := heads.FindStringSubmatch(strings.ReplaceAll(l.source, "\r\n", "\n"))
	if head == nil {
		return l
	}
	yaml := strings.ReplaceAll(head[1], "\r", "\n") + "\n"
	for _, list := range headLists.FindAllStringSubmatch(yaml, -1) {
		words := strings.FieldsFunc(list[2]+list[3], func(r rune) bool { return strings.ContainsRune(", \t\n", r) })
		words = slices.DeleteFunc(words, func(word string) bool { return word == "-" })
		switch list[1] {
		case "includes":
			l.includes = words
		case "features":
			l.features = words
		case "flags":
			l.flags = words
		}
	}
	if found := negativeOf.FindStringSubmatch(yaml); found != nil {
		l.negative = found[1]
	}
	return l
}

// absent are features that the language of extensions does not claim, with why.
var absent = map[string]string{
	"Atomics": "Atomics is not there: there is one thread", "Temporal": "Temporal is not there", "ShadowRealm": "there are no further realms", "cross-realm": "there are no further realms",
	"IsHTMLDDA": "document.all is not there", "host-gc-required": "a guest cannot start a collection",
	"import-defer": "proposals that the engine lacks", "source-phase-imports": "proposals that the engine lacks",
	"source-phase-imports-module-source": "proposals that the engine lacks",
	"await-dictionary":                   "proposals that the engine lacks", "error-stack-accessor": "proposals that the engine lacks", "immutable-arraybuffer": "proposals that the engine lacks",
	"Atomics.pause": "Atomics is not there: there is one thread", "decorators": "proposals that the engine lacks", "tail-call-optimization": "tail calls take stack",
}

// skips says why a test is not run, or nothing.
func (l language) skips() string {
	switch {
	case slices.Contains(l.flags, "module"), strings.Contains(l.source, "_FIXTURE"):
		return "tests of modules: a bundler joins the modules of an extension to one"
	case slices.Contains(l.flags, "CanBlockIsFalse"), strings.Contains(l.source, "$262.agent"), slices.Contains(l.includes, "atomicsHelper.js"):
		return "there are no further agents"
	}
	for _, f := range l.features {
		if why, ok := absent[f]; ok {
			return why
		}
	}
	if strings.Contains(l.source, "$262.createRealm") {
		return "there are no further realms"
	}
	return ""
}

// TestLongLanguage runs test262 in extensions: as strict code, which modules are, except tests of sloppy code.
func TestLongLanguage(t *testing.T) {
	record, folder := suite.Open(t, "test262.json")
	files := os.DirFS(folder)
	var tests []language
	var outcomes []suite.Outcome
	for _, below := range record.Paths {
		err := fs.WalkDir(files, below, func(name string, e fs.DirEntry, err error) error {
			if err != nil || e.IsDir() || !strings.HasPrefix(name, "test/") || path.Ext(name) != ".js" || strings.HasSuffix(name, "_FIXTURE.js") {
				return err
			}
			text, err := fs.ReadFile(files, name)
			if err != nil {
				return err
			}
			l := readLanguage(name, text)
			if why := l.skips(); why != "" {
				outcomes = append(outcomes, suite.Outcome{Name: l.name, Skipped: why})
			} else if why := record.Omits(l.name); why != "" {
				outcomes = append(outcomes, suite.Outcome{Name: l.name, Skipped: why})
			} else {
				tests = append(tests, l)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	harness := harnessOf(t, files)
	always, err := json.Marshal([]string{harness["assert.js"], harness["sta.js"]})
	if err != nil {
		t.Fatal(err)
	}
	h := newHarness(t, "test262.ts", fstest.MapFS{"harness.json": {Data: always}})
	ended := make([]suite.Outcome, len(tests))
	each(tests, func(n int, l language) { ended[n] = l.run(t, h, harness) })
	record.Judge(t, append(outcomes, ended...))
}

// lexical are declarations that end with the text that eval gets. The harness declares names for the tests with them.
var (
	lexical = regexp.MustCompile(`(?m)^(?:const|let) `)
	classes = regexp.MustCompile(`(?m)^class (\w+)`)
)

// harnessOf is the files of the harness, by name.
func harnessOf(t *testing.T, files fs.FS) map[string]string {
	t.Helper()
	texts := map[string]string{}
	found, err := fs.Glob(files, "harness/*.js")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range found {
		text, err := fs.ReadFile(files, name)
		if err != nil {
			t.Fatal(err)
		}
		texts[path.Base(name)] = classes.ReplaceAllString(lexical.ReplaceAllString(string(text), "var "), "var $1 = class $1")
	}
	return texts
}

func (l language) run(t *testing.T, h *harness, files map[string]string) suite.Outcome {
	o := suite.Outcome{Name: l.name}
	async := slices.Contains(l.flags, "async")
	includes := []string{}
	if async {
		includes = append(includes, files["doneprintHandle.js"])
	}
	for _, name := range l.includes {
		includes = append(includes, files[name])
	}
	raw := slices.Contains(l.flags, "raw")
	input := map[string]any{
		"includes": includes, "source": l.source, "async": async, "raw": raw,
		"strict": !raw && !slices.Contains(l.flags, "noStrict"),
	}
	var result struct{ Thrown, Failed string }
	if err := h.run(t, input, &result); err != nil {
		o.Failed = first(err)
		return o
	}
	switch {
	case l.negative == "" && result.Thrown != "":
		o.Failed = result.Thrown
	case l.negative == "":
		o.Failed = result.Failed
	case result.Thrown == "":
		o.Failed = "it throws nothing, want " + l.negative
	case !strings.HasPrefix(result.Thrown, l.negative+":"):
		o.Failed = "it throws " + result.Thrown + ", want " + l.negative
	}
	return o
}
