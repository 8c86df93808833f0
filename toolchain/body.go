package toolchain

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/host"
	"github.com/stilehost/stile/internal/jslex"
	"github.com/stilehost/stile/internal/lazyregexp"
)

// BodyTool is the only tool of a program that [Body] makes.
const BodyTool = "code"

// The lines around a body are JavaScript, which is valid in each language that a body may have.
const (
	bodyHead = `export default { "stile:body": true, run: async (input, env, tools) => {{` + "\n"
	bodyTail = "\n}} };"
)

// bodyDefinitions are what every body exports. So nobody has to ask it, and only this tool can be called.
var bodyDefinitions = []abi.Definition{{Name: BodyTool, Description: "Code", InputSchema: `{"type":"object"}`}}

// Body makes a program from the body of an async function with the parameters input, which is any JSON, env, and tools,
// which is env.tools if bound. Its return value is the result of the tool [BodyTool]. Errors count the lines of the body.
func Body(p Program) Program {
	p.Text = bodyHead + strings.TrimRight(p.Text, " \t\r\n") + bodyTail
	p.above = 1
	return p
}

var lineEnd = lazyregexp.New("\r\n|[" + jslex.LineEnds + "]")

// importing matches a line with an import statement, which is not allowed in a function.
var importing = lazyregexp.New(`^\s*import\s*["\'{*\pL_$]`)

// importBefore matches what comes before the first token that cannot follow import in an expression.
var importBefore = lazyregexp.New(`[;{}\s]import\s*$`)

// isImport reports whether a mistake in a line comes from an import statement.
func (p Program) isImport(line string, column int) bool {
	before := []rune(line)
	return importing.MatchString(line) || importBefore.MatchString(string(before[:min(max(0, column-1), len(before))]))
}

// lines are the lines of the body.
func (p Program) lines() []string {
	return lineEnd.Split(strings.TrimSuffix(strings.TrimPrefix(p.Text, bodyHead), bodyTail), -1)
}

// wrap turns the input of a body into the input of a tool, which is an object. The host refuses invalid JSON.
func (p Program) wrap(input []byte) []byte {
	if p.above == 0 || len(input) > 0 && !json.Valid(input) {
		return input
	}
	if len(input) == 0 {
		input = []byte("{}")
	}
	return slices.Concat([]byte(`{"input":`), input, []byte("}"))
}

// lower adjusts line numbers for the lines above the author's. It moves an error that shows only below them, such as a missing
// bracket, to the end of the author's last line.
func (p Program) lower(err error) error {
	if p.above == 0 || err == nil {
		return err
	}
	lines := p.lines()
	last, text := len(lines), lines[len(lines)-1]
	var built *BuildError
	var failed *host.GuestError
	var limit *host.LimitError
	switch {
	case errors.As(err, &built):
		for i := range built.Problems {
			at := &built.Problems[i]
			if at.Line = max(at.Line-p.above, 0); at.Line > last {
				at.Line, at.Column, at.Text = last, utf8.RuneCountInString(text)+1, at.Text+" at the end of the code"
				at.Snippet = Snippet(text, at.Column)
			} else if at.Line > 0 && p.isImport(lines[at.Line-1], at.Column) {
				at.Text = "this code cannot import: it has only input, env and tools; write an extension to import something"
				if p.ImportsFirst {
					at.Text = "import statements come first in the code: move this one before everything else"
				}
			} else if at.Text == `Unexpected "export"` {
				at.Text = "this code cannot export: it is the body of a function, and its result is what it returns; use stile run for a file that exports tools"
			}
		}
	case errors.As(err, &failed):
		failed.Failure.Stack = p.lowerStack(failed.Failure.Stack, last)
	case errors.As(err, &limit):
		limit.Stack = p.lowerStack(limit.Stack, last)
	}
	return err
}

func (p Program) lowerStack(stack string, last int) string {
	lines := strings.Split(stack, "\n")
	for i, line := range lines {
		if at, ok := host.ReadFrame(line); ok && at.File == p.Name && at.Line > p.above {
			at.Line = min(at.Line-p.above, last)
			lines[i] = at.String()
		}
	}
	return strings.Join(lines, "\n")
}
