package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stilehost/stile/internal/disktest"
)

// TestTakeAwayOnFullDisk removes tokens and secrets on a full disk, one by one. The disk is a real one of 1 MB, which this test mounts in a
// separate user namespace.
func TestTakeAwayOnFullDisk(t *testing.T) {
	if !disktest.Mounts(t) {
		return
	}
	h := newHome(t)
	disktest.Mount(t, h.dir, "size=1m,mode=0700")
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
		disktest.Fill(t, h.dir)
		if out, err := h.command("serve", "token", "add", "other").CombinedOutput(); err == nil {
			t.Fatalf("the disk is not full:\n%s", out)
		}
		h.stile("serve", "token", "remove", name(i))
		disktest.Fill(t, h.dir)
		h.stile("secret", "remove", name(i))
		for _, list := range []string{h.stile("serve", "token", "list"), h.stile("secret", "list")} {
			if strings.Contains(list, name(i)) || strings.Count(list, "name-") != n-1-i {
				t.Errorf("after %s is removed, there are:\n%s", name(i), list)
			}
		}
	}
}
