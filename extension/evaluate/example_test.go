package evaluate_test

import (
	"context"

	"github.com/stilehost/stile/capabilities/code"
	"github.com/stilehost/stile/extension"
	"github.com/stilehost/stile/extension/evaluate"
	"github.com/stilehost/stile/toolchain"
)

func Example() {
	var tools *toolchain.Toolchain // see package toolchain
	e := evaluate.New(evaluate.Options{Toolchain: func(context.Context) (*toolchain.Toolchain, error) { return tools, nil }})
	state := extension.NewState("/var/lib/agent", nil)
	state.Configure(code.Kind, code.Evaluator(e.Run))
}
