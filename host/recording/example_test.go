package recording_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/stilehost/stile/host/recording"
)

func Example() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "")
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	store, err := recording.Open(ctx, filepath.Join(dir, "recordings.db"), recording.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = store.Close() }()
	// host.Options{Recorder: store} records calls.
	list, dropped, err := store.List(ctx, recording.Filter{})
	fmt.Println(len(list), dropped, err)
	// Output: 0 0 <nil>
}
