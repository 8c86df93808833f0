package contenders

import (
	"context"

	"github.com/stilehost/stile/bench"
)

var bwrapNode = &bench.Contender{
	Name: "bwrap-node", Title: "Node.js in bubblewrap", Boundary: "namespaces, no capabilities", Limits: "no network",
	Level: bench.NewIsolate, Tasks: bench.Tasks,
	Prepare: func(ctx context.Context, w *bench.Workbench, task bench.Task) (bench.Runner, error) {
		path, err := bench.Find("bwrap", "apt-get install bubblewrap")
		if err != nil {
			return nil, err
		}
		s, err := openSite(ctx, w, task, "bwrap")
		return &bubblewrap{s, path}, err
	},
}

// bubblewrap leaves nothing running after its command.
type bubblewrap struct {
	*site
	path string
}

func (b *bubblewrap) Run(ctx context.Context, t bench.Trial) (bench.Answer, error) {
	args := []string{
		"--unshare-all", "--die-with-parent", "--cap-drop", "ALL", "--clearenv",
		"--ro-bind", b.root(), "/", "--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp",
	}
	p := b.once()
	if p.files != "" {
		args = append(args, "--bind", p.files, filesDir)
	}
	return bench.Pipe(b.w.Command(ctx, b.dir, b.path, append(args, p.command...)...), t.Input)
}

func (b *bubblewrap) Close() error { return clean(b.mark(), b.dir) }
