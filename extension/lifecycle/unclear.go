package lifecycle

import (
	"encoding/json"
	"fmt"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/extension"
	"github.com/stilehost/stile/internal/printable"
)

// unclear reports whether a name could look like another one.
func unclear(name string) bool {
	_, found := printable.Unclear(name)
	return found
}

// checkSchemaNames refuses names in the schemas of tools that could look like other names. An agent sees such a name escaped, and
// could not use it.
func checkSchemaNames(tools []abi.Definition) error {
	var problems []extension.Problem
	for _, t := range tools {
		schemas := []string{t.InputSchema}
		if t.OutputSchema != nil {
			schemas = append(schemas, *t.OutputSchema)
		}
		for _, text := range schemas {
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
