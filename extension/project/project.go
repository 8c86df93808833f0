// Package project makes new extensions: the files of a project in each language, with the SDK and with tests.
package project

import (
	"bytes"
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
	// Build, Test and Run are commands for its folder. Build is empty if nothing needs to be built.
	Build, Test, Run string
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

// Errors of [New].
var (
	ErrLanguage = errors.New("no such language")
	ErrName     = errors.New("no name of an extension")
)

// New returns a project with two tools, one of which uses a binding, and a test of each. The SDK and the contract in it are those of
// this program. The error is [ErrLanguage] or [ErrName].
func New(name, in string) (*Project, error) {
	k := slices.IndexFunc(languages, func(l language) bool { return l.name == in })
	if k < 0 {
		return nil, fmt.Errorf("%q: %w; these are: %s", in, ErrLanguage, strings.Join(Languages(), ", "))
	}
	if !extension.IsName(name) {
		return nil, fmt.Errorf(`%q: %w: it has lower-case words with "-" between them, like "my-notes", and at most 64 characters`, name, ErrName)
	}
	l := languages[k]
	p := &Project{Files: map[string][]byte{}, Needs: l.needs, Build: "make", Test: "make test"}
	made := name + ".wasm"
	if l.name == "typescript" {
		made = name + ".ts"
		p.Build, p.Test = "", "stile ext test "+made
	}
	p.Run = "stile run " + made + ` greet --input '{"name": "Ada"}'`
	p.Add = "stile ext add " + made
	fill := strings.NewReplacer("{{name}}", name, "{{ident}}", strings.ReplaceAll(name, "-", "_"), "{{needs}}", l.needs, "{{made}}", made,
		"{{build}}", strings.TrimPrefix(p.Build+"\n", "\n"), "{{test}}", p.Test, "{{run}}", p.Run, "{{add}}", p.Add)
	for _, folder := range []string{"common", l.name} {
		err := p.copied(templates, "templates/"+folder, "", func(file string, data []byte) (string, []byte) {
			file = strings.Replace(strings.TrimSuffix(file, ".tmpl"), "dot-", ".", 1)
			return strings.Replace(file, "NAME", name, 1), []byte(fill.Replace(string(data)))
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
