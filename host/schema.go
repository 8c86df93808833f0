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

// Schemas are the guest's and inputs the caller's, and the host holds one against the other before the guest's limits
// apply. So the cost is counted before anything is compiled or checked.
const (
	maxSchema  = 256 * kib // of text
	maxSchemas = mib       // of text of all of a component's
	// maxOutline bounds what the compiler of schemas keeps: its time grows with the square of the number of subschemas, its
	// memory with the length of their pointers.
	maxOutline = 2 * mib
	// maxDepth is how deep a schema nests.
	maxDepth = 64
	// maxExpanded is how many subschemas hold for one value, with every reference followed.
	maxExpanded = 10_000
	// maxSteps bounds the work of one validation. A step takes about 50 nanoseconds and 10 bytes.
	maxSteps = 32 << 20
	// maxValidating bounds the steps of validations at one time, and so their memory.
	maxValidating = 2 * maxSteps
	// maxDecoded bounds the bytes of all values that are being validated, as decodedSize counts them. What has less than freeDecoded
	// does not count, so that it never waits for what has more.
	maxDecoded, freeDecoded = 64 * mib, mib
	// maxFailures is the most bytes of errors that a validation may make: it finds all that is wrong, each with its place. Where there
	// could be more, it is first asked for yes or no.
	maxFailures = 16 * mib
	// maxNumber is the most characters and the largest exponent of a number: validation makes fractions of whole numbers of them.
	maxNumber = 400
)

// schema is a compiled schema that is known to be acyclic for each value.
type schema struct {
	root    *jsonschema.Schema
	negated *jsonschema.Schema // admits what root refuses
	nodes   map[*jsonschema.Schema]*node
}

// node is what a subschema costs.
type node struct {
	steps    int                  // for every value
	inPlace  []*jsonschema.Schema // hold for the same value
	resource *resource            // has the subschema; nil where no schema has a dynamic reference
	dynamic  []*node              // may hold for the same value by a dynamic reference
	expanded int                  // itself, inPlace and dynamic with all of theirs; 0 until it is counted
}

// compiler compiles the schemas of one component.
type compiler struct {
	// loader gets the documents that a $ref out of the schema names.
	loader                           jsonschema.URLLoader
	bytes, patternText, instructions int
	// By text:
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

// measure makes the nodes of a schema, and refuses what no input could be held against.
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

// reach makes the nodes of subschemas and of all that they lead to, and lists those that had none.
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

// expand counts the subschemas that hold for one value. It fails where they go round in a circle.
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

// below lists the subschemas that hold for the parts of a value.
func below(s *jsonschema.Schema) []*jsonschema.Schema {
	list := given(s.PropertyNames, s.UnevaluatedProperties, s.Contains, s.Items2020, s.UnevaluatedItems, one(s.AdditionalProperties), one(s.Items), one(s.AdditionalItems))
	return slices.Concat(list, s.PrefixItems, several(s.Items), slices.Collect(maps.Values(s.Properties)), slices.Collect(maps.Values(s.PatternProperties)))
}

func given(list ...*jsonschema.Schema) []*jsonschema.Schema {
	return slices.DeleteFunc(list, func(s *jsonschema.Schema) bool { return s == nil })
}

// one and several read the fields that hold a schema or something else.
func one(v any) *jsonschema.Schema {
	s, _ := v.(*jsonschema.Schema)
	return s
}

func several(v any) []*jsonschema.Schema {
	list, _ := v.([]*jsonschema.Schema)
	return list
}

// weight is how many steps it takes to compare with v.
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

// meter goes the way of a validation without doing it, and counts.
type meter struct {
	*schema
	left     int                  // steps
	failures int                  // bytes of errors, if everything that is visited is wrong
	scope    []*jsonschema.Schema // that led to where it is, outermost first
}

// visit counts a subschema held against a value, and reports whether there are steps left. Everything that may be looked
// at is: validation finds all problems, so it seldom stops early.
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

// match is how many steps it takes to match a pattern, which may be nil.
func (*meter) match(p jsonschema.Regexp, s string) int {
	if p == nil {
		return 0
	}
	return 1 + p.(*pattern).instructions*len(s)/8
}

// What a step of a validation takes, and a byte of JSON that is read.
const stepTime, byteTime = 50 * time.Nanosecond, 100 * time.Nanosecond

// charge takes the time of a validation from the call whose guest started the one that it is for. That guest could have the host
// do nothing else.
func charge(ctx context.Context, takes time.Duration) error {
	if f := frameOf(ctx); f != nil {
		return f.work(takes)
	}
	return nil
}

// validating counts what all validations of a host take at one time: the bytes of the decoded values, and steps. A validation that waits
// for steps has its value already.
type validating struct{ decoded, steps *semaphore.Weighted }

func newValidating() validating {
	return validating{semaphore.NewWeighted(maxDecoded), semaphore.NewWeighted(maxValidating)}
}

// decodedSize is the most bytes that JSON takes when it is decoded, garbage included: a map of one entry, which is seven bytes of JSON,
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
		case c == '[', c == ',', c == ':': // a value comes next
			n += perValue
		}
	}
	return n
}

// validate checks an input, or a result.
func (s *schema) validate(ctx context.Context, slots validating, input []byte) (err error) {
	if err := charge(ctx, time.Duration(len(input))*byteTime); err != nil {
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
		return &InputError{[]abi.Problem{{Message: "too large for its schema: to check it takes too many steps"}}}
	}
	steps := int64(maxSteps - m.left)
	if err := charge(ctx, time.Duration(steps)*stepTime); err != nil {
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
		if s.negated.Validate(value) == nil { // ends at the first error
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

// pointer makes a JSON pointer of a path, innermost first.
func pointer(path []string) string {
	var b strings.Builder
	for _, segment := range slices.Backward(path) {
		b.WriteString("/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(segment))
	}
	return printable.Short(b.String(), kib)
}
