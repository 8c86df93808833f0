package child

import (
	"bytes"
	"os"
	"os/exec"
	"strconv"
	"syscall"
)

// endWithParent makes the system end the process when this one ends, however that happens.
func endWithParent(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }

// residentMemory returns a function for the memory that this process has in use, in bytes, which opens no file. The kernel's record of the
// most that it ever had would include that of the process that started it.
func residentMemory() (func() int64, error) {
	statm, err := os.Open("/proc/self/statm")
	if err != nil {
		return nil, err
	}
	return func() int64 {
		var text [128]byte
		n, _ := statm.ReadAt(text[:], 0) // it ends before the buffer does
		if fields := bytes.Fields(text[:n]); len(fields) > 1 {
			pages, _ := strconv.ParseInt(string(fields[1]), 10, 64)
			return pages * int64(os.Getpagesize())
		}
		return 0
	}, nil
}
