// Package project makes new extensions: the files of a project in each language, with the SDK and with tests.
package project

import (
	"bytes"
	"cmp"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/stilehost/stile/extension"
	guests "github.com/stilehost/stile/guest-sdk"
	"github.com/stilehost/stile/wit"
)

//go:embed templates
var templates embed.FS

// Project is a new extension.
type Project struct {
	// Files are its files by path, with slashes.
	Files map[string][]byte
	// Needs says what building it needs besides stile.
	Needs string
	// Tools are the names of its tools.
	Tools []string
	// Build, Test, Setup and Run are commands for its folder. Build is empty if nothing needs to be built, and Setup if Run needs nothing installed.
	Build, Test, Setup, Run string
	// Add is the command that keeps it as an extension.
	Add string
}

// language is what projects in a language have.
type language struct {
	name, needs string
	sdk         bool // in the folder stile
	contract    bool // in the folder wit
}

var languages = []language{
	{name: "rust", needs: "make, and Rust 1.85 or later with its target: rustup target add wasm32-wasip2", sdk: true},
	{name: "go", needs: "make, and Go 1.26 or later", sdk: true},
	{name: "c", needs: "make, clang and lld", sdk: true},
	{name: "python", needs: "make, and Python 3.10 or later with venv; make installs componentize-py with pip", contract: true},
	{name: "javascript", needs: "make, and Node.js 20 or later; make installs componentize-js with npm", contract: true},
	{name: "typescript", needs: "npm, which fetches the JavaScript engine once", sdk: true},
}

// Languages returns the languages of projects.
func Languages() (names []string) {
	for _, l := range languages {
		names = append(names, l.name)
	}
	return names
}

// template is what a project begins with.
type template struct {
	name, about string
	tools       []string
	made        string // the file or folder with the extension
	manifest    string
	setup       string // what stile run needs first
	runs        []string
	more        string // at the end of README.md
}

// Basic is the template that every language has. The others are for TypeScript.
const Basic = "basic"

// templatesOf returns the templates of a language. made is what its toolchain makes.
func templatesOf(language, made string) []template {
	basic := template{
		name: Basic, tools: []string{"greet", "visit"}, made: made, manifest: "{{name}}.json",
		about: "An extension of Stile with two tools: `greet` only computes, and `visit` counts in the binding `visits`. `{{name}}.json` is the manifest: it says\n" +
			"what the extension asks for, and has the tests.",
		runs: []string{`greet --input '{"name": "Ada"}'`, `visit --bind visits=kv:visits --input '{"name": "Ada"}'`},
	}
	if language != "typescript" {
		return []template{basic}
	}
	return []template{
		basic,
		{
			name: "http", tools: []string{"latest_release"}, made: made, manifest: "{{name}}.json",
			about: "An extension of Stile that asks GitHub for the newest release of a repository. `{{name}}.json` is the manifest: its binding `github` allows GET and\n" +
				"HEAD below `https://api.github.com/repos/` and nothing else, its var `server` says where the API is, and its tests answer as GitHub would.",
			runs: []string{""},
			more: "\n\nWith the network, and against a server of your own:\n\n```sh\n" +
				"stile run {{made}} latest_release --manifest {{name}}.json --input '{\"repo\": \"golang/tools\"}'\n" +
				"stile run {{made}} latest_release --var server=http://127.0.0.1:8080 --bind 'github=http:http://127.0.0.1:8080/**' --manifest {{name}}.json --input '{\"repo\": \"a/b\"}'\n```",
		},
		{
			name: "notes", tools: []string{"add_note", "list_notes", "read_note"}, made: made, manifest: "{{name}}.json",
			about: "An extension of Stile that keeps notes in a workspace: a folder of files that nothing else in the extension can leave. `{{name}}.json` is the manifest: it asks\n" +
				"for the folder `/notes` of the extension's own workspace, and has the tests.",
			runs: []string{
				`add_note --manifest {{name}}.json --input '{"title": "today", "text": "sun"}'`,
				`read_note --manifest {{name}}.json --input '{"title": "today"}'`,
				`list_notes --bind notes=dir:.`,
			},
		},
		{
			name: "npm", tools: []string{"read_yaml"}, made: made, manifest: "{{name}}.json", setup: "npm install --ignore-scripts --no-audit --no-fund\n",
			about: "An extension of Stile that uses the npm package `yaml`. `{{name}}.json` is the manifest: its `dependencies` are what `stile ext add` and `stile ext test`\n" +
				"install, without running their scripts. `package.json` has the same ones for your editor and for `stile run`, which installs nothing.",
			runs: []string{`read_yaml --input '{"text": "- 1\n- two: 2"}'`},
		},
		{
			name: "multi-file", tools: []string{"count_words", "word_table"}, made: "src", manifest: "src/manifest.json",
			about: "An extension of Stile in several files. The folder `src` is the extension: `src/index.ts` exports the tools, and `src/manifest.json` is the manifest, with the tests.\n" +
				"`stile ext add` takes all files of the folder and none from outside.",
			runs: []string{`count_words --input '{"text": "one and one and two"}'`},
		},
		{
			name: "tests", tools: []string{"open_ticket", "close_ticket"}, made: made, manifest: "{{name}}.json",
			about: "An extension of Stile whose tests show what tests can say: the time, the random numbers, what kv holds, what a server answers, vars, and errors. They are in the manifest\n" +
				"`{{name}}.json`. They run before each activation, on real capabilities that get their answers from the test.",
			runs: []string{`open_ticket --manifest {{name}}.json --var team=web --input '{"title": "door squeaks"}'`},
		},
	}
}

// Templates returns the templates of a language, [Basic] first.
func Templates(language string) (names []string) {
	for _, t := range templatesOf(language, "") {
		names = append(names, t.name)
	}
	return names
}

// Errors of [New].
var (
	ErrLanguage = errors.New("no such language")
	ErrTemplate = errors.New("no such template")
	ErrName     = errors.New("no name of an extension")
)

// New returns a project of a template, with a manifest and a test of each tool. No template is [Basic]. The SDK and the contract in it are those
// of this program. The error is [ErrLanguage], [ErrTemplate] or [ErrName].
func New(name, in, from string) (*Project, error) {
	k := slices.IndexFunc(languages, func(l language) bool { return l.name == in })
	if k < 0 {
		return nil, fmt.Errorf("%q: %w; these are: %s", in, ErrLanguage, strings.Join(Languages(), ", "))
	}
	l := languages[k]
	made := name + ".wasm"
	if l.name == "typescript" {
		made = name + ".ts"
	}
	all := templatesOf(l.name, made)
	k = slices.IndexFunc(all, func(t template) bool { return t.name == cmp.Or(from, Basic) })
	if k < 0 {
		return nil, fmt.Errorf("%q: %w for %s; these are: %s", from, ErrTemplate, l.name, strings.Join(Templates(l.name), ", "))
	}
	if !extension.IsName(name) {
		return nil, fmt.Errorf(`%q: %w: it has lower-case words with "-" between them, like "my-notes", and at most 64 characters`, name, ErrName)
	}
	t := all[k]
	if problems := (&extension.Manifest{Name: name, Tools: t.tools}).CheckNames(nil, func(string) string { return "" }); len(problems) > 0 {
		return nil, fmt.Errorf("%q: %w: %s", name, ErrName, problems[0].Text+"; write "+problems[0].Fix)
	}
	names := strings.NewReplacer("{{name}}", name, "{{ident}}", strings.ReplaceAll(name, "-", "_"), "{{made}}", t.made, "{{tool}}", t.tools[0], "{{needs}}", l.needs)
	given := t.made // as the commands of extensions take it, which would else look for a name
	if !strings.Contains(given, ".") {
		given = "./" + given
	}
	p := &Project{Files: map[string][]byte{}, Needs: l.needs, Build: "make", Test: "make test", Tools: t.tools}
	building := "Building it needs " + l.needs + "."
	if l.name == "typescript" {
		p.Build, p.Test = "", "stile ext test "+given
		building = "Nothing needs to be built, and stile obtains the JavaScript engine once through npm. `stile dev` runs a tool again after each save."
	}
	var runs []string
	for _, run := range t.runs {
		runs = append(runs, names.Replace(strings.TrimSuffix("stile run {{made}} "+run, " ")))
	}
	p.Run, p.Add = runs[0], "stile ext add "+given
	commands := strings.TrimPrefix(p.Build+"\n", "\n") + p.Test + "\n" + t.setup + strings.Join(runs, "\n") + "\n" + p.Add + "\n"
	if t.setup != "" {
		p.Setup = strings.TrimSuffix(t.setup, "\n")
	}
	fill := strings.NewReplacer("{{about}}", names.Replace(t.about), "{{building}}", building, "{{commands}}", commands, "{{more}}", names.Replace(t.more))
	folders := []string{"common", l.name, l.name + "-" + t.name}
	if t.name == Basic {
		folders = append(folders, Basic)
	}
	for _, folder := range folders {
		if _, err := fs.Stat(templates, "templates/"+folder); err != nil {
			continue // not every language has files of its own for each template
		}
		err := p.copied(templates, "templates/"+folder, "", func(file string, data []byte) (string, []byte) {
			file = strings.Replace(strings.TrimSuffix(file, ".tmpl"), "dot-", ".", 1)
			return strings.Replace(file, "NAME", name, 1), []byte(names.Replace(fill.Replace(string(data))))
		})
		if err != nil {
			return nil, err
		}
	}
	if l.sdk {
		sdk, err := guests.Files(l.name)
		if err != nil {
			return nil, err
		}
		for file, text := range sdk {
			p.Files["stile/"+file] = []byte(text)
		}
	}
	if l.contract {
		same := func(file string, data []byte) (string, []byte) { return file, data }
		if err := p.copied(wit.Files(), "deps", "wit/deps", same); err != nil {
			return nil, err
		}
		text, err := fs.ReadFile(wit.Files(), "extension.wit")
		if err != nil {
			return nil, err
		}
		p.Files["wit/deps/extension/extension.wit"] = text
	}
	return p, nil
}

// copied adds the files of a folder to a folder of the project, each as change returns it.
func (p *Project) copied(from fs.FS, folder, to string, change func(file string, data []byte) (string, []byte)) error {
	return fs.WalkDir(from, folder, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := fs.ReadFile(from, name)
		if err != nil {
			return err
		}
		file, data := change(strings.TrimPrefix(strings.TrimPrefix(name, folder), "/"), data)
		p.Files[path.Join(to, file)] = bytes.Clone(data)
		return nil
	})
}
