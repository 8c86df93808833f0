package contenders

import (
	"context"

	"github.com/stilehost/stile/bench"
)

var nodeProcess = &bench.Contender{
	Name: "node", Title: "Node.js process", Boundary: "none", Limits: "none",
	Level: bench.NewIsolate, Tasks: []bench.Task{bench.Compute, bench.File, bench.Work},
	Prepare: func(ctx context.Context, w *bench.Workbench, task bench.Task) (bench.Runner, error) {
		if task == bench.Work { // in a process that is already running, because its start varies more than short work takes
			return onNode("node-vm.mjs", false, nil)(ctx, w, task)
		}
		node, err := findNode()
		if err != nil {
			return nil, err
		}
		i := &interpreter{w: w, args: []string{node}, shell: nodeShell}
		return i.prepare(task)
	},
}

var nodeJitless = &bench.Contender{
	Name: "node-jitless", Title: "Node.js without JIT", Boundary: "none", Limits: "none",
	Level: bench.NewIsolate, Tasks: []bench.Task{bench.Work},
	Prepare: onNode("node-vm.mjs", false, []string{"--jitless"}),
}

// nodeShell turns a tool into a program for Node.js and Bun.
var nodeShell = map[bench.Task]string{
	bench.Compute: `
import { readFileSync } from "node:fs";
console.log(JSON.stringify(tool(JSON.parse(readFileSync(0, "utf8")))));
`,
	bench.File: `
import { readFileSync } from "node:fs";
import { readFile, writeFile } from "node:fs/promises";
console.log(JSON.stringify(await tool(JSON.parse(readFileSync(0, "utf8")), { read: (name) => readFile(name, "utf8"), write: writeFile })));
`,
}

func findNode() (string, error) { return bench.Find("node", "apt-get install nodejs") }

// onNode runs a driver with Node.js and npm packages.
func onNode(script string, scripts bool, flags []string, packages ...string) func(context.Context, *bench.Workbench, bench.Task) (bench.Runner, error) {
	return inProcess(script, func(ctx context.Context, w *bench.Workbench) (l launch, err error) {
		node, err := findNode()
		if err == nil && len(packages) > 0 {
			l.modules, err = w.InstallNPM(ctx, scripts, packages...)
		}
		l.args = append([]string{node}, flags...)
		return l, err
	})
}

// inputOnly is the work for isolates without files.
var inputOnly = []bench.Task{bench.Compute}
