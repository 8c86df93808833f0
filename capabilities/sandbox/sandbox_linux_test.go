package sandbox_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/stilehost/stile/capabilities/sandbox"
	"github.com/stilehost/stile/capabilities/sandbox/internal/dockerd"
	"github.com/stilehost/stile/capabilities/workspace"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		if stopDocker != nil {
			if err := stopDocker(); err != nil {
				fmt.Println(err)
				code = 1
			}
		}
		os.Exit(code)
	}), goleak.IgnoreAnyFunction("github.com/stilehost/stile/capabilities/sandbox/internal/dockerd.Start.func1")) // waits for dockerd
}

// docker is a docker of these tests, which the first that needs it starts.
var (
	docker     = sync.OnceValues(func() (*dockerd.Server, error) { return dockerd.Start(context.Background(), true, nil) })
	stopDocker func() error
)

// each runs a test over every runtime.
func each(t *testing.T, test func(t *testing.T, o sandbox.Options)) {
	t.Helper()
	for _, runtime := range []string{"crun", "runc", "podman", "docker"} {
		t.Run(runtime, func(t *testing.T) {
			if runtime == "docker" {
				s, err := docker()
				if err != nil {
					t.Fatal(err)
				}
				stopDocker = s.Stop
				t.Setenv("DOCKER_HOST", s.Host)
			}
			o := home(t)
			o.Runtime = runtime
			test(t, o)
		})
	}
}

// home is a folder for sandboxes of one test, which the first runtime that is installed makes.
func home(t *testing.T) sandbox.Options {
	return sandbox.Options{Dir: t.TempDir(), Log: slog.New(slog.NewTextHandler(t.Output(), nil))}
}

// open returns a sandbox with the programs of this machine.
func open(t *testing.T, o sandbox.Options, g sandbox.Rights) *sandbox.Sandbox {
	t.Helper()
	if g.Image == "" {
		g.Image = "host"
	}
	grant, err := sandbox.New(o, g, nil)
	if err != nil {
		t.Fatal(err)
	}
	opened, err := grant.Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	s := opened.(*sandbox.Sandbox)
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

type result struct {
	sandbox.Exit
	stdout, stderr string
}

// run runs a shell's command. A test fails here if this machine has no root, no crun or runc, or no cgroups.
func run(t *testing.T, s *sandbox.Sandbox, command string) result {
	t.Helper()
	r, err := try(t.Context(), s, sandbox.Command{Argv: []string{"/bin/sh", "-c", command}})
	if err != nil {
		t.Fatalf("%s: %v", command, err)
	}
	return r
}

// must is run for a command that succeeds.
func must(t *testing.T, s *sandbox.Sandbox, command string) string {
	t.Helper()
	r := run(t, s, command)
	if r.Code != 0 {
		t.Fatalf("%s: exit code %d\n%s%s", command, r.Code, r.stdout, r.stderr)
	}
	return r.stdout
}

func try(ctx context.Context, s *sandbox.Sandbox, c sandbox.Command) (result, error) {
	p, err := s.Start(ctx, c)
	if err != nil {
		return result{}, err
	}
	defer func() { _ = p.Close() }()
	exit, err := p.Take(ctx)
	r := result{Exit: exit}
	for at := uint64(0); ; {
		part, _ := p.Read(ctx, at)
		if part == nil {
			return r, err
		}
		if part.Stream == 0 {
			r.stdout += string(part.Bytes)
		} else {
			r.stderr += string(part.Bytes)
		}
		at = part.Offset + uint64(len(part.Bytes))
	}
}

// store is a new workspace.
func store(t *testing.T) *workspace.Directory {
	t.Helper()
	s, err := workspace.Open(t.Context(), filepath.Join(t.TempDir(), "w.db"), workspace.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s.Workspace("w")
}

// disk is a directory of the machine.
func disk(t *testing.T, dir string) *workspace.Directory {
	t.Helper()
	d, err := workspace.OpenDisk(dir, workspace.DiskOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close() })
	return d.Directory()
}

func push(t *testing.T, s *sandbox.Sandbox, d sandbox.Directory, to string) sandbox.Changes {
	t.Helper()
	return taken(t)(s.Push(t.Context(), d, to))
}

func pull(t *testing.T, s *sandbox.Sandbox, d sandbox.Directory, from string) sandbox.Changes {
	t.Helper()
	return taken(t)(s.Pull(t.Context(), d, from))
}

func taken(t *testing.T) func(*sandbox.Transfer, error) sandbox.Changes {
	return func(x *sandbox.Transfer, err error) sandbox.Changes {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = x.Close() }()
		c, err := x.Take(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
}

// summary is Changes in one line.
func summary(c sandbox.Changes) string {
	var parts []string
	for _, list := range []struct {
		sign  string
		paths []string
	}{{"+", c.Added}, {"~", c.Changed}, {"-", c.Removed}} {
		for _, p := range list.paths {
			parts = append(parts, list.sign+p)
		}
	}
	for _, list := range []struct {
		sign  string
		notes []sandbox.Note
	}{{"!", c.Conflicts}, {"?", c.Skipped}} {
		for _, n := range list.notes {
			parts = append(parts, list.sign+n.Path)
		}
	}
	slices.Sort(parts)
	return strings.Join(parts, " ")
}

func write(t *testing.T, d *workspace.Directory, path, text string) {
	t.Helper()
	if err := d.Write(t.Context(), path, text); err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, d *workspace.Directory, path string) string {
	t.Helper()
	text, err := d.Read(t.Context(), path)
	if err != nil {
		return "error: " + err.Error()
	}
	return text
}

// TestBothWays copies a tree in, changes it on both sides, and copies it back, into a workspace and into a directory of the machine.
func TestBothWays(t *testing.T) {
	each(t, func(t *testing.T, o sandbox.Options) {
		for name, directory := range map[string]func(*testing.T) *workspace.Directory{
			"workspace": store,
			"disk":      func(t *testing.T) *workspace.Directory { return disk(t, t.TempDir()) },
		} {
			t.Run(name, func(t *testing.T) {
				s, d := open(t, o, sandbox.Rights{}), directory(t)
				write(t, d, "a.txt", "one")
				write(t, d, "dir/b.sh", "#!/bin/sh\necho hi")
				write(t, d, "gone", "x")
				for _, err := range []error{
					d.SetMode(t.Context(), "dir/b.sh", 0o755), d.MakeDirectory(t.Context(), "empty"), d.MakeLink(t.Context(), "link", "dir/b.sh"),
				} {
					if err != nil {
						t.Fatal(err)
					}
				}
				if got := summary(push(t, s, d, "")); got != "+a.txt +dir +dir/b.sh +empty +gone +link" {
					t.Errorf("push: %s", got)
				}
				if got := must(t, s, "cat a.txt; ./link; ls -d empty; stat -c '%a %U' dir/b.sh"); got != "onehi\nempty\n755 root\n" {
					t.Errorf("in the sandbox: %q", got)
				}
				if got := summary(push(t, s, d, "")) + summary(pull(t, s, d, "")); got != "" {
					t.Errorf("nothing changed, and %s was copied", got)
				}
				must(t, s, "printf 2 > a.txt; rm gone; rmdir empty; mkdir -p new/deep; echo n > new/deep/n; chmod 600 new/deep/n; touch dir/b.sh; ln -s n new/deep/l; rm link; mkdir link; echo x > link/x")
				if got := summary(pull(t, s, d, "")); got != "+link/x +new +new/deep +new/deep/l +new/deep/n -empty -gone ~a.txt ~link" {
					t.Errorf("pull: %s", got)
				}
				if got := read(t, d, "a.txt") + read(t, d, "new/deep/n") + read(t, d, "link/x"); got != "2n\nx\n" {
					t.Errorf("in the directory: %q", got)
				}
				if st, err := d.Stat(t.Context(), "new/deep/n"); err != nil || st.Mode != 0o600 {
					t.Errorf("got %+v, %v", st, err)
				}
				if got := summary(pull(t, s, d, "")) + summary(push(t, s, d, "")); got != "" {
					t.Errorf("nothing changed, and %s was copied", got)
				}

				// Both sides change.
				must(t, s, "printf sandbox > a.txt; printf same > same; printf s > dir/b.sh; rm -r new")
				write(t, d, "a.txt", "directory")
				write(t, d, "same", "same")
				write(t, d, "other", "o")
				write(t, d, "new/deep/n", "kept")
				for range 2 { // a conflict stays until somebody resolves it
					if got := summary(pull(t, s, d, "")); got != "!a.txt !new !new/deep !new/deep/n +a.txt.sandbox -new/deep/l ~dir/b.sh" && got != "!a.txt !new !new/deep !new/deep/n" {
						t.Errorf("pull: %s", got)
					}
				}
				if got := read(t, d, "a.txt") + " " + read(t, d, "a.txt.sandbox") + " " + read(t, d, "new/deep/n"); got != "directory sandbox kept" {
					t.Errorf("got %s", got)
				}
				got := summary(push(t, s, d, ""))
				if got != "!a.txt !new/deep/n +new +new/deep +new/deep/n +other ~a.txt" && !strings.HasPrefix(got, "!a.txt") {
					t.Errorf("push: %s", got)
				}
				t.Log(got)
				if got := must(t, s, "cat a.txt; echo; cat a.txt.sandbox*; echo; cat new/deep/n other same"); !strings.HasPrefix(got, "directory\nsandbox") || !strings.HasSuffix(got, "\nkeptosame") {
					t.Errorf("got %q", got)
				}
			})
		}
	})
}

// TestManyFiles copies 10,000 files, changes 10, and copies them back.
func TestManyFiles(t *testing.T) {
	s, d := open(t, home(t), sandbox.Rights{}), store(t)
	began := time.Now()
	must(t, s, `mkdir -p /work/repo && cd /work/repo && git init -q && git config user.email a@b && git config user.name a && `+
		`node -e 'const fs = require("fs"); for (let i = 0; i < 10000; i++) { const d = "d" + i % 100; fs.mkdirSync(d, { recursive: true }); fs.writeFileSync(d + "/f" + i, "file " + i + "\n"); }' && `+
		`git add -A && git commit -qm all`)
	t.Logf("make: %v", time.Since(began))
	lap := func(what string, f func()) {
		began := time.Now()
		f()
		t.Logf("%s: %v", what, time.Since(began))
	}
	lap("pull 10,000 for the first time", func() { t.Log(len(pull(t, s, d, "repo").Added)) })
	s2 := open(t, home(t), sandbox.Rights{})
	lap("start a sandbox", func() { must(t, s2, "true") })
	lap("push 10,000", func() { push(t, s2, d, "repo") })
	if got := must(t, s2, "cd repo && git status --porcelain && git fsck 2>&1"); got != "" {
		t.Errorf("git status after a round trip: %q", got)
	}
	lap("pull what git changed", func() { t.Log(summary(pull(t, s2, d, "repo"))) })
	for range 3 {
		lap("a command", func() { must(t, s2, "true") })
		lap("pull nothing of 10,000", func() { pull(t, s2, d, "repo") })
		lap("git status, change 10, copy back", func() {
			must(t, s2, "cd repo && git status --porcelain && for i in 1 2 3 4 5 6 7 8 9 10; do echo $(date +%N) >> d$i/f$i; done")
			if got := pull(t, s2, d, "repo"); len(got.Changed) < 10 {
				t.Errorf("%d files came back: %s", len(got.Changed), summary(got))
			}
		})
		for i := range 10 {
			write(t, d, fmt.Sprintf("d%d/f%d", 20+i, 20+i), time.Now().String())
		}
		lap("push 10 of 10,000", func() {
			if got := push(t, s2, d, "repo"); len(got.Changed) != 10 {
				t.Errorf("%s", summary(got))
			}
		})
	}
}

// TestPushedLater has a push leave something undone. The next one does it, although the workspace has not changed since.
func TestPushedLater(t *testing.T) {
	s, d := open(t, home(t), sandbox.Rights{}), store(t)
	write(t, d, "dir/a", "a")
	push(t, s, d, "")
	must(t, s, "touch dir/own")
	if err := d.Remove(t.Context(), "dir", true); err != nil {
		t.Fatal(err)
	}
	if got := summary(push(t, s, d, "")); got != "-dir/a" {
		t.Errorf("push: %s", got)
	}
	must(t, s, "rm dir/own")
	if got := summary(push(t, s, d, "")); got != "-dir" {
		t.Errorf("push: %s", got)
	}
	// What a pull leaves undone, because the workspace has changed, is a change of the workspace.
	write(t, d, "b", "1")
	push(t, s, d, "")
	must(t, s, "echo sandbox > b; echo c > c")
	write(t, d, "b", "2")
	if got := summary(pull(t, s, d, "")); got != "!b +b.sandbox +c" {
		t.Errorf("pull: %s", got)
	}
	if got := summary(push(t, s, d, "")); got != "!b +b.sandbox ~b" && got != "!b ~b" {
		t.Errorf("push: %s", got)
	}
	if got := must(t, s, "cat b"); got != "2" {
		t.Errorf("got %q", got)
	}
}

// TestStoppedEarly stops a process while its container starts.
func TestStoppedEarly(t *testing.T) {
	s := open(t, home(t), sandbox.Rights{})
	p, err := s.Start(t.Context(), sandbox.Command{Argv: []string{"sleep", "1000"}})
	if err != nil {
		t.Fatal(err)
	}
	p.Stop(t.Context())
	if err := p.Subscribe(t.Context(), sandbox.Stage{Case: sandbox.StageEnded}).Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	if e, err := p.Take(t.Context()); err != nil || e.Ending != sandbox.Stopped || e.Code != 137 {
		t.Errorf("got %+v, %v", e, err)
	}
	must(t, s, "true")
}
