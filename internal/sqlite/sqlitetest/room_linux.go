package sqlitetest

import "syscall"

// room returns how many bytes are free on the file system of a folder.
func room(folder string) uint64 {
	var s syscall.Statfs_t
	if syscall.Statfs(folder, &s) != nil {
		return 0
	}
	return s.Bavail * uint64(s.Bsize)
}
