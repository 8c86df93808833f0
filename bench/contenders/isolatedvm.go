package contenders

import "github.com/stilehost/stile/bench"

// The native code of isolated-vm 5 is compiled for the installed Node.js. Later versions need Node.js 22 and 24.
var isolatedVM = &bench.Contender{
	Name: "isolated-vm", Title: "isolated-vm", Boundary: "V8 isolate", Limits: "memory, wall clock", Level: bench.NewCode, Tasks: inputOnly,
	Prepare: onNode("isolated-vm.mjs", true, []string{"--no-node-snapshot"}, "isolated-vm@5.0.4"),
}
