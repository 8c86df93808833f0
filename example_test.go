package stile_test

import (
	"fmt"
	"io/fs"
	"log"

	"github.com/stilehost/stile"
)

func Example() {
	prelude, err := fs.ReadDir(stile.TypeScript(), "toolchain/prelude")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(len(prelude) > 10)
	// Output: true
}
