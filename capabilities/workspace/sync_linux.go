package workspace

import (
	"os"

	"golang.org/x/sys/unix"
)

// syncAll puts everything that was written to the disk of a directory on that disk.
func syncAll(root *os.Root) error {
	file, err := root.Open(".")
	if err != nil {
		return err
	}
	defer file.Close()
	return unix.Syncfs(int(file.Fd()))
}
