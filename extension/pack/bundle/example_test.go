package bundle_test

import (
	"crypto/ed25519"
	"encoding/json"
	"fmt"
	"log"

	"github.com/stilehost/stile/extension/pack/bundle"
)

func Example() {
	_, key, err := ed25519.GenerateKey(nil)
	if err != nil {
		log.Fatal(err)
	}
	text, err := bundle.Sign(key, []byte("a file"))
	fmt.Println(json.Valid(text), err)
	fmt.Println(bundle.Policy{}.Check() == nil)
	// Output:
	// true <nil>
	// false
}
