package secret_test

import (
	"context"
	"fmt"
	"log"
	"os"

	"github.com/stilehost/stile/secret"
)

func Example() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "")
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	store, err := secret.Open(ctx, dir, secret.Options{}) // without a keyring, the key is a file
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = store.Close() }()
	if err := store.Set(ctx, "github-token", "hunter2-hunter2"); err != nil {
		log.Fatal(err)
	}
	value, err := store.Get(ctx, "github-token")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(secret.NewRedactor(value).Redact("the token is hunter2-hunter2"))
	// Output: the token is [redacted]
}
