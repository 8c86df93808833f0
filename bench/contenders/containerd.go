package contenders

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/stilehost/stile/bench"
)

var containerd = &bench.Contender{
	Name: "containerd", Title: "Node.js in containerd (ctr, runc)", Boundary: "namespaces", Limits: "memory, no network",
	Level: bench.NewIsolate, Tasks: bench.Tasks,
	Prepare: func(ctx context.Context, w *bench.Workbench, task bench.Task) (bench.Runner, error) {
		const install = "apt-get install containerd"
		server, err := bench.Find("containerd", install)
		if err != nil {
			return nil, err
		}
		client, err := bench.Find("ctr", install)
		if err != nil {
			return nil, err
		}
		return openContainers(ctx, w, task, "containerd", func(s *site) (engine, error) { return openContainerd(ctx, s, server, client) })
	},
}

// containerdEngine has its own server, with the image in it.
type containerdEngine struct {
	*site
	*daemon
	client string
}

const containerdConfig = `version = 2
root = %[1]q
state = %[2]q
disabled_plugins = ["io.containerd.grpc.v1.cri"]
[grpc]
address = %[3]q
[plugins."io.containerd.internal.v1.opt"]
path = %[4]q
`

func openContainerd(ctx context.Context, s *site, server, client string) (engine, error) {
	in := func(name string) string { return filepath.Join(s.dir, name) }
	config := fmt.Sprintf(containerdConfig, in("data"), filepath.Join(s.sockets(), "state"), filepath.Join(s.sockets(), "socket"), in("opt"))
	if err := bench.WriteFiles(s.dir, map[string]string{"config.toml": config}); err != nil {
		return nil, err
	}
	e := &containerdEngine{site: s, client: client}
	var err error
	e.daemon, err = startDaemon(ctx, s.dir, s.w.Command(context.WithoutCancel(ctx), s.dir, server, "--config", in("config.toml")), func() error {
		return bench.Do(e.command(ctx, "version"))
	})
	if err != nil {
		return nil, err
	}
	return e, bench.Do(e.command(ctx, "images", "import", s.archive()))
}

func (e *containerdEngine) command(ctx context.Context, args ...string) *exec.Cmd {
	args = append([]string{"--address", filepath.Join(e.sockets(), "socket"), "--namespace", "stile"}, args...)
	cmd := e.w.Command(ctx, e.dir, e.client, args...)
	cmd.Env = append(cmd.Env, "TMPDIR="+e.dir) // it mounts images there
	return cmd
}

func (e *containerdEngine) start(ctx context.Context, name string, p plan, more ...string) *exec.Cmd {
	more = append(more, "--fifo-dir", filepath.Join(e.dir, "fifo"), "--runc-root", filepath.Join(e.dir, "runc"))
	args := append([]string{"run", "--read-only", "--memory-limit", strconv.Itoa(containerMemory), "--cgroup", "/" + e.mark() + "/" + name}, more...)
	if p.files != "" {
		args = append(args, "--mount", "type=bind,src="+p.files+",dst="+filesDir+",options=rbind:rw")
	}
	return e.command(ctx, append(append(args, imageName, name), p.command...)...)
}

// run passes the input as an argument, because ctr waits for more on stdin.
func (e *containerdEngine) run(ctx context.Context, name string, input []byte) (bench.Answer, error) {
	p := e.once()
	p.command = append(slices.Clip(p.command), string(input))
	return bench.Pipe(e.start(ctx, name, p, "--rm"), nil)
}

func (e *containerdEngine) hold(ctx context.Context, name string) error {
	return bench.Do(e.start(ctx, name, e.held(), "--detach", "--null-io"))
}

func (e *containerdEngine) remove(ctx context.Context, name string) error {
	return errors.Join(bench.Do(e.command(ctx, "tasks", "delete", "--force", name)), bench.Do(e.command(ctx, "containers", "delete", name)))
}

func (e *containerdEngine) daemons() []int { return []int{e.cmd.Process.Pid} }
func (e *containerdEngine) stop() error    { return e.daemon.stop() }
