package contenders

import (
	"context"
	"crypto/sha256"
	"fmt"
	"path/filepath"
	"regexp"

	"github.com/stilehost/stile/bench"
)

// image is what a container has: a root file system with a tool in it.
type image struct {
	dir string
	// run is the command of the tool, which takes its input from an argument or else from stdin. hold is that of one which puts its
	// answer into a new file in filesDir and then idles.
	run, hold []string
}

// filesDir is where a container finds the folder of the task bench.File.
const filesDir = "/files"

func (i *image) root() string { return filepath.Join(i.dir, "root") }

// archive is the image as `docker save` would write it.
func (i *image) archive() string { return filepath.Join(i.dir, "image.tar") }

// imageOf makes the image for a task, or takes it from the cache.
func imageOf(ctx context.Context, w *bench.Workbench, task bench.Task) (*image, error) {
	if task == bench.Hello {
		return helloImage(ctx, w)
	}
	return nodeImage(ctx, w, task)
}

func helloImage(ctx context.Context, w *bench.Workbench) (*image, error) {
	cc, err := bench.Find("cc", "apt-get install gcc libc6-dev")
	if err != nil {
		return nil, err
	}
	source := bench.Source(bench.Hello, bench.StoredID)
	dir, err := w.Kept("image/hello-"+digest(source), func(dir string) error {
		if err := bench.WriteFiles(dir, map[string]string{"hello.c": source}); err != nil {
			return err
		}
		hello := filepath.Join(dir, "hello")
		if err := bench.Do(w.Command(ctx, dir, cc, "-static", "-O2", "-o", hello, "hello.c")); err != nil {
			return &bench.UnavailableError{Reason: "no static C program can be built: " + err.Error(), Install: "apt-get install libc6-dev"}
		}
		return writeImage(dir, map[string]string{"/hello": hello}, nil)
	})
	return &image{dir: dir, run: []string{"/hello"}}, err
}

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

// nodeTool makes a tool a program for Node.js.
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

func digest(text string) string { return fmt.Sprintf("%x", sha256.Sum256([]byte(text)))[:12] }
