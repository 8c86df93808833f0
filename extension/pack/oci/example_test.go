package oci_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/stilehost/stile/extension/pack/oci"
)

func Example() {
	_, err := oci.Pull(context.Background(), "not a reference", oci.Options{})
	fmt.Println(errors.Is(err, oci.ErrReference))
	// Output: true
}
