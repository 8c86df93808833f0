package extension

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/stilehost/stile/capabilities"
)

// onlyParse are the cases that the schema accepts, because a schema cannot express them or would become unreadable.
var onlyParse = []string{
	"a durable tool that is not there", "a deadline that is too long", "a first delay that is too long", "a longest delay of nothing",
	"a doubled field", "a doubled field, escaped", // JSON allows them
	"description that hides", "a test with a name that hides", // characters
	"network with a bad host", "a path that climbs", "a path with a zero", // the syntax of hosts and paths
	"a name twice, in two forms", "a test of another tool", "a test of no tool", // consistency between fields
	"a test with a binding that is not there", "a test with bindings where there are none",
	"a credential for any host",
	"code with a binding that is not there", "code with itself", "code with what runs code", // consistency between bindings
	"a var with a default that is too small", "a var for a secret", "a var with text that hides", // vars
	"a test of a var that is not there", "a test of a var that does not fit", "a test of vars where there are none",
	"files of WASI without a binding", "files of WASI of kv", "http of WASI of a workspace", "files of WASI at dots",
	"files of node without a binding", "files of node of kv",
}

func compileSchema(t testing.TB) *jsonschema.Schema {
	t.Helper()
	schema, err := jsonschema.NewCompiler().Compile("manifest.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	return schema
}

// accepts reports whether a text is JSON that the schema accepts.
func accepts(t testing.TB, schema *jsonschema.Schema, text []byte) bool {
	t.Helper()
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	return err == nil && schema.Validate(value) == nil
}

// TestSchema checks that the schema accepts whatever Parse accepts, and that Parse refuses whatever the schema refuses.
func TestSchema(t *testing.T) {
	schema := compileSchema(t)
	for _, tt := range valid {
		if !accepts(t, schema, []byte(tt.text)) {
			t.Errorf("it refuses %q", tt.name)
		}
	}
	for _, tt := range refused {
		if got := accepts(t, schema, []byte(tt.text)); got != slices.Contains(onlyParse, tt.name) {
			t.Errorf("it accepts %q: %v", tt.name, got)
		}
	}
	var examples []string
	for _, pattern := range []string{"../examples/*.json", "../examples/embed/*.json"} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		examples = append(examples, files...)
	}
	manifests := 0
	for _, file := range examples {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Contains(text, []byte(`"tools"`)) {
			continue // a package.json, a tsconfig.json
		}
		manifests++
		if _, err := Parse(text); err != nil || !accepts(t, schema, text) {
			t.Errorf("%s: %v", file, err)
		}
	}
	if manifests == 0 {
		t.Error("there are no examples")
	}
}

// TestSchemaHasKinds checks that the schema has each kind that a manifest can ask for, with a form that accepts the kind's example.
func TestSchemaHasKinds(t *testing.T) {
	schema := compileSchema(t)
	text, err := os.ReadFile("manifest.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	var fields struct {
		Properties struct {
			Permissions struct{ Properties map[string]any }
		}
	}
	if err := json.Unmarshal(text, &fields); err != nil {
		t.Fatal(err)
	}
	for _, k := range capabilities.Builtin.All() {
		manifest := fmt.Appendf(nil, `{"name": "a", "version": "1.0.0", "description": "a", "tools": ["a"], "bindings": {"a": {%q: %s}}}`, k.Name, k.Example)
		if k.Parse != nil && !accepts(t, schema, manifest) {
			t.Errorf(`manifest.schema.json refuses {%q: %s}: add the kind to "$defs", "binding"`, k.Name, k.Example)
		}
		if k.Permission != "" && fields.Properties.Permissions.Properties[k.Permission] == nil {
			t.Errorf(`manifest.schema.json does not know the short form %q: add it to "properties", "permissions"`, k.Permission)
		}
	}
}
