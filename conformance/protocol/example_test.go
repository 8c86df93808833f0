package protocol_test

import (
	"fmt"
	"os"
	"strings"

	"github.com/stilehost/stile/conformance/protocol"
)

// A host says what it is, and what it has.
func Example() {
	in := strings.NewReader(`{"id": 1, "op": "hello", "protocol": 1}` + "\n")
	var asked protocol.Request
	if err := protocol.NewReader(in).Read(&asked); err != nil {
		fmt.Println(err)
		return
	}
	answer := protocol.Response{ID: asked.ID, Hello: &protocol.Hello{Protocol: protocol.Version, Name: "mine", Version: "1.0", Kinds: []string{"kv", "clock"}}}
	if err := protocol.Write(os.Stdout, answer); err != nil {
		fmt.Println(err)
	}
	// Output: {"id":1,"hello":{"protocol":1,"name":"mine","version":"1.0","kinds":["kv","clock"]}}
}
