package schema

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
	"golang.org/x/text/language"
	"golang.org/x/text/message"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/internal/jsonform"
	"github.com/stilehost/stile/internal/printable"
	"github.com/stilehost/stile/internal/turns"
)

// meter follows the path of a validation without validating, and counts.
type meter struct {
	*Schema
	left     int                  // steps
	failures int                  // bytes of errors, if everything visited is wrong
	scope    []*jsonschema.Schema // the path to the current subschema, outermost first
}

// visit counts the check of a value against a subschema, and reports whether steps are left. It visits everything that validation
// may look at, because validation finds all problems and so seldom stops early.
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

// Room holds what all validations of a host share: bytes for decoded values, steps, and processors. A validation that waits for steps
// already has its value, and one that has a processor waits for nothing. Users take turns.
type Room struct {
	Decoded, Steps, Processors *turns.Places
	user                       string
	payer                      Payer // nil if nobody pays besides the call of the context
}

// Payer pays for the validations of a call that no other call started.
type Payer interface {
	// Pay charges what a validation is about to take, and fails if not so much is left.
	Pay(took time.Duration) error
}

func (r Room) pay(took time.Duration) error {
	if r.payer == nil {
		return nil
	}
	return r.payer.Pay(took)
}

// NewRoom returns the room of a host.
func NewRoom() Room {
	return Room{Decoded: turns.New(MaxDecoded), Steps: turns.New(MaxValidating), Processors: turns.New(runtime.GOMAXPROCS(0))}
}

// compute has a turn on a processor for what takes long. Otherwise all others, guests included, would wait for hundreds of these at once.
func (r Room) compute(ctx context.Context, do func() error) error {
	if err := r.Processors.TakeFor(ctx, r.user, 1); err != nil {
		return err
	}
	defer r.Processors.GiveBack(1)
	return do()
}

// For returns the same room, for validations of a user. payer may be nil.
func (r Room) For(user string, payer Payer) Room {
	r.user, r.payer = user, payer
	return r
}

// InvalidError reports JSON that does not fit a schema.
type InvalidError struct{ Problems []abi.Problem }

func (e *InvalidError) Error() string { return List("", e.Problems) }

// Validate checks JSON, with an *InvalidError for what does not fit the schema. It waits for room until ctx ends.
func (s *Schema) Validate(ctx context.Context, room Room, input []byte) (err error) {
	// The guest that started this call pays for its validation. Otherwise it could keep the host busy for free.
	if err := abi.Work(ctx, time.Duration(len(input))*byteTime); err != nil {
		return err
	}
	if s.quick.accepts(input) {
		return nil
	}
	return s.validate(ctx, room, input)
}

// validate is Validate after the input was paid for.
func (s *Schema) validate(ctx context.Context, room Room, input []byte) error {
	if takes := min(jsonform.DecodedSize(input), MaxDecoded); takes > freeDecoded {
		if err := room.Decoded.TakeFor(ctx, room.user, takes); err != nil {
			return err
		}
		defer room.Decoded.GiveBack(takes)
	}
	if err := room.pay(time.Duration(len(input)) * byteTime); err != nil {
		return err
	}
	var value any
	m := meter{Schema: s, left: maxSteps}
	if err := room.compute(ctx, func() (err error) {
		value, err = m.count(input)
		return err
	}); err != nil {
		return err
	}
	steps := int64(maxSteps - m.left)
	if err := abi.Work(ctx, time.Duration(steps)*stepTime); err != nil {
		return err
	}
	if err := room.pay(time.Duration(steps) * stepTime); err != nil {
		return err
	}
	many := m.failures > maxFailures
	weight := steps
	if !many {
		weight = max(steps, int64(m.failures))
	}
	if err := room.Steps.TakeFor(ctx, room.user, weight); err != nil {
		return err
	}
	defer room.Steps.GiveBack(weight)
	return room.compute(ctx, func() error { return s.compare(value, many) })
}

// count decodes a value, and counts what its validation takes.
func (m *meter) count(input []byte) (any, error) {
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(input))
	if err != nil {
		return nil, &InvalidError{[]abi.Problem{{Message: printable.Short("not JSON: "+err.Error(), 1<<10)}}}
	}
	if path, huge := hugeNumber(value); huge {
		return nil, &InvalidError{[]abi.Problem{{Path: pointer(path), Message: hugeNumberReason}}}
	}
	if !m.visit(m.root, value) {
		return nil, &InvalidError{[]abi.Problem{{Message: "checking it against its schema takes too many steps: use a smaller value"}}}
	}
	return value, nil
}

// compare validates a value. many is set if its problems would be too many.
func (s *Schema) compare(value any, many bool) (err error) {
	defer func() {
		if failed := recover(); failed != nil {
			err = fmt.Errorf("validate: %v", failed)
		}
	}()
	if many {
		if s.negated.Validate(value) == nil { // it stops at the first error
			return &InvalidError{[]abi.Problem{{Message: "does not match its schema, and is too large to say where: try a smaller value"}}}
		}
		return nil
	}
	err = s.root.Validate(value)
	if wrong, ok := errors.AsType[*jsonschema.ValidationError](err); ok {
		return &InvalidError{problems(nil, wrong)}
	}
	return err
}

// problems lists the leaves of a validation error: the places where something can be changed.
func problems(list []abi.Problem, e *jsonschema.ValidationError) []abi.Problem {
	if len(list) >= abi.MaxProblems {
		return list
	}
	if len(e.Causes) == 0 {
		text := e.ErrorKind.LocalizedString(message.NewPrinter(language.English))
		if format, ok := e.ErrorKind.(*kind.Format); ok {
			text = fmt.Sprintf("%s does not have the format %q: %v", jsonText(format.Got), format.Want, format.Err)
		}
		path := slices.Clone(e.InstanceLocation)
		slices.Reverse(path)
		return append(list, abi.Problem{Path: pointer(path), Message: printable.Short(text, 1<<10)})
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
	return printable.Short(b.String(), 1<<10)
}
