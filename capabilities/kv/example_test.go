package kv_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/stilehost/stile/capabilities/kv"
)

func Example() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "")
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	store, err := kv.Open(ctx, filepath.Join(dir, "kv.db"), kv.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = store.Close() }()
	counter := store.Bucket("visits") // a capability for the env of a call
	if _, err = counter.Increment(ctx, "today", 1); err != nil {
		log.Fatal(err)
	}
	n, err := counter.Increment(ctx, "today", 1)
	fmt.Println(n, err)
	// Output: 2 <nil>
}
