package main

import (
	"os"

	"golang.org/x/sys/unix"
)

// discardTyped drops what was typed at a terminal and not read yet.
func discardTyped(terminal *os.File) error {
	return unix.IoctlSetInt(int(terminal.Fd()), unix.TCFLSH, unix.TCIFLUSH)
}
