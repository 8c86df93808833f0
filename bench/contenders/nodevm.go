package contenders

import "github.com/stilehost/stile/bench"

var nodeVM = &bench.Contender{
	Name: "node-vm", Title: "node:vm context", Boundary: "none", Limits: "none", Level: bench.NewCode, Tasks: inputOnly,
	Prepare: onNode("node-vm.mjs", false, nil),
}
