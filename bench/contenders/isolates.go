package contenders

import (
	"context"
	"embed"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/stilehost/stile/bench"
)

// Close ends the process, and all isolates in it.
func (d *driver) Close() error {
	err := errors.Join(d.in.Close(), d.cmd.Process.Kill())
	<-d.ended
	_ = d.cmd.Wait() // reports that it was killed
	return err
}

// isolates is a driver that can be started again, to keep isolates in a process that holds nothing else.
type isolates struct {
	*driver
	start func() (*driver, error)
}

func newIsolates(start func() (*driver, error)) (bench.Runner, error) {
	d, err := start()
	if err != nil {
		return nil, err
	}
	return isolates{d, start}, nil
}

func (i isolates) Hold(ctx context.Context, n int) (bench.Held, error) {
	d, err := i.start()
	if err != nil {
		return bench.Held{}, err
	}
	for range n {
		t := bench.Trial{Source: bench.Source(bench.Compute, bench.StoredID), Input: bench.HoldInput()}
		if _, err := d.request(ctx, t, 1); err != nil {
			return bench.Held{}, errors.Join(err, d.Close())
		}
	}
	return bench.Held{Processes: []int{d.cmd.Process.Pid}, Release: d.Close}, nil
}

// launch is a program that runs drivers: the arguments before a driver, additional environment, and the folder with a driver's
// imports, if it has any.
type launch struct {
	args, env []string
	modules   string
}

// inProcess prepares isolates in a process that runs a driver.
func inProcess(script string, find func(ctx context.Context, w *bench.Workbench) (launch, error)) func(context.Context, *bench.Workbench, bench.Task) (bench.Runner, error) {
	return func(ctx context.Context, w *bench.Workbench, _ bench.Task) (bench.Runner, error) {
		l, err := find(ctx, w)
		if err != nil {
			return nil, err
		}
		dir, err := unpack(w, drivers, "drivers")
		if err != nil {
			return nil, err
		}
		if l.modules != "" {
			if err := os.Symlink(filepath.Join(l.modules, "node_modules"), filepath.Join(dir, "node_modules")); err != nil {
				return nil, err
			}
		}
		args := append(slices.Clone(l.args[1:]), filepath.Join(dir, script))
		return newIsolates(func() (*driver, error) {
			cmd := w.Command(context.WithoutCancel(ctx), dir, l.args[0], args...)
			cmd.Env = append(cmd.Env, l.env...)
			return startDriver(w, cmd)
		})
	}
}

// unpack writes files to a new folder.
func unpack(w *bench.Workbench, files embed.FS, from string) (string, error) {
	dir, err := w.Folder(from)
	if err != nil {
		return "", err
	}
	sub, err := fs.Sub(files, from)
	if err != nil {
		return "", err
	}
	return dir, os.CopyFS(dir, sub)
}
