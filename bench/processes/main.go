// Command processes measures whole commands from start to end, which is the time that a person at a terminal waits, and compares them
// with the start of Node.js. Each trial of a command follows one of `node -e 0`, so that drift of the machine cancels in the ratio.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"text/tabwriter"
	"time"

	"github.com/stilehost/stile/bench/internal/measure"
)

const tool = `import { extension } from "stile";

export default extension({
  tools: { add: { description: "Adds", run: ({ a, b }: { a: number; b: number }) => ({ sum: a + b }) } },
});
`

// place is where the program under test keeps things.
type place struct{ stile, engine, file, home, cache string }

// command is what a row measures. prepare, if any, runs before each trial, and is not counted.
type command struct {
	key, what string
	trials    int // percent of the trials that -trials asks for
	args      []string
	output    string
	prepare   func(p *place) error
}

var run = []string{"run", "tool.ts", "add", "--input", `{"a": 2, "b": 3}`}

const sum = "{\"sum\":5}\n"

var commands = []command{
	{"version", "`stile version`", 100, []string{"version"}, "", nil},
	{"run", "`stile run tool.ts add`, again", 100, run, sum, nil},
	{"run_edited", "the same after tool.ts was edited", 30, run, sum, func(p *place) error {
		return os.WriteFile(p.file, fmt.Appendf(nil, "%s// %d\n", tool, time.Now().UnixNano()), 0o600)
	}},
	{"new_home", "`stile run tool.ts add` in a new STILE_HOME, with what the user has in the cache", 30, run, sum, func(p *place) error {
		p.home = p.fresh("home")
		return nil
	}},
	{"empty_cache", "the same in a new STILE_HOME with a new STILE_CACHE", 5, run, sum, func(p *place) error {
		p.home, p.cache = p.fresh("home"), p.fresh("cache")
		return nil
	}},
}

// fresh names a folder that does not exist yet.
func (p *place) fresh(what string) string {
	return filepath.Join(filepath.Dir(p.file), fmt.Sprintf("%s-%d", what, time.Now().UnixNano()))
}

type row struct {
	Key     string           `json:"key"`
	Trials  int              `json:"trials"`
	WallMS  measure.Estimate `json:"wall_ms"`
	CPUMS   measure.Estimate `json:"cpu_ms"`
	OfNode  measure.Estimate `json:"wall_over_node"`
	CPUNode measure.Estimate `json:"cpu_over_node"`
}

func main() {
	stile := flag.String("stile", filepath.Join("..", "bin", "stile"), "the program to measure")
	engine := flag.String("engine", os.Getenv("STILE_ENGINE"), "folder or zip file with the JavaScript engine, so that an empty cache needs no network; default: npm brings it")
	out := flag.String("out", "", "file for the figures, as JSON")
	scale := flag.Int("trials", 20, "trials of the rows that have the most; others have fewer")
	flag.Parse()
	if err := measureAll(context.Background(), *stile, *engine, *out, *scale); err != nil {
		fmt.Fprintln(os.Stderr, "bench/processes:", err)
		os.Exit(1)
	}
}

func measureAll(ctx context.Context, stile, engine, out string, scale int) (err error) {
	if stile, err = filepath.Abs(stile); err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "stile-processes-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	p := &place{stile, engine, filepath.Join(dir, "tool.ts"), filepath.Join(dir, "data", "stile"), filepath.Join(dir, "cache")}
	if err := os.WriteFile(p.file, []byte(tool), 0o600); err != nil {
		return err
	}
	var rows []row
	fmt.Printf("load %s\n", measure.Load())
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	// Flush reports what cannot be written.
	_, _ = fmt.Fprintln(w, "row\ttrials\twall ms\tof node\tprocessor ms\tof node\t\t")
	for _, c := range commands {
		r, err := c.measure(ctx, p, max(2, c.trials*scale/100))
		if err != nil {
			return fmt.Errorf("%s: %w", c.key, err)
		}
		rows = append(rows, r)
		_, _ = fmt.Fprintf(w, "%s\t%d\t%.1f\t%.2f\t%.1f\t%.2f\t\t\n", r.Key, r.Trials, r.WallMS.Median, r.OfNode.Median, r.CPUMS.Median, r.CPUNode.Median)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	for _, c := range commands {
		fmt.Printf("%s: %s\n", c.key, c.what)
	}
	if out == "" {
		return nil
	}
	text, err := json.MarshalIndent(rows, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(out, append(text, '\n'), 0o600)
}

func (c command) measure(ctx context.Context, p *place, trials int) (row, error) {
	var wall, cpu, nodeWall, nodeCPU measure.Series
	for i := range trials + 1 {
		node := exec.CommandContext(ctx, "node", "-e", "0")
		w0, c0, err := timed(node, "")
		if err != nil {
			return row{}, err
		}
		if c.prepare != nil {
			if err := c.prepare(p); err != nil {
				return row{}, err
			}
		}
		cmd := exec.CommandContext(ctx, p.stile, c.args...)
		cmd.Dir = filepath.Dir(p.file)
		// The first home is the standard one. A new home adopts its key.
		cmd.Env = append(os.Environ(), "STILE_HOME="+p.home, "STILE_CACHE="+p.cache, "XDG_DATA_HOME="+filepath.Join(cmd.Dir, "data"), "STILE_ENGINE="+p.engine, "STILE_KEYRING=off")
		w1, c1, err := timed(cmd, c.output)
		if err != nil {
			return row{}, err
		}
		if i > 0 { // the first is not counted
			wall, cpu = append(wall, []float64{w1}), append(cpu, []float64{c1})
			nodeWall, nodeCPU = append(nodeWall, []float64{w0}), append(nodeCPU, []float64{c0})
		}
	}
	return row{c.key, trials, wall.Estimate(), cpu.Estimate(), wall.Over(nodeWall), cpu.Over(nodeCPU)}, nil
}

// timed runs a command and returns its wall time and processor time in milliseconds. It fails unless the output is as expected. An
// empty expectation accepts any output.
func timed(cmd *exec.Cmd, output string) (wall, cpu float64, err error) {
	var said, wrong bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &wrong
	start := time.Now()
	err = cmd.Run()
	took := time.Since(start)
	if err == nil && output != "" && said.String() != output {
		err = fmt.Errorf("it says %q, and not %q", said.String(), output)
	}
	if err != nil {
		return 0, 0, fmt.Errorf("%s: %w: %s", cmd, err, wrong.String())
	}
	used := cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	return milliseconds(took), milliseconds(used), nil
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
