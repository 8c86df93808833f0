package lifecycle

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stilehost/stile/extension"
)

// The most informative release about a missing tool is chosen in one place, from those that the viewer may know of.
func TestMissing(t *testing.T) {
	m := newHome(t).open()
	const network = `{"network": ["example.com"]}`
	waits := write(t, m, draft("my-waits", "1", network)).Release
	write(t, m, draft("both", "1", ""))
	write(t, m, draft("both", "2", network))
	if _, err := m.Revoke(t.Context(), own, "both", person); err != nil {
		t.Fatal(err)
	}
	write(t, m, draft("removed", "1", ""))
	if _, err := m.Remove(t.Context(), own, "removed", Decision{By: "agent:a", Via: "test"}); err != nil {
		t.Fatal(err)
	}
	write(t, m, tool("less", "get,set", `import { extension } from "stile";
		export default extension({ tools: { get: { description: "G", run: async () => 1 }, set: { description: "S", run: async () => 1 } } });`, ""))
	write(t, m, draft("less", "2", ""))
	write(t, m, draft("update", "1", ""))
	update := write(t, m, draft("update", "2", network)).Release
	write(t, m, draft("broken", "1", ""))
	alter(t, m, "UPDATE release SET quarantine = 'broken' WHERE name = 'broken'")
	write(t, m, draft("damaged", "1", network))
	alter(t, m, "UPDATE release SET scope = 'nobody:' WHERE name = 'damaged'")

	other, tom := Viewer{User: "tom", Agent: "b"}, Viewer{User: "tom", Person: true}
	for _, tt := range []struct {
		viewer     Viewer
		name, tool string
		want       string // empty if there is nothing to report
	}{
		{agent, "my-waits", "get", fmt.Sprintf("waits pending %d", waits.ID)},
		{other, "my-waits", "get", ""},
		{tom, "my-waits", "get", fmt.Sprintf("waits pending %d", waits.ID)},
		{agent, "both", "get", "ended revoked"},
		{other, "both", "get", ""},
		{tom, "both", "get", ""}, // it is in no scope of this person
		{Viewer{Agent: "a", Person: true}, "both", "get", "ended revoked"},
		{agent, "removed", "get", "ended removed"},
		{agent, "less", "set", ""}, // superseded
		{agent, "less", "get", ""}, // active
		{tom, "less", "get", "elsewhere active"},
		{agent, "update", "get", fmt.Sprintf("waits pending %d", update.ID)},
		{agent, "broken", "get", "quarantined active"},
		{other, "broken", "get", ""},
		{agent, "damaged", "get", ""},
		{tom, "damaged", "get", ""},
		{agent, "never", "get", ""},
		{agent, strings.Repeat("_", 10_000), "", ""},
		{agent, "%", "%", ""},
	} {
		asTool, err := m.MissingTool(t.Context(), tt.viewer, extension.ToolName(tt.name, tt.tool))
		asExtension, other := m.MissingExtension(t.Context(), tt.viewer, tt.name)
		if err := errors.Join(err, other); err != nil {
			t.Fatal(err)
		}
		is := func(why *MissingError) bool {
			return why == nil && tt.want == "" || why != nil && strings.HasPrefix(fmt.Sprintf("%s %s %d", why.Reason, why.Release.State, why.Release.ID), tt.want) && tt.want != "" && why.Release.Name == tt.name
		}
		if tt.tool != "set" && !is(asExtension) || !is(asTool) {
			t.Errorf("%+v, %.20s: got %+v and %+v, want %q", tt.viewer, tt.name, asTool, asExtension, tt.want)
		}
	}
	if _, err := m.Find(t.Context(), tom, "less"); !errors.As(err, new(*NotFoundError)) || !strings.Contains(err.Error(), "is active in scope agent:a") {
		t.Errorf("got %v", err)
	}
}
