package mcp_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"time"

	"github.com/stilehost/stile/extension/lifecycle"
	"github.com/stilehost/stile/mcp"
)

func Example() {
	var m *lifecycle.Manager // see package lifecycle
	server, err := mcp.New(mcp.Options{Manager: m})
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = server.Close() }()
	err = server.Serve(context.Background(), lifecycle.Viewer{Agent: "claude"}, mcp.Lines(os.Stdin, os.Stdout, time.Second))
	fmt.Fprintln(os.Stderr, err)
}
