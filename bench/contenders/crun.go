package contenders

import (
	"context"
	"os"
	"strings"

	"github.com/stilehost/stile/bench"
)

var crunNode = &bench.Contender{
	Name: "crun-node", Title: "Node.js in crun", Boundary: "namespaces, no capabilities", Limits: "memory, processes, no network",
	Level: bench.NewIsolate, Tasks: bench.Tasks,
	Prepare: func(ctx context.Context, w *bench.Workbench, task bench.Task) (bench.Runner, error) {
		crun, err := bench.Find("crun", "apt-get install crun")
		if err != nil {
			return nil, err
		}
		return openOCI(ctx, w, task, "crun", withoutHybrid(crun)...)
	},
}

// withoutHybrid wraps a command on machines where version 2 cgroups are mounted beside version 1, because crun refuses to work with
// both.
func withoutHybrid(command string) []string {
	const unified = "/sys/fs/cgroup/unified"
	if mounts, _ := os.ReadFile("/proc/self/mountinfo"); !strings.Contains(string(mounts), " "+unified+" ") {
		return []string{command}
	}
	return []string{"unshare", "--mount", "--propagation", "private", "sh", "-c", "umount " + unified + ` && exec "$0" "$@"`, command}
}
