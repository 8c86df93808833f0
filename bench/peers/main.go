// Command peers puts durable runs of Stile beside those of DBOS Transact (on PostgreSQL), Temporal and Restate, on the same machine with the same
// work: steps a second, how long a short run takes, what a waiting run takes on disk, and how long it takes after kill -9 until runs go on. What does
// not start here is named with its reason.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/stilehost/stile/bench/peers/protocol"
)

// peer is one way to keep runs.
type peer struct {
	name, title string
	env         []string
	// build makes the program and returns its command.
	build func(ctx context.Context, out string) ([]string, error)
	// database starts what lives on when the program is killed. It may be nil.
	database func(ctx context.Context, dir string) (env []string, stop func() error, err error)
}

const temporalServer = "temporal-server"

var peers = []peer{
	{name: "stile", title: "Stile, TypeScript", env: []string{"STEPS=own"}, build: goProgram("stile")},
	{name: "stile-kv", title: "Stile, TypeScript that changes kv in each step", env: []string{"STEPS=kv"}, build: goProgram("stile")},
	{name: "stile-go", title: "Stile, Go", env: []string{"STEPS=go"}, build: goProgram("stile")},
	{name: "dbos", title: "DBOS Transact for Go 0.8.0, PostgreSQL", build: goProgram("dbos"), database: postgres},
	{name: "temporal", title: "Temporal (SDK 1.37.0, CLI 1.5.1's server, SQLite)", build: func(ctx context.Context, out string) ([]string, error) {
		command, err := goProgram("temporal")(ctx, out)
		if err == nil {
			_, err = run(ctx, "peers/temporal", "go", "build", "-o", filepath.Join(out, temporalServer), "github.com/temporalio/cli/cmd/temporal")
		}
		return command, err
	}},
	{name: "restate", title: "Restate 1.7.12 (SDK 1.17.2 for Node.js)", build: func(ctx context.Context, out string) ([]string, error) {
		dir := filepath.Join(out, "restate")
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return nil, err
		}
		for _, name := range []string{"package.json", "package-lock.json", "main.mjs"} {
			text, err := os.ReadFile(filepath.Join("peers/restate", name))
			if err == nil {
				err = os.WriteFile(filepath.Join(dir, name), text, 0o644)
			}
			if err != nil {
				return nil, err
			}
		}
		_, err := run(ctx, dir, "npm", "ci", "--no-audit", "--no-fund", "--silent")
		return []string{"node", filepath.Join(dir, "main.mjs")}, err
	}},
}

func goProgram(name string) func(ctx context.Context, out string) ([]string, error) {
	return func(ctx context.Context, out string) ([]string, error) {
		program := filepath.Join(out, name)
		_, err := run(ctx, filepath.Join("peers", name), "go", "build", "-o", program, ".")
		return []string{program}, err
	}
}

func run(ctx context.Context, dir, name string, args ...string) (string, error) {
	c := exec.CommandContext(ctx, name, args...) //nolint:gosec // of this benchmark
	c.Dir = dir
	text, err := c.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%s: %w: %s", name, err, text[max(0, len(text)-1000):])
	}
	return string(text), nil
}

// postgres starts a server of Debian's package on a socket in the folder.
func postgres(ctx context.Context, dir string) (env []string, stop func() error, err error) {
	found, err := filepath.Glob("/usr/lib/postgresql/*/bin")
	if err != nil || len(found) == 0 {
		return nil, nil, errors.Join(err, errors.New("PostgreSQL is not installed: apt-get install postgresql"))
	}
	bin := found[len(found)-1]
	as := &syscall.SysProcAttr{Pdeathsig: syscall.SIGQUIT}
	name := "root"
	if os.Getuid() == 0 { // it refuses to run as root
		u, err := user.Lookup("postgres")
		if err != nil {
			return nil, nil, err
		}
		uid, _ := strconv.Atoi(u.Uid)
		gid, _ := strconv.Atoi(u.Gid)
		as.Credential = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}                          //nolint:gosec // they are of this machine
		if err := errors.Join(os.Chown(dir, uid, gid), os.Chmod(filepath.Dir(dir), 0o711)); err != nil { //nolint:gosec // so that the server reaches its folder
			return nil, nil, err
		}
		name = u.Username
	}
	command := func(program string, args ...string) *exec.Cmd {
		c := exec.CommandContext(ctx, filepath.Join(bin, program), args...) //nolint:gosec // of this benchmark
		c.SysProcAttr, c.Dir = as, dir
		return c
	}
	data := filepath.Join(dir, "data")
	if text, err := command("initdb", "-D", data, "-A", "trust", "-U", name, "-E", "UTF8").CombinedOutput(); err != nil {
		return nil, nil, fmt.Errorf("initdb: %w: %s", err, text)
	}
	server := command("postgres", "-D", data, "-k", dir, "-h", "", "-c", "max_connections=200")
	if err := server.Start(); err != nil {
		return nil, nil, err
	}
	stop = func() error {
		if err := server.Process.Signal(syscall.SIGINT); err != nil {
			return err
		}
		return server.Wait()
	}
	for range 200 {
		if err = command("createdb", "-h", dir, "-U", name, "bench").Run(); err == nil {
			return []string{fmt.Sprintf("DATABASE_URL=postgres:///bench?host=%s&user=%s", dir, name)}, stop, nil
		}
		time.Sleep(50 * time.Millisecond)
	}
	return nil, nil, errors.Join(fmt.Errorf("createdb: %w", err), stop())
}

// process is a running peer.
type process struct {
	command *exec.Cmd
	in      io.WriteCloser
	out     *bufio.Scanner
	began   time.Time
	errors  strings.Builder
}

func start(ctx context.Context, command []string, dir string, env []string) (*process, error) {
	p := &process{began: time.Now()}
	p.command = exec.CommandContext(ctx, command[0], append(command[1:], dir)...) //nolint:gosec // of this benchmark
	p.command.Env = append(os.Environ(), env...)
	p.command.Stderr = &p.errors
	p.command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	in, err := p.command.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := p.command.StdoutPipe()
	if err != nil {
		return nil, err
	}
	p.in, p.out = in, bufio.NewScanner(out)
	if err := p.command.Start(); err != nil {
		return nil, err
	}
	if _, err := p.answer(); err != nil {
		return nil, errors.Join(err, p.kill())
	}
	return p, nil
}

func (p *process) answer() (a protocol.Answer, err error) {
	if !p.out.Scan() {
		return a, errors.Join(errors.New("it ended: "+p.errors.String()), p.out.Err())
	}
	if err := json.Unmarshal(p.out.Bytes(), &a); err != nil {
		return a, fmt.Errorf("it said %q: %w", p.out.Text(), err)
	}
	if a.Error != "" {
		err = errors.New(a.Error)
	}
	return a, err
}

func (p *process) ask(r protocol.Request) (a protocol.Answer, err error) {
	if err := json.NewEncoder(p.in).Encode(r); err != nil {
		return a, err
	}
	return p.answer()
}

// kill ends the process and those that it started, as kill -9 does.
func (p *process) kill() error {
	err := syscall.Kill(-p.command.Process.Pid, syscall.SIGKILL)
	_ = p.command.Wait() // it was killed
	return err
}

// until waits until the process has executed so many steps.
func (p *process) until(steps int64) error {
	for began := time.Now(); ; time.Sleep(2 * time.Millisecond) {
		a, err := p.ask(protocol.Request{Do: "steps"})
		if err != nil || a.Steps >= steps {
			return err
		}
		if time.Since(began) > 5*time.Minute {
			return fmt.Errorf("it executed %d steps of %d", a.Steps, steps)
		}
	}
}

// Figures of a peer.
type figures struct {
	Peer    string  `json:"peer"`
	Error   string  `json:"error,omitempty"`
	Steps   float64 `json:"steps_per_second,omitempty"`
	Start   float64 `json:"short_run_ms,omitempty"` // p50
	Bytes   float64 `json:"bytes_per_waiting_run,omitempty"`
	Recover float64 `json:"first_step_after_kill_ms,omitempty"`
	All     float64 `json:"all_ended_after_kill_ms,omitempty"`
}

// sizes say how much is measured.
type sizes struct{ runs, steps, short, waiting, killed int }

func measure(ctx context.Context, o peer, out, dir string, n sizes) (f figures, err error) {
	command, err := o.build(ctx, out)
	if err != nil {
		return f, err
	}
	env := append(o.env, "TEMPORAL="+filepath.Join(out, temporalServer), "PORT="+strconv.Itoa(18_200))
	if o.database != nil {
		home := filepath.Join(dir, "database")
		if err := os.MkdirAll(home, 0o700); err != nil {
			return f, err
		}
		more, stop, err := o.database(ctx, home)
		if err != nil {
			return f, err
		}
		defer func() { err = errors.Join(err, stop()) }()
		env = append(env, more...)
	}
	p, err := start(ctx, command, dir, env)
	if err != nil {
		return f, err
	}
	defer func() {
		if p != nil {
			err = errors.Join(err, p.kill())
		}
	}()

	// Short runs, one after the other, after some that are not counted.
	var short []time.Duration
	for i := range n.short + 20 {
		r := protocol.Request{Prefix: fmt.Sprint("short-", i), Count: 1, Work: protocol.Work{Before: 1}}
		began := time.Now()
		if err := p.both(r); err != nil {
			return f, err
		}
		if i >= 20 {
			short = append(short, time.Since(began))
		}
	}
	slices.Sort(short)
	f.Start = short[len(short)/2].Seconds() * 1000

	// Many runs at once.
	began := time.Now()
	if err := p.both(protocol.Request{Prefix: "work", Count: n.runs, Work: protocol.Work{Before: n.steps}}); err != nil {
		return f, err
	}
	f.Steps = float64(n.runs*n.steps) / time.Since(began).Seconds()

	// Runs that wait: first as many that are not counted, because they take the room that the work before has left in the files.
	var before, after int64
	var a protocol.Answer
	for _, prefix := range []string{"fill", "wait"} {
		before = after
		if a, err = p.ask(protocol.Request{Do: "steps"}); err != nil {
			return f, err
		}
		if _, err := p.ask(protocol.Request{Do: "start", Prefix: prefix, Count: n.waiting, Work: protocol.Work{Before: 10, Wait: time.Hour.Milliseconds()}}); err != nil {
			return f, err
		}
		if err := p.until(a.Steps + int64(10*n.waiting)); err != nil {
			return f, err
		}
		if after, err = p.settled(); err != nil {
			return f, err
		}
	}
	f.Bytes = float64(after-before) / float64(n.waiting)

	// Runs whose process is killed while they wait. The wait is over when the next process starts.
	const wait = 8 * time.Second
	killed := protocol.Request{Prefix: "killed", Count: n.killed, Work: protocol.Work{Before: n.steps / 2, Wait: wait.Milliseconds(), After: n.steps / 2}}
	if a, err = p.ask(protocol.Request{Do: "steps"}); err != nil {
		return f, err
	}
	killed.Do = "start"
	if _, err := p.ask(killed); err != nil {
		return f, err
	}
	if err := p.until(a.Steps + int64(n.killed*n.steps/2)); err != nil {
		return f, err
	}
	time.Sleep(time.Second) // until they wait
	if err := p.kill(); err != nil {
		return f, err
	}
	time.Sleep(wait)
	if p, err = start(ctx, command, dir, env); err != nil {
		return f, err
	}
	if err := p.until(1); err != nil {
		return f, err
	}
	f.Recover = time.Since(p.began).Seconds() * 1000
	killed.Do = "end"
	if _, err := p.ask(killed); err != nil {
		return f, err
	}
	f.All = time.Since(p.began).Seconds() * 1000
	return f, nil
}

func (p *process) both(r protocol.Request) error {
	r.Do = "start"
	if _, err := p.ask(r); err != nil {
		return err
	}
	r.Do = "end"
	_, err := p.ask(r)
	return err
}

// settled is the size, once it stays the same for three seconds.
func (p *process) settled() (size int64, err error) {
	for same := 0; same < 3; time.Sleep(time.Second) {
		a, err := p.ask(protocol.Request{Do: "size"})
		if err != nil {
			return 0, err
		}
		if a.Size == size {
			same++
		} else {
			same, size = 0, a.Size
		}
	}
	return size, nil
}

func main() {
	only := flag.String("only", "stile,stile-kv,stile-go,dbos,temporal,restate", "which `peers`")
	quick := flag.Bool("quick", false, "a tenth of the work, to see that everything works")
	out := flag.String("out", "out/peers.json", "`file` for the figures, and one beside it that ends in .md")
	flag.Parse()
	n := sizes{runs: 256, steps: 100, short: 100, waiting: 1000, killed: 100}
	if *quick {
		n = sizes{runs: 26, steps: 100, short: 10, waiting: 100, killed: 10}
	}
	if err := all(context.Background(), strings.Split(*only, ","), *out, n); err != nil {
		fmt.Fprintln(os.Stderr, "bench/peers:", err)
		os.Exit(1)
	}
}

func all(ctx context.Context, only []string, out string, n sizes) (err error) {
	programs, err := filepath.Abs(filepath.Join(filepath.Dir(out), "peers"))
	if err != nil {
		return err
	}
	if err := os.MkdirAll(programs, 0o755); err != nil {
		return err
	}
	var found []figures
	for _, o := range peers {
		if !slices.Contains(only, o.name) {
			continue
		}
		fmt.Fprintln(os.Stderr, o.title, "...")
		dir, err := os.MkdirTemp("", "bench-peers-")
		if err != nil {
			return err
		}
		f, err := measure(ctx, o, programs, dir, n)
		f.Peer = o.title
		if err != nil {
			f = figures{Peer: o.title, Error: err.Error()}
		}
		found = append(found, f)
		if err := os.RemoveAll(dir); err != nil {
			return err
		}
	}
	text, err := json.MarshalIndent(found, "", "  ")
	if err != nil {
		return err
	}
	table := table(found, n)
	fmt.Print(table)
	return errors.Join(os.WriteFile(out, append(text, '\n'), 0o644), os.WriteFile(strings.TrimSuffix(out, ".json")+".md", []byte(table), 0o644))
}

// table is the figures for people.
func table(found []figures, n sizes) string {
	var b strings.Builder
	fmt.Fprintf(&b, "\n## Durable runs beside those of others\n\n| durable runs | steps a second, %d runs of %d | run of one step, p50 | disk of a run that waits after 10 steps | kill -9 until the first step | until all %d have ended |\n|---|---|---|---|---|---|\n", n.runs, n.steps, n.killed)
	for _, f := range found {
		if f.Error != "" {
			fmt.Fprintf(&b, "| %s | not available: %s | | | | |\n", f.Peer, strings.Join(strings.Fields(f.Error), " "))
			continue
		}
		fmt.Fprintf(&b, "| %s | %.0f | %.1f ms | %.1f KiB | %.0f ms | %.0f ms |\n", f.Peer, f.Steps, f.Start, f.Bytes/1024, f.Recover, f.All)
	}
	return b.String()
}
