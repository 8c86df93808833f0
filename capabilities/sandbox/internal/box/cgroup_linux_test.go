package box

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// apart starts this test's program to start a box, as a user, after commands of a shell in mounts of its own, and returns what it says.
func apart(t *testing.T, user uint32, before string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "unshare", "--mount", "--propagation", "private", "sh", "-c", before+`exec "$0"`, "/proc/self/exe")
	if user != 0 {
		cmd = exec.CommandContext(t.Context(), "/proc/self/exe")
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: user, Gid: user}}
	} else if exe, err := os.Executable(); err == nil {
		cmd.Args[len(cmd.Args)-1] = exe
	}
	cmd.Dir = "/"
	cmd.Env = append(os.Environ(), "STILE_TEST_ROLE=start", "STILE_TEST_DIR="+t.TempDir())
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return string(out)
}

// TestRefusals says why a machine, or a user, can have no boxes.
func TestRefusals(t *testing.T) {
	if got := apart(t, 65534, ""); !strings.Contains(got, "does not run as root: ") || !strings.Contains(got, "cgroup") {
		t.Errorf("a user: %s", got)
	}
	if got := apart(t, 0, `unshare --user --map-root-user "$0"; exit; `); !strings.Contains(got, "is root of a user namespace, and not of the machine: ") || !strings.Contains(got, "no users for sandboxes") {
		t.Errorf("root of a user namespace: %s", got)
	}
	// Version 2 alone, as far as this machine has it beside version 1.
	const alone = `grep -o "/sys/fs/cgroup[^ ]*" /proc/self/mounts | sort -r | while read m; do umount "$m"; done; mount -t cgroup2 none /sys/fs/cgroup; `
	if findCgroups().unified {
		return
	}
	if got := apart(t, 0, alone); !strings.Contains(got, "the cgroup controller memory is missing from cgroups of version 2") {
		t.Errorf("without controllers: %s", got)
	}
	if got := apart(t, 0, "umount /sys/fs/cgroup/pids; "); !strings.Contains(got, "the cgroup controller pids is missing from cgroups of version 1") {
		t.Errorf("without a controller: %s", got)
	}
}

// second is a hierarchy of cgroups of version 2. It has no controllers where another one of version 1 has them.
func second(t *testing.T) cgroups {
	t.Helper()
	if c := findCgroups(); c.unified {
		return c
	}
	at := t.TempDir()
	if err := unix.Mount("none", at, "cgroup2", 0, ""); err != nil {
		t.Fatalf("this test needs a kernel with cgroups of version 2: %v", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(at, 0); err != nil {
			t.Error(err)
		}
	})
	return cgroups{at, true}
}

// TestSecondVersion does with cgroups of version 2 what needs no controller: it makes them, moves a process there, freezes and thaws it, kills
// what is below, and removes them.
func TestSecondVersion(t *testing.T) {
	c := second(t)
	parent := fmt.Sprintf("/stile-test-%d", os.Getpid())
	below := parent + "/c1"
	for _, path := range []string{parent, below} {
		if err := c.add(path); err != nil {
			t.Fatal(err)
		}
	}
	// Its first argument is a token, as that of a process that waits to be adopted.
	cmd := exec.CommandContext(t.Context(), "sh", "-c", `(while :; do echo; done) & while read line; do :; done; wait`)
	cmd.Args[0] = engineLaunch
	cmd.Args[1] = "-c"
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(c.folder("", parent), "cgroup.procs"), fmt.Append(nil, cmd.Process.Pid), 0); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	if !lines.Scan() {
		t.Fatal(lines.Err())
	}
	if _, err := c.adopt(parent, below, "nothing"); err == nil {
		t.Error("a process without the token was adopted")
	}
	if _, err := c.adopt(parent, below, "-c"); err != nil {
		t.Error(err)
	}
	if got := members(c, below); !slices.Contains(got, cmd.Process.Pid) {
		t.Errorf("%d are below", got)
	}
	if c.empty(parent) {
		t.Error("it is empty")
	}
	events := func() string {
		text, err := os.ReadFile(filepath.Join(c.folder("", parent), "cgroup.events"))
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	if err := c.freeze(parent); err != nil || !strings.Contains(events(), "frozen 1") || !strings.Contains(events(), "populated 1") {
		t.Errorf("frozen: %v, %s", err, events())
	}
	if err := c.thaw(parent); err != nil {
		t.Error(err)
	}
	for range 100 { // it goes on
		if !lines.Scan() {
			t.Fatal(lines.Err())
		}
	}
	if err := c.freeze(parent); err != nil { // what stands still can be killed too
		t.Error(err)
	}
	if err := c.clear(parent); err != nil || !strings.Contains(events(), "populated 0") {
		t.Errorf("killed: %v, %s", err, events())
	}
	_ = cmd.Wait()
	if s, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); !ok || s.Signal() != syscall.SIGKILL {
		t.Errorf("it ended with %v", cmd.ProcessState)
	}
	_ = in.Close()
	if err := c.remove(parent); err != nil || exists(c.folder("", parent)) {
		t.Errorf("removed: %v", err)
	}
	if err := c.kill(parent); err != nil {
		t.Errorf("a cgroup that is gone: %v", err)
	}
}
