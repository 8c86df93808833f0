package sqlitetest

import "syscall"

// room is how many bytes are free where a folder is.
func room(folder string) uint64 {
	var s syscall.Statfs_t
	if syscall.Statfs(folder, &s) != nil {
		return 0
	}
	return s.Bavail * uint64(s.Bsize)
}
