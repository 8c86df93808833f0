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
	caches, packages string

	cmd   *exec.Cmd
	in    io.WriteCloser
	out   *bufio.Reader
	cold  []float64
	web   []float64
	late  []float64
	rates []float64
}

func (r *reviser) start(ctx context.Context, program string) error {
	if err := os.MkdirAll(r.caches, 0o700); err != nil {
		return err
	}
	r.cmd = exec.CommandContext(ctx, program, r.caches, r.packages)
	r.cmd.Stderr = os.Stderr
	var err error
	if r.in, err = r.cmd.StdinPipe(); err != nil {
		return err
	}
	out, err := r.cmd.StdoutPipe()
	if err != nil {
		return err
	}
	r.out = bufio.NewReader(out)
	return r.cmd.Start()
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
	var took struct{ Cold, Web, P99, Rate float64 }
	if err := json.Unmarshal(line, &took); err != nil || !counts {
		return err
	}
	r.cold, r.web, r.late, r.rates = append(r.cold, took.Cold), append(r.web, took.Web), append(r.late, took.P99), append(r.rates, took.Rate)
	return nil
}

// inTurns starts two processes, and has them make rounds in turns. Both have ended when it returns.
func inTurns(ctx context.Context, now *reviser, after string, old *reviser, before string) (err error) {
	ctx, kill := context.WithCancel(ctx)
	defer kill()
	for _, r := range []struct {
		*reviser
		program string
	}{{now, after}, {old, before}} {
		if err := r.start(ctx, r.program); err != nil {
			return err
		}
		defer func() {
			if err != nil {
				kill()
			}
			err = errors.Join(err, r.close())
		}()
	}
	for n := range 11 {
		if err := errors.Join(now.round(n > 0), old.round(n > 0)); err != nil {
			return err
		}
	}
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
	// What a process takes differs by more than a version does, so each is started several times.
	var cold, web, late, rates [2]measure.Series
	for range b.rounds(10) {
		now, old := &reviser{caches: filepath.Join(b.dir, "caches-after"), packages: b.packages}, &reviser{caches: filepath.Join(b.dir, "caches-before"), packages: packages}
		if err := inTurns(ctx, now, after, old, before); err != nil {
			return err
		}
		for i, r := range []*reviser{now, old} {
			cold[i], web[i], late[i], rates[i] = append(cold[i], r.cold), append(web[i], r.web), append(late[i], r.late), append(rates[i], r.rates)
		}
	}
	b.add(row{Key: "earlier_cold_ratio", What: fmt.Sprintf("a call that never waits / the same at %s", b.earlier), AtMost: 1.02}.ratio(cold[0], cold[1]))
	b.add(row{Key: "earlier_web_ratio", What: "... of an extension that has the web APIs"}.ratio(web[0], web[1]))
	b.add(row{Key: "earlier_p99_ratio", What: "1,000 calls at once make a request each: p99 / the same there", AtMost: 0.7}.ratio(late[0], late[1]))
	b.add(row{Key: "earlier_rate_ratio", What: "... calls a second / the same there", AtLeast: 1.5}.ratio(rates[0], rates[1]))
	return nil
}
