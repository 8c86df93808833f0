package openapi

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"

	"github.com/stilehost/stile/internal/printable"
)

// Limits of a document. Decoded JSON takes about 100 bytes for each value, and YAML some 300 while it is read.
const (
	MaxDocument = 32 << 20 // bytes
	maxYAML     = 8 << 20  // bytes of a document that is not JSON
	maxValues   = 3_000_000
	maxDepth    = 150
)

// decode reads a document as JSON if it begins like it, and as YAML otherwise. Numbers are json.Number.
func decode(text []byte) (map[string]any, error) {
	text = bytes.TrimPrefix(text, []byte("\uFEFF"))
	var root any
	var err error
	switch {
	case len(text) > MaxDocument:
		return nil, &DocumentError{Text: fmt.Sprintf("the document has %s; at most %s are read", printable.Size(int64(len(text))), printable.Size(MaxDocument))}
	case !utf8.Valid(text):
		return nil, &DocumentError{Text: "the document is not UTF-8"}
	case bytes.HasPrefix(bytes.TrimLeft(text, " \t\r\n"), []byte("{")):
		root, err = decodeJSON(text)
	case len(text) > maxYAML:
		return nil, &DocumentError{Text: fmt.Sprintf("the document has %s; at most %s are read as YAML", printable.Size(int64(len(text))), printable.Size(maxYAML)), Fix: "convert it to JSON"}
	default:
		root, err = decodeYAML(text)
	}
	if err != nil {
		return nil, err
	}
	fields, ok := root.(map[string]any)
	if !ok {
		return nil, &DocumentError{Text: "the document is not an object"}
	}
	return fields, nil
}

func decodeJSON(text []byte) (v any, err error) {
	if err := measure(text); err != nil {
		return nil, err
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	if err = d.Decode(&v); err == nil {
		if _, more := d.Token(); !errors.Is(more, io.EOF) {
			err = errors.New("there is more after the end of the document")
		}
	}
	if err != nil {
		return nil, &DocumentError{Text: "the document is not JSON: " + printable.Short(err.Error(), 200)}
	}
	return v, nil
}

// measure refuses JSON whose values would take too much memory, before they do.
func measure(text []byte) error {
	values, depth, deepest, quote := 0, 0, 0, false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case quote && c == '\\':
			i++
		case c == '"':
			quote = !quote
		case quote:
		case c == '{' || c == '[':
			values++
			depth++
			deepest = max(deepest, depth)
		case c == '}' || c == ']':
			depth--
		case c == ',':
			values++
		}
	}
	return within(values, deepest)
}

func within(values, depth int) error {
	if values > maxValues {
		return &DocumentError{Text: fmt.Sprintf("the document has more than %d values", maxValues)}
	}
	if depth > maxDepth {
		return &DocumentError{Text: fmt.Sprintf("the document is nested more than %d deep", maxDepth)}
	}
	return nil
}

// decodeYAML reads YAML. What an alias stands for counts each time, so a few lines cannot become gigabytes.
func decodeYAML(text []byte) (v any, err error) {
	defer func() {
		if failed := recover(); failed != nil { // the library's parser panics on some malformed texts
			v, err = nil, &DocumentError{Text: "the document is not YAML"}
		}
	}()
	if err := flat(text); err != nil {
		return nil, err
	}
	var node yaml.Node
	if err := yaml.Unmarshal(text, &node); err != nil {
		return nil, &DocumentError{Text: "the document is not YAML: " + printable.Short(strings.TrimPrefix(err.Error(), "yaml: "), 200)}
	}
	c := &fromYAML{}
	return c.value(&node, 0)
}

// flat refuses YAML with so many brackets that its parser would nest too deep.
func flat(text []byte) error {
	const most = 2000 // brackets in texts count too
	depth := 0
	for _, c := range text {
		switch c {
		case '[', '{':
			if depth++; depth > most {
				return within(0, depth)
			}
		case ']', '}':
			depth = max(0, depth-1)
		}
	}
	return nil
}

type fromYAML struct{ values int }

func (c *fromYAML) value(n *yaml.Node, depth int) (any, error) {
	if c.values++; c.values > maxValues || depth > maxDepth {
		return nil, within(c.values, depth)
	}
	switch n.Kind {
	case yaml.DocumentNode:
		if len(n.Content) == 1 {
			return c.value(n.Content[0], depth)
		}
		return nil, nil
	case yaml.AliasNode:
		return c.value(n.Alias, depth+1) // one that contains itself ends at maxDepth
	case yaml.SequenceNode:
		list := make([]any, 0, min(len(n.Content), maxValues))
		for _, item := range n.Content {
			v, err := c.value(item, depth+1)
			if err != nil {
				return nil, err
			}
			list = append(list, v)
		}
		return list, nil
	case yaml.MappingNode:
		return c.mapping(n, depth)
	case yaml.ScalarNode:
		return scalar(n), nil
	default:
		return nil, nil
	}
}

func (c *fromYAML) mapping(n *yaml.Node, depth int) (any, error) {
	fields := make(map[string]any, len(n.Content)/2)
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, item := n.Content[i], n.Content[i+1]
		for hops := 0; key.Kind == yaml.AliasNode && hops < maxDepth; hops++ {
			key = key.Alias
		}
		if key.Kind != yaml.ScalarNode {
			return nil, &DocumentError{Text: fmt.Sprintf("line %d: a key is not text", n.Line)}
		}
		v, err := c.value(item, depth+1)
		if err != nil {
			return nil, err
		}
		if key.ShortTag() == "!!merge" {
			for _, from := range append([]any{v}, list(v)...) {
				for name, inherited := range object(from) {
					if c.values++; c.values > maxValues {
						return nil, within(c.values, 0)
					}
					if _, own := fields[name]; !own {
						fields[name] = inherited
					}
				}
			}
			continue
		}
		fields[key.Value] = v
	}
	return fields, nil
}

func scalar(n *yaml.Node) any {
	switch n.ShortTag() {
	case "!!null":
		return nil
	case "!!bool":
		return strings.EqualFold(n.Value, "true")
	case "!!int", "!!float":
		if json.Valid([]byte(n.Value)) {
			return json.Number(n.Value)
		}
		if i, err := strconv.ParseInt(strings.ReplaceAll(n.Value, "_", ""), 0, 64); err == nil {
			return json.Number(strconv.FormatInt(i, 10))
		}
		if f, err := strconv.ParseFloat(n.Value, 64); err == nil && !math.IsInf(f, 0) && !math.IsNaN(f) {
			return json.Number(strconv.FormatFloat(f, 'g', -1, 64))
		}
	}
	return n.Value
}

// The readers of decoded values. What has another type is the zero value: a document's mistakes cost a description or a constraint, and
// nothing else.

func object(v any) map[string]any { m, _ := v.(map[string]any); return m }

func list(v any) []any { l, _ := v.([]any); return l }

func str(v any) string {
	switch v := v.(type) {
	case string:
		return v
	case json.Number:
		return v.String()
	default:
		return ""
	}
}

func truth(v any) bool { b, _ := v.(bool); return b }

func quoted(s string) string { return strconv.Quote(printable.Short(s, 100)) }

// cutProse is what prose reads of a text, which is up to 8 times as long as what it says.
func cutProse(s string, most int) string { return printable.Cut(s, 8*most+64) }

// prose is text of a document as one line, which hides nothing, of at most so many bytes.
func prose(s string, most int) string {
	s = cutProse(s, most)
	s = strings.TrimSpace(printable.OneLine(strings.Join(strings.Fields(plainText(s)), " ")))
	if len(s) <= most {
		return s
	}
	if most < 8 {
		return ""
	}
	s = printable.Cut(s, most-3)
	if space := strings.LastIndexByte(s, ' '); space > most/2 {
		s = s[:space]
	}
	return strings.TrimRight(s, " ,;:.-(") + "..."
}
