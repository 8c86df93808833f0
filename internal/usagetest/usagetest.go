// Package usagetest measures memory and processor time in tests. It can measure memory in a separate process.
package usagetest

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
	"syscall"
	"testing"
	"time"
)

const (
	told  = "grown by "
	again = "STILE_TEST_AGAIN" // set in processes that Grown started
)

// Grown runs a test again in another process, with an environment variable
// ("name=value") that makes it call [Tell], and returns the figure that Tell
// printed, in KiB.
func Grown(t *testing.T, test, variable string) (kib int, output string, err error) {
	t.Helper()
	if os.Getenv(again) != "" {
		t.Fatalf("%s does not make the test call Tell", variable) // or processes would start processes without end
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+test+"$", "-test.v")
	cmd.Env = append(os.Environ(), variable, again+"=1")
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

// Tell prints for [Grown] by how much do raised the peak memory of the process.
func Tell(t *testing.T, do func()) {
	t.Helper()
	before := Resident()
	if err := os.WriteFile("/proc/self/clear_refs", []byte("5"), 0); err != nil { // the peak is now
		t.Fatal(err)
	}
	do()
	fmt.Printf(told+"%d KiB\n", Peak()-before)
}

// Resident returns the memory of this process in KiB, after returning free memory to the system.
func Resident() int {
	runtime.GC()
	debug.FreeOSMemory()
	return status("VmRSS:")
}

// Peak returns the most memory in KiB that this process ever had. The system's figure for a process that has ended can be its parent's.
func Peak() int { return status("VmHWM:") }

// Threads returns how many threads of the operating system this process has.
func Threads() int { return status("Threads:") }

func status(field string) int {
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		panic(err)
	}
	fields := strings.Fields(string(text))
	kib, err := strconv.Atoi(fields[slices.Index(fields, field)+1])
	if err != nil {
		panic(err)
	}
	return kib
}

// Processor returns the processor time that this process has used.
func Processor() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
