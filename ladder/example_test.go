package ladder_test

import (
	"fmt"

	"github.com/stilehost/stile/ladder"
)

// The tools are known before anything is built.
func Example() {
	for _, t := range ladder.Tools() {
		if t.Rung == ladder.Workspace && t.Definition.Annotations.Destructive {
			fmt.Println(t.Name)
		}
	}
	// Output:
	// workspace_write
	// workspace_edit
	// workspace_move
	// workspace_delete
	// workspace_restore
}
