//go:build darwin || freebsd || netbsd || openbsd

package main

import (
	"os"

	"golang.org/x/sys/unix"
)

// discardTyped drops what was typed at a terminal and not read yet.
func discardTyped(terminal *os.File) error {
	const read = 1 // FREAD of sys/fcntl.h
	return unix.IoctlSetPointerInt(int(terminal.Fd()), unix.TIOCFLUSH, read)
}
