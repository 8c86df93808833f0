package contenders

import (
	"context"
	"encoding/json"
	"path/filepath"

	"github.com/stilehost/stile/bench"
)

var docker = &bench.Contender{
	Name: "docker", Title: "Node.js in Docker (runc)", Boundary: "namespaces, seccomp, no capabilities", Limits: "memory, processes, no network",
	Level: bench.NewIsolate, Tasks: bench.Tasks,
	Prepare: func(ctx context.Context, w *bench.Workbench, task bench.Task) (bench.Runner, error) {
		server, client, err := findDocker()
		if err != nil {
			return nil, err
		}
		return openContainers(ctx, w, task, "docker", func(s *site) (engine, error) { return openDocker(ctx, s, server, client) })
	},
}

func findDocker() (server, client string, err error) {
	const install = "apt-get install docker.io"
	if server, err = bench.Find("dockerd", install); err == nil {
		client, err = bench.Find("docker", install)
	}
	return server, client, err
}

// dockerEngine has its own server, with the image loaded.
type dockerEngine struct {
	*cli
	*daemon
	pids []int
}

func openDocker(ctx context.Context, s *site, server, client string) (engine, error) {
	host := "unix://" + filepath.Join(s.sockets(), "socket")
	config, err := json.Marshal(map[string]any{
		"data-root": filepath.Join(s.dir, "data"), "exec-root": filepath.Join(s.sockets(), "exec"), "pidfile": filepath.Join(s.dir, "pid"),
		"hosts": []string{host}, "bridge": "none", "iptables": false, "ip6tables": false, "ip-forward": false, "ip-masq": false,
		"storage-driver": "overlay2",
	})
	if err != nil {
		return nil, err
	}
	file := filepath.Join(s.dir, "daemon.json")
	if err := bench.WriteFiles(s.dir, map[string]string{"daemon.json": string(config)}); err != nil {
		return nil, err
	}
	c := &cli{site: s, args: []string{client, "--host", host, "--config", filepath.Join(s.dir, "client")}}
	// ctx ends after preparing, and the server stays.
	d, err := startDaemon(ctx, s.dir, s.w.Command(context.WithoutCancel(ctx), s.dir, server, "--config-file", file), func() error {
		return bench.Do(c.command(ctx, "version"))
	})
	if err != nil {
		return nil, err
	}
	e := &dockerEngine{c, d, processesOf(s.mark())}
	return e, bench.Do(c.command(ctx, "load", "--input", s.archive()))
}

func (e *dockerEngine) daemons() []int { return e.pids }
func (e *dockerEngine) stop() error    { return e.daemon.stop() }
