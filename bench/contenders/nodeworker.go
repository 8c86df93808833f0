package contenders

import "github.com/stilehost/stile/bench"

var nodeWorker = &bench.Contender{
	Name: "node-worker", Title: "Node.js worker thread", Boundary: "none", Limits: "none", Level: bench.NewCode, Tasks: inputOnly,
	Prepare: onNode("node-worker.mjs", false, nil),
}
