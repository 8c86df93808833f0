package tools

import (
	"fmt"
	"slices"
	"strings"

	"github.com/stilehost/stile/internal/printable"
	"github.com/stilehost/stile/internal/schematype"
)

// Limits of what a caller reads about tools, in bytes. Text of this kind has some 3.5 bytes for each token of a model.
const (
	// MaxNames is how many tools one answer describes.
	MaxNames = 10
	// DescribedBytes is how long the answer of a description is at most, whatever the tools' schemas are.
	DescribedBytes = 2_400
	maxLine        = 230
	maxFields      = 64 // in each other
	// FoundBytes is how long the lines of found tools are at most together.
	FoundBytes = 1_500
)

// Line is a tool on one line: how to call it, the fields that it requires, and what it does.
func Line(d Description) string {
	const most = maxLine
	input := "{...}"
	schema := schematype.Parse(d.InputSchema)
	if text, _, ok := schema.TypeWithin(schematype.Detail{Depth: 1, Optional: 2, Line: true}, 90); ok {
		input = text
	} else if text, _, ok := schema.TypeWithin(schematype.Detail{Depth: 1, Line: true}, 120); ok {
		input = text
	}
	line := call(d.Name, input)
	if room := most - len(line) - 2; room > 20 && d.Description != "" {
		line += ": " + short(printable.OneLine(strings.Join(strings.Fields(printable.Cut(d.Description, 1000)), " ")), room)
	}
	return line
}

// short is the start of a text, up to a space, with dots if that is not all.
func short(s string, most int) string {
	if len(s) <= most {
		return s
	}
	s = printable.Cut(s, most-3)
	if space := strings.LastIndexByte(s, ' '); space > most/2 {
		s = s[:space]
	}
	return strings.TrimRight(s, " .,;:-") + "..."
}

// call is how code calls a tool with an argument.
func call(name, argument string) string {
	e := Expression(name)
	if strings.HasPrefix(e, "tools.call(") {
		return strings.TrimSuffix(e, ")") + ", " + argument + ")"
	}
	return e + "(" + argument + ")"
}

// Lines are found tools, a line each. It ends with how many there is no room for.
func Lines(found []Description) string {
	var b strings.Builder
	for i, d := range found {
		line := Line(d) + "\n"
		if b.Len()+len(line) > FoundBytes {
			fmt.Fprintf(&b, "(%d more found; there is room for no more)\n", len(found)-i)
			break
		}
		b.WriteString(line)
	}
	return b.String()
}

// shown are the levels of detail of a description. It takes the first that fits.
var shown = []schematype.Detail{
	{Depth: 5, Comment: 200, Optional: 100},
	{Depth: 4, Comment: 100, Optional: 60},
	{Depth: 3, Comment: 60, Optional: 40},
	{Depth: 2, Comment: 60, Optional: 30},
	{Depth: 2, Comment: 40, Optional: 20},
	{Depth: 1, Comment: 40, Optional: 14},
	{Depth: 1, Optional: 20},
	{Depth: 1, Optional: 8},
	{Depth: 1},
	{},
}

// Signatures describes tools in TypeScript, with their inputs, in at most [DescribedBytes]. It says what there was no room for, and its
// types are whole whatever it leaves out. A name can go on with the field whose type is wanted: github_create_pr/labels.
func Signatures(f Finder, names []string) string {
	if len(names) == 0 {
		return "// name the tools: search finds them\n"
	}
	var left []string
	if len(names) > MaxNames {
		left = append(left, fmt.Sprintf("the tools after the first %d", MaxNames))
		names = names[:MaxNames]
	}
	const foot = 300 // bytes for what it says at the end
	room := DescribedBytes - foot
	var parts []string
	for i, name := range names {
		text, less := signature(f, name, room/(len(names)-i))
		if less {
			left = append(left, "parts of "+printable.Short(fullName(name), 80))
		}
		room = max(0, room-len(text))
		parts = append(parts, text)
	}
	text := strings.Join(parts, "\n")
	if len(left) > 0 {
		text += "// Left out: " + short(strings.Join(left, ", "), 160) + ". Ask for fewer at once, or for a field: NAME/field\n"
	}
	return text
}

// signature describes one tool.
func signature(f Finder, asked string, room int) (text string, less bool) {
	name, path, _ := strings.Cut(strings.TrimSpace(asked), "/")
	d, ok := f.Find(name)
	if !ok {
		name = fullName(name)
		d, ok = f.Find(name)
	}
	if !ok {
		return unknown(f, asked, room), false
	}
	schema := schematype.Parse(d.InputSchema)
	before, after := "", ""
	if path == "" {
		about := schematype.Comment(d.Description, 300)
		if about != "" {
			before = "/** " + about + " */\n"
		}
		if before += Expression(d.Name); strings.HasSuffix(before, ")") {
			before = strings.TrimSuffix(before, ")") + ", input: "
		} else {
			before += "(input: "
		}
		after = "): Promise<any>\n"
	} else {
		for i, field := range strings.Split(path, "/") {
			if schema, ok = schema.Field(field); !ok || i == maxFields {
				return short("// "+printable.OneLine(name)+" has no field "+quoted(short(path, 60)), max(room, 60)) + "\n", false
			}
		}
		before, after = "// "+printable.OneLine(name+"/"+short(path, 100))+"\n", "\n"
	}
	for i, detail := range shown {
		if t, less, ok := schema.TypeWithin(detail, room-len(before)-len(after)); ok {
			return before + t + after, less || i > 0
		}
	}
	if path == "" { // not even the names of its fields fit
		before = before[strings.IndexByte(before, '\n')+1:]
	}
	return before + "any" + after, true
}

// unknown says that there is no such tool, and names some that may be meant.
func unknown(f Finder, asked string, room int) string {
	text := "// there is no tool " + quoted(short(asked, 80))
	var like []string
	for _, d := range f.Search(printable.Cut(asked, maxQuery), 3) {
		if asked != "" && !slices.Contains(like, d.Name) {
			like = append(like, d.Name)
		}
	}
	if with := text + "; there are " + strings.Join(like, ", "); len(like) > 0 && len(with) <= max(room, 200) {
		text = with
	}
	return text + "\n"
}
