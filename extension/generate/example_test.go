package generate_test

import (
	"context"
	"fmt"

	"github.com/stilehost/stile/extension"
	"github.com/stilehost/stile/extension/generate"
	"github.com/stilehost/stile/extension/lifecycle"
	"github.com/stilehost/stile/model"
)

func Example() {
	ctx := context.Background()
	var m model.Model // see package model
	var manager *lifecycle.Manager
	g := generate.Generator{Model: m}
	result, err := g.Generate(ctx, generate.Request{Description: "Reverse a text"}, func(ctx context.Context, d generate.Draft) error {
		me := extension.Scope{Kind: extension.User, Owner: "ada"}
		_, err := manager.Write(ctx, lifecycle.Draft{
			Scope: me, Author: me.String(), Manifest: d.Manifest, Files: map[string][]byte{d.File: []byte(d.Source)},
		})
		return err
	})
	fmt.Println(result.Spent(), err)
}
