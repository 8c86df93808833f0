package openapi

import (
	_ "embed"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/extension"
	"github.com/stilehost/stile/internal/jsonform"
)

//go:embed runtime.ts
var runtime string

// TableFile is the file of the table of operations in every draft.
const TableFile = "operations.json"

// write makes the parts of a draft. It returns how many tools say less than the document.
func (d *document) write(draft *Draft, bin []*operation, title, version string, o Options) (simplified int, err error) {
	made, simplified, err := d.fit(bin)
	if err != nil {
		return 0, err
	}
	if draft.Tools = len(made); len(made) == 0 {
		return 0, nil
	}
	r := d.server.rule(o)
	names := make([]string, 0, len(made))
	uses := map[string]bool{}
	headers := map[string]bool{}
	for _, op := range made {
		names = append(names, op.Name)
		uses[op.Method] = true
		for _, p := range op.Parameters {
			if p.In == "header" {
				headers[strings.ToLower(p.name())] = true
			}
		}
	}
	r.Methods, r.Headers = slices.Sorted(maps.Keys(uses)), slices.Sorted(maps.Keys(headers))
	if len(r.Headers) > maxHeaders {
		return 0, &DocumentError{"/paths", fmt.Sprintf("the operations set %d headers; a rule names at most %d", len(r.Headers), maxHeaders), "choose fewer operations with --tag or --include"}
	}
	if !abi.IsVersion(version) {
		version = "1.0.0"
	}
	slices.Sort(names)
	about := fmt.Sprintf("%d operations of %s", len(made), d.server.text())
	if title != "" {
		about = title + ": " + about
	}
	manifest := map[string]any{
		"name": draft.Name, "version": version, "description": prose(about, extension.MaxDescription), "tools": names,
		"bindings": map[string]any{Binding: map[string]any{"http": []rule{r}}},
	}
	if draft.Manifest, err = jsonform.Encode(manifest, "  "); err != nil {
		return 0, fmt.Errorf("write the manifest: %w", err)
	}
	table, err := d.table(made)
	if err != nil {
		return 0, err
	}
	draft.Files = map[string][]byte{Entry: []byte(runtime), TableFile: table}
	return simplified, nil
}

const maxHeaders = 64 // of a rule of http

// fit builds operations so that all their schemas together are small enough.
func (d *document) fit(bin []*operation) (made []*operation, simplified int, err error) {
	for room := maxSchema; ; room /= 2 {
		made, simplified = nil, 0
		total := 0
		first := room == maxSchema
		for _, o := range bin {
			reason, less := d.buildWithin(o, room)
			if d.tooMuch() {
				return nil, 0, errTooLong
			}
			if reason != "" {
				if first {
					d.leaveOut(reason, o.Method+" "+o.Path)
				}
				continue
			}
			if less {
				simplified++
			}
			total += o.size()
			made = append(made, o)
		}
		if total <= maxSchemas {
			return made, simplified, nil
		}
		if room < leastSchema {
			return nil, 0, &DocumentError{"/paths", "the inputs of all operations are too large for one extension", "choose fewer operations with --tag or --include"}
		}
	}
}

// buildWithin builds an operation with as much detail as fits.
func (d *document) buildWithin(o *operation, room int) (reason string, less bool) {
	for i, at := range details {
		if reason, less = d.build(o, at); reason != "" || o.size() <= room || d.tooMuch() {
			return reason, less || i > 0
		}
	}
	return "", true
}

// table is the table of operations as JSON, a line for each.
func (d *document) table(made []*operation) ([]byte, error) {
	var b strings.Builder
	server, err := compact(d.server.text())
	if err != nil {
		return nil, err
	}
	fmt.Fprintf(&b, "{\n  \"server\": %s,\n  \"operations\": [\n", server)
	for i, o := range made {
		row, err := compact(o)
		if err != nil {
			return nil, err
		}
		b.WriteString("    ")
		b.Write(row)
		if i < len(made)-1 {
			b.WriteByte(',')
		}
		b.WriteByte('\n')
	}
	b.WriteString("  ]\n}\n")
	if b.Len() > maxTable {
		return nil, &DocumentError{"/paths", "the table of operations is too large", "choose fewer operations with --tag or --include"}
	}
	return []byte(b.String()), nil
}
