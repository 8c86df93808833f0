package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/schollz/progressbar/v3"

	"github.com/stilehost/stile/bench"
	"github.com/stilehost/stile/bench/contenders"
)

type runCommand struct {
	Out     string   `help:"Write to this folder." placeholder:"DIR" required:""`
	Quick   bool     `help:"Take about a minute: does everything work?" xor:"size"`
	Full    bool     `help:"Take about 15 minutes, for figures that can be shown. This is the default." xor:"size"`
	Only    []string `help:"Run only these measurements: ${measurements}." placeholder:"NAME,..."`
	With    []string `help:"Run only these contenders." placeholder:"NAME,..."`
	Host    []string `help:"Put this host of the conformance suite's protocol beside ours: a program and its arguments, with spaces between them. Can be repeated." placeholder:"COMMAND" sep:"none"`
	Require []string `help:"Fail when one of these contenders is not available." placeholder:"NAME,..."`
}

// Help implements kong's help provider.
func (runCommand) Help() string {
	return `Examples:

  stile bench run --quick --out /tmp/bench
  stile bench run --only start,throughput --with stile,node,crun-node --out /tmp/bench
  stile bench run --only hosts --host 'node conformance/jco/host.mjs' --out /tmp/bench`
}

// Run implements a command.
func (c *runCommand) Run(ctx context.Context, s *streams) error {
	chosen, err := chooseContenders(c.With)
	if err != nil {
		return err
	}
	hosts, err := c.hosts()
	if err != nil {
		return err
	}
	at, err := findPlace()
	if err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	size := bench.Full
	if c.Quick {
		size = bench.Quick
	}
	err = bench.Run(ctx, bench.Options{
		Contenders: chosen, Own: contenders.Own, Require: c.Require, Only: c.Only, Hosts: hosts, Size: size, Dir: c.Out, Progress: showProgress(s),
		Workbench: bench.Workbench{Cache: filepath.Join(at.cache, "bench"), Self: self, Stile: at.stile, Engine: at.engine},
	})
	if err != nil {
		return err
	}
	return writeReport(s, c.Out)
}

// hosts are the command lines of the hosts.
func (c *runCommand) hosts() (all [][]string, err error) {
	for _, text := range c.Host {
		command := strings.Fields(text)
		if len(command) == 0 {
			return nil, &usageError{errors.New("--host: there is no command")}
		}
		all = append(all, command)
	}
	chosen := slices.Contains(c.Only, "hosts")
	switch {
	case chosen && len(all) == 0:
		return nil, &usageError{errors.New("--only hosts: name a host with --host COMMAND")}
	case len(all) > 0 && len(c.Only) > 0 && !chosen:
		return nil, &usageError{errors.New("--host: the measurement hosts is not among those of --only")}
	}
	return all, nil
}

// chooseContenders are those of the names, or all.
func chooseContenders(names []string) ([]*bench.Contender, error) {
	all := contenders.All()
	if len(names) == 0 {
		return all, nil
	}
	byName, known := map[string]*bench.Contender{}, []string{}
	for _, c := range all {
		byName[c.Name], known = c, append(known, c.Name)
	}
	var chosen []*bench.Contender
	for _, name := range names {
		c := byName[name]
		if c == nil {
			return nil, &usageError{fmt.Errorf("there is no contender %q; there are %s", name, strings.Join(known, ", "))}
		}
		chosen = append(chosen, c)
	}
	return chosen, nil
}

// showProgress shows a person how far a run is, and otherwise writes a line now and then.
func showProgress(s *streams) func(what string, done, steps int) {
	if !s.interactive() {
		said := time.Time{}
		return func(what string, done, steps int) {
			if time.Since(said) > 10*time.Second {
				said = time.Now()
				s.say("%s (%d of %d)", what, done+1, steps)
			}
		}
	}
	bar := progressbar.NewOptions(1, progressbar.OptionSetWriter(s.err), progressbar.OptionSetWidth(20), progressbar.OptionClearOnFinish(), progressbar.OptionSetPredictTime(false))
	return func(what string, done, steps int) {
		bar.ChangeMax(steps)
		bar.Describe(fmt.Sprintf("%-40.40s", what))
		_ = bar.Set(done)
	}
}

// serveCommand runs part of a measurement in a separate process, until stdin ends.
type serveCommand struct {
	N      int    `arg:""`
	Dir    string `required:"" type:"existingdir" help:"Where the run works."`
	Engine string `help:"Where the engine is."`
}

func (c *serveCommand) workbench() *bench.Workbench {
	return &bench.Workbench{Dir: c.Dir, Engine: c.Engine}
}

type holdCommand struct{ serveCommand }

// Run implements a command.
func (c *holdCommand) Run(ctx context.Context, s *streams) error {
	return contenders.HoldStile(ctx, c.workbench(), c.N, s.in, s.out)
}

type agentsCommand struct{ serveCommand }

// Run implements a command.
func (c *agentsCommand) Run(ctx context.Context, s *streams) error {
	return contenders.ServeAgents(ctx, c.workbench(), c.N, s.in, s.out)
}
