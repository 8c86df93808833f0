package extension

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/stilehost/stile/capability"
	"github.com/stilehost/stile/internal/jsonform"
)

// Test is a call that comes with an extension, and its expected outcome.
type Test struct {
	// Name says what is tested, in at most 200 bytes. It may be empty.
	Name string
	// Tool is one of the manifest's.
	Tool string
	// Input is JSON.
	Input json.RawMessage
	// Expect is the JSON result. It is nil if the call should fail; JSON's null is not nil.
	Expect json.RawMessage
	// Error is a text that the failure's message contains. It is empty if a result is expected.
	Error string
	// Env gives the answers of bindings, by their names. It is nil if there are none.
	Env map[string]json.RawMessage
	// Vars are those of [Manifest.Vars] that the test sets. The others have their defaults. It is nil if the test sets none.
	Vars map[string]json.RawMessage
}

// MarshalJSON implements json.Marshaler in the form of a manifest's tests.
func (t Test) MarshalJSON() ([]byte, error) {
	return capability.JSON(struct {
		Name   string                     `json:"name,omitempty"`
		Tool   string                     `json:"tool"`
		Input  json.RawMessage            `json:"input"`
		Expect json.RawMessage            `json:"expect,omitempty"`
		Error  string                     `json:"error,omitempty"`
		Env    map[string]json.RawMessage `json:"env,omitempty"`
		Vars   map[string]json.RawMessage `json:"vars,omitempty"`
	}{t.Name, t.Tool, t.Input, t.Expect, t.Error, t.Env, t.Vars}), nil
}

// MaxTests is how many tests an extension has, and how many are run.
const MaxTests = 100

const (
	maxTestName  = 200
	maxTestError = 1000

	exampleTest = `{"tool": "add", "input": {"a": 1}, "expect": 2}`
)

// tests reads the tests of a manifest. Those with a problem are gaps. m already has the tools and bindings.
func (r *reader) tests(n *jsonform.Node, m *Manifest) []Test {
	var tests []Test
	for _, item := range r.Items(n, MaxTests, "["+exampleTest+"]") {
		met := r.Met
		tests = append(tests, r.test(item, m))
		if r.Next(); r.Met > met {
			r.gaps.Tests = append(r.gaps.Tests, len(tests)-1)
		}
	}
	return tests
}

func (r *reader) test(n *jsonform.Node, m *Manifest) Test {
	fields := r.Fields(n, exampleTest, []string{"name", "tool", "input", "expect", "error", "env", "vars"}, "tool", "input")
	if _, ok := n.Value.([]jsonform.Member); !ok {
		return Test{}
	}
	r.Next()
	var t Test
	if input := fields["input"]; input != nil {
		t.Input = capability.JSON(input.Plain())
	}
	if tool := fields["tool"]; tool != nil {
		t.Tool = r.Text(tool, `"add"`)
		if r.Err == nil && len(m.Tools) > 0 && !slices.Contains(m.Tools, t.Tool) {
			instead := "one of tools"
			if near := jsonform.Nearest(t.Tool, m.Tools); near != "" {
				instead = jsonform.Quote(near)
			}
			r.Fail(tool, instead, "%s is not among the tools", jsonform.Quote(t.Tool))
		}
		r.Next()
	}
	if name := fields["name"]; name != nil {
		t.Name = r.prose(name, "name of the test", `"adds two numbers"`, maxTestName)
		r.Next()
	}
	switch expect, failure := fields["expect"], fields["error"]; {
	case (expect == nil) == (failure == nil):
		r.Fail(n, exampleTest, `a test has one of "expect" and "error"`)
	case expect != nil:
		t.Expect = capability.JSON(expect.Plain())
	default:
		t.Error = r.failure(failure)
	}
	r.Next()
	if env := fields["env"]; env != nil {
		t.Env = r.testEnv(env, m)
		r.Next()
	}
	if vars := fields["vars"]; vars != nil {
		t.Vars = r.testVars(vars, m)
	}
	return t
}

func (r *reader) failure(n *jsonform.Node) string {
	s := r.Text(n, `"not found"`)
	switch {
	case r.Err != nil:
	case s == "":
		r.Fail(n, "text that the message contains", "every message contains the empty text")
	case len(s) > maxTestError:
		r.Fail(n, fmt.Sprintf("at most %d bytes", maxTestError), "the text has %d bytes", len(s))
	}
	return s
}

func (r *reader) testEnv(n *jsonform.Node, m *Manifest) map[string]json.RawMessage {
	env := map[string]json.RawMessage{}
	all := Merge(m.Bindings, Defaults(r.kinds))
	names := make([]string, len(all))
	for i, b := range all {
		names[i] = b.Name
	}
	for _, member := range r.Members(n, `{"notes": {}}`) {
		if r.gaps.May(member.Key) {
			names = append(names, member.Key) // what it answers is not known
		}
	}
	for name, value := range r.Fields(n, `{"notes": {}}`, names) {
		env[name] = capability.JSON(value.Plain())
	}
	return env
}
