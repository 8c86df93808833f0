// Command workspace compares workspaces with plain files, in the same run and on the same file system. It writes, lists, searches
// and moves 10,000 small files, and moves a large one in and out by blob.
package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/stilehost/stile/capabilities/blob"
	"github.com/stilehost/stile/capabilities/workspace"
)

const (
	files   = 10_000
	large   = 100 << 20
	matches = files / 100 // matches of the word that is searched for
)

// subject is one way to keep files.
type subject struct {
	name  string
	steps map[string]func() error
}

// steps are what is measured, in this order.
var steps = []string{"write", "write again", "list", "grep", "move", "blob in", "blob out", "remove"}

type row struct {
	Step string `json:"step"`
	// Milliseconds of each subject, and their ratios to plain files.
	Milliseconds map[string]float64 `json:"ms"`
	Ratio        map[string]float64 `json:"ratio"`
}

func main() {
	out := flag.String("out", "", "file for the figures, as JSON")
	dir := flag.String("dir", "", "folder to work in, on the file system that is meant; default: a temporary one in bench/out")
	flag.Parse()
	if err := run(context.Background(), *dir, *out); err != nil {
		fmt.Fprintln(os.Stderr, "bench/workspace:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, dir, out string) (err error) {
	if dir == "" {
		dir = filepath.Join("bench", "out")
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	if dir, err = os.MkdirTemp(dir, "workspace-"); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	content := make([]byte, large)
	if _, err := rand.Read(content); err != nil {
		return err
	}
	source := blob.New("", content)

	store, err := workspace.Open(ctx, filepath.Join(dir, "store.db"), workspace.Options{BlobDir: dir})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	disk, plain, synced := filepath.Join(dir, "disk"), filepath.Join(dir, "plain"), filepath.Join(dir, "synced")
	for _, d := range []string{disk, plain, synced} {
		if err := os.Mkdir(d, 0o755); err != nil {
			return err
		}
	}
	directory, err := workspace.OpenDisk(disk, workspace.DiskOptions{BlobDir: dir})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, directory.Close()) }()

	// Plain files come first in each row. The ratios are to synced files, which is what a workspace promises.
	subjects := []subject{
		{"synced files", onFiles(synced, source, true)},
		{"plain files", onFiles(plain, source, false)},
		{"store", onDirectory(ctx, store.Workspace("bench"), source)},
		{"dir", onDirectory(ctx, directory.Directory(), source)},
	}
	rows := make([]row, len(steps))
	for i, step := range steps {
		rows[i] = row{step, map[string]float64{}, map[string]float64{}}
		for _, s := range subjects {
			runtime.GC()
			start := time.Now()
			if err := s.steps[step](); err != nil {
				return fmt.Errorf("%s, %s: %w", s.name, step, err)
			}
			rows[i].Milliseconds[s.name] = float64(time.Since(start).Microseconds()) / 1000
		}
		for _, s := range subjects[1:] {
			rows[i].Ratio[s.name] = rows[i].Milliseconds[s.name] / rows[i].Milliseconds[subjects[0].name]
		}
	}
	return report(subjects, rows, out)
}

func report(subjects []subject, rows []row, out string) error {
	t := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	heads := []string{"ms (and ratio to synced files)"}
	for _, s := range subjects {
		heads = append(heads, s.name)
	}
	lines := []string{strings.Join(heads, "\t")}
	for _, r := range rows {
		cells := []string{r.Step}
		for i, s := range subjects {
			cell := fmt.Sprintf("%.0f", r.Milliseconds[s.name])
			if i > 0 {
				cell += fmt.Sprintf(" (%.2f)", r.Ratio[s.name])
			}
			cells = append(cells, cell)
		}
		lines = append(lines, strings.Join(cells, "\t"))
	}
	if _, err := io.WriteString(t, strings.Join(lines, "\t\n")+"\t\n"); err != nil {
		return err
	}
	if err := t.Flush(); err != nil || out == "" {
		return err
	}
	load, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		load = []byte("unknown")
	}
	data, err := json.MarshalIndent(struct {
		Time       time.Time `json:"time"`
		System     string    `json:"system"`
		Processors int       `json:"processors"`
		Load       string    `json:"load"`
		Files      int       `json:"files"`
		Large      int       `json:"large_bytes"`
		Rows       []row     `json:"rows"`
	}{time.Now().UTC(), runtime.GOOS + "/" + runtime.GOARCH, runtime.NumCPU(), strings.TrimSpace(string(load)), files, large, rows}, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(out, append(data, '\n'), 0o644)
}

func path(i int) string { return fmt.Sprintf("tree/d%02d/f%05d.txt", i%100, i) }

func text(i, round int) string {
	word := "ordinary"
	if i%(files/matches) == 0 {
		word = "needle"
	}
	return strings.Repeat(fmt.Sprintf("line of file %d, round %d\n", i, round), 20) + word + "\n"
}

// wrong reports that a subject did not do what was asked.
func wrong(what string, got, want int) error {
	if got == want {
		return nil
	}
	return fmt.Errorf("%s: got %d, want %d", what, got, want)
}

func onDirectory(ctx context.Context, d *workspace.Directory, source *blob.Blob) map[string]func() error {
	write := func(round int) error {
		for i := range files {
			if err := d.Write(ctx, path(i), text(i, round)); err != nil {
				return err
			}
		}
		return nil
	}
	return map[string]func() error{
		"write":       func() error { return write(1) },
		"write again": func() error { return write(2) },
		"list": func() error {
			n := 0
			for cursor := (*string)(nil); ; {
				page, err := d.Find(ctx, "**", 1000, cursor)
				if err != nil {
					return err
				}
				n += len(page.Paths)
				if cursor = page.Cursor; cursor == nil {
					return wrong("paths", n, files+100+1)
				}
			}
		},
		"grep": func() error {
			n := 0
			for cursor := (*string)(nil); ; {
				page, err := d.Grep(ctx, "^needle$", workspace.Search{}, 1000, cursor)
				if err != nil {
					return err
				}
				n += len(page.Matches)
				if cursor = page.Cursor; cursor == nil {
					return wrong("matches", n, matches)
				}
			}
		},
		"move":    func() error { return d.Move(ctx, "tree", "moved/tree") },
		"blob in": func() error { return d.WriteBlob(ctx, "large", source) },
		"blob out": func() error {
			b, err := d.ReadBlob(ctx, "large")
			if err != nil {
				return err
			}
			if b.Digest(ctx) != source.Digest(ctx) {
				err = errors.New("the large file came back differently")
			}
			return errors.Join(err, b.Close())
		},
		"remove": func() error { return d.Remove(ctx, "moved", true) },
	}
}

// onFiles does the same with the system alone. With synced, each written file is on the disk before the next.
func onFiles(dir string, source *blob.Blob, synced bool) map[string]func() error {
	put := func(name string, content io.Reader) error {
		temporary := name + ".new"
		f, err := os.Create(temporary)
		if err != nil {
			return err
		}
		_, err = io.Copy(f, content)
		if err == nil && synced {
			err = f.Sync()
		}
		err = errors.Join(err, f.Close())
		if err == nil {
			err = os.Rename(temporary, name)
		}
		if err == nil && synced {
			err = sync(filepath.Dir(name))
		}
		return err
	}
	write := func(round int) error {
		for i := range files {
			name := filepath.Join(dir, path(i))
			if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
				return err
			}
			if err := put(name, strings.NewReader(text(i, round))); err != nil {
				return err
			}
		}
		return nil
	}
	return map[string]func() error{
		"write":       func() error { return write(1) },
		"write again": func() error { return write(2) },
		"list": func() error {
			n := 0
			err := filepath.WalkDir(dir, func(string, fs.DirEntry, error) error { n++; return nil })
			return errors.Join(err, wrong("paths", n, files+100+2))
		},
		"grep": func() error {
			pattern, n := regexp.MustCompile("^needle$"), 0
			err := filepath.WalkDir(dir, func(name string, e fs.DirEntry, err error) error {
				if err != nil || e.IsDir() {
					return err
				}
				data, err := os.ReadFile(name)
				for line := range bytes.Lines(data) {
					if pattern.Match(bytes.TrimSuffix(line, []byte("\n"))) {
						n++
					}
				}
				return err
			})
			return errors.Join(err, wrong("matches", n, matches))
		},
		"move": func() error {
			err := errors.Join(os.Mkdir(filepath.Join(dir, "moved"), 0o755), os.Rename(filepath.Join(dir, "tree"), filepath.Join(dir, "moved", "tree")))
			if err == nil && synced {
				err = errors.Join(sync(dir), sync(filepath.Join(dir, "moved")))
			}
			return err
		},
		"blob in": func() error { return put(filepath.Join(dir, "large"), source.Reader()) },
		"blob out": func() error {
			f, err := os.Open(filepath.Join(dir, "large"))
			if err != nil {
				return err
			}
			defer f.Close()
			b := blob.NewBuilder(blob.Options{Limit: large, Dir: dir})
			if _, err := io.Copy(b, f); err != nil {
				return errors.Join(err, b.Close())
			}
			back, err := b.Blob()
			if err != nil {
				return err
			}
			return back.Close()
		},
		"remove": func() error { return os.RemoveAll(filepath.Join(dir, "moved")) },
	}
}

func sync(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
