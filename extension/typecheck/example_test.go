package typecheck_test

import (
	"context"
	"fmt"
	"log"

	"github.com/stilehost/stile/extension/typecheck"
	"github.com/stilehost/stile/toolchain"
	"github.com/stilehost/stile/toolchain/npm"
)

func Example() {
	ctx := context.Background()
	var tools *toolchain.Toolchain // of a host, see package toolchain
	var packages *npm.Client
	checker, err := typecheck.New(typecheck.Options{
		Toolchain: func(context.Context) (*toolchain.Toolchain, error) { return tools, nil }, Packages: packages,
	})
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = checker.Close() }()
	err = checker.Check(ctx, typecheck.Request{Entry: "tool.ts", Files: map[string][]byte{"tool.ts": []byte(`const n: number = "one";`)}})
	fmt.Println(err)
}
