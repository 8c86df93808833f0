// Package contenders has an adapter for each way of running a tool that takes part in the benchmarks.
package contenders

import "github.com/stilehost/stile/bench"

// All returns every contender, available here or not.
func All() []*bench.Contender {
	return append([]*bench.Contender{
		stile, stileEval, stileBuild, stileHello, stileCLI, floor, extism, componentizeJS, componentizeJSBuild,
		helloProcess, nodeProcess, denoProcess, bunProcess, nodeJitless, nodeVM, nodeWorker, denoWorker, bunWorker, isolatedVM, quickJS, workerd, microVM,
	}, containerised...)
}
