package project_test

import (
	"fmt"
	"log"

	"github.com/stilehost/stile/extension/project"
)

func Example() {
	p, err := project.New("greeter", "go", project.Basic)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(p.Build, "and", p.Test)
	fmt.Println(p.Files["stile/go.mod"] != nil)
	// Output:
	// make and make test
	// true
}
