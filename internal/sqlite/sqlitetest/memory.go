package sqlitetest

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

const (
	memory = "/dev/shm"
	prefix = "stile-test-"
	// abandoned is the age of a folder whose tests were killed.
	abandoned = 24 * time.Hour
	// wanted is how many bytes must be free for the tests of a few packages at once.
	wanted = 4 << 30
)

// InMemory runs tests, for a TestMain, with their temporary folders in memory if the system has a folder for that. Otherwise they spend
// most of their time waiting for the disk at each transaction. Processes that they start use the same folder.
func InMemory(run func() int) int {
	if info, err := os.Stat(memory); err != nil || !info.IsDir() || strings.HasPrefix(os.TempDir(), memory+"/") {
		return run()
	}
	sweep(memory)
	if room(memory) < wanted { // containers have 64 MiB
		return run()
	}
	dir, err := os.MkdirTemp(memory, prefix)
	if err != nil {
		return run() // it is full, or we may not write to it
	}
	if err := os.Setenv("TMPDIR", dir); err != nil {
		panic(err)
	}
	code := run()
	if err := os.RemoveAll(dir); err != nil {
		fmt.Fprintln(os.Stderr, "remove the folder of the tests:", err)
		return max(code, 1)
	}
	return code
}

// sweep removes folders of tests that were killed.
func sweep(dir string) {
	folders, err := filepath.Glob(filepath.Join(dir, prefix+"*"))
	if err != nil {
		return
	}
	for _, folder := range folders {
		if info, err := os.Lstat(folder); err == nil && info.IsDir() && time.Since(info.ModTime()) > abandoned {
			_ = os.RemoveAll(folder) // another user's folder stays
		}
	}
}
