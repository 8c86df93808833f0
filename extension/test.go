package extension

import "encoding/json"

// Test is one call of a tool that an extension brings to show that it works, with the answers that the tool gets. Package
// trial runs it.
type Test struct {
	// Name tells the test from others, and Tool is what it calls.
	Name, Tool string
	// Input is JSON; without one it is `{}`. Expect is the JSON that the tool has to return.
	Input, Expect json.RawMessage
	// Error is a part of the message that the tool has to fail with. A test has either this or Expect.
	Error string
	// Env says what bindings answer, by their names.
	Env map[string]json.RawMessage
}
