// Command stile-sigstore verifies Sigstore bundles. stile ext import starts it and sends its requests to standard input.
package main

import (
	"fmt"
	"os"

	"github.com/stilehost/stile/extension/pack/bundle"
	"github.com/stilehost/stile/extension/pack/sigstore"
)

func main() {
	if len(os.Args) > 1 {
		fail("stile ext import starts this program, without arguments; stile ext import --help says how bundles are verified")
	}
	err := bundle.Serve(os.Stdin, os.Stdout, func(p bundle.Policy) (func(text, artifact []byte) (*bundle.Signer, error), error) {
		v, err := sigstore.New(p)
		if err != nil {
			return nil, err
		}
		return v.Verify, nil
	})
	if err != nil {
		fail(err.Error())
	}
}

func fail(reason string) {
	_, _ = fmt.Fprintln(os.Stderr, "stile-sigstore:", reason) // there is nobody else to tell
	os.Exit(2)
}
