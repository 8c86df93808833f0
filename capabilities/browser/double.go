package browser

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/capabilities/blob"
	"github.com/stilehost/stile/capabilities/http"
	"github.com/stilehost/stile/capability"
	"github.com/stilehost/stile/capability/double"
	"github.com/stilehost/stile/internal/printable"
)

const exampleAnswers = `{"open https://docs.example.com/": {"title": "Docs"}, "markdown": {"text": "# Docs"}}`

// Answer is the outcome of an action in a test: a page, a text, a value as JSON, the text of a file, an error, or nothing.
type Answer struct {
	URL    *string         `json:"url,omitempty"`
	Title  *string         `json:"title,omitempty"`
	Status uint16          `json:"status,omitempty"` // default 200
	Text   *string         `json:"text,omitempty"`
	JSON   json.RawMessage `json:"json,omitempty"`
	File   *string         `json:"file,omitempty"`
	Error  *string         `json:"error,omitempty"`
}

// stepKind is what an action returns.
func stepKind(step string) OutcomeCase {
	verb, _, _ := strings.Cut(step, " ")
	switch verb {
	case "open", "click", "press", "wait-for":
		return OutcomePage
	case "text", "html", "markdown", "evaluate":
		return OutcomeText
	case "screenshot", "pdf", "download":
		return OutcomeBlob
	}
	return OutcomeNothing // fill, leave
}

// check returns an error if no action of this name can have the answer.
func (a Answer) check(step string) error {
	kinds := 0
	for _, has := range []bool{a.URL != nil || a.Title != nil || a.Status != 0, a.Text != nil, a.JSON != nil, a.File != nil, a.Error != nil} {
		if has {
			kinds++
		}
	}
	verb, _, _ := strings.Cut(step, " ")
	switch verb {
	case "open", "click", "fill", "press", "wait-for", "text", "html", "markdown", "evaluate", "screenshot", "pdf", "download", "leave":
	default:
		return errors.New("this is not an action: it begins with open, click, fill, press, wait-for, text, html, markdown, evaluate, screenshot, pdf, download or leave")
	}
	switch of := stepKind(step); {
	case kinds > 1:
		return errors.New("the answer is of more than one kind")
	case a.Error != nil || kinds == 0:
		return nil
	case a.Text != nil && (of != OutcomeText || verb == "evaluate"), a.JSON != nil && verb != "evaluate",
		a.File != nil && of != OutcomeBlob, of == OutcomeNothing, of != OutcomePage && a.Text == nil && a.JSON == nil && a.File == nil:
		return fmt.Errorf("%s does not return that", verb)
	}
	return nil
}

// outcome is the answer as a result.
func (a Answer) outcome(step string) (result, error) {
	made := func(mediaType, text string) *blob.Blob { return blob.New(mediaType, []byte(text)) }
	verb, rest, _ := strings.Cut(step, " ")
	switch {
	case a.Error != nil:
		return result{}, abi.Errorf(abi.CodeUnavailable, "%s", *a.Error)
	case stepKind(step) == OutcomePage:
		page := &Page{URL: "https://page.example/", Status: 200}
		if verb == "open" {
			page.URL = rest
		}
		if a.URL != nil {
			page.URL = *a.URL
		}
		if a.Title != nil {
			page.Title = *a.Title
		}
		if a.Status != 0 {
			page.Status = a.Status
		}
		return result{Outcome: Outcome{Case: OutcomePage, Page: page}}, nil
	case stepKind(step) == OutcomeText:
		text := string(a.JSON)
		if a.Text != nil {
			text = *a.Text
		}
		return result{Outcome: Outcome{Case: OutcomeText}, text: made("text/plain;charset=utf-8", text)}, nil
	case stepKind(step) == OutcomeBlob && a.File != nil:
		return result{Outcome: Outcome{Case: OutcomeBlob, Blob: made("application/octet-stream", *a.File)}}, nil
	}
	return result{}, nil
}

// Double implements [double.Doubler]: a session opens what the rules allow, and the test has the outcomes of its actions. A test that
// lists none for fill and leave has them do nothing.
func (g Rights) Double(_ context.Context, t *double.Test, raw json.RawMessage) (abi.Capability, error) {
	stubs, err := double.Members[double.Answers[Answer]](t, raw, exampleAnswers)
	if err != nil {
		return nil, err
	}
	for step, stub := range stubs {
		for _, a := range stub.List {
			if err := a.check(step); err != nil {
				return nil, t.Wrong(fmt.Sprintf("[%s]: %v", double.Quoted(step), err), exampleAnswers)
			}
		}
	}
	made, err := newGrant(nil, capability.NewSite("", nil), Rights{Rules: withoutCredentials(g.Rules), Intercept: g.Intercept})
	if err != nil {
		return nil, err
	}
	script := double.NewScript(stubs)
	made.answers = func(step string) (result, error) {
		answer, n, ok := script.Next(step)
		switch {
		case ok:
			return answer.outcome(step)
		case stepKind(step) == OutcomeNothing:
			return result{}, nil
		}
		what := printable.Cut(step, 300)
		example := map[OutcomeCase]string{OutcomePage: `{"title": "..."}`, OutcomeText: `{"text": "..."}`, OutcomeBlob: `{"file": "..."}`}[stepKind(step)]
		if strings.HasPrefix(step, "evaluate ") {
			example = `{"json": {}}`
		}
		if n > 0 {
			what = fmt.Sprintf("action %d of %s", n, what)
		}
		return result{}, t.Unanswered(what, strconv.Quote(printable.Cut(step, 2<<10))+": "+example)
	}
	return made, nil
}

// withoutCredentials are rules by their origins, which is all that a test compares.
func withoutCredentials(rules []http.Rule) []http.Rule {
	bare := make([]http.Rule, len(rules))
	for i, r := range rules {
		bare[i] = http.Rule{Scheme: r.Scheme, Host: r.Host, Port: r.Port}
	}
	return bare
}
