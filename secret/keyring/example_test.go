package keyring_test

import (
	"context"
	"fmt"
	"log"

	"github.com/stilehost/stile/secret"
	"github.com/stilehost/stile/secret/keyring"
)

func Example() {
	store, err := secret.Open(context.Background(), "secrets", secret.Options{Keyring: keyring.System{}})
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = store.Close() }()
	fmt.Println(store.KeyPlace())
}
