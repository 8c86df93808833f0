package examples_test

import (
	"fmt"
	"io/fs"
	"log"

	"github.com/stilehost/stile/examples"
	"github.com/stilehost/stile/extension"
)

func Example() {
	manifest, err := fs.ReadFile(examples.Files(), "notes.json")
	if err != nil {
		log.Fatal(err)
	}
	m, err := extension.Parse(manifest)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(m.Name)
	// Output: notes
}
