package deflate_test

import (
	"fmt"
	"log"

	"github.com/stilehost/stile/internal/deflate"
)

func Example() {
	w, err := deflate.NewWriter(deflate.Gzip, 6)
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = w.Close() }()
	packed, _, err := w.Step([]byte("hello hello hello"), deflate.Finish)
	if err != nil {
		log.Fatal(err)
	}
	r := deflate.NewReader(deflate.Gzip)
	defer func() { _ = r.Close() }()
	_, ended, _, err := r.Step(packed, func(output []byte) { fmt.Println(string(output)) })
	fmt.Println(ended, err)
	// Output:
	// hello hello hello
	// true <nil>
}
