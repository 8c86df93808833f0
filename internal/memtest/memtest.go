// Package memtest measures in tests how much memory something takes, in a process of its own.
package memtest

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const told = "grown by "

// Grown runs a test again in another process, with an environment variable that tells it to call [Tell], and returns what that told, in KiB.
func Grown(t *testing.T, test, variable string) (kib int, output string, err error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+test+"$", "-test.v")
	cmd.Env = append(os.Environ(), variable)
	out, err := cmd.CombinedOutput()
	_, grown, found := strings.Cut(string(out), told)
	if err == nil && !found {
		err = errors.New("the process did not say how much it has grown")
	}
	if err != nil {
		return 0, string(out), err
	}
	kib, err = strconv.Atoi(strings.Fields(grown)[0])
	return kib, string(out), err
}

// Tell prints how much more memory the process ever had while do ran than before, for [Grown].
func Tell(t *testing.T, do func()) {
	t.Helper()
	runtime.GC()
	debug.FreeOSMemory()
	if err := os.WriteFile("/proc/self/clear_refs", []byte("5"), 0); err != nil { // the peak is now
		t.Fatal(err)
	}
	before := resident(t, "VmRSS:")
	do()
	fmt.Printf(told+"%d KiB\n", resident(t, "VmHWM:")-before)
}

func resident(t *testing.T, field string) int {
	t.Helper()
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	fields := strings.Fields(string(text))
	kib, err := strconv.Atoi(fields[slices.Index(fields, field)+1])
	if err != nil {
		t.Fatal(err)
	}
	return kib
}
