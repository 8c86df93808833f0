// Command embed is an example of a program that embeds Stile. It offers extensions its own capability, the interface
// acme:crm/contacts, by giving its WIT text and a Go value with the methods, and calls a TypeScript extension that uses it.
package main

import (
	"context"
	_ "embed"
	"fmt"
	"io"
	"log"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing/fstest"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/host"
	"github.com/stilehost/stile/toolchain"
)

//go:embed contacts.wit
var contactsWIT string

//go:embed lookup.ts
var lookup []byte

// Contact is the record `contact`.
type Contact struct {
	Name, Email string
	Phone       *string
}

// Book implements the resource `book` of acme:crm/contacts over a map that never changes, so calls may share it.
type Book map[string]Contact

// Interface names the WIT interface that Book implements.
func (Book) Interface() string { return "acme:crm/contacts@1.0.0" }

// Lookup is `lookup`.
func (b Book) Lookup(_ context.Context, name string) (Contact, error) {
	c, ok := b[name]
	if !ok {
		return Contact{}, abi.Errorf(abi.CodeNotFound, "no contact named %q", name)
	}
	return c, nil
}

// Search is `search`.
func (b Book) Search(_ context.Context, text string) []string {
	names := []string{}
	for name := range b {
		if strings.Contains(name, text) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

func main() {
	input := `{"name":"Ada"}`
	if len(os.Args) > 1 {
		input = os.Args[1]
	}
	if err := run(context.Background(), input, os.Stdout); err != nil {
		log.Fatal(err)
	}
}

// run calls the tool of lookup.ts and writes its result.
func run(ctx context.Context, input string, out io.Writer) error {
	dir, err := os.UserCacheDir()
	if err != nil {
		return err
	}
	dir = filepath.Join(dir, "stile-embed")
	cache, key := filepath.Join(dir, "cache"), filepath.Join(dir, "key")
	h, err := host.New(ctx, host.Options{WIT: []string{contactsWIT}, CacheDir: cache, KeyDir: key})
	if err != nil {
		return err
	}
	defer h.Close()
	tools, err := toolchain.New(ctx, h, toolchain.Options{CacheDir: cache, KeyDir: key})
	if err != nil {
		return err
	}
	defer tools.Close()
	component, err := tools.Build(ctx, toolchain.Source{
		FS:       fstest.MapFS{"lookup.ts": {Data: lookup}},
		Entry:    "lookup.ts",
		Bindings: map[string]string{"crm": "acme:crm/contacts@1.0.0"},
	})
	if err != nil {
		return err
	}
	phone := "+44 20 7946 0000"
	output, err := component.Call(ctx, "mail_to", []byte(input), host.Env{
		"crm": Book{
			"Ada Lovelace": {Name: "Ada Lovelace", Email: "ada@example.com", Phone: &phone},
			"Alan Turing":  {Name: "Alan Turing", Email: "alan@example.com"},
		},
	})
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(out, "%s\n", output)
	return err
}
