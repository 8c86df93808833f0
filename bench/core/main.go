// Command core measures the promises of Stile's core about speed and size, beside a prototype of the same method and a loop in C. It
// prints a table and writes it as JSON. bench/README.md says how each figure is taken.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"runtime/pprof"
	"strings"

	"github.com/stilehost/stile/bench/internal/measure"
	"github.com/stilehost/stile/host"
	"github.com/stilehost/stile/toolchain"
)

// bench is one run.
type bench struct {
	dir     string // caches and the C program's input; removed at the end
	quick   bool
	quickjs []byte // the engine as npm delivers it
	// packages is the folder in which npm puts it.
	packages string

	trials string // the C program, once it is compiled
	engine string // the name under which components import the engine

	earlier string // a revision to compare with, or ""

	rows []row
}

// rounds is how many rounds to run when a full run has n.
func (b *bench) rounds(n int) int {
	if b.quick {
		return max(3, n/10)
	}
	return n
}

// add adds a row, and checks whether its target is met.
func (b *bench) add(r row) {
	if r.Missing == "" && (r.AtMost != 0 || r.AtLeast != 0) {
		met := (r.AtMost == 0 || r.Value <= r.AtMost) && r.Value >= r.AtLeast
		r.Met = &met
	}
	b.rows = append(b.rows, r)
}

// measurements run in this order. Those of memory come first, before the process has grown.
var measurements = []struct {
	name    string
	measure func(context.Context, *bench, *subject) error
	options host.Options
}{
	{"memory", measureMemory, host.Options{PackedMemory: 1}},
	{"growth", measureGrowth, host.Options{}},
	{"waiting", measureWaiting, host.Options{}},
	{"earlier", measureEarlier, host.Options{}},
	{"save", measureSave, host.Options{}},
	{"cold", measureCold, host.Options{}},
	{"instantiate", measureInstantiate, host.Options{}},
	{"guest", measureGuest, host.Options{PackedMemory: 1}},
	{"throughput", measureThroughput, host.Options{}},
	{"capability", measureCapability, host.Options{}},
	{"bodies", measureBodies, host.Options{}},
	{"end", measureEnd, host.Options{}},
	{"ladder", measureLadder, host.Options{}},
	{"types", measureTypes, host.Options{}},
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context) (err error) {
	out := flag.String("out", "out/core.json", "write the figures to this `file`, and to one that ends in .md; the engine is kept beside it")
	only := flag.String("only", "", "run the measurements whose names match this `pattern`: memory, growth, waiting, earlier, save, cold, instantiate, guest, throughput, capability, bodies, end, ladder, types")
	quick := flag.Bool("quick", false, "run a tenth of the rounds, to see that everything works")
	strict := flag.Bool("strict", false, "fail when a target is missed")
	earlier := flag.String("earlier", "", "compare with this `revision`, too, which is built from the history; takes a minute more")
	profile := flag.String("cpuprofile", "", "write a CPU profile to this `file`")
	flag.Parse()

	if os.Getenv("GOGC") == "" { // as stile does
		host.CollectLater()
	}
	wanted, err := regexp.Compile(*only)
	if err != nil {
		return err
	}
	packages, err := filepath.Abs(filepath.Join(filepath.Dir(*out), "engine"))
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(packages), 0o755); err != nil {
		return err
	}
	b := &bench{quick: *quick, packages: packages, earlier: *earlier}
	if b.dir, err = os.MkdirTemp(filepath.Dir(packages), "core-"); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(b.dir)) }()
	m := measure.DescribeMachine(ctx)
	if b.quickjs, err = obtainEngine(ctx, toolchain.EnginePackage(), packages); err != nil {
		return fmt.Errorf("obtain the engine: %w", err)
	}
	if *profile != "" {
		f, err := os.Create(*profile)
		if err != nil {
			return err
		}
		defer f.Close()
		if err := pprof.StartCPUProfile(f); err != nil {
			return err
		}
		defer pprof.StopCPUProfile()
	}
	for _, measurement := range measurements {
		if !wanted.MatchString(measurement.name) {
			continue
		}
		fmt.Fprintf(os.Stderr, "%s ...\n", measurement.name)
		s, err := b.newSubject(ctx, measurement.options)
		if err != nil {
			return fmt.Errorf("set up: %w", err)
		}
		if os.Getenv("GOMAXPROCS") == "" { // as stile serve does
			host.RaiseMaxProcs()
		}
		if err := errors.Join(measurement.measure(ctx, b, s), s.close()); err != nil {
			return fmt.Errorf("%s: %w", measurement.name, err)
		}
	}
	m.LoadAfter = measure.Load()
	if err := writeTable(os.Stdout, m, b.rows); err != nil {
		return err
	}
	if err := writeJSON(*out, m, b.rows); err != nil {
		return err
	}
	if err := writeMarkdown(strings.TrimSuffix(*out, ".json")+".md", m, b.rows); err != nil {
		return err
	}
	missed := 0
	for _, r := range b.rows {
		if r.Met != nil && !*r.Met {
			missed++
		}
	}
	if missed > 0 && *strict {
		return fmt.Errorf("%d targets are missed", missed)
	}
	return nil
}
