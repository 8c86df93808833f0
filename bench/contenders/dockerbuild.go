package contenders

import (
	"context"
	"errors"
	"os"
	"path/filepath"

	"github.com/stilehost/stile/bench"
)

var dockerBuild = &bench.Contender{
	Name: "docker-build", Title: "docker build and run", Boundary: docker.Boundary, Limits: docker.Limits,
	Level: bench.NewCode, Tasks: []bench.Task{bench.Compute, bench.File},
	Prepare: func(ctx context.Context, w *bench.Workbench, task bench.Task) (bench.Runner, error) {
		server, client, err := findDocker()
		if err != nil {
			return nil, err
		}
		var e engine
		c, err := openContainers(ctx, w, task, "docker-build", func(s *site) (engine, error) {
			e, err = openDocker(ctx, s, server, client)
			return e, err
		})
		if err != nil {
			return nil, err
		}
		return &imageBuilder{c.(*containers), e.(*dockerEngine)}, nil
	},
}

// imageBuilder builds an image of every source, and runs it. It keeps none.
type imageBuilder struct {
	containers *containers
	docker     *dockerEngine
}

// Run returns when the image is gone.
func (b *imageBuilder) Run(ctx context.Context, t bench.Trial) (answer bench.Answer, err error) {
	name, p := b.containers.name(), b.docker.once()
	dir := filepath.Join(b.docker.dir, name)
	err = bench.WriteFiles(dir, map[string]string{
		"Dockerfile": "FROM " + imageName + "\nCOPY tool.mjs /tool.mjs\nENTRYPOINT [\"/usr/bin/node\", \"/tool.mjs\"]\n",
		"tool.mjs":   nodeTool(b.docker.task, t.Source),
	})
	if err != nil {
		return answer, err
	}
	if err := bench.Do(b.docker.command(ctx, "build", "--quiet", "--tag", name, dir)); err != nil {
		return answer, err
	}
	p.command = []string{string(t.Input)}
	answer, err = bench.Pipe(b.docker.start(ctx, name, name, p, "--rm"), nil)
	if err != nil {
		_ = b.containers.removeAll(ctx, name) // it may have gone already; Close checks
		return answer, err
	}
	return answer, errors.Join(bench.Do(b.docker.command(ctx, "rmi", name)), os.RemoveAll(dir))
}

// Close stops the server, with everything it has.
func (b *imageBuilder) Close() error { return b.containers.Close() }
