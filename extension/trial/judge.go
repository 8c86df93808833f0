package trial

import (
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/stilehost/stile/capability/double"
	"github.com/stilehost/stile/extension"
	"github.com/stilehost/stile/host"
	platform "github.com/stilehost/stile/internal/absent"
	"github.com/stilehost/stile/internal/errkind"
	"github.com/stilehost/stile/internal/npmspec"
	"github.com/stilehost/stile/internal/printable"
)

// maxText is how many bytes of a tool's error are shown.
const maxText = 1000

func problem(t extension.Test, text string) *extension.Problem {
	return &extension.Problem{Text: fmt.Sprintf("test %s of %s: %s", double.Quoted(t.Name), double.Quoted(t.Tool), text)}
}

// inManifest returns a problem of the test itself.
func inManifest(t extension.Test, m *double.MistakeError) *extension.Problem {
	p := problem(t, m.Text)
	p.File, p.Fix = extension.ManifestFile, m.Fix
	return p
}

// decoding is held while a result is decoded, which takes up to 70 times its bytes.
var decoding sync.Mutex

// judge says what is wrong with how a test's call ended. It returns nil if the test passes. An error is not the tool's.
func (e *environment) judge(t extension.Test, output []byte, ended error) (*extension.Problem, error) {
	failure := failureOf(ended)
	switch {
	case ended != nil && failure == nil:
		return nil, ended
	case len(e.missing) > 0:
		return inManifest(t, e.lacking()), nil
	case failure != nil && (t.Error == "" || !failure.expected):
		p := problem(t, failure.text)
		p.File, p.Line, p.Column, p.Fix = failure.file, failure.line, failure.column, failure.fix
		return p, nil
	case failure != nil && !strings.Contains(failure.text, t.Error):
		p := problem(t, fmt.Sprintf("expected an error with %s, got: %s", double.Quoted(t.Error), failure.text))
		p.File, p.Line, p.Column = failure.file, failure.line, failure.column
		return p, nil
	case failure != nil:
		return nil, nil
	case t.Error != "":
		decoding.Lock()
		defer decoding.Unlock()
		came, err := decode(output)
		return problem(t, fmt.Sprintf("expected an error with %s, got the result %s", double.Quoted(t.Error), shown(came))), err
	}
	decoding.Lock()
	defer decoding.Unlock()
	d, err := compare(t.Expect, output)
	if err != nil || d == nil {
		return nil, err
	}
	return problem(t, d.String()), nil
}

// lacking returns the problem of a test that lacks answers which the tool asked for.
func (e *environment) lacking() *double.MistakeError {
	first := e.missing[0]
	var what, lines []string
	for _, m := range e.missing {
		if m.binding == first.binding && m.line != "" {
			lines = append(lines, m.line)
		}
		what = append(what, m.what)
	}
	return &double.MistakeError{
		Text: printable.Short("it gives no answer for "+strings.Join(what, ", "), maxText),
		Fix:  printable.Short(fmt.Sprintf(`"env": {%q: {%s}}`, first.binding, strings.Join(lines, ", ")), 4*maxText),
	}
}

// failure is an error of a call for which the tool is responsible.
type failure struct {
	text, fix string
	// expected is set for failures that a test can expect: those that a tool's caller sees. An abort is not one of them.
	expected     bool
	file         string
	line, column int
}

// failureOf returns nil for success and for errors that are not the tool's fault.
func failureOf(err error) *failure {
	if guest, ok := errors.AsType[*host.GuestError](err); ok {
		f := &failure{text: host.OutcomeOf(guest).Words(), expected: true}
		_, f.fix, _ = platform.Find(guest.Failure.Message)
		f.place(guest.Failure.Stack)
		return f.short()
	}
	if denied, ok := errors.AsType[*host.DeniedError](err); ok {
		return (&failure{text: denied.Denial.Text(), expected: true, fix: printable.Short(denied.Denial.Remedy, maxText)}).short()
	}
	if limit, ok := errors.AsType[*host.LimitError](err); ok && limit.Limit != "engine" { // the limit of the engine is for all calls
		f := &failure{text: limit.Error()}
		f.place(limit.Stack)
		return f.short()
	}
	if input, ok := errors.AsType[*host.InputError](err); ok {
		return (&failure{text: input.Error(), expected: true}).short()
	}
	for _, is := range []func(error) bool{errkind.Is[*host.UnknownToolError], errkind.Is[*host.TrapError], errkind.Is[*host.DefinitionError], errkind.Is[*host.LoadError]} {
		if is(err) {
			return (&failure{text: err.Error()}).short()
		}
	}
	return nil
}

func (f *failure) short() *failure {
	f.text = printable.Short(f.text, maxText)
	return f
}

// place finds where the error was thrown: in the author's own code, if the stack has any.
func (f *failure) place(stack string) {
	for line := range strings.Lines(stack) {
		at, ok := host.ReadFrame(line)
		if !ok {
			continue
		}
		if strings.HasPrefix(at.File, "node:") { // what stands in for a module of node
			continue
		}
		packaged := npmspec.InPackage(at.File)
		if f.file == "" || !packaged {
			f.file, f.line, f.column = at.File, at.Line, at.Column
		}
		if !packaged {
			return
		}
	}
}
