package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"regexp"
	"slices"
	"strconv"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/stilehost/stile/capabilities/clock"
	"github.com/stilehost/stile/capabilities/console"
	"github.com/stilehost/stile/capabilities/random"
	"github.com/stilehost/stile/extension"
	"github.com/stilehost/stile/host"
	"github.com/stilehost/stile/toolchain"
)

const codeDescription = `Runs TypeScript once, in a fresh sandbox. code is the body of an async function: input is in scope, and what it returns is the result, as JSON.
e.g. code: "const ns: number[] = input.ns; return ns.reduce((a, b) => a + b, 0) / ns.length;", input: {"ns": [1, 2, 6]}
There are the language, URL, TextEncoder, crypto.subtle.digest and the like, console.log (which is returned), Date, Math.random and timers. There are no imports, no network and no files; nothing stays for the next call. For what needs more, or is needed again, write an extension.`

type codeInput struct {
	Code  string          `json:"code" jsonschema:"the body of an async function, in TypeScript"`
	Input json.RawMessage `json:"input,omitempty" jsonschema:"any JSON, which the code has as input"`
}

type codeOutput struct {
	Result any      `json:"result" jsonschema:"what the code returned"`
	Logs   []string `json:"logs,omitempty" jsonschema:"the last lines that the code logged"`
	CPUMS  float64  `json:"cpu_ms" jsonschema:"processor time, in milliseconds"`
}

// The code stands on lines of its own, so that nothing but its lines has to be counted back.
const (
	codeName   = "code.ts"
	codeBefore = `import { extension } from "stile"; export default extension({ tools: { run: { description: "code", input: { type: "object" }, run: async ({ input }: any, env: any) => {` + "\n"
	codeAfter  = "\n} } } });"
)

func (e *endpoint) addCode() {
	if e.options.Evaluator == nil {
		return
	}
	add[codeInput, codeOutput](e, "code_run", "Run code", codeDescription, hints{readOnly: true}, (*request).runCode)
}

func (r *request) runCode(ctx context.Context, in codeInput) (*sdk.CallToolResult, error) {
	if strings.TrimSpace(in.Code) == "" {
		return nil, mistake("there is no code")
	}
	evaluator, err := r.options.Evaluator(ctx)
	if err != nil {
		return nil, err
	}
	if in.Input == nil {
		in.Input = json.RawMessage("null")
	}
	input, err := json.Marshal(map[string]json.RawMessage{"input": in.Input})
	if err != nil {
		return nil, mistake("input is JSON")
	}
	env := host.Env{}
	for _, b := range extension.Defaults() {
		switch b.Grant.(type) {
		case extension.Console:
			env[b.Name] = console.To(r.log(ctx))
		case extension.Clock:
			env[b.Name] = clock.System()
		case extension.Random:
			env[b.Name] = random.System()
		}
	}
	result, err := evaluator.Do(ctx, toolchain.Program{Name: codeName, Text: codeBefore + in.Code + codeAfter}, host.Request{
		Tool: "run", Input: input, Env: env, Limits: r.options.Limits,
	})
	if err != nil {
		return nil, countBack(err, in.Code)
	}
	return r.answer(codeOutput{json.RawMessage(result.Output), r.logs.last(), milliseconds(result.Usage.CPU)})
}

var codeLine = regexp.MustCompile(`\b` + regexp.QuoteMeta(codeName) + `:(\d+)`)

// countBack has an error name the lines of the code, without the one before it.
func countBack(err error, code string) error {
	last := strings.Count(code, "\n") + 1
	line := func(n int) int { return min(max(n-1, 1), last) }
	if failed, ok := errors.AsType[*host.GuestError](err); ok {
		again := *failed
		again.Failure.Stack = codeLine.ReplaceAllStringFunc(again.Failure.Stack, func(at string) string {
			n, _ := strconv.Atoi(at[len(codeName)+1:])
			return codeName + ":" + strconv.Itoa(line(n))
		})
		return &again
	}
	if built, ok := errors.AsType[*toolchain.BuildError](err); ok {
		again := &toolchain.BuildError{Problems: slices.Clone(built.Problems)}
		for i := range again.Problems {
			if p := &again.Problems[i]; p.Line > 0 {
				p.Line = line(p.Line)
			}
		}
		return again
	}
	return err
}
