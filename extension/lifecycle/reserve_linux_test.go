package lifecycle

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stilehost/stile/abi"
)

// A full disk prevents no revocation, in this process or in the next. The disk is a real one of 8 MB, which
// this test mounts in a separate user namespace.
func TestRevokeOnFullDisk(t *testing.T) {
	const inside = "STILE_TEST_FULL_DISK"
	if os.Getenv(inside) == "" {
		c := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestRevokeOnFullDisk$", "-test.v") //nolint:gosec // this very test
		c.Env = append(os.Environ(), inside+"=1", "TMPDIR="+t.TempDir())
		c.SysProcAttr = &syscall.SysProcAttr{
			Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS,
			UidMappings: []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}},
			GidMappings: []syscall.SysProcIDMap{{HostID: os.Getgid(), Size: 1}},
		}
		out, err := c.CombinedOutput()
		if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
			t.Skipf("this system has no user namespaces for this user: %v", err)
		}
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		return
	}
	for name, anew := range map[string]bool{"in a process that runs": false, "in a new process": true} {
		t.Run(name, func(t *testing.T) { revokeOnFullDisk(t, anew) })
	}
}

// revokeOnFullDisk revokes with the manager that filled the disk, or with one that is opened when the disk is full.
func revokeOnFullDisk(t *testing.T, anew bool) {
	h := newHome(t)
	if err := syscall.Mount("tmpfs", h.options.Dir, "tmpfs", 0, "size=8m"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(h.options.Dir, syscall.MNT_DETACH) }) // it ends with this process anyway
	m := h.open()
	write(t, m, draft("notes", "1", ""))
	says(t, m, "notes_get", "1")
	for range 3 { // opening takes some room, and gives it back
		if !anew {
			break
		}
		if err := m.Close(); err != nil {
			t.Fatal(err)
		}
		fill(t, h.options.Dir)
		m = h.open()
	}
	fill(t, h.options.Dir)
	if _, err := m.Write(t.Context(), draft("other", "2", "")); !errors.Is(err, abi.ErrUnavailable) {
		t.Fatalf("the disk is not full: %v", err)
	}
	r, err := m.Revoke(t.Context(), own, "notes", Decision{By: "user:tom", Via: "terminal"})
	if err != nil || r.State != Revoked {
		t.Fatalf("got %+v, %v", r, err)
	}
	fill(t, h.options.Dir)
	if err := m.Close(); err != nil {
		t.Error(err)
	}
	m = h.open() // while the disk is still full
	if history, err := m.History(t.Context(), own, "notes"); err != nil || history[0].State != Revoked {
		t.Errorf("got %+v, %v", history, err)
	}
	if _, _, err := m.VerifyAudit(t.Context()); err != nil {
		t.Error(err)
	}
}

// fill uses all remaining space on the disk of a folder.
func fill(t *testing.T, dir string) {
	t.Helper()
	f, err := os.OpenFile(filepath.Join(dir, "ballast"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	for b := make([]byte, 4096); err == nil; {
		_, err = f.Write(b)
	}
	if !errors.Is(err, syscall.ENOSPC) {
		t.Fatal(err)
	}
	_ = f.Close() // data that it could not write does not matter
}
