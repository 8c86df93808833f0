package contenders

import (
	"context"
	"fmt"
	"path/filepath"
	"regexp"

	"github.com/stilehost/stile/bench"
)

const (
	nodeImports = `
import { readFileSync, renameSync, writeFileSync } from "node:fs";
import process from "node:process";
const input = () => JSON.parse(process.argv[2] ?? readFileSync(0, "utf8"));
`
	computeOnce = `console.log(JSON.stringify(tool(input())));
`
	fileOnce = `import { readFile, writeFile } from "node:fs/promises";
const files = { read: (name) => readFile("/files/" + name, "utf8"), write: (name, text) => writeFile("/files/" + name, text) };
console.log(JSON.stringify(await tool(input(), files)));
`
	computeHeld = `const name = String(Math.random());
writeFileSync("/files/" + name, JSON.stringify(tool(input())));
renameSync("/files/" + name, "/files/answer-" + name);
setInterval(() => {}, 1e9);
`
)

// nodeTool turns a tool into a program for Node.js.
func nodeTool(task bench.Task, source string) string {
	if task == bench.File {
		return source + nodeImports + fileOnce
	}
	return source + nodeImports + computeOnce
}

var library = regexp.MustCompile(`(?m)^\t(?:.* => )?(/\S+) \(0x`)

func nodeImage(ctx context.Context, w *bench.Workbench, task bench.Task) (*image, error) {
	node, err := bench.Find("node", "apt-get install nodejs")
	if err != nil {
		return nil, err
	}
	if node, err = filepath.EvalSymlinks(node); err != nil {
		return nil, err
	}
	version, err := bench.Pipe(w.Command(ctx, "", node, "--version"), nil)
	if err != nil {
		return nil, err
	}
	tools := map[string]string{"hold.mjs": bench.Source(bench.Compute, bench.StoredID) + nodeImports + computeHeld}
	for _, t := range []bench.Task{bench.Compute, bench.File} {
		tools[string(t)+".mjs"] = nodeTool(t, bench.Source(t, bench.StoredID))
	}
	key := fmt.Sprintf("image/node-%s-%s", version.Output, digest(fmt.Sprint(tools)))
	dir, err := w.Kept(key, func(dir string) error {
		libraries, err := bench.Pipe(w.Command(ctx, "", "ldd", node), nil)
		if err != nil {
			return err
		}
		files := map[string]string{"/usr/bin/node": node}
		for _, found := range library.FindAllStringSubmatch(string(libraries.Output)+"\n", -1) {
			files[found[1]] = found[1]
		}
		return writeImage(dir, files, tools)
	})
	run := []string{"/usr/bin/node", "/" + string(task) + ".mjs"}
	return &image{dir: dir, run: run, hold: []string{"/usr/bin/node", "/hold.mjs", string(bench.HoldInput())}}, err
}
