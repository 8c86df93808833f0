package extension_test

import (
	"fmt"
	"log"

	"github.com/stilehost/stile/extension"
)

func Example() {
	m, err := extension.Parse([]byte(`{
		"name": "github", "version": "1.0.0", "description": "Opens issues", "tools": ["open_issue"],
		"permissions": {"kv": true}
	}`))
	if err != nil {
		log.Fatal(err)
	}
	for _, b := range m.Bindings {
		fmt.Println(b.Name, b.Grant.Interface())
	}
	fmt.Println(extension.ToolName(m.Name, m.Tools[0]))
	// Output:
	// kv stile:capability/kv@0.1.0
	// github_open_issue
}
