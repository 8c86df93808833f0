package contenders

import (
	"context"
	"path/filepath"

	"github.com/stilehost/stile/bench"
)

var podman = &bench.Contender{
	Name: "podman", Title: "Node.js in Podman (crun)", Boundary: "namespaces, seccomp, no capabilities", Limits: "memory, processes, no network",
	Level: bench.NewIsolate, Tasks: bench.Tasks,
	Prepare: func(ctx context.Context, w *bench.Workbench, task bench.Task) (bench.Runner, error) {
		const install = "apt-get install podman crun"
		command, err := bench.Find("podman", install)
		if err != nil {
			return nil, err
		}
		crun, err := bench.Find("crun", install)
		if err != nil {
			return nil, err
		}
		return openContainers(ctx, w, task, "podman", func(s *site) (engine, error) {
			args := append(
				withoutHybrid(command), "--root", filepath.Join(s.dir, "root"), "--runroot", s.sockets(), "--tmpdir", filepath.Join(s.dir, "tmp"),
				"--storage-driver", "overlay", "--cgroup-manager", "cgroupfs", "--events-backend", "none", "--runtime", crun,
			)
			// Limits of files and processes above ours need a capability.
			p := &podmanEngine{&cli{
				site: s, args: args, env: []string{"CONTAINERS_CONF=" + filepath.Join(s.dir, "containers.conf")},
				own: []string{"--ulimit", "nofile=1024:1024", "--ulimit", "nproc=32768:32768"},
			}}
			// Its usual locks are in memory that all containers of a user share.
			if err := bench.WriteFiles(s.dir, map[string]string{"containers.conf": "[engine]\nlock_type = \"file\"\n"}); err != nil {
				return p, err
			}
			return p, bench.Do(p.command(ctx, "load", "--input", s.archive()))
		})
	},
}

// podmanEngine removes containers in its own way.
type podmanEngine struct{ *cli }

// remove does not wait for the tool to stop by itself.
func (e *podmanEngine) remove(ctx context.Context, name string) error {
	return bench.Do(e.command(ctx, "rm", "--force", "--time", "0", name))
}
