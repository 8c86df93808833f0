package generate

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/stilehost/stile/extension"
	"github.com/stilehost/stile/extension/generate/internal/extract"
	"github.com/stilehost/stile/internal/printable"
)

const (
	sourceFile = "tool.ts"

	// wanted says what a reply must contain.
	wanted = "the manifest in a ```json block and the whole file in a ```ts block, both complete"

	maxName    = 40  // bytes of a generated name
	maxSnippet = 300 // bytes of a reply without code that are shown
)

// draft makes a draft from a reply. It checks only what a request asks for; trying the draft checks the rest.
func (r *Request) draft(reply string) (Draft, *extension.ProblemsError) {
	a, err := extract.From(reply)
	if a.Manifest != "" {
		r.given = []byte(a.Manifest)
	}
	if err != nil {
		return Draft{}, problem(StageReply, extension.Problem{Text: err.Error(), Fix: wanted, Snippet: printable.Short(reply, maxSnippet)})
	}
	d := Draft{Manifest: r.given, Source: a.Source, File: sourceFile}
	if len(d.Manifest) == 0 {
		tools := extract.ToolNames(a.Source)
		if len(tools) == 0 {
			return Draft{}, problem(StageReply, extension.Problem{
				File: extension.ManifestFile, Text: "the reply has no manifest, and the code does not show which tools there are", Fix: wanted,
			})
		}
		d.Manifest = r.manifest(tools)
	}
	if m, err := extension.Parse(d.Manifest); err == nil && r.Name != "" && m.Name != r.Name {
		return d, problem(extension.StageValidate, extension.Problem{
			File: extension.ManifestFile, Text: fmt.Sprintf("the extension is called %q here", m.Name), Fix: fmt.Sprintf(`"name": %q, as was asked for`, r.Name),
		})
	}
	return d, nil
}

// manifest returns a minimal manifest for code without one. It asks for nothing.
func (r *Request) manifest(tools []string) []byte {
	name := r.Name
	if name == "" {
		name = nameFrom(r.Description, tools[0])
	}
	text, err := json.MarshalIndent(struct {
		Name        string   `json:"name"`
		Version     string   `json:"version"`
		Description string   `json:"description"`
		Tools       []string `json:"tools"`
	}{name, "0.1.0", plain(r.Description), tools}, "", "  ")
	if err != nil {
		panic(err) // strings have JSON
	}
	return text
}

// nameFrom makes a name from the most significant words of a description, or else from a tool's name.
func nameFrom(description, tool string) string {
	words := strings.FieldsFunc(strings.ToLower(description), func(c rune) bool { return !unicode.IsLetter(c) && !unicode.IsDigit(c) })
	name := ""
	for _, word := range words {
		if slices.Contains(fillers, word) || !extension.IsName(word) {
			continue
		}
		longer := strings.TrimPrefix(name+"-"+word, "-")
		if len(longer) > maxName || strings.Count(longer, "-") > 2 {
			break
		}
		name = longer
	}
	if name == "" {
		name = strings.Join(strings.FieldsFunc(tool, func(c rune) bool { return c == '_' }), "-")
	}
	return name
}

// fillers are words that say nothing about a tool.
var fillers = strings.Fields("a an the this that these those it its to of for from with without in on at by and or as is are be can could should would " +
	"i me my we us our you your please want need make makes create write build generate give tool tools extension which who what when where how new some any all")

// plain turns a description into one paragraph that a manifest may hold.
func plain(description string) string {
	words := strings.FieldsFunc(description, func(c rune) bool { return unicode.IsSpace(c) || !unicode.IsGraphic(c) || c == utf8.RuneError })
	return printable.Cut(strings.Join(words, " "), extension.MaxDescription)
}
