package lease_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stilehost/stile/internal/lease"
)

func Example() {
	dir, err := os.MkdirTemp("", "holders")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = os.RemoveAll(dir) }()
	h, err := lease.New(dir)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(lease.Ended(dir, h.Name))
	if err := h.Close(); err != nil {
		fmt.Println(err)
	}
	fmt.Println(lease.Ended(dir, h.Name))
	// Output:
	// false
	// true
}

// TestForged has names and files that no holder made.
func TestForged(t *testing.T) {
	dir := t.TempDir()
	outside := filepath.Join(dir, "holder-x.lock")
	if err := os.WriteFile(outside, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	inside := filepath.Join(dir, "in")
	if err := os.Mkdir(inside, 0o700); err != nil {
		t.Fatal(err)
	}
	if !lease.Ended(inside, "../x") {
		t.Error("a name with a path is a holder")
	}
	if _, err := os.Stat(outside); err != nil {
		t.Error("a file elsewhere was removed")
	}
	if err := os.Symlink(outside, filepath.Join(inside, "holder-link.lock")); err != nil {
		t.Fatal(err)
	}
	lease.Ended(inside, "link")
	if _, err := os.Stat(outside); err != nil {
		t.Error("a link was followed")
	}
}

func TestUptime(t *testing.T) {
	boot, at, err := lease.Uptime()
	if err != nil {
		t.Fatal(err)
	}
	again, later, err := lease.Uptime()
	if err != nil || again != boot || later < at || later > at+time.Hour {
		t.Errorf("%s %v, then %s %v, %v", boot, at, again, later, err)
	}
}
