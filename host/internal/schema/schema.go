// Package schema compiles the JSON Schemas of a component's tools and checks inputs and results against them. It counts and bounds the
// cost of both in advance.
package schema

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/stilehost/stile/internal/printable"
)

// Schemas come from the guest and inputs from the caller, and the host compares the two before the guest's limits apply. So the cost
// is counted before anything is compiled or checked.
const (
	maxSchema = 256 << 10 // bytes of text
	// MaxSchemas bounds the bytes of text of all of a component's schemas.
	MaxSchemas = 1 << 20
	// maxOutline bounds the memory of the schema compiler. Its time grows with the square of the number of subschemas, and its
	// memory with the length of their pointers.
	maxOutline = 2 << 20
	// MaxDepth is how deep a schema may nest.
	MaxDepth = 64
	// maxExpanded is how many subschemas may apply to one value, with every reference followed.
	maxExpanded = 10_000
	// maxSteps bounds the work of one validation. A step takes about 50 nanoseconds and 10 bytes.
	maxSteps = 32 << 20
	// MaxValidating bounds the steps of validations at one time, and so their memory.
	MaxValidating = 2 * maxSteps
	// MaxDecoded bounds the bytes of all values that are being validated, as jsonform.DecodedSize counts them. Values below freeDecoded do
	// not count, so they never wait for larger ones.
	MaxDecoded, freeDecoded = 64 << 20, 1 << 20
	// maxFailures bounds the bytes of errors that a validation may make, because it finds all problems, each with its place. If
	// there could be more, a first pass asks only for yes or no.
	maxFailures = 16 << 20
	// maxNumber bounds the characters and the exponent of a number, because validation makes fractions of large integers of them.
	maxNumber = 400
)

// Schema is a compiled schema that never applies to the same value in a cycle.
type Schema struct {
	root    *jsonschema.Schema
	negated *jsonschema.Schema // admits what root refuses
	nodes   map[*jsonschema.Schema]*node
	quick   *quick // nil if it cannot say what root accepts
}

// node is the cost of a subschema.
type node struct {
	steps    int                  // for each value
	inPlace  []*jsonschema.Schema // subschemas that apply to the same value
	resource *resource            // the resource with the subschema; nil if no schema has a dynamic reference
	dynamic  []*node              // may apply to the same value through a dynamic reference
	expanded int                  // counts itself, inPlace and dynamic, recursively; 0 until counted
}

// Compiler compiles the schemas of one component.
type Compiler struct {
	// loader loads the documents that a $ref to another document names.
	loader                                        jsonschema.URLLoader
	bytes, patternText, patternWork, instructions int
	// by text:
	schemas  map[string]*Schema
	patterns map[string]*pattern
}

// NewCompiler returns a compiler without schemas.
func NewCompiler() *Compiler {
	return &Compiler{loader: noLoader{}, schemas: map[string]*Schema{}, patterns: map[string]*pattern{}}
}

// noLoader refuses every $ref to another document.
type noLoader struct{}

func (noLoader) Load(url string) (any, error) { return nil, fmt.Errorf("%q is not fetched", url) }

// Compile compiles a schema, and refuses one that is too expensive for any value.
func (c *Compiler) Compile(text string) (*Schema, error) {
	if s := c.schemas[text]; s != nil {
		return s, nil
	}
	c.bytes += len(text)
	switch {
	case len(text) > maxSchema:
		return nil, errors.New("more than " + printable.Size(maxSchema))
	case c.bytes > MaxSchemas:
		return nil, fmt.Errorf("the schemas of all tools have more than %s", printable.Size(MaxSchemas))
	}
	document, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
	if err != nil {
		return nil, fmt.Errorf("not JSON: %w", err)
	}
	if path, huge := hugeNumber(document); huge {
		return nil, fmt.Errorf("%s: %s", pointer(path), hugeNumberReason)
	}
	outline := 0
	if !outlined(document, 0, 0, &outline) {
		return nil, errors.New("nested too deep, or too many subschemas")
	}
	library := jsonschema.NewCompiler()
	library.DefaultDraft(jsonschema.Draft2020)
	library.UseLoader(c.loader)
	library.AssertFormat()
	library.UseRegexpEngine(c.pattern)
	if err := library.AddResource(schemaLocation, document); err != nil {
		return nil, schemaError(err)
	}
	if err := library.AddResource(negatedLocation, map[string]any{"not": map[string]any{"$ref": schemaLocation}}); err != nil {
		return nil, schemaError(err)
	}
	negated, err := library.Compile(negatedLocation)
	if err != nil {
		return nil, schemaError(err)
	}
	s := &Schema{negated.Not.Ref, negated, map[*jsonschema.Schema]*node{}, newQuick(negated.Not.Ref)}
	if err := s.measure(library); err != nil {
		return nil, err
	}
	c.schemas[text] = s
	return s, nil
}

// outlined reports whether the document is within MaxDepth and maxOutline.
func outlined(v any, depth, pointer int, total *int) bool {
	switch v := v.(type) {
	case bool:
		*total += 512 + pointer
	case map[string]any:
		*total += 512 + pointer
		for name, item := range v {
			if !outlined(item, depth+1, pointer+1+len(name), total) {
				return false
			}
		}
	case []any:
		for _, item := range v {
			if !outlined(item, depth+1, pointer+4, total) {
				return false
			}
		}
	}
	return depth <= MaxDepth && *total <= maxOutline
}

const hugeNumberReason = "a number of more than 400 characters or with an exponent beyond 400"

// hugeNumber finds a number that takes far more memory than its text. The path is innermost first.
func hugeNumber(v any) (path []string, found bool) {
	switch v := v.(type) {
	case json.Number:
		exponent := 0
		var err error
		if i := strings.IndexAny(string(v), "eE"); i >= 0 {
			exponent, err = strconv.Atoi(string(v[i+1:]))
		}
		return nil, err != nil || len(v) > maxNumber || exponent > maxNumber || exponent < -maxNumber
	case []any:
		for i, item := range v {
			if path, found := hugeNumber(item); found {
				return append(path, strconv.Itoa(i)), true
			}
		}
	case map[string]any:
		for name, item := range v {
			if path, found := hugeNumber(item); found {
				return append(path, name), true
			}
		}
	}
	return nil, false
}

// measure makes the nodes of a schema, and refuses a schema that is too expensive for any input.
func (s *Schema) measure(library *jsonschema.Compiler) error {
	reached := s.reach(s.root)
	if slices.ContainsFunc(reached, func(sub *jsonschema.Schema) bool { return len(dynamicRefs(sub)) > 0 }) {
		if err := s.resolve(library, reached); err != nil {
			return err
		}
	}
	for _, n := range s.nodes {
		if n, ok := s.expand(n); !ok {
			return errors.New("a reference that leads back to itself for the same value")
		} else if n > maxExpanded {
			return fmt.Errorf("more than %d subschemas for one value", maxExpanded)
		}
	}
	return nil
}

// reach makes the nodes of subschemas and of everything they lead to, and lists those that had none.
func (s *Schema) reach(rest ...*jsonschema.Schema) (reached []*jsonschema.Schema) {
	for len(rest) > 0 {
		sub := rest[len(rest)-1]
		rest = rest[:len(rest)-1]
		if s.nodes[sub] != nil {
			continue
		}
		sub.Format = boundFormat(sub.Format)
		s.nodes[sub] = newNode(sub)
		reached = append(reached, sub)
		rest = append(append(append(rest, s.nodes[sub].inPlace...), dynamicRefs(sub)...), below(sub)...)
	}
	return reached
}

// expand counts the subschemas that apply to one value. It fails if they form a cycle.
func (s *Schema) expand(n *node) (count int, ok bool) {
	const counting = -1
	if n.expanded != 0 {
		return n.expanded, n.expanded != counting
	}
	n.expanded = counting
	next := slices.Clone(n.dynamic)
	for _, sub := range n.inPlace {
		next = append(next, s.nodes[sub])
	}
	total := 1
	for _, n := range next {
		count, ok := s.expand(n)
		if !ok {
			return 0, false
		}
		total = min(total+count, maxExpanded+1)
	}
	n.expanded = total
	return total, true
}

func newNode(s *jsonschema.Schema) *node {
	n := &node{steps: 32 + 4*len(s.Required) + len(s.Dependencies) + len(s.DependentSchemas)}
	for _, names := range s.DependentRequired {
		n.steps += 1 + 4*len(names)
	}
	if s.Enum != nil {
		n.steps += weight(s.Enum.Values)
	}
	if s.Const != nil {
		n.steps += weight(*s.Const)
	}
	n.inPlace = slices.Concat(s.AllOf, s.AnyOf, s.OneOf, given(s.Ref, s.Not, s.If, s.Then, s.Else), slices.Collect(maps.Values(s.DependentSchemas)))
	for _, d := range s.Dependencies {
		switch d := d.(type) {
		case []string:
			n.steps += 4 * len(d)
		case *jsonschema.Schema:
			n.inPlace = append(n.inPlace, d)
		}
	}
	return n
}

// below lists the subschemas that apply to the parts of a value.
func below(s *jsonschema.Schema) []*jsonschema.Schema {
	list := given(s.PropertyNames, s.UnevaluatedProperties, s.Contains, s.Items2020, s.UnevaluatedItems, one(s.AdditionalProperties), one(s.Items), one(s.AdditionalItems))
	return slices.Concat(list, s.PrefixItems, several(s.Items), slices.Collect(maps.Values(s.Properties)), slices.Collect(maps.Values(s.PatternProperties)))
}

func given(list ...*jsonschema.Schema) []*jsonschema.Schema {
	return slices.DeleteFunc(list, func(s *jsonschema.Schema) bool { return s == nil })
}

// one and several read fields that hold a schema or something else.
func one(v any) *jsonschema.Schema {
	s, _ := v.(*jsonschema.Schema)
	return s
}

func several(v any) []*jsonschema.Schema {
	list, _ := v.([]*jsonschema.Schema)
	return list
}

// weight is how many steps a comparison with v takes.
func weight(v any) int {
	n := 1
	switch v := v.(type) {
	case string:
		n += len(v) / 64
	case json.Number:
		n += 16 + len(v)/4
	case []any:
		for _, item := range v {
			n += weight(item)
		}
	case map[string]any:
		for name, item := range v {
			n += 1 + len(name)/64 + weight(item)
		}
	}
	return n
}
