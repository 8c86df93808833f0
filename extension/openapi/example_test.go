package openapi_test

import (
	"fmt"
	"log"

	"github.com/stilehost/stile/extension/openapi"
)

func Example() {
	made, err := openapi.Generate([]byte(`
openapi: 3.1.0
info: {title: Pets, version: 1.0.0}
servers: [{url: "https://pets.example.com/v1"}]
paths:
  /pets: {get: {operationId: listPets, summary: List all pets}}
`), openapi.Options{})
	if err != nil {
		log.Fatal(err)
	}
	for _, d := range made.Drafts {
		fmt.Printf("%s: %d tool of %s\n%s", d.Name, d.Tools, made.Server, d.Files[openapi.TableFile])
	}
	// Output:
	// pets: 1 tool of https://pets.example.com/v1
	// {
	//   "server": "https://pets.example.com/v1",
	//   "operations": [
	//     {"name":"list_pets","method":"GET","path":"/pets","description":"List all pets. GET /pets","input":{"additionalProperties":false,"type":"object"}}
	//   ]
	// }
}
