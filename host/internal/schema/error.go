package schema

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"regexp/syntax"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
	"golang.org/x/text/language"
	"golang.org/x/text/message"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/internal/printable"
)

// schemaLocation is the address that the compiler of schemas gives a schema. Its author never wrote it.
const schemaLocation = "schema:///input"

// negatedLocation is the address of a schema that admits exactly the values that the schema at schemaLocation refuses.
const negatedLocation = "schema:///negated"

// schemaError tells the author what the compiler found wrong with a schema: where, what, and what to write instead.
func schemaError(err error) error {
	var (
		wrong   *jsonschema.SchemaValidationError
		pointer *jsonschema.JSONPointerNotFoundError
		anchor  *jsonschema.AnchorNotFoundError
		outside *jsonschema.LoadURLError
	)
	switch {
	case errors.As(err, &wrong):
		invalid, ok := errors.AsType[*jsonschema.ValidationError](wrong.Err)
		if !ok {
			break
		}
		list := schemaProblems(nil, invalid, nil)
		slices.SortStableFunc(list, func(a, b abi.Problem) int { return cmp.Compare(a.Path, b.Path) })
		return errors.New(List("the whole", list))
	case errors.As(err, &pointer):
		return fmt.Errorf("$ref %q has no target in the schema", strings.TrimPrefix(pointer.URL, schemaLocation))
	case errors.As(err, &anchor):
		return fmt.Errorf("$ref %q has no target: no part of the schema has that $anchor", strings.TrimPrefix(anchor.Reference, schemaLocation))
	case errors.As(err, &outside):
		return fmt.Errorf(`%q cannot be fetched: put the target of a $ref under "$defs" and refer to "#/$defs/NAME", and use only a $schema of json-schema.org`, outside.URL)
	}
	return errors.New(strings.ReplaceAll(err.Error(), schemaLocation, ""))
}

// schemaProblems lists what is wrong in a schema that its metaschema does not admit. within is its location, if e does not know it.
func schemaProblems(list []abi.Problem, e *jsonschema.ValidationError, within []string) []abi.Problem {
	if len(list) >= abi.MaxProblems {
		return list
	}
	if name, ok := e.ErrorKind.(*kind.PropertyNames); ok {
		within = append(slices.Clone(e.InstanceLocation), name.Property)
	}
	causes := e.Causes
	if _, ok := e.ErrorKind.(*kind.AnyOf); ok && len(causes) > 0 { // the author meant the alternative with the fewest errors
		causes = []*jsonschema.ValidationError{slices.MaxFunc(causes, func(a, b *jsonschema.ValidationError) int { return cmp.Compare(reach(a), reach(b)) })}
	}
	for _, cause := range causes {
		list = schemaProblems(list, cause, within)
	}
	if len(causes) > 0 {
		return list
	}
	path := slices.Clone(e.InstanceLocation)
	if within != nil {
		path = slices.Clone(within)
	}
	text := schemaProblem(e.ErrorKind, path)
	slices.Reverse(path)
	return append(list, abi.Problem{Path: pointer(path), Message: printable.Short(text, 1<<10)})
}

// reach is how deep in the schema the innermost problem of e is.
func reach(e *jsonschema.ValidationError) int {
	most := len(e.InstanceLocation)
	for _, cause := range e.Causes {
		most = max(most, reach(cause))
	}
	return most
}

// schemaProblem says what is wrong at a path in a schema.
func schemaProblem(what jsonschema.ErrorKind, path []string) string {
	text := what.LocalizedString(message.NewPrinter(language.English))
	switch what := what.(type) {
	case *kind.Enum:
		return fmt.Sprintf("got %s, want one of %s", jsonText(what.Got), strings.ReplaceAll(strings.Trim(jsonText(what.Want), "[]"), ",", ", "))
	case *kind.ExclusiveMinimum:
		return fmt.Sprintf("got %s, want more than %s", what.Got.RatString(), what.Want.RatString())
	case *kind.Format:
		if what.Want != "regex" {
			break
		}
		text = fmt.Sprintf("the pattern %s is not valid: ", jsonText(what.Got))
		if unread, ok := errors.AsType[*syntax.Error](what.Err); ok {
			return text + fmt.Sprintf("%s: %s; patterns are RE2, which has no lookahead, lookbehind or backreference", unread.Code, jsonText(unread.Expr))
		}
		return text + what.Err.Error()
	case *kind.Type:
		if slices.Contains(what.Want, "object") && slices.Contains(what.Want, "boolean") {
			return text + `: a schema, as in {"type": "string"}`
		}
		if len(path) > 0 && path[len(path)-1] == "required" {
			return text + `: the names of properties, as in {"properties": {"a": {}}, "required": ["a"]}`
		}
	}
	return text
}

func jsonText(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	return printable.Cut(string(text), 200)
}

// List names each place and what is wrong there. whole, which may be empty, names the value as a whole.
func List(whole string, problems []abi.Problem) string {
	lines := make([]string, len(problems))
	for i, p := range problems {
		lines[i] = p.Message
		if place := cmp.Or(p.Path, whole); place != "" {
			lines[i] = place + ": " + p.Message
		}
	}
	return strings.Join(lines, "; ")
}
