package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/host"
	"github.com/stilehost/stile/internal/printable"
	"github.com/stilehost/stile/wit"
)

type callsShowCommand struct {
	ID int64 `arg:"" complete:"call" help:"Number of the recording."`
	asJSON
}

// Help implements kong.HelpProvider.
func (*callsShowCommand) Help() string {
	return `Examples:

    stile calls show 12
    stile calls show 12 --json`
}

// shownCall is everything in a recording.
type shownCall struct {
	listedCall
	Result host.Outcome `json:"result"`
	// Code is the JavaScript that stile code ran, if it made the call.
	Code string `json:"code,omitempty"`
	// Input and Output are JSON, or the beginning of the text if they are not valid JSON.
	Input        any               `json:"input"`
	Output       any               `json:"output,omitempty"`
	OutputDigest string            `json:"outputDigest,omitempty"`
	Bindings     map[string]string `json:"bindings"`
	Limits       map[string]string `json:"limits"`
	CPUSeconds   float64           `json:"cpuSeconds"`
	Denials      []denial          `json:"denials"`
	Redacted     bool              `json:"redacted"`
	// Recorded are the recorded operations.
	Recorded []host.RecordedOperation `json:"recorded"`
}

// Run implements the command.
func (c *callsShowCommand) Run(ctx context.Context, s *streams) (err error) {
	r, store, err := recorded(ctx, c.ID)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	known, err := abi.ParseCapability(wit.Capability(), wit.Extension())
	if err != nil {
		return err
	}
	operations, err := r.All(known)
	if err != nil {
		return fmt.Errorf("recording %d: %w", c.ID, err)
	}
	shown := shownCall{
		listedCall: listedCall{
			c.ID, r.Started.UTC(), r.Duration.Seconds(), printable.Text(r.Tool), printable.Text(r.Extension), printable.Text(r.Outcome.Kind), r.Usage.Operations,
			"sha256:" + printable.Text(r.Component), printable.Text(r.Cut),
		},
		Result: r.Outcome, Code: printable.Short(r.Code, maxEvaluated), Input: jsonOrText(r.Input), Output: jsonOrText(r.Output), OutputDigest: r.OutputDigest, Bindings: r.Bindings,
		Limits: limitsOf(r.Limits), CPUSeconds: r.Usage.CPU.Seconds(), Denials: []denial{}, Redacted: r.Redacted, Recorded: operations,
	}
	for _, d := range r.Usage.Denials {
		shown.Denials = append(shown.Denials, denial{Binding: d.Binding, Operation: d.Operation, Reason: d.Reason, Remedy: d.Remedy})
	}
	if c.JSON {
		return printJSON(s.out, shown)
	}
	_, err = io.WriteString(s.out, shown.text())
	return err
}

// maxNoJSON is how many bytes are shown of text that should be JSON. Escaped, it takes six times as much.
const maxNoJSON = 1 << 20

func jsonOrText(b []byte) any {
	switch {
	case b == nil:
		return nil
	case json.Valid(b):
		return json.RawMessage(b)
	default:
		return printable.Cut(string(b), maxNoJSON)
	}
}

// text returns a recording for a person.
func (c *shownCall) text() string {
	var b strings.Builder
	value := func(v any) string {
		text, err := encode(v, "")
		if err != nil {
			return printable.Text(err.Error())
		}
		return string(text)
	}
	of := ""
	if c.Extension != "" {
		of = " of " + cell(c.Extension)
	}
	fmt.Fprintf(&b, "call %d: %s%s at %s, took %v (%v of processor time)\n", c.ID, cell(c.Tool), of, when(c.Started),
		seconds(c.Seconds), seconds(c.CPUSeconds))
	fmt.Fprintf(&b, "component  %s\noutcome    %s\n", cell(c.Component), cell(c.Result.String()))
	if c.Cut != "" {
		fmt.Fprintf(&b, "incomplete it reached its bound (%s), and a replay ends there\n", cell(c.Cut))
	}
	if c.Redacted {
		b.WriteString("redacted   secrets were replaced, and a replay gets the replacements\n")
	}
	if c.Code != "" {
		fmt.Fprintf(&b, "code       %d bytes that came with the call; --json has them\n", len(c.Code))
	}
	fmt.Fprintf(&b, "input      %s\n", value(c.Input))
	if c.Output != nil {
		fmt.Fprintf(&b, "output     %s\n", value(c.Output))
	}
	for _, name := range slices.Sorted(maps.Keys(c.Bindings)) {
		fmt.Fprintf(&b, "binding    %s: %s\n", cell(printable.Text(name)), cell(printable.Text(c.Bindings[name])))
	}
	for _, d := range c.Denials {
		fmt.Fprintf(&b, "denial     %s\n", cell(printable.Text(fmt.Sprintf("%s through %q: %s", d.Operation, d.Binding, d.Reason))))
	}
	fmt.Fprintf(&b, "\n%s, %d of them recorded", counted(c.Operations, "operation"), len(c.Recorded))
	if c.Operations > len(c.Recorded) && c.Cut == "" {
		b.WriteString("; the others are of WASI, which reaches nothing outside the call")
	}
	b.WriteByte('\n')
	for i, o := range c.Recorded {
		fmt.Fprintf(&b, "%5d  %s\n", i+1, cell(o.String()))
	}
	return b.String()
}

func seconds(s float64) time.Duration {
	return time.Duration(s * float64(time.Second)).Round(time.Microsecond)
}
