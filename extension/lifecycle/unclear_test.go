package lifecycle

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stilehost/stile/extension"
)

// Names with invisible characters are refused, both in files and in schemas.
func TestUnclearNames(t *testing.T) {
	m := newHome(t).open()
	for _, hidden := range []string{`\u3164`, `\u034f`, `\u2800`, `\u200d`, `\ufe0f`, `\u{e0041}`, `\u00a0`, `\u{10ffff}`, `\u115f`, `\u00ad`, `\ue000`} {
		for _, schema := range []string{
			`{ type: "object", properties: { "path%s": { type: "string" } } }`,
			`{ type: "object", $defs: { a: { properties: { "%s": true } } } }`,
			`{ type: "object", allOf: [{ dependentRequired: { "a%sb": [] } }] }`,
		} {
			source := fmt.Sprintf(`import { extension } from "stile";
export default extension({ tools: { get: { description: "Gets a value", input: %s, run: async () => 1 } } });`, fmt.Sprintf(schema, hidden))
			_, err := m.Write(t.Context(), tool("notes", "get", source, ""))
			if problems, ok := errors.AsType[*extension.ProblemsError](err); !ok || problems.Stage != extension.StageImage || !strings.Contains(err.Error(), "the schema of the tool get has the name") {
				t.Errorf("%s: got %v", fmt.Sprintf(schema, hidden), err)
			}
		}
	}
	for _, name := range []string{"a\u3164.ts", "\u2800.ts", "a\u00a0b.ts", "a\u200d.ts", "⚠\ufe0f.ts", "node_modules/p/a.ts", "lib/node_modules/p/a.ts", "a\U000e0041.ts", "a\ue000.ts"} {
		d := draft("notes", "1", "")
		d.Files[name] = []byte("// nothing")
		if _, err := m.Write(t.Context(), d); !errors.As(err, new(*extension.ProblemsError)) || !strings.Contains(err.Error(), "this is not the name of a source file") {
			t.Errorf("%+q: got %v", name, err)
		}
	}
	// In texts, such a character is kept and made visible.
	source := `import { extension } from "stile";
export default extension({ tools: { get: { description: "Gets\u{e0041}\u3164 👩\u200d💻", input: { type: "object", properties: { "größe m": { description: "\u200b" } } }, run: async () => 1 } } });`
	w := write(t, m, tool("notes", "get", source, ""))
	if got := w.Version.Tools[0].Description; got != `Gets\U000e0041\u3164 👩`+"\u200d💻" {
		t.Errorf("got %+q", got)
	}
}
