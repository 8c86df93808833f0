package contenders

import (
	"context"

	"github.com/stilehost/stile/bench"
)

var runcNode = &bench.Contender{
	Name: "runc-node", Title: "Node.js in runc", Boundary: "namespaces, no capabilities", Limits: "memory, processes, no network",
	Level: bench.NewIsolate, Tasks: bench.Tasks,
	Prepare: func(ctx context.Context, w *bench.Workbench, task bench.Task) (bench.Runner, error) {
		runc, err := bench.Find("runc", "apt-get install runc")
		if err != nil {
			return nil, err
		}
		return openOCI(ctx, w, task, "runc", runc)
	},
}
