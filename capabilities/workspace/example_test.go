package workspace_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/stilehost/stile/capabilities/workspace"
)

func Example() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "")
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	store, err := workspace.Open(ctx, filepath.Join(dir, "workspace.db"), workspace.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = store.Close() }()
	notes := store.Workspace("me") // a capability for the env of a call
	if err := notes.Write(ctx, "todo.txt", "milk"); err != nil {
		log.Fatal(err)
	}
	text, err := notes.AsReadOnly().Read(ctx, "todo.txt")
	fmt.Println(text, err)
	// Output: milk <nil>
}
