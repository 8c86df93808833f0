package http_test

import (
	"fmt"
	"log"

	"github.com/stilehost/stile/capabilities/http"
)

func Example() {
	rule, err := http.ParseRule("https://api.github.com/repos/**,methods=POST")
	if err != nil {
		log.Fatal(err)
	}
	read := http.Rule{Host: "api.github.com"}
	fmt.Println(rule.Methods, rule.Host, rule.Path, http.Covers([]http.Rule{read}, []http.Rule{rule}))
	// Output: [POST] api.github.com /repos/** false
}
