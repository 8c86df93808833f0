package host

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
	"golang.org/x/sync/semaphore"
	"golang.org/x/text/language"
	"golang.org/x/text/message"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/internal/printable"
)

// Schemas come from the guest and inputs from the caller, and the host compares the two before the guest's limits apply. So the cost
// is counted before anything is compiled or checked.
const (
	maxSchema  = 256 * kib // bytes of text
	maxSchemas = mib       // bytes of text of all of a component's schemas
	// maxOutline bounds what the compiler of schemas keeps. Its time grows with the square of the number of subschemas, and its
	// memory with the length of their pointers.
	maxOutline = 2 * mib
	// maxDepth is how deep a schema may nest.
	maxDepth = 64
	// maxExpanded is how many subschemas may apply to one value, with every reference followed.
	maxExpanded = 10_000
	// maxSteps bounds the work of one validation. A step takes about 50 nanoseconds and 10 bytes.
	maxSteps = 32 << 20
	// maxValidating bounds the steps of validations at one time, and so their memory.
	maxValidating = 2 * maxSteps
	// maxDecoded bounds the bytes of all values that are being validated, as decodedSize counts them. Values below freeDecoded do
	// not count, so they never wait for larger ones.
	maxDecoded, freeDecoded = 64 * mib, mib
	// maxFailures bounds the bytes of errors that a validation may make, because it finds all problems, each with its place. If
	// there could be more, a first pass asks only for yes or no.
	maxFailures = 16 * mib
	// maxNumber bounds the characters and the exponent of a number, because validation makes fractions of large integers of them.
	maxNumber = 400
)

// schema is a compiled schema that is known to be acyclic for each value.
type schema struct {
	root    *jsonschema.Schema
	negated *jsonschema.Schema // admits what root refuses
	nodes   map[*jsonschema.Schema]*node
}

// node is the cost of a subschema.
type node struct {
	steps    int                  // for each value
	inPlace  []*jsonschema.Schema // subschemas that apply to the same value
	resource *resource            // the resource with the subschema; nil if no schema has a dynamic reference
	dynamic  []*node              // may apply to the same value through a dynamic reference
	expanded int                  // counts itself, inPlace and dynamic, recursively; 0 until counted
}

// compiler compiles the schemas of one component.
type compiler struct {
	// loader gets the documents that a $ref out of the schema names.
	loader                           jsonschema.URLLoader
	bytes, patternText, instructions int
	// by text:
	schemas  map[string]*schema
	patterns map[string]*pattern
}

// noLoader refuses every $ref out of the schema.
type noLoader struct{}

func (noLoader) Load(url string) (any, error) { return nil, fmt.Errorf("%q is not fetched", url) }

func (c *compiler) compile(text string) (*schema, error) {
	if s := c.schemas[text]; s != nil {
		return s, nil
	}
	c.bytes += len(text)
	switch {
	case len(text) > maxSchema:
		return nil, errors.New("more than " + size(maxSchema))
	case c.bytes > maxSchemas:
		return nil, fmt.Errorf("the schemas of all tools have more than %s", size(maxSchemas))
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
	s := &schema{negated.Not.Ref, negated, map[*jsonschema.Schema]*node{}}
	if err := s.measure(library); err != nil {
		return nil, err
	}
	c.schemas[text] = s
	return s, nil
}

// outlined reports whether the document is within maxDepth and maxOutline.
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
	return depth <= maxDepth && *total <= maxOutline
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
func (s *schema) measure(library *jsonschema.Compiler) error {
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
func (s *schema) reach(rest ...*jsonschema.Schema) (reached []*jsonschema.Schema) {
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
func (s *schema) expand(n *node) (count int, ok bool) {
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

// meter follows the path of a validation without validating, and counts.
type meter struct {
	*schema
	left     int                  // steps
	failures int                  // bytes of errors, if everything visited is wrong
	scope    []*jsonschema.Schema // the path to the current subschema, outermost first
}

// visit counts the check of a value against a subschema, and reports whether steps are left. It visits everything that may be looked
// at, because validation finds all problems and so seldom stops early.
func (m *meter) visit(s *jsonschema.Schema, v any) bool {
	n, depth := m.nodes[s], len(m.scope)
	m.scope = append(m.scope, s)
	defer func() { m.scope = m.scope[:depth] }()
	m.left -= n.steps + depth/4
	m.failures += 512 + 32*(depth+len(s.Required))
	left := m.left >= 0
	if s.Bool != nil {
		return left
	}
	switch v := v.(type) {
	case string:
		m.left -= len(v)/16 + m.match(s.Pattern, v)
		if s.Format != nil {
			m.left -= min(len(v), maxFormatted) / 2
		}
	case json.Number:
		m.left -= 16 + len(v)
	case []any:
		m.left -= 2 * len(v)
		if s.UniqueItems && len(v) <= 20 {
			m.left -= len(v) * weight(v)
		} else if s.UniqueItems {
			m.left -= len(v) * weight(v) / 16 // by hashes, which a caller can make collide
		}
		left = m.left >= 0 && m.visitItems(s, v)
	case map[string]any:
		m.left -= 4 * len(v)
		left = m.left >= 0 && m.visitProperties(s, v)
	}
	for _, same := range slices.Concat(n.inPlace, m.dynamic(s)) {
		left = left && m.visit(same, v)
	}
	return left && m.left >= 0
}

func (m *meter) visitItems(s *jsonschema.Schema, items []any) bool {
	every := given(s.Contains, s.UnevaluatedItems, one(s.Items))
	first, rest := s.PrefixItems, s.Items2020
	if list := several(s.Items); list != nil {
		first, rest = list, one(s.AdditionalItems)
	}
	for i, item := range items {
		for _, sub := range every {
			if !m.visit(sub, item) {
				return false
			}
		}
		sub := rest
		if i < len(first) {
			sub = first[i]
		}
		if sub != nil && !m.visit(sub, item) {
			return false
		}
	}
	return true
}

func (m *meter) visitProperties(s *jsonschema.Schema, properties map[string]any) bool {
	every := given(s.UnevaluatedProperties)
	for name, value := range properties {
		subs := every
		if sub := s.Properties[name]; sub != nil {
			subs = append(subs, sub)
		} else if sub := one(s.AdditionalProperties); sub != nil {
			subs = append(subs, sub)
		}
		for p, sub := range s.PatternProperties {
			if m.left -= m.match(p, name); m.left < 0 {
				return false
			}
			subs = append(subs, sub)
		}
		for _, sub := range subs {
			if !m.visit(sub, value) {
				return false
			}
		}
		if s.PropertyNames != nil && !m.visit(s.PropertyNames, name) {
			return false
		}
	}
	return true
}

// match is how many steps matching a pattern takes. The pattern may be nil.
func (*meter) match(p jsonschema.Regexp, s string) int {
	if p == nil {
		return 0
	}
	return 1 + p.(*pattern).instructions*len(s)/8
}

// The time of a step of a validation, and of reading a byte of JSON.
const stepTime, byteTime = 50 * time.Nanosecond, 100 * time.Nanosecond

// validating counts what all validations of a host take at one time: the bytes of the decoded values, and steps. A validation that
// waits for steps already has its value.
type validating struct{ decoded, steps *semaphore.Weighted }

func newValidating() validating {
	return validating{semaphore.NewWeighted(maxDecoded), semaphore.NewWeighted(maxValidating)}
}

// decodedSize is the most bytes that JSON takes when decoded, including garbage. A map of one entry, which is seven bytes of JSON,
// takes 400.
func decodedSize(text []byte) int64 {
	const perByte, perObject, perValue = 14, 280, 100
	quoted, n := false, int64(perByte*len(text))
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '"':
			quoted = !quoted
		case quoted && c == '\\':
			i++
		case quoted:
		case c == '{':
			n += perObject
		case c == '[', c == ',', c == ':': // a value follows
			n += perValue
		}
	}
	return n
}

// validate checks an input, or a result.
func (s *schema) validate(ctx context.Context, slots validating, input []byte) (err error) {
	// The guest that started this call pays for its validation. Otherwise it could keep the host busy for free.
	if err := abi.Work(ctx, time.Duration(len(input))*byteTime); err != nil {
		return err
	}
	if takes := min(decodedSize(input), maxDecoded); takes > freeDecoded {
		if err := slots.decoded.Acquire(ctx, takes); err != nil {
			return err
		}
		defer slots.decoded.Release(takes)
	}
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(input))
	if err != nil {
		return &InputError{[]abi.Problem{{Message: printable.Short("not JSON: "+err.Error(), kib)}}}
	}
	if path, huge := hugeNumber(value); huge {
		return &InputError{[]abi.Problem{{Path: pointer(path), Message: hugeNumberReason}}}
	}
	m := meter{schema: s, left: maxSteps}
	if !m.visit(s.root, value) {
		return &InputError{[]abi.Problem{{Message: "too large for its schema: checking it takes too many steps"}}}
	}
	steps := int64(maxSteps - m.left)
	if err := abi.Work(ctx, time.Duration(steps)*stepTime); err != nil {
		return err
	}
	many := m.failures > maxFailures
	weight := steps
	if !many {
		weight = max(steps, int64(m.failures))
	}
	if err := slots.steps.Acquire(ctx, weight); err != nil {
		return err
	}
	defer slots.steps.Release(weight)
	defer func() {
		if failed := recover(); failed != nil {
			err = fmt.Errorf("validate: %v", failed)
		}
	}()
	if many {
		if s.negated.Validate(value) == nil { // it stops at the first error
			return &InputError{[]abi.Problem{{Message: "does not fit its schema; it is too large to say where: try a smaller one"}}}
		}
		return nil
	}
	err = s.root.Validate(value)
	if invalid, ok := errors.AsType[*jsonschema.ValidationError](err); ok {
		return &InputError{problems(nil, invalid)}
	}
	return err
}

// problems lists the leaves of a validation error: the places where something can be changed.
func problems(list []abi.Problem, e *jsonschema.ValidationError) []abi.Problem {
	if len(list) >= maxProblems {
		return list
	}
	if len(e.Causes) == 0 {
		text := e.ErrorKind.LocalizedString(message.NewPrinter(language.English))
		if format, ok := e.ErrorKind.(*kind.Format); ok {
			text = fmt.Sprintf("%s does not have the format %q: %v", jsonText(format.Got), format.Want, format.Err)
		}
		path := slices.Clone(e.InstanceLocation)
		slices.Reverse(path)
		return append(list, abi.Problem{Path: pointer(path), Message: printable.Short(text, kib)})
	}
	for _, cause := range e.Causes {
		list = problems(list, cause)
	}
	return list
}

// pointer makes a JSON pointer of a path that is innermost first.
func pointer(path []string) string {
	var b strings.Builder
	for _, segment := range slices.Backward(path) {
		b.WriteString("/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(segment))
	}
	return printable.Short(b.String(), kib)
}
