package contenders

import "github.com/stilehost/stile/bench"

var quickJS = &bench.Contender{
	Name: "quickjs-emscripten", Title: "QuickJS in Node.js", Boundary: "WebAssembly, one for all isolates",
	Limits: "memory, stack, wall clock", Level: bench.NewCode, Tasks: inputOnly,
	Prepare: onNode("quickjs.mjs", false, nil, "quickjs-emscripten@0.32.0"),
}
