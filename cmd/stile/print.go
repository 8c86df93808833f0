package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/dustin/go-humanize"
	"github.com/dustin/go-humanize/english"
	"github.com/rivo/uniseg"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/internal/jsonform"
	"github.com/stilehost/stile/internal/printable"
)

// encode returns JSON that is safe on a terminal. indent is the indentation of one level.
func encode(v any, indent string) ([]byte, error) {
	text, err := jsonform.Encode(v, indent)
	if err != nil {
		return nil, fmt.Errorf("encode result: %w", err)
	}
	return escape(text), nil
}

// escape writes characters that a terminal would act on or hide as \u escapes. In valid JSON they occur only inside strings, so the
// value stays the same.
func escape(valid []byte) []byte {
	text := string(valid)
	var b []byte
	from := 0
	for at, size := printable.NextHidden(text, 0); at >= 0; at, size = printable.NextHidden(text, from) {
		b = append(b, text[from:at]...)
		from = at + size
		switch r, _ := utf8.DecodeRuneInString(text[at:]); {
		case r == '\r':
			b = append(b, '\r')
		case r > 0xffff:
			high, low := utf16.EncodeRune(r)
			b = fmt.Appendf(b, `\u%04x\u%04x`, high, low)
		default:
			b = fmt.Appendf(b, `\u%04x`, r)
		}
	}
	return append(b, text[from:]...)
}

// printJSON prints the result of a command.
func printJSON(w io.Writer, v any) error {
	text, err := encode(v, "  ")
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(w, "%s\n", text)
	return err
}

// asJSON is the flag of commands that print for people, or nothing.
type asJSON struct {
	JSON bool `name:"json" help:"Print as JSON."`
}

// done prints what a command did, if the flag is set. Otherwise, the command prints nothing.
func (j asJSON) done(s *streams, v any) error {
	if !j.JSON {
		return nil
	}
	return printJSON(s.out, v)
}

// alwaysJSON is the flag of commands whose result is JSON without it.
type alwaysJSON struct {
	JSON bool `name:"json" help:"Print an error as JSON too. The result is always JSON."`
}

// maxCell is the largest size of a cell, in bytes.
const maxCell = 64 << 10

// table lays out rows in columns. Each cell is one printable line.
func table(indent string, rows [][]string) string {
	var b strings.Builder
	t := tabwriter.NewWriter(&b, 0, 0, 3, ' ', 0)
	for _, row := range rows {
		cells := make([]string, len(row))
		for i, cell := range row {
			cells[i] = printable.Line(printable.Short(cell, maxCell))
		}
		_, _ = fmt.Fprintln(t, indent+strings.Join(cells, "\t")) // a Builder never fails
	}
	_ = t.Flush()
	return b.String()
}

// maxListed is the largest size of a text in a list, in bytes. fit cuts it further.
const maxListed = 1000

// fit cuts the lines of text to a number of columns. 0 means no limit.
func fit(text string, columns int) string {
	if columns == 0 {
		return text
	}
	var b strings.Builder
	for row := range strings.Lines(text) {
		if row = strings.TrimSuffix(row, "\n"); uniseg.StringWidth(row) > columns {
			kept, width, state := 0, 1, -1 // room for the "…"
			for rest := row; ; {
				var cluster string
				var w int
				cluster, rest, w, state = uniseg.FirstGraphemeClusterInString(rest, state)
				if width += w; width > columns {
					break
				}
				kept += len(cluster)
			}
			row = row[:kept] + "…"
		}
		b.WriteString(row + "\n")
	}
	return b.String()
}

// tool is a tool's definition, with its schemas as JSON instead of text.
type tool struct {
	Name         string          `json:"name"`
	Description  string          `json:"description"`
	InputSchema  json.RawMessage `json:"inputSchema"`
	OutputSchema json.RawMessage `json:"outputSchema,omitempty"`
	Annotations  abi.Annotations `json:"annotations"`
}

func toolsOf(definitions []abi.Definition) []tool {
	tools := make([]tool, len(definitions))
	for i, d := range definitions {
		tools[i] = tool{Name: d.Name, Description: d.Description, InputSchema: json.RawMessage(d.InputSchema), Annotations: d.Annotations}
		if d.OutputSchema != nil {
			tools[i].OutputSchema = json.RawMessage(*d.OutputSchema)
		}
	}
	return tools
}

// toolTable lists tools for a person, each with the first line of its description.
func toolTable(indent string, definitions []abi.Definition) string {
	rows := make([][]string, len(definitions))
	for i, d := range definitions {
		line, _, _ := strings.Cut(d.Description, "\n")
		rows[i] = []string{d.Name, line}
	}
	return table(indent, rows)
}

// counted writes a number and the noun, in the plural if necessary.
func counted[N int | int64 | uint32 | uint64](n N, one string) string {
	return english.Plural(int(n), one, "")
}

// about writes a size in bytes, rounded.
func about(n int64) string { return humanize.IBytes(uint64(max(0, n))) }

// when writes a time.
func when(t time.Time) string { return t.UTC().Format(time.RFC3339) }
