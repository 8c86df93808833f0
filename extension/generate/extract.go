package generate

import (
	"encoding/json"
	"regexp"
	"strings"

	"github.com/stilehost/stile/extension"
)

// answer is what a reply holds: the text of a manifest, empty when it brings none, and that of the one source file.
type answer struct{ manifest, source string }

// What is said to a model whose reply cannot be used.
const (
	noCode   = "there is no code in the reply that could be the file: a module that exports the extension"
	onlyDiff = "the reply holds changes to a file where the file itself belongs"
	wanted   = "the manifest in a ```json block and the whole file in a ```ts block, both complete"
)

// extract finds the manifest and the source in a reply, whatever they are wrapped in. It takes no prose for code: a source
// is what stands in a block of its own or in JSON and imports or exports something; outside of blocks it must do both.
func extract(reply string) (answer, *extension.Problem) {
	reply = withoutThoughts(reply)
	var a answer
	diff := false
	best := 0
	found, prose := blocks(reply)
	for _, b := range found {
		if whole, ok := inJSON(b.text); ok && strings.HasPrefix(strings.TrimSpace(b.text), "{") {
			return whole, nil
		}
		if isManifest(b.text) {
			a.manifest = strings.TrimSpace(b.text)
			continue
		}
		if isDiff(b) {
			diff = true
			continue
		}
		// Of several, the last that is as good as any counts: models correct themselves.
		if r := rank(b.text); isCode(b.kind) && r > 0 && r >= best {
			a.source, best = b.text, r
		}
	}
	if best == 0 {
		if whole, ok := inJSON(prose); ok {
			return whole, nil
		}
		a.source = bare(prose)
	}
	if o := string(object(prose)); a.manifest == "" && isManifest(o) {
		a.manifest = o
	}
	switch {
	case strings.TrimSpace(a.source) != "":
		a.source = strings.Trim(a.source, "\n") + "\n"
		return a, nil
	case diff:
		return a, &extension.Problem{Text: onlyDiff, Fix: wanted}
	default:
		return a, &extension.Problem{Text: noCode, Fix: wanted}
	}
}

// withoutThoughts leaves out what a model thinks aloud first, as some servers send it.
func withoutThoughts(reply string) string {
	if at := thoughtsEnd.FindAllStringIndex(reply, -1); at != nil {
		return reply[at[len(at)-1][1]:]
	}
	return reply
}

var thoughtsEnd = regexp.MustCompile(`(?m)</(?:think|thinking|reasoning)>[ \t]*$`)

// object is the first JSON value in a text that could be an object, nil when there is none.
func object(text string) (found json.RawMessage) {
	if start := objectStart.FindStringIndex(text); start != nil {
		_ = json.NewDecoder(strings.NewReader(text[start[0]:])).Decode(&found) // nil when it is no JSON
	}
	return found
}

var objectStart = regexp.MustCompile(`(?m)^[ \t]*\{`)

// inJSON reads the answer of a model that puts all of it into one JSON object, with or without prose around it.
func inJSON(text string) (answer, bool) {
	var whole struct {
		Manifest json.RawMessage `json:"manifest"`
		Source   string          `json:"source"`
		Code     string          `json:"code"`
	}
	if json.Unmarshal(object(text), &whole) != nil {
		return answer{}, false
	}
	a := answer{source: whole.Source, manifest: string(whole.Manifest)}
	if a.source == "" {
		a.source = whole.Code
	}
	if a.manifest == "null" {
		a.manifest = ""
	}
	var quoted string
	if json.Unmarshal(whole.Manifest, &quoted) == nil {
		a.manifest = quoted
	}
	// Models put fences into strings too.
	if inner, _ := blocks(a.source); len(inner) == 1 && rank(inner[0].text) >= rank(a.source) {
		a.source = inner[0].text
	}
	return a, rank(a.source) > 0
}

// isManifest tells a manifest, right or wrong, from other JSON.
func isManifest(text string) bool {
	text = strings.TrimSpace(text)
	return strings.HasPrefix(text, "{") && strings.HasSuffix(text, "}") &&
		nameField.MatchString(text) && otherField.MatchString(text) && !wholeField.MatchString(text)
}

var (
	nameField  = regexp.MustCompile(`"name"\s*:`)
	otherField = regexp.MustCompile(`"(tools|permissions|bindings)"\s*:`)
	wholeField = regexp.MustCompile(`"(manifest|source|code)"\s*:`) // of what a manifest is only a part of
)

// isDiff tells changes from code.
func isDiff(b block) bool {
	return b.kind == "diff" || b.kind == "patch" || hunk.MatchString(b.text)
}

var hunk = regexp.MustCompile(`(?m)^(@@ .*@@|--- \S.*\n\+\+\+ \S)`)

// rank says how much a text looks like the source: 0 for not at all.
func rank(text string) int {
	r := 0
	for _, sign := range []*regexp.Regexp{moduleWord, defaultExport, sdkImport} {
		if sign.MatchString(text) {
			r++
		}
	}
	return r
}

var (
	moduleWord = regexp.MustCompile(`(?m)^[ \t]*(export[ \t]+(default|const|let|function|async|class|type|interface|enum)\b|(export|import)[ \t]*[*{"']|import[ \t]+[\w$*{},\s]*["'])`)

	defaultExport = regexp.MustCompile(`(?m)^[ \t]*export[ \t]+default\b`)
	sdkImport     = regexp.MustCompile(`(?m)^[ \t]*import\b[^;]*?["']stile["']`)
	importLine    = regexp.MustCompile(`(?m)^[ \t]*import[ \t]*(?:[\w$*{},\s]*\bfrom[ \t]*)?["']`)
)

// bare is a source without anything around it, from the first import to the last line that can end a statement.
func bare(prose string) string {
	at := importLine.FindStringIndex(prose)
	if at == nil {
		return ""
	}
	lines := strings.SplitAfter(prose[at[0]:], "\n")
	end := len(lines)
	for end > 0 && !strings.HasSuffix(strings.TrimSpace(lines[end-1]), ";") && !strings.HasSuffix(strings.TrimSpace(lines[end-1]), "}") {
		end--
	}
	source := strings.Join(lines[:end], "")
	if !defaultExport.MatchString(source) || !sdkImport.MatchString(source) {
		return ""
	}
	return source
}
