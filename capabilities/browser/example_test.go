package browser_test

import (
	"context"
	"fmt"
	"log"
	"os"

	"github.com/stilehost/stile/capabilities/browser"
	"github.com/stilehost/stile/capabilities/http"
	"github.com/stilehost/stile/capability"
)

func Example() {
	dir, err := os.MkdirTemp("", "")
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	site := capability.NewSite(dir, nil)
	defer func() { _ = site.Close() }()

	grant := browser.Rights{Rules: []http.Rule{{Host: "docs.example.com"}}}
	capability, err := grant.Open(context.Background(), site)
	if err != nil {
		log.Fatal(err)
	}
	session, err := capability.(*browser.Grant).Open(context.Background())
	if err != nil {
		log.Fatal(err)
	}
	_, err = session.(*browser.Session).Open(context.Background(), "https://example.com/")
	fmt.Println(err)
	// Output: denied: open https://example.com: no rule names the host example.com; the rules name docs.example.com
}
