package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestTakeAwayOnFullDisk removes tokens and secrets on a full disk, one by one. The disk is a real one of 1 MB, which this test mounts in a
// separate user namespace.
func TestTakeAwayOnFullDisk(t *testing.T) {
	const inside = "STILE_TEST_FULL_DISK"
	if os.Getenv(inside) == "" {
		c := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestTakeAwayOnFullDisk$", "-test.v") //nolint:gosec // this very test
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
	h := newHome(t)
	if err := syscall.Mount("tmpfs", h.dir, "tmpfs", 0, "size=1m,mode=0700"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(h.dir, syscall.MNT_DETACH) }) // it ends with this process anyway
	const n = 20
	name := func(i int) string { return fmt.Sprintf("name-%02d", i) }
	for i := range n {
		h.stile("serve", "token", "add", name(i))
		set := h.command("secret", "set", name(i))
		set.Stdin = strings.NewReader(strings.Repeat("x", 1000))
		if out, err := set.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	}
	for i := range n {
		fillDisk(t, h.dir)
		if out, err := h.command("serve", "token", "add", "other").CombinedOutput(); err == nil {
			t.Fatalf("the disk is not full:\n%s", out)
		}
		h.stile("serve", "token", "remove", name(i))
		fillDisk(t, h.dir)
		h.stile("secret", "remove", name(i))
		for _, list := range []string{h.stile("serve", "token", "list"), h.stile("secret", "list")} {
			if strings.Contains(list, name(i)) || strings.Count(list, "name-") != n-1-i {
				t.Errorf("after %s is removed, there are:\n%s", name(i), list)
			}
		}
	}
}

// fillDisk uses all remaining space on the disk of a folder.
func fillDisk(t *testing.T, dir string) {
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
