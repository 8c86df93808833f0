package contenders

import (
	"context"
	"crypto/sha256"
	"fmt"
	"path/filepath"

	"github.com/stilehost/stile/bench"
)

// image is a root file system with a tool in it, for containers.
type image struct {
	dir string
	// run is the command of the tool, which takes its input from an argument or from stdin. hold is the command of one that writes
	// its answer to a new file in filesDir and then idles.
	run, hold []string
}

// filesDir is where a container finds the folder of the task bench.File.
const filesDir = "/files"

func (i *image) root() string { return filepath.Join(i.dir, "root") }

// archive is the image as `docker save` would write it.
func (i *image) archive() string { return filepath.Join(i.dir, "image.tar") }

// imageOf makes the image for a task, or takes it from the cache.
func imageOf(ctx context.Context, w *bench.Workbench, task bench.Task) (*image, error) {
	if task == bench.Hello {
		return helloImage(ctx, w)
	}
	return nodeImage(ctx, w, task)
}

func helloImage(ctx context.Context, w *bench.Workbench) (*image, error) {
	cc, err := bench.Find("cc", "apt-get install gcc libc6-dev")
	if err != nil {
		return nil, err
	}
	source := bench.Source(bench.Hello, bench.StoredID)
	dir, err := w.Kept("image/hello-"+digest(source), func(dir string) error {
		if err := bench.WriteFiles(dir, map[string]string{"hello.c": source}); err != nil {
			return err
		}
		hello := filepath.Join(dir, "hello")
		if err := bench.Do(w.Command(ctx, dir, cc, "-static", "-O2", "-o", hello, "hello.c")); err != nil {
			return &bench.UnavailableError{Reason: "no static C program can be built: " + err.Error(), Install: "apt-get install libc6-dev"}
		}
		return writeImage(dir, map[string]string{"/hello": hello}, nil)
	})
	return &image{dir: dir, run: []string{"/hello"}}, err
}

func digest(text string) string { return fmt.Sprintf("%x", sha256.Sum256([]byte(text)))[:12] }
