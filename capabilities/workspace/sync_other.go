//go:build !linux

package workspace

import (
	"os"
	"syscall"
)

// syncAll puts everything that was written on the disk.
func syncAll(*os.Root) error { return syscall.Sync() }
