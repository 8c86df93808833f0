package sandbox_test

import (
	"fmt"
	"log"

	"github.com/stilehost/stile/capabilities/sandbox"
)

func Example() {
	rights := sandbox.Rights{Image: "host", Limits: sandbox.Limits{Memory: 512 << 20}}
	grant, err := sandbox.New(sandbox.Options{Dir: "/var/lib/stile/sandbox"}, rights, nil)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(grant.Interface())
	fmt.Println(rights.Describe()[1])
	// Output:
	// stile:capability/sandbox@0.1.0
	// may take 512MiB of memory, 2GiB of disk, 1 of the processors, 256 processes, and 10m for each command
}
