package sandbox_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/capabilities/sandbox"
	"github.com/stilehost/stile/capabilities/workspace"
)

// TestHostileTree copies out a tree of everything that could leave it, or that a directory cannot have.
func TestHostileTree(t *testing.T) {
	s := open(t, home(t), sandbox.Rights{})
	long := strings.Repeat("n", 255)
	must(t, s, `mkdir t; cd t
ln -s /etc/passwd absolute; ln -s ../../../../etc/passwd dots; ln -s /proc/self/root/etc/passwd magic; ln -s /proc/self/root root; ln -s loop loop; ln -s nothing dangling
mkfifo pipe; node -e 'require("net").createServer().listen("socket", () => process.exit())' ; node -e 'require("fs").writeFileSync(Buffer.from([0x66, 0xff, 0xfe]), "x")'
printf x > setuid; chmod 6755 setuid; printf x > "$(printf 'a\nb')"; printf x > "$(printf 'c\033[2Jd')"; printf x > 'space '; printf x > dot.; printf x > 'back\slash'
printf 1 > Case; printf 2 > case; printf 3 > hard; ln hard hard2; truncate -s 10M sparse; truncate -s 1T huge
printf n > `+long+`; mkdir -p $(node -e 'console.log(Array(60).fill("deep").join("/"))') ; d=.; for i in $(seq 200); do mkdir -p $d/x; d=$d/x; done
printf '\303\251' > "$(printf '\303\251')"; printf 'e\314\201' > "$(printf 'e\314\201')"; printf x > unreadable; chmod 0 unreadable; mkdir closed; printf x > closed/x; chmod 0 closed`)
	for name, d := range map[string]*workspace.Directory{"workspace": store(t), "disk": disk(t, t.TempDir())} {
		got := pull(t, s, d, "t")
		skipped := map[string]bool{}
		for _, n := range got.Skipped {
			skipped[n.Path] = true
		}
		for _, p := range []string{"absolute", "dots", "magic", "root", "pipe", "socket", "f\uFFFD", "setuid", "a\nb", "c\x1b[2Jd", "space ", "dot.", `back\slash`, "huge"} {
			if !skipped[p] {
				t.Errorf("%s: %q is not reported", name, p)
			}
			if st, err := d.Stat(t.Context(), p); err == nil && p != "setuid" {
				t.Errorf("%s: there is %q: %+v", name, p, st)
			}
		}
		for p, want := range map[string]string{"Case": "1", "case": "2", "hard": "3", "hard2": "3", long: "n", "setuid": "x", "unreadable": "x", "closed/x": "x", "\u00e9": "\u00e9"} {
			if text := read(t, d, p); text != want {
				t.Errorf("%s: %.20q: %q", name, p, text)
			}
		}
		if st, err := d.Stat(t.Context(), "sparse"); err != nil || st.Size != 10<<20 {
			t.Errorf("%s: sparse: %+v, %v", name, st, err)
		}
		if st, err := d.Stat(t.Context(), "setuid"); err != nil || st.Mode != 0o755 {
			t.Errorf("%s: setuid: %o, %v", name, st.Mode, err)
		}
		if target, err := d.ReadLink(t.Context(), "dangling"); err != nil || target != "nothing" {
			t.Errorf("%s: dangling: %q, %v", name, target, err)
		}
	}
}

// TestGuardedFiles copies files on which programs act to a directory of the machine.
func TestGuardedFiles(t *testing.T) {
	const make = `rm -rf * .g* .ci; git init -q -b main . && git config user.name a && git config user.email a@b && echo x > f && git add f && git commit -qm x &&
mkdir -p .github/workflows .ci sub bare.x/objects bare.x/refs bare.x/hooks .git/hooks && echo x > .github/workflows/ci.yml; echo x > .ci/run; echo x > .gitlab-ci.yml; echo x > Jenkinsfile
printf 'gitdir: ../bare.x' > sub/.git; printf 'ref: refs/heads/main' > bare.x/HEAD; printf '[core]\nfsmonitor = evil' > bare.x/config; echo x > bare.x/hooks/post-checkout
echo evil > .git/hooks/post-checkout; mkdir -p other; ln -s ../.git other/.GIT; cp -r .git copied; touch copied/hooks/pre-commit; echo x > .git/commondir.x`
	guarded := []string{".git/config", ".git/hooks", ".git/hooks/post-checkout", ".github/workflows/ci.yml", ".ci/run", ".gitlab-ci.yml", "Jenkinsfile", "sub/.git", "bare.x/config", "bare.x/hooks/post-checkout", "other/.GIT", "copied/config", "copied/hooks/pre-commit"}
	for name, c := range map[string]struct {
		rights  sandbox.Rights
		refused bool
		disk    bool
	}{
		"on disk":        {sandbox.Rights{}, true, true},
		"in a workspace": {sandbox.Rights{}, false, false},
		"allowed":        {sandbox.Rights{Allow: []string{".git/config", ".git/hooks", ".github/workflows", ".ci", ".gitlab-ci.yml", "Jenkinsfile", "sub/.git", "bare.x", "other", "copied"}}, false, true},
	} {
		t.Run(name, func(t *testing.T) {
			s := open(t, home(t), c.rights)
			must(t, s, make)
			d := store(t)
			if c.disk {
				d = disk(t, t.TempDir())
			}
			got := pull(t, s, d, "")
			for _, p := range guarded {
				_, err := d.Stat(t.Context(), p)
				if (err != nil) != c.refused {
					t.Errorf("%s: %v", p, err)
				}
			}
			if text := read(t, d, "f"); text != "x\n" {
				t.Errorf("f: %q, %s", text, summary(got))
			}
			if got := len(got.Skipped); (got > 0) != c.refused {
				t.Errorf("%d were skipped", got)
			}
		})
	}
	t.Run("a change", func(t *testing.T) { // of what is there already, or its removal
		s, dir := open(t, home(t), sandbox.Rights{}), t.TempDir()
		d := disk(t, dir)
		for path, text := range map[string]string{".git/HEAD": "ref: refs/heads/main", ".git/config": "[core]", ".git/hooks/x": "mine", ".ci/run": "mine", "f": "1"} {
			write(t, d, path, text)
		}
		push(t, s, d, "")
		must(t, s, "echo evil > .git/config; rm -r .git/hooks; echo evil >> .ci/run; echo 2 > f; mv .git x; ln -s x .git")
		t.Log(summary(pull(t, s, d, "")))
		if got := read(t, d, ".git/config") + read(t, d, ".git/hooks/x") + read(t, d, ".ci/run") + read(t, d, "f"); got != "[core]mineminemine2\n" && got != "[core]minemine2\n" {
			t.Errorf("got %q", got)
		}
		if info, err := os.Lstat(filepath.Join(dir, ".git")); err != nil || !info.IsDir() {
			t.Errorf("got %v, %v", info, err)
		}
	})
}

// TestReadOnly pulls to a handle that can only read.
func TestReadOnly(t *testing.T) {
	s, d := open(t, home(t), sandbox.Rights{}), store(t)
	var denied *abi.Error
	if _, err := s.Pull(t.Context(), d.AsReadOnly(), ""); !errors.As(err, &denied) || denied.Code != abi.CodeDenied {
		t.Errorf("got %v", err)
	}
	if got := summary(push(t, s, d.AsReadOnly(), "")); got != "" {
		t.Errorf("got %s", got)
	}
}

// TestCommandsAreRefused starts commands that cannot be.
func TestCommandsAreRefused(t *testing.T) {
	each(t, func(t *testing.T, o sandbox.Options) {
		s := open(t, o, sandbox.Rights{})
		for name, c := range map[string]sandbox.Command{
			"nothing":            {},
			"a zero byte":        {Argv: []string{"true\x00"}},
			"a long one":         {Argv: []string{"true", strings.Repeat("x", 200_000)}},
			"a folder above":     {Argv: []string{"true"}, Folder: "../.."},
			"a folder elsewhere": {Argv: []string{"true"}, Folder: "/etc"},
			"no folder":          {Argv: []string{"true"}, Folder: "nothing"},
			"no program":         {Argv: []string{"nothing"}},
			"a folder as one":    {Argv: []string{"/etc"}},
			"a variable":         {Argv: []string{"true"}, Env: []sandbox.Variable{{Name: "A=B", Value: "x"}}},
		} {
			if r, err := try(t.Context(), s, c); !errors.Is(err, abi.ErrInvalid) {
				t.Errorf("%s: %+v, %v", name, r, err)
			}
		}
		if got := must(t, s, "echo fine"); got != "fine\n" {
			t.Errorf("afterwards: %q", got)
		}
	})
}

// TestFlood has a command write without end. The last part is kept, and the rest is counted.
func TestFlood(t *testing.T) {
	each(t, func(t *testing.T, o sandbox.Options) {
		s := open(t, o, sandbox.Rights{})
		timeout := uint32(1000)
		r, err := try(t.Context(), s, sandbox.Command{Argv: []string{"/bin/sh", "-c", "yes; true"}, Timeout: &timeout})
		if err != nil || r.Ending != sandbox.TimedOut || r.Dropped == 0 || len(r.stdout) > 1<<20 || len(r.stdout) < 1<<18 {
			t.Errorf("%+v, %d bytes, %v", r.Exit, len(r.stdout), err)
		}
		if r := run(t, s, "node -e 'for (let i = 0; i < 300000; i++) console.log(i)'; echo end"); !strings.HasSuffix(r.stdout, "299999\nend\n") || r.Dropped == 0 {
			t.Errorf("%+v, %d bytes", r.Exit, len(r.stdout))
		}
		// A call pays for output, until it has nothing left.
		left := 100 * time.Millisecond
		spent := errors.New("nothing is left")
		ctx := abi.WithWork(t.Context(), func(d time.Duration) error {
			if left -= d; left < 0 {
				return spent
			}
			return nil
		})
		if r, err := try(ctx, s, sandbox.Command{Argv: []string{"yes"}}); err != nil || r.Ending != sandbox.Stopped {
			t.Errorf("%+v, %v", r.Exit, err)
		}
	})
}

// TestEnds ends commands in every way, and all that they started with them.
func TestEnds(t *testing.T) {
	each(t, func(t *testing.T, o sandbox.Options) {
		s := open(t, o, sandbox.Rights{Limits: sandbox.Limits{Time: time.Second}})
		const stubborn = "trap '' TERM INT HUP; (setsid sh -c 'trap \"\" TERM; while :; do sleep 1; done' &) ; while :; do sleep 1; done"
		if r := run(t, s, stubborn); r.Ending != sandbox.TimedOut || r.Code != 137 {
			t.Errorf("the limit of the grant: %+v", r.Exit)
		}
		p, err := s.Start(t.Context(), sandbox.Command{Argv: []string{"/bin/sh", "-c", "echo; " + stubborn}})
		if err != nil {
			t.Fatal(err)
		}
		zero := uint64(0)
		<-p.Subscribe(t.Context(), sandbox.Stage{Case: sandbox.StageOutput, Output: &zero}).Done()
		p.Stop(t.Context())
		if e, err := p.Take(t.Context()); err != nil || e.Ending != sandbox.Stopped {
			t.Errorf("stopped: %+v, %v", e, err)
		}
		if err := p.Close(); err != nil {
			t.Error(err)
		}
		if got := must(t, s, "ps -e -o comm= | grep -c sleep; true"); got != "0\n" {
			t.Errorf("these are left: %s", must(t, s, "ps ax"))
		}
		if r := run(t, s, "kill -11 $$"); r.Code != 139 || r.Ending != sandbox.Exited {
			t.Errorf("a signal: %+v", r.Exit)
		}
		if r := run(t, s, "kill -9 -1"); r.Code == 0 {
			t.Errorf("it killed everything: %+v", r.Exit)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := try(ctx, s, sandbox.Command{Argv: []string{"true"}}); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
	})
}

// TestManyCommands runs as many commands at once as a sandbox allows, and one more.
func TestManyCommands(t *testing.T) {
	each(t, func(t *testing.T, o sandbox.Options) {
		s := open(t, o, sandbox.Rights{})
		var all []*sandbox.Process
		for range 17 {
			p, err := s.Start(t.Context(), sandbox.Command{Argv: []string{"sleep", "1000"}})
			if err != nil {
				if !errors.Is(err, abi.ErrExhausted) || len(all) != 16 {
					t.Errorf("%d commands: %v", len(all), err)
				}
				break
			}
			all = append(all, p)
		}
		for _, p := range all {
			if err := p.Close(); err != nil {
				t.Error(err)
			}
		}
		must(t, s, "true")
	})
}

// TestFull copies more into a sandbox than it has room for.
func TestFull(t *testing.T) {
	each(t, func(t *testing.T, o sandbox.Options) {
		for _, storage := range []string{"memory", "disk"} {
			o.Storage = storage
			s, d := open(t, o, sandbox.Rights{Limits: sandbox.Limits{Disk: 16 << 20}}), store(t)
			for i := range 3 {
				write(t, d, string(rune('a'+i)), strings.Repeat("x", 8<<20))
			}
			x, err := s.Push(t.Context(), d, "")
			if err != nil {
				t.Fatal(err)
			}
			if c, err := x.Take(t.Context()); !errors.Is(err, abi.ErrExhausted) {
				t.Errorf("got %s, %v", summary(c), err)
			}
			_ = x.Close()
			must(t, s, "rm -f *; echo x > x")
			if got := summary(pull(t, s, d, "")); !strings.Contains(got, "+x") {
				t.Errorf("afterwards: %s", got)
			}
		}
	})
}
