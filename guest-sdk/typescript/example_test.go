package typescript_test

import (
	"fmt"
	"strings"

	"github.com/stilehost/stile/guest-sdk/typescript"
)

func Example() {
	fmt.Println(strings.Contains(typescript.Index(), "export"))
	// Output: true
}
