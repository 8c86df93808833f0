package lifecycle

import (
	"cmp"
	"encoding/json"
	"fmt"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/extension"
	"github.com/stilehost/stile/extension/inspect"
	"github.com/stilehost/stile/internal/printable"
)

// unclear reports whether a name could look like another one.
func unclear(name string) bool {
	_, found := printable.Unclear(name)
	return found
}

// checkSchemas refuses schemas of tools with names that could look like other names, because an agent sees such a name escaped and could
// not use it, and schemas that no value satisfies, because each call would fail.
func checkSchemas(tools []abi.Definition) error {
	var problems []extension.Problem
	for _, t := range tools {
		schemas := []string{t.InputSchema}
		if t.OutputSchema != nil {
			schemas = append(schemas, *t.OutputSchema)
		}
		for i, text := range schemas {
			var schema any
			if err := json.Unmarshal([]byte(text), &schema); err != nil {
				return fmt.Errorf("read the schema of %s: %w", t.Name, err)
			}
			if name, found := unclearKey(schema); found {
				c, _ := printable.Unclear(name)
				problems = append(problems, extension.Problem{
					Text: fmt.Sprintf("the schema of the tool %s has the name %+q, which holds the character %+q", t.Name, printable.Cut(name, 100), c), Fix: "a name of visible characters",
				})
			}
			if path, why, found := inspect.Unsatisfiable(text); found {
				what, fix := "no input", "one that inputs can satisfy"
				if i > 0 {
					what, fix = "no result", "one that the results satisfy, or none"
				}
				problems = append(problems, extension.Problem{
					Text: fmt.Sprintf("%s can satisfy the schema of the tool %s, so each call would fail: %s: %s", what, t.Name, cmp.Or(path, "/"), why), Fix: fix,
				})
			}
		}
	}
	if len(problems) > 0 {
		return &extension.ProblemsError{Stage: extension.StageImage, Problems: problems}
	}
	return nil
}

// unclearKey finds an unclear key of an object. The host has already bounded how deep values nest.
func unclearKey(value any) (key string, found bool) {
	switch v := value.(type) {
	case map[string]any:
		for key, field := range v {
			if unclear(key) {
				return key, true
			}
			if key, found := unclearKey(field); found {
				return key, true
			}
		}
	case []any:
		for _, item := range v {
			if key, found := unclearKey(item); found {
				return key, true
			}
		}
	}
	return "", false
}
