package images_test

import (
	"fmt"
	"log"

	"github.com/stilehost/stile/capabilities/sandbox/images"
)

func Example() {
	image, _, err := images.Open("/var/lib/stile/sandbox/images", images.Host, nil)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(image.Name, image.Root == "")
	// Output: host true
}
