package abi_test

import (
	"context"
	"fmt"
	"log"
	"reflect"

	"github.com/stilehost/stile/abi"
)

const contactsWIT = `
package acme:crm@1.0.0;

interface contacts {
	variant lookup { id(u64), email(string), newest }
	record contact { id: u64, name: string, phone: option<string> }
	variant lookup-error { missing, shut-until(string) }
	resource book {
		find: func(by: lookup) -> result<contact, lookup-error>;
	}
}`

// LookupCase is a case of Lookup.
type LookupCase uint8

// The cases of Lookup, in the order of the WIT text.
const (
	LookupID LookupCase = iota
	LookupEmail
	LookupNewest
)

// Lookup is the variant `lookup`.
type Lookup struct {
	Case  LookupCase
	ID    *uint64
	Email *string
}

// Contact is the record `contact`.
type Contact struct {
	ID    uint64
	Name  string
	Phone *string
}

// LookupError is the variant `lookup-error`.
type LookupError struct {
	Case      int
	ShutUntil *string
}

func (e *LookupError) Error() string { return "lookup failed" }

// Book implements the resource `book`.
type Book map[string]Contact

// Find implements `find`. Its error becomes the err case because it converts to `lookup-error`.
func (b Book) Find(_ context.Context, by Lookup) (Contact, error) {
	if by.Case == LookupEmail {
		if c, ok := b[*by.Email]; ok {
			return c, nil
		}
	}
	return Contact{}, &LookupError{}
}

func ExampleImplement() {
	resolve, err := abi.Parse(contactsWIT)
	if err != nil {
		log.Fatal(err)
	}
	book := resolve.Interface("acme:crm/contacts@1.0.0").Resources[0]
	impl, err := abi.Implement(book, reflect.TypeFor[Book]())
	if err != nil {
		log.Fatal(err)
	}

	find := impl.Method("[method]book.find")
	people := Book{"ada@acme.example": {ID: 1, Name: "Ada"}}
	for _, email := range []string{"ada@acme.example", "bob@acme.example"} {
		by := abi.Variant{Case: uint32(LookupEmail), Value: email}
		result, err := find.Call(context.Background(), people, []abi.Value{by}, nil)
		value, err := find.Encode(result, err, nil)
		fmt.Println(value, err)
	}
	// Output:
	// {0 [1 Ada {0 <nil>}]} <nil>
	// {1 {0 <nil>}} <nil>
}
