package blob_test

import (
	"context"
	"fmt"

	"github.com/stilehost/stile/capabilities/blob"
)

func Example() {
	ctx := context.Background()
	b := blob.New("text/plain", []byte("Hello"))
	text, err := b.Text(ctx, 100)
	fmt.Println(b.Size(ctx), text, err)
	// Output: 5 Hello <nil>
}
