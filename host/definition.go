package host

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/host/internal/schema"
	"github.com/stilehost/stile/internal/lazyregexp"
	"github.com/stilehost/stile/internal/printable"
)

// The bounds of a component's schemas: the bytes of all of them, and how deep one may nest.
const (
	MaxSchemas     = schema.MaxSchemas
	MaxSchemaDepth = schema.MaxDepth
)

const (
	maxTools       = 1000
	maxDescription = 16 * kib
	// maxApproved is how many approved sets a component keeps compiled.
	maxApproved = 16
)

var toolName = lazyregexp.New(`^[A-Za-z][A-Za-z0-9_.-]{0,63}$`)

// definitionSet is a component's tools with their schemas compiled.
type definitionSet struct {
	definitions []abi.Definition
	schemas     map[string]*schema.Schema
	promises    map[string]*schema.Schema // of the results, of tools that promise something
}

// Tools asks the component for its tools, in an instance without authority. The guest could claim anything: Tools checks only the
// form of its answer and makes descriptions printable. The component is asked once; later calls return the same answer.
func (c *Component) Tools(ctx context.Context) ([]abi.Definition, error) {
	ctx, _, stop := c.host.within(ctx, c.host.options.Limits)
	defer stop()
	set, err := c.definitions(ctx, nil, Limits{})
	if err != nil {
		return nil, err
	}
	return slices.Clone(set.definitions), nil
}

// CheckTools compares the component's current description of its tools with the approved one. A difference is a
// *DefinitionError that names the first tool that differs.
func (c *Component) CheckTools(ctx context.Context, approved []abi.Definition) error {
	ctx, _, stop := c.host.within(ctx, c.host.options.Limits)
	defer stop()
	now, err := c.describeTools(ctx, Limits{})
	if err != nil {
		return err
	}
	return compare(approved, now.definitions)
}

func compare(approved, now []abi.Definition) error {
	byName := func(list []abi.Definition) map[string]abi.Definition {
		m := map[string]abi.Definition{}
		for _, d := range list {
			m[d.Name] = d
		}
		return m
	}
	was, is := byName(approved), byName(now)
	for _, name := range slices.Sorted(maps.Keys(was)) {
		if d, ok := is[name]; !ok {
			return &DefinitionError{Tool: name, Reason: "was approved, but the component no longer has it"}
		} else if !reflect.DeepEqual(d, was[name]) {
			return &DefinitionError{Tool: name, Reason: "differs from its approved description"}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(is)) {
		if _, ok := was[name]; !ok {
			return &DefinitionError{Tool: name, Reason: "was not approved"}
		}
	}
	return nil
}

// definitions returns the definitions for a call: the approved ones, or else the component's own. If the component has not been
// asked yet, it is asked within limits.
func (c *Component) definitions(ctx context.Context, approved []abi.Definition, limits Limits) (*definitionSet, error) {
	if approved != nil {
		return c.approvedSet(approved)
	}
	c.mu.Lock()
	set := c.own
	c.mu.Unlock()
	if set != nil {
		return set, nil
	}
	set, err := c.describeTools(ctx, limits)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.own == nil {
		c.own = set
	}
	return c.own, nil
}

// approved holds the definitions that a person approved, with their schemas compiled.
type approved struct {
	definitions []abi.Definition
	set         *definitionSet
}

// approvedSet compiles approved definitions once. A call compares its definitions with the kept ones. That is almost free if the
// strings share memory, as they do from call to call.
func (c *Component) approvedSet(definitions []abi.Definition) (*definitionSet, error) {
	c.mu.Lock()
	kept := c.approved
	c.mu.Unlock()
	for _, a := range kept {
		if slices.EqualFunc(a.definitions, definitions, sameDefinition) {
			return a.set, nil
		}
	}
	set, err := newDefinitionSet(definitions)
	if err != nil {
		return nil, err
	}
	a := approved{slices.Clone(definitions), set}
	for i, d := range a.definitions {
		if d.OutputSchema != nil {
			a.definitions[i].OutputSchema = new(*d.OutputSchema) // the caller can change theirs
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.approved) >= maxApproved {
		c.approved = nil
	}
	c.approved = append(slices.Clip(c.approved), a) // others may be reading it
	return set, nil
}

func sameDefinition(a, b abi.Definition) bool {
	outputs := a.OutputSchema == b.OutputSchema || a.OutputSchema != nil && b.OutputSchema != nil && *a.OutputSchema == *b.OutputSchema
	a.OutputSchema, b.OutputSchema = nil, nil
	return outputs && a == b
}

func (c *Component) describeTools(ctx context.Context, limits Limits) (*definitionSet, error) {
	request := &Request{Limits: limits}
	r := running{
		component: c, ctx: ctx, request: request, limits: c.limits(request, frameOf(ctx)), export: c.describe,
		prepare: func(*call) ([]abi.Value, error) { return nil, nil }, check: func(abi.Value) error { return nil },
	}
	r.enqueue()
	if r.run(); r.err != nil {
		return nil, fmt.Errorf("describe: %w", r.err)
	}
	return c.readDefinitions(r.result)
}

// readDefinitions reads the result of `describe`.
func (c *Component) readDefinitions(value abi.Value) (*definitionSet, error) {
	var definitions []abi.Definition
	if err := abi.Decode(c.describe.result, value, &definitions, nil); err != nil {
		return nil, fmt.Errorf("decode definitions: %w", err)
	}
	return newDefinitionSet(definitions)
}

func newDefinitionSet(definitions []abi.Definition) (set *definitionSet, err error) {
	defer func() {
		if failed := recover(); failed != nil {
			set, err = nil, fmt.Errorf("compile schemas: %v", failed)
		}
	}()
	if len(definitions) > maxTools {
		return nil, &DefinitionError{Reason: fmt.Sprintf("%d tools, more than %d", len(definitions), maxTools)}
	}
	set = &definitionSet{definitions: slices.Clone(definitions), schemas: map[string]*schema.Schema{}, promises: map[string]*schema.Schema{}}
	compiler := schema.NewCompiler()
	var problems []*DefinitionError
	var usable []abi.Definition
	for i := range set.definitions {
		before := len(problems)
		for _, reason := range set.add(compiler, i) {
			problems = append(problems, &DefinitionError{Tool: printable.Short(definitions[i].Name, 64), Reason: reason})
		}
		if len(problems) >= abi.MaxProblems {
			break
		}
		if len(problems) == before {
			usable = append(usable, set.definitions[i])
		}
	}
	if len(problems) > 0 {
		problems[0].More, problems[0].Usable = problems[1:min(len(problems), abi.MaxProblems)], usable
		return nil, problems[0]
	}
	return set, nil
}

// add compiles the schemas of definition i, and returns what is wrong with it.
func (s *definitionSet) add(compiler *schema.Compiler, i int) (reasons []string) {
	d := s.definitions[i]
	refuse := func(reason string) { reasons = append(reasons, reason) }
	switch {
	case !toolName.MatchString(d.Name):
		return []string{"its name must be letters, digits, '_', '.' or '-', at most 64, beginning with a letter"}
	case s.schemas[d.Name] != nil:
		return []string{"two tools have this name"}
	case len(d.Description) > maxDescription:
		return []string{"its description has more than " + printable.Size(maxDescription)}
	}
	s.definitions[i].Description = printable.Text(d.Description)
	var err error
	if s.schemas[d.Name], err = compiler.Compile(d.InputSchema); err != nil {
		refuse("input schema: " + printable.Short(err.Error(), 4*kib))
	}
	if d.OutputSchema != nil {
		if s.promises[d.Name], err = compiler.Compile(*d.OutputSchema); err != nil {
			refuse("output schema: " + printable.Short(err.Error(), 4*kib))
		}
	}
	return reasons
}

func (s *definitionSet) names() []string {
	names := make([]string, len(s.definitions))
	for i, d := range s.definitions {
		names[i] = d.Name
	}
	return names
}

// validate checks an input against a tool's schema, before the guest sees it.
func (s *definitionSet) validate(ctx context.Context, room schema.Room, tool string, input []byte) error {
	expects := s.schemas[tool]
	if expects == nil {
		return &UnknownToolError{printable.Short(tool, 64), s.names()}
	}
	err := expects.Validate(ctx, room, input)
	if invalid, ok := errors.AsType[*schema.InvalidError](err); ok {
		return &InputError{invalid.Problems}
	}
	return err
}

// keeps checks a result against the tool's output schema. If the result does not match, the tool has failed.
func (s *definitionSet) keeps(ctx context.Context, room schema.Room, tool string, output []byte) error {
	promise := s.promises[tool]
	if promise == nil {
		return nil
	}
	err := promise.Validate(ctx, room, output)
	invalid, ok := errors.AsType[*schema.InvalidError](err)
	if !ok {
		return err
	}
	text := "the tool's result does not match its output schema: " + schema.List("result", invalid.Problems) + "; change what the tool returns, or its schema"
	return &GuestError{abi.Failure{Name: "InvalidOutput", Message: printable.Short(text, 16*kib)}}
}
