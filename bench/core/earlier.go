package main

import (
	"bufio"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/stilehost/stile/bench/internal/measure"
)

//go:embed earlier/main.go
var earlierProgram []byte

// reviser makes rounds of calls in a process of its own, which is built from one revision.
type reviser struct {
	cmd   *exec.Cmd
	in    io.WriteCloser
	out   *bufio.Reader
	cold  measure.Series
	late  measure.Series
	rates measure.Series
}

func (b *bench) newReviser(ctx context.Context, program, name, packages string) (*reviser, error) {
	caches := filepath.Join(b.dir, name)
	if err := os.Mkdir(caches, 0o700); err != nil {
		return nil, err
	}
	r := &reviser{cmd: exec.CommandContext(ctx, program, caches, packages)}
	r.cmd.Stderr = os.Stderr
	var err error
	if r.in, err = r.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := r.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	r.out = bufio.NewReader(out)
	return r, r.cmd.Start()
}

// round has the process make a round of calls. The first one does not count.
func (r *reviser) round(counts bool) error {
	if _, err := io.WriteString(r.in, "\n"); err != nil {
		return err
	}
	line, err := r.out.ReadBytes('\n')
	if err != nil {
		return fmt.Errorf("%s: %w", r.cmd.Path, err)
	}
	var took struct{ Cold, P99, Rate float64 }
	if err := json.Unmarshal(line, &took); err != nil || !counts {
		return err
	}
	r.cold, r.late, r.rates = append(r.cold, []float64{took.Cold}), append(r.late, []float64{took.P99}), append(r.rates, []float64{took.Rate})
	return nil
}

func (r *reviser) close() error { return errors.Join(r.in.Close(), r.cmd.Wait()) }

// measureEarlier compares this version with an earlier revision, in turns: calls that wait took a thread each in it.
func measureEarlier(ctx context.Context, b *bench, _ *subject) (err error) {
	if b.earlier == "" {
		return nil
	}
	command := func(dir, name string, args ...string) error {
		cmd := exec.CommandContext(ctx, name, args...)
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("%s: %w\n%s", cmd, err, out)
		}
		return nil
	}
	tree := filepath.Join(b.dir, "tree")
	if err := command(".", "git", "worktree", "add", "--detach", tree, b.earlier); err != nil {
		return fmt.Errorf("-earlier needs the history of this repository: %w", err)
	}
	defer func() { err = errors.Join(err, command(".", "git", "worktree", "remove", "--force", tree)) }()
	there := filepath.Join(tree, "bench", "core", "earlier")
	if err := errors.Join(os.MkdirAll(there, 0o700), os.WriteFile(filepath.Join(there, "main.go"), earlierProgram, 0o600)); err != nil {
		return err
	}
	before, after := filepath.Join(b.dir, "before"), filepath.Join(b.dir, "after")
	if err := command(filepath.Join(tree, "bench"), "go", "build", "-mod=mod", "-o", before, "./core/earlier"); err != nil {
		return err
	}
	if err := command(".", "go", "build", "-o", after, "./core/earlier"); err != nil {
		return err
	}
	packages := filepath.Join(b.dir, "engine-before")
	if _, err := obtainEngine(ctx, os.DirFS(filepath.Join(tree, "toolchain", "engine")), packages); err != nil {
		return err
	}
	old, err := b.newReviser(ctx, before, "caches-before", packages)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, old.close()) }()
	now, err := b.newReviser(ctx, after, "caches-after", b.packages)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, now.close()) }()
	for n := range b.rounds(60) + 1 {
		if err := errors.Join(now.round(n > 0), old.round(n > 0)); err != nil {
			return err
		}
	}
	b.add(row{Key: "earlier_cold_ratio", What: fmt.Sprintf("a call that never waits / the same at %s", b.earlier), AtMost: 1.02}.ratio(now.cold, old.cold))
	b.add(row{Key: "earlier_p99_ratio", What: "1,000 calls at once make a request each: p99 / the same there", AtMost: 0.7}.ratio(now.late, old.late))
	b.add(row{Key: "earlier_rate_ratio", What: "... calls a second / the same there", AtLeast: 1.5}.ratio(now.rates, old.rates))
	return nil
}
