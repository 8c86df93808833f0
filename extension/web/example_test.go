package web_test

import (
	"fmt"
	"log"
	"net/http"
	"time"

	"github.com/stilehost/stile/extension/lifecycle"
	"github.com/stilehost/stile/extension/web"
)

func Example() {
	var m *lifecycle.Manager // see package lifecycle
	pages := web.New(web.Options{Manager: m, Person: "ada", Hosts: []string{"127.0.0.1:8080"}})
	fmt.Println("http://127.0.0.1:8080/?token=" + pages.Token())
	log.Fatal((&http.Server{Addr: "127.0.0.1:8080", Handler: pages, ReadHeaderTimeout: time.Second}).ListenAndServe())
}
