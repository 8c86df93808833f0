package browser

import (
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
)

// TestWithoutRoot runs tests of this package again, as a user without any right over the machine who is root of a user namespace. That is what
// unshare --map-root-user --map-auto --pid --fork --mount-proc makes for a user with a range in /etc/subuid.
func TestWithoutRoot(t *testing.T) {
	const user, more = 54_321, 1 << 20
	dir := t.TempDir()
	for at := dir; at != filepath.Clean(os.TempDir()); at = filepath.Dir(at) { // another user goes through them
		if err := os.Chmod(at, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	program, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	at, home := filepath.Join(dir, "program"), filepath.Join(dir, "home")
	if err := os.WriteFile(at, program, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(home, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(home, user, user); err != nil {
		t.Fatalf("%v; run this test as root", err)
	}
	ids := []syscall.SysProcIDMap{{ContainerID: 0, HostID: user, Size: 1}, {ContainerID: 1, HostID: more, Size: 65_535}}
	const tests = "^(TestRead|TestWaysOut|TestScopesAreApart|TestLargeDownload|TestMemoryOfPages|TestCrash|TestIntercept)$"
	cmd := exec.CommandContext(t.Context(), "/bin/sh", "-c", `mount -t proc proc /proc && cat /proc/self/status | grep -q 'CapEff:.*[1-9a-f]' && exec "$@"`, "sh", at, "-test.run", tests, "-test.skip", "TestWaysOut/unconfined=true")
	cmd.Dir = home
	cmd.Env = append(os.Environ(), "TMPDIR="+home, "HOME="+home)
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: syscall.CLONE_NEWUSER | syscall.CLONE_NEWPID | syscall.CLONE_NEWNS, UidMappings: ids, GidMappings: ids, GidMappingsEnableSetgroups: true,
		Credential: &syscall.Credential{}, Pdeathsig: syscall.SIGKILL,
	}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
