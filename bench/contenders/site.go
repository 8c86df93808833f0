package contenders

import (
	"context"
	"errors"
	"os"
	"path/filepath"

	"github.com/stilehost/stile/bench"
)

// site is where an engine works.
type site struct {
	*image
	w    *bench.Workbench
	dir  string
	task bench.Task
}

// openSite makes the folder of an engine, with the folders of its containers.
func openSite(ctx context.Context, w *bench.Workbench, task bench.Task, name string) (*site, error) {
	image, err := imageOf(ctx, w, task)
	if err != nil {
		return nil, err
	}
	dir, err := w.Folder("stile-" + name)
	if err != nil {
		return nil, err
	}
	s := &site{image, w, dir, task}
	return s, bench.WriteFiles(dir, map[string]string{"run/state": bench.NoState, "hold/state": bench.NoState})
}

// mark is part of the name of everything that the engine makes.
func (s *site) mark() string { return filepath.Base(s.dir) }

// sockets is a folder with a short path, which sockets need. Only root can make it.
func (s *site) sockets() string { return filepath.Join("/run", s.mark()) }

// plan is a container that runs to its end, or is kept.
type plan struct {
	command []string
	files   string // the folder for filesDir; empty if there is none
}

func (s *site) once() plan {
	if s.task == bench.File {
		return plan{s.run, filepath.Join(s.dir, "run")}
	}
	return plan{command: s.run}
}

func (s *site) held() plan { return plan{s.hold, filepath.Join(s.dir, "hold")} }

// openContainers prepares an engine, or leaves nothing behind.
func openContainers(ctx context.Context, w *bench.Workbench, task bench.Task, name string, open func(*site) (engine, error)) (bench.Runner, error) {
	if os.Geteuid() != 0 {
		return nil, bench.Unavailable("containers are measured as root, and this is another user")
	}
	s, err := openSite(ctx, w, task, name)
	if err != nil {
		return nil, err
	}
	c := &containers{site: s}
	if err = os.Mkdir(s.sockets(), 0o700); err == nil {
		c.engine, err = open(s)
	}
	if err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}
