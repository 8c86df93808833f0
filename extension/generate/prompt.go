package generate

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"io/fs"
	"strings"
	"sync"
	"text/template"

	"github.com/stilehost/stile/examples"
	"github.com/stilehost/stile/extension"
	"github.com/stilehost/stile/guest-sdk/typescript"
	"github.com/stilehost/stile/internal/printable"
	"github.com/stilehost/stile/toolchain"
)

//go:embed prompt.tmpl
var promptText string

// prompts has the templates "system", "request" and "problems".
var prompts = sync.OnceValue(func() *template.Template {
	return template.Must(template.New("prompt").Funcs(template.FuncMap{"json": asJSON, "quote": quote, "mark": mark, "cut": cut}).Parse(promptText))
})

const (
	maxShown     = 10   // problems that a model is shown
	maxShownText = 1000 // bytes of each text in one
)

// system begins every conversation. It is always the same, so that servers can cache it.
var system = sync.OnceValue(func() string {
	e := readExample("notes")
	return render("system", struct{ Author, Manifest, Source string }{typescript.Author(), e.Manifest, e.Source})
})

type example struct{ Manifest, Source string }

func readExample(name string) example {
	manifest, err := fs.ReadFile(examples.Files(), name+".json")
	if err != nil {
		panic(err) // it is embedded
	}
	source, err := fs.ReadFile(examples.Files(), name+".ts")
	if err != nil {
		panic(err)
	}
	return example{string(manifest), string(source)}
}

// ask returns the first turn.
func (r *Request) ask() string {
	types := r.Types
	if types == "" && len(r.Bindings) > 0 {
		types = toolchain.EnvTypes(extension.Known(r.Bindings), nil, nil, nil)
	}
	bindings := make(map[string]extension.Binding, len(r.Bindings))
	for _, b := range r.Bindings {
		bindings[b.Name] = b
	}
	return render("request", struct {
		Description, Name, Types string
		Bindings                 map[string]extension.Binding
	}{r.Description, r.Name, types, bindings})
}

// complain returns the turn after a draft that did not pass.
func complain(e *extension.ProblemsError) string {
	shown := e.Problems[:min(len(e.Problems), maxShown)]
	return render("problems", struct {
		Stage    extension.Stage
		Problems []extension.Problem
		More     int
	}{e.Stage, shown, len(e.Problems) - len(shown)})
}

func render(name string, data any) string {
	var b strings.Builder
	if err := prompts().ExecuteTemplate(&b, name, data); err != nil {
		panic(fmt.Sprintf("template %s: %v", name, err)) // the template and the type of the data are ours
	}
	return b.String()
}

// asJSON writes a value in one line in which no quote, fence or tag can end anything: < and > are escaped too, and ` as well.
func asJSON(v any) (string, error) {
	text, err := json.Marshal(v)
	return strings.ReplaceAll(string(text), "`", `\u0060`), err
}

func cut(path string) string { return printable.Short(path, 200) }

// quote quotes a stranger's text, within bounds.
func quote(text string) string { return mark(printable.Short(text, maxShownText)) }

// mark puts a mark before every line, so that no line can look like one of ours.
func mark(text string) string {
	return "| " + strings.ReplaceAll(strings.TrimRight(printable.Text(text), "\n"), "\n", "\n| ")
}
