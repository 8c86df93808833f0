package host

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"golang.org/x/text/language"
	"golang.org/x/text/message"

	"github.com/stilehost/stile/abi"
)

const (
	maxTools       = 1000
	maxDescription = 16 * kib
	maxSchema      = 256 * kib
)

var toolName = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_.-]{0,63}$`)

// definitionSet is a component's tools with their schemas compiled.
type definitionSet struct {
	definitions []abi.Definition
	schemas     map[string]*jsonschema.Schema
}

// Tools asks the component, in an instance without any authority, what tools it has. The answer is the guest's word: it
// is checked for form, and descriptions are made printable. It is asked once; later calls return the same.
func (c *Component) Tools(ctx context.Context) ([]abi.Definition, error) {
	set, err := c.definitions(ctx, nil)
	if err != nil {
		return nil, err
	}
	return slices.Clone(set.definitions), nil
}

// CheckTools compares what the component says of its tools now with what a person approved. A difference is a
// *DefinitionError that names the first tool that differs.
func (c *Component) CheckTools(ctx context.Context, approved []abi.Definition) error {
	now, err := c.describeTools(ctx)
	if err != nil {
		return err
	}
	return compare(approved, now.definitions)
}

func compare(approved, now []abi.Definition) error {
	key := func(list []abi.Definition) map[string]string {
		m := map[string]string{}
		for _, d := range list {
			text, err := json.Marshal(d)
			if err != nil {
				return nil
			}
			m[d.Name] = string(text)
		}
		return m
	}
	was, is := key(approved), key(now)
	for _, name := range slices.Sorted(maps.Keys(was)) {
		if text, ok := is[name]; !ok {
			return &DefinitionError{name, "was approved and is gone"}
		} else if text != was[name] {
			return &DefinitionError{name, "is not described as it was approved"}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(is)) {
		if _, ok := was[name]; !ok {
			return &DefinitionError{name, "was not approved"}
		}
	}
	return nil
}

// definitions returns what a call goes by: the approved definitions, or else the component's own.
func (c *Component) definitions(ctx context.Context, approved []abi.Definition) (*definitionSet, error) {
	if approved != nil {
		return newDefinitionSet(approved)
	}
	c.mu.Lock()
	set := c.own
	c.mu.Unlock()
	if set != nil {
		return set, nil
	}
	set, err := c.describeTools(ctx)
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

func (c *Component) describeTools(ctx context.Context) (*definitionSet, error) {
	value, _, err := c.run(ctx, Request{}, c.describe, func(*call) ([]abi.Value, error) { return nil, nil })
	if err != nil {
		return nil, fmt.Errorf("describe: %w", err)
	}
	var definitions []abi.Definition
	if err := abi.Decode(c.describe.result, value, &definitions, nil); err != nil {
		return nil, fmt.Errorf("decode definitions: %w", err)
	}
	return newDefinitionSet(definitions)
}

func newDefinitionSet(definitions []abi.Definition) (*definitionSet, error) {
	if len(definitions) > maxTools {
		return nil, &DefinitionError{"", fmt.Sprintf("%d tools, more than %d", len(definitions), maxTools)}
	}
	set := &definitionSet{definitions: slices.Clone(definitions), schemas: map[string]*jsonschema.Schema{}}
	for i, d := range set.definitions {
		name := printable(d.Name, 64)
		refuse := func(reason string) error { return &DefinitionError{name, reason} }
		if !toolName.MatchString(d.Name) {
			return nil, refuse("its name must be letters, digits, '_', '.' or '-', at most 64, beginning with a letter")
		}
		if set.schemas[d.Name] != nil {
			return nil, refuse("there are two of that name")
		}
		if len(d.Description) > maxDescription {
			return nil, refuse("its description has more than " + size(maxDescription))
		}
		set.definitions[i].Description = abi.Printable(d.Description)
		schema, err := compileSchema(d.InputSchema)
		if err != nil {
			return nil, refuse("input schema: " + printable(err.Error(), 4*kib))
		}
		set.schemas[d.Name] = schema
		if d.OutputSchema != nil {
			if _, err := compileSchema(*d.OutputSchema); err != nil {
				return nil, refuse("output schema: " + printable(err.Error(), 4*kib))
			}
		}
	}
	return set, nil
}

// noLoader refuses every $ref out of the schema.
type noLoader struct{}

func (noLoader) Load(url string) (any, error) { return nil, fmt.Errorf("%q is not fetched", url) }

func compileSchema(text string) (*jsonschema.Schema, error) {
	if len(text) > maxSchema {
		return nil, fmt.Errorf("more than %s", size(maxSchema))
	}
	document, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
	if err != nil {
		return nil, fmt.Errorf("not JSON: %w", err)
	}
	const location = "schema:///input"
	compiler := jsonschema.NewCompiler()
	compiler.DefaultDraft(jsonschema.Draft2020)
	compiler.UseLoader(noLoader{})
	if err := compiler.AddResource(location, document); err != nil {
		return nil, err
	}
	return compiler.Compile(location)
}

func (s *definitionSet) names() []string {
	names := make([]string, len(s.definitions))
	for i, d := range s.definitions {
		names[i] = d.Name
	}
	return names
}

// validate checks an input against a tool's schema, before the guest sees it.
func (s *definitionSet) validate(tool string, input []byte) error {
	schema := s.schemas[tool]
	if schema == nil {
		return &UnknownToolError{printable(tool, 64), s.names()}
	}
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(input))
	if err != nil {
		return &InputError{[]abi.Problem{{Message: "not JSON: " + err.Error()}}}
	}
	err = schema.Validate(value)
	var invalid *jsonschema.ValidationError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &invalid):
		return &InputError{problems(nil, invalid)}
	default:
		return fmt.Errorf("validate input: %w", err)
	}
}

// problems lists the leaves of a validation error: the places where something can be changed.
func problems(list []abi.Problem, e *jsonschema.ValidationError) []abi.Problem {
	if len(list) >= 20 {
		return list
	}
	if len(e.Causes) == 0 {
		var path strings.Builder
		for _, segment := range e.InstanceLocation {
			path.WriteString("/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(segment))
		}
		text := e.ErrorKind.LocalizedString(message.NewPrinter(language.English))
		return append(list, abi.Problem{Path: printable(path.String(), kib), Message: printable(text, kib)})
	}
	for _, cause := range e.Causes {
		list = problems(list, cause)
	}
	return list
}
