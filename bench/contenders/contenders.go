// Package contenders has an adapter for each way of running a tool that takes part in the benchmarks.
package contenders

import "github.com/stilehost/stile/bench"

// All returns every contender, available here or not.
func All() []*bench.Contender {
	return append([]*bench.Contender{stile, stileBuild}, containerised...)
}
