// Package extract finds code in a model's reply. It reads hostile text in linear time, does not mistake prose for code, and
// does not judge the code.
package extract

import (
	"cmp"
	"encoding/json"
	"errors"
	"strings"

	"github.com/stilehost/stile/internal/lazyregexp"
)

// Why a reply cannot be used, in words for the model.
var (
	ErrNoCode = errors.New("there is no code in the reply that could be the file: a module that exports the extension")
	ErrDiff   = errors.New("the reply has changes to a file instead of the whole file")
)

// Answer is the content of a reply.
type Answer struct {
	// Manifest is the text of a manifest, valid or not. It is empty if the reply has none.
	Manifest string
	// Source is the text of the one source file.
	Source string
}

// From finds the manifest and the source in a reply, however they are wrapped. A source is in a block of its own or in JSON, and
// imports or exports something. Outside blocks, it must do both. Without a source, the error is [ErrNoCode] or [ErrDiff].
func From(reply string) (Answer, error) {
	reply = withoutThoughts(strings.ReplaceAll(reply, "\ufeff", ""))
	var a Answer
	like := "" // a manifest, at most
	diff := false
	best := 0
	found, prose := blocks(reply)
	for _, b := range found {
		if whole, ok := inJSON(b.text); ok && strings.HasPrefix(strings.TrimSpace(b.text), "{") {
			return whole, nil
		}
		if isManifest(b.text) {
			a.Manifest = strings.TrimSpace(b.text)
			continue
		}
		if isData(b.kind) {
			like = cmp.Or(like, strings.TrimSpace(b.text))
			continue
		}
		if isDiff(b) {
			diff = true
			continue
		}
		// Among equally good sources, the last one counts, because models correct themselves.
		if r := rank(b.text); isCode(b.kind) && r > 0 && r >= best {
			a.Source, best = b.text, r
		}
	}
	if best == 0 {
		if whole, ok := inJSON(prose); ok {
			return whole, nil
		}
		a.Source = bare(prose)
	}
	if o := string(object(prose)); a.Manifest == "" && isManifest(o) {
		a.Manifest = o
	}
	// Data that is not code is taken for the manifest rather than ignored, because the model meant it for something.
	a.Manifest = cmp.Or(a.Manifest, like)
	switch {
	case strings.TrimSpace(a.Source) != "":
		a.Source = strings.Trim(a.Source, "\n") + "\n"
		return a, nil
	case diff:
		return a, ErrDiff
	default:
		return a, ErrNoCode
	}
}

// withoutThoughts removes the thinking that some servers send before the answer.
func withoutThoughts(reply string) string {
	if at := thoughtsEnd.FindAllStringIndex(reply, -1); at != nil {
		return reply[at[len(at)-1][1]:]
	}
	return reply
}

var thoughtsEnd = lazyregexp.New(`(?m)</(?:think|thinking|reasoning)>[ \t]*$`)

// object returns the first JSON value in a text that could be an object, or nil.
func object(text string) (found json.RawMessage) {
	if start := objectStart.FindStringIndex(text); start != nil {
		_ = json.NewDecoder(strings.NewReader(text[start[0]:])).Decode(&found) // nil if it is not JSON
	}
	return found
}

var objectStart = lazyregexp.New(`(?m)^[ \t]*\{`)

// inJSON reads the answer of a model that puts all of it into one JSON object, with or without prose around it.
func inJSON(text string) (Answer, bool) {
	var whole struct {
		Manifest json.RawMessage `json:"manifest"`
		Source   string          `json:"source"`
		Code     string          `json:"code"`
	}
	if json.Unmarshal(object(text), &whole) != nil {
		return Answer{}, false
	}
	a := Answer{Source: whole.Source, Manifest: string(whole.Manifest)}
	if a.Source == "" {
		a.Source = whole.Code
	}
	if a.Manifest == "null" {
		a.Manifest = ""
	}
	var quoted string
	if json.Unmarshal(whole.Manifest, &quoted) == nil {
		a.Manifest = quoted
	}
	// Models put fences into strings too.
	if inner, _ := blocks(a.Source); len(inner) == 1 && rank(inner[0].text) >= rank(a.Source) {
		a.Source = inner[0].text
	}
	return a, rank(a.Source) > 0
}

// isManifest tells a manifest, right or wrong, from other JSON.
func isManifest(text string) bool {
	text = strings.TrimSpace(text)
	return strings.HasPrefix(text, "{") && strings.HasSuffix(text, "}") &&
		nameField.MatchString(text) && otherField.MatchString(text) && !wholeField.MatchString(text)
}

var (
	nameField  = lazyregexp.New(`"name"\s*:`)
	otherField = lazyregexp.New(`"(tools|permissions|bindings)"\s*:`)
	wholeField = lazyregexp.New(`"(manifest|source|code)"\s*:`) // fields of an object of which the manifest is only a part
)

// isDiff tells changes from code.
func isDiff(b block) bool {
	return b.kind == "diff" || b.kind == "patch" || hunk.MatchString(b.text)
}

var hunk = lazyregexp.New(`(?m)^(@@ .*@@|--- \S.*\n\+\+\+ \S)`)

// rank says how much a text looks like the source: 0 for not at all.
func rank(text string) int {
	r := 0
	for _, sign := range []*lazyregexp.Regexp{moduleWord, defaultExport, sdkImport} {
		if sign.MatchString(text) {
			r++
		}
	}
	return r
}

var (
	moduleWord = lazyregexp.New(`(?m)^[ \t]*(export[ \t]+(default|const|let|function|async|class|type|interface|enum)\b|(export|import)[ \t]*[*{"']|import[ \t]+[\w$*{},\s]*["'])`)

	defaultExport = lazyregexp.New(`(?m)^[ \t]*export[ \t]+default\b`)
	sdkImport     = lazyregexp.New(`(?m)^[ \t]*import\b[^;]*?["']stile["']`)
	importLine    = lazyregexp.New(`(?m)^[ \t]*import[ \t]*(?:[\w$*{},\s]*\bfrom[ \t]*)?["']`)
)

// bare returns a source without anything around it, from the first import to the last line that can end a statement.
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
