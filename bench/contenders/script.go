package contenders

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/stilehost/stile/bench"
)

// interpreter runs a tool from a file in a separate process. Its files are plain ones: nothing waits for the disk.
type interpreter struct {
	w    *bench.Workbench
	dir  string // where the tool is
	args []string
	env  []string
	// shell turns a tool into a program that reads its input from stdin and writes its answer.
	shell map[bench.Task]string
}

func (i *interpreter) prepare(task bench.Task) (_ bench.Runner, err error) {
	if i.dir, err = i.w.Folder("tool"); err != nil {
		return nil, err
	}
	files := map[string]string{
		"tool.mjs": bench.Source(task, bench.StoredID) + i.shell[task],
		"state":    bench.NoState,
		"hold.mjs": fmt.Sprintf("import process from \"node:process\";\n%s\nconsole.log(JSON.stringify(tool(%s)));\nprocess.stdin.resume();\n",
			bench.Source(bench.Compute, bench.StoredID), bench.HoldInput()),
	}
	return i, bench.WriteFiles(i.dir, files)
}

func (i *interpreter) command(ctx context.Context, script string) *exec.Cmd {
	args := append(append([]string{}, i.args[1:]...), filepath.Join(i.dir, script))
	cmd := i.w.Command(ctx, i.dir, i.args[0], args...)
	cmd.Env = append(cmd.Env, i.env...)
	return cmd
}

func (i *interpreter) Run(ctx context.Context, t bench.Trial) (bench.Answer, error) {
	return bench.Pipe(i.command(ctx, "tool.mjs"), t.Input)
}

func (i *interpreter) Hold(ctx context.Context, n int) (bench.Held, error) {
	return holdEach(n, func() (bench.Held, error) { return holdProcess(i.command(ctx, "hold.mjs")) })
}

func (i *interpreter) Close() error { return os.RemoveAll(i.dir) }

// holdEach calls hold n times and keeps the results.
func holdEach(n int, hold func() (bench.Held, error)) (all bench.Held, err error) {
	var releases []func() error
	all.Release = func() error {
		var errs []error
		for _, release := range releases {
			errs = append(errs, release())
		}
		return errors.Join(errs...)
	}
	for range n {
		one, err := hold()
		if err != nil {
			return bench.Held{}, errors.Join(err, all.Release())
		}
		all.Processes, releases = append(all.Processes, one.Processes...), append(releases, one.Release)
	}
	return all, nil
}

// listens waits until a started program listens on a socket.
func listens(ctx context.Context, socket string) (err error) {
	for range 1000 {
		var c net.Conn
		if c, err = (&net.Dialer{}).DialContext(ctx, "unix", socket); err == nil {
			return c.Close()
		}
		if ctx.Err() != nil {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	return err
}
