package pull_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/stilehost/stile/capabilities/sandbox/images/pull"
)

func ExampleImage() {
	_, err := pull.Image(context.Background(), "/var/lib/stile/sandbox/images", "tools", "registry.example.com/tools", pull.Options{})
	fmt.Println(errors.Is(err, pull.ErrReference)) // it has neither a tag nor a digest
	// Output: true
}
