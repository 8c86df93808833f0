package sha256hex_test

import (
	"fmt"

	"github.com/stilehost/stile/internal/sha256hex"
)

func ExampleOf() {
	fmt.Println(sha256hex.Of([]byte("abc")))
	// Output: ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad
}
